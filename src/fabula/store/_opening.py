"""Open a library: tell a library from any other file, make a new one, bring an older one up to date."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from fabula.errors import LibraryDamaged, LibraryTooNew, StoreError
from fabula.store._database import Database, translated
from fabula.store._foreign import foreign_log
from fabula.store._schema import APPLICATION, MIGRATIONS, least_version

_MAGIC = b"SQLite format 3\x00"
_WAL_LIMIT = 16 * 1024 * 1024
_CACHE_KIB = 16_000


def open_database(path: str, place: str, busy_seconds: float, clock_now: float) -> Database:
    """A connection to an up-to-date library.

    Raises:
        LibraryDamaged: the file is no library; it is left as it was.
        LibraryTooNew: a later Fabula wrote it; it is left as it was.
        LibraryBusy, LibraryFull, StoreError: it cannot be used now, or not here.
    """
    if not least_version():
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old for a library (3.37 is needed).", "Use a Python that brings a newer SQLite."
        )
    memory = path == ":memory:"
    if not memory:
        _prepare(Path(path), place)
    database = Database(path, place, busy_seconds)
    try:
        if not memory:
            database.until_free(lambda: _mode(database))
        database.do("PRAGMA synchronous = FULL")
        database.do("PRAGMA fullfsync = ON")  # macOS, where an ordinary sync leaves the data in the disk's cache
        database.do("PRAGMA secure_delete = FAST")
        database.do(f"PRAGMA cache_size = -{_CACHE_KIB}")
        database.do(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        _migrate(database, Path(path), memory, clock_now)
    except BaseException:
        database.close()
        raise
    return database


def _mode(database: Database) -> None:
    found = database.one("PRAGMA journal_mode = WAL")
    if found != ("wal",):
        raise StoreError(
            f"The library {database.place} cannot keep its log beside it (journal mode {found and found[0]}).",
            "Move it to a local disk; network folders cannot hold a library.",
        )


def _prepare(path: Path, place: str) -> None:
    """Make the folder; refuse a file that is no library before anything writes to it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreError(f"{place} is a folder, not a library.", "Give the path of a file.")
        if not path.exists():
            return
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise translated(error, place) from error
    if not header:
        return
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise LibraryDamaged(
            f"{place} is not a library: it does not begin as one. It was left as it is.",
            f"Give another path, or move {place} away; if it was a library once, restore a backup or run `fabula doctor`.",
        )
    application = int.from_bytes(header[68:72], "big")
    if application == APPLICATION:
        if foreign_log(path):
            raise LibraryDamaged(
                f"Beside {place} lies the log of another library ({path.name}-wal). Both were left as they are.",
                f"Run `fabula doctor`, or move {path.name}-wal and {path.name}-shm away.",
            )
        return
    if application or _tables(path, place):
        raise _foreign(place)


def refuse_foreign(path: Path) -> None:
    """Raise LibraryDamaged where a file is a database with another program's mark, or with none."""
    with path.open("rb") as file:
        header = file.read(100)
    if header.startswith(_MAGIC) and header[68:72] != APPLICATION.to_bytes(4, "big"):
        raise _foreign(str(path))


def _foreign(place: str) -> LibraryDamaged:
    return LibraryDamaged(f"{place} is a database of another program. It was left as it is.", "Give another path for the library.")


def _tables(path: Path, place: str) -> bool:
    """Whether the file itself holds tables, looked at without touching it (a library just made has its tables in the log only)."""
    database = Database(f"{path.resolve().as_uri()}?immutable=1", place, 5.0, uri=True)
    with closing(database.connection):
        return database.one("SELECT 1 FROM sqlite_master LIMIT 1") is not None


def _applied(database: Database) -> list[str]:
    if database.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'") is None:
        return []
    return [row[0] for row in database.all("SELECT name FROM migrations ORDER BY name")]


def _migrate(database: Database, path: Path, memory: bool, clock_now: float) -> None:
    known = [name for name, _ in MIGRATIONS]
    applied = _applied(database)
    if applied == known:
        return
    if not applied and database.one("SELECT 1 FROM sqlite_master LIMIT 1") is not None:
        raise _foreign(database.place)
    unknown = [name for name in applied if name not in known]
    if unknown:
        raise LibraryTooNew(f"{database.place} was written by a later version of Fabula ({unknown[-1]}).")
    if applied and not memory:
        copy = path.with_name(f"{path.name}.before-{known[len(applied)]}")
        if not copy.exists():
            copy_to(database, copy)
    with database.transaction():
        applied = _applied(database)  # another process may have been faster
        for name, act in MIGRATIONS:
            if name not in applied:
                act(database)
                database.do("INSERT INTO migrations VALUES (?, ?)", (name, clock_now))
        database.do(f"PRAGMA application_id = {APPLICATION}")
        if not applied:
            database.do("INSERT INTO counter VALUES ('library', ?)", (_number(),))
    if not memory:
        database.one("PRAGMA wal_checkpoint(PASSIVE)")


def _number() -> int:
    """A library's own number, which tells it from others and from its copies."""
    return 1 + secrets.randbelow(2**62)


def copy_to(database: Database, target: Path) -> int:
    """A copy of the library while it is in use; returns bytes."""
    try:
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            database.connection.backup(copy)  # in one go: readers keep no writer waiting
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()  # one file, nothing beside it
            copy.execute("UPDATE counter SET value = ? WHERE name = 'library'", (_number(),))  # the original's log is not this one's
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise translated(error, str(target)) from error
    return target.stat().st_size
