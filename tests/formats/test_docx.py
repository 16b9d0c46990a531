"""DOCX: real headings, the language of each script, ids that survive a word processor; documents of others are read."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import docx
import pytest
from docx.oxml.ns import qn

from fabula.errors import InputError
from fabula.formats import Book, read_book, render_book
from fabula.formats._docx_reading import read_docx
from tests.formats.books import BOOKS, CHINESE, ENGLISH, RUSSIAN


def opened(book: Book) -> Any:
    return docx.Document(io.BytesIO(render_book(book, "docx")))


def saved(document: Any) -> bytes:
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


def test_styles() -> None:
    styles = [(p.style.name, p.text) for p in opened(ENGLISH).paragraphs]
    assert styles[:3] == [("Title", ENGLISH.title), ("Subtitle", "Mira Lind"), ("Subtitle", "A. N. Other")]
    assert [text for name, text in styles if name == "Heading 1"] == ["Chapter 1: The Harbour", "Interlude", ""]
    assert sum(name == "Scene Break" and text == "* * *" for name, text in styles) == 2
    assert ("Scene Line", "- Me.") in styles
    assert styles[-1] == ("Colophon", "The rest by Mira Lind.")


def test_white_space_is_kept() -> None:
    """Word drops the spaces at the edges of a text element unless it is told not to."""
    texts = list(opened(ENGLISH).element.iter(qn("w:t")))
    assert any(text.text.startswith("    ") for text in texts)
    assert all(text.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve" for text in texts)


def test_emphasis() -> None:
    runs = [(run.style.name, run.text) for p in opened(ENGLISH).paragraphs for run in p.runs]
    assert {("Emphasis", "five"), ("Underscored", "was"), ("Strong", "last")} <= set(runs)


@pytest.mark.parametrize(("language", "attribute", "tag"), [("en", "val", "en-US"), ("ru", "val", "ru-RU"), ("zh", "eastAsia", "zh-CN")])
def test_language(language: str, attribute: str, tag: str) -> None:
    document = opened(BOOKS[language])
    said = next(document.styles.element.iter(qn("w:lang")))
    assert said.get(qn(f"w:{attribute}")) == tag
    assert document.core_properties.language == language
    assert document.core_properties.title == BOOKS[language].title


def test_east_asian() -> None:
    document = opened(CHINESE)
    fonts = document.styles["Normal"].element.rPr.rFonts
    assert fonts.get(qn("w:eastAsia")) == "SimSun"
    runs = [run for p in document.paragraphs for run in p.runs]
    assert all(run._r.rPr.rFonts.get(qn("w:hint")) == "eastAsia" for run in runs)
    assert not any(element.get(qn("w:hint")) for element in opened(RUSSIAN).element.iter(qn("w:rFonts")))


def test_edited_in_a_word_processor() -> None:
    """Text changed, runs split, a chapter moved and one added: what stayed keeps its id."""
    document = opened(CHINESE)
    line = next(p for p in document.paragraphs if p.text.startswith("最后"))
    line.runs[0].text, line.add_run("雨").bold = "最后的锁。", True
    document.add_paragraph("第三章", style="Heading 1")
    document.add_paragraph("新的。", style="Normal")
    heads = [p for p in document.paragraphs if p.style.name == "Heading 1"]
    heads[0]._p.addprevious(heads[1]._p)
    heads[0]._p.addprevious(line._p)
    book = read_docx(saved(document), "x.docx")
    assert [(c.id, c.label, c.title) for c in book.chapters] == [("c2", "第二章", "锁"), ("c1", "第一章", "港口"), ("c3", "", "第三章")]
    assert [(s.id, s.text) for s in book.chapters[0].scenes] == [("c2s1", "最后的锁。**雨**")]
    assert book.chapters[1].scenes == CHINESE.chapters[0].scenes
    assert [s.text for s in book.chapters[2].scenes] == ["新的。"]


def foreign() -> Any:
    document = docx.Document()
    document.core_properties.author, document.core_properties.language = "М. Линд; A. B.", "ru"
    document.add_paragraph("Лодка", style="Title")
    document.add_heading("Глава 1. Гавань", 1)
    line = document.add_paragraph("Мира ")
    line.add_run("не").italic = True
    line.add_run(" ушла.\tДа.")
    line.add_run().add_break()
    line.add_run("Нет.")
    document.add_paragraph("")
    document.add_paragraph("***")
    document.add_table(1, 2).cell(0, 1).text = "ячейка"
    document.add_heading("Глава 2", 1)
    document.add_paragraph("Конец.")
    return document


def test_foreign() -> None:
    book = read_docx(saved(foreign()), "x.docx")
    assert (book.title, book.language, book.authors) == ("Лодка", "ru", ("М. Линд", "A. B."))
    assert [(c.label, c.title, [s.text for s in c.scenes]) for c in book.chapters] == [
        ("Глава 1", "Гавань", ["Мира *не* ушла.\tДа.\nНет.", "ячейка"]),
        ("Глава 2", "", ["Конец."]),
    ]


def test_foreign_without_styles() -> None:
    """Many writers type their headings as plain paragraphs."""
    document = docx.Document()
    for text in ("第一章 港口", "米拉来了。", "第二章 锁", "她走了。"):
        document.add_paragraph(text)
    book = read_docx(saved(document), "书.docx")
    assert book.title == "书"
    assert [(c.label, c.title, c.scenes[0].text) for c in book.chapters] == [("第一章", "港口", "米拉来了。"), ("第二章", "锁", "她走了。")]


def test_not_a_document(tmp_path: Any) -> None:
    path = tmp_path / "x.docx"
    path.write_bytes(render_book(ENGLISH, "epub"))
    with pytest.raises(InputError, match=r"word/document\.xml"):
        read_book(path)


def test_right_to_left() -> None:
    style = opened(replace(ENGLISH, language="he")).styles["Normal"].element
    assert style.pPr.find(qn("w:bidi")) is not None
