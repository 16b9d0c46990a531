"""`fabula memory`: what is remembered, in plain words, and a person's changes to it (SPEC M4)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Where, Yes

if TYPE_CHECKING:
    from fabula.store import Store

app = typer.Typer(
    name="memory", no_args_is_help=True, rich_markup_mode=None, help="Memory: see, correct, take back and erase what is remembered."
)

Ident = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as `fabula memory list` shows it.")]
InRun = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="As this run sees it, e.g. a fork; default: the run that made it.", show_default=False),
]


@command(app, "list")
def list_records(
    where: Where,
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="A run; without one, the records that the library shares.", show_default=False)
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="Only those with these words; without a RUN, of all runs.", metavar="TEXT", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that are retracted, superseded or ended.")] = False,
    as_json: Json = False,
) -> None:
    """List what is remembered."""
    from fabula.cli._output import print_json, say, show
    from fabula.cli._records import listed, record_dict
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        records = listed(store, run, find, every)
        if as_json:
            print_json({"records": [record_dict(record) for record in records]})
            return
    for record in records:
        status = "" if record.status == "active" else f"  ({record.status})"
        cited = next((e for e in record.evidence if record.source and e.startswith(f"{record.source}:")), "")
        show(f"{record.id}{status}{f'  {cited}' if cited else ''}", "dim")
        show(f"  {record.text}")
    if not records:
        say("Nothing is remembered here." if find is None else f"No memory has the words {find!r}.")


@command(app)
def show(ident: Ident, where: Where, run: InRun = None, as_json: Json = False) -> None:
    """Show one memory: what it says, where it comes from and where it holds."""
    from fabula.cli._output import moment, print_json
    from fabula.cli._output import show as say
    from fabula.cli._records import found, record_dict
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        _, record = found(store, ident, run)
    if as_json:
        print_json(record_dict(record))
        return
    say(record.text, "bold")
    facts = {
        "id": record.id, "status": record.status, "kind": record.kind, "whose": record.owner or "the narrator's", "source": record.source,
        "words in the text": record.quote, "rests on": ", ".join(record.evidence), "about": ", ".join(record.entities),
        "scope": record.scope.level, "importance": "" if record.importance is None else f"{record.importance:g}",
        "last changed by": record.by, "remembered": moment(record.recorded),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            say(f"  {name + ':':<18} {value}")


@command(app)
def history(ident: Ident, where: Where, run: InRun = None, as_json: Json = False) -> None:
    """Show what happened to a memory, from the first to the last."""
    from fabula.cli._output import moment, print_json
    from fabula.cli._output import show as say
    from fabula.cli._records import found, rows_of
    from fabula.memory import history as changes
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        seen, record = found(store, ident, run)
        told = changes(rows_of(store, seen), record.id)
    if as_json:
        print_json({
            "id": record.id,
            "history": [{"event": c.event, "who": c.who, "what": c.what, "run": c.run, "step": c.time, "applied": c.applied} for c in told],
        })  # fmt: skip
        return
    for change in told:
        say(f"{moment(change.recorded)}  {change.who}, step {change.time}: {change.what}")


@command(app)
def add(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run that is to remember it.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; name people, do not say “I”. `-` reads standard input.")],
    where: Where,
    as_json: Json = False,
) -> None:
    """Remember something: the next step may recall it."""
    from fabula.cli._acting import do
    from fabula.cli._texts import text_of

    do(where, run, "memory", {"do": "add", "with": {"text": text_of(text, "the memory")}}, "Remembered.", as_json=as_json)


@command(app)
def retract(
    ident: Ident,
    where: Where,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason; kept in its history.")],
    run: InRun = None,
    as_json: Json = False,
) -> None:
    """Take a memory out of recall. `fabula memory restore` undoes it."""
    from fabula.cli._acting import do_to_record

    do_to_record(where, ident, run, "retract", {"why": why}, "Retracted: it is not recalled any more.", as_json=as_json)


@command(app)
def restore(
    ident: Ident,
    where: Where,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason.", show_default=False)] = "",
    run: InRun = None,
    as_json: Json = False,
) -> None:
    """Bring back a memory that was retracted, superseded or ended."""
    from fabula.cli._acting import do_to_record

    do_to_record(where, ident, run, "restore", {"why": why}, "Restored: it can be recalled again.", as_json=as_json)


@command(app)
def edit(
    target: Annotated[str, typer.Argument(metavar="ID|RUN", help="A memory; or a run, with one of the options below.")],
    where: Where,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="The new text; `-` reads standard input, @FILE a file; without it, $EDITOR opens.", show_default=False
        ),
    ] = None,
    short_term: Annotated[bool, typer.Option("--short-term", help="The run's short-term memory, a sentence a line.")] = False,
    note: Annotated[bool, typer.Option("--note", help="The run's author's note.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="The plan of the run's next passage.")] = False,
    setting: Annotated[bool, typer.Option("--setting", help="The run's setting.")] = False,
    passage: Annotated[
        str | None, typer.Option("--passage", metavar="ID", help="A passage of the run; its memory is made anew.", show_default=False)
    ] = None,
    run: InRun = None,
    as_json: Json = False,
) -> None:
    """Change what a memory says, or a run's state. The next prompt holds the change; a model never changes it back."""
    from fabula.cli._acting import do_to_record, edit_state
    from fabula.cli._records import found
    from fabula.errors import InputError, NotFound
    from fabula.opening import open_library

    chosen = [
        name for name, on in {"short_term": short_term, "note": note, "plan": plan, "setting": setting, "passage": passage}.items() if on
    ]
    if len(chosen) > 1:
        raise InputError(f"More than one thing is to be edited: {', '.join(chosen)}.", "Edit them one after another.")
    if chosen:
        edit_state(where, target, chosen[0], passage, text, as_json=as_json)
        return
    with closing(open_library(where.settings())) as store:
        try:
            before = found(store, target, run)[1].text
        except NotFound:
            _refuse_run(store, target)
            raise
    after = new_text(before, text, "memory")
    do_to_record(where, target, run, "edit", {"text": after}, "Changed: the next recall finds the new words.", as_json=as_json)


def _refuse_run(store: Store, target: str) -> None:
    """Raises InputError where what was taken for a memory is a run, and nothing says what of it is to be edited."""
    from fabula.errors import InputError, NotFound

    try:
        row = store.run(target)
    except (InputError, NotFound):
        return
    raise InputError(
        f"{row.id} is a run, and nothing says what of it is to be edited.",
        "Say it: --short-term, --note, --plan, --setting or --passage ID; or give the id of a memory (`fabula memory list RUN`).",
    )


def new_text(before: str, given: str | None, name: str) -> str:
    """The text given, or as a person leaves it in the editor."""
    import sys

    from fabula.cli._input import edit_text
    from fabula.cli._texts import text_of
    from fabula.errors import InputError

    if given is not None:
        return text_of(given, name)
    if not sys.stdin.isatty():
        raise InputError("The new text is missing.", "Give it as the last argument, `-` for standard input, or @FILE.")
    return edit_text(before, name=name)


@command(app)
def erase(ident: Ident, where: Where, run: InRun = None, yes: Yes = False, as_json: Json = False) -> None:
    """Erase a memory for good: its words are blanked wherever they stand. This cannot be undone."""
    from fabula.cli._input import confirm
    from fabula.cli._output import first_line, print_json
    from fabula.cli._output import show as say
    from fabula.cli._records import erase_record, found, texts_of, uses_of
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        seen, record = found(store, ident, run)
        texts, uses = texts_of(store, seen, record.id), uses_of(store, record.id)
        if not as_json:
            say(f"Memory {record.id}: “{first_line(record.text, 120)}”")
            versions = f"{len(texts)} version{'s' if len(texts) != 1 else ''}"
            say(f"Its words ({versions}) are blanked in records, prompts, answers, vectors and index.")
            say(_replays(uses))
        confirm("Erase it for good?", yes=yes)
        counts = erase_record(store, seen, record, texts)
    if as_json:
        print_json({"id": record.id, "erased": dict(counts)})
        return
    changed = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name not in ("replays", "copies"))
    say(f"Erased: {changed or 'nothing was left of it'}. {counts.get('replays', 0)} steps can no longer be replayed.")
    if counts.get("copies"):
        say(f"{counts['copies']} copies that Fabula made beside the library still hold the words: delete them.", "yellow")


def _replays(uses: dict[str, list[int]]) -> str:
    if not uses:
        return "No step has recalled it; the step that made it can no longer be replayed."
    told = "; ".join(f"run {run}: {', '.join(map(str, steps))}" for run, steps in uses.items())
    return f"Steps that recalled it, and the one that made it, can no longer be replayed ({told})."
