"""Markdown and plain text: prose stays prose when rendered, edits are understood, books of others are read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from fabula.errors import InputError
from fabula.formats import Book, Chapter, Scene, render_book, split_heading
from fabula.formats._files import decode
from fabula.formats._markdown import read_markdown
from fabula.formats._text import read_text
from tests.formats.books import CHINESE, ENGLISH, texts


def rendered(text: str) -> list[str]:
    """The block tokens of a scene, as any Markdown program sees it."""
    book = Book("T", chapters=(Chapter("c1", scenes=(Scene("s1", text),)),))
    body = render_book(book, "markdown").decode().partition('"s1"')[2]
    return [token.type for token in MarkdownIt("commonmark").parse(body.partition("-->")[2])]


@given(texts.filter(lambda text: "\r" not in text))
def test_prose_renders_as_prose(text: str) -> None:
    assert set(rendered(text)) <= {"paragraph_open", "inline", "paragraph_close"}


def test_lines_are_paragraphs_where_nothing_else_parts_them() -> None:
    assert rendered("一。\n二。\n三。").count("paragraph_open") == 3
    assert rendered("a\nb\n\nc").count("paragraph_open") == 2


def test_ids_are_invisible() -> None:
    page = MarkdownIt("commonmark").render(render_book(ENGLISH, "markdown").decode().split("---\n", 2)[2])
    assert "ch-harbour" not in re.sub(r"<!--.*?-->", "", page)
    assert "<h2>Chapter 1: The Harbour</h2>" in page
    assert page.count("<hr />") == 2


def edited(book: Book, *edits: tuple[str, str]) -> Book:
    text = render_book(book, "markdown").decode()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return read_markdown(text, "x")


def test_edited_text_and_heading() -> None:
    book = edited(CHINESE, ("四条", "六条"), ("## 第二章　锁", "## 第二章　大锁"), ("## 第一章　港口", "## 雨夜"))
    assert book.chapters[0].scenes[0].text == CHINESE.chapters[0].scenes[0].text.replace("四条", "六条")
    assert [(c.id, c.label, c.title) for c in book.chapters] == [("c1", "", "雨夜"), ("c2", "第二章", "大锁")]


def test_new_scene_and_chapter() -> None:
    book = edited(ENGLISH, ("Nobody answered.\n", "Nobody.\n\n* * *\n\nA new scene.\n\n## Chapter 9: New\n\nIts text.\n"))
    assert [(c.id, c.label, c.title, len(c.scenes)) for c in book.chapters[:2]] == [
        ("ch-harbour", "Chapter 1", "The Harbour", 2),
        ("c2", "Chapter 9", "New", 2),
    ]
    assert [s.text for s in book.scenes()][1:3] == ["A new scene.", "Its text."]
    assert len({s.id for s in book.scenes()}) == len(list(book.scenes()))


def test_windows_editor() -> None:
    data = render_book(ENGLISH, "markdown").replace(b"\n", b"\r\n")
    assert read_markdown(decode(b"\xef\xbb\xbf" + data, "x"), "x").chapters == ENGLISH.chapters


def test_comments_lost() -> None:
    text = re.sub(r"<!--.*?-->\n\n", "", render_book(CHINESE, "markdown").decode())
    book = read_markdown(text, "x")
    assert [(c.id, c.label, c.title, len(c.scenes)) for c in book.chapters] == [("c1", "第一章", "港口", 2), ("c2", "第二章", "锁", 1)]


def test_later_version_and_damage() -> None:
    text = render_book(ENGLISH, "markdown").decode()
    for old, new in (("fabula: 1", "fabula: 9"), ("title: The", "title: [The"), ('{"id": "s1"}', '{"id: "s1"}')):
        with pytest.raises(InputError):
            read_markdown(text.replace(old, new, 1), "x")


FOREIGN = """\
---
title: The Boat
author: M. Lind
lang: en
---
# The Boat

An epigraph.

## Chapter One: *Rain*

It rained
all day. It \\*poured\\*.

- a list
- of two

***

```
# not a heading
```

## 2

> A quote.

Second\\
line.
"""


def test_foreign() -> None:
    book = read_markdown(FOREIGN, "x")
    assert (book.title, book.authors, book.language) == ("The Boat", ("M. Lind",), "en")
    assert [(c.label, c.title) for c in book.chapters] == [("", ""), ("Chapter One", "*Rain*"), ("", "2")]
    assert [s.text for s in book.chapters[1].scenes] == [
        "It rained all day. It *poured*.\n\n- a list\n- of two",
        "```\n# not a heading\n```",
    ]
    assert book.chapters[2].scenes[0].text == "> A quote.\n\nSecond\nline."


def test_foreign_chinese_lines_join_without_space() -> None:
    assert read_markdown("# 书\n\n## 第一章\n\n他走\n了。", "x").chapters[0].scenes[0].text == "他走了。"


def test_foreign_starts_with_a_rule() -> None:
    book = read_markdown("---\n\nNot front matter: really\n\n---\n\nText.\n", "x")
    assert [s.text for s in book.scenes()] == ["Not front matter: really", "Text."]


def test_parts_and_chapters() -> None:
    book = read_markdown("# T\n\n## Part One\n\n### A\n\na\n\n### B\n\nb\n\n## Part Two\n\n### C\n\nc\n", "x")
    assert [(c.label or c.title, len(c.scenes)) for c in book.chapters] == [("Part One", 0), ("A", 1), ("B", 1), ("Part Two", 0), ("C", 1)]


def test_deeper_headings_stay() -> None:
    book = read_markdown("# T\n\n## A\n\na\n\n### Letter\n\nb\n\n## B\n\nc\n", "x")
    assert [s.text for s in book.scenes()] == ["a\n\nLetter\n\nb", "c"]


def test_foreign_text() -> None:
    text = "THE BOAT\n\nChapter 1\n\nIt rained.\nPart of him knew.\n\n***\n\n  Later.\n\nEpilogue\n\nThe end.\n"
    book = read_text(text, "boat")
    assert [(c.label, c.title, [s.text for s in c.scenes]) for c in book.chapters] == [
        ("", "", ["THE BOAT"]),
        ("Chapter 1", "", ["It rained.\nPart of him knew.", "  Later."]),
        ("Epilogue", "", ["The end."]),
    ]


def test_foreign_text_without_blank_lines() -> None:
    book = read_text("楔子\n　　雨夜。\n第一章 港口\n　　她来了。\n　　他走了。\n", "书")
    assert [(c.label, c.title) for c in book.chapters] == [("楔子", ""), ("第一章", "港口")]
    assert book.chapters[1].scenes[0].text == "　　她来了。\n　　他走了。"


@pytest.mark.parametrize(
    ("heading", "label", "title"),
    [
        ("Chapter 3: The Lock", "Chapter 3", "The Lock"),
        ("CHAPTER IV", "CHAPTER IV", ""),
        ("Chapter Twenty-One. Rain", "Chapter Twenty-One", "Rain"),
        ("第十二章　锁", "第十二章", "锁"),
        ("第 3 回 雨", "第 3 回", "雨"),
        ("Глава 3. Замок", "Глава 3", "Замок"),
        ("Часть вторая", "Часть вторая", ""),
        ("Prologue", "Prologue", ""),
        ("The Lock", "", "The Lock"),
        ("Bookkeeping", "", "Bookkeeping"),
        ("Part of him knew", "", "Part of him knew"),
    ],
)
def test_split_heading(heading: str, label: str, title: str) -> None:
    assert split_heading(heading) == (label, title)
