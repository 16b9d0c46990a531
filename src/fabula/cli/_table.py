"""Playing a story (SPEC W6): a passage, three choices, and whatever else the player thinks of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fabula.cli import _desk_acts as acts
from fabula.cli._desk import Desk
from fabula.cli._output import show

HELP = """\
 1 2 3    do this                         undo     take the last turn back
 TEXT     do something else, in words     memory   what is remembered
 again    tell the last turn anew         trace    where the last turn came from
 quit     stop; `fabula runs resume` goes on"""


class Table(Desk):
    """One sitting at a game. Everything that is no command is what the protagonist does."""

    async def begin(self) -> None:
        """The story's beginning and its first scene, without a question."""
        await super().begin()
        if not self.novel.passages():
            await self.guarded(self.one_passage())
        else:
            show(self.novel.passages()[-1].text)
            show()

    def prompt(self) -> str:
        """What stands before the player's line."""
        return "What do you do? "

    async def obey(self, line: str) -> None:
        """A command, a choice, or free text."""
        act = _COMMANDS.get(line.lower().removeprefix("/"))
        if act is not None:
            await act(self, "")
        elif line.isdigit() and 1 <= int(line) <= len(self.novel.plans):
            await self.pick(int(line))
        elif line:
            self.novel.set_plan(line)
            await self.write_on()
        else:
            self.plans()

    def plans(self) -> None:
        """The choices."""
        if self.novel.finished:
            return
        for number, plan in enumerate(self.novel.plans, 1):
            show(f" {number}  {plan}")
        if self.novel.plans:
            show("A number, or your own words; undo, memory, quit, help.", "dim")

    async def help(self, _: str) -> None:
        """What can be done."""
        show(HELP)


async def _help(desk: Desk, rest: str) -> None:
    await desk.help(rest)


_COMMANDS: dict[str, Callable[[Desk, str], Awaitable[None]]] = {
    "undo": Desk.undo, "memory": acts.see_short_term, "quit": Desk.leave, "exit": Desk.leave, "q": Desk.leave, "help": _help, "?": _help,
    "again": Desk.again, "trace": acts.trace,
}  # fmt: skip
