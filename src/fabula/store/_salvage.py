# ruff: noqa: S608 (SQL is put together from names of our own)
"""Save what can be read of a library whose pages are damaged: every readable row goes into a new file, the damaged one is kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.errors import FabulaError, LibraryDamaged, NotFound, StoreError
from fabula.store._database import Database, translated
from fabula.store._doctor import pages, rebuild_index, repair
from fabula.store._locks import Locks
from fabula.store._opening import foreign_log, open_database
from fabula.store._rows import Finding
from fabula.store._schema import TABLES

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
        LibraryDamaged: nothing can be read of it (its first page is gone, or it never was a library).
    """
    if not path.is_file():
        raise NotFound(f"There is no library {path}.", "Give the path of a library.")
    locks = locks or Locks(path.with_name(path.name + ".locks"), clock)
    locks.refuse_held()
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
    out: list[Finding] = []
    with closing(_source(path, busy_seconds)) as source, closing(open_database(str(new), str(new), busy_seconds, clock())) as target:
        with target.transaction():
            last = _counter(source)
            for name in (*(table.name for table in TABLES.values()), "texts"):
                saved, lost = _table(source, target, name)
                if lost:
                    out.append(
                        Finding(
                            "lost_rows",
                            f"Of {name} {saved} rows could be read, at least {lost} not.",
                            "They are lost, unless a backup has them.",
                        )
                    )
            target.do("UPDATE counter SET value = max(value, ?) WHERE name = 'position'", (last,))
            rebuild_index(target)
            out += [replace(found, message=f"After salvage: {found.message}") for found in repair(target, locks)]
        target.one("PRAGMA wal_checkpoint(TRUNCATE)")
    return out


def _source(path: Path, busy_seconds: float) -> Database:
    source = Database(str(path), str(path), busy_seconds)
    try:
        source.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        source.one("PRAGMA writable_schema = ON")  # SQLite then reads a file that was cut short
        if source.one("SELECT 1 FROM sqlite_master WHERE name = 'log'") is None:
            raise LibraryDamaged(f"{path} has no journal.")
    except FabulaError as error:
        source.close()
        raise LibraryDamaged(
            f"Nothing can be read of {path}: {error.message}", "Restore a backup; the damaged file was left as it is."
        ) from error
    return source


def _counter(source: Database) -> int:
    try:
        found = source.one("SELECT value FROM counter WHERE name = 'position'")
    except StoreError:
        return 0
    return int(found[0]) if found and isinstance(found[0], int) else 0


def _table(source: Database, target: Database, name: str) -> tuple[int, int]:
    """Copy the readable rows of a table; returns how many, and how many are known to be lost."""
    columns = [row[1] for row in target.all(f"PRAGMA table_info({name})")]
    key = columns[0]
    quoted = ", ".join(f'"{column}"' for column in columns)
    insert = f"INSERT OR IGNORE INTO {name}({quoted}) VALUES ({', '.join('?' * len(columns))})"
    seen: set[int] = set()
    lost: set[int] = set()
    for row in _readable(source, name, key, quoted, seen, lost):
        try:
            target.do(insert, row)
        except StoreError:
            lost.add(row[0])
    return len(seen - lost), len(lost)


def _readable(source: Database, name: str, key: str, quoted: str, seen: set[int], lost: set[int]) -> Iterator[tuple[Any, ...]]:
    """Rows from the front up to the first damage, from the back down to the last, and between them those that an index names."""
    for order in ("ASC", "DESC"):
        try:
            for row in source.stream(f"SELECT {quoted} FROM {name} ORDER BY {key} {order}"):
                if row[0] in seen:
                    break
                seen.add(row[0])
                yield row
            else:
                return
        except (LibraryDamaged, StoreError):
            continue
    for number in _named(source, name, key) - seen:
        try:
            found = source.one(f"SELECT {quoted} FROM {name} WHERE {key} = ?", (number,))
        except StoreError:
            found = None
        if found is None:
            lost.add(number)
        else:
            seen.add(number)
            yield found


def _named(source: Database, name: str, key: str) -> set[int]:
    """Keys that the table's indexes name."""
    out: set[int] = set()
    try:
        indexes = [
            row[0]
            for row in source.all(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql NOT LIKE '%WHERE%'", (name,)
            )
        ]
    except StoreError:
        return out
    for index in indexes:
        for order in ("ASC", "DESC"):
            with suppress(StoreError):
                first = source.all(f"PRAGMA index_info({index})")[0][2]
                for row in source.stream(f"SELECT {key} FROM {name} INDEXED BY {index} ORDER BY {first} {order}"):
                    out.add(row[0])
    return out
