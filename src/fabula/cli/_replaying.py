"""Replaying a run step by step, so that one that cannot be replayed does not keep the others from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabula.cli._output import first_line, show

if TYPE_CHECKING:
    from fabula.runs import Difference
    from fabula.store import Store


@dataclass
class Replayed:
    """What came of it, by the numbers of the steps."""

    run: str
    steps: int = 0
    """How many were replayed."""
    differences: list[Difference] = field(default_factory=list)
    erased: list[int] = field(default_factory=list)
    """Steps that lack what a person erased."""
    missing: dict[int, str] = field(default_factory=dict)
    """Steps that lack something though nothing was ever erased, and what."""

    def as_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "run": self.run, "steps": self.steps, "identical": not self.differences and not self.missing,
            "differences": [{"step": one.time, "what": one.what} for one in self.differences], "erased": self.erased,
            "missing": [{"step": step, "what": what} for step, what in self.missing.items()],
        }  # fmt: skip


def replayed(store: Store, run: str) -> Replayed:
    """Replay every step of a book or play.

    Raises:
        NotFound: no such run.
        NotPossible: a run of another kind.
    """
    from fabula.cli._interrupt import run_async
    from fabula.errors import NotPossible, Offline
    from fabula.runs import replay
    from fabula.store import FactRow
    from fabula.write import Story

    row = store.run(run)
    if row.kind != Story.kind:
        raise NotPossible(f"Run {row.id} is a {row.kind} run; this version replays books and plays.")
    erased = bool(store.rows(FactRow, name="erased", limit=1))
    done = Replayed(row.id)

    async def whole() -> None:
        for step in store.steps(store.line(row.id)):
            try:
                count, found = await replay(store, Story(), row.id, start=step.time, end=step.time + 1)
            except Offline as error:
                if erased:
                    done.erased.append(step.time)
                else:
                    done.missing[step.time] = error.message
                continue
            done.steps += count
            done.differences += found

    run_async(whole)
    return done


def finding(done: Replayed) -> str:
    """What is wrong, as a sentence; empty where nothing is."""
    if done.differences:
        return f"{len(done.differences)} differences in {done.steps} replayed steps of run {done.run}."
    return f"{len(done.missing)} steps of run {done.run} cannot be replayed." if done.missing else ""


def print_replayed(done: Replayed) -> None:
    """As a person reads it."""
    for one in done.differences:
        show(f"step {one.time}: {one.what} differ: {first_line(repr(one.expected))} → {first_line(repr(one.got))}")
    for step, what in done.missing.items():
        show(f"step {step}: {what}")
    if not done.differences:
        show(f"{done.steps} steps replayed offline, all identical.")
    if done.erased:
        show(f"Passed over, since what they need was erased: step{'s' if len(done.erased) > 1 else ''} {', '.join(map(str, done.erased))}.")
