"""`fabula write`: begin a book, or go on with one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Models, Result, Spending, Yes
from fabula.cli._story_options import SHAPE, START, STORY, StoryOptions
from fabula.errors import InputError

if TYPE_CHECKING:
    from fabula.write import Premise


@dataclass(frozen=True)
class BookOptions:
    """What only books have."""

    words: Annotated[
        int | None,
        typer.Option(
            "--words",
            "--length",
            min=1,
            help="Steer to this length: words, or characters in Chinese and Japanese.",
            rich_help_panel=STORY,
            show_default=False,
        ),
    ] = None
    ending: Annotated[str, typer.Option(help="Steer to this ending (or @FILE).", rich_help_panel=STORY, show_default=False)] = ""
    series: Annotated[
        str,
        typer.Option(
            help="Share people and places with the other books of this series.", metavar="NAME", rich_help_panel=STORY, show_default=False
        ),
    ] = ""
    outline: Annotated[
        str | None, typer.Option(help="Your own outline of chapters.", metavar="FILE", rich_help_panel=START, show_default=False)
    ] = None
    chapters: Annotated[
        int | None, typer.Option(min=1, help="Outline the book in so many chapters first.", rich_help_panel=SHAPE, show_default=False)
    ] = None
    chapter_length: Annotated[int | None, typer.Option(min=1, help="Length of a chapter.", rich_help_panel=SHAPE, show_default=False)] = (
        None
    )
    single_call: Annotated[
        bool, typer.Option("--single-call", help="Passage and book-keeping in one answer, as the paper has it.", rich_help_panel=SHAPE)
    ] = False
    reader: Annotated[
        str, typer.Option(help="A sentence on whose taste the simulated author has.", rich_help_panel=SHAPE, show_default=False)
    ] = ""

    def fields(self) -> dict[str, Any]:
        """As fields of `Premise`."""
        from fabula.cli._texts import outline_of, text_of

        outline = outline_of(self.outline) if self.outline else ()
        return {
            "length": self.words, "ending": text_of(self.ending, "--ending"), "outline": outline, "chapters": self.chapters,
            "chapter_length": self.chapter_length, "single_call": self.single_call, "reader": self.reader, "series": self.series,
        }  # fmt: skip


def write(
    story: StoryOptions,
    book: BookOptions,
    models: Models,
    spending: Spending,
    result: Result,
    premise: Annotated[
        str | None, typer.Argument(help="What it is about; `-` reads standard input, @FILE a file.", show_default=False)
    ] = None,
    continued: Annotated[
        str | None,
        typer.Option(
            "--continue", help="Go on with a run, or from a manuscript.", metavar="RUN|FILE", rich_help_panel=START, show_default=False
        ),
    ] = None,
    auto: Annotated[
        bool | None,
        typer.Option(
            "--auto/--interactive",
            help="Nobody decides but the simulated author / you do; else as there is a terminal.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps.", show_default=False)] = None,
    copy_prompts: Annotated[
        str | None,
        typer.Option(
            help="Copy the prompts to a folder, to be changed there, and end.", metavar="FOLDER", rich_help_panel=SHAPE, show_default=False
        ),
    ] = None,
    as_json: Json = False,
    yes: Yes = False,
) -> None:
    """Write a story of any length, on its own or with you.

    Without a terminal, or with --auto, a simulated author chooses and revises the plans. With you, each passage is followed by three
    plans to pick from, edit or replace. Every step is kept: Ctrl-C stops cleanly, `fabula runs resume` goes on.
    """
    from fabula.cli._going_on import Task, go_on, start
    from fabula.cli._texts import copy_prompts_to
    from fabula.write import PROMPTS

    if copy_prompts:
        copy_prompts_to(PROMPTS, story.language or "en", Path(copy_prompts))
        return
    interactive = is_interactive(auto, as_json, yes, premise)
    task = Task(models, spending, result, steps, as_json, interactive)
    manuscript = Path(continued).expanduser() if continued else None
    if continued and not (manuscript and manuscript.is_file()):
        go_on(continued, task)
        return
    if premise is None and interactive and not (manuscript or story.opening or story.plan):
        from fabula.cli._input import ask_line

        premise = ask_line("What is the story about? ")
    told = story.premise(premise, mode="write", manuscript=manuscript, **book.fields())
    task.check()
    start(_with_series(told, models), task, seed=story.seed, anyway=story.anyway)


def is_interactive(auto: bool | None, as_json: bool, yes: bool, premise: str | None) -> bool:
    """Whether a person decides: as told, else where there is a terminal to talk at."""
    if auto is False and as_json:
        raise InputError("With --json nobody can be asked.", "Leave out --interactive or --json.")
    if auto is not None:
        return not auto
    return not as_json and not yes and premise != "-" and sys.stdin.isatty() and sys.stdout.isatty()


def _with_series(told: Premise, models: Models) -> Premise:
    """The cast of the series, and whom the person named anew."""
    if not told.series:
        return told
    from contextlib import closing
    from dataclasses import replace

    from fabula.cli._going_on import say_new
    from fabula.opening import open_library
    from fabula.write import Series

    settings = models.settings()
    say_new(settings)
    with closing(open_library(settings, create=True)) as store:
        series = Series(store, told.series)
        known = {c.name for c in series.cast()}
        for character in told.cast:
            if character.name not in known and character.about:
                series.add(character.name, character.about)
        named = {c.name for c in told.cast}
        return replace(told, cast=(*told.cast, *(c for c in series.cast() if c.name not in named)))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(write)
