"""Which lanes may make their next step, and what a withdrawn step takes along: both by the way in's rule `reaches` (DESIGN 3).

A lane is looked at again only when one that it waited for has come on, so the whole costs about as much as there are steps and
waits. Where a way in does not say whom a lane waits for (`waits_for` gives None), anybody may matter, and all are asked each time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabula.errors import InputError, NotPossible
from fabula.store import StepRow

if TYPE_CHECKING:
    from fabula.runs._run import Run


@dataclass(slots=True)
class _Scan:
    """How far a lane's step has got in looking at those whom it waits for. Who is not behind any more never will be again."""

    time: int
    names: Sequence[str] | None
    at: int = 0
    aside: list[str] = field(default_factory=list)
    """Looked at, still behind, and not reaching it so far."""


class Schedule:
    """The lanes of a run that may go on, in the order (time, lane).

    Args:
        run: held by this process.
        until: lanes that have come to this logical time stop.
        lanes: only these make steps; None = all.
        lock_step: all lanes of the smallest time go first, then a barrier.

    Raises:
        InputError: a lane that the run does not have.
    """

    def __init__(self, run: Run, until: int, lanes: Collection[str] | None, lock_step: bool):
        strange = sorted(set(lanes or ()) - run.lanes.keys())
        if strange:
            raise InputError(f"Run {run.id} has no lane {strange[0]!r}.")
        self._run, self._until, self._lock_step = run, until, lock_step
        self._barrier = -1
        self._driven = run.lanes.keys() if lanes is None else frozenset(lanes)
        self._build()

    def _build(self) -> None:
        run = self._run
        self._changes = run.changes
        self._busy = {lane for lanes, _ in run.running.values() for lane in lanes}
        self._waiting: dict[str, list[str]] = defaultdict(list)
        self._scans: dict[str, _Scan] = {}
        self._always: set[str] = set()
        """Lanes that wait and do not know for whom."""
        self._look = [(run.next[lane], lane) for lane in self._driven if not self._over(lane)]
        heapq.heapify(self._look)
        self._queued = {lane for _, lane in self._look}
        self._open = list(self._look) if self._lock_step else []

    def _over(self, lane: str) -> bool:
        return self._run.next[lane] >= min(self._until, self._run.lanes[lane][1])

    def ready(self) -> tuple[tuple[str, ...], int] | None:
        """The first step that may begin now: its lanes and its time. It counts as begun. None = none until a lane comes on."""
        run = self._run
        if self._changes != run.changes:
            self._build()
        while self._look:
            time, lane = self._look[0]
            if self._lock_step and not self._lowest(time):
                return None
            heapq.heappop(self._look)
            self._queued.discard(lane)
            if lane in self._busy or self._over(lane):
                continue
            if time != run.next[lane]:
                self._queue(lane)
                continue
            lanes = self._together(lane, time)
            if lanes:
                self._barrier = time
                self._busy.update(lanes)
                for one in lanes:
                    self._scans.pop(one, None)
                return lanes, time
        return None

    def came_on(self, lanes: Iterable[str]) -> None:
        """The step of these lanes is over: it was committed, or cancelled."""
        self._busy.difference_update(lanes)
        for lane in lanes:
            self._queue(lane)
            if self._lock_step and not self._over(lane):
                heapq.heappush(self._open, (self._run.next[lane], lane))
            for other in self._waiting.pop(lane, ()):
                self._queue(other)
        for lane in self._always:
            self._queue(lane)
        self._always.clear()

    def _queue(self, lane: str) -> None:
        if lane not in self._queued and lane in self._driven and not self._over(lane):
            self._queued.add(lane)
            heapq.heappush(self._look, (self._run.next[lane], lane))

    def _lowest(self, time: int) -> bool:
        """Lock-step: nobody is at a smaller time, and of another time nothing is in flight."""
        while self._open and self._run.next[self._open[0][1]] != self._open[0][0]:
            heapq.heappop(self._open)
        low = self._open[0][0] if self._open else time
        return time <= low and (not self._run.running or self._barrier == low)

    def _together(self, lane: str, time: int) -> tuple[str, ...]:
        """The lanes of the step that a lane may make now; empty = it waits."""
        run = self._run
        blocker = self._blocker(lane)
        if blocker is not None:
            return self._wait(lane, blocker)
        lanes = run.recurrence.joins(run, lane, time)
        for other in lanes:
            if other == lane:
                continue
            if other in self._busy or run.next[other] != time or other not in self._driven:
                return self._wait(lane, other)
            blocker = self._blocker(other)
            if blocker is not None:
                return self._wait(lane, blocker)
        return lanes

    def _wait(self, lane: str, other: str) -> tuple[()]:
        if self._scans[lane].names is None:
            self._always.add(lane)
        else:
            self._waiting[other].append(lane)
        return ()

    def _blocker(self, lane: str) -> str | None:
        """Someone who is behind, has not ended, and could still matter to this lane's next step."""
        run, time = self._run, self._run.next[lane]
        scan = self._scans.get(lane)
        if scan is None or scan.time != time:
            scan = self._scans[lane] = _Scan(time, run.recurrence.waits_for(run, lane, time))
        if scan.names is None:
            return next(
                (other for other in run.next if other != lane and self._behind(other, time) and self._reaches(other, lane, time)), None
            )
        scan.aside = [other for other in scan.aside if self._behind(other, time)]
        for other in scan.aside:
            if self._reaches(other, lane, time):
                return other
        while scan.at < len(scan.names):
            other = scan.names[scan.at]
            if other not in run.next:
                raise NotPossible(f"Lane {lane} of run {run.id} waits for {other!r}, which is no lane.")
            if other != lane and self._behind(other, time):
                if self._reaches(other, lane, time):
                    return other
                scan.aside.append(other)
            scan.at += 1
        return None

    def _behind(self, other: str, time: int) -> bool:
        return self._run.next[other] < min(time, self._run.lanes[other][1])

    def _reaches(self, other: str, lane: str, time: int) -> bool:
        return self._run.recurrence.reaches(self._run, other, self._run.next[other], lane, time)


# -- withdrawing -------------------------------------------------------------------------------------------------------------


def reached(run: Run, live: Sequence[StepRow], step: str, time: int) -> tuple[list[StepRow], dict[str, int]]:
    """A step and all that it could have reached, by the rule that makes lanes wait; and since when each lane is withdrawn.

    What others were seen to read is not enough: done again, the step may come into sight of someone new. `live` is in the order of
    time, and nothing reaches back, so one look at each step is enough.
    """
    since: dict[str, int] = {}
    if any((s.step, s.time) == (step, time) for s in live):
        since = dict.fromkeys(step.split("+"), time)
    gone = []
    for s in live if since else ():
        lanes = s.step.split("+")
        if any(hit(run, since, lane, s.time) for lane in lanes):
            gone.append(s)
            for lane in lanes:
                since.setdefault(lane, s.time)
    return gone, since


def hit(run: Run, since: Mapping[str, int], lane: str, time: int) -> bool:
    """Whether a lane's step at a time goes with what is withdrawn: lane → since when."""
    if since.get(lane, time + 1) <= time:
        return True
    names = run.recurrence.waits_for(run, lane, time)
    sources = since if names is None else [name for name in names if name in since]
    return any(since[name] < time and run.recurrence.reaches(run, name, since[name], lane, time) for name in sources if name != lane)
