"""Where a text comes from, what became stale, and how two branches differ (SPEC M4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fabula.errors import NotFound
from fabula.runs._context import Memo
from fabula.runs._run import Run
from fabula.store import FAR, Among, BegunRow, Between, CallRow, PieceRow, RecallRow, RecordRow, StepRow, Store


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One answer that a step went by, and what was refused before it."""

    verdict: CallRow
    asked: CallRow | None
    """The request; None where the answer was shared or fell back without one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What led to a step's output."""

    step: StepRow
    begun: BegunRow | None
    calls: Sequence[TracedCall]
    recalls: Mapping[str, Sequence[Memo]]
    """Part → what was recalled."""
    pieces: Mapping[str, Any]
    """`lane/name` → value that the step read."""


def trace(store: Store, run: str, time: int, step: str | None = None) -> Trace:
    """Which memories, which plan and which prompts led to the step at a logical time.

    Raises:
        NotFound: there is no live step at that time.
    """
    line = store.line(run)
    rows = [s for s in store.steps(line, start=time, end=time + 1) if step is None or s.step == step]
    if not rows:
        raise NotFound(f"Run {run} has no step {time}.", f"See its steps with `fabula runs show {run}`.")
    row = rows[0]
    begun = store.rows(BegunRow, run=row.run, step=row.step, time=row.time, take=row.take, limit=1)
    positions = list(row.uses.get("calls", ()))
    verdicts = store.rows(CallRow, pos=Among(tuple(positions))) if positions else []
    asked_at = tuple(v.asked for v in verdicts if v.asked)
    asked = {a.pos: a for a in store.rows(CallRow, pos=Among(asked_at))} if asked_at else {}
    recalls = {
        r.part: [Memo(**memo) for memo in r.found["found"]]
        for r in store.rows(RecallRow, run=row.run, step=row.step, time=row.time, take=row.take)
        if r.part in row.uses.get("recalls", ())
    }
    return Trace(row, begun[0] if begun else None, [TracedCall(v, asked.get(v.asked)) for v in verdicts], recalls, _read(store, row))


def _read(store: Store, row: StepRow) -> dict[str, Any]:
    used: Mapping[str, int] = row.uses.get("pieces", {})
    if not used:
        return {}
    by_pos: dict[int, list[PieceRow]] = defaultdict(list)
    for piece in store.rows(PieceRow, pos=Among(tuple(sorted(set(used.values()))))):
        by_pos[piece.pos].append(piece)
    out: dict[str, Any] = {}
    for key, pos in used.items():
        lane, _, name = key.partition("/")
        for piece in by_pos[pos]:
            if (piece.lane, piece.name) == (lane, name):
                out[key] = piece.value
    return out


@dataclass(frozen=True, slots=True)
class Stale:
    """A step whose output rests on something that has changed since."""

    step: StepRow
    direct: bool
    """It read the changed thing itself; otherwise it rests on a stale step."""
    why: str


def stale(run: Run) -> list[Stale]:
    """Steps that rest on what a person has changed since (their texts are never rewritten by that), in the run's order.

    A step is stale if a person's edit replaced the very version of a piece that it read, or changed a record that it
    recalled; and if it read a piece that a stale step wrote.
    """
    store, steps = run.store, run.store.steps(run.line)
    replaced = _replaced(run)
    changed = _changed_records(run)
    wrote: dict[int, StepRow] = {s.pos: s for s in steps}
    found: dict[int, Stale] = {}
    for step in steps:
        why = _direct(store, step, replaced, changed)
        if why:
            found[step.pos] = Stale(step, True, why)
            continue
        rests = {pos for pos in _rests(step).values() if pos in found and pos in wrote}
        if rests:
            source = wrote[min(rests)]
            found[step.pos] = Stale(step, False, f"it rests on step {source.time}")
    return list(found.values())


def _rests(step: StepRow) -> Mapping[str, int]:
    """The pieces that a step's outputs rest on, with the positions of the versions that it read."""
    pieces: Mapping[str, int] = step.uses.get("pieces", {})
    only = step.uses.get("rests")
    return pieces if only is None else {key: pos for key, pos in pieces.items() if key in only}


def stale_pieces(run: Run) -> dict[str, int]:
    """Current derived pieces (`lane/name` → logical time of the step that wrote them) whose writer is stale."""
    gone = {s.step.pos: s.step for s in stale(run)}
    out = {}
    for lane in ("", *run.lanes):
        for name in run.piece_names(lane):
            pos = run.written(lane, name)
            if pos in gone and run.recurrence.derived(name):
                out[f"{lane}/{name}"] = gone[pos].time
    return out


def _replaced(run: Run) -> dict[tuple[str, str, int], str]:
    """(lane, name, position of a row that a person's edit replaced) → words."""
    out = {}
    for lane, name in run.edited():
        if not run.recurrence.timeless(name):
            continue
        for before, after in pairwise(run.versions(name, lane)):
            if after.by == "person" and before.value != after.value:
                out[lane, name, before.pos] = f"{name} was edited since"
    return out


def _changed_records(run: Run) -> dict[str, int]:
    """Record id → position of the latest change that a person (or a correction from elsewhere) made to it."""
    out: dict[str, int] = {}
    for row in run.store.records(run.line, entities=run.recurrence.entities(run)):
        if row.event != "add" and row.by == "person":
            out[row.id] = max(out.get(row.id, 0), row.pos)
    return out


def _direct(store: Store, step: StepRow, replaced: Mapping[tuple[str, str, int], str], changed: Mapping[str, int]) -> str:
    for key, pos in _rests(step).items():
        lane, _, name = key.partition("/")
        if (lane, name, pos) in replaced:
            return replaced[lane, name, pos]
    if changed and step.uses.get("recalls") and "rests" not in step.uses:
        for row in store.rows(RecallRow, run=step.run, step=step.step, time=step.time, take=step.take):
            for memo in row.found["found"]:
                if changed.get(memo["id"], 0) > memo["pos"]:
                    return f"memory {memo['id']} was changed since"
    return ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """How two branches differ."""

    common: int
    """Logical time of the first step that is not the same row in both."""
    left: Sequence[StepRow]
    right: Sequence[StepRow]
    pieces: Mapping[str, tuple[Any, Any]]
    """`lane/name` → (left, right) of the current pieces that differ."""


def diff(left: Run, right: Run) -> Divergence:
    """Compare two runs of one family (or any two runs of one kind)."""
    ours, theirs = left.store.steps(left.line), right.store.steps(right.line)
    same = {s.pos for s in ours} & {s.pos for s in theirs}
    differing = [s.time for s in [*ours, *theirs] if s.pos not in same]
    common = min(differing, default=FAR)
    pieces: dict[str, tuple[Any, Any]] = {}
    for lane in ("", *sorted({*left.lanes, *right.lanes})):
        for name in sorted({*left.piece_names(lane), *right.piece_names(lane)}):
            if left.store is right.store and left.written(lane, name) == right.written(lane, name):
                continue  # the same row
            a, b = left.version(lane, name, FAR)[0], right.version(lane, name, FAR)[0]
            if a != b:
                pieces[f"{lane}/{name}"] = (a, b)
    return Divergence(common, [s for s in ours if s.pos not in same], [s for s in theirs if s.pos not in same], pieces)


def drafts(store: Store, run: str, time: int | None = None) -> list[tuple[CallRow, str]]:
    """Streams of a run that were interrupted before a verdict: (first partial, the text so far)."""
    row = store.run(run)
    where: dict[str, Any] = {} if time is None else {"time": time}
    partials: dict[int, list[CallRow]] = defaultdict(list)
    for call in store.rows(CallRow, run=row.id, status="partial", **where):
        partials[call.asked].append(call)
    done = {c.asked for c in store.rows(CallRow, run=row.id, status=Among(("answered", "refused")), **where)}
    return [
        (rows[0], "".join(r.answer for r in sorted(rows, key=lambda r: r.sequence)))
        for asked, rows in sorted(partials.items())
        if asked not in done
    ]


def records_between(store: Store, run: str, low: int, high: int) -> list[RecordRow]:
    """Record events of a run by logical time, low <= time <= high."""
    return store.rows(RecordRow, run=run, time=Between(low, high))
