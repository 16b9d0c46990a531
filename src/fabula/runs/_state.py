"""The versions of a run's pieces of state. Large values stay in the library and are read when they are looked at."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from fabula.store import UNREAD, PieceRow, Reach, Store

_SMALL = 2_000
"""Characters of JSON of the longest value that is in memory from the start, if it is not even compressed."""
_LARGE = 1_000
"""Characters (about) of the longest value that stays in memory when it was put: about what the store compresses."""
_KEPT = 4_000_000
"""Characters (about) of large values that stay in memory."""

_version = attrgetter("version")


def size(value: Any) -> int:
    """About how many characters a plain value has as JSON."""
    if isinstance(value, str):
        return len(value) + 3
    if isinstance(value, Mapping):
        return 2 + sum(size(key) + size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(map(size, value))
    return 8


class State:
    """Versioned pieces of a line: (lane, name) → rows, ascending by version, of equal ones the later counts."""

    def __init__(self, store: Store, line: Sequence[Reach]):
        self._store = store
        self._rows: dict[str, dict[str, list[PieceRow]]] = {}
        self._read: OrderedDict[tuple[str, str, int, int], tuple[Any, int]] = OrderedDict()
        self._kept = 0
        for row in store.pieces(line, most=_SMALL):
            self._insert(row)

    def put(self, row: PieceRow) -> None:
        """A new version."""
        large = size(row.value)
        if large > _LARGE:
            self._keep(row, row.value, large)
            row = replace(row, value=UNREAD)
        self._insert(row)

    def _insert(self, row: PieceRow) -> None:
        held = self._rows.setdefault(row.lane, {}).setdefault(row.name, [])
        if held and held[-1].version > row.version:
            bisect.insort_right(held, row, key=_version)
        else:
            held.append(row)

    def row(self, lane: str, name: str, version: int) -> PieceRow | None:
        """The row that counts as of a version; its value may be `UNREAD`."""
        held = self._rows.get(lane, {}).get(name)
        if not held:
            return None
        if held[-1].version <= version:
            return held[-1]
        at = bisect.bisect_right(held, version, key=_version)
        return held[at - 1] if at else None

    def value(self, row: PieceRow) -> Any:
        """The value of one of these rows."""
        if row.value is not UNREAD:
            return row.value
        key = row.lane, row.name, row.version, row.pos
        found = self._read.get(key)
        if found is None:
            held = self._store.rows(PieceRow, run=row.run, lane=row.lane, name=row.name, version=row.version)
            value = next(one.value for one in held if one.pos == row.pos)
            self._keep(row, value, size(value))
            return value
        self._read.move_to_end(key)
        return found[0]

    def _keep(self, row: PieceRow, value: Any, large: int) -> None:
        self._read[row.lane, row.name, row.version, row.pos] = value, large
        self._kept += large
        while self._kept > _KEPT and len(self._read) > 1:
            self._kept -= self._read.popitem(last=False)[1][1]

    def names(self, lane: str, version: int) -> list[str]:
        """Names of the lane's pieces that have a value as of a version, sorted."""
        return sorted(name for name, held in self._rows.get(lane, {}).items() if held[0].version <= version)

    def versions(self, lane: str, name: str) -> list[PieceRow]:
        """Every version of a piece, oldest first; values may be `UNREAD`."""
        return list(self._rows.get(lane, {}).get(name, ()))

    def rows(self) -> Iterator[PieceRow]:
        """Every version of every piece; values may be `UNREAD`."""
        for pieces in self._rows.values():
            for held in pieces.values():
                yield from held
