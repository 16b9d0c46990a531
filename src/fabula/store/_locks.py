"""Who holds a run: an OS file lock per run in a folder beside the library, freed by the kernel when its holder dies.

The lock is the lock on the file, never the file's being there. The file holds who locked it, for others to read. A child
process does not inherit a hold: not by exec (the files are closed there), not by fork (they are closed in the child, which
leaves the parent's lock in force).
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
import weakref
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from fabula.errors import Held
from fabula.store._database import translated
from fabula.store._rows import Holder

_TRIES, _PAUSE = 6, 0.02
"""Someone who asks for the holder takes the lock for a moment, so a refusal is believed only when it lasts (0.1 s)."""

if sys.platform == "win32":
    import msvcrt

    _FAR_BYTE = 1 << 30  # a locked byte cannot be read by others, so it lies behind what they read

    def _lock(file: int) -> bool:
        os.lseek(file, _FAR_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def file_name(run: str) -> str:
    """The lock file's name for a run."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", run):
        return f"{run}.lock"
    return f"~{sha256(run.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.lock"


_all: weakref.WeakSet[Locks] = weakref.WeakSet()


class Locks:
    """The holds of one open library. `folder` None (a library in memory): holds are known to this library only."""

    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._files: dict[str, int] = {}
        self._holders: dict[str, Holder] = {}
        _all.add(self)

    def hold(self, run: str) -> None:
        """Take the lock. Raises Held."""
        if run in self._holders:
            return
        holder = Holder(os.getpid(), self._clock(), socket.gethostname())
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                file = self._take(run)
            except OSError as error:
                raise translated(error, str(self.folder)) from error
            try:
                os.ftruncate(file, 0)
                os.lseek(file, 0, os.SEEK_SET)
                os.write(file, json.dumps({"process": holder.process, "since": holder.since, "host": holder.host}).encode())
            except OSError as error:
                os.close(file)
                raise translated(error, str(self.folder)) from error
            self._files[run] = file
        self._holders[run] = holder

    def _take(self, run: str) -> int:
        assert self.folder is not None
        path = self.folder / file_name(run)
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE)
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)  # Python opens files close-on-exec
            if _lock(file) and _same(file, path):
                return file
            os.close(file)
        raise _held(run, _read(path) or Holder(0, 0.0))

    def release(self, run: str) -> None:
        """Give the lock back and take its file away."""
        self._holders.pop(run, None)
        file = self._files.pop(run, None)
        if file is None or self.folder is None:
            return
        path = self.folder / file_name(run)
        if sys.platform != "win32":
            path.unlink(missing_ok=True)  # while locked, so that nobody can hold a file that is gone without noticing
        os.close(file)

    def holder(self, run: str) -> Holder | None:
        """Who holds the run now."""
        if run in self._holders:
            return self._holders[run]
        if self.folder is None:
            return None
        path = self.folder / file_name(run)
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translated(error, str(path)) from error
        try:
            if _lock(file):
                return None
            return _read(path) or Holder(0, 0.0)
        finally:
            os.close(file)

    def refuse_held(self) -> None:
        """Raise Held where another process, or another open library, holds any run: the file is about to be replaced."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("*.lock")):
            if path.stem not in {file_name(run).removesuffix(".lock") for run in self._files} and not self._free(path, remove=False):
                raise _held(path.stem, _read(path) or Holder(0, 0.0))

    def leftover(self) -> list[Path]:
        """Lock files that nobody holds: their holders were killed. Harmless."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return [path for path in sorted(self.folder.glob("*.lock")) if self._free(path, remove=False)]

    def sweep(self) -> list[Path]:
        """Remove the lock files that nobody holds."""
        return [path for path in self.leftover() if self._free(path, remove=True)]

    def _free(self, path: Path, *, remove: bool) -> bool:
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            free = _lock(file) and _same(file, path)
            if free and remove and sys.platform != "win32":
                path.unlink(missing_ok=True)
            return free
        finally:
            os.close(file)

    def close(self) -> None:
        """Give all locks back."""
        for run in list(self._holders):
            self.release(run)

    def forget(self) -> None:
        """In a forked child: close the files without unlocking, so that the parent's locks stay."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()
        self._holders.clear()


def _held(run: str, holder: Holder) -> Held:
    who = f"process {holder.process or 'unknown'} on {holder.host or 'this machine'}"
    return Held(
        f"The run {run} is held by {who} since {_moment(holder.since)}.", process=holder.process, since=holder.since, host=holder.host
    )


def _same(file: int, path: Path) -> bool:
    """Whether the locked file is still the one at the path (its last holder takes it away)."""
    try:
        there, own = path.stat(), os.fstat(file)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


def _read(path: Path) -> Holder | None:
    for _ in range(3):
        try:
            found = json.loads(path.read_text())
            return Holder(int(found["process"]), float(found["since"]), str(found["host"]))
        except (OSError, ValueError, KeyError, TypeError):
            time.sleep(_PAUSE)  # it was locked a moment ago and is being written
    return None


def _moment(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))


def _after_fork() -> None:
    for locks in list(_all):
        locks.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
