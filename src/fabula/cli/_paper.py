"""Two sheets on which a story appears while it is written: a terminal with a status line below, and plain lines."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from fabula.cli._flow import Flow
from fabula.cli._output import console, is_plain, printable, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

STYLES = {"title": "bold", "passage": "", "setting": "dim", "plan": "italic cyan", "cast": "dim", "note": "dim", "warning": "yellow"}
"""Kind of block → how it looks on a terminal with colours."""
LABELS = {"setting": "Setting: ", "plan": "Plan: ", "cast": "Cast: "}
_FRAME = 0.03
"""Seconds between two drawings of a line that grows."""
_WIDEST = 92
"""Cells of a line of prose; longer ones tire the eye."""


class Paper(Protocol):
    """Where blocks of text appear as they grow."""

    takes_back: bool
    """A person looks on, who understands that what was shown may be refused and come again."""

    def begin(self, kind: str) -> None:
        """Start a block; the one before it ends."""

    def add(self, text: str) -> None:
        """More text of the block."""

    def end(self) -> None:
        """The block is whole."""

    def status(self, text: str) -> None:
        """Where the work is, replacing what was said before."""

    def step(self, text: str) -> None:
        """A step is done; said once where there is no status line."""

    def close(self) -> None:
        """Take the status line away."""


class Lines:
    """Story on stdout, all else on stderr, nothing but text.

    Args:
        story: whether the story goes to stdout at all (with --json it does not).
        quiet: say nothing on stderr either.
    """

    takes_back = False

    def __init__(self, *, story: bool = True, quiet: bool = False) -> None:
        self._story, self._quiet = story, quiet
        self._kind = ""
        self._held = ""

    def begin(self, kind: str) -> None:
        """Start a block."""
        self.end()
        self._kind = kind

    def add(self, text: str) -> None:
        """The story's prose goes out at once; other blocks when they are whole."""
        if self._kind == "passage" and self._story:
            sys.stdout.write(text)
            sys.stdout.flush()
        self._held += text

    def end(self) -> None:
        """End the line and leave one empty."""
        kind, held, self._kind, self._held = self._kind, self._held.strip(), "", ""
        if not held:
            return
        if kind == "passage":
            if self._story:
                sys.stdout.write("\n\n")
                sys.stdout.flush()
        elif kind == "title":
            if self._story:
                sys.stdout.write(f"{held}\n\n")
                sys.stdout.flush()
        elif not self._quiet:
            say(LABELS.get(kind, "") + held)

    def status(self, text: str) -> None:
        """Nothing: a line that moves is for terminals."""

    def step(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            say(text)

    def close(self) -> None:
        """End the block."""
        self.end()


class _Echo:
    """Whether the terminal shows what is typed: not while lines are drawn, since it would move the cursor under them."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def off(self) -> None:
        """Show nothing that is typed; it is read later all the same."""
        if not sys.stdin.isatty():
            return
        try:
            import termios
        except ImportError:  # not on Windows, where the console keeps the cursor itself
            return
        settings = termios.tcgetattr(sys.stdin)
        self._before = list(settings)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)

    def restore(self) -> None:
        """As it was."""
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
            self._before = None


class Terminal:
    """Everything on one terminal: whole lines scroll up, the growing line and the status stay at the bottom.

    All drawing is done by whoever calls, under one lock: rich's own refreshing thread may draw a line twice.
    """

    takes_back = True

    def __init__(self) -> None:
        from rich.live import Live

        self._console = console(sys.stdout)
        self._flow = Flow(min(_WIDEST, self._console.width - 1))
        self._kind = ""
        self._status = ""
        self._drawn = 0.0
        self._lock = threading.RLock()
        self._echo = _Echo()
        self._live = Live(self, console=self._console, transient=True, auto_refresh=False)

    def __rich_console__(self, *_: Any) -> Iterator[RenderableType]:
        """The growing line and the status."""
        from rich.text import Text

        if self._flow.rest:
            yield Text(printable(self._flow.rest), style=STYLES.get(self._kind, ""), no_wrap=True, overflow="crop")
        if self._status:
            yield Text("")
            yield Text(self._status, style="dim", no_wrap=True, overflow="ellipsis")

    def begin(self, kind: str) -> None:
        """Start a block."""
        with self._lock:
            self.end()
            self._kind = kind
            if kind in LABELS:
                self._flow.add(LABELS[kind])

    def add(self, text: str) -> None:
        """More text of the block."""
        with self._lock:
            lines = self._flow.add(text)
            if lines:
                self._out(lines)
            else:
                self._draw()

    def end(self) -> None:
        """The block is whole; an empty line follows."""
        with self._lock:
            rest = self._flow.end()
            if rest and rest != [LABELS.get(self._kind, "").strip()]:
                self._out([*rest, ""])
            self._kind = ""

    def status(self, text: str) -> None:
        """Renew the status line."""
        with self._lock:
            self._status = text
            self._draw(now=True)

    def step(self, text: str) -> None:
        """The status line says it."""
        self.status(text)

    def close(self) -> None:
        """Take the status line away and give the cursor back."""
        with self._lock:
            self.end()
            self._status = ""
            if self._live.is_started:
                self._live.stop()
                self._echo.restore()

    def _draw(self, *, now: bool = False) -> None:
        if not self._live.is_started:
            self._echo.off()
            self._live.start()
        moment = time.monotonic()
        if now or moment - self._drawn > _FRAME:
            self._drawn = moment
            self._live.refresh()

    def _out(self, lines: list[str]) -> None:
        from rich.text import Text

        for line in lines:
            self._console.print(Text(printable(line), style=STYLES.get(self._kind, "")), no_wrap=True, overflow="fold", crop=False)


def sheet(*, story: bool = True) -> Paper:
    """The sheet that fits where the output goes; `story` False: stdout is kept free (for --json)."""
    return Lines(story=story) if not story or is_plain(sys.stdout) else Terminal()
