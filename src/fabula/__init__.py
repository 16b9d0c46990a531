"""Fabula: stories that remember.

    import fabula

    with fabula.write("A lighthouse keeper finds a letter.", words=1000, genre="mystery") as book:
        print(book.text())
        book.export("letter.epub")

    with fabula.read("src", task="How does it start?") as reading:
        print(reading.report())
        print(reading.ask("Where are settings read?").text)

The names below are loaded when they are first used. Everything is asynchronous inside (`fabula.write.Novel`, `fabula.runs` …); what
stands here is one thin synchronous face for scripts and notebooks. See docs/python.md.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fabula.errors import FabulaError
    from fabula.sync import Book, Library, Reading, open_library, read, run_sync, write

__all__ = ["Book", "FabulaError", "Library", "Reading", "__version__", "open_library", "read", "run_sync", "write"]

_HOMES = {
    "Book": "sync", "FabulaError": "errors", "Library": "sync", "Reading": "sync", "open_library": "sync", "run_sync": "sync",
}  # fmt: skip
_VERBS = ("read", "write")
"""Folders of ways in that can be called."""


class _Callable(ModuleType):
    """`fabula.write` is the folder of the writer and the verb of the first line above; so the module can be called."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Write a book, read a source: see `fabula.sync`."""
        from fabula import sync

        return getattr(sync, self.__name__.rpartition(".")[2])(*args, **given)


class _Package(ModuleType):
    """Notices when the import system puts `fabula.write` or `fabula.read` in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _VERBS and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return importlib.import_module(f"fabula.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fabula.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
