"""Whole files of plain text as they go round in three languages: chapters, volumes, side stories; and no line lost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.formats import Book
from fabula.formats._headings import bare_numeral, find_heading, hash_heading, one_line
from fabula.formats._outline import BREAK
from fabula.formats._text import read_text

PROSE = {
    "en": "She counted the boats again, and there were four of them; yesterday there had been five, and nobody on the quay would say why.",
    "zh": "她又数了一遍船，一共有四条。昨天还有五条，可是码头上没有人肯说这是为什么。",
    "ru": "Она ещё раз пересчитала лодки: их было четыре, а вчера было пять, и никто на набережной не хотел говорить почему.",
}


def shape(book: Book) -> list[Any]:
    """Headings and number of scenes."""
    return [(c.label, c.title, len(c.scenes)) for c in book.chapters]


def layout(text: str, language: str) -> str:
    """`~` stands for a line of prose, `^` for one that is wrapped in the middle of a sentence."""
    prose = PROSE[language]
    half = prose[: len(prose) * 2 // 3].rsplit(" ", 1)[0] if language != "zh" else prose[:26]
    return re.sub(r"^[ \t]*\^\n", lambda _: f"{half}\n", re.sub(r"~", lambda _: prose, text), flags=re.MULTILINE).lstrip("\n")


def read(text: str, language: str) -> Book:
    """As a file with that name."""
    return read_text(layout(text, language), "file")


# -- English ----------------------------------------------------------------------------------------------------------------------


def test_a_book_of_the_nineteenth_century() -> None:
    book = read(
        """
The Lantern Keeper

by Mira Lind

CONTENTS

CHAPTER I. The Harbour
CHAPTER II. The Lock
CHAPTER III. The Key
EPILOGUE


CHAPTER I.
THE HARBOUR

^
Chapter 12 of the log says nothing else, she thought.
~

1986

~
* * *
~

CHAPTER II.
THE LOCK

Chapter two was the worst of it. ~

1. Buy a lamp
2. Buy oil

CHAPTER III.
THE KEY

“Chapter One,” she read aloud.

~

EPILOGUE

~
""",
        "en",
    )
    assert shape(book) == [
        ("", "", 1),
        ("CHAPTER I", "THE HARBOUR", 2),
        ("CHAPTER II", "THE LOCK", 1),
        ("CHAPTER III", "THE KEY", 1),
        ("EPILOGUE", "", 1),
    ]
    assert "CHAPTER II. The Lock" in book.chapters[0].scenes[0].text
    assert "Chapter 12 of the log" in book.chapters[1].scenes[0].text
    assert "1986" in book.chapters[1].scenes[0].text
    assert book.chapters[2].scenes[0].text.endswith("2. Buy oil")
    assert book.chapters[3].scenes[0].text.startswith("“Chapter One,”")


def test_parts_with_chapters_and_titles_below() -> None:
    book = read(
        """
PART ONE

Winter

Chapter One

The Harbour

~

Chapter Two

The Lock

~

PART TWO

Summer

Chapter Three

The Key

~
""",
        "en",
    )
    assert shape(book) == [
        ("PART ONE", "", 1),
        ("Chapter One", "The Harbour", 1),
        ("Chapter Two", "The Lock", 1),
        ("PART TWO", "", 1),
        ("Chapter Three", "The Key", 1),
    ]
    assert book.chapters[0].scenes[0].text == "Winter"  # nothing says that it is more than a line


def test_a_web_novel_in_english() -> None:
    book = read(
        """
Title: The Fourth Lock
Author: M. Lind

Volume 1: Winter

Chapter 1 - The Harbour
~
~

[Chapter 2] The Lock
~

Ｃｈａｐｔｅｒ　３：Ｋｅｙｓ
~

C H A P T E R  F O U R
~

Side Story 1: The Cat
~

Volume 2: Summer

## Chapter 5: Ice ##
~
Interlude
~
""",
        "en",
    )
    assert (book.title, book.authors) == ("The Fourth Lock", ("M. Lind",))
    assert shape(book) == [
        ("Volume 1", "Winter", 0),
        ("Chapter 1", "The Harbour", 1),
        ("Chapter 2", "The Lock", 1),
        ("Chapter 3", "Keys", 1),
        ("CHAPTER FOUR", "", 1),
        ("Side Story 1", "The Cat", 1),
        ("Volume 2", "Summer", 0),
        ("Chapter 5", "Ice", 1),
        ("Interlude", "", 1),
    ]
    assert book.chapters[1].scenes[0].text == f"{PROSE['en']}\n{PROSE['en']}"


@pytest.mark.parametrize("numbers", [("I", "II", "III"), ("1.", "2.", "3."), ("One", "Two", "Three"), ("- 1 -", "- 2 -", "- 3 -")])
def test_bare_numbers(numbers: tuple[str, ...]) -> None:
    book = read("\n".join(f"{number}\n\n~\n\n1986\n\n~\n" for number in numbers), "en")
    assert [label for label, _, _ in shape(book)] == [number.strip("-. ") for number in numbers]
    assert all("1986" in c.scenes[0].text for c in book.chapters)


def test_bare_numbers_begin_again_in_each_part() -> None:
    book = read("Part One\n\n1\n\n~\n\n2\n\n~\n\nPart Two\n\n1\n\n~\n\n2\n\n~\n", "en")
    assert [label for label, _, _ in shape(book)] == ["Part One", "1", "2", "Part Two", "1", "2"]


@pytest.mark.parametrize(
    "text",
    [
        "~\n\n1986\n\n~\n\n1987\n\n~\n",
        "1\n2\n3\n~\n",
        "~\n\n2\n\n~\n\n3\n\n~\n",
        "1. Buy milk\n2. Buy bread\n\n~\n",
        "Things to do:\n\n1\n\n2\n\n3\n\n~\n",
        "~\n^\nChapter 2\nof the log says nothing.\n~\n",
        "^\nChapter 2\n~\n",
        "~\n# 7 was on the door.\n~\n",
        "# The light is on,\n# the light is off.\n# So it goes.\n\n~\n",
        "~\n\n# 7 was on the door,\n\n# 8 on the window,\n\n~\n",
    ],
)
def test_no_chapter_where_there_is_none(text: str) -> None:
    assert shape(read(text, "en")) == [("", "", 1)]


def test_headings_by_hashes_and_underlines() -> None:
    assert shape(read("# The Book\n\n## The Harbour\n\n~\n\n## The Lock\n\n### Letter\n\n~\n", "en")) == [
        ("", "The Harbour", 1),
        ("", "The Lock", 1),
    ]
    assert read("# The Book\n\n## The Harbour\n\n~\n\n## The Lock\n\n~\n", "en").title == "The Book"
    assert shape(read("The Harbour\n===========\n\n~\n\nThe Lock\n========\n\n~\n", "en")) == [("", "The Harbour", 1), ("", "The Lock", 1)]
    assert shape(read("Chapter 1\n---------\n\n~\n\nChapter 2\n---------\n~\n", "en")) == [("Chapter 1", "", 1), ("Chapter 2", "", 1)]
    assert "### Letter" in read("# A\n\n~\n\n## B\n\n~\n\n### Letter\n\n~\n\n# C\n\n~\n", "en").chapters[1].scenes[0].text


# -- Chinese ----------------------------------------------------------------------------------------------------------------------


def test_a_web_novel_in_chinese() -> None:
    book = read(
        """
《第四把锁》
作者：林米拉

内容简介：
　　~

正文 第一卷 风起 第一章 少年
　　~
　　第一章里说，船有五条。
　　“第二章呢？”她问。
　　~
第一卷 风起 第二章 锁
　　~
　　第二天，他走了。
（本章完）
第一卷 风起 第三章 你是谁？
　　~
　　◇◇◇
　　~
第二卷 冬 第四章 钥匙（上）
　　~
第二卷 冬 第五章 钥匙（下）
　　~
番外一 旧事
　　~
番外二 猫
　　~
后记
　　~
""",
        "zh",
    )
    assert (book.title, book.authors) == ("第四把锁", ("林米拉",))
    assert shape(book) == [
        ("", "", 1),
        ("第一卷", "风起", 0),
        ("第一章", "少年", 1),
        ("第二章", "锁", 1),
        ("第三章", "你是谁？", 2),
        ("第二卷", "冬", 0),
        ("第四章", "钥匙（上）", 1),
        ("第五章", "钥匙（下）", 1),
        ("番外一", "旧事", 1),
        ("番外二", "猫", 1),
        ("后记", "", 1),
    ]
    assert book.chapters[2].scenes[0].text.split("\n")[1] == "　　第一章里说，船有五条。"
    assert book.chapters[3].scenes[0].text.endswith("（本章完）")


def test_contents_in_chinese_and_headings_close_on_their_titles() -> None:
    book = read(
        """
目录
第一章风起
第二章云涌
第三章雨落
尾声

第一章风起

~

第一章写得很好。

第二章云涌

~

第三章雨落

~

尾声

~
""",
        "zh",
    )
    assert shape(book) == [("", "", 1), ("第一章", "风起", 1), ("第二章", "云涌", 1), ("第三章", "雨落", 1), ("尾声", "", 1)]
    assert book.chapters[0].scenes[0].text == "目录\n第一章风起\n第二章云涌\n第三章雨落\n尾声"


def test_a_single_glued_line_is_no_heading() -> None:
    assert shape(read("~\n第三章风起\n~\n", "zh")) == [("", "", 1)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("第 一 章 风 起", "第 二 章 云 涌"),
        ("第１章　风起", "第２章　云涌"),
        ("【第一章】 风起", "【第二章】 云涌"),
        ("《第一章 风起》", "《第二章 云涌》"),
        ("# 第一章 风起", "# 第二章 云涌"),
        ("☆、第一章 风起", "☆、第二章 云涌"),
        ("第一回：风起", "第二回：云涌"),
    ],
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_prints_of_chinese_headings(first: str, second: str, gap: str) -> None:
    book = read(gap.join(["楔子", "　　~", first, "　　~", "　　~", second, "　　~", "第二天，她走了。", ""]), "zh")
    assert [(title, scenes) for _, title, scenes in shape(book)] == [("", 1), ("风起", 1), ("云涌", 1)]


def test_a_heading_printed_twice_is_one() -> None:
    book = read("第一章 风起\n\n第一章 风起\n　　~\n第二章 云涌\n第二章\n　　~\n", "zh")
    assert shape(book) == [("第一章", "风起", 1), ("第二章", "云涌", 1)]


# -- Russian ----------------------------------------------------------------------------------------------------------------------


def test_a_novel_in_russian() -> None:
    book = read(
        """
Название: Четвёртый замок
Автор: Мира Линд

Содержание

Часть первая
Глава первая. Гавань
Глава вторая. Замок
Часть вторая
Глава третья. Ключ
Эпилог

Пролог

~

Часть первая

Глава первая. Гавань

— Глава первая, — прочёл он вслух.

~

Глава вторая. Замок

Глава 3 комиссии заявил, что ключа нет.

***

~

1986

Часть вторая

Глава третья. Ключ

Часть людей ушла. ~

Интерлюдия. Море

~

Побочная история 1

~

ЭПИЛОГ

~
""",
        "ru",
    )
    assert (book.title, book.authors) == ("Четвёртый замок", ("Мира Линд",))
    assert shape(book) == [
        ("", "", 1),
        ("Пролог", "", 1),
        ("Часть первая", "", 0),
        ("Глава первая", "Гавань", 1),
        ("Глава вторая", "Замок", 2),
        ("Часть вторая", "", 0),
        ("Глава третья", "Ключ", 1),
        ("Интерлюдия", "Море", 1),
        ("Побочная история 1", "", 1),
        ("ЭПИЛОГ", "", 1),
    ]
    assert book.chapters[3].scenes[0].text.startswith("— Глава первая")
    assert book.chapters[4].scenes[1].text.endswith("1986")


def test_volume_and_chapter_on_one_line_in_russian() -> None:
    book = read("Том 1. Глава 1. Гавань\n\n~\n\nТом 1. Глава 2. Замок\n\n~\n\nТом 2. Глава 1. Ключ\n\n~\n", "ru")
    assert shape(book) == [("Том 1", "", 0), ("Глава 1", "Гавань", 1), ("Глава 2", "Замок", 1), ("Том 2", "", 0), ("Глава 1", "Ключ", 1)]


# -- no line is lost, whatever it is --------------------------------------------------------------------------------------------

_LINES = [
    "", "", "", "Chapter 1", "Chapter 2: The Lock", "第一章 风起", "第一章风起", "第二章云涌",
    "Глава первая. Гавань", "Часть 2", "Prologue", "番外一",
    "第一卷 风 第一章 雨", "1", "2", "I", "II", "1986", "# A", "## B", "***", "* * *", "---", "====",
    "《书》", "作者：林", "Title: X", "Contents", "目录",
    "1. Buy milk", "Chapter two was the worst.", "第一章里说", "— Глава первая, — сказал он.", "  She came.", "　　她来了。", "The Harbour",
    "He said nothing and", "…", "\t", " \u3000", "第 三 章", "[Chapter 3] x",
    "Chapter 3 ..... 7", PROSE["en"], PROSE["zh"], PROSE["ru"], "\x0c", "\r",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_LINES), max_size=40))
def test_no_line_is_lost(lines: list[str]) -> None:
    book = read_text("\n".join(lines), "file")
    kept = [line for scene in book.scenes() for line in scene.text.split("\n") if line.strip()]
    printed = {one_line(part) for c in book.chapters for part in (c.label, c.title)} | {book.title, *book.authors}
    rest = iter(kept)
    wanted = next(rest, None)
    for line in lines:
        if not line.strip():
            continue
        if line == wanted:
            wanted = next(rest, None)
            continue
        heading, hashed, numeral = find_heading(line), hash_heading(line), bare_numeral(line.strip())
        said = re.sub(r"^.*[:：]\s*|[《》]", "", line.strip())
        assert (
            BREAK.fullmatch(line)
            or re.fullmatch(r"={3,}|-{3,}", line.strip())
            or (heading is not None and heading.label in printed and heading.title in printed)
            or (hashed is not None and hashed[1] in printed)
            or (numeral is not None and line.strip() in printed)
            or one_line(line) in printed
            or said in printed
        ), line
    assert wanted is None


def test_what_is_lost_would_be_found() -> None:
    text = "Chapter 1\n\nShe came.\nHe went.\n"
    assert [s.text for s in read_text(text, "x").scenes()] == ["She came.\nHe went."]


def test_a_text_stays_line_by_line() -> None:
    body = "　　她来了。\n\n\n　　他走了。\n  x  \ty\n…"
    book = read_text(f"第一章 风起\n\n{body}\n\n第二章 云涌\n{body}\n", "书")
    assert [s.text for s in book.scenes()] == [body, body]


def test_long_files_are_read_in_linear_work() -> None:
    """With a look at all lines for each line the whole test would not end."""
    chapters = "\n".join(f"第{n}章 风起\n　　{PROSE['zh']}" for n in range(1, 5_001))
    contents = "\n".join(f"第{n}章 风起" for n in range(1, 5_001))
    assert len(read_text(f"{contents}\n{chapters}", "x").chapters) == 5_001
    assert len(read_text("Chapter 1\n" * 20_000 + "x" * 1_000_000, "x").chapters) == 1
    assert read_text("Chapter " * 100_000 + "1" * 100_000, "x").chapters
