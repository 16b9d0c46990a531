"""The synchronous face, for scripts and notebooks: `fabula.write(…)`, `fabula.read(…)`, `fabula.open_library(…)`, `fabula.run_sync(…)`.

Nothing of the API is written twice. One event loop runs on a thread of its own; a `Face` stands before an object of the asynchronous
API and runs each of its methods there, waiting for what is awaitable. So a `Book` has every method of `fabula.write.Novel`.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import json
import threading
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from fabula.errors import InputError

if TYPE_CHECKING:
    from fabula.opening import Opened
    from fabula.read import Answer
    from fabula.runs import Limits
    from fabula.settings import Settings
    from fabula.write import Premise

T = TypeVar("T")

_SETTINGS = ("library", "model", "small_model", "base_url", "embedder", "concurrency")
_LIMITS = ("max_tokens", "max_money", "max_calls")
_REPORTS = (".md", ".json")
"""Suffixes of a reading's report."""


class Portal:
    """An event loop on a thread of its own, started at the first call and stopped when the process ends."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    @overload
    def run(self, work: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    def run(self, work: Callable[[], T]) -> T: ...
    def run(self, work: Callable[[], Any]) -> Any:
        """Call `work` on the loop's thread and return its result, awaited where it is awaitable.

        A KeyboardInterrupt here cancels it there, waits until it has ended, and goes on its way.
        """

        async def whole() -> Any:
            result = work()
            return await result if inspect.isawaitable(result) else result

        future: Future[Any] = asyncio.run_coroutine_threadsafe(whole(), self._started())
        try:
            return future.result()
        except KeyboardInterrupt:
            self._cancel(future)
            raise

    @staticmethod
    def _cancel(future: Future[Any]) -> None:
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        future.cancel()
        ended.wait(10.0)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="fabula", daemon=True).start()
                atexit.register(self.stop)
            return self._loop

    def stop(self) -> None:
        """Cancel what runs and end the loop; the next call starts another."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:

            async def end() -> None:
                tasks = asyncio.all_tasks() - {asyncio.current_task()}
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

            asyncio.run_coroutine_threadsafe(end(), loop).result(10.0)
            loop.call_soon_threadsafe(loop.stop)


portal = Portal()
"""Of this process."""


def run_sync(work: Awaitable[T] | Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine of the asynchronous API to its end, from ordinary code or a notebook.

    Args:
        work: an awaitable, or a function that is called on the loop's thread (what it opens belongs to that loop).
    """
    call: Callable[[], Awaitable[T]] = work if callable(work) else lambda: work
    return portal.run(call)


class Face:
    """An object of the asynchronous API for ordinary code: its methods run on the portal's loop, one after another."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = portal.run(lambda: getattr(self._inner, name))
        if not inspect.ismethod(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **given: Any) -> Any:
            return portal.run(lambda: value(*args, **given))

        return call

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._inner)})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inner!r})"


class Book(Face):
    """A `fabula.write.Novel` for ordinary code. Close it, or use it in a `with` statement; the process's end closes it too."""

    def __init__(self, inner: Any, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner)
        self._close = close

    def close(self) -> None:
        """Let the run go, and what was opened for this book alone."""
        portal.run(self._inner.close)
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Book({self._inner.id!r}, {self._inner.title!r})"


class Reading(Face):
    """A `fabula.read.Study` for ordinary code, with its conversation. Close it, or use it in a `with` statement."""

    def __init__(self, inner: Any, library: Library, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner)
        self._library, self._close = library, close
        self._talk: Any = None

    def ask(self, question: str, *, new: bool = False) -> Answer:
        """Ask about what was read; a later question sees the earlier ones.

        Args:
            question: in any language.
            new: begin another conversation.

        Raises:
            InputError: an empty question.
            LimitReached, ModelError: nothing is lost.
        """
        if not question.strip():
            raise InputError("The question is empty.", 'Ask like this: `reading.ask("Who has the key?")`.')

        async def whole() -> Answer:
            if self._talk is None or new:
                if self._talk is not None:
                    self._talk.close()
                self._talk = await self._library.conversation_of(self._inner.id, new=new)
            answer: Answer = await self._talk.ask(question)
            return answer

        return portal.run(whole)

    def export(self, path: str | Path) -> Path:
        """Write the report to a file: .md or .json. Raises InputError."""
        return write_report(self.result(), Path(path))

    def close(self) -> None:
        """Let the run go, and what was opened for this reading alone."""

        def end() -> None:
            if self._talk is not None:
                self._talk.close()
            self._inner.close()

        portal.run(end)
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Reading({self._inner.id!r}, {self._inner.title!r})"


class Library:
    """A library with its models, for ordinary code. Close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, limits: Limits | None = None) -> None:
        self.settings, self._limits = settings, limits
        self._stack = AsyncExitStack()
        self._opened: Opened | None = None
        self._store: Any = None

    @property
    def path(self) -> str:
        """The library's file."""
        return self.settings.library

    def runs(self) -> list[dict[str, Any]]:
        """The runs, the latest first: run (its id), kind, title, language, length, steps, state, changed (seconds since 1970) and more."""
        from fabula.ways import glances

        return portal.run(lambda: glances(self._read()))

    def write(
        self, premise: str = "", *, continue_from: str | Path | None = None, steps: int | None = None,
        listen: Callable[[Any], None] | None = None, seed: str | None = None, anyway: bool = False, **options: Any,
    ) -> Book:  # fmt: skip
        """Begin a book and write it to its end, or for so many steps (0 = only begin it).

        Args:
            premise: what it is about, or, after a manuscript, how it goes on.
            continue_from: a manuscript: Markdown, EPUB, DOCX or text. A short one is the opening; a long one is read first, which costs
                a request for each chunk, and what was read before is not asked again.
            steps: most steps; None = to the end, which a length, chapters or an outline must set.
            listen: called with each event of `fabula.runs.Progress`, on another thread.
            seed: of all that is drawn by lot.
            anyway: also in a language that the model is marked unfit for.
            options: fields of `fabula.write.Premise`; `words` is its `length`, `cast` may be a mapping of names, `manuscript` a file.

        Raises:
            FabulaError: as `Novel.start` and `Novel.write`.
        """
        from fabula.runs import Limits
        from fabula.ways import continued, left, manuscript, study_of
        from fabula.write import Novel

        told = premise_of(premise, options)
        if steps is None and not (told.length or told.chapters or told.outline):
            raise InputError("Nothing says when the story ends.", "Give words=, chapters= or an outline, or so many steps=.")
        told, wanted = manuscript(told, Path(continue_from).expanduser()) if continue_from is not None else (told, None)
        limits = self._limits or Limits()

        async def begin() -> Any:
            things, spend, whole = await self._ready(), limits, told
            if wanted is not None:
                study = study_of(wanted, things, listen=listen, limits=limits, anyway=anyway)
                before = study.usage()
                try:
                    await study.read()
                    whole = continued(told, await study.story(), wanted.book, study.id)
                    spend = left(limits, before, study.usage())
                finally:
                    study.close()
            novel = Novel.start(
                things.store, whole, model=things.model, small_model=things.small_model, memory=things.memory, listen=listen or _silent,
                limits=spend, seed=seed, anyway=anyway,
            )  # fmt: skip
            await things.catch_up(novel.view())  # what a manuscript brought along
            return novel

        book = Book(portal.run(begin))
        if steps != 0:
            book.write(steps=steps)
        return book

    def read(
        self, *sources: str | Path, task: str = "", way: str = "", listen: Callable[[Any], None] | None = None, seed: str | None = None,
        anyway: bool = False, begin_only: bool = False, **options: Any,
    ) -> Reading:  # fmt: skip
        """Read documents or code to the end.

        Args:
            sources: files, folders, addresses of git repositories.
            task: what to read for, in any language.
            way: chain, tree, two-pass or ask; empty = by task and length.
            listen: called with each event of `fabula.runs.Progress`, on another thread.
            seed: of all that is drawn by lot.
            anyway: also in a language that the model is marked unfit for.
            begin_only: only gather and plan: see `plan()`, then `read()`.
            options: fields of `fabula.read.Task` (language, chunk_tokens, as_article, small …) and of `fabula.read.SourceOptions` (branch,
                include, exclude, readme, docs, ignored, encoding …).

        Raises:
            FabulaError: as `Study.start` and `Study.read`.
        """
        from fabula.read import SourceOptions, Study, Task

        if not sources:
            raise InputError("Nothing says what to read.", 'Name a file or folder: `fabula.read("src", task="…")`.')
        given: tuple[object, ...] = sources
        listed = next((one for one in given if not isinstance(one, str | Path)), None)
        if listed is not None:
            raise InputError(
                f"A source is a {type(listed).__name__}, not a path or an address.",
                'Name them one by one: `fabula.read("a", "b")` or `*paths`.',
            )
        wanted, chosen = _parted(options, Task, SourceOptions, "A reading")

        async def begin() -> Any:
            things = await self._ready()
            return Study.start(
                things.store, [str(s) for s in sources], Task(task, way, **wanted), model=things.model, small_model=things.small_model,
                memory=things.memory, options=SourceOptions(**chosen), listen=listen or _silent, limits=self._limits, seed=seed,
                anyway=anyway,
            )  # fmt: skip

        reading = Reading(portal.run(begin), self)
        if not begin_only:
            try:
                reading.read()
            except BaseException:
                portal.run(reading._inner.close)  # noqa: SLF001 (its own)
                raise
        return reading

    def open(self, run: str, *, edit: bool = False, listen: Callable[[Any], None] | None = None) -> Any:
        """Open a book or a reading to go on with it; `edit`: only to look at it and change it, which needs no model.

        Raises:
            NotFound, Held, NotPossible.
        """
        from fabula.ways import is_reading

        listen = listen or _silent

        async def begin() -> Any:
            things = None if edit else await self._ready()
            store = things.store if things is not None else self._read()
            kind = _kind_of(is_reading(store.run(run)))
            if things is None:
                return kind.open(store, run, hold=True, listen=listen)
            opened = kind.open(
                store, run, model=things.model, small_model=things.small_model, memory=things.memory, listen=listen, limits=self._limits
            )
            await things.catch_up(opened.view())
            return opened

        inner = portal.run(begin)
        return Reading(inner, self) if is_reading(inner.run.row) else Book(inner)

    async def conversation_of(self, run: str, *, new: bool = False) -> Any:
        """The conversation about a reading, opened on the portal's loop (see `fabula.read.Study.conversation`)."""
        from fabula.read import Study

        things = await self._ready()
        study = Study.conversation(
            things.store, run, new=new, model=things.model, small_model=things.small_model, memory=things.memory, limits=self._limits
        )
        await things.catch_up(study.view())
        return study

    def close(self) -> None:
        """Close the models and the library."""

        async def end() -> None:
            await self._stack.aclose()
            if self._store is not None and self._opened is None:
                self._store.close()
            self._opened = self._store = None

        portal.run(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _ready(self) -> Opened:
        from fabula.opening import opened

        if self._opened is None:
            if self._store is not None:
                self._store.close()
            self._opened = await self._stack.enter_async_context(opened(self.settings, limits=self._limits, note=_warn))
            self._store = self._opened.store
        return self._opened

    def _read(self) -> Any:
        from fabula.opening import open_library as open_store

        if self._store is None:
            self._store = open_store(self.settings)
        return self._store


def open_library(library: str | Path | None = None, **options: Any) -> Library:
    """A library and its models, for ordinary code.

    Args:
        library: its file; None = as the settings say.
        options: settings (model, small_model, base_url, embedder, concurrency) and limits (max_tokens, max_money, max_calls).

    Raises:
        InputError: an unknown option, or a settings file that cannot be used.
    """
    from fabula.runs import Limits
    from fabula.settings import find_settings

    unknown = sorted(set(options) - {*_SETTINGS, *_LIMITS})
    if unknown:
        raise InputError(f"There is no option {', '.join(unknown)}.", f"The options are: {', '.join((*_SETTINGS, *_LIMITS))}.")
    flags = {name: options.get(name) for name in _SETTINGS}
    limits = Limits(*(options.get(name) for name in _LIMITS))
    return Library(find_settings({**flags, "library": str(library) if library is not None else None}), limits)


def write(premise: str = "", *, out: str | Path | Sequence[str | Path] = (), **options: Any) -> Book:
    """Write a book: `fabula.write("A lighthouse keeper finds a letter.", words=1000, genre="mystery").text()`.

    Args:
        premise: what it is about.
        out: files to write the book to: .md, .epub, .docx, .txt.
        options: those of `open_library` and of `Library.write`.

    Returns:
        the book, still open: go on with `book.write(steps=3)`, change it, `book.export(path)`, and close it.
    """
    opening = {name: options.pop(name) for name in (*_SETTINGS, *_LIMITS) if name in options}
    library = open_library(**opening)
    try:
        book = library.write(premise, **options)
    except BaseException:
        library.close()
        raise
    book._close = library.close  # noqa: SLF001 (its own)
    for path in [out] if isinstance(out, str | Path) else out:
        book.export(Path(path))
    return book


def read(*sources: str | Path, out: str | Path | Sequence[str | Path] = (), **options: Any) -> Reading:
    """Read documents or code: `fabula.read("src", task="How does it start?").report()`.

    Args:
        sources: files, folders, addresses of git repositories.
        out: files to write the report to: .md or .json.
        options: those of `open_library` and of `Library.read`.

    Returns:
        the reading, still open: `result()`, `report()`, `ask("…")`, `entities()`; close it.
    """
    opening = {name: options.pop(name) for name in (*_SETTINGS, *_LIMITS) if name in options}
    paths = [Path(path) for path in ([out] if isinstance(out, str | Path) else out)]
    for path in paths:
        check_report(path)
    library = open_library(**opening)
    try:
        reading = library.read(*sources, **options)
    except BaseException:
        library.close()
        raise
    reading._close = library.close  # noqa: SLF001 (its own)
    for path in paths:
        reading.export(path)
    return reading


def write_report(result: Mapping[str, Any], path: Path) -> Path:
    """A reading's result as Markdown or JSON, by the name of the file. Raises InputError where it cannot be written."""
    from fabula.read import report_of

    check_report(path)
    target = path.expanduser()
    as_json = target.suffix.lower() == ".json"
    text = json.dumps(result, ensure_ascii=False, indent=1) + "\n" if as_json else report_of(result)
    part = target.with_name(target.name + ".part")
    try:
        part.write_text(text, "utf-8", "surrogatepass" if as_json else "backslashreplace", newline="\n")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(
            f"{target} cannot be written: {error.strerror or error}.", "Name a file in another folder, or check the disk."
        ) from error
    return target


def check_report(path: Path) -> None:
    """Raises InputError for a name that no report can have."""
    if path.suffix.lower() not in _REPORTS:
        raise InputError(f"{path} is no report: its name ends with neither .md nor .json.", "Write to report.md or report.json.")


def _kind_of(reading: bool) -> Any:
    from fabula.read import Study
    from fabula.write import Novel

    return Study if reading else Novel


def _parted(options: Mapping[str, Any], first: Any, second: Any, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments as fields of two dataclasses. Raises InputError for one that neither has."""
    fields = [set(one.__dataclass_fields__) for one in (first, second)]
    unknown = sorted(set(options) - fields[0] - fields[1])
    if unknown:
        known = sorted(fields[0] | fields[1])
        raise InputError(f"{what} has no option {', '.join(unknown)}.", f"It has: {', '.join(known)}.")
    given = [{name: tuple(value) if isinstance(value, list) else value for name, value in options.items() if name in one} for one in fields]
    return given[0], given[1]


def premise_of(premise: str, options: Mapping[str, Any]) -> Premise:
    """A premise from keyword arguments. Raises InputError for an unknown one."""
    from fabula.write import Character, Premise

    given = dict(options)
    if "words" in given:
        given["length"] = given.pop("words")
    if isinstance(given.get("manuscript"), str | Path):
        given |= _from_file(Path(given["manuscript"]), given)
    unknown = sorted(set(given) - set(Premise.__dataclass_fields__))
    if unknown:
        raise InputError(f"A story has no option {', '.join(unknown)}.", f"It has: words, {', '.join(Premise.__dataclass_fields__)}.")
    cast = given.pop("cast", ())
    pairs = cast.items() if isinstance(cast, Mapping) else cast
    people = tuple(one if isinstance(one, Character) else Character(*one) if not isinstance(one, str) else Character(one) for one in pairs)
    for name in ("short_term", "outline", "plans"):
        if name in given:
            given[name] = tuple(given[name].splitlines() if isinstance(given[name], str) else given[name])
    return replace(Premise(premise, cast=people), **given)


def _from_file(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """A manuscript from a file, with its title and language where none is given. Raises NotFound, InputError."""
    from fabula.formats import read_book
    from fabula.write import manuscript_of

    book = read_book(path.expanduser())
    language = "" if book.language == "und" else book.language.split("-")[0]
    return {
        "manuscript": manuscript_of(book), "title": given.get("title") or book.title, "language": given.get("language") or language,
    }  # fmt: skip


def _warn(text: str) -> None:
    """What is otherwise than chosen."""
    warnings.warn(text, stacklevel=2)


def _silent(event: Any) -> None:
    """Nobody listens."""
