"""The adapters over which the contract runs. A further one joins by one more entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.store import Store, open_store

Make = Callable[..., Store]


@pytest.fixture(params=["sqlite", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens a new, empty library with the options of `open_store`."""
    opened: list[Store] = []

    def new(**options: object) -> Store:
        place = ":memory:" if request.param == "memory" else str(tmp_path / f"library {len(opened)}.db")
        store = open_store(place, **options)  # type: ignore[arg-type]
        opened.append(store)
        return store

    yield new
    for store in opened:
        store.close()


@pytest.fixture
def store(make: Make) -> Store:
    return make()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a library may be made."""
    return tmp_path / "fabula.db"
