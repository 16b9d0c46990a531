"""What a folder and a repository have in common: files in a fixed order, each opened when its turn comes."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


class Unreadable(Exception):
    """A file that is passed over; the message is the reason, one sentence."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a folder (with a slash at its end), that was not read.

    Attributes:
        path: relative to the root, printable.
        why: one sentence.
        size: bytes; 0 for folders and where it is not known.
    """

    path: str
    why: str
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that may be read.

    Attributes:
        path: relative to the root, `/` between its parts, as the system has it.
        size: bytes.
        head: gives its first bytes. Raises Unreadable.
        read: gives all of it. Raises Unreadable.
        refuse: says by its first bytes why it is not read; empty where it is.
    """

    path: str
    size: int
    head: Callable[[int], bytes]
    read: Callable[[], bytes]
    refuse: Callable[[bytes], str]


class Tree(Protocol):
    """A folder or a repository."""

    def entries(self, skip: Callable[[str, str, int], None]) -> Iterator[Entry]:
        """The files that the rules let through, sorted; `skip` is told (path, why, size) of the others."""


def printable(path: str) -> str:
    """A path that can be shown and stored: bytes that are no text, control and direction characters as escapes."""
    path = path.encode("utf_8", "surrogateescape").decode("utf_8", "backslashreplace")
    if path.isprintable():
        return path
    return "".join(
        sign if sign.isprintable() or unicodedata.category(sign) == "Zs" else sign.encode("unicode_escape").decode() for sign in path
    )


def files_word(count: int, more: bool = False) -> str:
    """`1 file`, `1,234 files`, `more than 2,000 files`."""
    return f"{'more than ' if more else ''}{count:,} file{'' if count == 1 and not more else 's'}"


def os_reason(error: OSError) -> str:
    """The sentence for a file that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return "It vanished before it was read."
    return f"It cannot be read: {error.strerror or os.strerror(error.errno or 0)}."
