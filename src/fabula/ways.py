"""What joins the ways in, for every face: runs of any kind listed and opened, and a novel that goes on from a book that was read.

A way in knows no other (DESIGN 2); so what needs two of them stands here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError, NotFound, NotPossible

if TYPE_CHECKING:
    from fabula.formats import Book
    from fabula.opening import Opened
    from fabula.read import Study, Task
    from fabula.runs import Limits, Listener, Recurrence, Run
    from fabula.store import RunRow, Store
    from fabula.write import Premise

SHORT = 4_000
"""Tokens (about 3,000 English words) of a manuscript that is continued without reading it first: the prompts hold enough of it."""
_READ = "read"
_QUESTIONS = "questions"


# -- runs of any kind ------------------------------------------------------------------------------------------------------------


def recurrence_of(row: RunRow) -> Recurrence:
    """The recurrence of a run that is there. Raises NotPossible for a kind that this version does not know."""
    if row.kind == _READ:
        from fabula.read import Reading

        return Reading()
    from fabula.write import Story

    if row.kind == Story.kind:
        return Story()
    raise NotPossible(f"Run {row.id} is of the kind {row.kind!r}, which this version does not know.", "Upgrade Fabula.")


def open_run(store: Store, run: str, *, hold: bool = False) -> Run:
    """A run of any kind, to look at it, or (`hold`) to change it; without a model.

    Raises:
        NotFound, Held, NotPossible.
    """
    from fabula.runs import Run

    row = store.run(run)
    return Run(store, recurrence_of(row), row.id, hold=hold)


def is_reading(row: RunRow) -> bool:
    """Whether a run is a reading, or a conversation about one."""
    return row.kind == _READ


def is_conversation(store: Store, row: RunRow) -> bool:
    """Whether a run is what was asked about a reading."""
    from fabula.runs import latest_piece

    return is_reading(row) and row.parent is not None and latest_piece(store, store.line(row.id), _QUESTIONS, "question") is not None


def latest_reading(store: Store) -> str:
    """The reading that was begun last. Raises NotFound."""
    from fabula.store import RunRow

    for row in store.rows(RunRow, kind=_READ, newest_first=True):
        if row.parent is None:
            return row.id
    raise NotFound(f"Nothing was read yet in {store.place}.", 'Read something first: `fabula read FILE --task "…"`.')


def glances(store: Store) -> list[dict[str, Any]]:
    """Every run of a library, the latest first, as `fabula.write.glances` gives them, and more of readings.

    Returns:
        of readings besides: way, chunks, chunks_read, questions (how many were asked; 0 = it is the reading itself); their `state` is
        finished when the task is answered.
    """
    from fabula.store import RunRow
    from fabula.write import glances as books

    rows = {row.id: row for row in store.rows(RunRow)}
    return [one | _reading_glance(store, rows[one["run"]], one["state"]) if one["kind"] == _READ else one for one in books(store)]


def _reading_glance(store: Store, row: RunRow, state: str) -> dict[str, Any]:
    from fabula.runs import latest_piece

    line = store.line(row.id)
    shape = latest_piece(store, line, "", "shape", {"way": "", "chunks": 0})
    read, asked, done = 0, 0, False
    for step in store.steps(line):
        output = step.output if isinstance(step.output, dict) else {}
        kind = output.get("kind")
        read += len(output["chunks"]) if kind == "round" else kind == "chunk" and "unread" not in output
        asked += kind == "answer"
        done = done or kind == "final"
    done = done or (shape["way"] == "tree" and shape["chunks"] == 1 and read == 1)
    return {
        "way": shape["way"], "chunks": shape["chunks"], "chunks_read": read, "questions": asked,
        "state": "finished" if done and state == "open" else state,
    }  # fmt: skip


# -- a novel goes on from a book ---------------------------------------------------------------------------------------------------


def book_in(path: Path, guessed: Callable[[str], None] = lambda _: None) -> Book:
    """The book in a file, by the file's name: what else could be decoded (a PDF, a page of the web) is no story's text.

    Args:
        path: EPUB, DOCX, Markdown or text.
        guessed: told the encoding where the file does not say it.

    Raises:
        InputError: it is something else, or cannot be read.
    """
    from fabula.formats import SUFFIXES, read_book

    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path} is no manuscript that a novel can go on from: its name ends with none of {', '.join(SUFFIXES)}.",
            "Save it as EPUB, DOCX, Markdown or TXT, and name that file.",
        )
    return read_book(path, guessed=guessed)


def is_long(book: Book) -> bool:
    """Whether a manuscript must be read before it can be continued."""
    from fabula.text import count_tokens

    size = 0
    for chapter in book.chapters:
        for scene in chapter.scenes:
            size += count_tokens(scene.text)
            if size > SHORT:
                return True
    return False


def language_of(book: Book) -> str:
    """ISO 639-1; empty where neither the file nor its text tells."""
    if book.language and book.language != "und":
        return book.language.split("-")[0]
    from fabula.text import detect_language

    sample = "\n".join(scene.text[:2_000] for chapter in book.chapters[:6] for scene in chapter.scenes[:2])
    return detect_language(sample) or ""


def title_of(book: Book, path: Path) -> str:
    """The book's title; where the file names none and holds one chapter, that one's."""
    if book.title == path.stem and len(book.chapters) == 1:
        return book.chapters[0].title
    return book.title


@dataclass(frozen=True)
class BookToRead:
    """A book from which a novel goes on."""

    path: Path
    book: Book
    language: str
    """Of the answers; empty = found out by reading."""


def manuscript(told: Premise, path: Path) -> tuple[Premise, BookToRead | None]:
    """What a file is to a story: its opening where it is short, else a book that must be read first.

    Args:
        told: what the person gave.
        path: Markdown, EPUB, DOCX or text.

    Raises:
        NotFound, InputError: it is not there, cannot be read, or there is an opening already.
    """
    if not path.is_file():
        raise NotFound(f"There is no file {path}.", "Check the name and the folder.")
    if told.opening:
        raise InputError("A manuscript and an opening are both given.", "Make the opening the manuscript's last chapter.")
    book = book_in(path)
    language = told.language or language_of(book)
    told = replace(told, title=told.title or title_of(book, path), language=language)
    if is_long(book):
        return told, BookToRead(path, book, language)
    return replace(told, opening="\n\n".join(s.text.strip() for c in book.chapters for s in c.scenes if s.text.strip())), None


def study_of(
    wanted: BookToRead,
    things: Opened,
    *,
    task: Task | None = None,
    listen: Listener | None = None,
    limits: Limits | None = None,
    tell: Callable[[str], None] = lambda _: None,
    anyway: bool = False,
) -> Study:
    """The reading of a book for a novel: the one that was begun or finished earlier with this model, else a new one. Nothing is asked yet.

    Args:
        wanted: the book.
        things: library, models, memory.
        task: how to read; its `for_story` is set.
        listen: told of progress.
        limits: what the reading may spend.
        tell: is told the name of each document as it is read.
        anyway: also in a language that the model is marked unfit for.

    Raises:
        InputError, LanguageUnfit, Held.
    """
    from fabula.read import Study, Task
    from fabula.runs import silent
    from fabula.store import FactRow

    task = replace(task or Task(), for_story=True, language=wanted.language)
    opening: dict[str, Any] = {"model": things.model, "small_model": things.small_model, "memory": things.memory}
    opening |= {"listen": listen or silent, "limits": limits}
    name = _name_of_reading(wanted.path, task, things.model.name)
    held = things.store.rows(FactRow, name=name, newest_first=True, limit=1)
    if held:
        return Study.open(things.store, str(held[0].value["run"]), **opening)
    study = Study.start(things.store, [str(wanted.path.resolve())], task, tell=tell, anyway=anyway, **opening)
    with things.store.write(study.id, "learnt") as tx:
        tx.add(FactRow(name, {"run": study.id}))
    return study


def _name_of_reading(path: Path, task: Task, model: str) -> str:
    whole = hashlib.sha256(path.read_bytes())
    whole.update(repr((task, model)).encode("utf-8", "surrogatepass"))
    return f"read-for-story:{whole.hexdigest()[:32]}"


def unfinished(store: Store, *, reading: str = "", opening: str = "") -> str | None:
    """The novel, begun last and not finished, that goes on from a book: from its reading, or from its text as the opening."""
    from fabula.store import RunRow
    from fabula.write import Story

    wanted = ("reading", reading) if reading else ("opening", opening)
    found = [row.id for row in store.rows(RunRow, kind=Story.kind, newest_first=True) if row.premise.get(wanted[0]) == wanted[1]]
    states = {one["run"]: one["state"] for one in glances(store)} if wanted[1] and found else {}
    return next((run for run in found if states.get(run, "finished") != "finished"), None)


def left(limits: Limits, before: Mapping[str, float], after: Mapping[str, float]) -> Limits:
    """What a novel may spend after the same command has read for it: `before` and `after` are the reading's usage."""
    from fabula.runs import Limits

    tokens, money, calls = (
        sum(after[name] - before[name] for name in names) for names in (("prompt_tokens", "answer_tokens"), ("cost",), ("calls",))
    )
    return Limits(
        None if limits.tokens is None else max(0, limits.tokens - int(tokens)),
        None if limits.money is None else max(0.0, limits.money - money),
        None if limits.calls is None else max(0, limits.calls - int(calls)),
    )


def continued(told: Premise, story: Mapping[str, Any], book: Book, reading: str) -> Premise:
    """A premise that goes on from a book: what the person gave stands, the reading gives the rest.

    Args:
        told: what the person gave, and the book's title.
        story: `Study.story()`.
        book: the text.
        reading: the run of the reading.
    """
    from fabula.write import Character, Remembered, manuscript_of

    named = {c.name.casefold() for c in told.cast}
    found = tuple(Character(c["name"], c["about"]) for c in story["cast"] if c["name"].casefold() not in named)
    places = "\n".join(f"{p['name']}: {p['about']}" for p in story["places"])
    memories = tuple(
        Remembered(m["text"], m["kind"], quote=m["quote"], entities=tuple(m["entities"]), evidence=(m["evidence"],), order=m["order"])
        for m in story["memories"]
    )
    return replace(
        told,
        manuscript=manuscript_of(book),
        memories=memories,
        reading=reading,
        title=told.title,
        language=told.language or story["language"],
        setting=told.setting or "\n\n".join(filter(None, [story["setting"], places])),
        cast=(*told.cast, *found),
        style=told.style or story["style"],
        person=told.person or story["person"],
        tense=told.tense or story["tense"],
        short_term=told.short_term or tuple(story["short_term"]),
        plans=told.plans or (() if told.plan or told.premise else tuple(story["plans"])),  # a premise is the first plan
    ).checked()
