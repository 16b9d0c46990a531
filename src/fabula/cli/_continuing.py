"""`fabula write --continue FILE`: a novel goes on from a manuscript; one that is long is read first (SPEC W3)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.cli._board import board, gathering
from fabula.cli._going import working_on
from fabula.cli._going_on import Task, run_book, say_new, start
from fabula.cli._interrupt import signals
from fabula.cli._options import Models
from fabula.cli._output import number, say
from fabula.errors import InputError, NotPossible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabula.cli._story_options import StoryOptions
    from fabula.opening import Opened
    from fabula.read import Study
    from fabula.settings import Settings
    from fabula.ways import BookToRead
    from fabula.write import Novel, Premise


def manuscript_of(named: str, models: Models) -> Path | None:
    """The file that is to be continued: named itself, or by its reading; None = a run of a book is named.

    Raises:
        NotPossible: a reading of something else, or of a file that is not there any more.
    """
    from contextlib import closing

    from fabula.opening import open_library
    from fabula.ways import is_reading

    path = Path(named).expanduser()
    if path.is_file():
        return path
    if path.suffix and not path.exists():
        raise InputError(f"There is no file {path} (for --continue).", "Check the name and the folder.")
    with closing(open_library(models.settings())) as store:
        row = store.run(named)
        if not is_reading(row):
            return None
        if not row.premise["task"]["for_story"]:
            raise NotPossible(f"Reading {row.id} was not made for a novel.", "Name the book's file: `fabula write --continue FILE`.")
        from fabula.read import Study

        file = Path(Study.open(store, row.id).result()["sources"][0]["where"])
    if not file.is_file():
        raise NotPossible(f"The book of reading {row.id} is not at {file} any more.", "Name its file: `fabula write --continue FILE`.")
    return file


def continue_book(path: Path, story: StoryOptions, shape: Mapping[str, Any], premise: str | None, task: Task, *, asks: bool) -> None:
    """Go on from a manuscript: a short one is the opening; a long one is shown, read, and becomes the novel's memory.

    Args:
        path: of the manuscript.
        story: what the person wants of it.
        shape: further fields of `Premise`.
        premise: how it goes on, in the person's words.
        task: what is asked for.
        asks: a person is there who can be asked.
    """
    from fabula.cli._texts import book_of, opening_of
    from fabula.ways import BookToRead, is_long, language_of, title_of

    book = book_of(path)
    if not is_long(book):
        told = story.premise(premise, mode="write", found=opening_of(book, path), **shape)
        task.check()
        if not _another(_begun(told, task), asks=asks):
            return
        start(with_series(told, task.models), task, seed=story.seed, anyway=story.anyway)
        return
    if story.opening:
        raise InputError("A manuscript and an opening are both given.", "Make the opening the manuscript's last chapter.")
    language = story.language or language_of(book)
    known = {"title": title_of(book, path), "language": language}
    told = story.premise(premise or path.name, mode="write", found=known, **shape)
    if not premise:  # a placeholder, so that the rest could be checked before anything is read
        told = replace(told, premise="")
    task.check()
    if not _chapters_are_right(book, told.language, asks=asks):
        return
    _read_and_write(BookToRead(path, book, language), with_series(told, task.models), story, task, asks=asks)


def _begun(told: Premise, task: Task) -> str | None:
    """The unfinished novel of the same short manuscript."""
    from contextlib import closing

    from fabula.opening import open_library
    from fabula.ways import unfinished

    settings = task.models.settings()
    if not Path(settings.library).expanduser().is_file():
        return None
    with closing(open_library(settings)) as store:
        return unfinished(store, opening=told.opening)


def _another(begun: str | None, *, asks: bool) -> bool:
    """Say that a novel of this book is not finished; whether another one is to be begun beside it."""
    from fabula.cli._input import ask_yes

    if begun is None:
        return True
    say(f"A novel that goes on from this book is not finished: `fabula runs resume {begun}` goes on with it.", "yellow")
    if asks:
        return ask_yes("Begin another one beside it?", default=False)
    say("This command begins another one beside it.", "yellow")
    return True


def _chapters_are_right(book: Any, language: str, *, asks: bool) -> bool:
    """Show what was found, before anything is kept; whether to go on."""
    from fabula.cli._chapters import preview, show_preview
    from fabula.cli._input import ask_yes

    show_preview(preview(book, language), sys.stderr)
    if not asks or ask_yes("Are these the chapters?", default=True):
        return True
    say("Nothing was kept. Mark each chapter in the file with a line like `# Chapter 1`, and give the command again.")
    return False


def _read_and_write(wanted: BookToRead, told: Premise, story: StoryOptions, task: Task, *, asks: bool) -> None:
    from fabula.ways import continued, left
    from fabula.write import Novel, Series

    settings = task.models.settings()

    async def opens(things: Opened, listen: Any) -> Novel | None:
        study, before, found = await _read(wanted, things, settings, task, anyway=story.anyway, asks=asks)
        if found is None:
            return None
        whole = continued(told, found, wanted.book, study.id)
        novel = Novel.start(
            things.store, whole, model=things.model, small_model=things.small_model, memory=things.memory, listen=listen,
            limits=left(task.spending.limits(), before, study.usage()), seed=story.seed, anyway=story.anyway,
        )  # fmt: skip
        if whole.series:
            Series(things.store, whole.series).join(novel)
        people = f"{len(whole.cast)} {'people' if len(whole.cast) != 1 else 'person'}"
        say(f"The novel goes on from there, with {number(len(whole.memories))} memories and {people}.")
        return novel

    run_book(task, settings, opens)


async def _read(
    wanted: BookToRead, things: Opened, settings: Settings, task: Task, *, anyway: bool, asks: bool
) -> tuple[Study, dict[str, float], dict[str, Any] | None]:
    """The reading of a book, what it had spent before, and what a novel needs of it; None = the person does not want it read."""
    from fabula.cli._reading_on import ReadTask, read_on
    from fabula.cli._reading_words import print_end
    from fabula.ways import study_of, unfinished

    shown = board(plain=task.as_json)
    before = signals.before_exit

    def both() -> None:
        shown.close()
        if before is not None:
            before()

    signals.before_exit = both
    try:
        study = study_of(wanted, things, listen=shown, limits=task.spending.limits(), tell=gathering(shown), anyway=anyway)
    finally:
        shown.close()
    if not _another(unfinished(things.store, reading=study.id), asks=asks):
        study.close()
        return study, {}, None
    how = f"Go on with the same command; the reading alone goes on with `fabula runs resume {study.id}`."
    try:
        with working_on(things.store, study.id, how):
            already, spent = study.finished, study.usage()
            wishes = ReadTask(task.models, task.spending, (), task.as_json, yes=not asks)
            if not await read_on(study, shown, wishes, settings):
                return study, spent, None
            if not already and not task.as_json:
                print_end(study.result(), where=f"`fabula runs show {study.id}`")
            shown.status("making notes for the author")
            return study, spent, await study.story()
    finally:
        study.close()
        shown.close()


def with_series(told: Premise, models: Models) -> Premise:
    """The cast of the series, and whom the person named anew."""
    if not told.series:
        return told
    from contextlib import closing

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
