"""Beginning a reading, or going on with one; and what is said and written at its end."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from fabula.cli._board import Board, board, gathering, ticking
from fabula.cli._going import going, usage_of, working_on
from fabula.cli._going_on import is_local, probe, say_new, settings_for
from fabula.cli._input import ask_yes
from fabula.cli._interrupt import run_async, signals
from fabula.cli._options import Models, Spending
from fabula.cli._output import print_json, say, shell_word
from fabula.cli._reading_words import print_answer, print_end, print_plan, print_skipped
from fabula.cli._tally import Tally
from fabula.errors import InputError, LimitReached, NotPossible, RunError
from fabula.settings import is_loopback

if TYPE_CHECKING:
    from fabula.opening import Opened
    from fabula.read import Plan, SourceOptions, Study, Task
    from fabula.settings import Settings
    from fabula.store import RunRow, Store

_LONG = 600.0
"""Seconds; a person is asked before what takes longer."""
_ADDRESS = re.compile(r"\w[\w+.-]*://|[\w.-]+@[\w.-]+:")


@dataclass(frozen=True)
class ReadTask:
    """What is asked for, whatever is read."""

    models: Models
    spending: Spending
    out: tuple[str, ...] = ()
    as_json: bool = False
    yes: bool = False

    def check(self) -> None:
        """Refuse a file that could not be written before anything is paid for. Raises InputError."""
        from fabula.sync import check_report

        for path in self.out:
            check_report(Path(path))
            probe(Path(path))

    def may_ask(self) -> bool:
        """Whether a person is there who can be asked."""
        return not self.yes and not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def plan(sources: Sequence[str], options: SourceOptions, wanted: Task, task: ReadTask, *, anyway: bool) -> None:
    """Show what a reading would take, and keep nothing: where there is no library, none is made."""
    from fabula.opening import opened
    from fabula.read import plan_only

    settings = replace(task.models.settings(), embedder="none")
    if not Path(settings.library).expanduser().exists():
        settings = replace(settings, library=":memory:")
    check_sources(sources, options)
    shown = board(plain=task.as_json)

    async def whole() -> None:
        async with opened(settings, note=say) as things:
            try:
                found, gathered = plan_only(
                    things.store, sources, wanted, model=things.model, local=is_local(settings), options=options, tell=gathering(shown),
                    anyway=anyway,
                )  # fmt: skip
            finally:
                shown.close()
            if task.as_json:
                names = ("sources", "documents", "skipped", "findings", "language")
                print_json({"plan": found.as_dict(), **{name: getattr(gathered, name) for name in names}})
                return
            words = wanted.task or "what it says, or for code what it does and how its parts connect"
            print_plan(
                found, title=gathered.title, task=wanted, words=words, skipped=gathered.skipped, free=is_local(settings),
                currency=things.model.profile.currency, out=True,
            )  # fmt: skip
            print_skipped(gathered.skipped, gathered.findings)

    run_async(whole)


def check_sources(sources: Sequence[str], options: SourceOptions) -> None:
    """Refuse what is not there before a library is made. Git addresses are tried when they are read. Raises InputError, NotFound."""
    from fabula.read import open_source

    for where in sources:
        path = Path(where)
        if where == "-" or options.branch or _ADDRESS.match(where):
            continue
        with open_source(where, options) as source:
            if path.is_dir():
                next(iter(source.documents()))


def begin(sources: Sequence[str], options: SourceOptions, wanted: Task, task: ReadTask, *, seed: str | None, anyway: bool) -> None:
    """Gather, show the plan, read, and say what it says."""
    from fabula.read import Study

    check_sources(sources, options)

    def opens(things: Opened, shown: Board) -> Study:
        return Study.start(
            things.store, sources, wanted, model=things.model, small_model=things.small_model, memory=things.memory, options=options,
            listen=shown, limits=task.spending.limits(), stdin=standard_bytes(), tell=gathering(shown), seed=seed, anyway=anyway,
        )  # fmt: skip

    _run(replace(task, yes=task.yes or "-" in sources), task.models.settings(), opens)


def resume_reading(row: RunRow, task: ReadTask, given: Sequence[str]) -> None:
    """Read on where a reading is.

    Args:
        row: of the reading.
        task: what is asked for.
        given: options that only books have.

    Raises:
        InputError: there are such options.
        NotPossible: the run is a conversation about a reading.
    """
    from fabula.opening import open_library
    from fabula.read import Study
    from fabula.ways import is_conversation

    run = row.id
    if given:
        raise InputError(f"Run {run} is a reading; {', '.join(given)} is for books.", "Leave it out; --max-calls stops a reading early.")
    settings, said = settings_for(run, task.models)
    with closing(open_library(settings)) as store:
        if is_conversation(store, row):
            raise NotPossible(f"Run {run} is a conversation about reading {row.parent}.", f'Ask on: `fabula ask {run} "…"`.')
    if said:
        say(said)

    def opens(things: Opened, shown: Board) -> Study:
        study = Study.open(
            things.store, run, model=things.model, small_model=things.small_model, memory=things.memory, listen=shown,
            limits=task.spending.limits(),
        )  # fmt: skip
        again = take_back_unread(study)
        if again:
            say(f"{again} chunk{'s' if again != 1 else ''} could not be read before; read again now.")
        elif study.finished:
            say("This reading is finished; this is what it says.")
        if not task.as_json:
            _say_of_reports(study, task)
        return study

    _run(task, settings, opens)


def take_back_unread(study: Study) -> int:
    """Withdraw the steps of chunks that could not be read, wholly or in part, and what rests on them, so that they are made again.

    Returns:
        how many chunks.
    """
    unread, store = set(_unread_chunks(study)), study.run.store
    for step in store.steps(study.run.line) if unread else ():
        output = step.output if isinstance(step.output, dict) else {}
        made = {output["chunk"]} if output.get("kind") == "chunk" else set(output["chunks"]) if output.get("kind") == "round" else set()
        if made & unread and step.run == study.id:
            if store.step_at(study.run.line, step.step, step.time) is not None:  # not gone with an earlier one
                study.run.withdraw(step.step, step.time, "it could not be read")
    return len(unread)


def _unread_chunks(study: Study) -> list[int]:
    """Numbers, from 0, of the chunks that were tried and could not be read, wholly or in part."""
    outcome = study.outcome()
    held = ((n, outcome.outcome(n) or {}) for n in range(study.shape.chunks))
    return [n for n, one in held if "unread" in one or one.get("unread_parts")]


def standard_bytes() -> BinaryIO:
    """Standard input as bytes, also where a text stream was put in its place."""
    found = getattr(sys.stdin, "buffer", None)
    return found if found is not None else _Typed()


class _Typed(io.BytesIO):
    """Text of a stream without bytes, read when it is asked for."""

    def read(self, size: int | None = -1, /) -> bytes:
        self.write(sys.stdin.read().encode("utf-8", "surrogatepass"))
        self.seek(0)
        return super().read(size)


def _run(task: ReadTask, settings: Settings, opens: Callable[[Opened, Board], Study]) -> None:
    from fabula.opening import opened

    task.check()
    say_new(settings)
    shown = board(plain=task.as_json)
    signals.before_exit = shown.close

    async def whole() -> None:
        shown.status("opening the library and the models")
        try:
            async with opened(settings, limits=task.spending.limits(), progress=shown.fetching, note=say) as things:
                study = opens(things, shown)
                try:
                    with working_on(things.store, study.id, how_to_read_on(study.id, task)):
                        await things.catch_up(study.view(), lambda done, of: shown.status(f"embedding memories: {done} of {of}"))
                        if await read_on(study, shown, task, settings):
                            _end(study, task)
                finally:
                    study.close()
        finally:
            shown.close()

    run_async(whole)


async def read_on(study: Study, shown: Board, task: ReadTask, settings: Settings) -> bool:
    """Show the plan, ask where a person is there and it costs something, and read to the end.

    Returns:
        whether it was read; False = the person does not want it.

    Raises:
        LimitReached: the report of what is known so far is written.
        FabulaError.
    """
    shown.status("planning")
    found = study.plan(local=is_local(settings)) if not study.finished else None
    shown.close()
    if not task.as_json:
        say(f"Run {study.id}", "dim")
    if found is not None:
        _show_plan(study, found, settings)
        if _worth_asking(found, settings) and task.may_ask() and not ask_yes("Go on?", default=True):
            say(f"Nothing was asked. It is kept: `fabula runs resume {study.id}` reads it.")
            return False
        shown.begin(Tally(study, found))
        try:
            async with ticking(shown):
                await study.read()
        except LimitReached:
            shown.close()
            _so_far(study, task)
            raise
        finally:
            shown.close()
    return True


def _show_plan(study: Study, found: Plan, settings: Settings) -> None:
    from fabula.read import Task

    wanted = Task(**study.run.row.premise["task"])
    words = "a novel that goes on from it" if wanted.for_story else study.task
    skipped = study.run.piece("skipped", lane="")
    currency = study.run.model.profile.currency if study.run.model is not None else ""
    print_plan(
        found, title=study.title, task=wanted, words=words, skipped=skipped, free=is_local(settings), currency=currency, out=False
    )  # fmt: skip


def how_to_read_on(run: str, task: ReadTask) -> str:
    """What to tell a person whose reading was stopped: the files are named again, since a run does not keep their names."""
    files = "".join(f" --out {shell_word(name)}" for name in task.out)
    return f"Go on with `fabula runs resume {run}{files}`" + (", which writes the finished report." if files else ".")


def _say_of_reports(study: Study, task: ReadTask) -> None:
    """A report that an earlier command wrote is not written again by itself."""
    if not task.out and not study.finished:
        say(
            f"A report that was written before shows what was known then, and stays as it is. Write the finished one with --out FILE, "
            f"or later with `fabula runs export {study.id} --out FILE`.",
            "dim",
        )


def _worth_asking(found: Plan, settings: Settings) -> bool:
    """Whether it may cost money, or takes long."""
    mine = is_local(settings) or is_loopback(settings.base_url) or settings.model.split(":")[0] in ("scripted", "misbehaving")
    paid = found.cost > 0 if found.cost is not None else not mine
    return paid or (found.seconds or 0.0) > _LONG


def _so_far(study: Study, task: ReadTask) -> None:
    """What is known when a limit stops a reading."""
    result = study.result()
    files = write_files(study, task, result)
    if task.as_json:
        going.known = {**result, "files": files}
        return
    print_end(result, where=_where(study, task))
    for path in files:
        say(f"What is known so far was written to {path}; it is not finished.")


def write_files(study: Study, task: ReadTask, result: dict[str, Any] | None = None) -> list[str]:
    """Write the report where it was asked for, each file whatever becomes of the others. Raises RunError where one could not be written."""
    if not task.out:
        return []
    from fabula.sync import write_report

    result = result if result is not None else study.result()
    files, failed = [], []
    for name in task.out:
        try:
            files.append(str(write_report(result, Path(name))))
        except InputError as error:
            failed.append(error.message)
    if failed:
        raise RunError(" ".join(failed), f"What was read is kept; write it again with `fabula runs export {study.id} --out FILE`.")
    return files


def export_reports(store: Store, run: str, paths: Sequence[str]) -> list[str]:
    """Write the report of a reading, or the questions and answers of a conversation, to files. Raises InputError where one cannot be."""
    from fabula.cli._talks import talk_dict
    from fabula.read import Study
    from fabula.ways import is_conversation

    task = ReadTask(Models(), Spending(), tuple(paths))
    task.check()
    study = Study.open(store, run)
    return write_files(study, task, talk_dict(store, study) if is_conversation(store, study.run.row) else None)


def _end(study: Study, task: ReadTask) -> None:
    """What it says, and what can be done next."""
    result = study.result()
    files = write_files(study, task, result)
    unread = _unread(study)
    if task.as_json:
        error = {"error": unread.as_dict()} if unread is not None else {}
        print_json({**result, "usage": usage_of(study.run.store, study.id), "files": files, **error})
        if unread is None:
            return
    else:
        _tell(study, task, result, files)
    if unread is not None:
        raise (typer.Exit(unread.exit_code) if task.as_json else unread)


def _tell(study: Study, task: ReadTask, result: dict[str, Any], files: list[str]) -> None:
    say()
    text = result["final_summary"] or "Nothing on this was found in what was read."
    print_answer(text, [c for c in result["claims"] if c["number"]], where=_where(study, task))
    say()
    print_end(result, where=_where(study, task))
    for path in files:
        say(f"Report: {path}")
    if not files:
        say(f"The whole report: `fabula runs export {study.id} --out report.md`")
    say(f'Ask about it: `fabula ask {study.id} "…"`')
    if study.run.row.premise["task"]["for_story"]:
        say(f"Go on with the novel: `fabula write --continue {result['sources'][0]['where']}`")


def _where(study: Study, task: ReadTask) -> str:
    return task.out[0] if task.out else f"`fabula runs export {study.id} --out report.md`"


def _unread(study: Study) -> RunError | None:
    """The error of a reading of which a part could not be read; None = all was read."""
    failed = [n + 1 for n in _unread_chunks(study)]
    if not failed:
        return None
    names = ", ".join(map(str, failed[:8])) + (", …" if len(failed) > 8 else "")
    return RunError(
        f"{len(failed)} of {study.shape.chunks} chunks could not be read, or not all of them ({names}); the answer is without that.",
        f"Read them again, best with another model: `fabula runs resume {study.id} --model NAME`. What was read stays.",
        chunks=failed,
    )
