# ruff: noqa: S608 (SQL is put together from names of our own)
"""Save what can be read of a library whose pages are damaged: every readable row goes into a new file, the damaged one is kept."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

from fabula.errors import InputError, LibraryBusy, LibraryDamaged, LibraryFull, NotFound, StoreError
from fabula.store._carve import Pages, rows, shapes
from fabula.store._database import translated
from fabula.store._doctor import pages, rebuild_index, repair
from fabula.store._foreign import foreign_log
from fabula.store._locks import Locks
from fabula.store._opening import open_database, refuse_foreign
from fabula.store._rows import Finding
from fabula.store._schema import SHIFT, TABLES

BESIDE = ("", "-wal", "-shm")


def stamp(clock: Callable[[], float]) -> str:
    """A moment as part of a file's name."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(clock()))


def beside(path: Path, what: str, clock: Callable[[], float]) -> Path:
    """A name beside a library that nothing has yet."""
    name = f"{path.name}.{what}-{stamp(clock)}"
    for number in range(1, 1000):
        free = path.with_name(name if number == 1 else f"{name}-{number}")
        if not free.exists():
            return free
    raise StoreError(f"There are too many files named {name}.", "Move old copies away.")


def copy_files(path: Path, target: Path) -> None:
    """Copy a library's files as they are, damage and all."""
    try:
        for end in ("", "-wal"):
            source = path.with_name(path.name + end)
            if source.exists():
                shutil.copy2(source, target.with_name(target.name + end))
    except OSError as error:
        raise translated(error, str(target)) from error


def salvage(path: Path, clock: Callable[[], float], busy_seconds: float, locks: Locks | None = None) -> list[Finding]:
    """Put a new library with all readable rows in the place of one that cannot be opened or read.

    Args:
        path: the library's file.
        clock: wall time, for the names of the files that are kept.
        busy_seconds: how long to wait for another process.
        locks: the holds of whoever has it open and asks for this.

    Raises:
        NotFound: there is no file.
        Held: a process holds one of its runs.
        LibraryDamaged: nothing can be read of it, or it is another program's; it is left as it was.
    """
    if not path.is_file():
        raise NotFound(f"There is no library {path}.", "Give the path of a library.")
    locks = locks or Locks(path.with_name(path.name + ".locks"), clock)
    locks.refuse_held()
    refuse_foreign(path)
    kept = beside(path, "damaged", clock)
    out: list[Finding] = []
    if foreign_log(path):
        for end in BESIDE[1:]:
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(kept.with_name(kept.name + end))
        out.append(Finding("foreign_log", f"Beside {path} lay the log of another library.", f"It was moved to {kept.name}-wal."))
        try:
            with closing(open_database(str(path), str(path), busy_seconds, clock())) as database:
                if not pages(database):
                    return out
        except LibraryDamaged:
            kept = beside(path, "damaged", clock)
    new = beside(path, "salvaged", clock)
    try:
        out += _into(path, new, clock, busy_seconds, locks)
        for end in BESIDE:
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(kept.with_name(kept.name + end))
        new.rename(path)
    except OSError as error:
        raise translated(error, str(path)) from error
    finally:
        for end in BESIDE:
            new.with_name(new.name + end).unlink(missing_ok=True)
    out.append(
        Finding(
            "salvaged", f"{path} was damaged.", f"A new library with all readable rows stands in its place; the damaged one is {kept.name}."
        )
    )
    return out


def _into(path: Path, new: Path, clock: Callable[[], float], busy_seconds: float, locks: Locks) -> list[Finding]:
    names = (*(table.name for table in TABLES.values()), "texts")
    saved: Counter[str] = Counter()
    refused = 0
    with ExitStack() as stack:
        target = stack.enter_context(closing(open_database(str(new), str(new), busy_seconds, clock())))
        source = Pages(path, stack)
        tables = shapes(target, names)
        with target.transaction():
            for name, values in rows(source, tables):
                marks = ", ".join("?" * len(values))
                try:
                    saved[name] += max(0, target.do(f"INSERT OR IGNORE INTO {name} VALUES ({marks})", values))
                except (InputError, StoreError) as error:
                    if isinstance(error, LibraryFull | LibraryBusy):
                        raise
                    refused += 1
            if not saved["log"]:
                raise LibraryDamaged(f"Nothing can be read of {path}.", "Restore a backup; the damaged file was left as it is.")
            target.do("UPDATE counter SET value = (SELECT max(n) >> ? FROM log) WHERE name = 'position'", (SHIFT,))
            rebuild_index(target)
            out = [replace(found, message=f"After salvage: {found.message}") for found in repair(target, locks)]
        target.one("PRAGMA wal_checkpoint(TRUNCATE)")
    message = f"{saved.total()} rows could be read: {', '.join(f'{count} of {name}' for name, count in sorted(saved.items()))}."
    message += f" {refused} were damaged." if refused else ""
    return [Finding("saved_rows", message, "They are in the new library.", serious=False), *out]
