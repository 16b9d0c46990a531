"""One connection to SQLite, and the only place where its errors become ours."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fabula.errors import FabulaError, InputError, LibraryBusy, LibraryDamaged, LibraryFull, StoreError

Values = Sequence[Any]

_READ_ERRORS = {266, 522, 8202, 8458}  # IOERR_READ, IOERR_SHORT_READ, IOERR_DATA, IOERR_CORRUPTFS (sqlite.org/rescode.html)
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC, errno.EFBIG}


def translated(error: Exception, place: str) -> FabulaError:
    """Our error for one of sqlite3's or of the operating system's."""
    if isinstance(error, UnicodeEncodeError):
        return InputError(f"A name for {place} holds half of a character (a lone surrogate).", "Correct the text where it was read.")
    if isinstance(error, OverflowError):
        return InputError(f"A whole number for {place} is beyond 64 bits.", "Use a smaller number.")
    if isinstance(error, OSError):
        if error.errno in _NO_ROOM:
            return LibraryFull(f"No room to write {error.filename or place}.")
        return StoreError(
            f"{error.filename or place} cannot be used: {error.strerror}.", "Correct the permissions, or choose another place."
        )
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "decode" in str(error):
        return LibraryDamaged(f"The library {place} is damaged: {error}.")
    if code is None:  # sqlite3's own: the connection is closed, or used from a second thread
        return StoreError(f"The library {place} cannot be used here: {error}.", "Open it again.")
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LibraryBusy(f"Another process keeps the library {place} locked.")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or code in _READ_ERRORS:
        return LibraryDamaged(f"The library {place} is damaged: {error}.")
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOLFS):
        return LibraryFull(f"The library {place} cannot grow: {error}.")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(
            f"The library {place} cannot be written: {error}.",
            "Correct the permissions of the file and its folder, or choose another place.",
        )
    if primary == sqlite3.SQLITE_TOOBIG:
        return InputError(f"A text for the library {place} is longer than one billion bytes.", "Split the text.")
    return StoreError(f"The library {place} refused a request: {error}.", "Run `fabula doctor`.")


_KNOWN = (sqlite3.Error, UnicodeEncodeError, OverflowError)


class Database:
    """A connection. Every statement's text is constant, so that sqlite3 finds it prepared."""

    def __init__(self, path: str, place: str, busy_seconds: float, *, uri: bool = False) -> None:
        self.place = place
        self.path = path
        self.busy_seconds = busy_seconds
        try:
            self.connection = sqlite3.connect(
                path,
                timeout=busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
                uri=uri,
            )
        except sqlite3.Error as error:
            raise translated(error, place) from error

    def all(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except _KNOWN as error:
            raise translated(error, self.place) from error

    def one(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """The first row of a query."""
        try:
            row: tuple[Any, ...] | None = self.connection.execute(sql, values).fetchone()
        except _KNOWN as error:
            raise translated(error, self.place) from error
        return row

    def do(self, sql: str, values: Values = ()) -> int:
        """Run a statement; returns how many rows it changed."""
        try:
            return self.connection.execute(sql, values).rowcount
        except _KNOWN as error:
            raise translated(error, self.place) from error

    def stream(self, sql: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query one by one. Nothing may be written before the last is read."""
        try:
            yield from self.connection.execute(sql, values)
        except _KNOWN as error:
            raise translated(error, self.place) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT; anything raised inside, and a COMMIT that fails, rolls back."""
        if self._inside():
            raise StoreError(
                f"A write to {self.place} is open already.",
                "This is a bug in Fabula or in your extension: close one write before the next.",
            )
        self.do("BEGIN IMMEDIATE")
        try:
            yield
            self.do("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _inside(self) -> bool:
        try:
            return self.connection.in_transaction
        except sqlite3.Error as error:  # closed
            raise translated(error, self.place) from error

    def _roll_back(self) -> None:
        if self.connection.in_transaction:  # after some errors SQLite has rolled back by itself
            self.do("ROLLBACK")

    def until_free(self, act: Callable[[], None]) -> None:
        """Repeat an act for which SQLite does not wait by itself (a change of the journal's mode) until it is not busy."""
        deadline = time.monotonic() + self.busy_seconds
        while not self._done(act, last=time.monotonic() > deadline):
            time.sleep(0.02)

    def _done(self, act: Callable[[], None], *, last: bool) -> bool:
        try:
            act()
        except LibraryBusy:
            if last:
                raise
            return False
        return True

    def close(self) -> None:
        """May be called twice."""
        self.connection.close()
