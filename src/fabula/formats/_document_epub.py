"""EPUB books as one text, page by page in reading order; headings and the table of contents give the places.

Other than `_epub_reading`, which makes a book of chapters and scenes, this keeps tables, notes and lists, unpacks only the pages,
and never builds the tree of a page in this process if the page is large.
"""

from __future__ import annotations

import posixpath
import re
import urllib.parse
from typing import Any

from fabula.errors import InputError
from fabula.formats._document import Document, Draft, counted
from fabula.formats._document_html import MOST_HTML, html_text
from fabula.formats._unpacking import Archive, parse

WHAT = "an EPUB book"
_HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_FONTS = ("idpf.org", "adobe.com/pdf/enc")
"""Ways of hiding fonts, which protect no text."""


def read_epub(data: bytes, name: str) -> Document:
    """An EPUB book of version 2 or 3; its chapters are places.

    Raises:
        InputError: not an EPUB, damaged, protected, too large, or without text.
    """
    archive = Archive(data, name, WHAT)
    _refuse_protected(archive)
    package = _package_name(archive)
    pages, contents = _spine(archive, package)
    draft = Draft(name)
    headings = _contents(archive, contents)
    pictures = missing = 0
    for page in dict.fromkeys(pages):
        if page not in archive:
            missing += 1
            continue
        raw = archive.read(page, MOST_HTML)
        pictures += len(re.findall(rb"<(?:img|image)\b", raw, re.IGNORECASE))
        _add_page(draft, html_text(raw, name, None, draft), headings.get(page, ""))
    draft.notes[:] = list(dict.fromkeys(draft.notes))
    if missing:
        draft.notes.append(f"{counted(missing, 'page is', 'pages are')} missing from the file")
    if pictures:
        draft.notes.append(f"{counted(pictures, 'picture is', 'pictures are')} not read")
    return draft.done("prose", "epub")


def _add_page(draft: Draft, text: str, heading: str) -> None:
    """Add a page; it begins with its heading from the table of contents where it shows none itself."""
    text = text.strip("\n")
    if not text.strip():
        return
    found = list(_HEADING.finditer(text))
    if heading and not found:
        text, found = f"# {heading}\n\n{text}", []
    labels = [" ".join(re.sub(r"[*_`\\]", "", match[2]).split()) for match in found]
    if heading and not (found and (found[0].start() == 0 or labels[0] == heading)):
        draft.place(heading)
    for match, label in zip(found, labels, strict=True):
        draft.place(label, match.start())
    draft.add(text)


def _refuse_protected(archive: Archive) -> None:
    methods: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "EncryptionMethod":
            methods.append(attributes.get("Algorithm", ""))

    if "META-INF/encryption.xml" in archive:
        parse(archive, "META-INF/encryption.xml", start, _nothing)
    if any(all(font not in method for font in _FONTS) for method in methods):
        raise InputError(f"{archive.name} is protected against reading (DRM).", "Use a copy without protection.")


def _package_name(archive: Archive) -> str:
    names: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "rootfile":
            names.append(attributes.get("full-path", ""))

    parse(archive, "META-INF/container.xml", start, _nothing)
    if not names:
        raise archive.damaged("its container names no package")
    return names[0]


def _spine(archive: Archive, package: str) -> tuple[list[str], list[str]]:
    """The pages in reading order, and the files that hold a table of contents, the newer kind first."""
    folder = posixpath.dirname(package)
    items: dict[str, dict[str, str]] = {}
    order: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "item":
            items[attributes.get("id", "")] = attributes
        elif tag == "itemref":
            order.append(attributes.get("idref", ""))

    parse(archive, package, start, _nothing)
    navs = [item for item in items.values() if "nav" in item.get("properties", "").split()]
    ncxs = [item for item in items.values() if item.get("media-type") == "application/x-dtbncx+xml"]
    pages = [items[id] for id in order if id in items and "html" in items[id].get("media-type", "")]
    read = [item for item in pages if "nav" not in item.get("properties", "").split()] or pages
    return [_resolve(folder, item.get("href", "")) for item in read], [_resolve(folder, item.get("href", "")) for item in navs + ncxs]


def _contents(archive: Archive, files: list[str]) -> dict[str, str]:
    """Page → its first heading in the tables of contents. One that cannot be parsed is passed over: the pages hold the text."""
    headings: dict[str, str] = {}
    for file in files:
        if file not in archive:
            continue
        folder = posixpath.dirname(file)
        reading = _Contents()
        try:
            parse(archive, file, reading.start, reading.end, reading.text)
        except InputError:
            continue
        for href, label in reading.found:
            if label.strip():
                headings.setdefault(_resolve(folder, href), " ".join(label.split()))
    return headings


class _Contents:
    """Takes the events of a nav page (links) or an NCX file (points with a label and an address)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._href = self._label = ""
        self._inside = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "a" and attributes.get("href"):
            self._href, self._label, self._inside = attributes["href"], "", True
        elif tag == "navLabel":
            self._label, self._inside = "", True
        elif tag == "content" and attributes.get("src"):
            self.found.append((attributes["src"], self._label))

    def text(self, text: str) -> None:
        if self._inside and len(self._label) < 500:
            self._label += text

    def end(self, tag: str) -> None:
        if tag == "a" and self._inside:
            self.found.append((self._href, self._label))
            self._inside = False
        elif tag == "navLabel":
            self._inside = False


def _resolve(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, urllib.parse.unquote(href.partition("#")[0])))


def _nothing(*_: Any) -> None:
    """What is not looked at."""
