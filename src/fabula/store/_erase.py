# ruff: noqa: S608 (SQL is put together from names of our own)
"""Erase texts for good: from every column that holds content, from the index, and from the bytes of the file.

A text is looked for as it is and as it stands escaped inside JSON, also inside JSON that stands in a JSON string. A streamed
text is put together from its partial rows first, so that one cut in two is found. Names (ids, lanes, purposes …) are
no content: they are counted in `names` and stay, since rows are found by them. A source text keeps its length and its lines, so that
what was read of its other parts can still be found there, and read again, at the same place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from fabula.errors import InputError, LibraryBusy, LibraryFull
from fabula.store._codec import listed, pack, pack_json, unpack, unpack_json
from fabula.store._database import Database
from fabula.store._lines import tokens
from fabula.store._rows import CallRow, PieceRow, RecallRow, RecordRow, RunRow, StepRow, TextRow
from fabula.store._schema import SHIFT, TABLES, Table

SHORTEST = 4
"""Characters. Anything shorter stands in innocent words."""

_NO_NAMES = {"status", "reach", "by", "event"}
_COUNTS = {"records": "records", "calls": "calls", "steps": "outputs"}


def mark(text: str) -> str:
    """What stands in a text's place."""
    return f"⟨erased {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}⟩"


_LINES = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def fitted(said: str, gone: str) -> str:
    """A mark cut, or filled up, to the length of what it replaces, with line breaks where they were."""
    filled = said.ljust(len(gone), "·")
    return "".join(old if old in _LINES else new for old, new in zip(gone, filled, strict=False))


def _forms(text: str) -> list[str]:
    """The text as it is and as JSON escapes it, up to JSON in JSON in JSON."""
    forms = {text}
    for _ in range(3):
        for form in list(forms):
            escaped = json.dumps(form)[1:-1]
            forms |= {json.dumps(form, ensure_ascii=False)[1:-1], escaped, re.sub(r"\\u([0-9a-f]{4})", _upper, escaped)}
    return sorted(forms, key=len, reverse=True)


def _upper(found: re.Match[str]) -> str:
    return "\\u" + found.group(1).upper()


@dataclass
class _Texts:
    """What is to be erased."""

    wanted: tuple[str, ...]
    """Longest first, so that a text inside another does not break it up."""
    pattern: re.Pattern[str] = field(init=False)
    marks: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.marks = {}
        for text in self.wanted:
            for form in _forms(text):
                self.marks.setdefault(form, mark(text))
        self.pattern = re.compile("|".join(re.escape(form) for form in sorted(self.marks, key=len, reverse=True)))

    def blank(self, text: str) -> str:
        """The text with marks in place of what is erased."""
        return self.pattern.sub(lambda found: self.marks[found.group()], text)

    def blank_value(self, value: Any, *, numbers: bool) -> Any:
        """A plain value with all its strings blanked, keys too; with `numbers` also numbers that are one of the texts."""
        if isinstance(value, str):
            return self.blank(value)
        if isinstance(value, list):
            return [self.blank_value(item, numbers=numbers) for item in value]
        if isinstance(value, dict):
            return {self.blank(key): self.blank_value(item, numbers=numbers) for key, item in value.items()}
        if numbers and isinstance(value, int | float) and not isinstance(value, bool):
            return self.marks.get(json.dumps(value), value)
        return value

    def in_text(self, column: str | bytes) -> str | bytes | None:
        """The new column, or None where nothing is to be erased."""
        text = unpack(column)
        return pack(self.blank(text)) if self.pattern.search(text) else None

    def in_source(self, column: str | bytes) -> str | bytes:
        """The new column of a source text."""
        return pack(self.pattern.sub(lambda found: fitted(self.marks[found.group()], found.group()), unpack(column)))

    def in_json(self, column: str | bytes, *, numbers: bool = True) -> str | bytes | None:
        """The new column, or None where nothing is to be erased."""
        if not self.pattern.search(unpack(column)):
            return None
        value = unpack_json(column)
        blanked = self.blank_value(value, numbers=numbers)
        return None if blanked == value else pack_json(blanked)


class Erasure:
    """One act of erasing inside one transaction."""

    def __init__(self, database: Database, texts: Iterable[str]) -> None:
        wanted = tuple(sorted(set(texts), key=lambda text: (-len(text), text)))
        for text in wanted:
            if len(text.strip()) < SHORTEST:
                raise InputError(
                    f"A text of {len(text.strip())} characters cannot be erased: at least {SHORTEST} are needed.",
                    "Give a longer part of the text.",
                )
        self.texts = _Texts(wanted)
        self.database = database
        self.counts: dict[str, int] = dict.fromkeys(
            ("records", "calls", "outputs", "pieces", "prompts", "sources", "vectors", "other", "names", "replays"), 0
        )
        self.runs: set[str] = set()
        """Touched."""
        self._hashes: set[str] = set()
        self._positions: set[int] = set()
        self._addresses: set[tuple[str, str, int]] = set()

    def run(self) -> None:
        """Blank all tables. Call inside a transaction."""
        if not self.texts.wanted:
            return
        self._messages()
        self._partials()
        for table in TABLES.values():
            self._table(table)
        self.database.do("UPDATE records SET hash = '' WHERE hash IN (SELECT value FROM json_each(?))", (listed(sorted(self._hashes)),))
        self._count_replays()

    def said(self, why: str) -> dict[str, Any]:
        """What the library keeps of this act: hashes and the reason."""
        return {
            "why": self.texts.blank(why) if self.texts.wanted else why,
            "marks": [mark(text) for text in self.texts.wanted],
            "runs": sorted(self.runs),
        }

    def _messages(self) -> None:
        """Messages of prompts, and source texts. A blanked one is no longer found by its content, so that the same text, if it comes
        again, is kept anew.
        """
        database, pattern = self.database, self.texts.pattern
        changed = {key for key, body in database.stream("SELECT id, body FROM texts") if pattern.search(unpack(body))}
        if not changed:
            return
        keys = listed(sorted(changed))
        sources = {row[0] for row in database.all("SELECT text FROM sources WHERE text IN (SELECT value FROM json_each(?))", (keys,))}
        for key in sorted(changed):  # one at a time: source texts may be large
            found = database.one("SELECT body FROM texts WHERE id = ?", (key,))
            assert found is not None
            column = self.texts.in_source(found[0]) if key in sources else self.texts.in_text(found[0])
            database.do("UPDATE texts SET hash = NULL, body = ? WHERE id = ?", (column, key))
        self.counts["sources"], self.counts["prompts"] = len(sources), len(changed - sources)
        self.runs |= {row[0] for row in database.all("SELECT run FROM sources WHERE text IN (SELECT value FROM json_each(?))", (keys,))}
        asked = []
        for n, run, step, time, prompt in database.all("SELECT n, run, step, time, prompt FROM calls WHERE prompt <> ''"):
            if any(key in changed for _, key in unpack_json(prompt)):
                self._touch(n, (run, step, time))
                self.runs.add(run)
                asked.append(n >> SHIFT)
        # a step of another run may go by the answer (a pure call), which it cannot find again without the prompt
        sql = f"SELECT n >> {SHIFT} FROM calls WHERE asked > 0 AND asked IN (SELECT value FROM json_each(?))"
        self._positions.update(row[0] for row in database.all(sql, (listed(asked),)))

    def _partials(self) -> None:
        """A text that was cut in two by the stream: all of it goes into the first partial."""
        sql = (
            "SELECT n, run, step, time, purpose, part, sample, attempt, asked, answer FROM calls WHERE status = 'partial'"
            " ORDER BY run, time, step, purpose, part, sample, attempt, asked, sequence, n"
        )
        streams: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
        for n, *address, answer in self.database.stream(sql):
            streams.setdefault(tuple(address), []).append((n, unpack(answer)))
        for at, parts in streams.items():
            whole = "".join(text for _, text in parts)
            if len(parts) > 1 and self.texts.pattern.search(whole):
                for n, text in zip((n for n, _ in parts), (self.texts.blank(whole), *[""] * (len(parts) - 1)), strict=True):
                    self.database.do("UPDATE calls SET answer = ? WHERE n = ?", (pack(text), n))
                    self.counts["calls"] += 1
                    self._touch(n, (at[0], at[1], at[2]))
                    self.runs.add(at[0])

    def _table(self, table: Table) -> None:
        if table.kind is TextRow:
            return  # its content is among the texts
        texts, values = table.texts, (*table.json, *(("notes",) if table.kind is CallRow else ()))
        names = [column for column in table.columns if column not in (*texts, *values, "prompt", "vector") and column not in _NO_NAMES]
        columns = (*texts, *values, *names)
        if not columns:
            return
        quoted = ", ".join(f'"{column}"' for column in columns)
        changes: list[tuple[int, dict[str, Any]]] = []
        for n, *row in self.database.stream(f"SELECT n, {quoted} FROM {table.name}"):
            new: dict[str, Any] = {}
            for at, (column, value) in enumerate(zip(columns, row, strict=True)):
                if at >= len(texts) + len(values):
                    self.counts["names"] += isinstance(value, str) and self.texts.pattern.search(value) is not None
                    continue
                if at < len(texts):
                    blanked = self.texts.in_text(value)
                else:  # numbers in `uses` are positions, in `usage` counts: never content
                    blanked = self.texts.in_json(value, numbers=column not in ("uses", "usage"))
                if blanked is not None:
                    new[column] = blanked
            if new:
                changes.append((n, new))
        for n, new in changes:
            self._change(table, n, new)

    def _change(self, table: Table, n: int, new: dict[str, Any]) -> None:
        if table.kind is RecordRow:
            self._unindex(n)
            new |= {"terms": "", "hash": ""}
        if table.kind is CallRow and "answer" in new:
            new["pure"] = 0  # another run shall ask again, not get a text with holes
        sets = ", ".join(f'"{column}" = ?' for column in new)
        self.database.do(f"UPDATE {table.name} SET {sets} WHERE n = ?", (*new.values(), n))
        owner = "run" if "run" in table.columns else "id" if table.kind is RunRow else ""
        if owner:
            self.runs.update(self.database.one(f"SELECT {owner} FROM {table.name} WHERE n = ?", (n,)) or ())
        self.counts[_COUNTS.get(table.name, table.name if table.name in self.counts else "other")] += 1
        if table.name not in self.counts and table.name not in _COUNTS and table.kind is not RecallRow:
            return
        address = None
        if table.kind is not RecordRow and table.kind is not PieceRow:
            address = self.database.one(f"SELECT run, step, time FROM {table.name} WHERE n = ?", (n,))
        self._touch(n, (address[0], address[1], address[2]) if address else None)

    def _touch(self, n: int, address: tuple[str, str, int] | None) -> None:
        self._positions.add(n >> SHIFT)
        if address is not None:
            self._addresses.add(address)

    def _unindex(self, n: int) -> None:
        """A record's terms and vector go, since they say what it said."""
        found = self.database.one("SELECT run, terms, hash FROM records WHERE n = ?", (n,))
        assert found is not None
        run, terms, name = found[0], unpack(found[1]), found[2]
        if terms:
            self.database.do("INSERT INTO find(find, rowid, terms) VALUES ('delete', ?, ?)", (n, tokens(run, terms)))
        if name:
            self.counts["vectors"] += self.database.do("DELETE FROM vectors WHERE hash = ?", (name,))
            self._hashes.add(name)

    def _count_replays(self) -> None:
        """Steps that were made from something that is blank now, or that made it."""
        steps = TABLES[StepRow]
        for columns in self.database.stream(steps.select):
            step: StepRow = steps.decoded(columns)
            used = {*step.uses.get("calls", ()), *dict(step.uses.get("pieces", {})).values(), step.pos}
            self.counts["replays"] += (step.run, step.step, step.time) in self._addresses or not used.isdisjoint(self._positions)


def scrub(database: Database, path: Path | None) -> None:
    """Leave no trace in free pages, in the index's old segments or in the log beside the file.

    Raises LibraryBusy or LibraryFull where that could not be finished; the texts are blank already then, and erasing again finishes it.
    """
    try:
        with database.transaction():
            database.do("INSERT INTO find(find) VALUES ('optimize')")
        if path is None:
            database.do("VACUUM")
            return
        database.until_free(lambda: _truncate(database))
        database.do("VACUUM")
        database.until_free(lambda: _truncate(database))
    except (LibraryBusy, LibraryFull) as error:
        raise type(error)(
            f"The texts are blank now, but old bytes are still in the file: {error.message}",
            "Close other programs that use the library and erase again.",
        ) from error


def _truncate(database: Database) -> None:
    found = database.one("PRAGMA wal_checkpoint(TRUNCATE)")
    if found is None or found[0] != 0:
        raise LibraryBusy(f"Another process is reading {database.place}.")


def copies(path: Path) -> list[Path]:
    """Copies that Fabula itself made beside a library; what was erased is still in them."""
    return sorted(
        found for found in path.parent.glob(f"{path.name}.*") if found.is_file() and re.search(r"\.(before|damaged)-[^/]*$", found.name)
    )
