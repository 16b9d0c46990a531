"""Making runs: a new one, a fork of one, and what is left for the process that holds one."""

from __future__ import annotations

import os
import time as wall_clock
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabula.errors import InputError
from fabula.memory import Record, added
from fabula.models import Model
from fabula.runs._facts import MODEL_PIECE, SMALL_MODEL_PIECE, ModelFacts
from fabula.runs._recurrence import Recurrence
from fabula.store import FactRow, InboxRow, IntakeRow, LaneRow, PieceRow, RecordRow, RunRow, Store, TextRow, text_hash
from fabula.text import TokenRatio

_AT_ONCE = 2_000_000
"""Characters of source texts that are written in one transaction."""
_MANY = 1_000
"""Source texts that are written in one transaction."""
BEFORE = -1
"""The logical time of what a run starts with: before its first step."""


def create(
    store: Store,
    recurrence: Recurrence,
    premise: Mapping[str, Any],
    *,
    title: str = "",
    run: str | None = None,
    seed: str | None = None,
    model: Model | None = None,
    small_model: Model | None = None,
    records: Sequence[Record] = (),
    texts: Iterable[str] = (),
) -> str:
    """A new run; returns its id. Its seed is drawn once, journaled and inherited by forks. Nothing is asked yet.

    Args:
        store: the library.
        recurrence: the way in.
        premise: what the run starts from; it never changes.
        title: for people.
        run: its id; None = drawn.
        seed: None = drawn.
        model: its facts become state.
        small_model: likewise.
        records: what the run remembers from the start: run records by import, before its first step (see `imported`). Their vectors are
            made when the memory is next brought up to date.
        texts: source texts, for `Context.text`. May be lazy: they are written bit by bit before the run itself is made, and
            never stand in memory together. Where that is interrupted, texts stay in the library that no run reads.

    Raises:
        InputError: a lane's name that cannot be, a record that cannot be, a run of this id.
    """
    run, seed = run or os.urandom(6).hex(), seed or os.urandom(8).hex()
    if store.rows(RunRow, id=run, limit=1):
        raise InputError(f"There is a run {run} already.", "Give it another id, or none.")
    lanes = recurrence.lanes(premise)
    for lane in lanes:
        if "+" in lane or not lane:
            raise InputError(f"A lane may not be called {lane!r}.")
    events = imported(run, lanes, records, wall_clock.time())
    _keep(store, run, texts)
    with store.write(run, "create") as tx:
        tx.add(RunRow(run, recurrence.kind, title, seed, seed, premise))
        for lane, (born, ends) in lanes.items():
            tx.add(LaneRow(run, lane, born, ends))
        for (lane, name), value in recurrence.start(premise).items():
            tx.add(PieceRow(run, lane, name, 0, BEFORE, value))
        for event in events:
            tx.add(event)
        for (lane, name), used in ((MODEL_PIECE, model), (SMALL_MODEL_PIECE, small_model)):
            if used is not None:
                tx.add(PieceRow(run, lane, name, 0, BEFORE, facts_of(store, used).as_dict()))
        tx.add(IntakeRow(run, 0, tx.pos))
    return run


def imported(run: str, lanes: Mapping[str, Any], records: Sequence[Record], wall: float) -> list[RecordRow]:
    """The events that put records into a run before its first step.

    Each stands in its `lane`; without one in that of its owner, if there is one, else in the first. Its id is (run, lane, -1, number)
    unless it has one; its `recorded` time `wall` (seconds) unless it has one.

    Raises:
        InputError: an unknown lane, an id twice, a library record, or no valid record (see `memory.added`).
    """
    out: dict[str, RecordRow] = {}
    first, digits = next(iter(lanes), ""), len(str(len(records)))
    for number, record in enumerate(records, 1):
        lane = record.lane or (record.owner if record.owner in lanes else first)
        ident = record.id or f"{run}/{lane}/{BEFORE}/{number:0{digits}}"
        wrong = (
            f"its lane {lane!r} is not one of the run's" if lane not in lanes
            else "another one has this id" if ident in out
            else "it belongs to the whole library" if record.reach != "run"
            else ""
        )  # fmt: skip
        if wrong:
            raise InputError(f"Memory {ident} cannot be brought into run {run}: {wrong}.", "Correct it before the run is made.")
        out[ident] = added(
            replace(record, id=ident, run=run, lane=lane, time=BEFORE, by="import", recorded=record.recorded or wall, pos=0, added=0)
        )
    return list(out.values())


def _keep(store: Store, run: str, texts: Iterable[str]) -> None:
    """Write source texts in batches, each text once."""
    known: set[str] = set()
    batch: list[TextRow] = []
    size = 0
    for text in texts:
        name = text_hash(text)
        if name not in known:
            known.add(name)
            batch.append(TextRow(run, name, text))
            size += len(text)
        if size >= _AT_ONCE or len(batch) >= _MANY:
            _write(store, run, batch)
            batch, size = [], 0
    _write(store, run, batch)


def _write(store: Store, run: str, batch: Sequence[TextRow]) -> None:
    if batch:
        with store.write(run, "texts") as tx:
            for row in batch:
                tx.add(row)


def fork(store: Store, parent: str, cut: int, *, title: str = "", run: str | None = None, model_seed: str | None = None) -> str:
    """A pointer: (parent, cut in logical time, pin in the journal). Copies nothing. Its model seed is its own.

    Raises:
        NotFound: no such parent.
        InputError: a cut before the beginning.
    """
    row = store.run(parent)
    line = store.line(row.id)
    last = store.steps(line, newest_first=True, limit=1)
    most = last[0].time + 1 if last else max(0, line[1].cut if len(line) > 1 else 0)
    if not 0 <= cut <= most:
        raise InputError(
            f"Run {row.id} can be forked at a step from 0 to {most}, not at {cut}.", f"See its steps with `fabula runs show {row.id}`."
        )
    run = run or os.urandom(6).hex()
    with store.write(run, "fork") as tx:
        pin = tx.pos - 1
        tx.add(
            replace(
                row, id=run, title=title or row.title, parent=row.id, cut=cut, pin=pin, model_seed=model_seed or os.urandom(8).hex(), pos=0
            )
        )
        tx.add(IntakeRow(run, cut, tx.pos))
    return run


def facts_of(store: Store, model: Model) -> ModelFacts:
    """A model's facts, with the token ratio that earlier runs learnt of it."""
    learnt = store.rows(FactRow, name=f"token_ratio:{model.name}", newest_first=True, limit=1)
    return ModelFacts.of(model, TokenRatio.from_dict(learnt[0].value).ratio if learnt else None)


def leave_input(store: Store, run: str, kind: str, payload: Any) -> int:
    """What a process that does not hold the run leaves for its holder (a person's edit, a direction). Returns its position."""
    row = store.run(run)
    with store.write(row.id, "inbox") as tx:
        tx.add(InboxRow(row.id, kind, payload, wall_clock.time()))
        return tx.pos
