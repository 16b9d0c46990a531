"""Single lines as headings: what books really print over chapters, and sentences that only begin like it."""

from __future__ import annotations

import pytest

from fabula.formats import chapter_number, heading_kind, renumbered, split_heading
from fabula.formats._headings import find_heading
from fabula.formats._numerals import chinese_value, english, numeral_at, written_like

HEADINGS = [
    # spaced, of full width, in brackets, with marks
    ("第 一 章", "chapter", "第一章", "", 1),
    ("第 一 章 风 起", "chapter", "第一章", "风起", 1),
    ("第　二　章　　风起", "chapter", "第二章", "风起", 2),
    ("第１章　风起", "chapter", "第1章", "风起", 1),
    ("第１２３章", "chapter", "第123章", "", 123),
    ("Ｃｈａｐｔｅｒ　１", "chapter", "Chapter 1", "", 1),
    ("Ｃｈａｐｔｅｒ　１：Ｔｈｅ　Ｌｏｃｋ", "chapter", "Chapter 1", "The Lock", 1),
    ("C H A P T E R  O N E", "chapter", "CHAPTER ONE", "", 1),
    ("C H A P T E R   O N E   T h e   L o c k", "chapter", "CHAPTER ONE", "The Lock", 1),
    ("C H A P T E R O N E", "chapter", "CHAPTER ONE", "", 1),
    ("C H A P T E R  12", "chapter", "CHAPTER 12", "", 12),
    ("Г Л А В А  П Е Р В А Я", "chapter", "ГЛАВА ПЕРВАЯ", "", 1),
    ("【第一章】 序", "chapter", "第一章", "序", 1),
    ("【第一章】序曲", "chapter", "第一章", "序曲", 1),
    ("【第三章 锁】", "chapter", "第三章", "锁", 3),
    ("《第三章》", "chapter", "第三章", "", 3),
    ("[Chapter 3]", "chapter", "Chapter 3", "", 3),
    ("[Chapter 3] The Lock", "chapter", "Chapter 3", "The Lock", 3),
    ("〔Глава 3〕 Замок", "chapter", "Глава 3", "Замок", 3),
    ("# Chapter 1", "chapter", "Chapter 1", "", 1),
    ("## 第一章 风起 ##", "chapter", "第一章", "风起", 1),
    ("#第一章", "chapter", "第一章", "", 1),
    ("**Chapter 1: The Lock**", "chapter", "Chapter 1", "The Lock", 1),
    ("*** Chapter 1 ***", "chapter", "Chapter 1", "", 1),
    ("=== 第一章 ===", "chapter", "第一章", "", 1),
    ("☆、第一章 风起", "chapter", "第一章", "风起", 1),
    ("—— Глава 2 ——", "chapter", "Глава 2", "", 2),
    ("正文 第一章 风起", "chapter", "第一章", "风起", 1),
    ("《长夜》 第三章 锁", "chapter", "第三章", "锁", 3),
    # volumes and parts
    ("卷一 风起", "volume", "卷一", "风起", 1),
    ("卷之二", "volume", "卷之二", "", 2),
    ("第二卷：冬", "volume", "第二卷", "冬", 2),
    ("第二部", "volume", "第二部", "", 2),
    ("第一部分 海", "volume", "第一部分", "海", 1),
    ("下卷", "volume", "下卷", "", None),
    ("Volume 2: Winter", "volume", "Volume 2", "Winter", 2),
    ("Part One", "volume", "Part One", "", 1),
    ("PART THE FIRST", "volume", "PART THE FIRST", "", 1),
    ("BOOK II.", "volume", "BOOK II", "", 2),
    ("Act III", "volume", "Act III", "", 3),
    ("Том 2", "volume", "Том 2", "", 2),
    ("Часть вторая. Зима", "volume", "Часть вторая", "Зима", 2),
    ("ВТОРАЯ ЧАСТЬ", "volume", "ВТОРАЯ ЧАСТЬ", "", 2),
    ("Книга первая", "volume", "Книга первая", "", 1),
    # what is not counted
    ("楔子", "other", "楔子", "", None),
    ("序章 雨夜", "other", "序章", "雨夜", None),
    ("尾声", "other", "尾声", "", None),
    ("番外一 旧事", "other", "番外一", "旧事", 1),
    ("番外（一）", "other", "番外", "（一）", None),
    ("番外：旧事", "other", "番外", "旧事", None),
    ("外传 剑", "other", "外传", "剑", None),
    ("Prologue", "other", "Prologue", "", None),
    ("EPILOGUE.", "other", "EPILOGUE", "", None),
    ("Interlude: The Sea", "other", "Interlude", "The Sea", None),
    ("Interlude II", "other", "Interlude II", "", 2),
    ("Side Story 2: The Cat", "other", "Side Story 2", "The Cat", 2),
    ("Пролог", "other", "Пролог", "", None),
    ("Интерлюдия. Море", "other", "Интерлюдия", "Море", None),
    ("Побочная история 1", "other", "Побочная история 1", "", 1),
    # numerals and titles
    ("Chapter Twenty-One. Rain", "chapter", "Chapter Twenty-One", "Rain", 21),
    ("Chapter One Hundred and Five", "chapter", "Chapter One Hundred and Five", "", 105),
    ("CHAPTER XIV", "chapter", "CHAPTER XIV", "", 14),
    ("Chapter xiv", "chapter", "Chapter xiv", "", 14),
    ("CHAPTER I. DOWN TO THE HARBOUR.", "chapter", "CHAPTER I", "DOWN TO THE HARBOUR.", 1),
    ("Chapter 3 – the lock", "chapter", "Chapter 3", "the lock", 3),
    ("Chapter 1-The Lock", "chapter", "Chapter 1", "The Lock", 1),
    ("Chapter 10 A Visit From Mr. Darcy", "chapter", "Chapter 10", "A Visit From Mr. Darcy", 10),
    ("Chapter 5 (Part 2)", "chapter", "Chapter 5", "(Part 2)", 5),
    ("Chapter #3", "chapter", "Chapter #3", "", 3),
    ("Ch. 5", "chapter", "Ch. 5", "", 5),
    ("Глава первая", "chapter", "Глава первая", "", 1),
    ("Глава двадцать первая. Замок", "chapter", "Глава двадцать первая", "Замок", 21),
    ("ГЛАВА XIV", "chapter", "ГЛАВА XIV", "", 14),
    ("Глава 3 Замок", "chapter", "Глава 3", "Замок", 3),
    ("Первая глава", "chapter", "Первая глава", "", 1),
    ("第五章 你是谁？", "chapter", "第五章", "你是谁？", 5),
    ("第十二章 风起，云涌", "chapter", "第十二章", "风起，云涌", 12),
    ("第一百零三回 雨", "chapter", "第一百零三回", "雨", 103),
    ("第三章（上）", "chapter", "第三章", "（上）", 3),
    ("第1話 猫", "chapter", "第1話", "猫", 1),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "label", "title", "number"), HEADINGS)
def test_headings(line: str, kind: str, label: str, title: str, number: int | None) -> None:
    for printed in (line, f"　　{line}  "):
        found = find_heading(printed)
        assert found is not None
        assert (found.kind, found.label, found.title, found.number) == (kind, label, title, number)


@pytest.mark.parametrize(
    ("line", "volume", "label", "title"),
    [
        ("第一卷 风起 第一章 少年", ("第一卷", "风起"), "第一章", "少年"),
        ("第一卷 第一章 少年", ("第一卷", ""), "第一章", "少年"),
        ("Часть 1. Глава 2. Замок", ("Часть 1", ""), "Глава 2", "Замок"),
        ("Volume 2 Winter - Chapter 9: Ice", ("Volume 2", "Winter"), "Chapter 9", "Ice"),
    ],
)
def test_volume_and_chapter_on_one_line(line: str, volume: tuple[str, str], label: str, title: str) -> None:
    found = find_heading(line)
    assert found is not None
    assert found.volume is not None
    assert ((found.volume.label, found.volume.title), found.label, found.title) == (volume, label, title)


@pytest.mark.parametrize(
    "line",
    [
        "Chapter two was the worst.", "Chapter Two was never finished", "Chapter 3, which he had not read,", "Chapters", "Book Mix",
        "In Chapter 3 of the book we see her", "Chapter One Hundred Men died that day, and nobody came.", "Part I played badly.",
        "Part of him knew", "part one of the plan", "Book it now", "Act now or never", "Volume was low", "The first part of the journey",
        "Chapter Two. He stopped reading, then laughed.", "Prologue to the war was simple", "Introduction to Logic", "Interlude was over.",
        "“Chapter One,” she read aloud.", '"Chapter One"', "— Chapter 1", "Chapter 1 ........ 3", "Chapter 1\t12", "Extra cheese", "1986",
        "1. Buy milk", "2) Buy bread", "Chapter", "Chapter: a word", "Part Di", "Book Civil",
        "第一章里说", "第一章里说，他走了。", "第一章，他写道",
        "第一章写得很好。", "第一章的最后，他死了", "第一章节", "第一章。", "“第一章。”",
        "第一章 他走了。然后又回来了。", "第一天", "第一次", "第三节课", "第一部电影", "第一回合他就输了", "第一集团军", "第二部分的内容",
        "第一卷书他读了三遍。", "番外的故事", "尾声传来一阵脚步", "序幕拉开了", "第一章 风起……………… 12", "「第一章」", "一、买牛奶",
        "— Глава первая, — сказал он.", "«Глава первая», — прочёл он.", "Глава 3 комиссии заявил", "Глава семьи вошла.", "Часть людей ушла",
        "Часть первая была скучной", "Том ушёл", "Книга была тяжёлой.", "Эпилог этой истории он знал", "1. Купить молока",
        "Глава первая, в которой ничего не происходит, и это правильно,", "x" * 5000, "第" * 5000,
    ],
)  # fmt: skip
def test_what_only_begins_like_a_heading(line: str) -> None:
    found = find_heading(line)
    assert found is None or found.glued


def test_glued_headings_are_marked() -> None:
    """Whether they are headings, their neighbours decide."""
    assert [(h.label, h.title, h.glued) for h in [find_heading("第一章风起")] if h] == [("第一章", "风起", True)]
    assert find_heading("第一章里说") is None
    assert find_heading("第一章风起的时候他还没有想好要不要离开这座城市") is None


# -- labels and numbers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "number", "kind"),
    [
        ("第二十三章", 23, "chapter"), ("Chapter Twenty-Three", 23, "chapter"), ("XXIII", 23, "chapter"), ("23.", 23, "chapter"),
        ("Глава двадцать третья", 23, "chapter"), ("第 3 回", 3, "chapter"), ("第二卷", None, "volume"),
        ("Part One", None, "volume"),
        ("Prologue", None, "other"), ("番外一", None, "other"), ("The Lock", None, None), ("", None, None), ("第１２章", 12, "chapter"),
    ],
)  # fmt: skip
def test_number_and_kind_of_a_label(label: str, number: int | None, kind: str | None) -> None:
    assert (chapter_number(label), heading_kind(label)) == (number, kind)


@pytest.mark.parametrize(
    ("label", "number", "new"),
    [
        ("Chapter 9", 10, "Chapter 10"), ("Chapter 09", 10, "Chapter 10"), ("Chapter 009", 10, "Chapter 010"), ("第九章", 10, "第十章"),
        ("第十九章", 20, "第二十章"), ("第一百零九章", 110, "第一百一十章"), ("第９章", 10, "第１０章"),
        ("CHAPTER NINE", 10, "CHAPTER TEN"),
        ("Chapter Twenty-One", 22, "Chapter Twenty-Two"), ("Chapter twenty-one", 22, "Chapter twenty-two"),
        ("IX", 10, "X"), ("ix", 10, "x"),
        ("Глава 9", 10, "Глава 10"), ("Глава вторая", 3, "Глава третья"), ("ГЛАВА ДЕВЯТАЯ", 10, "ГЛАВА ДЕСЯТАЯ"),
        ("Первая глава", 2, "Вторая глава"), ("Глава Двадцать первая", 23, "Глава Двадцать третья"), ("Том первый", 2, "Том второй"),
        ("Chapter XIV", 500, "Chapter 500"), ("Chapter One", 250, "Chapter 250"), ("The Lock", 2, "The Lock"),
    ],
)  # fmt: skip
def test_the_next_label_is_written_alike(label: str, number: int, new: str) -> None:
    assert renumbered(label, number) == new


def test_numbers_are_read_as_they_are_written() -> None:
    for value in range(1, 400):
        for example in ("第一章", "Chapter I", "Chapter 1"):
            assert chapter_number(renumbered(example, value)) == value
    for value in range(1, 200):
        assert chapter_number(f"Chapter {english(value)}") == value
        for example in ("Глава первая", "Chapter One", "Chapter First"):
            assert chapter_number(renumbered(example, value)) == value
    known = numeral_at("三", 0)
    assert known is not None
    assert all(chinese_value(written_like("三", known, value)) == value for value in range(1, 10_000, 7))


@pytest.mark.parametrize(("signs", "value"), [("两百", 200), ("一〇五", 105), ("廿三", 23), ("千", 1000), ("十百", None), ("壹拾贰", 12)])
def test_chinese_numbers(signs: str, value: int | None) -> None:
    assert chinese_value(signs) == value


@pytest.mark.parametrize(
    ("heading", "label", "title"),
    [
        ("番外一　旧事", "番外一", "旧事"),
        ("Volume 2: Winter", "Volume 2", "Winter"),
        ("第 3 回 雨", "第 3 回", "雨"),
        ("第一章风起", "", "第一章风起"),
    ],
)
def test_split_heading_keeps_the_print(heading: str, label: str, title: str) -> None:
    assert split_heading(heading) == (label, title)
