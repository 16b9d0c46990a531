# ruff: noqa: S608 (SQL is put together from names of our own)
"""The tables of a library in SQLite, how rows become columns, and the numbered migrations.

The key `n` of every row is `pos << 20 | ordinal`: the position of its transaction and its place in it. So every table, and
every index (which ends in the key), is in the order of commit, and a bound on positions is a bound on keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from fabula.store._codec import pack, pack_json, unpack, unpack_json
from fabula.store._database import Database
from fabula.store._rows import (
    BegunRow,
    CallRow,
    FactRow,
    InboxRow,
    IntakeRow,
    LaneRow,
    LogRow,
    PieceRow,
    RaisedRow,
    RecallRow,
    RecordRow,
    RunRow,
    StepRow,
    TakenRow,
    TextRow,
    VectorRow,
    WithdrawnRow,
)

APPLICATION = 0x46414255
"""`FABU`, in the file's header (PRAGMA application_id)."""

SHIFT = 20
PER_POSITION = (1 << SHIFT) - 1
"""Rows that one transaction may add besides its log row."""
LAST = (1 << (62 - SHIFT)) - 1
"""The greatest position."""


def high(pos: int) -> int:
    """The greatest key of a position or of those before it."""
    return (min(pos, LAST) << SHIFT) | PER_POSITION


START = """
CREATE TABLE migrations(name TEXT PRIMARY KEY, wall REAL NOT NULL) STRICT;
CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES ('position', 0);
CREATE TABLE texts(id INTEGER PRIMARY KEY, hash BLOB UNIQUE, body ANY NOT NULL) STRICT;
CREATE TABLE totals(run TEXT PRIMARY KEY, prompt_tokens REAL NOT NULL, answer_tokens REAL NOT NULL, cached_tokens REAL NOT NULL,
    cost REAL NOT NULL, calls REAL NOT NULL, refused REAL NOT NULL) STRICT;
CREATE TABLE log(n INTEGER PRIMARY KEY, count INTEGER NOT NULL DEFAULT -1, run TEXT NOT NULL, kind TEXT NOT NULL,
    wall REAL NOT NULL) STRICT;
CREATE INDEX log_run ON log(run);
CREATE TABLE runs(n INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, title ANY NOT NULL, seed TEXT NOT NULL,
    model_seed TEXT NOT NULL, premise ANY NOT NULL, settings ANY NOT NULL, parent TEXT, cut INTEGER NOT NULL,
    pin INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX runs_id ON runs(id);
CREATE INDEX runs_parent ON runs(parent);
CREATE TABLE lanes(n INTEGER PRIMARY KEY, run TEXT NOT NULL, lane TEXT NOT NULL, born INTEGER NOT NULL, ends INTEGER NOT NULL) STRICT;
CREATE INDEX lanes_run ON lanes(run);
CREATE TABLE begun(n INTEGER PRIMARY KEY, run TEXT NOT NULL, step TEXT NOT NULL, time INTEGER NOT NULL, take INTEGER NOT NULL,
    read_at INTEGER NOT NULL, story REAL NOT NULL, wall REAL NOT NULL) STRICT;
CREATE INDEX begun_address ON begun(run, time, step, take);
CREATE TABLE steps(n INTEGER PRIMARY KEY, run TEXT NOT NULL, step TEXT NOT NULL, time INTEGER NOT NULL, take INTEGER NOT NULL,
    until INTEGER NOT NULL, output ANY NOT NULL, uses ANY NOT NULL) STRICT;
CREATE INDEX steps_address ON steps(run, time, step);
CREATE INDEX steps_run ON steps(run);
CREATE TABLE withdrawn(n INTEGER PRIMARY KEY, target INTEGER NOT NULL, run TEXT NOT NULL, why ANY NOT NULL) STRICT;
CREATE INDEX withdrawn_target ON withdrawn(target);
CREATE INDEX withdrawn_run ON withdrawn(run);
CREATE TABLE raised(n INTEGER PRIMARY KEY, run TEXT NOT NULL, step TEXT NOT NULL, time INTEGER NOT NULL, purpose TEXT NOT NULL,
    base INTEGER NOT NULL) STRICT;
CREATE INDEX raised_address ON raised(run, time, step, purpose);
CREATE TABLE calls(n INTEGER PRIMARY KEY, run TEXT NOT NULL, step TEXT NOT NULL, time INTEGER NOT NULL, purpose TEXT NOT NULL,
    part TEXT NOT NULL, sample INTEGER NOT NULL, attempt INTEGER NOT NULL, fingerprint TEXT NOT NULL, status TEXT NOT NULL,
    answer ANY NOT NULL, reason ANY NOT NULL, finish TEXT NOT NULL, prompt ANY NOT NULL, model TEXT NOT NULL,
    request ANY NOT NULL, usage ANY NOT NULL, notes ANY NOT NULL, sequence INTEGER NOT NULL, asked INTEGER NOT NULL,
    wall REAL NOT NULL, pure INTEGER NOT NULL) STRICT;
CREATE INDEX calls_address ON calls(run, time, step, purpose, part, sample, attempt, status);
CREATE INDEX calls_asked ON calls(asked, status) WHERE asked > 0;
CREATE INDEX calls_pure ON calls(fingerprint) WHERE pure = 1;
CREATE TABLE recalls(n INTEGER PRIMARY KEY, run TEXT NOT NULL, step TEXT NOT NULL, time INTEGER NOT NULL, take INTEGER NOT NULL,
    part TEXT NOT NULL, query TEXT NOT NULL, found ANY NOT NULL) STRICT;
CREATE INDEX recalls_address ON recalls(run, time, step, take, part);
CREATE INDEX recalls_run ON recalls(run);
CREATE TABLE pieces(n INTEGER PRIMARY KEY, run TEXT NOT NULL, lane TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    time INTEGER NOT NULL, value ANY NOT NULL, by TEXT NOT NULL) STRICT;
CREATE INDEX pieces_name ON pieces(run, lane, name, version);
CREATE INDEX pieces_run ON pieces(run);
CREATE TABLE intakes(n INTEGER PRIMARY KEY, run TEXT NOT NULL, time INTEGER NOT NULL, read_at INTEGER NOT NULL) STRICT;
CREATE INDEX intakes_run ON intakes(run);
CREATE TABLE records(n INTEGER PRIMARY KEY, id TEXT NOT NULL, run TEXT NOT NULL, lane TEXT NOT NULL, time INTEGER NOT NULL,
    event TEXT NOT NULL, data ANY NOT NULL, reach TEXT NOT NULL, about TEXT NOT NULL, by TEXT NOT NULL, terms ANY NOT NULL,
    hash TEXT NOT NULL, CHECK(reach IN ('run','library'))) STRICT;
CREATE INDEX records_id ON records(id);
CREATE INDEX records_run ON records(run);
CREATE INDEX records_about ON records(about) WHERE reach = 'library';
CREATE INDEX records_library ON records(reach) WHERE reach = 'library';
CREATE TABLE vectors(n INTEGER PRIMARY KEY, hash TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX vectors_key ON vectors(hash, model);
CREATE TABLE inbox(n INTEGER PRIMARY KEY, run TEXT NOT NULL, kind TEXT NOT NULL, payload ANY NOT NULL, wall REAL NOT NULL) STRICT;
CREATE INDEX inbox_run ON inbox(run);
CREATE TABLE taken(n INTEGER PRIMARY KEY, target INTEGER NOT NULL, run TEXT NOT NULL) STRICT;
CREATE INDEX taken_target ON taken(target);
CREATE INDEX taken_run ON taken(run);
CREATE TABLE facts(n INTEGER PRIMARY KEY, name TEXT NOT NULL, value ANY NOT NULL) STRICT;
CREATE INDEX facts_name ON facts(name);
"""
"""One statement ends with a semicolon at the end of its line. `log.count` is how many rows a transaction wrote besides its log row
and vectors (which may be dropped), -1 where that is not known: so a row that is lost is missed. No two tables
have columns of the same kinds in the same order, so that a row can be told from its columns alone (see `_carve`)."""

_SIGNS = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum())
_TOKENIZER = "ascii tokenchars '" + _SIGNS.replace("'", "''") + "'"
FIND = (
    "CREATE VIRTUAL TABLE find USING fts5(terms, content='', columnsize=0, detail=none, tokenize='" + _TOKENIZER.replace("'", "''") + "')"
)
"""The full-text index of `records.terms`, by key. It keeps only which term occurs in which record, once for the run and once
for all (see `_lines.tokens`), so that a search in a few runs reads nothing of the others. Terms are words of our own between
blanks, already in small letters: every other sign belongs to a word, so that no term of any script is split or lost."""


def _start(database: Database) -> None:
    for statement in START.strip().split(";\n"):
        database.do(statement)
    database.do(FIND)


SOURCES = """
CREATE TABLE sources(n INTEGER PRIMARY KEY, run TEXT NOT NULL, hash TEXT NOT NULL, text INTEGER NOT NULL) STRICT;
CREATE INDEX sources_hash ON sources(hash);
CREATE INDEX sources_run ON sources(run);
CREATE INDEX sources_text ON sources(text);
"""
"""Which run reads which text: `text` is its `texts.id`, `hash` its name, which stays when the text is blanked."""


def _sources(database: Database) -> None:
    for statement in SOURCES.strip().split(";\n"):
        database.do(statement)


MIGRATIONS: tuple[tuple[str, Callable[[Database], None]], ...] = (("0001_start", _start), ("0002_sources", _sources))
"""In order. A migration is never changed once it was released; each runs inside one transaction."""


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows of one class are kept."""

    name: str
    kind: type[Any]
    columns: tuple[str, ...]
    """Without `pos`, in the order of the class."""
    texts: tuple[str, ...]
    """Columns that hold a text that may be long."""
    json: tuple[str, ...]
    """Columns that hold JSON."""
    insert: str
    select: str
    """`SELECT n, …` up to and without WHERE."""
    values: Callable[[Any], tuple[Any, ...]]
    encode: tuple[tuple[int, Callable[[Any], Any]], ...]
    decode: tuple[tuple[int, Callable[[Any], Any]], ...]

    def encoded(self, n: int, row: Any) -> list[Any]:
        """The columns of a row, its key first."""
        values = [n, *self.values(row)]
        for at, act in self.encode:
            values[at] = act(values[at])
        return values

    def decoded(self, columns: tuple[Any, ...]) -> Any:
        """The row of these columns, its key first. Raises ValueError where they are damaged."""
        values = list(columns)
        for at, act in self.decode:
            values[at] = act(values[at])
        pos = values.pop(0) >> SHIFT
        return self.kind(*values, pos)


def _notes(value: str | bytes) -> tuple[str, ...]:
    return tuple(unpack_json(value))


def _table(kind: type[Any], name: str, texts: str = "", json: str = "", insert_word: str = "INSERT") -> Table:
    columns = tuple(field.name for field in fields(kind) if field.name != "pos")
    stored = (*columns, "pure") if name == "calls" else columns
    quoted = ", ".join(f'"{column}"' for column in stored)
    coded = dict.fromkeys(texts.split(), (pack, unpack)) | dict.fromkeys(json.split(), (pack_json, unpack_json))
    if name == "calls":
        coded["notes"] = (pack_json, _notes)
    return Table(
        name=name,
        kind=kind,
        columns=columns,
        texts=tuple(texts.split()),
        json=tuple(json.split()),
        insert=f"{insert_word} INTO {name}(n, {quoted}) VALUES (?{', ?' * len(stored)})",
        select="SELECT n, " + ", ".join(f'"{column}"' for column in columns) + f" FROM {name}",
        values=attrgetter(*columns),
        encode=tuple((columns.index(column) + 1, pair[0]) for column, pair in coded.items()),
        decode=tuple((columns.index(column) + 1, pair[1]) for column, pair in coded.items()),
    )


TABLES: dict[type[Any], Table] = {
    table.kind: table
    for table in (
        _table(LogRow, "log"),
        _table(RunRow, "runs", "title", "premise settings"),
        _table(LaneRow, "lanes"),
        _table(BegunRow, "begun"),
        _table(StepRow, "steps", "", "output uses"),
        _table(WithdrawnRow, "withdrawn", "why"),
        _table(RaisedRow, "raised"),
        _table(CallRow, "calls", "answer reason", "request usage"),
        _table(RecallRow, "recalls", "", "found"),
        _table(PieceRow, "pieces", "", "value"),
        _table(IntakeRow, "intakes"),
        _table(RecordRow, "records", "terms", "data"),
        _table(VectorRow, "vectors", insert_word="INSERT OR IGNORE"),
        _table(TextRow, "sources"),
        _table(InboxRow, "inbox", "", "payload"),
        _table(TakenRow, "taken"),
        _table(FactRow, "facts", "", "value"),
    )
}


def least_version() -> bool:
    """Whether this Python's SQLite can do what is needed (STRICT tables)."""
    return sqlite3.sqlite_version_info >= (3, 37)
