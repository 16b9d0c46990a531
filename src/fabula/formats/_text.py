"""A book as plain text: title and headings underlined, scenes apart by `* * *`, the text untouched.

    The Fourth Lock
    ===============
    Language: en
    Author: Mira Lind

    Chapter 1: The Harbour
    ----------------------

    The text as it is.

    * * *

    More text.

Ids are not in the file: they are made by position when it is read. A line of prose that looks like an underline or a scene
break gets a backslash.
"""

from __future__ import annotations

import re
import unicodedata

from fabula.formats._book import Book
from fabula.formats._headings import one_line
from fabula.formats._lines import Gathering
from fabula.formats._plain import read_plain

_STRUCTURE = r"\\*(?:-{3,}|={3,}|\* \* \*)$"
_NEEDS = re.compile(rf"^(?={_STRUCTURE})")
_HAS = re.compile(rf"^\\(?={_STRUCTURE})")
_TOP = re.compile(r"(?P<title>[^\n]+)\n={3,}\n(?P<fields>(?:[A-Z]\w+: [^\n]*\n)+)(?:\n|\Z)")


def write_text(book: Book) -> bytes:
    """The book as UTF-8 plain text."""
    title = one_line(book.title)
    fields = [f"Language: {book.language}", *(f"Author: {one_line(author)}" for author in book.authors)]
    fields += [f"Identifier: {book.identifier}"] if book.identifier else []
    fields += [f"Note: {one_line(book.note)}"] if book.note.strip() else []
    parts = [f"{title}\n{'=' * _width(title)}\n" + "".join(f"{line}\n" for line in fields)]
    for chapter in book.chapters:
        heading = chapter.heading(book.language)
        parts.append(f"{_NEEDS.sub(chr(92) * 2, heading)}\n{'-' * _width(heading)}\n" if heading else f"{'-' * 8}\n")
        for number, scene in enumerate(chapter.scenes):
            parts += ["* * *\n"] if number else []
            parts.append("\n".join(_NEEDS.sub(r"\\", line) for line in scene.text.split("\n")) + "\n")
    return "\n".join(parts).encode()


def read_text(text: str, name: str) -> Book:
    """A book from plain text, Fabula's or others'; `name` is its title where the text gives none."""
    top = _TOP.match(text)
    if not top or "Language: " not in top["fields"]:
        return read_plain(text, name)
    fields = [line.split(": ", 1) for line in top["fields"].splitlines()]
    value = dict(fields)
    gathering = Gathering(value["Language"], lambda lines, _: "\n".join(_plain(line) for line in lines))
    _gather(text[top.end() :].split("\n"), gathering)
    return Book(
        top["title"], value["Language"], tuple(said for key, said in fields if key == "Author"), gathering.done(),
        value.get("Note", ""), value.get("Identifier", ""),
    )  # fmt: skip


def _gather(lines: list[str], gathering: Gathering) -> None:
    """Find what is structure, and hand on the lines between."""
    marks: list[tuple[int, int, str | None]] = []  # first line, line after the last, heading (None: a scene break)
    for number, line in enumerate(lines):
        if re.fullmatch("-{3,}", line):
            headed = number > 0 and lines[number - 1] != "" and (not marks or marks[-1][1] < number)
            marks.append((number - headed, number + 1, _plain(lines[number - 1]) if headed else ""))
        elif line == "* * *":
            marks.append((number, number + 1, None))
    beginning, *ends = [*(first for first, _, _ in marks), len(lines)]
    for line in lines[:beginning]:
        gathering.line(line)
    for (_, start, heading), end in zip(marks, ends, strict=True):
        body = lines[start:end]
        if heading is None:
            gathering.scene()
        else:
            gathering.chapter()
            gathering.heading(heading)
            if body in ([], [""]):
                continue  # a chapter without scenes; one with an empty scene has more blank lines
            gathering.scene()
        for line in body:
            gathering.line(line)


def _plain(line: str) -> str:
    return _HAS.sub("", line)


def _width(line: str) -> int:
    """Columns that a line takes on a screen, at least three."""
    return max(3, sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in line))
