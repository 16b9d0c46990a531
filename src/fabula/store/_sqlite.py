# ruff: noqa: S608 (SQL is put together from names of our own)
"""A library in one SQLite file: WAL, `synchronous=FULL`, one writer at a time, readers never wait.

An open library belongs to one event loop: calls from other threads are possible (sqlite3 does not refuse them) but must not
overlap. A forked child must open it anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from fabula.errors import InputError, LibraryDamaged, NotFound, StoreError
from fabula.store import _lines
from fabula.store._codec import digest, listed, pack, pack_json, unpack, unpack_json
from fabula.store._database import Database
from fabula.store._locks import Locks
from fabula.store._opening import copy_to, open_database
from fabula.store._port import Among, Between, Condition, Fault, R
from fabula.store._rows import (
    FAR,
    LIBRARY,
    Address,
    CallRow,
    FactRow,
    Finding,
    Holder,
    PieceRow,
    Reach,
    RecordRow,
    Row,
    RunRow,
    StepRow,
    TextRow,
    VectorRow,
)
from fabula.store._schema import LAST, PER_POSITION, SHIFT, TABLES, Table, high

_CALLS = TABLES[CallRow]
_SOURCES = TABLES[TextRow]
_SUMS = ("prompt_tokens", "answer_tokens", "cached_tokens", "cost")
_TOTAL = (
    "INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(run) DO UPDATE SET prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
    " answer_tokens = answer_tokens + excluded.answer_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,"
    " cost = cost + excluded.cost, calls = calls + excluded.calls, refused = refused + excluded.refused"
)


_SOURCE = "SELECT body FROM sources LEFT JOIN texts ON texts.id = sources.text WHERE sources.hash = ? ORDER BY n DESC LIMIT 1"


class SQLiteTransaction:
    """An open write."""

    def __init__(self, database: Database, pos: int) -> None:
        self._database = database
        self._pos = pos
        self._next = (pos << SHIFT) + 1
        self.open = True
        self.count = 0
        """Rows besides vectors."""

    @property
    def pos(self) -> int:
        """The position of everything that is added."""
        return self._pos

    def add(self, row: Row) -> None:
        """Append a row."""
        if not self.open:
            raise StoreError("The write is over.", "This is a bug in Fabula or in your extension: add rows inside the `with` block.")
        n = self._next
        if n & PER_POSITION == PER_POSITION:
            raise InputError(f"More than {PER_POSITION - 1} rows in one write.", "Write them in several parts.")
        self.count += not isinstance(row, VectorRow)
        table = TABLES[type(row)]
        values = table.encoded(n, row)
        if isinstance(row, CallRow):
            values[_PROMPT] = self._prompt(row.prompt)
            values.append(int(row.status == "answered" and row.request.get("pure") is True))
            if row.status != "partial":
                self._count(row)
        elif isinstance(row, TextRow):
            values[_TEXT] = self._source(row)
        elif isinstance(row, RecordRow) and row.terms:
            self._database.do("INSERT INTO find(rowid, terms) VALUES (?, ?)", (n, _lines.tokens(row.run, row.terms)))
        self._next = n + self._database.do(table.insert, values)  # a vector that is there already takes no key

    def _prompt(self, prompt: tuple[tuple[str, str], ...]) -> str:
        if not prompt:
            return ""
        return cast("str", pack_json([[role, self._text(text)] for role, text in prompt]))

    def _source(self, row: TextRow) -> int:
        name = digest(row.text)
        if row.hash != name.hex():
            raise InputError(f"A source text is called {row.hash!r}, but its content says {name.hex()}.", "Name it by `text_hash`.")
        return self._text(row.text, name)

    def _text(self, text: str, name: bytes | None = None) -> int:
        name = digest(text) if name is None else name
        found = self._database.one("SELECT id FROM texts WHERE hash = ?", (name,))
        if found is None:
            found = self._database.one("INSERT INTO texts(hash, body) VALUES (?, ?) RETURNING id", (name, pack(text)))
        assert found is not None
        return int(found[0])

    def _count(self, row: CallRow) -> None:
        """Keep the run's totals: an `asked` row counts with its worst case until its verdict comes."""
        sums = [float(row.usage.get(name) or 0) for name in _SUMS]
        if row.status != "asked" and row.asked:
            settled = self._database.one(
                "SELECT 1 FROM calls WHERE asked = ? AND asked > 0 AND status NOT IN ('asked', 'partial') LIMIT 1", (row.asked,)
            )
            asked = (
                None
                if settled
                else self._database.one(
                    "SELECT usage FROM calls WHERE n BETWEEN ? AND ? AND run = ? AND status = 'asked' AND time = ? AND step = ?"
                    " AND purpose = ? AND part = ? AND sample = ? AND attempt = ?",
                    (row.asked << SHIFT, high(row.asked), row.run, row.time, row.step, row.purpose, row.part, row.sample, row.attempt),
                )
            )
            if asked is not None:
                worst = unpack_json(asked[0])
                sums = [value - float(worst.get(name) or 0) for name, value in zip(_SUMS, sums, strict=True)]
        self._database.do(_TOTAL, (row.run, *sums, int(row.status == "asked"), int(row.status == "refused")))


_PROMPT = _CALLS.columns.index("prompt") + 1
_TEXT = _SOURCES.columns.index("text") + 1


class SQLiteStore:
    """The port of the store on SQLite. See `fabula.store.Store` for what each method promises.

    Args:
        path: the file; made if it is not there, with its folder. `:memory:` for a library that ends with the process.
        fault: called at every write boundary (tests).
        clock: wall time in seconds.
        busy_seconds: how long a write waits for another process's.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        fault: Fault = lambda _: None,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = 30.0,
    ) -> None:
        self._place = str(path)
        self._fault = fault
        self._clock = clock
        self._closed = False
        self._process = os.getpid()
        self._path = None if self._place == ":memory:" else Path(self._place).resolve()  # one library has one folder of locks
        self._busy_seconds = busy_seconds
        self._db = open_database(str(self._path or self._place), self._place, busy_seconds, clock())
        self._locks = Locks(None if self._path is None else self._path.with_name(self._path.name + ".locks"), clock)

    @property
    def place(self) -> str:
        """The path."""
        return self._place

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def write(self, run: str, kind: str) -> Iterator[SQLiteTransaction]:
        """One transaction."""
        if os.getpid() != self._process:
            raise StoreError(f"The library {self._place} was opened by process {self._process}, not by this one.", "Open it again here.")
        self._fault(f"before {kind}")
        database = self._db
        with database.transaction():
            found = database.one("UPDATE counter SET value = value + 1 WHERE name = 'position' RETURNING value")
            if found is None:
                raise LibraryDamaged(f"The library {self._place} has lost its position.")
            transaction = SQLiteTransaction(database, int(found[0]))
            wall = self._clock()
            try:
                yield transaction
            finally:
                transaction.open = False
            row = (transaction.pos << SHIFT, run, kind, wall, transaction.count)
            database.do("INSERT INTO log(n, run, kind, wall, count) VALUES (?, ?, ?, ?, ?)", row)
            self._fault(f"inside {kind}")
        self._fault(f"after {kind}")

    # -- reading: simple rows ------------------------------------------------------------------------------------------

    def rows(self, kind: type[R], /, *, newest_first: bool = False, limit: int | None = None, **where: Condition) -> list[R]:
        """Rows of one class."""
        table = TABLES[kind]
        clause, values = _where(table, where)
        order = "DESC" if newest_first else "ASC"
        sql = _select(table.select, clause, f"n {order}")
        return self._decoded(table, self._db.all(sql, (*values, -1 if limit is None else max(limit, 0))))

    def greatest(self, kind: type[Row], column: str, /, **where: Condition) -> int | None:
        """The greatest value of a column."""
        table = TABLES[kind]
        if column != "pos" and column not in table.columns:
            raise TypeError(f"{kind.__name__} has no column {column!r}")
        clause, values = _where(table, where)
        name = "n" if column == "pos" else f'"{column}"'
        found = self._db.one(_select(f"SELECT {name} FROM {table.name}", clause, f"{name} DESC"), (*values, 1))
        return None if found is None else int(found[0]) >> (SHIFT if column == "pos" else 0)

    def export(self, line: Sequence[Reach]) -> Iterator[Row]:
        """Every row of these runs up to each pin, in the order in which they were written."""
        last = self.position()
        for start in range(0, last + 1, _WINDOW):
            found: list[tuple[int, Row | tuple[Any, ...]]] = []
            for reach in line:
                bounds = (start << SHIFT, high(min(start + _WINDOW - 1, reach.pin, last)))
                for table in TABLES.values():
                    if table.kind is RunRow:
                        columns = self._db.all(f"{table.select} WHERE n BETWEEN ? AND ? AND id = ?", (*bounds, reach.run))
                    elif "run" in table.columns:
                        columns = self._db.all(f"{table.select} WHERE n BETWEEN ? AND ? AND +run = ?", (*bounds, reach.run))
                    else:
                        continue
                    rows = columns if table is _SOURCES else self._decoded(table, columns)
                    found += zip((row[0] for row in columns), rows, strict=True)
            found.sort(key=lambda item: item[0])
            for _, row in found:
                yield cast("Row", self._decoded(_SOURCES, [row])[0]) if isinstance(row, tuple) else row  # texts may be large: one by one

    def text(self, text_hash: str) -> str:
        """A source text; after an erasure the one that was brought last."""
        found = self._db.one(_SOURCE, (text_hash,))
        if found is None:
            raise NotFound(f"There is no source text {text_hash!r} in {self._place}.", "Read the source again.")
        try:
            return unpack(b"" if found[0] is None else found[0])
        except ValueError as error:
            raise LibraryDamaged(f"The source text {text_hash} in {self._place} cannot be read: {error}.") from error

    def position(self) -> int:
        """The latest committed position."""
        found = self._db.one("SELECT value FROM counter WHERE name = 'position'")
        return int(found[0]) - self._db.connection.in_transaction if found else 0

    def _decoded(self, table: Table, columns: Sequence[tuple[Any, ...]]) -> list[Any]:
        try:
            if table is _CALLS:
                columns = self._prompts(columns)
            elif table is _SOURCES:
                texts = self._texts({row[_TEXT] for row in columns})
                columns = [(*row[:_TEXT], texts[row[_TEXT]]) for row in columns]
            return [table.decoded(row) for row in columns]
        except (ValueError, IndexError) as error:
            raise LibraryDamaged(f"A row of {table.name} in {self._place} cannot be read: {error}.") from error

    def _prompts(self, columns: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Call rows with the texts of their prompts put in."""
        prompts = {row[0]: unpack_json(row[_PROMPT]) if row[_PROMPT] else [] for row in columns}
        texts = self._texts({text for prompt in prompts.values() for _, text in prompt})
        return [(*row[:_PROMPT], tuple((role, texts[text]) for role, text in prompts[row[0]]), *row[_PROMPT + 1 :]) for row in columns]

    def _texts(self, wanted: set[int]) -> dict[int, str]:
        if not wanted:
            return {}
        sql = "SELECT id, body FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        texts = {key: unpack(body) for key, body in self._db.all(sql, (listed(sorted(wanted)),))}
        if len(texts) < len(wanted):
            raise ValueError("a text that it names is missing")
        return texts

    # -- reading: a line of runs -----------------------------------------------------------------------------------------

    def run(self, run: str) -> RunRow:
        """A run by its id or the beginning of it."""
        return _lines.run_row(self._db, run)

    def line(self, run: str) -> list[Reach]:
        """The run and its ancestors."""
        return _lines.line(self._db, run)

    def steps(
        self, line: Sequence[Reach], *, start: int = 0, end: int = FAR, newest_first: bool = False, limit: int | None = None
    ) -> list[StepRow]:
        """Live steps."""
        return _lines.steps(self._db, line, start, end, newest_first, limit)

    def step_at(self, line: Sequence[Reach], step: str, time: int) -> StepRow | None:
        """The live step of these lanes at this time."""
        return _lines.step_at(self._db, line, step, time)

    def undone(self, run: str, step: str, time: int) -> int:
        """How many takes were withdrawn."""
        return _lines.undone(self._db, run, step, time)

    def reached(self, line: Sequence[Reach]) -> dict[str, tuple[int, int, int]]:
        """How far each step has come."""
        return _lines.reached(self._db, line)

    def pieces(self, line: Sequence[Reach], *, after: int = 0, most: int | None = None) -> list[PieceRow]:
        """Live versions."""
        return _lines.pieces(self._db, line, after, most)

    def verdict(self, line: Sequence[Reach], address: Address, fingerprint: str) -> CallRow | None:
        """The verdict at an address."""
        place = (address.time, address.step, address.purpose, address.part, address.sample, address.attempt)
        found = _lines.verdict(self._db, line, place, fingerprint)
        return None if found is None else cast("CallRow", self._decoded(_CALLS, [found])[0])

    def pure(self, fingerprint: str) -> CallRow | None:
        """The earliest pure answer."""
        found = _lines.pure(self._db, fingerprint)
        return None if found is None else cast("CallRow", self._decoded(_CALLS, [found])[0])

    def known(self, fingerprints: Sequence[str]) -> set[str]:
        """Those that have a pure answer."""
        sql = "SELECT DISTINCT fingerprint FROM calls WHERE pure = 1 AND fingerprint IN (SELECT value FROM json_each(?))"
        out: set[str] = set()
        for start in range(0, len(fingerprints), _MANY):
            out.update(row[0] for row in self._db.all(sql, (listed(fingerprints[start : start + _MANY]),)))
        return out

    def raised(self, line: Sequence[Reach], step: str, time: int, purpose: str) -> int:
        """The sample from which a purpose counts."""
        return _lines.raised(self._db, line, step, time, purpose)

    def usage(self, run: str) -> Mapping[str, float]:
        """The run's totals."""
        found = self._db.one("SELECT prompt_tokens, answer_tokens, cached_tokens, cost, calls, refused FROM totals WHERE run = ?", (run,))
        return dict(zip((*_SUMS, "calls", "refused"), found or (0.0,) * 6, strict=True))

    # -- reading: memory -----------------------------------------------------------------------------------------------------

    def records(
        self,
        line: Sequence[Reach],
        *,
        lanes: Sequence[str] | None = None,
        before: int = FAR,
        read_at: int = FAR,
        entities: Sequence[str] = (),
        after: int = 0,
    ) -> list[RecordRow]:
        """Live record events that a step sees."""
        return _lines.records(self._db, line, lanes, before, read_at, entities, after)

    def vectors(self, hashes: Sequence[str], model: str) -> dict[str, bytes]:
        """The vectors that are there."""
        sql = "SELECT hash, vector FROM vectors WHERE model = ? AND hash IN (SELECT value FROM json_each(?))"
        out: dict[str, bytes] = {}
        for start in range(0, len(hashes), _MANY):
            out.update(self._db.all(sql, (model, listed(hashes[start : start + _MANY]))))
        return out

    def search(self, terms: Sequence[str], *, runs: Sequence[str] | None = None, limit: int = 200) -> list[tuple[str, int]]:
        """Record events by how many of the terms they hold."""
        return _lines.search(self._db, terms, runs, limit)

    # -- care ------------------------------------------------------------------------------------------------------------------

    def hold(self, run: str) -> None:
        """Become the holder."""
        self._locks.hold(run)

    def release(self, run: str) -> None:
        """Stop being the holder."""
        self._locks.release(run)

    def holder(self, run: str) -> Holder | None:
        """Who holds the run."""
        return self._locks.holder(run)

    def erase(self, texts: Iterable[str], why: str) -> Mapping[str, int]:
        """Blank texts for good. `copies` counts the copies beside the library that Fabula made and that still hold them."""
        from fabula.store._erase import Erasure, copies, scrub

        erasure = Erasure(self._db, texts)
        self._locks.refuse_held()  # whoever holds a run has its texts in mind and would write them again
        self._db.do("PRAGMA secure_delete = ON")
        try:
            with self.write(LIBRARY, "erase") as transaction:
                erasure.run()
                transaction.add(FactRow("erased", erasure.said(why)))
            scrub(self._db, self._path)
        finally:
            self._db.do("PRAGMA secure_delete = FAST")
        return {**erasure.counts, "copies": len(copies(self._path)) if self._path else 0}

    def backup(self, target: Path) -> int:
        """Copy the library."""
        if Path(target).exists():
            raise InputError(f"{target} exists already.", "Give a new name for the backup.")
        return copy_to(self._db, Path(target))

    def check(self) -> list[Finding]:
        """Look for damage."""
        from fabula.store._doctor import check

        return check(self._db, self._locks)

    def repair(self) -> list[Finding]:
        """Mend; where pages are damaged beyond the indexes, put a new library with all readable rows in place of this one."""
        from fabula.store._doctor import repair
        from fabula.store._salvage import beside, copy_files, salvage

        if not self.check():
            return []
        copy = None if self._path is None else beside(self._path, "before-repair", self._clock)
        try:
            if copy is not None:
                copy_to(self._db, copy)
        except LibraryDamaged:
            assert self._path is not None
            assert copy is not None
            copy_files(self._path, copy)
        try:
            with self._db.transaction():
                found = repair(self._db, self._locks)
        except LibraryDamaged:
            if self._path is None:
                raise
            self._db.close()
            found = salvage(self._path, self._clock, self._busy_seconds, self._locks)
            self._db = open_database(str(self._path), self._place, self._busy_seconds, self._clock())
        return found

    def close(self) -> None:
        """Release everything."""
        if not self._closed:
            self._closed = True
            self._locks.close()
            self._db.close()


_WINDOW = 256
_MANY = 10_000


@lru_cache(maxsize=1024)
def _select(select: str, clause: str, order: str) -> str:
    return f"{select}{clause} ORDER BY {order} LIMIT ?"


_IMPLIED = {"asked": " AND asked > 0"}
"""Said once more, so that the index of rows that belong to a request serves."""


def _where(table: Table, where: Mapping[str, Condition]) -> tuple[str, list[Any]]:
    """The clause and its values. The same columns and kinds of condition give the same text."""
    parts: list[str] = []
    values: list[Any] = []
    for column, condition in where.items():
        if column == "pos":
            parts.append(_positions(table.name, condition, values))
            continue
        if column not in table.columns or column in table.texts or column in table.json or column in ("prompt", "notes", "text"):
            raise TypeError(f"no condition is possible on {column!r} of {table.kind.__name__}")
        name = f'"{column}"'
        if column == "reach" and condition == "library":
            parts.append("reach = 'library'")  # spelt out, so that the index of library records serves
        elif condition is None:
            parts.append(f"{name} IS NULL")
        elif isinstance(condition, Among):
            parts.append(f"{name} IN (SELECT value FROM json_each(?))")
            values.append(listed(condition.values))
        elif isinstance(condition, Between):
            parts.append(f"{name} BETWEEN ? AND ?")
            values += (condition.low, condition.high)
        else:
            parts.append(f"{name} = ?" + _IMPLIED.get(column, "") * bool(condition))
            values.append(condition)
    return (" WHERE " + " AND ".join(parts) if parts else ""), values


def _positions(table: str, condition: Condition, values: list[Any]) -> str:
    """A condition on positions as one on keys."""
    if isinstance(condition, Among):
        values.append(listed(condition.values))
        return (
            f"n IN (SELECT t.n FROM json_each(?) j CROSS JOIN {table} t"
            f" WHERE t.n BETWEEN j.value << {SHIFT} AND (j.value << {SHIFT}) | {PER_POSITION})"
        )
    low, last = (condition.low, condition.high) if isinstance(condition, Between) else (condition, condition)
    if not isinstance(low, int) or not isinstance(last, int):
        raise TypeError("a position is a whole number")
    values += (max(0, min(low, LAST)) << SHIFT, high(last) if last >= 0 else -1)
    return "n BETWEEN ? AND ?"
