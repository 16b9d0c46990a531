"""What a file says, as one text: the value that reading starts from, and how it is put together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fabula.errors import InputError

Kind = Literal["prose", "code"]
MOST_CHARACTERS = 50_000_000
"""Text of one document; ten times the longest novels."""
MOST_PLACES = 100_000
_MOST_BLOCKS = 1000
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    r"""The text of one file.

    Attributes:
        name: path relative to the source's root, `/` between its parts, or the file's own name.
        text: as read; lines end with `\n`.
        kind: how it is to be split: prose at headings, paragraphs and sentences, code at declarations.
        format: `text`, `markdown`, `html`, `pdf`, `docx`, `epub`, `rtf`, `notebook`, `code`, `image` or `speech`.
        places: (offset in characters, label), ascending: `page 12`, a chapter's heading, `cell 4`; empty where lines are enough.
        notes: what was guessed or lost, each a sentence without its point.
    """

    name: str
    text: str
    kind: Kind
    format: str
    places: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]


class Draft:
    """A document's text while it is put together: blocks apart by a blank line, places where they begin, notes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        self._blocks: list[str] = []
        self._joined: list[str] = []
        self._places: list[tuple[int, str]] = []
        self._length = 0

    def place(self, label: str, offset: int = 0) -> None:
        """The next block, `offset` characters into it, is at this place."""
        label = " ".join(label.split())
        at = self._length + offset
        if label and not (self._places and self._places[-1][0] == at) and len(self._places) < MOST_PLACES:
            self._places.append((at, label[:200]))

    def add(self, block: str) -> None:
        """Append a block, unless it is blank."""
        block = clean(block).strip("\n")
        if not block.strip():
            return
        self._blocks.append(block)
        self._length += len(block) + 2
        if self._length > MOST_CHARACTERS:
            raise too_long(self.name)
        if len(self._blocks) > _MOST_BLOCKS:
            # A million short strings take ten times the memory of their text.
            self._joined.append("\n\n".join(self._blocks))
            self._blocks.clear()

    def done(self, kind: Kind, format: str) -> Document:
        """The document.

        Raises:
            InputError: it holds no text.
        """
        text = "\n\n".join([*self._joined, *self._blocks])
        if not text.strip():
            why = "; ".join(self.notes)
            raise InputError(f"{self.name} holds no text{f' ({why})' if why else ''}.", "Check that it is the right file.")
        # A place of which nothing followed is where the text ends.
        places = tuple((at, label) for at, label in self._places if at < len(text))
        return Document(self.name, text + "\n", kind, format, places, tuple(self.notes))


def clean(text: str) -> str:
    r"""Lines that end with `\n`, and no half of a character."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _LONE_SURROGATE.sub("\ufffd", text)


def too_long(name: str) -> InputError:
    """The error for a text that is too long to be one document."""
    return InputError(f"{name} holds more than {MOST_CHARACTERS // 1_000_000} million characters.", "Split it into several files.")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 picture`, `3 pictures`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
