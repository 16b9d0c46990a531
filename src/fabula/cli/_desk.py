"""Writing with a person (SPEC W5): after each passage a line of input says how it goes on.

Everything that a person does here is an edit or a withdrawal of the run, so it can be undone, and holds from the next prompt on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.cli import _desk_acts as acts
from fabula.cli._going import going
from fabula.cli._input import NoMoreInput, ask_line, edit_text
from fabula.cli._output import say, show
from fabula.errors import FabulaError, InputError, LimitReached, NotPossible, StoreError

if TYPE_CHECKING:
    from fabula.cli._view import View
    from fabula.write import Novel

HELP = """\
 1 2 3      write on by this plan          r        write the last passage anew
 e [N]      edit a plan, then write on     s [N]    its other texts; back to N
 w [TEXT]   write on by your own plan      x [ID]   rewrite, expand, shorten it
 a [N]      let the author decide, N times p [ID]   edit a passage (or the last)
 m, me      short-term memory: see, edit   n [TEXT] author's note (n - for none)
 l [WORDS]  long-term memory               c, t     edit cast, setting
 le N, lr N edit, retract memory N         i        what the last one came from
 u          undo the last step             b [N]    the steps; back to before N
 f [N]      fork (before step N)           o FILE   export: .md .epub .docx .txt
 h          this help                      q        quit; `runs resume` goes on"""

Act = Callable[["Desk", str], Awaitable[None]]


class Desk:
    """One sitting at a book. `novel` is another one after a fork."""

    def __init__(self, novel: Novel, view: View) -> None:
        self.novel, self.view = novel, view
        view.asks = True
        self.listed: list[str] = []
        """Ids of the memories that were listed last, by their number."""
        self.ended = False

    async def sit(self) -> Novel:
        """Until the person leaves. Returns the book that was worked on last.

        Raises:
            LimitReached, StoreError; Interrupted.
        """
        await self.begin()
        self.plans()
        while not self.ended:
            try:
                line = ask_line(self.prompt())
            except NoMoreInput:
                break
            await self.guarded(self.obey(line.strip()))
        return self.novel

    async def begin(self) -> None:
        """Title, setting and cast, where they are not there yet."""
        if self.novel.must_begin:
            await self.guarded(self.one_step())

    def prompt(self) -> str:
        """What stands before the line of input."""
        return "fabula> "

    async def obey(self, line: str) -> None:
        """Do what a line says.

        Raises:
            InputError: it says nothing that is known here.
        """
        word, _, rest = line.partition(" ")
        act = _ACTS.get(word.lower())
        if act is not None:
            await act(self, rest.strip())
        elif word.isdigit():
            await self.pick(int(word))
        elif line:
            raise InputError(f"{word!r} is nothing that can be done here.", "Type h for help.")
        elif self.novel.plan is not None:
            await self.write_on()
        else:
            self._must_choose()
            self.plans()

    async def guarded(self, work: Awaitable[object]) -> None:
        """Do it; what goes wrong is said, and the person can go on, unless a limit is reached or the library fails."""
        try:
            await work
        except (LimitReached, StoreError):
            raise
        except FabulaError as error:
            self.view.paper.close()
            say(f"{error.message}", "yellow")
            say(f"  → {error.next_action}")

    # -- writing -------------------------------------------------------------------------------------------------------------

    async def one_step(self) -> str:
        """The next step of the run; returns its kind, empty where there is nothing left to do."""
        try:
            row = await self.novel.step()
        finally:
            self.view.paper.close()
        return str(row.output.get("kind", "")) if row is not None else ""

    async def write_on(self, passages: int = 1) -> None:
        """So many passages, and whatever steps come before them; then the plans."""
        for _ in range(passages):
            if not await self.one_passage():
                show("The book is finished.", "bold")
                break
        self.plans()

    async def one_passage(self) -> bool:
        """The next passage, and whatever steps come before it; False where the book is finished."""
        while (kind := await self.one_step()) not in ("passage", ""):
            pass
        return bool(kind)

    async def pick(self, number: int) -> None:
        """Write on by a plan."""
        self._must_choose()
        self.novel.choose(number)
        await self.write_on()

    def _must_choose(self) -> None:
        """Raises InputError where there is nothing to pick from, with what can be done instead."""
        if self.novel.finished:
            raise InputError("The book is finished.", f"`fabula runs resume {self.novel.id} --words N` makes it longer; u undoes; q quits.")
        if self.novel.plans:
            return
        if self.novel.plan is not None:
            raise InputError("This passage has its plan already.", "Enter writes it; e edits it; w TEXT replaces it.")
        raise InputError("There is no plan yet.", "w TEXT writes your own, a lets the author decide; h helps.")

    def plans(self) -> None:
        """Show what can come next."""
        novel = self.novel
        if novel.finished:
            return
        if novel.plan is not None:
            show(f"Plan of the next passage: {novel.plan['text']}", "italic cyan")
            show("Enter writes it; e edits it; w TEXT replaces it; h helps.", "dim")
            return
        for number, plan in enumerate(novel.plans, 1):
            show(f" {number}  {plan}")
        if novel.plans:
            show("1 2 3 picks a plan, w TEXT writes your own, a lets the author decide; h helps.", "dim")

    # -- going back ----------------------------------------------------------------------------------------------------------

    async def again(self, _: str) -> None:
        """The last passage anew, from the same plan."""
        self._last_is_passage()
        self.novel.regenerate()
        await self.write_on()

    async def swipe(self, rest: str) -> None:
        """Earlier texts of the last passage; with a number, back to one of them."""
        self._last_is_passage()
        texts = self.novel.texts()
        if rest:
            self.novel.swipe(acts.number(rest) - 1)
            await self.write_on()
            return
        for number, text in enumerate(texts, 1):
            show(f" {number}  {acts.shorten(text)}")
        show(f"s N goes back to text N; r writes text {len(texts) + 1}.", "dim")

    def _last_is_passage(self) -> None:
        steps = self.novel.steps()
        if not steps or steps[-1].output.get("kind") != "passage":
            raise NotPossible("The last step wrote no passage.", "Undo it first (u), or edit the passage (p).")

    async def undo(self, _: str) -> None:
        """Withdraw the last step."""
        gone = self.novel.undo()
        show(f"Step {gone.time} ({gone.output.get('kind', 'step')}) is undone.")
        self.plans()

    async def back(self, rest: str) -> None:
        """The steps; with a number, back to before that step."""
        if rest:
            gone = self.novel.back_to(acts.number(rest))
            show(f"Back to before step {gone.time}.")
            self.plans()
            return
        for step in self.novel.steps():
            output = step.output
            passage = (
                f"{output['passage']}: {acts.shorten(self.text_of(output['passage']))}"
                if output.get("passage")
                else output.get("title", "")
            )
            show(f" {step.time:>4}  {output.get('kind', ''):<10} {passage}")

    def text_of(self, passage: str) -> str:
        """A passage as it is now; empty where it is no longer in the book."""
        held = self.novel.run.piece(f"text:{passage}")
        return str(held["text"]) if held else ""

    async def fork(self, rest: str) -> None:
        """A branch from here or from before a step; the person goes on in it."""
        from fabula.write import Novel

        old, run = self.novel, self.novel.run
        child = old.fork(acts.number(rest) if rest else run.frontier())
        old.close()
        self.novel = Novel.open(
            run.store, child, model=run.model, small_model=run.small_model, memory=run.memory, listen=run.listen, limits=run.limits
        )
        self.view.attach(self.novel)
        going.run = child
        show(f"This is {child} now, a fork of {old.id}; that one stays as it is.")
        self.plans()

    # -- plans ---------------------------------------------------------------------------------------------------------------

    async def edit_plan(self, rest: str) -> None:
        """A plan as the person changes it."""
        plans, held = self.novel.plans, self.novel.plan
        if held is not None and not rest:
            self.novel.set_plan(edit_text(str(held["text"]), name="plan"))
        else:
            self._must_choose()
            chosen = acts.number(rest or ask_line("Which plan? "))
            if not 1 <= chosen <= len(plans):
                raise InputError(f"There are {len(plans)} plans; {chosen} is none of them.")
            self.novel.choose(chosen, edit_text(plans[chosen - 1], name="plan"))
        await self.write_on()

    async def own_plan(self, rest: str) -> None:
        """The person's own plan."""
        self.novel.set_plan(rest or edit_text("", name="plan", hint="What happens next? "))
        await self.write_on()

    async def author(self, rest: str) -> None:
        """The simulated author decides for some passages."""
        await self.write_on(acts.number(rest) if rest else 1)

    def export(self, path: str) -> Path:
        """The book as a file, by the ending of its name."""
        return self.novel.export(Path(path).expanduser())

    async def help(self, _: str) -> None:
        """What can be done."""
        show(HELP)

    async def leave(self, _: str) -> None:
        """The end of the sitting."""
        self.ended = True


_ACTS: dict[str, Act] = {
    "e": Desk.edit_plan, "w": Desk.own_plan, "a": Desk.author, "r": Desk.again, "s": Desk.swipe, "u": Desk.undo, "b": Desk.back,
    "f": Desk.fork, "h": Desk.help, "?": Desk.help, "help": Desk.help, "q": Desk.leave, "quit": Desk.leave, "exit": Desk.leave,
    "undo": Desk.undo, "memory": acts.see_short_term, "m": acts.see_short_term, "me": acts.edit_short_term, "n": acts.note,
    "c": acts.cast, "t": acts.setting, "p": acts.edit_passage, "x": acts.rewrite, "l": acts.list_memories, "le": acts.edit_memory,
    "lr": acts.retract_memory, "i": acts.trace, "o": acts.export,
}  # fmt: skip
