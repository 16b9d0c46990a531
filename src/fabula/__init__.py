"""Fabula: stories that remember.

    import fabula

    with fabula.write("A lighthouse keeper finds a letter.", words=1000, genre="mystery") as book:
        print(book.text())
        book.export("letter.epub")

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
    from fabula.sync import Book, Library, open_library, run_sync, write

__all__ = ["Book", "FabulaError", "Library", "__version__", "open_library", "run_sync", "write"]

_HOMES = {"Book": "sync", "FabulaError": "errors", "Library": "sync", "open_library": "sync", "run_sync": "sync"}


class _Callable(ModuleType):
    """`fabula.write` is the folder of the writer and the verb of the first line above; so the module can be called."""

    def __call__(self, *args: Any, **given: Any) -> Book:
        """Write a book: see `fabula.sync.write`."""
        from fabula.sync import write

        return write(*args, **given)


class _Package(ModuleType):
    """Notices when the import system puts `fabula.write` in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "write" and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "write":
        return importlib.import_module("fabula.write")
    if name not in _HOMES:
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fabula.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
