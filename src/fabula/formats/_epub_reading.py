"""A book from an EPUB file: Fabula's own without loss, EPUB 2 and 3 of others by their headings and paragraphs.

Pictures, notes' links and tables' shape are left behind; their text stays.
"""

from __future__ import annotations

import html.entities
import posixpath
import re
import urllib.parse
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fabula.errors import InputError
from fabula.formats._archive import open_archive, parse_xml, part
from fabula.formats._book import Book, Chapter, Scene, heading_separator
from fabula.formats._epub import CONTAINER, DC, GENERATOR, OPF, OPS, XHTML
from fabula.formats._headings import one_line
from fabula.formats._lines import unused_name
from fabula.formats._outline import Block, outline
from fabula.formats._paragraphs import Mark, Paragraph, Run, join_paragraphs, join_runs

if TYPE_CHECKING:
    from lxml.etree import _Element

WHAT = "an EPUB book"
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav",
    "ol", "p", "pre", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
_UNREAD = frozenset({"head", "script", "style", "nav", "svg", "math", "template", "rt", "rp"})
_XML_ENTITIES = {b"amp", b"lt", b"gt", b"quot", b"apos"}


class _Package(NamedTuple):
    """What the package document says, and the pages in reading order with their names."""

    root: _Element
    pages: list[tuple[str, _Element]]
    headings: dict[str, str]
    cover: bytes | None


def read_epub(data: bytes, where: str) -> Book:
    """A book from the bytes of an EPUB file.

    Raises:
        InputError: not an EPUB, damaged, or protected against reading.
    """
    with open_archive(data, where, WHAT) as archive:
        _refuse_protected(archive, where)
        package = _open_package(archive, where)
    meta = {name: [one_line(item.text or "") for item in package.root.iter(f"{{{DC}}}{name}")] for name in ("title", "language", "creator")}
    language = next(filter(None, meta["language"]), "und")
    own = any(item.get("name") == "generator" and item.get("content") == GENERATOR for item in package.root.iter(f"{{{OPF}}}meta"))
    title = next(filter(None, meta["title"]), "")
    title, chapters, note = _own(package, title, language) if own else _foreign(package, title)
    return Book(
        title or _stem(where), language, tuple(filter(None, meta["creator"])), chapters, note, _identifier(package.root), package.cover
    )


def _stem(where: str) -> str:
    return posixpath.splitext(where.replace("\\", "/").rpartition("/")[2])[0]


def _identifier(root: _Element) -> str:
    wanted = root.get("unique-identifier")
    found = [item for item in root.iter(f"{{{DC}}}identifier") if item.get("id") == wanted]
    return one_line(found[0].text or "") if found else ""


def _refuse_protected(archive: zipfile.ZipFile, where: str) -> None:
    """Fonts may be obfuscated; a book whose pages are encrypted cannot be read."""
    if "META-INF/encryption.xml" in archive.namelist():
        methods = [
            item.get("Algorithm", "") for item in parse_xml(archive.read("META-INF/encryption.xml"), where).iter("{*}EncryptionMethod")
        ]
        if any("idpf.org" not in method and "adobe.com/pdf/enc" not in method for method in methods):
            raise InputError(f"{where} is protected against reading (DRM).", "Use a copy without protection.")


def _open_package(archive: zipfile.ZipFile, where: str) -> _Package:
    container = parse_xml(part(archive, "META-INF/container.xml", where, WHAT), where)
    files = [item.get("full-path", "") for item in container.iter(f"{{{CONTAINER}}}rootfile")]
    if not files:
        raise InputError(f"{where} is not {WHAT}: its container names no package.", "Save it again in the program that made it.")
    root = parse_xml(part(archive, files[0], where, WHAT), where)
    folder = posixpath.dirname(files[0])
    items = {item.get("id", ""): item for item in root.iter(f"{{{OPF}}}item")}
    pages = []
    for reference in root.iter(f"{{{OPF}}}itemref"):
        item = items.get(reference.get("idref", ""))
        if item is not None and "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split():
            name = _resolve(folder, item.get("href", ""))
            pages.append((name, _page(part(archive, name, where, WHAT), where)))
    covers = [item for item in items.values() if "cover-image" in item.get("properties", "").split()]
    cover = archive.read(name) if covers and (name := _resolve(folder, covers[0].get("href", ""))) in archive.namelist() else None
    return _Package(root, pages, _contents(archive, items, folder, where), cover)


def _resolve(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, urllib.parse.unquote(href.partition("#")[0])))


def _page(data: bytes, where: str) -> _Element:
    """A page as XML; HTML's named characters, which XML does not know, are put in first."""

    def named(match: re.Match[bytes]) -> bytes:
        sign = html.entities.html5.get(match[1].decode() + ";")
        return match[0] if match[1] in _XML_ENTITIES or sign is None else sign.encode()

    return parse_xml(re.sub(rb"&([A-Za-z][A-Za-z0-9]*);", named, data), where)


def _contents(archive: zipfile.ZipFile, items: dict[str, _Element], folder: str, where: str) -> dict[str, str]:
    """File name → its first heading in the table of contents (EPUB 3 nav, else EPUB 2 ncx)."""
    headings: dict[str, str] = {}
    for item in items.values():
        name = _resolve(folder, item.get("href", ""))
        if name not in archive.namelist():
            continue
        here = posixpath.dirname(name)
        if "nav" in item.get("properties", "").split():
            for link in _page(archive.read(name), where).iter(f"{{{XHTML}}}a"):
                headings.setdefault(_resolve(here, link.get("href", "")), one_line("".join(link.itertext())))
        elif item.get("media-type") == "application/x-dtbncx+xml":
            for point in parse_xml(archive.read(name), where).iter("{*}navPoint"):
                for content in point.findall("{*}content"):
                    headings.setdefault(
                        _resolve(here, content.get("src", "")), one_line("".join(point.findtext("{*}navLabel/{*}text") or ""))
                    )
    return headings


def _kind(element: _Element) -> str:
    return str(element.get(f"{{{OPS}}}type") or element.get("class", ""))


def _local(element: _Element) -> str:
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


# Fabula's own


def _own(package: _Package, title: str, language: str) -> tuple[str, tuple[Chapter, ...], str]:
    chapters: list[Chapter] = []
    names: set[str] = set()
    note = ""
    for _, page in package.pages:
        sections = list(page.iter(f"{{{XHTML}}}section"))
        found = [section for section in sections if _kind(section) == "chapter"]
        if colophon := [section for section in sections if _kind(section) == "colophon"]:
            note = _own_text(colophon[0])
        elif not found and not any(_kind(section) in {"titlepage", "cover"} for section in sections):
            found = [page]  # a page that somebody added
        chapters += [_own_chapter(section, language, len(chapters) + number, names) for number, section in enumerate(found, 1)]
    return title, tuple(chapters), note


def _own_chapter(section: _Element, language: str, number: int, names: set[str]) -> Chapter:
    heading = next(section.iter(f"{{{XHTML}}}h1"), None)
    label = title = ""
    if heading is not None:
        label = next((_inline(span) for span in heading.iter(f"{{{XHTML}}}span") if span.get("class") == "label"), "")
        title = one_line("".join(heading.itertext()))
        title = title.removeprefix(label).removeprefix(heading_separator(language)).strip() if title.startswith(label) else title
    name = unused_name(section.get("data-id") or f"c{number}", names)
    texts = [
        (scene.get("data-id") or "", _own_text(scene)) for scene in section.iter(f"{{{XHTML}}}section") if scene.get("class") == "scene"
    ]
    if not texts and section.get("data-id") is None:
        texts = [("", "\n\n".join(block.text for block in _blocks(section) if block.level == 0))]
    scenes = (Scene(unused_name(id or f"c{number}s{place}", names), text) for place, (id, text) in enumerate(texts, 1))
    return Chapter(name, title, label, tuple(scenes))


def _own_text(section: _Element) -> str:
    paragraphs = []
    for item in section.iter(f"{{{XHTML}}}p"):
        text = join_runs(_own_runs(item))
        kinds = item.get("class", "").split()
        paragraphs.append(Paragraph("blank" if not text else "tight" if "tight" in kinds else "plain", text))
    return join_paragraphs(paragraphs)


def _own_runs(paragraph: _Element) -> Iterator[Run]:
    yield Run("", paragraph.text or "")
    for child in paragraph:
        mark: Mark = {"em": "*", "i": "*", "strong": "**", "b": "**"}.get(_local(child), "")  # type: ignore[assignment]
        yield Run("_" if child.get("class") == "line" else mark, "".join(child.itertext()))
        yield Run("", child.tail or "")


# Others'


def _foreign(package: _Package, title: str) -> tuple[str, tuple[Chapter, ...], str]:
    blocks: list[Block] = []
    for name, page in package.pages:
        body = page.find(f"{{{XHTML}}}body")
        found = list(_blocks(body if body is not None else page))
        if not any(block.level > 0 for block in found) and any(block.text for block in found) and package.headings.get(name):
            found.insert(0, Block(1, package.headings[name]))
        if [one_line(block.text) for block in found if block.level >= 0][:1] == [title] and len(found) < 8 and not blocks:
            continue  # the title page
        blocks += found
    first, chapters = outline(blocks)
    return title or first, chapters, ""


def _blocks(element: _Element) -> Iterator[Block]:
    """Headings, scene breaks and paragraphs below an element, in order."""
    inline: list[Run] = [Run("", element.text or "")]
    for child in element:
        tag = _local(child)
        if tag not in _UNREAD and (tag in _BLOCKS or any(_local(inner) in _BLOCKS for inner in child.iter())):
            yield from _paragraph(inline)
            inline = []
            if re.fullmatch("h[1-6]", tag):
                yield Block(int(tag[1]), _inline(child))
            elif tag == "hr":
                yield Block(-1, "")
            else:
                yield from _blocks(child)
        elif tag not in _UNREAD:
            inline += _runs(child, "")
        inline.append(Run("", child.tail or ""))
    yield from _paragraph(inline)


def _paragraph(runs: list[Run]) -> Iterator[Block]:
    text = join_runs([Run(mark, re.sub(r"[ \t\r\n\f]+", " ", inner)) for mark, inner in runs], foreign=True)
    lines = [re.sub(" {2,}", " ", line).strip(" ") for line in text.split("\0")]
    if any(line.strip() for line in lines):
        yield Block(0, "\n".join(lines).strip("\n"))


def _runs(element: _Element, mark: Mark) -> Iterator[Run]:
    """The runs of an inline element. A line break is NUL until white space has been collapsed; XML cannot hold one."""
    tag = _local(element)
    if tag == "br":
        yield Run("", "\0")
        return
    mark = "*" if tag in {"em", "i"} else "**" if tag in {"strong", "b"} else mark
    yield Run(mark, element.text or "")
    for child in element:
        if _local(child) not in _UNREAD:
            yield from _runs(child, mark)
        yield Run(mark, child.tail or "")


def _inline(element: _Element) -> str:
    return one_line(re.sub(r"\s+", " ", "".join(run.text.replace("\0", " ") for run in _runs(element, ""))))
