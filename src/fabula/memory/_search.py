"""Finding records by words, for a person who looks through the memory; no embedder, no hot scope."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from fabula.errors import InputError
from fabula.memory._events import fold
from fabula.memory._record import Record, View
from fabula.memory._wording import embedded_text, terms_of
from fabula.store import Among, Reach, RecordRow, Store, WithdrawnRow
from fabula.text import lexical_terms

_SPAN = 8
"""The index finds events, also of states that are past; so it is asked for so many times as many."""


def search(store: Store, text: str, *, view: View | None = None, limit: int = 50, every: bool = False) -> list[Record]:
    """Records whose current text has the words of `text`, most of them first, then the latest.

    Words are compared as search terms are: inflected names, Chinese words of two characters and more inside a text. A single
    Chinese character, or signs that make no term, are looked for as they stand, by reading all records.

    Args:
        store: the library.
        text: words or names.
        view: what may be found; None = the whole library.
        limit: most records.
        every: also superseded, ended and retracted ones.

    Raises:
        InputError: nothing to look for.
    """
    wanted = text.strip()
    if not wanted:
        raise InputError("There is nothing to look for.", "Give a word or a name.")
    terms = set(lexical_terms(wanted))
    literally = not terms or any(len(term) == 1 and unicodedata.category(term) == "Lo" for term in terms)
    scored = []
    for record in fold(_every_event(store, view) if literally else _events_with(store, terms, view, limit * _SPAN)).values():
        if literally:
            count = int(wanted.casefold() in embedded_text(record).casefold())
        else:
            count = len(terms.intersection(terms_of(record)))
        if count and (every or record.status in ("active", "pending", "unresolved")):
            scored.append((-count, -record.pos, record.id, record))
    return [record for *_, record in sorted(scored, key=lambda one: one[:3])][:limit]


def _events_with(store: Store, terms: Iterable[str], view: View | None, limit: int) -> list[RecordRow]:
    """All live events of the records that the index finds."""
    runs = None if view is None or view.entities else [reach.run for reach in view.line]
    ids = tuple(dict.fromkeys(ident for ident, _ in store.search(sorted(terms), runs=runs, limit=limit)))
    rows = store.rows(RecordRow, id=Among(ids)) if ids else []
    return _live(store, [row for row in rows if view is None or seen(view, row)], view)


def _every_event(store: Store, view: View | None) -> list[RecordRow]:
    if view is None:
        return _live(store, store.rows(RecordRow), None)
    return store.records(view.line, lanes=view.lanes, before=view.time, read_at=view.read_at, entities=view.entities)


def _live(store: Store, rows: list[RecordRow], view: View | None) -> list[RecordRow]:
    pins = {} if view is None else {reach.run: reach.pin for reach in view.line}
    gone = store.rows(WithdrawnRow, target=Among(tuple({row.pos for row in rows}))) if rows else []
    targets = {row.target for row in gone if row.pos <= pins.get(row.run, row.pos)}
    return [row for row in rows if row.pos not in targets]


def ways(line: Iterable[Reach], lanes: Iterable[str] | None, entities: Iterable[str], row: RecordRow) -> tuple[bool, bool, bool]:
    """How an event could be seen, its moment apart: as one of the line's lanes; as one of the library about a bound entity; and
    whether the latter only from its logical time on, being what a model wrote on this very line (DESIGN 4).
    """
    reach = next((reach for reach in line if reach.run == row.run), None)
    inside = reach is not None and row.time < reach.cut and row.pos <= reach.pin
    own = inside and (lanes is None or row.lane in lanes)
    timed = reach is not None and row.by == "model"
    return own, row.reach == "library" and row.about in entities and (inside or not timed), timed


def seen(view: View, row: RecordRow) -> bool:
    """Whether a view sees an event, unless it was withdrawn; as `Store.records` has it."""
    own, about, timed = ways(view.line, view.lanes, view.entities, row)
    past = row.time < view.time
    return (own and past) or (about and row.pos <= view.read_at and (past or not timed))
