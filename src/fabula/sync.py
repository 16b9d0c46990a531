"""The synchronous face, for scripts and notebooks: `fabula.write(…)`, `fabula.open_library(…)`, `fabula.run_sync(…)`.

Nothing of the API is written twice. One event loop runs on a thread of its own; a `Face` stands before an object of the asynchronous
API and runs each of its methods there, waiting for what is awaitable. So a `Book` has every method of `fabula.write.Novel`.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
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
    from fabula.runs import Limits
    from fabula.settings import Settings
    from fabula.write import Premise

T = TypeVar("T")

_SETTINGS = ("library", "model", "small_model", "base_url", "embedder", "concurrency")
_LIMITS = ("max_tokens", "max_money", "max_calls")


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
        from fabula.write import glances

        return portal.run(lambda: glances(self._read()))

    def write(
        self, premise: str = "", *, steps: int | None = None, listen: Callable[[Any], None] | None = None, seed: str | None = None,
        anyway: bool = False, **options: Any,
    ) -> Book:  # fmt: skip
        """Begin a book and write it to its end, or for so many steps (0 = only begin it).

        Args:
            premise: what it is about.
            steps: most steps; None = to the end, which a length, chapters or an outline must set.
            listen: called with each event of `fabula.runs.Progress`, on another thread.
            seed: of all that is drawn by lot.
            anyway: also in a language that the model is marked unfit for.
            options: fields of `fabula.write.Premise`; `words` is its `length`, `cast` may be a mapping of names, `manuscript` a file.

        Raises:
            FabulaError: as `Novel.start` and `Novel.write`.
        """
        from fabula.write import Novel

        told = premise_of(premise, options)
        if steps is None and not (told.length or told.chapters or told.outline):
            raise InputError("Nothing says when the story ends.", "Give words=, chapters= or an outline, or so many steps=.")

        async def begin() -> Any:
            things = await self._ready()
            novel = Novel.start(
                things.store, told, model=things.model, small_model=things.small_model, memory=things.memory, listen=listen or _silent,
                limits=self._limits, seed=seed, anyway=anyway,
            )  # fmt: skip
            await things.catch_up(novel.view())  # what a manuscript brought along
            return novel

        book = Book(portal.run(begin))
        if steps != 0:
            book.write(steps=steps)
        return book

    def open(self, run: str, *, edit: bool = False, listen: Callable[[Any], None] | None = None) -> Book:
        """Open a book to go on with it; `edit`: only to read and change it, which needs no model.

        Raises:
            NotFound, Held, NotPossible.
        """
        from fabula.write import Novel

        async def begin() -> Any:
            if edit:
                return Novel.open(self._read(), run, hold=True, listen=listen or _silent)
            things = await self._ready()
            novel = Novel.open(
                things.store, run, model=things.model, small_model=things.small_model, memory=things.memory, listen=listen or _silent,
                limits=self._limits,
            )  # fmt: skip
            await things.catch_up(novel.view())
            return novel

        return Book(portal.run(begin))

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
