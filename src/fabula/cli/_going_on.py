"""Starting a book, or going on with one, alone or with a person; and what is said and written at the end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.cli._going import usage_of, working_on
from fabula.cli._interrupt import run_async, signals
from fabula.cli._options import Models, Result, Spending
from fabula.cli._output import number, print_json, say, unit_name
from fabula.cli._paper import sheet
from fabula.cli._view import View, length_words
from fabula.errors import InputError, LimitReached, RunError

if TYPE_CHECKING:
    from fabula.opening import Opened
    from fabula.runs import Progress
    from fabula.settings import Settings
    from fabula.write import Novel, Premise

Open = Callable[["Opened", Any], Awaitable["Novel | None"]]
"""Opens the book; None = there is none to work on after all."""


@dataclass(frozen=True)
class Task:
    """What is asked for, whatever the book."""

    models: Models
    spending: Spending
    result: Result
    steps: int | None = None
    as_json: bool = False
    interactive: bool = False

    def check(self) -> None:
        """Refuse a file that could not be written before anything is paid for. Raises InputError."""
        from fabula.formats import check_keep, format_of

        for path in [*(self.result.out or []), *([self.result.keep] if self.result.keep else [])]:
            format_of(path)
            probe(Path(path))
        if self.result.keep:
            check_keep(Path(self.result.keep).expanduser())


def probe(path: Path) -> None:
    """Raises InputError where a file could not be written at that path."""
    import tempfile

    target = path.expanduser()
    if target.is_dir():
        raise InputError(f"{target} is a folder.", "Name a file in it, e.g. book.epub.")
    if not target.parent.is_dir():
        raise InputError(
            f"{target} cannot be written: there is no folder {target.parent}.", "Make it first, or name a file in another folder."
        )
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        said = error.strerror or str(error)
        raise InputError(f"{target} cannot be written; its folder takes no file: {said}.", "Name a file in another folder.") from error


def start(premise: Premise, task: Task, *, seed: str | None = None, anyway: bool = False) -> None:
    """Begin a book and write it."""
    from fabula.write import Novel, Series

    async def opens(opened: Opened, listen: Any) -> Novel:
        novel = Novel.start(
            opened.store, premise, model=opened.model, small_model=opened.small_model, memory=opened.memory, listen=listen,
            limits=task.spending.limits(), seed=seed, anyway=anyway,
        )  # fmt: skip
        if premise.series:
            Series(opened.store, premise.series).join(novel)
        return novel

    run_book(task, task.models.settings(), opens)


def go_on(run: str, task: Task, *, words: int | None = None) -> None:
    """Open a book and go on with it; `words`: to another length from here on."""
    from fabula.write import Novel

    settings, said = settings_for(run, task.models)
    if said:
        say(said)

    async def opens(opened: Opened, listen: Any) -> Novel:
        novel = Novel.open(
            opened.store, run, model=opened.model, small_model=opened.small_model, memory=opened.memory, listen=listen,
            limits=task.spending.limits(),
        )  # fmt: skip
        if words is not None:
            novel.change(length=words, ended=False)
        elif novel.finished:
            say(
                f"The book is finished. `fabula runs resume {novel.id} --words N` makes it longer, `fabula runs fork {novel.id}` begins "
                f"another branch, `fabula memory edit {novel.id} --passage ID` edits it."
            )
        return novel

    run_book(task, settings, opens)


def say_new(settings: Settings) -> None:
    """Say that a library is about to be made, so that a mistyped path is noticed."""
    if settings.library != ":memory:" and not Path(settings.library).expanduser().exists():
        say(f"New library: {settings.library}")


def settings_for(run: str, models: Models) -> tuple[Settings, str]:
    """The settings to go on with: what a person chose now, else the model that the run was written with where it is one that needs no
    address. The second value tells the person of a change.
    """
    from contextlib import closing

    from fabula.opening import open_library
    from fabula.runs import last_model

    settings = models.settings()
    with closing(open_library(settings)) as store:
        row = store.run(run)
        before = last_model(store, row.id)
    if "model" in settings.sources or not before or before == "none":
        return settings, ""
    if before.split(":")[0] in ("scripted", "misbehaving") or _is_ours(before):
        return replace(settings, model=before, base_url=""), ""
    return settings, f"Run {row.id} was written with {before}; it goes on with {settings.model}. (--model chooses another.)"


def is_local(settings: Settings) -> bool:
    """Whether the model runs on this machine, in a process of ours."""
    name = settings.model
    if settings.base_url:
        return False
    return name == "embedded" or name.startswith("hub:") or name.lower().endswith(".gguf") or _is_ours(name)


def _is_ours(name: str) -> bool:
    from fabula.errors import NotFound
    from fabula.models import find_weights

    try:
        return find_weights(name).name == name
    except NotFound:
        return False


def run_book(task: Task, settings: Settings, opens: Open) -> None:
    """Open a book and work on it to its end."""
    from fabula.opening import opened

    task.check()
    say_new(settings)
    view = View(sheet(story=not task.as_json))
    signals.before_exit = view.paper.close

    async def whole() -> None:
        view.paper.status("opening the library and the models")
        try:
            async with opened(settings, limits=task.spending.limits(), progress=view.fetching, note=say) as things:
                view.paper.close()
                novel = await opens(things, _listener(view, task))
                if novel is None:
                    return
                try:
                    with working_on(things.store, novel.id):
                        await things.catch_up(novel.view(), lambda done, of: view.paper.status(f"embedding memories: {done} of {of}"))
                        await _drive(novel, view, task)
                finally:
                    novel.close()
        finally:
            view.paper.close()

    run_async(whole)


def _listener(view: View, task: Task) -> Callable[[Progress], None]:
    """The view, and the file that is kept current after every step."""
    from fabula.runs import StepDone

    def listen(event: Progress) -> None:
        view(event)
        if isinstance(event, StepDone) and task.result.keep and view.novel is not None:
            keep(view.novel, task.result.keep)

    return listen


def keep(novel: Novel, path: str) -> None:
    """Keep a Markdown file current; what a person edited in it is moved aside, and that is said."""
    if novel.passages():
        try:
            kept = novel.keep(Path(path).expanduser())
        except InputError as error:
            raise RunError(
                error.message, f"The book is kept; go on with another file: `fabula runs resume {novel.id} --keep FILE.md`."
            ) from error
        if kept.aside is not None:
            say(f"{path} had been edited; that version is now {kept.aside}.")


async def _drive(novel: Novel, view: View, task: Task) -> None:
    view.attach(novel, task.steps)
    if not task.as_json:
        say(f"Run {novel.id}", "dim")
    if not task.interactive and task.steps is None and not (novel.run.piece("length") or novel.run.piece("outline_size")):
        say("No length is set, so it goes on until you stop it (Ctrl-C), or a limit does.")
    began, before = time.monotonic(), len(novel.steps())
    try:
        if task.interactive:
            novel = await _sit(novel, view)
        else:
            await novel.write(steps=task.steps)
    except LimitReached:
        view.paper.close()
        try:
            _files(novel, task)
        except RunError as error:
            say(f"{error.message} {error.next_action}", "yellow")
        raise
    view.paper.close()
    files = _files(novel, task)
    if task.as_json:
        print_json({**facts(novel), "files": files, "usage": usage_of(novel.run.store, novel.id)})
        return
    done = len(novel.steps()) - before
    worked = f", {done} step{'s' if done != 1 else ''} in {span(time.monotonic() - began)}" if done > 0 else ""
    after = f" after {number(novel.length_before)} of the manuscript" if novel.length_before else ""
    say(f"{novel.title}: {length_words(novel.length, None, novel.length_before, novel.language)}{after}{worked}.")
    for path in files:
        say(f"Written to {path}")
    if not novel.finished:
        say(f"Go on with `fabula runs resume {novel.id}`.")
    if novel.passages():
        say(f"Where the last passage came from: `fabula runs trace {novel.id}`.")


async def _sit(novel: Novel, view: View) -> Novel:
    """With a person; returns the book that was worked on last, which another function does not close."""
    from fabula.cli._desk import Desk
    from fabula.cli._table import Table

    desk = (Table if novel.premise.mode == "play" else Desk)(novel, view)
    try:
        return await desk.sit()
    finally:
        if desk.novel is not novel:
            desk.novel.close()


def facts(novel: Novel) -> dict[str, Any]:
    """A book as `--json` prints it, without its text."""
    steps = novel.steps()
    return {
        "run": novel.id, "title": novel.title, "language": novel.language, "length": novel.length, "unit": unit_name(novel.language),
        "steps": len(steps), "passages": len(novel.passages()), "finished": novel.finished, "reading": novel.premise.reading or None,
    }  # fmt: skip


def _files(novel: Novel, task: Task) -> list[str]:
    """Write the files that were asked for, each whatever becomes of the others. Raises RunError where one could not be written."""
    if not novel.passages():
        return []
    if task.result.keep:
        keep(novel, task.result.keep)
    files, failed = [], []
    for path in task.result.out or []:
        try:
            files.append(str(novel.export(Path(path).expanduser(), note=task.result.credit)))
        except InputError as error:
            failed.append(error.message)
    if failed:
        for path in files:
            say(f"Written to {path}")
        raise RunError(" ".join(failed), f"The book is kept; write it again with `fabula runs export {novel.id} --out FILE`.")
    return files


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
