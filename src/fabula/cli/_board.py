"""Where a person watches a reading: a map of its chunks that light up as they are read, or, where there is no terminal, plain lines.

Everything goes to stderr, so that the answer on stdout can go into a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from fabula.cli._fetching import Fetching
from fabula.cli._interrupt import signals
from fabula.cli._output import console, is_plain, number, printable, say
from fabula.cli._tally import DOING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

    from fabula.cli._tally import State, Tally
    from fabula.runs import Progress

_FRAME = 0.1
"""Seconds between two drawings."""
_WIDEST = 64
"""Cells of a line of the map."""
_ROWS = 3
"""Lines of the map; where more chunks are there, a cell stands for several."""
_WIDE_CHUNKS = 16
"""Up to so many chunks have several cells each."""
_SHADES = " ░▒▓█"
_LOOKS: dict[State, tuple[str, str]] = {
    "waiting": ("░", "dim"), "reading": ("▓", "bold cyan"), "glanced": ("▒", "green"), "read": ("█", "green"), "failed": ("×", "bold red"),
}  # fmt: skip
_LINES = 20
"""A plain line after each chunk up to so many chunks, else after each twentieth of them."""
_MOST_NOTES = 5


class Board(Protocol):
    """Shows how far a reading is."""

    fetching: Fetching

    def status(self, text: str) -> None:
        """What is being done, where nothing is counted yet."""

    def begin(self, tally: Tally) -> None:
        """Count from here on."""

    def __call__(self, event: Progress) -> None:
        """Take an event of the run."""

    def close(self) -> None:
        """Leave the screen to others. It may be begun again."""


class _Notes:
    """What a person should know, each once, and no more than a few."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def new(self, text: str) -> bool:
        if text in self._said or len(self._said) >= _MOST_NOTES:
            return False
        self._said.add(text)
        return True


class PlainBoard:
    """Lines on stderr."""

    def __init__(self) -> None:
        self.fetching = Fetching(lambda _: None, say)
        self._tally: Tally | None = None
        self._said = 0
        self._failures = 0
        self._notes = _Notes()

    def status(self, text: str) -> None:
        """Nothing: a line that moves is for terminals."""

    def begin(self, tally: Tally) -> None:
        """Count from here on."""
        self._tally, self._said, self._failures = tally, tally.read, len(tally.failures)

    def __call__(self, event: Progress) -> None:
        """A line where something is done."""
        tally = self._tally
        if tally is None:
            return
        tally(event)
        kind = type(event).__name__
        if kind == "Noted":
            if self._notes.new(event.text):  # type: ignore[union-attr]
                say(event.text)  # type: ignore[union-attr]
        elif kind == "StepDone":
            for chunk, why in tally.failures[self._failures :]:
                say(f"Chunk {chunk + 1} ({tally.name(chunk)}) could not be read: {why}.")
            self._failures = len(tally.failures)
            every = 1 if tally.chunks <= _LINES else tally.chunks / _LINES
            if tally.read > self._said and (int(tally.read / every) > int(self._said / every) or tally.read == tally.chunks):
                self._said = tally.read
                say(f"{tally.where()} · {tally.spent()}")

    def close(self) -> None:
        """Nothing to clear."""


class LiveBoard:
    """A map of the chunks at the foot of a terminal, and below it what is being read and what was spent."""

    def __init__(self, width: int | None = None) -> None:
        from rich.live import Live

        self.fetching = Fetching(self.status, self.status)
        self._console = console(sys.stderr)
        self._width = max(8, min(_WIDEST, (width or self._console.width) - 4))
        self._tally: Tally | None = None
        self._status = ""
        self._failures, self._notes, self._drawn = 0, _Notes(), 0.0
        self._live: Live | None = None

    def __rich_console__(self, *_: Console | ConsoleOptions) -> Iterator[RenderableType]:
        """The map and what stands below it."""
        from rich.text import Text

        if self._tally is None:
            yield Text(f"  {printable(self._status)}", style="dim", no_wrap=True, overflow="ellipsis")
            return
        yield Text()
        yield from draw(self._tally, self._width)
        yield Text(f"  {self._tally.where()}", no_wrap=True, overflow="ellipsis")
        for text in (self._status or self._tally.now(), self._tally.spent()):
            yield Text(f"  {printable(text)}", style="dim", no_wrap=True, overflow="ellipsis")

    def status(self, text: str) -> None:
        """Renew the line."""
        self._status = text
        self.draw()

    def begin(self, tally: Tally) -> None:
        """Draw the map."""
        self._tally, self._failures, self._status = tally, len(tally.failures), ""
        self.draw(now=True)

    def __call__(self, event: Progress) -> None:
        """Take an event and draw."""
        if self._tally is None:
            if type(event).__name__ == "Asked":
                self.status(DOING.get(event.purpose, event.purpose))  # type: ignore[union-attr]
            return
        self._tally(event)
        if type(event).__name__ in ("Wrote", "Answered"):  # the model is there
            self._status = ""
        if type(event).__name__ == "Noted" and self._notes.new(event.text):  # type: ignore[union-attr]
            self._say(event.text)  # type: ignore[union-attr]
        for chunk, why in self._tally.failures[self._failures :]:
            self._say(f"Chunk {chunk + 1} ({self._tally.name(chunk)}) could not be read: {why}.", "yellow")
        self._failures = len(self._tally.failures)
        self.draw()

    def _say(self, text: str, style: str = "dim") -> None:
        from rich.text import Text

        self._console.print(Text(printable(text), style=style))

    def draw(self, *, now: bool = False) -> None:
        """Draw, if the last drawing is some time ago."""
        from rich.live import Live

        if self._live is None:
            self._live = Live(self, console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        moment = time.monotonic()
        if now or moment - self._drawn > _FRAME:
            self._drawn = moment
            self._live.refresh()

    def close(self) -> None:
        """Clear the map and give the cursor back."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._tally, self._status = None, ""


def draw(tally: Tally, width: int) -> list[Text]:
    """The map of a reading: a cell a chunk, several where there are few, one for several where there are many."""
    from rich.text import Text

    chunks = tally.chunks
    if chunks <= _WIDE_CHUNKS:
        wide = max(1, min(4, width // chunks - 1))
        line = Text("  ")
        for state in tally.states:
            sign, style = _LOOKS[state]
            line.append(sign * wide, style)
            line.append(" ")
        return [line]
    cells = [_cell(tally.states[a:b]) for a, b in _shares(chunks, width * _ROWS)]
    width = -(-len(cells) // -(-len(cells) // width))  # lines of equal length
    rows = [cells[at : at + width] for at in range(0, len(cells), width)]
    return [Text.assemble("  ", *(("".join(s for s, _ in run), style) for style, run in groupby(row, lambda c: c[1]))) for row in rows]


def _shares(chunks: int, most: int) -> Iterator[tuple[int, int]]:
    """Equal shares of the chunks, one a cell."""
    cells = min(chunks, most)
    for cell in range(cells):
        yield chunks * cell // cells, chunks * (cell + 1) // cells


def _cell(states: list[State]) -> tuple[str, str]:
    if len(states) == 1:
        return _LOOKS[states[0]]
    if "failed" in states:
        return _LOOKS["failed"]
    if "reading" in states:
        return _LOOKS["reading"]
    done = states.count("read")
    if not done:
        return _LOOKS["glanced" if "glanced" in states else "waiting"]
    return _SHADES[max(1, 4 * done // len(states))], "green"


def board(*, plain: bool = False) -> Board:
    """The board that fits where stderr goes."""
    return PlainBoard() if plain or is_plain(sys.stderr) else LiveBoard()


@asynccontextmanager
async def ticking(shown: Board) -> AsyncIterator[None]:
    """Inside, a board is drawn again and again, so that the time that is left goes on while a model thinks."""

    async def tick(live: LiveBoard) -> None:
        while True:
            await asyncio.sleep(0.5)
            live.draw()

    task = asyncio.create_task(tick(shown)) if isinstance(shown, LiveBoard) else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def gathering(shown: Board) -> Callable[[str], None]:
    """Tells a board how many documents were read so far while sources are gathered; stops it where a person wants to."""
    count = 0

    def tell(name: str) -> None:
        nonlocal count
        if signals.count:  # gathering leaves the loop no time to cancel it
            raise asyncio.CancelledError
        count += 1
        shown.status(f"{number(count)} document{'s' if count != 1 else ''}: {name}")

    return tell
