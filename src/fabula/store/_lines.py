# ruff: noqa: S608 (SQL is put together from names of our own)
"""What a line of runs sees: the questions of DESIGN 3, each a constant SQL text over one reach at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from sys import intern
from typing import Any, cast

from fabula.errors import NotFound
from fabula.store._codec import listed, unpack_json
from fabula.store._database import Database
from fabula.store._rows import FAR, LIBRARY, UNREAD, By, CallRow, PieceRow, Reach, RecordRow, RunRow, StepRow
from fabula.store._schema import SHIFT, TABLES, high

_STEP = TABLES[StepRow]
_PIECE = TABLES[PieceRow]
_RECORD = TABLES[RecordRow]
_CALL = TABLES[CallRow]
_RUN = TABLES[RunRow]


def _live(table: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.target = {table}.n >> {SHIFT} AND w.n <= ?)"


def _steps_sql(order: str) -> str:
    where = f"run = ? AND time >= ? AND time < ? AND n <= ? AND {_live('steps')}"
    return f"{_STEP.select} WHERE {where} ORDER BY time {order}, step {order}, n {order} LIMIT ?"


_STEPS = {False: _steps_sql("ASC"), True: _steps_sql("DESC")}
_STEP_AT = f"{_STEP.select} WHERE run = ? AND time = ? AND step = ? AND n <= ? AND {_live('steps')} ORDER BY n DESC LIMIT 1"
_UNDONE = (
    "SELECT count(*) FROM steps WHERE run = ? AND time = ? AND step = ?"
    f" AND EXISTS (SELECT 1 FROM withdrawn w WHERE w.target = steps.n >> {SHIFT})"
)
_REACHED = (
    f"SELECT step, max(time), max(until), count(*) FROM steps WHERE run = ? AND time < ? AND n <= ? AND {_live('steps')} GROUP BY step"
)
_PIECES = f"{_PIECE.select} WHERE run = ? AND n > ? AND n <= ? AND time < ? AND {_live('pieces')} ORDER BY n"
_SHORT_PIECES = _PIECES.replace('"value"', """CASE WHEN typeof("value") = 'text' AND length("value") <= ? THEN "value" END""")
_VERDICT = (
    f"{_CALL.select} WHERE run = ? AND time = ? AND step = ? AND purpose = ? AND part = ? AND sample = ? AND attempt = ?"
    " AND fingerprint = ? AND status NOT IN ('asked', 'partial', 'broken') AND n <= ? ORDER BY n DESC LIMIT 1"
)
_PURE = f"{_CALL.select} WHERE fingerprint = ? AND pure = 1 ORDER BY n LIMIT 1"
_RAISED = "SELECT base FROM raised WHERE run = ? AND time = ? AND step = ? AND purpose = ? AND n <= ? ORDER BY n DESC LIMIT 1"
_OWN = f"{_RECORD.select} WHERE run = ? AND n > ? AND n <= ? AND time < ? AND {_live('records')} ORDER BY n"
_OWN_LANES = _OWN.replace(" ORDER BY", " AND lane IN (SELECT value FROM json_each(?)) ORDER BY")
_LIBRARY = f"{_RECORD.select} WHERE reach = 'library' AND about = ? AND n > ? AND n <= ? AND {_live('records')} ORDER BY n"


def run_row(database: Database, run: str) -> RunRow:
    """A run by its id or by the beginning of it. Raises NotFound."""
    found = database.one(f"{_RUN.select} WHERE id = ?", (run,))
    if found is None and len(run) >= 3:
        near = database.all(f"{_RUN.select} WHERE id >= ? AND id < ? ORDER BY id LIMIT 4", (run, run + "\U0010ffff"))
        if len(near) > 1:
            names = ", ".join(row[1] for row in near[:3]) + (" …" if len(near) > 3 else "")
            raise NotFound(f"{run!r} is the beginning of several runs: {names}.", "Give more of the id; `fabula runs list` shows them.")
        found = near[0] if near else None
    if found is None:
        raise NotFound(f"There is no run {run!r} in {database.place}.", "List the runs with `fabula runs list`.")
    row: RunRow = _RUN.decoded(found)
    return row


def line(database: Database, run: str) -> list[Reach]:
    """The run and its ancestors, nearest first."""
    if run == LIBRARY:
        return [Reach(LIBRARY)]
    reach = Reach(run_row(database, run).id)
    out = []
    while True:
        out.append(reach)
        found = database.one("SELECT parent, cut, pin FROM runs WHERE id = ?", (reach.run,))
        if found is None:
            raise NotFound(f"The run {reach.run!r}, from which {run!r} was forked, is missing in {database.place}.", "Run `fabula doctor`.")
        parent, cut, pin = found
        if parent is None:
            return out
        reach = Reach(parent, min(cut, reach.cut), min(pin, reach.pin))


def steps(database: Database, reaches: Sequence[Reach], start: int, end: int, newest_first: bool, limit: int | None) -> list[StepRow]:
    """Live steps in the run's order."""
    rows: list[tuple[Any, ...]] = []
    for reach in reaches:
        pin = high(reach.pin)
        rows += database.all(
            _STEPS[newest_first], (reach.run, start, min(end, reach.cut), pin, pin, -1 if limit is None else max(limit, 0))
        )
    if len(reaches) > 1:
        rows.sort(key=lambda row: (row[3], row[2], row[0]), reverse=newest_first)
    return [_STEP.decoded(row) for row in rows[: None if limit is None else max(limit, 0)]]


def step_at(database: Database, reaches: Sequence[Reach], step: str, time: int) -> StepRow | None:
    """The live step of these lanes that begins at this time."""
    for reach in reaches:
        if time < reach.cut:
            pin = high(reach.pin)
            found = database.one(_STEP_AT, (reach.run, time, step, pin, pin))
            if found is not None:
                row: StepRow = _STEP.decoded(found)
                return row
    return None


def undone(database: Database, run: str, step: str, time: int) -> int:
    """How many takes were withdrawn."""
    found = database.one(_UNDONE, (run, time, step))
    return int(found[0]) if found else 0


def reached(database: Database, reaches: Sequence[Reach]) -> dict[str, tuple[int, int, int]]:
    """Of every step the greatest time and end, and the number of its rows."""
    out: dict[str, tuple[int, int, int]] = {}
    for reach in reaches:
        pin = high(reach.pin)
        for step, time, until, count in database.all(_REACHED, (reach.run, reach.cut, pin, pin)):
            before = out.get(step, (time, until, 0))
            out[step] = max(time, before[0]), max(until, before[1]), count + before[2]
    return out


def pieces(database: Database, reaches: Sequence[Reach], after: int, most: int | None) -> list[PieceRow]:
    """Live versions, by (lane, name, version), then ancestors first, then by position."""
    out: list[tuple[str, str, int, int, int, PieceRow]] = []
    for depth, reach in enumerate(reaches):
        pin = high(reach.pin)
        bounds = (reach.run, high(after), pin, reach.cut, pin)
        found = database.stream(_PIECES, bounds) if most is None else database.stream(_SHORT_PIECES, (most, *bounds))
        for n, run, lane, name, version, time, packed, by in found:
            value = UNREAD if packed is None else unpack_json(packed)
            row = PieceRow(intern(run), intern(lane), intern(name), version, time, value, cast("By", intern(by)), n >> SHIFT)
            out.append((row.lane, row.name, row.version, -depth, n, row))
    out.sort(key=lambda item: item[:5])
    return [item[5] for item in out]


def verdict(database: Database, reaches: Sequence[Reach], address: Sequence[Any], fingerprint: str) -> tuple[Any, ...] | None:
    """The columns of the verdict; `address` is (time, step, purpose, part, sample, attempt)."""
    for reach in reaches:
        found = database.one(_VERDICT, (reach.run, *address, fingerprint, high(reach.pin)))
        if found is not None:
            return found
    return None


def pure(database: Database, fingerprint: str) -> tuple[Any, ...] | None:
    """The columns of the earliest pure answer."""
    return database.one(_PURE, (fingerprint,))


def raised(database: Database, reaches: Sequence[Reach], step: str, time: int, purpose: str) -> int:
    """The sample from which a purpose counts."""
    for reach in reaches:
        found = database.one(_RAISED, (reach.run, time, step, purpose, high(reach.pin)))
        if found is not None:
            return int(found[0])
    return 0


def records(
    database: Database,
    reaches: Sequence[Reach],
    lanes: Sequence[str] | None,
    before: int,
    read_at: int,
    entities: Sequence[str],
    after: int,
) -> list[RecordRow]:
    """What a step sees, by position.

    A model's library record on the line itself counts by logical time like everything of the line, so a look back at an
    earlier time (`before`) does not show what a later step wrote.
    """
    found: dict[int, tuple[Any, ...]] = {}
    bounds = {reach.run: (min(before, reach.cut), high(reach.pin)) for reach in reaches}
    for run, (cut, pin) in bounds.items():
        values = (run, high(after), pin, cut, pin)
        rows = database.all(_OWN, values) if lanes is None else database.all(_OWN_LANES, (*values, listed(lanes)))
        found.update((row[0], row) for row in rows)
    far = high(read_at)
    for entity in dict.fromkeys(entities):
        for row in database.all(_LIBRARY, (entity, high(after), far, far)):
            n, run, time, by = row[0], row[2], row[4], row[9]
            cut, pin = bounds.get(run, (FAR, far))
            if by != "model" or (time < cut and n <= pin):
                found[n] = row
    return [_RECORD.decoded(found[n]) for n in sorted(found)]


# -- full text -------------------------------------------------------------------------------------------------------------

EVERYWHERE = "*:"
_CHUNK = 200
_COUNTED = "SELECT rowid AS r FROM find WHERE find MATCH ?"


@lru_cache(maxsize=1024)
def scope(run: str) -> str:
    """What stands before a run's terms in the index."""
    return sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:10] + ":"


_CONTROLS = dict.fromkeys([*range(32), 127])
_LONGEST = 1000
"""Characters of a term that count (FTS5 cuts at 32,768 bytes)."""


def _words(terms: str) -> list[str]:
    """The distinct terms as the index holds them: without capitals, control characters and halves of characters."""
    words = terms.lower().encode("utf-8", "replace").decode().split()
    return list(dict.fromkeys(word for raw in words if (word := raw.translate(_CONTROLS)[:_LONGEST])))


def tokens(run: str, terms: str) -> str:
    """What the index holds of a record: each of its terms once for the run and once for all runs."""
    own = scope(run)
    words = _words(terms)
    return " ".join([own + word for word in words] + [EVERYWHERE + word for word in words])


def search(database: Database, terms: Iterable[str], runs: Sequence[str] | None, limit: int) -> list[tuple[str, int]]:
    """(record id, position) of the events that hold most of the terms; of equal ones the latest first."""
    words = _words(" ".join(terms))
    if not words or limit <= 0 or (runs is not None and not runs):
        return []
    counts: dict[int, int] = {}
    scopes = [EVERYWHERE] if runs is None else [scope(run) for run in dict.fromkeys(runs)]
    for own in scopes:
        asked = ['"' + own + word.replace('"', '""') + '"' for word in words]
        for part in range(0, len(asked), _CHUNK):
            few = asked[part : part + _CHUNK]
            union = " UNION ALL ".join([_COUNTED] * len(few))
            last = limit if len(asked) <= _CHUNK else -1
            for n, count in database.all(
                f"SELECT r, count(*) AS c FROM ({union}) GROUP BY r ORDER BY c DESC, r DESC LIMIT ?", (*few, last)
            ):
                counts[n] = counts.get(n, 0) + count
    best = sorted(counts, key=lambda n: (-counts[n], -n))[:limit]
    ids = dict(_ids(database, best))
    return [(ids[n], n >> SHIFT) for n in best if n in ids]


def _ids(database: Database, keys: Sequence[int]) -> Iterator[tuple[int, str]]:
    for row in database.all("SELECT n, id FROM records WHERE n IN (SELECT value FROM json_each(?))", (listed(keys),)):
        yield row[0], row[1]
