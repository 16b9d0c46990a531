"""What is said while a model's weights are fetched and loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fabula.cli._output import size

if TYPE_CHECKING:
    from fabula.models import Progress as News

_BAR = 16
"""Cells of a bar."""


class Fetching:
    """Listens to the fetching of weights (called from other threads too).

    Args:
        status: shows where the work is, replacing what was shown before.
        step: says once that something is done.
    """

    def __init__(self, status: Callable[[str], None], step: Callable[[str], None]) -> None:
        self._status, self._step = status, step
        self._said: tuple[str, str, int] | None = None

    def __call__(self, news: News) -> None:
        """Take news."""
        if news.phase == "loading":
            self._step(f"loading {news.name} into memory")
            return
        share = f"{bar(news.done, news.total)} {size(news.done)} of {size(news.total)}" if news.total else size(news.done)
        said = f"{news.phase} {share} from {news.source}: {news.name}{f' · {news.note}' if news.note else ''}"
        self._status(said)
        tenth = (news.name, news.phase, 10 * news.done // (news.total or 1))
        if tenth != self._said:
            self._said = tenth
            self._step(said)


def bar(done: int, total: int) -> str:
    """A bar of 16 cells."""
    full = min(_BAR, _BAR * done // total)
    return "█" * full + "░" * (_BAR - full)


def about(seconds: float) -> str:
    """How long something takes, as a person says it."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
