"""What a person does to the book's texts and memory while sitting at it; each act takes the desk and the rest of the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabula.cli._acting import refuse_empty
from fabula.cli._input import ask_line, ask_yes, edit_text
from fabula.cli._output import first_line, show
from fabula.cli._texts import cast_of
from fabula.errors import InputError

if TYPE_CHECKING:
    from fabula.cli._desk import Desk

_MOST_LISTED = 30


def number(said: str) -> int:
    """A number as a person types it. Raises InputError."""
    if not said.strip().isdigit():
        raise InputError(f"{said.strip()!r} is no number.", "Type the letter and then a number, e.g. b 3.")
    return int(said)


def shorten(text: str) -> str:
    """The beginning of a text."""
    return first_line(text, 72)


# -- memory and state ----------------------------------------------------------------------------------------------------------


async def see_short_term(desk: Desk, _: str) -> None:
    """The short-term memory as the next prompt holds it."""
    for line in desk.novel.short_term:
        show(f" - {line}")
    if not desk.novel.short_term:
        show("The short-term memory is empty.", "dim")


async def edit_short_term(desk: Desk, _: str) -> None:
    """The short-term memory, a sentence a line."""
    before = "\n".join(desk.novel.short_term)
    after = edit_text(before, name="short-term-memory")
    if after.strip() == before.strip():
        show("Nothing was changed.", "dim")
        return
    desk.novel.set_short_term(after)
    show("Changed: the next prompt holds it.")


async def note(desk: Desk, rest: str) -> None:
    """The author's note, pinned in every prompt."""
    before = str(desk.novel.run.piece("note", default=""))
    after = "" if rest == "-" else rest or edit_text(before, name="authors-note", hint="The note is pinned in every prompt. ")
    if after.strip() != before.strip():
        desk.novel.set_note(after)
    show(f"Author's note: {after.strip() or 'none'}")


async def cast(desk: Desk, _: str) -> None:
    """The cast, a line each: `Name: who that is`."""
    held = desk.novel.run.piece("cast", default=[])
    before = "\n".join(f"{c['name']}: {c.get('about', '')}".rstrip() for c in held)
    after = edit_text(before, name="cast", hint="One a line, `Name: who that is`. ")
    lines = [line for line in after.splitlines() if line.strip()]
    desk.novel.change(cast=[{"name": name, "about": about} for name, about in cast_of(lines)])
    show(f"Cast: {', '.join(name for name, _ in cast_of(lines))}")


async def setting(desk: Desk, _: str) -> None:
    """World and background."""
    after = edit_text(str(desk.novel.run.piece("setting", default="")), name="setting")
    desk.novel.change(setting=after.strip())
    show("The setting holds from the next prompt on.")


async def list_memories(desk: Desk, rest: str) -> None:
    """The long-term memory, or what of it has some words; numbered for `le` and `lr`."""
    from fabula.memory import search

    novel = desk.novel
    records = search(novel.run.store, rest, view=novel.view(), limit=_MOST_LISTED) if rest else novel.memories()[-_MOST_LISTED:]
    desk.listed = [record.id for record in records]
    for count, record in enumerate(records, 1):
        show(f" {count:>3}  {record.text}")
    if not records:
        show("Nothing is remembered yet." if not rest else f"No memory has the words {rest!r}.", "dim")


def _listed(desk: Desk, rest: str) -> str:
    chosen = number(rest)
    if not desk.listed:
        desk.listed = [record.id for record in desk.novel.memories()[-_MOST_LISTED:]]
    if not 1 <= chosen <= len(desk.listed):
        raise InputError(f"There is no memory {chosen} in the list.", "List them with l.")
    return desk.listed[chosen - 1]


async def edit_memory(desk: Desk, rest: str) -> None:
    """What a memory says."""
    ident = _listed(desk, rest)
    before = next(record.text for record in desk.novel.memories(every=True) if record.id == ident)
    desk.novel.edit_memory(ident, edit_text(before, name="memory"))
    show("Changed: the next recall finds the new words.")


async def retract_memory(desk: Desk, rest: str) -> None:
    """A memory out of recall."""
    ident = _listed(desk, rest)
    desk.novel.retract_memory(ident, ask_line("Why? ").strip() or "a person's wish")
    show(f"Retracted. `fabula memory restore {ident}` brings it back.")


# -- the text --------------------------------------------------------------------------------------------------------------------


def _passage(desk: Desk, rest: str) -> str:
    passages = desk.novel.passages()
    if not passages:
        raise InputError("There is no passage yet.", "Write one first.")
    return desk.novel.passage(rest).id if rest else passages[-1].id


async def edit_passage(desk: Desk, rest: str) -> None:
    """A passage, the last one unless said otherwise; then its memory."""
    passage = _passage(desk, rest)
    before = desk.novel.passage(passage).text
    after = edit_text(before, name=passage)
    refuse_empty(passage, after)
    desk.novel.edit_passage(passage, after)
    await _remember_anew(desk, passage)


async def _remember_anew(desk: Desk, passage: str) -> None:
    """A changed text is the truth: its old memory is retired already; the person says whether a new one is made now."""
    if ask_yes(f"Make the memory of {passage} anew from its new text now?", default=True):
        await desk.one_step()
    else:
        desk.novel.skip_rederive()
        show("Its old memory is retired and none takes its place.", "dim")
    desk.plans()


async def rewrite(desk: Desk, rest: str) -> None:
    """Rewrite, expand or shorten a part of a passage."""
    passage = _passage(desk, rest)
    text = desk.novel.passage(passage).text
    how = ask_line("rewrite, expand or shorten? [rewrite] ").strip().lower() or "rewrite"
    chosen = next((name for name in ("rewrite", "expand", "shorten") if name.startswith(how)), None)
    if chosen is None:
        raise InputError(f"{how!r} is none of rewrite, expand and shorten.")
    start, end = select(text, ask_line("Which part? (its words, or first … last; empty = all) "))
    direction = ask_line("Direction: ").strip()
    desk.novel.rewrite(passage, (start, end), direction, chosen)  # type: ignore[arg-type]
    await desk.one_step()
    await _remember_anew(desk, passage)


def select(text: str, said: str) -> tuple[int, int]:
    """The span (characters) of a part of a text, named by its words or by its first and last ones.

    Raises:
        InputError: the words do not occur, or more than once.
    """
    said = said.strip()
    if not said:
        return 0, len(text)
    first, dots, last = said.replace("...", "…").partition("…")
    first, last = first.strip(), last.strip()
    for words in (first, last):
        if words and text.count(words) != 1:
            raise InputError(f"{words!r} occurs {text.count(words)} times in the passage.", "Give words that occur exactly once.")
    start = text.index(first) if first else 0
    end = (text.index(last) + len(last) if last else len(text)) if dots else start + len(first)
    if start >= end:
        raise InputError("The last words come before the first.", "Give them in the order of the text.")
    return start, end


# -- looking and leaving ---------------------------------------------------------------------------------------------------------


async def trace(desk: Desk, _: str) -> None:
    """Where the last passage came from."""
    from fabula.cli._tracing import print_trace
    from fabula.runs import trace as trace_step

    novel = desk.novel
    written = [step for step in novel.steps() if step.output.get("kind") == "passage"]
    if not written:
        raise InputError("There is no passage yet.", "Write one first.")
    print_trace(novel, trace_step(novel.run.store, novel.id, written[-1].time), full=False)


async def export(desk: Desk, rest: str) -> None:
    """The book as a file."""
    if not rest:
        raise InputError("Nothing says where to.", "Type o and a file's name, e.g. o book.epub.")
    show(f"Written to {desk.export(rest)}")
