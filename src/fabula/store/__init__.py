"""The library: one append-only log of positions, and everything that runs and memories keep in it.

Knows: rows, transactions, what a line of runs sees, full text, vectors as bytes, locks, backup, check, repair and erase.
Does not know: what a step, a memory or a prompt means; no language, no model, no tokens. `open_store` opens a library;
everything else here is the contract (`Store`) and its plain values.
"""

from __future__ import annotations

import time as _time
from collections.abc import Callable as _Callable
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

from fabula.store._codec import text_hash
from fabula.store._port import Among, Between, Condition, Fault, Store, Transaction
from fabula.store._rows import (
    FAR,
    LIBRARY,
    UNREAD,
    Address,
    BegunRow,
    By,
    CallRow,
    FactRow,
    Finding,
    Holder,
    InboxRow,
    IntakeRow,
    LaneRow,
    LogRow,
    PieceRow,
    RaisedRow,
    Reach,
    RecallRow,
    RecordRow,
    Row,
    RunRow,
    Status,
    StepRow,
    TakenRow,
    TextRow,
    VectorRow,
    WithdrawnRow,
)

if _TYPE_CHECKING:
    from fabula.store._sqlite import SQLiteStore

__all__ = [
    "FAR",
    "LIBRARY",
    "UNREAD",
    "Address",
    "Among",
    "BegunRow",
    "Between",
    "By",
    "CallRow",
    "Condition",
    "FactRow",
    "Fault",
    "Finding",
    "Holder",
    "InboxRow",
    "IntakeRow",
    "LaneRow",
    "LogRow",
    "PieceRow",
    "RaisedRow",
    "Reach",
    "RecallRow",
    "RecordRow",
    "Row",
    "RunRow",
    "Status",
    "StepRow",
    "Store",
    "TakenRow",
    "TextRow",
    "Transaction",
    "VectorRow",
    "WithdrawnRow",
    "open_store",
    "salvage",
    "text_hash",
]


def open_store(
    place: str | _Path,
    *,
    fault: Fault = lambda _: None,
    clock: _Callable[[], float] = _time.time,
    busy_seconds: float = 30.0,
) -> Store:
    """Open a library, or make it.

    Args:
        place: a file's path; `:memory:` for a library that ends with the process.
        fault: called at every write boundary (tests).
        clock: wall time, seconds since 1970.
        busy_seconds: how long a write waits for another process's.

    Raises:
        LibraryDamaged: the file is no library, or is damaged; it is left as it was.
        LibraryTooNew: a later Fabula wrote it.
        LibraryBusy, LibraryFull, StoreError: it cannot be used now, or not here.
    """
    from fabula.store._sqlite import SQLiteStore as Opened

    store: SQLiteStore = Opened(place, fault=fault, clock=clock, busy_seconds=busy_seconds)
    return store


def salvage(place: str | _Path, *, clock: _Callable[[], float] = _time.time, busy_seconds: float = 30.0) -> list[Finding]:
    """Save what can be read of a library that cannot be opened; the damaged file is kept beside the new one.

    Raises:
        NotFound: there is no such file.
        Held: a process holds one of its runs.
        LibraryDamaged: nothing can be read of it; it is left as it was.
    """
    from fabula.store._salvage import salvage as saved

    return saved(_Path(place), clock, busy_seconds)
