"""Which run a command is working on, so that whatever ends it can say how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabula.store import Store


@dataclass
class Going:
    """The run in hand, and what it had spent when the command left it."""

    run: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    how: str = ""
    """How to go on, where that is not `fabula runs resume`."""
    known: dict[str, Any] = field(default_factory=dict)
    """What is known so far, for `--json`."""

    def advice(self) -> str:
        """What to tell the person."""
        return f"Nothing is lost. {self.how or f'Go on with `fabula runs resume {self.run}`.'}" if self.run else ""


going = Going()
"""Of this process; `main` clears it."""


def usage_of(store: Store, run: str) -> dict[str, Any]:
    """A run's usage as `--json` prints it: whole numbers where they are counts."""
    return {name: value if name == "cost" else int(value) for name, value in store.usage(run).items()}


@contextmanager
def working_on(store: Store, run: str, how: str = "") -> Iterator[None]:
    """Inside, the run is in hand; it stays so when the block is left by an exception. `how`: what to tell the person then."""
    going.run, going.how, going.known = run, how, {}
    try:
        yield
    except BaseException:
        going.usage = usage_of(store, run)
        raise
    going.run = going.how = ""
