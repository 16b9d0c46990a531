"""What a way in supplies: a recurrence over natural-language state (DESIGN 1)."""
# ruff: noqa: ARG002  the defaults of an interface use none of what overriding methods get

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fabula.store import FAR, StepRow

if TYPE_CHECKING:
    from fabula.runs._context import Context
    from fabula.runs._run import Run

Pieces = Mapping[tuple[str, str], Any]
"""(lane, name) → value."""


class Recurrence:
    """(state, input) → (output, state'). A way in is a subclass; the defaults are those of a way with one lane.

    Logical times are integers; lanes are named by the way in and may not contain `+`.
    """

    kind: str = ""
    """Names the way in: write, read, town, chat …"""

    single: bool = True
    """One lane: each step fixes its own view of the library. Otherwise news enters at journaled logical times (intakes)."""

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        """Each lane with its first logical time and the time at which it ends."""
        return {"main": (0, FAR)}

    def start(self, premise: Mapping[str, Any]) -> Pieces:
        """The pieces of version 0."""
        return {}

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        """Could what `source` does from `since` on matter to `target` at `time`? One rule decides waiting and withdrawing."""
        return True

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
        """Of whom `reaches` is to be asked at all for the step of `lane` at `time`; None = of everyone.

        With it a run of many lanes is scheduled in time that grows with their number and their waits, not with its square. It is a
        promise: whoever is not named can never reach that step. It must depend on nothing but the premise and the lane's own pieces up
        to `time`.
        """
        return None

    def joins(self, run: Run, lane: str, time: int) -> tuple[str, ...]:
        """The lanes of the step that `lane` makes at `time`; asked only when nothing behind reaches it."""
        return (lane,)

    def story(self, run: Run, time: int) -> float:
        """The story clock (hours) at a logical time: one hour a step unless the way in knows better."""
        return float(time)

    def finished(self, run: Run) -> bool:
        """Nothing is left to do, e.g. the book has its length."""
        return False

    def entities(self, run: Run) -> tuple[str, ...]:
        """Library entities that the run has bound: their library records are visible."""
        return ()

    def timeless(self, name: str) -> bool:
        """Is a person's edit of this piece one of the past too (a passage's text, say), so that steps that read it become stale?"""
        return True

    def derived(self, name: str) -> bool:
        """Is this piece derived from the text (a memory, a plan), so that it is stale when what it was derived from has changed?"""
        return True

    def rebase(self, edited: Pieces, gone: Sequence[StepRow]) -> dict[tuple[str, str], Any]:
        """A person's later edits of pieces that withdrawn steps wrote: what of them holds without these steps. Left out = it goes too."""
        return {}

    def take_input(self, run: Run, kind: str, payload: Any) -> None:
        """Turn what a second process left in the inbox into edits; called between steps. Raises InputError, NotPossible: it cannot be."""
        if kind == "edit":
            run.edit({(payload["lane"], payload["name"]): payload["value"]})
        elif kind == "memory":
            from fabula.runs._person import act

            act(run, payload["do"], payload["with"])

    async def step(self, ctx: Context) -> Any:
        """One step. Touches the world through `ctx` alone; what it returns is journaled as its output (a plain JSON value)."""
        raise NotImplementedError
