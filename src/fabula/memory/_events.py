"""A record's events and what they add up to (DESIGN 4). Pure functions: no store, no clock.

A record is never overwritten. `added`, `edited`, `retracted` … make the event; whoever commits writes it; `fold` makes the current
records of the events that a view sees. Three rules:

- **Order.** Events of run records count in the order of logical time; at one time a person's last; else by lane and position.
  Events of library records count by position, since times of different runs cannot be compared.
- **A person's word stands** (SPEC M8). Once a person has added, edited, retracted or restored a record, what a model or an import says
  of it later changes nothing. It is kept, and `history` says that it was not applied.
- **An event belongs to the `add` that it was made for.** Where that is withdrawn (a passage is made again under the same id), a later
  edit of the old record does not spill over to the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from sys import intern
from typing import Any, get_args

from fabula.errors import InputError
from fabula.memory._record import Kind, Level, Realm, Record, Scope, Status
from fabula.memory._wording import embedded_text, terms_of, text_hash
from fabula.store import RecordRow

EVERYTHING = "everything"
"""The library entity under which records of scope `everything` stand."""

_COLUMNS = frozenset({"id", "run", "lane", "time", "reach", "about", "by", "pos", "added"})
_LASTING = _COLUMNS | {"recorded", "status", "kind"}
"""What an edit cannot change."""
_NAMES = tuple(f.name for f in fields(Record))
_TUPLES = frozenset({"evidence", "audience", "presupposes", "entities"})
_SHARED = frozenset({"kind", "owner", "source", "status", "realm", "subject", "attribute", "episode"})
_CONVERTED = _TUPLES | _SHARED | {"scope"}
_KEPT = tuple(name for name in _NAMES if name not in _COLUMNS)
_BY = ("model", "person", "import")


# -- making events ---------------------------------------------------------------------------------------------------------------


def added(record: Record) -> RecordRow:
    """The event that adds a record, with its search terms and the hash of what is to be embedded.

    Raises:
        InputError: an empty id or text, an unknown kind, status, realm, scope or author, an importance outside 1 .. 10.
    """
    check(record)
    data = {name: _plain(getattr(record, name)) for name in _NAMES if name not in _COLUMNS}
    about = "" if record.reach == "run" else record.about or _about(record)
    return _row(replace(record, about=about), record, "add", data)


def edited(
    record: Record, *, by: str, time: int, run: str = "", lane: str | None = None, recorded: float = 0.0, **changes: Any
) -> RecordRow:
    """The event that changes a record.

    Args:
        record: as it is now; its id, reach and entity stay.
        by: `model`, `person` or `import`.
        time: logical time of the event. A person's edit that is to count from time t on has time t - 1.
        run: where the event is journaled, e.g. a fork; empty = the record's own run.
        lane: None = the record's own lane.
        recorded: wall time, seconds.
        changes: new values of fields of `Record`.

    Raises:
        InputError: nothing is changed, the field is unknown or lasting, or the record would not be valid.
    """
    wrong = sorted(set(changes) - set(_NAMES)) or sorted(set(changes) & _LASTING)
    if wrong or not changes:
        what = f"it has no field that could be changed called {', '.join(wrong)}" if wrong else "nothing is to be changed"
        raise InputError(
            f"Record {record.id} cannot be edited: {what}.", f"These can be changed: {', '.join(n for n in _NAMES if n not in _LASTING)}."
        )
    whole = _changed(record, changes)
    check(whole)
    data = {"of": record.added, "changes": {name: _plain(getattr(whole, name)) for name in sorted(changes)}, "recorded": recorded}
    return _row(whole, replace(record, by=by, time=time, run=run or record.run, lane=record.lane if lane is None else lane), "edit", data)


def retracted(record: Record, why: str, *, by: str, time: int, run: str = "", lane: str | None = None, recorded: float = 0.0) -> RecordRow:
    """The event that takes a record out of recall; `restored` undoes it. Arguments as for `edited`.

    Raises:
        InputError: no reason, or an unknown author.
    """
    if not why.strip():
        raise InputError(f"Record {record.id} cannot be retracted without a reason.", "Say why, in a few words.")
    return _status(record, "retract", {"why": why}, by, time, run, lane, recorded)


def restored(
    record: Record, why: str = "", *, by: str, time: int, run: str = "", lane: str | None = None, recorded: float = 0.0
) -> RecordRow:
    """The event that makes a retracted, superseded or ended record active again. Arguments as for `edited`.

    Raises:
        InputError: the record is active, or an unknown author.
    """
    if record.status == "active":
        raise InputError(f"Record {record.id} is active: there is nothing to restore.")
    return _status(record, "restore", {"why": why}, by, time, run, lane, recorded)


def _status(
    record: Record, event: str, data: Mapping[str, Any], by: str, time: int, run: str, lane: str | None, recorded: float
) -> RecordRow:
    place = replace(record, by=by, time=time, run=run or record.run, lane=record.lane if lane is None else lane)
    return _row(None, place, event, {"of": record.added, **data, "recorded": recorded})


def _row(whole: Record | None, place: Record, event: str, data: Mapping[str, Any]) -> RecordRow:
    """`whole` is the record after the event where its words matter; `place` says where the event stands."""
    if place.by not in _BY:
        raise InputError(f"A memory's author is one of {', '.join(_BY)}, not {place.by!r}.")
    return RecordRow(
        place.id, place.run, place.lane, place.time, event, data, place.reach, (whole or place).about, place.by,
        " ".join(terms_of(whole)) if whole else "", text_hash(embedded_text(whole)) if whole else "",
    )  # fmt: skip


def _about(record: Record) -> str:
    if record.scope.level == "everything":
        return record.subject or EVERYTHING
    about = record.scope.name or record.subject or record.owner
    if not about:
        raise InputError(
            f"Library record {record.id} is about nobody, so no run could find it.", "Give its scope's name, its subject or its owner."
        )
    return about


def check(record: Record) -> None:
    """Raises InputError where a record is not one (see `added`)."""
    known: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "kind": (record.kind, get_args(Kind)),
        "status": (record.status, get_args(Status)),
        "realm": (record.realm, get_args(Realm)),
        "scope": (record.scope.level, get_args(Level)),
        "reach": (record.reach, ("run", "library")),
    }
    for name, (value, allowed) in known.items():
        if value not in allowed:
            raise InputError(f"A memory's {name} cannot be {value!r}.", f"It is one of: {', '.join(a for a in allowed if a)}.")
    if not record.id.strip() or record.id != record.id.strip():
        raise InputError(f"{record.id!r} is no id for a memory: it is empty, or has blanks around it.")
    if not record.text.strip():
        raise InputError(f"Memory {record.id} has no text.", "Say in words what is to be remembered; to take a memory away, retract it.")
    if record.importance is not None and not 1 <= record.importance <= 10:
        raise InputError(f"The importance of memory {record.id} is {record.importance:g}; it goes from 1 to 10.")


# -- folding -----------------------------------------------------------------------------------------------------------------------


def fold(rows: Iterable[RecordRow]) -> dict[str, Record]:
    """Current records by id, whatever their status, in the order of their `add`s.

    Args:
        rows: the events that a view sees, as `Store.records` returns them.
    """
    out: dict[str, Record] = {}
    for ident, events in by_id(rows).items():
        state = None
        for row in ordered(events):
            state = _next(state, row)
        if state is not None:
            out[ident] = state
    return out


def by_id(rows: Iterable[RecordRow]) -> dict[str, list[RecordRow]]:
    """Events grouped by record, each group in the order given."""
    groups: dict[str, list[RecordRow]] = {}
    for row in rows:
        groups.setdefault(row.id, []).append(row)
    return groups


def ordered(events: list[RecordRow]) -> list[RecordRow]:
    """Events of one record in the order in which they count; those of another reach than the record's own do not."""
    if len(events) == 1:
        return events
    reach = next((row.reach for row in events if row.event == "add"), "run")
    events = [row for row in events if row.reach == reach]
    return sorted(events, key=_by_time if reach == "run" else lambda row: row.pos)


def _by_time(row: RecordRow) -> tuple[int, bool, bool, str, int]:
    person = row.by == "person"
    return row.time, row.event != "add", person, "" if person else row.lane, row.pos


def states(events: list[RecordRow]) -> list[tuple[Record, RecordRow]]:
    """Every state of one record with the event that led to it, in order; an event that changes nothing has none."""
    out: list[tuple[Record, RecordRow]] = []
    state = None
    for row in ordered(events):
        after = _next(state, row)
        if after is not None and after is not state:
            out.append((after, row))
        state = after
    return out


def _next(state: Record | None, row: RecordRow) -> Record | None:
    """The record after an event; the same object where the event does not count."""
    if _refused(state, row):
        return state
    if row.event == "add" or state is None:
        return _from(row)
    return replace(_TO[row.event](state, row.data), by=row.by, pos=row.pos)


def _refused(state: Record | None, row: RecordRow) -> str:
    """Why an event does not count; empty = it does."""
    if row.event != "add" and row.event not in _TO:
        return f"this version does not know the event {row.event!r}"
    if state is None:
        return "" if row.event == "add" else "the memory that it changes is not there"
    if state.by == "person" and row.by != "person":
        return "a person's word stands"
    if row.event == "add":
        return ""
    of = row.data.get("of", 0)
    return "the memory was made anew since" if of and of != state.added else ""


def _from(row: RecordRow) -> Record:
    given = row.data
    data = {name: given[name] for name in _KEPT if name in given}
    for name in _CONVERTED.intersection(data):
        data[name] = _value(name, data[name])
    run, lane, by = intern(row.run), intern(row.lane), intern(row.by)
    return Record(id=row.id, run=run, lane=lane, time=row.time, reach=row.reach, about=row.about, by=by, pos=row.pos, added=row.pos, **data)


def _changed(state: Record, changes: Mapping[str, Any]) -> Record:
    return replace(state, **{name: _value(name, value) for name, value in changes.items()})


def _ended(state: Record, data: Mapping[str, Any]) -> Record:
    return replace(state, status="ended", valid_until=data.get("until", state.valid_until))


_TO: Mapping[str, Callable[[Record, Mapping[str, Any]], Record]] = {
    "edit": lambda state, data: _changed(state, data["changes"]),
    "retract": lambda state, _: replace(state, status="retracted"),
    "restore": lambda state, _: replace(state, status="active"),
    "supersede": lambda state, _: replace(state, status="superseded"),
    "end": _ended,
}


def _plain(value: Any) -> Any:
    if isinstance(value, Scope):
        return {"level": value.level, "name": value.name, "version": value.version}
    return list(value) if isinstance(value, tuple) else value


def _value(name: str, value: Any) -> Any:
    """A field's value from JSON. What many records share is kept once."""
    if name == "scope":
        return _scope(**value) if isinstance(value, Mapping) else value
    if name in _TUPLES:
        return tuple(value)
    return intern(value) if name in _SHARED else value


@lru_cache(maxsize=4_096)
def _scope(level: Level, name: str, version: str) -> Scope:
    return Scope(level, name, version)


# -- history -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a record's history."""

    event: str
    who: str
    """`a model`, `a person` or `an import`."""
    what: str
    """A sentence."""
    run: str
    time: int
    """Logical time."""
    recorded: float
    """Wall time, seconds since 1970; 0 = not noted."""
    pos: int
    applied: bool
    """False: the event changed nothing; `what` says why."""


def history(rows: Iterable[RecordRow], ident: str) -> list[Change]:
    """What happened to a record, in plain words, in the order in which the events count.

    Args:
        rows: events as `Store.records` returns them, of this record or of any.
        ident: the record's id.
    """
    out: list[Change] = []
    state = None
    for row in ordered([row for row in rows if row.id == ident]):
        refused = _refused(state, row)
        after = _next(state, row)
        what = _sentence(row, state) + (f" Not applied: {refused}." if refused else "")
        who = "an import" if row.by == "import" else f"a {row.by}"
        out.append(Change(row.event, who, what, row.run, row.time, float(row.data.get("recorded", 0.0)), row.pos, not refused))
        state = after
    return out


def _sentence(row: RecordRow, before: Record | None) -> str:
    why = str(row.data.get("why", ""))
    because = f": {why}" if why else ""
    if row.event == "add":
        source = row.data.get("source", "")
        return f"Remembered{f', from {source}' if source else ''}: “{row.data.get('text', '')}”"
    if row.event == "edit":
        parts = []
        for name, value in row.data["changes"].items():
            old = _plain(getattr(before, name)) if before is not None else None
            parts.append(f"{name.replace('_', ' ')} changed from {_said(old)} to {_said(value)}")
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."
    if row.event == "supersede":
        return f"Superseded by {row.data.get('to', 'a later memory')}{because}."
    if row.event == "end":
        until = row.data.get("until")
        return f"Ended{f' with {until}' if until else ''}{because}."
    known = {"retract": "Retracted", "restore": "Restored"}
    return f"{known.get(row.event, row.event)}{because}."


def _said(value: Any) -> str:
    if value is None or value in ("", [], ()):
        return "nothing"
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values() if part)
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return f"“{value}”" if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
