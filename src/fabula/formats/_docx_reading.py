"""A book from a Word document: Fabula's own without loss, those of others by their heading styles.

Pictures, comments, footnotes and deleted text of tracked changes are left behind; the cells of tables become paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fabula.formats._archive import open_archive, parse_xml, part
from fabula.formats._book import Book, Chapter, Scene, heading_separator
from fabula.formats._docx import COLOPHON, LABEL, PART_NAMESPACE, SCENE_BREAK, SCENE_LINE, WORD
from fabula.formats._headings import one_line
from fabula.formats._lines import unused_name
from fabula.formats._outline import Block, outline
from fabula.formats._paragraphs import Mark, Paragraph, Run, join_paragraphs, join_runs

if TYPE_CHECKING:
    from lxml.etree import _Element

WHAT = "a Word document (DOCX)"
_W = f"{{{WORD}}}"
_MARK_OF: dict[str, Mark] = {"Emphasis": "*", "Strong": "**", "Underscored": "_"}


def read_docx(data: bytes, where: str) -> Book:
    """A book from the bytes of a DOCX file.

    Raises:
        InputError: not a DOCX file, or damaged.
    """
    with open_archive(data, where, WHAT) as archive:
        body = parse_xml(part(archive, "word/document.xml", where, WHAT), where)
        styles = _style_names(parse_xml(archive.read("word/styles.xml"), where)) if "word/styles.xml" in archive.namelist() else {}
        own = None
        for name in archive.namelist():
            # A word processor may have renamed the part.
            if name.startswith("customXml/") and name.endswith(".xml") and PART_NAMESPACE.encode() in archive.read(name):
                own = parse_xml(archive.read(name), where)
        core = parse_xml(archive.read("docProps/core.xml"), where) if "docProps/core.xml" in archive.namelist() else None
    paragraphs = [_Paragraph(element, styles) for element in body.iter(f"{_W}p")]
    stem = PurePath(where).stem
    if own is not None and own.tag == f"{{{PART_NAMESPACE}}}book":
        return _own(paragraphs, own, stem)
    fields = {name: one_line(core.findtext(f"{{*}}{name}") or "") if core is not None else "" for name in ("title", "creator", "language")}
    title, chapters = outline(_blocks(paragraphs))
    title = next((p.plain for p in paragraphs if p.style == "Title" and p.plain), "") or fields["title"] or title or stem
    return Book(title, fields["language"] or "und", tuple(filter(None, map(str.strip, fields["creator"].split(";")))), chapters)


def _style_names(root: _Element) -> dict[str, str]:
    """Style id → its name, which is English whatever the language of the word processor."""
    names = {}
    for style in root.iter(f"{_W}style"):
        element = style.find(f"{_W}name")
        if element is not None:
            names[style.get(f"{_W}styleId", "")] = element.get(f"{_W}val", "")
    return names


class _Paragraph:
    """A paragraph: its style's name, its bookmarks, its runs."""

    def __init__(self, element: _Element, styles: dict[str, str]) -> None:
        self._styles = styles
        self._element = element
        self.style = self._style(element.find(f"{_W}pPr/{_W}pStyle"))
        self.bookmarks = [mark.get(f"{_W}name", "") for mark in element.findall(f"{_W}bookmarkStart")]

    def _style(self, element: _Element | None) -> str:
        name = element.get(f"{_W}val", "") if element is not None else ""
        return self._styles.get(name, name)

    @property
    def level(self) -> int:
        """1 to 6 for a heading, else 0."""
        match = re.fullmatch(r"heading ([1-6])", self.style, re.IGNORECASE)
        return int(match[1]) if match else 0

    def runs(self) -> Iterator[tuple[str, Run]]:
        """Each run with the name of its character style; italic and bold are emphasis, by style or by hand."""
        for run in self._element.iter(f"{_W}r"):
            if any(above.tag == f"{_W}p" for above in _below(run, self._element)):
                continue  # of a text box inside; its paragraph is met on its own
            properties = run.find(f"{_W}rPr")
            style = self._style(properties.find(f"{_W}rStyle") if properties is not None else None)
            mark: Mark = _MARK_OF.get(style, "")
            if not mark and properties is not None:
                mark = "**" if _on(properties.find(f"{_W}b")) else "*" if _on(properties.find(f"{_W}i")) else ""
            yield style, Run(mark, "".join(_text(child) for child in run))

    @property
    def plain(self) -> str:
        """Its text without emphasis, on one line."""
        return one_line("".join(run.text for _, run in self.runs()))


def _below(element: Any, top: Any) -> Iterator[Any]:
    """The elements between the two, from the inner one up."""
    while (element := element.getparent()) is not None and element is not top:
        yield element


def _on(element: _Element | None) -> bool:
    return element is not None and element.get(f"{_W}val", "1") not in {"0", "false", "off"}


def _text(child: _Element) -> str:
    tag = child.tag.removeprefix(_W) if isinstance(child.tag, str) else ""
    if tag == "t":
        return child.text or ""
    if tag == "br":
        return "\n" if child.get(f"{_W}type") in {None, "textWrapping"} else ""
    return {"tab": "\t", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}.get(tag, "")


def _blocks(paragraphs: list[_Paragraph]) -> Iterator[Block]:
    """The blocks of a document of others. A paragraph in the style Title is not text; the first is the book's title."""
    for paragraph in paragraphs:
        if paragraph.level:
            yield Block(paragraph.level, paragraph.plain)
        elif paragraph.style == "Title":
            continue
        else:
            text = join_runs([run for _, run in paragraph.runs()], foreign=True)
            if text.strip():
                yield Block(0, text)


def _own(paragraphs: list[_Paragraph], own: _Element, stem: str) -> Book:
    ids = {mark.get("name", ""): mark.get("id", "") for mark in own.iter(f"{{{PART_NAMESPACE}}}mark")}
    language = own.get("language", "und")
    chapters: list[tuple[str, str, str, list[tuple[str, list[Paragraph]]]]] = []
    note: list[Paragraph] = []
    title = ""
    for paragraph in paragraphs:
        scenes = [ids.get(name, "") for name in paragraph.bookmarks if name.startswith("_s")]
        if paragraph.style == "Title":
            title = title or paragraph.plain
        elif paragraph.style == COLOPHON:
            note.append(_own_paragraph(paragraph))
        elif paragraph.level == 1:
            name = next((ids.get(mark, "") for mark in paragraph.bookmarks if mark.startswith("_c")), "")
            chapters.append((name, *_own_heading(paragraph, language), [(id, []) for id in scenes[:1]]))
        elif paragraph.style == "Subtitle" and not chapters:
            continue
        else:
            line = _own_paragraph(paragraph)
            if not chapters:
                if line.kind == "blank":
                    continue
                chapters.append(("", "", "", []))
            into = chapters[-1][3]
            if paragraph.style == SCENE_BREAK:
                into.append((next(iter(scenes), ""), []))
            else:
                if not into:
                    into.append(("", []))
                into[-1][1].append(line)
    authors = tuple(author.text or "" for author in own.iter(f"{{{PART_NAMESPACE}}}author"))
    said = own.findtext(f"{{{PART_NAMESPACE}}}note") or ""
    return Book(title or stem, language, authors, _own_chapters(chapters), said if note else "", own.get("identifier", ""))


def _own_chapters(chapters: list[tuple[str, str, str, list[tuple[str, list[Paragraph]]]]]) -> tuple[Chapter, ...]:
    names: set[str] = set()
    return tuple(
        Chapter(
            unused_name(id or f"c{number}", names),
            title,
            label,
            tuple(
                Scene(unused_name(name or f"c{number}s{place}", names), join_paragraphs(text))
                for place, (name, text) in enumerate(scenes, 1)
            ),
        )
        for number, (id, label, title, scenes) in enumerate(chapters, 1)
    )


def _own_heading(paragraph: _Paragraph, language: str) -> tuple[str, str]:
    label = one_line("".join(run.text for style, run in paragraph.runs() if style == LABEL))
    rest = "".join(run.text for style, run in paragraph.runs() if style != LABEL)
    return label, one_line(rest.removeprefix(heading_separator(language)) if label else rest)


def _own_paragraph(paragraph: _Paragraph) -> Paragraph:
    text = join_runs(run for _, run in paragraph.runs())
    return Paragraph("blank" if not text else "tight" if paragraph.style == SCENE_LINE else "plain", text)
