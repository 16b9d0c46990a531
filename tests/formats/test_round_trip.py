"""What was written reads back byte for byte, scene by scene, in every format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.formats import Book, Format, read_book, render_book, write_book
from fabula.formats._docx_reading import read_docx
from fabula.formats._epub_reading import read_epub
from fabula.formats._files import decode
from fabula.formats._markdown import read_markdown
from fabula.formats._paragraphs import join_paragraphs, join_runs, split_paragraphs, split_runs
from fabula.formats._text import read_text
from tests.formats.books import BOOKS, CHINESE, ENGLISH, books, texts

FORMATS: list[Format] = ["markdown", "text", "epub", "docx"]


def read_again(book: Book, format: Format) -> Book:
    data = render_book(book, format)
    if format == "epub":
        return read_epub(data, "x.epub")
    if format == "docx":
        return read_docx(data, "x.docx")
    return (read_markdown if format == "markdown" else read_text)(decode(data, "x"), "x")


def shape(book: Book) -> list[tuple[str, list[str]]]:
    return [(chapter.heading(book.language), [scene.text for scene in chapter.scenes]) for chapter in book.chapters]


@pytest.mark.parametrize("suffix", [".md", ".txt", ".epub", ".docx"])
@pytest.mark.parametrize("language", BOOKS)
def test_books(language: str, suffix: str, tmp_path: Path) -> None:
    book = BOOKS[language]
    read = read_book(write_book(book, tmp_path / f"book{suffix}"))
    assert shape(read) == shape(book)
    assert (read.title, read.language, read.authors, read.urn) == (book.title, book.language, book.authors, book.urn)
    if suffix == ".txt":
        assert read.note == " ".join(book.note.split())
    else:
        assert read == replace(book, identifier=read.identifier)


@settings(max_examples=150)
@given(book=books())
def test_any_book_markdown(book: Book) -> None:
    assert read_again(book, "markdown") == book


@settings(max_examples=25)
@given(book=books())
def test_any_book_docx(book: Book) -> None:
    assert read_again(book, "docx") == book


@given(book=books())
def test_any_book_epub(book: Book) -> None:
    assert read_again(book, "epub") == replace(book, identifier=book.urn)


@given(book=books())
def test_any_book_text(book: Book) -> None:
    read = read_again(book, "text")
    assert shape(read) == shape(book)
    assert (read.title, read.language, read.authors) == (book.title, book.language, book.authors)


@settings(max_examples=300)
@given(text=texts)
def test_paragraphs(text: str) -> None:
    paragraphs = split_paragraphs(text)
    assert join_paragraphs(paragraphs) == text
    assert all("\n" not in paragraph.text for paragraph in paragraphs)


@settings(max_examples=300)
@given(text=st.text("*_\\ abя她", max_size=14))
def test_runs(text: str) -> None:
    assert join_runs(split_runs(text)) == text


def test_emphasis() -> None:
    assert split_runs("a *b* c") == [("", "a "), ("*", "b"), ("", " c")]
    assert split_runs("_снова_, **они**") == [("_", "снова"), ("", ", "), ("**", "они")]
    assert split_runs("她*不*走") == [("", "她"), ("*", "不"), ("", "走")]
    for plain in ("2 * 3 * 4", "snake_case_name", "* * *", "*a**b*", r"\*not\*", "a ** b", "*"):
        assert split_runs(plain) == [("", plain)]


@pytest.mark.parametrize("first", FORMATS)
@pytest.mark.parametrize("second", FORMATS)
def test_from_one_to_another(first: Format, second: Format) -> None:
    """A book that went through two formats has lost nothing of its text."""
    for book in (ENGLISH, CHINESE):
        assert shape(read_again(read_again(book, first), second)) == shape(book)
