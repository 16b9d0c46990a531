"""`fabula read`: books and code far longer than the window, cited (SPEC R)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabula.cli._group import command
from fabula.cli._options import OUTPUT, Json, Models, Spending, Yes
from fabula.cli._reading_options import READING, SourceFlags, TaskFlags


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(read)


def read(
    wanted: TaskFlags,
    flags: SourceFlags,
    models: Models,
    spending: Spending,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...", help="Files, folders, addresses of git repositories, or `-` for standard input.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan: what is read, calls, tokens, cost. Nothing is kept.")
    ] = False,
    out: Annotated[
        list[str] | None,
        typer.Option(
            help="Write the report to a file: .md or .json. Repeatable.", metavar="FILE", rich_help_panel=OUTPUT, show_default=False
        ),
    ] = None,
    copy_prompts: Annotated[
        str | None,
        typer.Option(
            help="Copy the prompts to a folder, to be changed there, and end.",
            metavar="FOLDER",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    yes: Yes = False,
) -> None:
    """Read documents and code of any length for a task, and say what they say, with the lines that it rests on.

    The plan is shown first. Every answer is kept: Ctrl-C stops cleanly, `fabula runs resume` reads on, and what did not change is not asked
    again. `fabula ask` answers questions about what was read.
    """
    from fabula.cli._reading_on import ReadTask, begin, plan
    from fabula.cli._texts import copy_prompts_to
    from fabula.errors import InputError
    from fabula.read import PROMPTS

    if copy_prompts:
        copy_prompts_to(PROMPTS, wanted.language or "en", Path(copy_prompts))
        return
    if not sources:
        raise InputError("Nothing says what to read.", 'Name a file, a folder or a git address: `fabula read src --task "…"`.')
    if "-" in sources and (wanted.task == "-" or sources.count("-") > 1):
        raise InputError("Standard input cannot be read twice.", "Give the task itself, or in a file: --task @FILE.")
    task = ReadTask(models, spending, tuple(out or ()), as_json, yes)
    if dry_run:
        plan(sources, flags.options(), wanted.wanted(), task, anyway=wanted.anyway)
    else:
        task.check()
        begin(sources, flags.options(), wanted.wanted(), task, seed=wanted.seed, anyway=wanted.anyway)
