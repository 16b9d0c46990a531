"""What was found in a manuscript, shown before anything is kept: chapters, their lengths, how each begins, and what looks wrong."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from fabula.cli._output import console, first_line, is_plain, number, printable, unit_name

if TYPE_CHECKING:
    from fabula.formats import Book

_MOST = 24
"""Chapters that are listed; of more the first and the last are."""
_LAST = 6
_MOST_WARNINGS = 8
_MUCH = {"words": 6_000, "characters": 10_000}
"""A chapter below this is never called long."""
_TIMES = 4
"""So many times the usual length is long."""
_BEGINS = 60
"""Characters shown of a chapter's beginning."""
_WIDEST_HEADING = 40


@dataclass(frozen=True, slots=True)
class ChapterFound:
    """One chapter, or the heading of a volume."""

    number: int
    """Its place among the chapters, from 1; 0 = the heading of a volume."""
    volume: str
    """The volume that it belongs to; empty = none."""
    heading: str
    length: int
    """In the language's unit."""
    scenes: int
    begins: str
    doubtful: bool = False
    """A warning is about it."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What was found in a book."""

    title: str
    language: str
    chapters: tuple[ChapterFound, ...]
    warnings: tuple[str, ...]
    length: int

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        chapters = [
            {"number": c.number, "volume": c.volume, "heading": c.heading, "length": c.length, "scenes": c.scenes, "begins": c.begins}
            for c in self.chapters
            if c.number
        ]
        return {"title": self.title, "length": self.length, "chapters": chapters, "warnings": list(self.warnings)}

    def lines(self) -> list[str]:
        """As plain text: one line a chapter, columns padded; then the whole, then what looks wrong."""
        from rich.cells import cell_len

        rows = list(_rows(self))
        widths = [max((cell_len(row[n]) for row in rows), default=0) for n in range(3)]
        out = []
        for mark, *cells in ((row[4], *row[:4]) for row in rows):
            place, heading, size, begins = cells
            gaps = [" " * (widths[n] - cell_len(cell)) for n, cell in enumerate((place, heading, size))]
            out.append(f"{mark} {gaps[0]}{place}  {heading}{gaps[1]}  {gaps[2]}{size}  {begins}".rstrip())
        return [*out, self.whole(), *(f"! {warning}" for warning in self.warnings)]

    def whole(self) -> str:
        """All of it in one sentence."""
        count = sum(c.number > 0 for c in self.chapters)
        volumes = len({c.volume for c in self.chapters if c.number and c.volume != c.heading} - {""})
        inside = f" in {volumes} volumes" if volumes > 1 else ""
        return f"{self.title}: {count} chapter{'s' if count != 1 else ''}{inside}, {number(self.length)} {unit_name(self.language)}."


def preview(book: Book, language: str) -> Preview:
    """Look through a book that was read from a file.

    Args:
        book: as `read_book` gives it.
        language: ISO 639-1, for the lengths.
    """
    from fabula.formats import heading_kind
    from fabula.text import length

    found: list[ChapterFound] = []
    volume, place = "", 0
    for chapter in book.chapters:
        heading = chapter.heading(language)
        size = sum(length(scene.text, language) for scene in chapter.scenes)
        is_volume = heading_kind(chapter.label) == "volume" or (not chapter.scenes and heading_kind(chapter.label) is None)
        if is_volume:
            volume = heading
        if is_volume and not chapter.scenes:
            found.append(ChapterFound(0, volume, heading, 0, 0, ""))
            continue
        place += 1
        begins = first_line(next((scene.text for scene in chapter.scenes if scene.text.strip()), ""), _BEGINS)
        found.append(ChapterFound(place, volume, heading, size, len(chapter.scenes), begins))
    warnings = _Warnings(language)
    _lengths(found, warnings)
    _numbers(book, found, warnings)
    marked = tuple(_marked(one, warnings.about) for one in found)
    return Preview(book.title, language, marked, tuple(warnings.shown()), sum(c.length for c in found))


def show_preview(found: Preview, stream: IO[str] | None = None) -> None:
    """Print it: a table on a terminal, plain lines elsewhere.

    Args:
        found: what was found.
        stream: default stdout.
    """
    stream = stream or sys.stdout
    if is_plain(stream):
        stream.write("".join(f"{printable(line)}\n" for line in found.lines()))
        stream.flush()
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("", width=1)
    table.add_column("", justify="right", style="dim", no_wrap=True)
    table.add_column("chapter", no_wrap=True, overflow="ellipsis", max_width=_WIDEST_HEADING)
    table.add_column(unit_name(found.language), justify="right", no_wrap=True)
    table.add_column("begins", style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for place, heading, size, begins, mark in _rows(found):
        style = "bold" if not place and not size else "yellow" if mark == "!" else ""
        table.add_row(Text(mark, "yellow"), place, Text(printable(heading), style), size, printable(begins))
    out = console(stream)
    out.print(table)
    out.print()
    out.print(Text(printable(found.whole()), "bold"))
    for warning in found.warnings:
        out.print(Text(f"! {printable(warning)}", "yellow"))


def _rows(found: Preview) -> Iterator[tuple[str, str, str, str, str]]:
    """(place, heading, length, beginning, mark) of each line; of a long book the first and the last chapters and the doubtful ones."""
    chapters = found.chapters
    hidden = range(0)
    if len(chapters) > _MOST:
        hidden = range(_MOST - _LAST, len(chapters) - _LAST)
    left_out = 0
    for index, one in enumerate(chapters):
        if index in hidden and not one.doubtful:
            left_out += one.number > 0
            continue
        if left_out:
            yield "", f"… {number(left_out)} more …", "", "", " "
            left_out = 0
        if one.number:
            yield str(one.number), one.heading or "(no heading)", number(one.length), one.begins, "!" if one.doubtful else " "
        else:
            yield "", one.heading, "", "", "!" if one.doubtful else " "


# -- what looks wrong ----------------------------------------------------------------------------------------------------------


@dataclass
class _Warnings:
    language: str
    about: set[int] = field(default_factory=set)
    """Numbers of the chapters that they are about."""
    said: list[str] = field(default_factory=list)

    def add(self, text: str, *about: int) -> None:
        self.said.append(text)
        self.about.update(about)

    def shown(self) -> list[str]:
        more = len(self.said) - _MOST_WARNINGS
        return self.said if more <= 0 else [*self.said[:_MOST_WARNINGS], f"… and {more} more of this kind."]


def _marked(one: ChapterFound, about: set[int]) -> ChapterFound:
    return replace(one, doubtful=True) if one.number in about else one


def _lengths(found: Sequence[ChapterFound], warnings: _Warnings) -> None:
    from fabula.text import unit

    unit_said, much = unit_name(warnings.language), _MUCH[unit(warnings.language)]
    chapters = [one for one in found if one.number]
    if len(chapters) == 1 and not chapters[0].heading and chapters[0].length > much:
        warnings.add("No heading was found; the whole text is one chapter.", chapters[0].number)
        return
    first = chapters[0] if chapters else None
    if first is not None and len(chapters) > 1 and not first.heading:
        warnings.add(
            f"{number(first.length)} {unit_said} stand before the first heading; they are kept as a chapter of their own.", first.number
        )
    sizes = [one.length for one in chapters if one.length]
    usual = statistics.median(sizes) if sizes else 0
    for one in chapters:
        if one.length > max(much, _TIMES * usual):
            warnings.add(
                f"{_named(one)} has {number(one.length)} {unit_said}, the others about {number(usual)}: is a heading missing in it?",
                one.number,
            )
        elif not one.length:
            warnings.add(f"{_named(one)} has no text.", one.number)


def _named(one: ChapterFound) -> str:
    return f"“{one.heading}”" if one.heading else f"Chapter {one.number} (no heading)"


def _numbers(book: Book, found: Sequence[ChapterFound], warnings: _Warnings) -> None:
    """Numbers that jump, repeat or run back; in a new volume they may begin again."""
    from fabula.formats import chapter_number

    last: int | None = None
    volume, fresh = "", True
    for chapter, one in zip(book.chapters, found, strict=True):
        if one.volume != volume:
            volume, fresh = one.volume, True
        value = chapter_number(chapter.label)
        if not one.number or value is None:
            continue
        if last is not None and value != last + 1 and not (fresh and value <= 1):
            warnings.add(_why(one, value, last), one.number)
        last, fresh = value, False


def _why(one: ChapterFound, value: int, last: int) -> str:
    if value == last:
        return f"{_named(one)}: the number {value} comes twice."
    if value > last:
        missing = f"{last + 1}" if value == last + 2 else f"{last + 1} to {value - 1}"
        return f"{_named(one)} follows number {last}: {missing} {'is' if value == last + 2 else 'are'} missing."
    return f"{_named(one)} follows number {last}: the numbers begin again." if value <= 1 else f"{_named(one)} follows number {last}."
