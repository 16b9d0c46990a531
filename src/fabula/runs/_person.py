"""What a person does to the memory of a run: add, edit, retract, restore (SPEC M4). In force from the run's frontier on, as all edits.

A run that another process holds gets the act in its inbox, and its holder takes it in between steps.
"""

from __future__ import annotations

import time as wall_clock
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError, NotFound
from fabula.memory import Record, View, added, edited, fold, restored, retracted
from fabula.store import FAR, LIBRARY, RecordRow, Store

if TYPE_CHECKING:
    from fabula.runs._run import Run

ACTS = ("add", "edit", "retract", "restore")


def view_of(run: Run) -> View:
    """All that the run's next step could see."""
    return View(tuple(run.line), None, FAR, FAR, run.recurrence.entities(run))


def records_of(run: Run, *, every: bool = False) -> list[Record]:
    """The current records that the run sees, in order of logical time; `every`: also those that no recall finds."""
    view = view_of(run)
    rows = run.store.records(view.line, read_at=view.read_at, entities=view.entities)
    found = [record for record in fold(rows).values() if every or record.status in ("active", "pending", "unresolved")]
    return sorted(found, key=lambda record: (record.time, record.lane, record.pos, record.id))


def find_record(run: Run, ident: str) -> Record:
    """A record that the run sees, by its id or by an ending of it that only one has. Raises NotFound."""
    return one_of(records_of(run, every=True), ident)


def one_of(records: list[Record], ident: str) -> Record:
    """The record of this id, or the only one whose id ends so. Raises NotFound."""
    found = [record for record in records if record.id == ident] or [record for record in records if record.id.endswith(f"/{ident}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{ident!r} is the end of {len(found)} memories' ids.", f"Give more of it, e.g. {found[0].id}.")
    raise NotFound(f"There is no memory {ident!r} here.", "List the memories with `fabula memory list`.")


def act(run: Run, do: str, payload: Mapping[str, Any]) -> int:
    """Do one of `ACTS` on a run that is held. Returns the edit's position.

    Args:
        run: held by this process.
        do: add, edit, retract or restore.
        payload: `text` (add; edit: with other fields of `Record`), `id` (all but add), `why` (retract, restore).

    Raises:
        InputError, NotFound, NotPossible.
    """
    if do not in ACTS:
        raise InputError(f"A memory cannot be {do!r}.", f"It is one of {', '.join(ACTS)}.")
    lane = next(iter(run.lanes))
    wall = wall_clock.time()
    record = None if do == "add" else find_record(run, str(payload["id"]))
    if record is not None and record.reach == "library":
        return act_on_library(run.store, do, record, payload)

    def events(time: int) -> list[RecordRow]:
        if record is None:
            return [added(_new(run.id, lane, time, run.store.position() + 1, str(payload["text"]), wall))]
        return [_event(do, record, payload, time, run.id, wall)]

    pos = run.edit({}, records=events, kind="memory")
    if run.memory is not None:
        run.memory.forget()
    return pos


def act_on_library(store: Store, do: str, record: Record, payload: Mapping[str, Any]) -> int:
    """Edit, retract or restore a library record, outside any run. Returns the position."""
    with store.write(LIBRARY, "memory") as tx:
        tx.add(_event(do, record, payload, record.time, LIBRARY, wall_clock.time()))
        return tx.pos


def _new(run: str, lane: str, time: int, pos: int, text: str, wall: float) -> Record:
    if not text.strip():
        raise InputError("The memory has no text.", "Say in words what is to be remembered.")
    return Record(
        id=f"{run}/{lane}/{time}/person-{pos}", kind="observation", text=text.strip(), recorded=wall, happened=float(time), source="person",
        run=run, lane=lane, time=time, by="person",
    )  # fmt: skip


def _event(do: str, record: Record, payload: Mapping[str, Any], time: int, run: str, wall: float) -> RecordRow:
    if do == "edit":
        changes = {name: value for name, value in payload.items() if name != "id"}
        if changes.get("text") == record.text and len(changes) == 1:
            raise InputError(f"Memory {record.id} says that already.", "Nothing was changed.")
        return edited(record, by="person", time=time, run=run, recorded=wall, **changes)
    if do == "retract":
        return retracted(record, str(payload.get("why", "")), by="person", time=time, run=run, recorded=wall)
    return restored(record, str(payload.get("why", "")), by="person", time=time, run=run, recorded=wall)
