"""A library in a temporary folder, with one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fabula.memory import Memory, Record, View, added
from fabula.store import Reach, RecordRow, RunRow, Store, VectorRow, open_store

VIEW = View((Reach("run"),))


class Shelf:
    """A store with what tests do to it."""

    def __init__(self, store: Store):
        self.store = store

    def write(self, rows: Iterable[RecordRow | VectorRow], run: str = "run") -> int:
        with self.store.write(run, "commit") as tx:
            for row in rows:
                tx.add(row)
            return tx.pos

    def add(self, *records: Record) -> int:
        return self.write([added(record) for record in records])

    async def keep(self, memory: Memory, *records: Record) -> int:
        vectors = await memory.vectors_for(records)
        return self.write([*map(added, records), *vectors])


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    store = open_store(tmp_path / "library.db")
    with store.write("run", "create") as tx:
        tx.add(RunRow("run", "novel", "A test", "s", "s", {}))
    yield Shelf(store)
    store.close()
