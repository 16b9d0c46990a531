"""Word documents as one text: headings, lists, tables and notes, read as a stream so that no tree of the file is ever built.

Other than `_docx_reading`, which makes a book of chapters and scenes, this keeps what reports and papers live from: tables and
footnotes. Deleted text of tracked changes is left out; so are comments and pictures, which are counted.
"""

from __future__ import annotations

import re

from fabula.errors import InputError
from fabula.formats._document import MOST_CHARACTERS, Document, Draft, counted, too_long
from fabula.formats._unpacking import Archive, parse

WHAT = "a Word document (DOCX)"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main "
_UNREAD = frozenset({"del", "moveFrom", "instrText", "Fallback", "rPrChange", "pPrChange", "delText"})
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}
_PLACE_LEVELS = 3
"""Headings down to this level are places."""


def read_docx(data: bytes, name: str) -> Document:
    """A Word document; its headings are places.

    Raises:
        InputError: not a DOCX file, damaged, protected, too large, or without text.
    """
    archive = Archive(data, name, WHAT)
    main = _main_part(archive)
    folder = main.rpartition("/")[0]
    levels = _levels(archive, f"{folder}/styles.xml")
    draft = Draft(name)
    body = _Body(draft, levels)
    parse(archive, main, body.start, body.end, body.text)
    body.done()
    for part, kind in (("footnotes.xml", "footnote"), ("endnotes.xml", "endnote")):
        if f"{folder}/{part}" in archive:
            notes = _Body(draft, {}, note=kind)
            parse(archive, f"{folder}/{part}", notes.start, notes.end, notes.text)
            notes.done()
    if body.pictures:
        draft.notes.append(f"{counted(body.pictures, 'picture is', 'pictures are')} not read")
    if f"{folder}/comments.xml" in archive:
        draft.notes.append("comments are not read")
    return draft.done("prose", "docx")


def _main_part(archive: Archive) -> str:
    """The name of the part with the text, which the relations of the package say."""
    found: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship" and attributes.get("Type", "").endswith("/officeDocument"):
            found.append(attributes.get("Target", "").lstrip("/"))

    if "_rels/.rels" in archive:
        parse(archive, "_rels/.rels", start, lambda _: None)
    name = next((part for part in found if part in archive), "word/document.xml")
    if name not in archive and "EncryptedPackage" in archive:
        raise InputError(f"{archive.name} is protected by a password.", "Save a copy without the password, and read that.")
    return name


def _levels(archive: Archive, part: str) -> dict[str, int]:
    """Style id → level of heading, also through the style that it is based on; the title is a heading of level 1."""
    levels: dict[str, int] = {}
    based: dict[str, str] = {}
    current = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal current
        value = _value(attributes)
        if tag == "style":
            current = attributes.get(_W + "styleId", attributes.get(_STRICT + "styleId", ""))
        elif tag == "basedOn":
            based[current] = value
        elif tag == "name" and (match := re.fullmatch(r"heading ([1-6])|title", value, re.IGNORECASE)):
            levels[current] = int(match[1] or 1)

    if part in archive:
        parse(archive, part, start, lambda _: None)
    for style in based:
        above, seen = style, set[str]()
        while above and above not in levels and above not in seen:
            seen.add(above)
            above = based.get(above, "")
        # "Title" is what many a subtitle and caption is based on; those are no headings.
        if above in levels and above != style and levels[above] > 0 and not above.lower().startswith("title"):
            levels.setdefault(style, levels[above])
    return levels


def _value(attributes: dict[str, str]) -> str:
    return attributes.get(_W + "val", attributes.get(_STRICT + "val", ""))


class _Body:
    """Takes the events of a body, or of a part of notes, and adds blocks to a draft."""

    def __init__(self, draft: Draft, levels: dict[str, int], note: str = "") -> None:
        self.pictures = 0
        self._draft, self._levels, self._note = draft, levels, note
        self._skip = 0
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._reading = False
        self._id = ""
        self._length = 0
        self._lines: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._skip or tag in _UNREAD:
            self._skip += 1
            return
        if tag == "p":
            self._paragraphs.append(_Paragraph())
        elif tag == "tbl":
            self._tables.append(_Table())
        elif tag == "tr" and self._tables:
            self._tables[-1].rows.append([])
        elif tag == "tc" and self._tables:
            self._tables[-1].cell = []
        elif tag == self._note:
            self._id = attributes.get(_W + "id", attributes.get(_STRICT + "id", ""))
        elif tag in {"blip", "imagedata"}:
            self.pictures += 1
        elif self._paragraphs:
            self._inside(self._paragraphs[-1], tag, attributes)

    def _inside(self, paragraph: _Paragraph, tag: str, attributes: dict[str, str]) -> None:
        if tag == "t":
            self._reading = True
        elif tag in _SIGNS and not (tag == "br" and attributes.get(_W + "type", "textWrapping") != "textWrapping"):
            if not (tag == "tab" and paragraph.in_properties):
                paragraph.runs.append(_SIGNS[tag])
        elif tag == "pPr":
            paragraph.in_properties = True
        elif tag == "pStyle":
            paragraph.level = self._levels.get(_value(attributes), 0)
        elif tag == "ilvl":
            paragraph.indent = int(_value(attributes)) if re.fullmatch("[0-8]", _value(attributes)) else 0
        elif tag == "numId" and paragraph.in_properties:
            paragraph.listed = _value(attributes) != "0"
        elif tag in {"footnoteReference", "endnoteReference"}:
            kind = "" if tag.startswith("foot") else "e"
            paragraph.runs.append(f"[^{kind}{attributes.get(_W + 'id', attributes.get(_STRICT + 'id', ''))}]")

    def text(self, text: str) -> None:
        if self._reading and not self._skip and self._paragraphs:
            self._length += len(text)
            if self._length > MOST_CHARACTERS:
                raise too_long(self._draft.name)
            self._paragraphs[-1].runs.append(text)

    def end(self, tag: str) -> None:
        if self._skip:
            self._skip -= 1
        elif tag == "t":
            self._reading = False
        elif tag == "pPr" and self._paragraphs:
            self._paragraphs[-1].in_properties = False
        elif tag == "p" and self._paragraphs:
            self._paragraph(self._paragraphs.pop())
        elif tag == "tc" and self._tables and self._tables[-1].rows:
            table = self._tables[-1]
            table.rows[-1].append(" ".join(" ".join(table.cell).split()).replace("|", "\\|"))
            table.cell = []
        elif tag == "tbl" and self._tables:
            self._table(self._tables.pop())

    def _paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.runs)
        if not text.strip():
            return
        if self._note:
            self._lines.append(f"[^{'e' if self._note == 'endnote' else ''}{self._id}]: {' '.join(text.split())}")
        elif self._tables:
            self._tables[-1].cell.append(text)
        elif paragraph.listed and not paragraph.level:
            self._lines.append(f"{'  ' * paragraph.indent}- {text.strip()}")
        else:
            self.done()
            if 0 < paragraph.level <= _PLACE_LEVELS:
                self._draft.place(text)
            self._draft.add(f"{'#' * paragraph.level} {' '.join(text.split())}" if paragraph.level else text.rstrip())

    def done(self) -> None:
        """Add the lines of the list, or of the notes, that is open."""
        self._draft.add("\n".join(self._lines))
        self._lines = []

    def _table(self, table: _Table) -> None:
        rows = [row for row in table.rows if any(row)]
        if self._tables:
            # A table in a cell is that cell's text.
            self._tables[-1].cell += [" ".join(row) for row in rows]
        elif rows:
            self.done()
            lines = [f"| {' | '.join(row)} |" for row in rows]
            lines.insert(1, f"|{' --- |' * len(rows[0])}")
            self._draft.add("\n".join(lines))


class _Paragraph:
    """A paragraph that is open."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.level = self.indent = 0
        self.listed = self.in_properties = False


class _Table:
    """A table that is open."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.cell: list[str] = []
