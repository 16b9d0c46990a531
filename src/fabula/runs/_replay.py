"""Replay: a committed step is run again from the journal alone and must come out identical (DESIGN 3)."""

from __future__ import annotations

from dataclasses import dataclass

from fabula.runs._context import Context
from fabula.runs._recurrence import Recurrence
from fabula.runs._run import Run
from fabula.store import Among, PieceRow, RecordRow, StepRow, Store


@dataclass(frozen=True, slots=True)
class Difference:
    """A replayed step that came out otherwise."""

    step: str
    time: int
    what: str
    """output, pieces, records, uses"""
    expected: object
    got: object


async def replay(store: Store, recurrence: Recurrence, run: str, *, start: int = 0, end: int | None = None) -> tuple[int, list[Difference]]:
    """Run every live step again with no model, no memory, no clock and no randomness but the journal's.

    Returns:
        how many steps were replayed, and the differences (none is the only good answer).

    Raises:
        Offline: a step asks for what the journal does not have.
    """
    opened = Run(store, recurrence, run, hold=False, clock=_no_clock)
    steps = [s for s in store.steps(opened.line) if s.time >= start and (end is None or s.time < end)]
    found: list[Difference] = []
    for step in steps:
        found += await replay_step(opened, step)
    return len(steps), found


async def replay_step(run: Run, step: StepRow) -> list[Difference]:
    """Replay one step of a run that was opened without a model."""
    ctx = Context(run, tuple(step.step.split("+")), step.time, replayed=step)
    output = await run.recurrence.step(ctx)
    found = []
    if output != step.output:
        found.append(Difference(step.step, step.time, "output", step.output, output))
    pieces = {(p.lane, p.name, p.version): p.value for p in run.store.rows(PieceRow, pos=step.pos)}
    got = ctx.changed()
    if pieces != got:
        found.append(Difference(step.step, step.time, "pieces", pieces, got))
    records = {(r.id, r.event): dict(r.data) for r in run.store.rows(RecordRow, pos=step.pos)}
    kept = {(r.id, r.event): dict(r.data) for r in ctx.kept.values()}
    if run.id == step.run and records != kept:
        found.append(Difference(step.step, step.time, "records", records, kept))
    if run.id == step.run and ctx.uses() != dict(step.uses):
        found.append(Difference(step.step, step.time, "uses", step.uses, ctx.uses()))
    return found


def _no_clock() -> float:
    raise AssertionError("a replayed step may not look at the clock")


def live_positions(store: Store, run: str) -> Among:
    """Positions of the live steps of a run's line, as a condition."""
    return Among(tuple(s.pos for s in store.steps(store.line(run))))
