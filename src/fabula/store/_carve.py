"""Read rows out of a library's raw pages, without its schema, its indexes or its inner pages.

The file format is public and frozen (sqlite.org/fileformat2.html): a row lies in a leaf page (kind 13) as its key and its
columns, with pages of overflow where it is long. Which table a row belongs to follows from the number and the types of its
columns, since our tables are strict. So whatever leaf page is whole gives its rows, also of a file that was cut short or
has lost its beginning.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fabula.store._database import Database, translated

_LEAF = 13
_USUAL = 4096

Shape = tuple[tuple[str, bool], ...]
"""(type, may be null) of each column; the first is the key."""


def shapes(database: Database, names: tuple[str, ...]) -> dict[str, Shape]:
    """The tables' shapes, from a library that is sound."""
    return {name: tuple((row[2], not row[3]) for row in database.all(f"PRAGMA table_info({name})")) for name in names}


def frames(log: bytes) -> Iterator[tuple[int, int]]:
    """(page, where its content begins) of each page in a log (`-wal`) that belongs to a whole transaction, in the order of writing."""
    size = int.from_bytes(log[8:12], "big")
    open_: list[tuple[int, int]] = []
    at = 32
    while size and at + 24 + size <= len(log) and log[at + 8 : at + 16] == log[16:24]:
        number, end = struct.unpack_from(">II", log, at)
        open_.append((number, at + 24))
        if end:
            yield from open_
            open_.clear()
        at += 24 + size


class Pages:
    """The pages of a library: of the file, and later ones of whole transactions from the log beside it."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        try:
            file = stack.enter_context(path.open("rb"))
            length = path.stat().st_size
            self._file: mmap.mmap | bytes = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if length else b""
            log = path.with_name(path.name + "-wal")
            self.log = log.read_bytes() if log.exists() else b""
        except OSError as error:
            raise translated(error, str(path)) from error
        size = int.from_bytes(self._file[16:18], "big")
        self.size = size if size >= 512 and size & (size - 1) == 0 else _USUAL
        self._later = self._logged()
        self.count = max([length // self.size, *self._later])

    def _logged(self) -> dict[int, int]:
        """Where in the log the latest version of a page begins."""
        return dict(frames(self.log)) if int.from_bytes(self.log[8:12], "big") == self.size else {}

    def page(self, number: int) -> bytes:
        """A page, from 1; shorter or empty where it is not there."""
        if number in self._later:
            start = self._later[number]
            return self.log[start : start + self.size]
        return bytes(self._file[(number - 1) * self.size : number * self.size])


def rows(pages: Pages, tables: dict[str, Shape]) -> Iterator[tuple[str, list[Any]]]:
    """(table, columns with the key first) of every row in a whole leaf page."""
    by_count: dict[int, list[tuple[str, Shape]]] = {}
    for name, shape in tables.items():
        by_count.setdefault(len(shape), []).append((name, shape))
    for number in range(1, pages.count + 1):
        for key, values in cells(pages, pages.page(number), 100 if number == 1 else 0):
            for name, shape in by_count.get(len(values), ()):
                if key > 0 and _fits(values, shape):
                    yield name, [key, *values[1:]]
                    break


def cells(pages: Pages, page: bytes, start: int = 0) -> Iterator[tuple[int, list[Any]]]:
    """(key, columns) of every whole row in a leaf page."""
    if len(page) < pages.size or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    if start + 8 + 2 * count > len(page):
        return
    for (at,) in struct.iter_unpack(">H", page[start + 8 : start + 8 + 2 * count]):
        try:
            yield _cell(pages, page, at)
        except (IndexError, ValueError, struct.error):
            continue


def _fits(values: list[Any], shape: Shape) -> bool:
    if values[0] is not None:  # the key is kept beside the row, never in it
        return False
    return all(
        nullable if value is None else type(value) in _TYPES[kind] for value, (kind, nullable) in zip(values[1:], shape[1:], strict=True)
    )


_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "REAL": (float, int),
    "TEXT": (str,),
    "BLOB": (bytes,),
    "ANY": (str, bytes),
}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(8):
        byte = data[at + step]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + step + 1
    return value << 8 | data[at + 8], at + 9


def _cell(pages: Pages, page: bytes, at: int) -> tuple[int, list[Any]]:
    length, at = _varint(page, at)
    key, at = _varint(page, at)
    usable = pages.size
    if length > usable * pages.count:
        raise ValueError("longer than the file")
    local = length
    if length > usable - 35:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        if local > usable - 35:
            local = least
    parts = [page[at : at + local]]
    left = length - local
    following = int.from_bytes(page[at + local : at + local + 4], "big") if left else 0
    while left > 0:
        more = pages.page(following) if following else b""
        if len(more) < usable:
            raise ValueError("a page of overflow is missing")
        parts.append(more[4 : 4 + left])
        left -= usable - 4
        following = int.from_bytes(more[:4], "big")
    payload = b"".join(parts)
    if len(payload) != length:
        raise ValueError("cut short")
    return key, _columns(payload)


def _columns(payload: bytes) -> list[Any]:
    end, at = _varint(payload, 0)
    body = end
    out: list[Any] = []
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        out.append(value)
    if body != len(payload):
        raise ValueError("a row of another length")
    return out


_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind in _INTEGERS:
        end = at + _INTEGERS[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind < 12:
        raise ValueError("a column of unknown kind")
    end = at + (kind - 12) // 2
    content = payload[at:end]
    if len(content) < end - at:
        raise ValueError("cut short")
    return (content.decode() if kind % 2 else content), end
