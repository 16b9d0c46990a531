"""What a book is: chapters of scenes of text, and nothing that belongs to one file format."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fabula.errors import InputError
from fabula.formats._headings import one_line

RIGHT_TO_LEFT = frozenset({"ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
WIDE = frozenset({"ja", "ko", "zh", "yue"})
"""Languages that set no full stop or colon between a chapter's label and its title, but a wide space."""

_XML_CANNOT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TEXT_CANNOT = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene: its stable id, and its text as it is stored, any characters, paragraphs apart by newlines."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter. What is printed over it is its label ("Chapter 3", 第三章) and its title; either may be empty."""

    id: str
    title: str = ""
    label: str = ""
    scenes: tuple[Scene, ...] = ()

    def heading(self, language: str) -> str:
        """Label and title on one line, as the language sets them: "Chapter 3: The Lock", "Глава 3. Замок", 第三章　锁."""
        return heading_separator(language).join(part for part in (one_line(self.label), one_line(self.title)) if part)


@dataclass(frozen=True, slots=True)
class Book:
    """A whole book, with what a reader's shelf shows of it."""

    title: str
    language: str = "en"
    """BCP 47, e.g. `en`, `zh`, `ru`, `pt-BR`."""
    authors: tuple[str, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    note: str = ""
    """On the model and the share of machine text, printed at the end (SPEC W10); empty = none."""
    identifier: str = ""
    """A URN that stays the same for all editions; empty = derived from title, language and authors."""
    cover: bytes | None = None
    """A PNG or JPEG picture, for EPUB only."""

    def scenes(self) -> Iterator[Scene]:
        """All scenes in reading order."""
        for chapter in self.chapters:
            yield from chapter.scenes

    @property
    def urn(self) -> str:
        """The identifier, or the one derived from title, language and authors."""
        name = "\x1f".join([self.title, self.language, *self.authors])
        return self.identifier or uuid.uuid5(uuid.NAMESPACE_URL, name).urn

    @property
    def right_to_left(self) -> bool:
        """Whether pages turn from left to right because lines run from right to left."""
        return base_language(self.language) in RIGHT_TO_LEFT


def base_language(language: str) -> str:
    """The ISO 639 part of a BCP 47 tag, lower case: `zh-Hant` → `zh`."""
    return re.split("[-_]", language, maxsplit=1)[0].lower()


def heading_separator(language: str) -> str:
    """What stands between a chapter's label and its title."""
    base = base_language(language)
    return "\u3000" if base in WIDE else ". " if base in {"ru", "uk", "be", "bg", "sr"} else ": "


def check_book(book: Book, format: str, *, xml: bool) -> None:
    """Refuse what a format cannot hold, before a byte is written.

    Raises:
        InputError: no title, an id used twice, or a character that the format cannot hold.
    """
    if not one_line(book.title):
        raise InputError("The book has no title.", "Give it one, for example with --title.")
    for kind, ids in (("chapter", [chapter.id for chapter in book.chapters]), ("scene", [scene.id for scene in book.scenes()])):
        if twice := [name for name, count in Counter(ids).items() if count > 1]:
            raise InputError(f"Two {kind}s of the book have the id {twice[0]!r}.", "Give each its own id.")
        if "" in ids:
            raise InputError(f"A {kind} of the book has no id.", "Give each its own id.")
    cannot = _XML_CANNOT if xml else _TEXT_CANNOT
    parts = [("the title", book.title), ("the note", book.note), *(("an author's name", author) for author in book.authors)]
    parts += [(f"the heading of chapter {chapter.id}", chapter.label + chapter.title) for chapter in book.chapters]
    parts += [(f"scene {scene.id}", scene.text) for scene in book.scenes()]
    for where, text in parts:
        if match := cannot.search(text):
            sign = f"the character U+{ord(match[0]):04X} at position {match.start()}"
            hint = ", or export as Markdown" if not _TEXT_CANNOT.match(match[0]) else ""
            place = where[0].upper() + where[1:]
            raise InputError(f"{place} has {sign}, which {format} cannot hold.", f"Remove that character from the text{hint}.")
