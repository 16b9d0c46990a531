"""Looking at runs without opening them, and at what a person did to one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.runs._facts import MODEL_PIECE
from fabula.store import Among, Between, Holder, LogRow, PieceRow, Reach, RecordRow, RunRow, StepRow, Store, WithdrawnRow


@dataclass(frozen=True, slots=True)
class Overview:
    """A run at a glance."""

    row: RunRow
    steps: int
    """Live steps of its line."""
    changed: float
    """Wall time (seconds) of the latest thing that was journaled for it."""
    holder: Holder | None
    model: str
    """The model that it was last opened with; empty = none."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One act of a person on a run."""

    pos: int
    """Its position: what `undo_edit` takes."""
    wall: float
    kind: str
    """edit, undo, model …"""
    pieces: Mapping[str, Any]
    """`lane/name` → new value."""
    records: Sequence[RecordRow]
    version: int
    """In force from this logical time on."""


def overview(store: Store, run: str) -> Overview:
    """A run at a glance, for lists. Raises NotFound."""
    row = store.run(run)
    line = store.line(row.id)
    log = store.rows(LogRow, run=row.id, newest_first=True, limit=1)
    steps = sum(count for _, _, count in store.reached(line).values())
    return Overview(row, steps, log[0].wall if log else 0.0, store.holder(row.id), last_model(store, row.id))


def last_model(store: Store, run: str) -> str:
    """The name of the model that a run was last opened with; empty = none."""
    facts = latest_piece(store, store.line(run), *MODEL_PIECE)
    return str(facts.get("name", "")) if isinstance(facts, dict) else ""


def latest_piece(store: Store, line: Sequence[Reach], lane: str, name: str, default: Any = None) -> Any:
    """The latest live version of one piece, without loading the others."""
    for reach in line:
        limit = 16
        while True:
            rows = store.rows(PieceRow, run=reach.run, lane=lane, name=name, pos=Between(0, reach.pin), newest_first=True, limit=limit)
            seen = [row for row in rows if row.time < reach.cut]
            gone = withdrawn(store, seen, reach.pin)
            live = [row for row in seen if row.pos not in gone]
            if live:
                return max(live, key=lambda row: (row.version, row.pos)).value
            if len(rows) < limit:
                break
            limit *= 8
    return default


def edits(store: Store, run: str) -> list[Edit]:
    """What a person did to this very run, in order; what was undone is left out."""
    run = store.run(run).id
    pieces: dict[int, list[PieceRow]] = defaultdict(list)
    for piece in store.rows(PieceRow, run=run, by="person"):
        pieces[piece.pos].append(piece)
    events: dict[int, list[RecordRow]] = defaultdict(list)
    for event in store.rows(RecordRow, run=run, by="person"):
        events[event.pos].append(event)
    places = sorted({*pieces, *events})
    log = {row.pos: row for row in store.rows(LogRow, run=run, pos=Among(tuple(places)))} if places else {}
    gone = {row.target for row in store.rows(WithdrawnRow, run=run)}
    out = []
    for pos in places:
        if pos in gone or pos not in log:
            continue
        changed = {f"{row.lane}/{row.name}": row.value for row in pieces[pos]}
        version = min([*(row.version for row in pieces[pos]), *(row.time + 1 for row in events[pos])])
        out.append(Edit(pos, log[pos].wall, log[pos].kind, changed, events[pos], version))
    return out


def withdrawn(store: Store, rows: Sequence[PieceRow | RecordRow | StepRow], pin: int) -> set[int]:
    """Positions among these rows that were withdrawn up to a position."""
    if not rows:
        return set()
    return {row.target for row in store.rows(WithdrawnRow, target=Among(tuple({row.pos for row in rows}))) if row.pos <= pin}
