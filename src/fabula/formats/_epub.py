"""A book as EPUB 3.3, written with zipfile and lxml.

By hand, because the one permissively licensed library (mkepub 1.2) marks every page as English, leaves titles unescaped and
makes a new identifier each time; the others are under the AGPL. Each scene is a section that keeps its id, each paragraph
its kind and marks, so that reading gives the text back without loss.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.formats._book import Book, Chapter, base_language, heading_separator
from fabula.formats._headings import one_line
from fabula.formats._paragraphs import split_paragraphs, split_runs

if TYPE_CHECKING:
    from lxml.etree import _Element

XHTML = "http://www.w3.org/1999/xhtml"
OPS = "http://www.idpf.org/2007/ops"
OPF = "http://www.idpf.org/2007/opf"
DC = "http://purl.org/dc/elements/1.1/"
CONTAINER = "urn:oasis:names:tc:opendocument:xmlns:container"
GENERATOR = "Fabula"

_CONTENTS = {"en": "Contents", "ru": "Содержание", "zh": "目录", "de": "Inhalt", "fr": "Table des matières", "es": "Índice", "ja": "目次"}
_STYLE = """\
body { margin: 0 5%; line-height: 1.5; }
h1 { text-align: center; font-weight: normal; font-size: 1.5em; margin: 3em 0 2em; }
p { margin: 0; text-indent: 1.5em; white-space: pre-wrap; }
.titlepage p, .colophon p, p.indented { text-indent: 0; }
.titlepage { text-align: center; }
.titlepage h1 { font-size: 2em; margin-top: 30%; }
.colophon { margin-top: 3em; font-size: 0.85em; }
hr.scene-break { border: 0; color: inherit; margin: 1.5em 0; text-align: center; }
hr.scene-break::before { content: "* * *"; }
em { font-style: italic; }
.cover { margin: 0; text-align: center; }
.cover img { max-width: 100%; max-height: 100%; }
"""
_STYLE_WIDE = """\
p { text-indent: 2em; }
em { font-style: normal; text-emphasis: filled dot; text-emphasis-position: under right; -webkit-text-emphasis: filled dot; }
"""
"""For Chinese and Japanese: every paragraph set in by two signs, emphasis by dots, since slanted signs read badly."""
_STYLE_NARROW = "section.scene > p:first-child { text-indent: 0; }\n"


class _Item:
    """A file of the book: its name, its content, and how the manifest and the spine name it."""

    def __init__(self, id: str, name: str, media: str, data: bytes, *, properties: str = "", spine: bool = False) -> None:
        self.id, self.name, self.media, self.data, self.properties, self.spine = id, name, media, data, properties, spine


def write_epub(book: Book) -> bytes:
    """The book as one EPUB file.

    Raises:
        InputError: the cover is neither PNG nor JPEG.
    """
    items = [*_cover(book), _page(book, "title", "title.xhtml", one_line(book.title), _title_page(book))]
    chapters = []
    for number, chapter in enumerate(book.chapters, 1):
        name, heading = f"chapter-{number:04d}.xhtml", chapter.heading(book.language) or str(number)
        items.append(_page(book, f"chapter-{number:04d}", name, heading, _chapter(book, chapter)))
        chapters.append((name, heading))
    if book.note:
        items.append(_page(book, "colophon", "colophon.xhtml", one_line(book.title), _section("colophon", *_paragraphs(book.note))))
    style = _STYLE_WIDE if base_language(book.language) in {"zh", "ja"} else _STYLE_NARROW
    items.append(_Item("style", "style.css", "text/css", (_STYLE + style).encode()))
    items.append(_page(book, "nav", "nav.xhtml", one_line(book.title), _nav(book, chapters), properties="nav", spine=False))
    return _pack(
        [
            ("META-INF/container.xml", _container()),
            ("EPUB/package.opf", _package(book, items)),
            *((f"EPUB/{i.name}", i.data) for i in items),
        ]
    )


def _pack(files: Iterable[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # The format demands this part first and not compressed.
        archive.writestr(zipfile.ZipInfo("mimetype"), b"application/epub+zip", zipfile.ZIP_STORED)
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _element(tag: str, *children: Any, text: str = "", **attributes: str) -> _Element:
    """An XHTML element; `type_` is `epub:type`, `class_` is `class`, other underscores are hyphens."""
    from lxml import etree

    names = {"type_": f"{{{OPS}}}type", "class_": "class"}
    made = etree.Element(f"{{{XHTML}}}{tag}", {names.get(name, name.replace("_", "-")): value for name, value in attributes.items()})
    made.text = text or None
    for child in children:
        if not isinstance(child, str):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + child
        else:
            made.text = (made.text or "") + child
    return made


def _xml(root: _Element, doctype: str | None = None) -> bytes:
    from lxml import etree

    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", doctype=doctype))


def _page(book: Book, id: str, name: str, title: str, content: _Element, *, properties: str = "", spine: bool = True) -> _Item:
    from lxml import etree

    root = etree.Element(f"{{{XHTML}}}html", {"lang": book.language}, nsmap={None: XHTML, "epub": OPS})
    root.set("{http://www.w3.org/XML/1998/namespace}lang", book.language)
    if book.right_to_left:
        root.set("dir", "rtl")
    link = _element("link", rel="stylesheet", type="text/css", href="style.css")
    root.append(_element("head", _element("title", text=title), link))
    root.append(_element("body", content))
    etree.cleanup_namespaces(root, top_nsmap={None: XHTML, "epub": OPS})
    return _Item(id, name, "application/xhtml+xml", _xml(root, "<!DOCTYPE html>"), properties=properties, spine=spine)


def _section(kind: str, *children: Any) -> _Element:
    return _element("section", *children, type_=kind, class_=kind)


def _title_page(book: Book) -> _Element:
    authors = [_element("p", text=one_line(author)) for author in book.authors]
    return _section("titlepage", _element("h1", text=one_line(book.title)), *authors)


def _chapter(book: Book, chapter: Chapter) -> _Element:
    section = _element("section", type_="chapter", class_="chapter", data_id=chapter.id)
    label, title = one_line(chapter.label), one_line(chapter.title)
    parts: list[Any] = [_element("span", text=label, class_="label")] if label else []
    parts += [heading_separator(book.language)] if label and title else []
    parts += [_element("span", text=title, class_="title")] if title else []
    if parts:
        section.append(_element("h1", *parts))
    for number, scene in enumerate(chapter.scenes):
        if number:
            section.append(_element("hr", class_="scene-break"))
        section.append(_element("section", *_paragraphs(scene.text), class_="scene", data_id=scene.id))
    return section


def _paragraphs(text: str) -> list[_Element]:
    found = []
    for kind, line in split_paragraphs(text):
        runs: list[Any] = []
        for mark, inner in split_runs(line):
            tag = {"*": "em", "_": "em", "**": "strong"}.get(mark)
            runs.append(_element(tag, text=inner, **({"class_": "line"} if mark == "_" else {})) if tag else inner)
        # White space that the text brings along is indent enough.
        classes = " ".join(([] if kind == "plain" else [kind]) + (["indented"] if line[:1].isspace() else []))
        found.append(_element("p", *([_element("br")] if kind == "blank" else runs), **({"class_": classes} if classes else {})))
    return found


def _nav(book: Book, chapters: Iterable[tuple[str, str]]) -> _Element:
    entries = [_element("li", _element("a", text=heading, href=name)) for name, heading in chapters]
    entries = entries or [_element("li", _element("a", text=one_line(book.title), href="title.xhtml"))]
    heading = _CONTENTS.get(base_language(book.language), one_line(book.title))
    return _element("nav", _element("h1", text=heading), _element("ol", *entries), type_="toc", id="toc")


def _cover(book: Book) -> list[_Item]:
    if book.cover is None:
        return []
    if book.cover.startswith(b"\x89PNG\r\n\x1a\n"):
        suffix, media = "png", "image/png"
    elif book.cover.startswith(b"\xff\xd8\xff"):
        suffix, media = "jpg", "image/jpeg"
    else:
        raise InputError("The cover is neither a PNG nor a JPEG picture.", "Convert it to one of the two.")
    picture = _Item("cover-image", f"cover.{suffix}", media, book.cover, properties="cover-image")
    image = _element("img", src=picture.name, alt=one_line(book.title))
    return [picture, _page(book, "cover", "cover.xhtml", one_line(book.title), _element("section", image, type_="cover", class_="cover"))]


def _container() -> bytes:
    from lxml import etree

    root = etree.Element(f"{{{CONTAINER}}}container", {"version": "1.0"}, nsmap={None: CONTAINER})
    files = etree.SubElement(root, f"{{{CONTAINER}}}rootfiles")
    place = {"full-path": "EPUB/package.opf", "media-type": "application/oebps-package+xml"}
    etree.SubElement(files, f"{{{CONTAINER}}}rootfile", place)
    return _xml(root)


def _package(book: Book, items: list[_Item]) -> bytes:
    from lxml import etree

    root = etree.Element(f"{{{OPF}}}package", {"version": "3.0", "unique-identifier": "book-id"}, nsmap={None: OPF, "dc": DC})
    root.set("{http://www.w3.org/XML/1998/namespace}lang", book.language)
    metadata = etree.SubElement(root, f"{{{OPF}}}metadata")

    def add(namespace: str, tag: str, text: str, **attributes: str) -> None:
        etree.SubElement(metadata, f"{{{namespace}}}{tag}", attributes).text = text or None

    add(DC, "identifier", book.urn, id="book-id")
    add(DC, "title", one_line(book.title))
    add(DC, "language", book.language)
    for author in book.authors:
        add(DC, "creator", one_line(author))
    add(OPF, "meta", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), property="dcterms:modified")
    for name, said in (("accessMode", "textual"), ("accessModeSufficient", "textual"), ("accessibilityFeature", "tableOfContents")):
        add(OPF, "meta", said, property=f"schema:{name}")
    add(OPF, "meta", "none", property="schema:accessibilityHazard")
    add(OPF, "meta", "", name="generator", content=GENERATOR)
    manifest = etree.SubElement(root, f"{{{OPF}}}manifest")
    turning = {"page-progression-direction": "rtl"} if book.right_to_left else {"page-progression-direction": "ltr"}
    spine = etree.SubElement(root, f"{{{OPF}}}spine", turning)
    for item in items:
        entry = etree.SubElement(manifest, f"{{{OPF}}}item", {"id": item.id, "href": item.name, "media-type": item.media})
        if item.properties:
            entry.set("properties", item.properties)
        if item.spine:
            etree.SubElement(spine, f"{{{OPF}}}itemref", {"idref": item.id})
    return _xml(root)
