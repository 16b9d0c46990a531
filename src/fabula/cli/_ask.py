"""`fabula ask`: questions about what was read, answered with citations (SPEC R9)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabula.cli._going import going
from fabula.cli._group import command
from fabula.cli._options import Json, Models, Spending
from fabula.errors import InputError, NotFound

if TYPE_CHECKING:
    from fabula.cli._board import Board
    from fabula.read import Answer, Study
    from fabula.store import Store

_ID = re.compile(r"[0-9a-f]{12}")
_TOKEN = re.compile(r"[\w.-]{1,20}")
"""What may be a run's name rather than a question."""
_LEAVE = ("quit", "exit", "q")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(ask)


def ask(
    models: Models,
    spending: Spending,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN] QUESTION...",
            help="A reading (default: the latest), and what you want to know; `-` reads standard input. Several questions are one "
            "conversation; none, at a terminal, begins one.",
            show_default=False,
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin a new conversation, which knows no earlier questions.")] = False,
    as_json: Json = False,
) -> None:
    """Ask about what was read. Answers come from it alone, with the lines they rest on; a later question sees the earlier ones."""
    from fabula.cli._board import board
    from fabula.cli._going_on import settings_for
    from fabula.cli._interrupt import run_async, signals
    from fabula.cli._output import say
    from fabula.opening import open_library, opened

    talks = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    with closing(open_library(models.settings(), begin="fabula read")) as store:
        run, questions = _split(store, list(words or ()))
        _say_unfinished(store, run)
    if not questions and not talks:
        raise InputError("There is no question.", f'Ask like this: `fabula ask {run} "Who has the key?"`.')
    settings, said = settings_for(run, models)
    if said:
        say(said)
    shown = board(plain=as_json)
    signals.before_exit = shown.close

    async def whole() -> None:
        from fabula.read import Study

        shown.status("opening the library and the models")
        try:
            async with opened(settings, limits=spending.limits(), progress=shown.fetching, note=say) as things:
                study = Study.conversation(
                    things.store, run, new=new, model=things.model, small_model=things.small_model, memory=things.memory, listen=shown,
                    limits=spending.limits(),
                )  # fmt: skip
                try:
                    await things.catch_up(study.view(), lambda done, of: shown.status(f"embedding memories: {done} of {of}"))
                    await _converse(study, questions, shown, as_json=as_json)
                finally:
                    study.close()
        finally:
            shown.close()

    run_async(whole)


def _split(store: Store, words: list[str]) -> tuple[str, list[str]]:
    """The run, and the questions; without a run the reading that was begun last. Raises InputError, NotFound."""
    from fabula.cli._texts import text_of
    from fabula.ways import latest_reading

    run = ""
    if words:
        try:
            run = store.run(words[0]).id
            words = words[1:]
        except NotFound:
            if _ID.fullmatch(words[0]):  # an id rather than a question
                raise
            _check_first(words)
    if words.count("-") > 1:
        raise InputError("Standard input cannot be read twice.", "Give - once.")
    questions = [text_of(word, "the question") if word == "-" else word.strip() for word in words]
    if not all(questions):
        raise InputError("A question is empty.", 'Ask like this: `fabula ask RUN "Who has the key?"`.')
    return run or latest_reading(store), questions


def _check_first(words: list[str]) -> None:
    """A first word before other questions is more likely a mistyped run. Raises InputError; says where it is taken as a question."""
    from fabula.cli._output import say

    first = words[0].strip()
    if len(words) < 2 or not first.isascii() or " " in first or first == "-" or first.endswith("?"):
        return
    if _TOKEN.fullmatch(first):
        raise InputError(
            f"There is no run {first!r}, and it is no question either.",
            "See the runs with `fabula runs list`; write a question with its `?`.",
        )
    say(f"There is no run {first!r}; it is taken as a question.", "yellow")


def _say_unfinished(store: Store, run: str) -> None:
    from fabula.cli._output import number, say
    from fabula.ways import glances

    one = next(one for one in glances(store) if one["run"] == run)
    if one["kind"] == "read" and one["state"] == "open" and not one["questions"] and one["parent"] is None:
        say(
            f"This reading is not finished: {number(one['chunks_read'])} of {number(one['chunks'])} chunks are read. "
            f"`fabula runs resume {run}` reads on.",
            "yellow",
        )


async def _converse(study: Study, questions: Sequence[str], shown: Board, *, as_json: bool) -> None:
    from fabula.cli._going import usage_of, working_on
    from fabula.cli._output import print_json, say

    store, answers = study.run.store, []
    with working_on(store, study.id, f"Ask on with `fabula ask {study.id}`; what was answered is kept."):
        for number, question in enumerate(questions):
            going.how = _how(study.id, questions[number:])
            answer = await _one(study, question, shown)
            answers.append(asdict(answer))
            if not as_json:
                print_asked(answer, alone=len(questions) == 1)
        if not questions:
            shown.close()
            say(f"What do you want to know of {_about(study)}? An empty line ends.", "dim")
            await _talk(study, shown)
    if as_json:
        print_json({"run": study.id, "reading": study.run.row.parent, "answers": answers, "usage": usage_of(store, study.id)})
    else:
        say()
        say(f'Ask on: `fabula ask {study.id} "…"`', "dim")


def _how(run: str, left: Sequence[str]) -> str:
    """How to ask on in the same conversation what was not answered."""
    from fabula.cli._output import shell_word

    return f"What was answered is kept. Ask on with `fabula ask {run} {' '.join(map(shell_word, left))}`."


async def _talk(study: Study, shown: Board) -> None:
    """Questions line by line."""
    from fabula.cli._input import NoMoreInput, ask_line

    while True:
        try:
            line = ask_line("? ").strip()
        except NoMoreInput:
            return
        if not line or line.lower() in _LEAVE:
            return
        going.how = _how(study.id, [line])
        print_asked(await _one(study, line, shown), alone=True)


async def _one(study: Study, question: str, shown: Board) -> Answer:
    shown.status("looking it up")
    try:
        return await study.ask(question)
    finally:
        shown.close()


def _about(study: Study) -> str:
    return study.title.removeprefix("Questions: ")


def print_asked(answer: Answer, *, alone: bool) -> None:
    """An answer with its sources, or where it was looked for; with its question, unless it stands `alone`."""
    from fabula.cli._output import first_line, show
    from fabula.cli._reading_words import NOT_SAID, print_answer

    if not alone:
        show(f"? {first_line(answer.question, 200)}", "bold")
    if answer.found:
        print_answer(answer.text, list(answer.claims))
    else:
        show(NOT_SAID)
        if answer.looked:
            places: list[Any] = list(answer.looked)
            show(f"Looked at: {', '.join(places[:12])}{f' and {len(places) - 12} more' if len(places) > 12 else ''}", "dim")
        else:
            show("Nothing that was read has the question's words.", "dim")
    show()
