"""The embedded server as seen from this process: a child process that is started, watched, restarted and stopped.

Everything here is blocking and guarded by a lock, so that any event loop (or several, one after another) may use one server; the
asynchronous face runs it in threads.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import queue
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fabula.errors import EmbeddedFailed

_LOAD_SECONDS = 600.0
"""Longest time to load a model; a cold disk may need minutes for gigabytes."""
_RESTARTS = 3
_RESTART_WINDOW_SECONDS = 600.0
"""More than `_RESTARTS` restarts within so many seconds are one too many."""
_LOG_BYTES = 256_000
"""Size at which the log is turned over; one older log is kept."""
_STOP_SECONDS = 5.0


def default_threads() -> int:
    """The cores that this process may use, at most 8: reading weights is bound by memory beyond that."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, 8))


@dataclass(frozen=True)
class ServerSettings:
    """What one server is started with. `window`: tokens per slot; `cache_mib`: memory (MiB) for prompts whose slot went to others."""

    path: Path
    name: str
    window: int = 8192
    slots: int = 2
    threads: int = field(default_factory=default_threads)
    cache_mib: int = 256
    template: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None

    def identity(self) -> str:
        """Equal for settings that one server can serve."""
        return json.dumps(
            [str(self.path), self.name, self.window, self.slots, self.threads, self.cache_mib, dict(self.template)], sort_keys=True
        )


class EmbeddedServer:
    """One child process with one model. `start` may be called before every request: it returns at once while the child lives."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.key = secrets.token_urlsafe(24)
        self.restarts = 0
        """How often a dead child was replaced."""
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._address = ""
        self._deaths: deque[float] = deque(maxlen=_RESTARTS)
        self._tail: deque[str] = deque(maxlen=30)
        self._drain: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child, or None before the start and after the stop."""
        return None if self._child is None else self._child.pid

    def alive(self) -> bool:
        """Whether the child is running now."""
        return self._child is not None and self._child.poll() is None

    async def start(self) -> str:
        """Start the child, or replace a dead one, and wait until the model is loaded.

        Returns:
            The address, `http://127.0.0.1:PORT`.

        Raises:
            EmbeddedFailed: the child ended while loading, did not load within 600 s, or died more than 3 times in 600 s.
        """
        if self.alive() and self._address:
            return self._address
        return await asyncio.to_thread(self.start_blocking)

    async def healthy(self) -> bool:
        """Whether the child answers its health check within 5 s."""
        if not self.alive():
            return False
        import httpx2

        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=5.0) as client:
                return (await client.get(self._address + "/health")).status_code == 200
        except httpx2.HTTPError:
            return False

    async def stop(self) -> None:
        """End the child. The next `start` begins anew."""
        await asyncio.to_thread(self.stop_blocking)

    def start_blocking(self) -> str:
        """As `start`, for a thread."""
        with self._lock:
            if self.alive() and self._address:
                return self._address
            if self._child is not None:
                self._count_death()
                _close_pipe(self._child)
            self._launch()
            return self._address

    def stop_blocking(self) -> None:
        """As `stop`, for a thread."""
        if os.getpid() != self._owner:  # a fork of the owner must not end its server
            return
        with self._lock:
            child, self._child, self._address = self._child, None, ""
            if child is None:
                return
            _close_pipe(child)
            try:
                child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def last_words(self) -> str:
        """The last lines of the log that say what went wrong."""
        if self._drain is not None:
            self._drain.join(1.0 if not self.alive() else 0.0)
        lines = list(self._tail)
        errors = [line.partition(" E ")[2].strip() for line in lines if " E " in line]
        return " | ".join(errors[:4] or lines[-4:])

    def _count_death(self) -> None:
        now = time.monotonic()
        recent = [moment for moment in self._deaths if now - moment < _RESTART_WINDOW_SECONDS]
        if len(recent) >= _RESTARTS:
            raise EmbeddedFailed(
                f"The embedded server died {len(recent) + 1} times within {_RESTART_WINDOW_SECONDS / 60:.0f} minutes. {self._ending()}",
                "Choose a smaller model with `fabula model use`, or free some memory" + self._see_log() + ".",
                restarts=self.restarts,
            )
        self._deaths.append(now)
        self.restarts += 1

    def _launch(self) -> None:
        settings = self.settings
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "fabula.models._embedded_child"],
            env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child, self._address = child, ""
        self._tail.clear()
        self._drain = threading.Thread(target=_keep_log, args=(child.stderr, settings.log, self._tail), daemon=True)
        self._drain.start()
        body = {
            "path": str(settings.path), "name": settings.name, "window": settings.window, "slots": settings.slots,
            "threads": settings.threads, "cache_mib": settings.cache_mib, "template": dict(settings.template), "key": self.key,
        }  # fmt: skip
        with suppress(BrokenPipeError):  # it ended already: what it said is read below
            child.stdin.write(json.dumps(body).encode() + b"\n")
            child.stdin.flush()
        self._address = self._await_address(child)

    def _await_address(self, child: subprocess.Popen[bytes]) -> str:
        said: queue.Queue[bytes] = queue.Queue()
        assert child.stdout is not None
        threading.Thread(target=_read_line, args=(child.stdout, said), daemon=True).start()
        try:
            line = said.get(timeout=_LOAD_SECONDS)
        except queue.Empty:
            child.kill()
            child.wait()
            raise EmbeddedFailed(f"The model {self.settings.name} was not loaded within {_LOAD_SECONDS:.0f} s.") from None
        facts = json.loads(line) if line.strip() else {}
        if "address" in facts:
            return str(facts["address"])
        child.wait()
        raise EmbeddedFailed(
            f"The embedded server could not load {self.settings.path.name}. {self._ending()} {self.last_words()}".strip(),
            "Run `fabula model check`; choose a smaller model with `fabula model use` if memory is short" + self._see_log() + ".",
        )

    def _ending(self) -> str:
        code = None if self._child is None else self._child.poll()
        if code == -9:
            return "It was killed (signal 9), most likely because the machine's memory was short."
        if code is not None and code < 0:
            return f"It ended with signal {-code}."
        return "" if code is None else f"It ended with status {code}."

    def _see_log(self) -> str:
        return "" if self.settings.log is None else f" (its log: {self.settings.log})"


def _close_pipe(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError):
        child.stdin.close()


def _read_line(stream: IO[bytes], said: queue.Queue[bytes]) -> None:
    with stream:
        said.put(stream.readline())


def child_environment() -> dict[str, str]:
    """The environment in which a child process finds the same `fabula` as this one, wherever it was imported from."""
    root = str(Path(__file__).parents[2])
    paths = [root, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _keep_log(stream: IO[bytes], log: Path | None, tail: deque[str]) -> None:
    """Copy the child's log into a file of bounded size and keep its last lines."""
    with stream:
        if log is None:
            for line in stream:
                tail.append(line.decode("utf-8", "replace").rstrip())
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        out = log.open("ab")
        try:
            for line in stream:
                tail.append(line.decode("utf-8", "replace").rstrip())
                if out.tell() + len(line) > _LOG_BYTES:
                    out.close()
                    log.replace(log.with_suffix(".old.log"))
                    out = log.open("ab")
                out.write(line)
                out.flush()
        finally:
            out.close()


# One server per process for all who use the same model

_registry: dict[str, tuple[EmbeddedServer, int]] = {}
_registry_lock = threading.Lock()


def borrow_server(settings: ServerSettings) -> EmbeddedServer:
    """The server of these settings, shared by all who borrow it. Give it back with `return_server`."""
    with _registry_lock:
        if not _registry:
            atexit.register(_stop_all)
        server, users = _registry.get(settings.identity(), (None, 0))
        if server is None:
            server = EmbeddedServer(settings)
        _registry[settings.identity()] = (server, users + 1)
        return server


async def return_server(server: EmbeddedServer) -> None:
    """Stop the server if nobody else has borrowed it."""
    with _registry_lock:
        found, users = _registry.get(server.settings.identity(), (None, 0))
        if found is not server:
            return
        if users > 1:
            _registry[server.settings.identity()] = (server, users - 1)
            return
        del _registry[server.settings.identity()]
    await server.stop()


def _stop_all() -> None:
    for server, _ in list(_registry.values()):
        server.stop_blocking()
