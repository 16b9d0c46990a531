"""Finding records for the command line, and erasing one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fabula.errors import NotFound

if TYPE_CHECKING:
    from fabula.memory import Record
    from fabula.runs import Run
    from fabula.store import RecordRow, Store

_OPEN = ("active", "pending", "unresolved")


def record_dict(record: Record) -> dict[str, Any]:
    """A record as `--json` prints it (DESIGN 8)."""
    return {
        "id": record.id, "status": record.status, "subject": record.subject, "attribute": record.attribute, "value": record.value,
        "scope": record.scope.level, "text": record.text, "kind": record.kind, "by": record.by, "source": record.source,
        "quote": record.quote, "evidence": list(record.evidence), "step": record.time, "run": record.run,
    }  # fmt: skip


def listed(store: Store, run: str | None, find: str | None, every: bool) -> list[Record]:
    """The records of a run as its next step could see them, or the library's; only those with some words where asked for."""
    from fabula.memory import search
    from fabula.runs import records_of, view_of
    from fabula.ways import open_run

    if run is not None:
        seen = open_run(store, run)
        return search(store, find, view=view_of(seen), every=every) if find is not None else records_of(seen, every=every)
    if find is not None:
        return search(store, find, every=every)
    return [r for r in library_records(store) if every or r.status in _OPEN]


def library_records(store: Store) -> list[Record]:
    """Records that the library shares between runs, whatever their status."""
    from fabula.memory import fold
    from fabula.store import RecordRow

    return sorted(fold(store.rows(RecordRow, reach="library")).values(), key=lambda record: record.pos)


def found(store: Store, ident: str, run: str | None) -> tuple[Run | None, Record]:
    """A record by its id, and the run that sees it (None = the library).

    Raises:
        NotFound: no such record, or the ending of an id that several have.
    """
    from fabula.runs import find_record, one_of
    from fabula.store import LIBRARY, RecordRow
    from fabula.ways import open_run

    if run is not None:
        seen = open_run(store, run)
        return seen, find_record(seen, ident)
    rows = store.rows(RecordRow, id=ident, limit=1)
    if not rows or rows[0].reach == "library" or rows[0].run == LIBRARY:
        try:
            return None, one_of(library_records(store), ident)
        except NotFound:
            if rows:
                raise
            raise NotFound(
                f"There is no memory {ident!r}.", "List the memories with `fabula memory list RUN`; an id's ending needs --run RUN."
            ) from None
    seen = open_run(store, rows[0].run)
    return seen, find_record(seen, ident)


def rows_of(store: Store, seen: Run | None) -> list[RecordRow]:
    """The events that a run sees, or the library's."""
    from fabula.runs import view_of
    from fabula.store import RecordRow

    if seen is None:
        return store.rows(RecordRow, reach="library")
    view = view_of(seen)
    return store.records(view.line, read_at=view.read_at, entities=view.entities)


def texts_of(store: Store, seen: Run | None, ident: str) -> list[str]:
    """Every text that a record ever had, the latest last."""
    data = [row.data if row.event == "add" else row.data.get("changes", {}) for row in rows_of(store, seen) if row.id == ident]
    return [text for text in dict.fromkeys(str(told.get("text", "")) for told in data) if text]


def uses_of(store: Store, ident: str) -> dict[str, list[int]]:
    """Run → the steps that recalled a record."""
    from fabula.store import RecallRow

    uses: dict[str, set[int]] = defaultdict(set)
    for row in store.rows(RecallRow):
        if any(memo["id"] == ident for memo in row.found["found"]):
            uses[row.run].add(row.time)
    return {run: sorted(steps) for run, steps in uses.items()}


def erase_record(store: Store, seen: Run | None, record: Record, texts: list[str]) -> Mapping[str, int]:
    """Take a record out of recall and blank its words wherever they stand. Returns what `Store.erase` counts.

    Raises:
        Held: another process works on the run.
    """
    from fabula.runs import act, act_on_library
    from fabula.ways import open_run

    if record.status in _OPEN:
        why = {"id": record.id, "why": "erased by a person"}
        if seen is None or record.reach == "library":
            act_on_library(store, "retract", record, why)
        else:
            held = open_run(store, seen.id, hold=True)
            try:
                act(held, "retract", why)
            finally:
                held.close()
    return store.erase(texts, "erased by a person")
