"""`fabula runs`: list, resume, fork, export, replay; the commands that look inside are in `_look`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from fabula.cli import _look
from fabula.cli._group import command
from fabula.cli._options import Json, Models, Result, RunArgument, Spending, Where, Yes

app = typer.Typer(name="runs", no_args_is_help=True, rich_markup_mode=None, help="Runs: every novel, play and reading, step by step.")


@command(app, "list")
def list_runs(where: Where, as_json: Json = False) -> None:
    """List the runs of the library, the latest first."""
    from fabula.cli._output import moment, print_json, say, table
    from fabula.opening import open_library
    from fabula.ways import glances

    with closing(open_library(where.settings())) as store:
        found, place = glances(store), store.place
    if as_json:
        print_json({"runs": found})
        return
    if not found:
        say(f"There are no runs in {place} yet. Begin one with `fabula write` or `fabula read`.")
        return
    rows = [
        [
            one["run"], one["kind"], one["title"], _size(one), str(one["steps"]), one["state"], one["model"] or "-", moment(one["changed"]),
        ]
        for one in found
    ]  # fmt: skip
    table(["run", "kind", "title", "length", "steps", "state", "model", "changed"], rows, flexible=2)


def _size(one: dict[str, Any]) -> str:
    """Words of a book; of a reading its way and how many chunks are read; of a conversation the questions."""
    from fabula.cli._output import number, unit_name

    if one["kind"] != "read":
        return f"{number(one['length'])} {unit_name(one['language'])}"
    if one["questions"]:
        return f"{one['questions']} question{'s' if one['questions'] != 1 else ''}"
    return f"{one['way']}, {number(one['chunks_read'])} of {number(one['chunks'])} chunks"


@command(app)
def resume(
    run: RunArgument,
    models: Models,
    spending: Spending,
    result: Result,
    steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many steps.", show_default=False)] = None,
    words: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Steer to another length; a finished book goes on.", show_default=False)
    ] = None,
    auto: Annotated[
        bool | None, typer.Option("--auto/--interactive", help="Who decides; else as there is a terminal.", show_default=False)
    ] = None,
    as_json: Json = False,
    yes: Yes = False,
) -> None:
    """Go on with a run where it is: nothing that was answered is asked again."""
    from fabula.cli._going_on import Task, go_on
    from fabula.cli._reading_on import ReadTask, resume_reading
    from fabula.cli._write import is_interactive
    from fabula.opening import open_library
    from fabula.ways import is_reading

    with closing(open_library(models.settings())) as store:
        row = store.run(run)
    if is_reading(row):
        given = {"--steps": steps, "--words": words, "--keep": result.keep, "--credit": result.credit or None, "--auto/--interactive": auto}
        task = ReadTask(models, spending, tuple(result.out or ()), as_json, yes)
        resume_reading(row, task, [name for name, value in given.items() if value is not None])
        return
    go_on(run, Task(models, spending, result, steps, as_json, is_interactive(auto, as_json, yes, None)), words=words)


@command(app)
def fork(
    run: RunArgument,
    where: Where,
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            min=0,
            metavar="STEP",
            help="Share the steps before this one (of a reading: this logical time); default: all.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Another title.", show_default=False)] = "",
    corrected: Annotated[bool, typer.Option("--corrected", help="Your later edits of what is shared hold in the branch too.")] = False,
    as_json: Json = False,
) -> None:
    """Begin another branch that shares a run's beginning. Nothing is copied, the run itself stays as it is."""
    from fabula.cli._output import print_json, say, show
    from fabula.errors import InputError
    from fabula.opening import open_library
    from fabula.runs import fork as fork_run
    from fabula.ways import is_reading
    from fabula.write import Novel

    with closing(open_library(where.settings())) as store:
        row = store.run(run)
        steps = store.steps(store.line(row.id), newest_first=True, limit=1)
        if at is not None and is_reading(row) and not as_json:
            last = steps[0].time if steps else 0
            say(f"--at is a logical time of the reading, not a chunk: its steps have the times 0 to {last}; steps made at once share one.")
        cut = at if at is not None else steps[0].time + 1 if steps else 0
        if corrected and is_reading(row):
            raise InputError("A reading has no edits that a branch could share.", "Leave out --corrected.")
        if corrected:
            child = Novel.open(store, row.id).fork(cut, title, corrected=True)
        else:
            child = fork_run(store, row.id, cut, title=title)
    if as_json:
        print_json({"run": child, "parent": row.id, "at": cut})
        return
    show(f"{child} shares the steps before {cut} with {row.id}. Go on with `fabula runs resume {child}`.")


@command(app)
def export(
    run: RunArgument,
    where: Where,
    jsonl: Annotated[
        str | None,
        typer.Option(
            help="The journal as JSON Lines: every prompt, answer, usage and memory change; `-` is stdout.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        list[str] | None,
        typer.Option(
            help="The book: .md, .epub, .docx or .txt; of a reading the report, of a conversation its answers: .md or .json. Repeatable.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    credit: Annotated[bool, typer.Option("--credit", help="Say which model wrote and the share of machine text.")] = False,
    as_json: Json = False,
) -> None:
    """Write a run's book, report, or questions and answers, or its whole journal, to files."""
    from fabula.cli._output import print_json, say
    from fabula.cli._reading_on import export_reports
    from fabula.errors import InputError
    from fabula.opening import open_library
    from fabula.runs import export as export_run
    from fabula.ways import is_reading
    from fabula.write import Novel

    if not jsonl and not out:
        raise InputError("Nothing says where to.", "Give --out FILE.epub or --jsonl FILE.")
    if as_json and jsonl == "-":
        raise InputError("Stdout cannot hold both the journal and one JSON object.", "Leave out --json, or give --jsonl a file's name.")
    files: list[str] = []
    with closing(open_library(where.settings())) as store:
        row = store.run(run)
        if jsonl == "-":
            for line in export_run(store, row.id):
                sys.stdout.write(line + "\n")
        elif jsonl:
            files.append(_write_lines(Path(jsonl).expanduser(), export_run(store, row.id)))
        if out and is_reading(row):
            files += export_reports(store, row.id, out)
        elif out:
            novel = Novel.open(store, row.id)
            files += [str(novel.export(Path(path).expanduser(), note=credit)) for path in out]
    if as_json:
        print_json({"run": row.id, "files": files})
    else:
        for path in files:
            say(f"Written to {path}")


def _write_lines(path: Path, lines: Any) -> str:
    from fabula.errors import InputError

    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}.", "Check the folder and the disk.") from error
    return str(path)


@command(app)
def replay(run: RunArgument, where: Where, as_json: Json = False) -> None:
    """Run every step again from the journal alone, without a model, and say whether it comes out identical.

    Steps whose journal was erased are counted and passed over.
    """
    from fabula.cli._output import print_json
    from fabula.cli._replaying import finding, print_replayed, replayed
    from fabula.errors import FindingsFound
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        done = replayed(store, run)
    wrong = finding(done)
    if as_json:
        print_json(done.as_dict())
        raise typer.Exit(FindingsFound.exit_code if wrong else 0)
    print_replayed(done)
    if wrong:
        raise FindingsFound(wrong, "Run `fabula doctor`.")


_look.add_to(app)
