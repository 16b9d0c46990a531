"""A book as a Word document, written with python-docx: real headings, scene breaks, the language of each script.

The text's structure is in paragraph styles (`Scene Text`, `Scene Line`, `Scene Break`), its emphasis in character styles.
Ids hang on hidden bookmarks, which move with the text when a person edits the file in a word processor; a small XML part,
which word processors keep, says what each stands for.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from fabula.formats._book import Book, Chapter, base_language, heading_separator
from fabula.formats._headings import one_line
from fabula.formats._paragraphs import split_paragraphs, split_runs

if TYPE_CHECKING:
    from docx.document import Document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PART_NAMESPACE = "urn:fabula:book"
PART_NAME = "/customXml/fabula.xml"
SCENE_TEXT, SCENE_LINE, SCENE_BREAK, COLOPHON = "Scene Text", "Scene Line", "Scene Break", "Colophon"
LABEL, UNDERSCORED = "Chapter Label", "Underscored"
MARKS = {"*": "Emphasis", "**": "Strong", "_": UNDERSCORED}
"""Mark of emphasis → character style."""


class _Script(NamedTuple):
    """How Word tells a script: the attribute of its language, a region's default tag, a font that every Word has."""

    attribute: str
    tag: str
    font: str


_SCRIPTS = {
    "zh": _Script("w:eastAsia", "zh-CN", "SimSun"),
    "ja": _Script("w:eastAsia", "ja-JP", "MS Mincho"),
    "ko": _Script("w:eastAsia", "ko-KR", "Batang"),
    "ar": _Script("w:bidi", "ar-SA", ""),
    "fa": _Script("w:bidi", "fa-IR", ""),
    "he": _Script("w:bidi", "he-IL", ""),
    "ur": _Script("w:bidi", "ur-PK", ""),
}
_REGIONS = {
    "en": "en-US",
    "ru": "ru-RU",
    "de": "de-DE",
    "fr": "fr-FR",
    "es": "es-ES",
    "it": "it-IT",
    "pt": "pt-PT",
    "uk": "uk-UA",
    "pl": "pl-PL",
}
_FONT = "Times New Roman"


def write_docx(book: Book) -> bytes:
    """The book as one DOCX file."""
    import docx

    document = docx.Document()
    _set_properties(document, book)
    _set_styles(document, book)
    writer = _Writer(document, book)
    writer.plain(book.title, "Title")
    for author in book.authors:
        writer.plain(author, "Subtitle")
    for chapter in book.chapters:
        writer.chapter(chapter)
    if book.note:
        writer.paragraphs(book.note, COLOPHON, COLOPHON)
    _add_part(document, writer.part())
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


class _Writer:
    """Adds paragraphs to the document and notes which bookmark stands for what.

    Paragraphs and runs are made as XML: by way of python-docx's own objects, each of which looks its style up by name, a
    long novel takes twenty times as long.
    """

    def __init__(self, document: Document, book: Book) -> None:
        self._end: Any = document.element.body.sectPr
        self._styles = {style.name: style.style_id for style in document.styles}
        self._book = book
        self._wide = base_language(book.language) in {"zh", "ja", "ko"}
        self._marks: list[tuple[str, str]] = []

    def plain(self, text: str, style: str) -> None:
        self._run(self._paragraph(style), one_line(text))

    def chapter(self, chapter: Chapter) -> None:
        paragraph = self._paragraph("Heading 1")
        self._bookmark(paragraph, "_c", chapter.id)
        label, title = one_line(chapter.label), one_line(chapter.title)
        if label:
            self._run(paragraph, label, LABEL)
        if label and title:
            self._run(paragraph, heading_separator(self._book.language))
        if title:
            self._run(paragraph, title)
        for number, scene in enumerate(chapter.scenes):
            if number:
                paragraph = self._paragraph(SCENE_BREAK)
                self._run(paragraph, "* * *")
            self._bookmark(paragraph, "_s", scene.id)
            self.paragraphs(scene.text, SCENE_TEXT, SCENE_LINE)

    def paragraphs(self, text: str, plain: str, tight: str) -> None:
        for kind, line in split_paragraphs(text):
            # White space that the text brings along is indent enough.
            paragraph = self._paragraph(tight if kind == "tight" else plain, indent=not line[:1].isspace())
            for mark, inner in split_runs(line):
                self._run(paragraph, inner, MARKS.get(mark))

    def part(self) -> bytes:
        """What the bookmarks stand for, and what Word's own properties cannot hold."""
        from lxml import etree

        root = etree.Element(f"{{{PART_NAMESPACE}}}book", {"language": self._book.language, "identifier": self._book.identifier})
        for author in self._book.authors:
            etree.SubElement(root, f"{{{PART_NAMESPACE}}}author").text = one_line(author)
        etree.SubElement(root, f"{{{PART_NAMESPACE}}}note").text = self._book.note or None
        for name, id in self._marks:
            etree.SubElement(root, f"{{{PART_NAMESPACE}}}mark", {"name": name, "id": id})
        return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))

    def _paragraph(self, style: str, *, indent: bool = True) -> Any:
        properties = _w("pPr", _w("pStyle", val=self._styles[style]))
        if not indent:
            properties.append(_w("ind", firstLine="0"))
        paragraph = _w("p", properties)
        self._end.addprevious(paragraph)
        return paragraph

    def _bookmark(self, paragraph: Any, kind: str, id: str) -> None:
        # Names that start with an underscore are hidden from the person.
        name = f"{kind}{len(self._marks) + 1}"
        self._marks.append((name, id))
        number = str(len(self._marks))
        paragraph.extend([_w("bookmarkStart", id=number, name=name), _w("bookmarkEnd", id=number)])

    def _run(self, paragraph: Any, text: str, style: str | None = None) -> None:
        """A run with its exact text: tabs as tabs, white space kept."""
        properties = _w("rPr", *([_w("rStyle", val=self._styles[style])] if style else []))
        if self._wide:
            # Without the hint, quotation marks and dashes in Chinese come out in the narrow Latin font.
            properties.append(_w("rFonts", hint="eastAsia"))
        run = _w("r", *([properties] if len(properties) else []))
        for number, stretch in enumerate(text.split("\t")):
            if number:
                run.append(_w("tab"))
            if stretch:
                element = _w("t")
                element.text = stretch
                element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
                run.append(element)
        paragraph.append(run)


def _name(tag: str) -> str:
    return f"{{{WORD}}}{tag}"


def _w(tag: str, *children: Any, **attributes: str) -> Any:
    from docx.oxml.parser import oxml_parser

    element = oxml_parser.makeelement(_name(tag), {_name(name): value for name, value in attributes.items()}, {"w": WORD})
    element.extend(children)
    return element


def _set_properties(document: Document, book: Book) -> None:
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)  # python-docx writes naive times as UTC
    core = document.core_properties
    core.title, core.author = one_line(book.title)[:255], "; ".join(one_line(author) for author in book.authors)[:255]
    core.language, core.identifier = book.language, book.urn[:255]
    core.created = core.modified = now
    core.last_modified_by, core.comments = "Fabula", ""


def _set_styles(document: Document, book: Book) -> None:
    from docx.enum.style import WD_STYLE_TYPE
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt, RGBColor

    styles: Any = document.styles
    script = _SCRIPTS.get(base_language(book.language))
    _set_language(styles.element, book.language, script)
    for name in ("Normal", "Title", "Subtitle", "Heading 1"):
        _set_font(styles[name], script)
    styles["Normal"].font.size = Pt(12)
    styles["Normal"].paragraph_format.space_after = Pt(0)
    for name, size in (("Title", 26), ("Subtitle", 14), ("Heading 1", 16)):
        style = styles[name]
        style.font.color.rgb, style.font.size, style.font.italic = RGBColor(0, 0, 0), Pt(size), False
        style.paragraph_format.alignment = WD_ALIGN_PARAGRAPH.CENTER
        style.paragraph_format.space_after = Pt(24)
    for border in styles["Title"].element.iter(_name("pBdr")):
        border.getparent().remove(border)
    styles["Heading 1"].paragraph_format.page_break_before = True
    for name, base in ((SCENE_TEXT, "Normal"), (SCENE_LINE, SCENE_TEXT), (SCENE_BREAK, "Normal"), (COLOPHON, "Normal")):
        styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH).base_style = styles[base]
    styles[SCENE_TEXT].paragraph_format.first_line_indent = Pt(24)
    styles[SCENE_TEXT].paragraph_format.line_spacing = 1.5
    styles[SCENE_BREAK].paragraph_format.alignment = WD_ALIGN_PARAGRAPH.CENTER
    styles[SCENE_BREAK].paragraph_format.space_before = styles[SCENE_BREAK].paragraph_format.space_after = Pt(12)
    styles[COLOPHON].font.size = Pt(10)
    styles[COLOPHON].paragraph_format.space_before = Pt(24)
    styles["Heading 1"].next_paragraph_style = styles[SCENE_TEXT]
    styles[SCENE_BREAK].next_paragraph_style = styles[SCENE_TEXT]
    styles.add_style(LABEL, WD_STYLE_TYPE.CHARACTER)
    styles.add_style(UNDERSCORED, WD_STYLE_TYPE.CHARACTER).font.italic = True
    if book.right_to_left:
        styles["Normal"].element.get_or_add_pPr().insert(0, _w("bidi"))  # the schema wants it before spacing


def _set_language(styles: Any, language: str, script: _Script | None) -> None:
    """The proofing language, on the attribute of its script, so that the rest keeps its own."""
    for element in styles.iter(_name("lang")):
        if script:
            element.set(_name(script.attribute.removeprefix("w:")), language if "-" in language else script.tag)
        elif language != "und":
            element.set(_name("val"), language if "-" in language else _REGIONS.get(language, language))


def _set_font(style: Any, script: _Script | None) -> None:
    fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
    fonts.attrib.clear()  # the theme's fonts would win over those named
    for attribute in ("ascii", "hAnsi", "cs"):
        fonts.set(_name(attribute), _FONT)
    fonts.set(_name("eastAsia"), (script.font if script else "") or _FONT)


def _add_part(document: Document, blob: bytes) -> None:
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    package = document.part.package
    document.part.relate_to(Part(PackURI(PART_NAME), "application/xml", blob, package), RELATIONSHIP_TYPE.CUSTOM_XML)
