"""Ctrl-C and SIGTERM: the first stops cleanly once the journal is safe, the second at once.

While a command works, the first signal cancels its task: steps in flight end, what was streamed stays in the journal as a draft, the
run is let go. While it waits for a line of input, the first signal ends the waiting.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

STOPPED = 130
"""Exit code of an interrupted command."""


class Interrupted(Exception):
    """The person (or the system) wants the command to end. Everything is safe."""


class OutputClosed(Exception):
    """Whoever read our output is gone."""


class Signals:
    """What the handlers know of the running command."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting = False
        """A line of input is awaited."""
        self.task: asyncio.Task[Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.before_exit: Callable[[], None] | None = None
        """Restores the terminal when the second signal ends the process at once."""

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of both signals."""
        self.count += 1
        if self.count > 1:
            self._now()
        if self.waiting or self.task is None or self.loop is None:
            raise KeyboardInterrupt
        self.loop.call_soon_threadsafe(_cancel, self.task)

    def _now(self) -> None:
        try:
            if self.before_exit is not None:
                self.before_exit()
            sys.stderr.write("\nStopped at once; what was committed is safe.\n")
            sys.stderr.flush()
        finally:
            os._exit(STOPPED)

    @contextmanager
    def awaiting_input(self) -> Iterator[None]:
        """Inside, a signal raises Interrupted."""
        self.waiting = True
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            self.waiting = False


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


signals = Signals()
"""Of this process; made new by `catching`."""


@contextmanager
def catching() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM inside; only the main thread can."""
    signals.__init__()  # type: ignore[misc]
    kinds = [signal.SIGINT, signal.SIGTERM]
    try:
        before = {kind: signal.signal(kind, signals.handle) for kind in kinds}
    except ValueError:  # not the main thread: whoever owns it handles signals
        before = {}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """Run a command's coroutine to its end.

    Raises:
        Interrupted: a signal cancelled it; its `finally` blocks have run.
    """
    import asyncio

    async def inside() -> T:
        signals.task, signals.loop = asyncio.current_task(), asyncio.get_running_loop()
        if signals.count:  # a signal between the start of the program and now
            raise asyncio.CancelledError
        try:
            return await main()
        finally:
            signals.task = signals.loop = None

    try:
        with asyncio.Runner() as runner:
            return runner.run(inside())
    except asyncio.CancelledError:
        raise Interrupted from None
