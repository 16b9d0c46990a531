"""`fabula write`: begin a book, or go on with one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Models, Result, Spending, Yes
from fabula.cli._story_options import SHAPE, START, STORY, StoryOptions
from fabula.errors import InputError


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
            "--continue",
            help="Go on with a run, or from a manuscript of any length.",
            metavar="RUN|FILE",
            rich_help_panel=START,
            show_default=False,
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
    from fabula.cli._continuing import continue_book, manuscript_of, with_series
    from fabula.cli._going_on import Task, go_on, start
    from fabula.cli._texts import copy_prompts_to
    from fabula.write import PROMPTS

    if copy_prompts:
        copy_prompts_to(PROMPTS, story.language or "en", Path(copy_prompts))
        return
    interactive = is_interactive(auto, as_json, yes, premise)
    task = Task(models, spending, result, steps, as_json, interactive)
    manuscript = manuscript_of(continued, models) if continued else None
    if continued and manuscript is None:
        go_on(continued, task)
        return
    if manuscript is not None:
        continue_book(manuscript, story, book.fields(), premise, task, asks=interactive and not yes)
        return
    if premise is None and interactive and not (story.opening or story.plan):
        from fabula.cli._input import ask_line

        premise = ask_line("What is the story about? ")
    told = story.premise(premise, mode="write", **book.fields())
    task.check()
    start(with_series(told, models), task, seed=story.seed, anyway=story.anyway)


def is_interactive(auto: bool | None, as_json: bool, yes: bool, premise: str | None) -> bool:
    """Whether a person decides: as told, else where there is a terminal to talk at."""
    if auto is False and as_json:
        raise InputError("With --json nobody can be asked.", "Leave out --interactive or --json.")
    if auto is not None:
        return not auto
    return not as_json and not yes and premise != "-" and sys.stdin.isatty() and sys.stdout.isatty()


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(write)
