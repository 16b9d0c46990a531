"""`fabula play`: interactive fiction (SPEC W6)."""

from __future__ import annotations

from typing import Annotated

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Models, Result, Spending
from fabula.cli._story_options import StoryOptions


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(play)


def play(
    story: StoryOptions,
    models: Models,
    spending: Spending,
    result: Result,
    premise: Annotated[str | None, typer.Argument(help="What it is about; @FILE reads a file.", show_default=False)] = None,
    auto: Annotated[bool, typer.Option("--auto", help="The simulated author plays.")] = False,
    steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many steps.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Play a story: you decide what the protagonist does, by one of three choices or in your own words.

    Told in the second person unless --person says otherwise. Every turn is kept and can be taken back.
    """
    from fabula.cli._going_on import Task, start
    from fabula.cli._input import ask_line

    alone = auto or as_json
    if premise is None and not alone and not story.opening:
        premise = ask_line("What is the story about? ")
    told = story.premise(premise, mode="play")
    start(told, Task(models, spending, result, steps, as_json, not alone), seed=story.seed, anyway=story.anyway)
