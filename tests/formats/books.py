"""Books for the tests: three languages, and texts made to break a format."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from fabula.formats import Book, Chapter, Scene

ENGLISH = Book(
    "The Fourth Lock & Other <Keys>",
    "en",
    ("Mira Lind", "A. N. Other"),
    (
        Chapter(
            "ch-harbour",
            "The Harbour",
            "Chapter 1",
            (
                Scene("s1", 'Mira counted the boats. "Four," she said. "There were *five* yesterday."\n\nNobody answered.'),
                Scene(
                    "s2",
                    "    Indented, as in a letter.\n- Who is it?\n- Me.\n\n# 7 was on the door.\n\n1986. It was a bad year.",
                ),
            ),
        ),
        Chapter("ch-empty", "", "Interlude"),
        Chapter("ch-last", "", "", (Scene("s3", "It _was_ the **last** lock.\n\n\n\nThe end."), Scene("s4", ""))),
    ),
    note="Written with Fabula; 82% of the text by qwen2.5-coder-1.5b-instruct.\n\nThe rest by Mira Lind.",
    identifier="urn:uuid:5f3c1b9e-0000-4000-8000-0123456789ab",
)
CHINESE = Book(
    "第四把锁",
    "zh",
    ("林米拉",),
    (
        Chapter(
            "c1",
            "港口",
            "第一章",
            (Scene("c1s1", "米拉数了数船。\n“四条，”她说。\n　　没有人回答。"), Scene("c1s2", "* * *\n\n她*不*走。——")),
        ),
        Chapter("c2", "锁", "第二章", (Scene("c2s1", "最后一把锁。😀𠀀"),)),
    ),
)
RUSSIAN = Book(
    "Четвёртый замок",
    "ru",
    ("Мира Линд",),
    (Chapter("c1", "Гавань", "Глава 1", (Scene("c1s1", "— Четыре, — сказала Мира.\n\n- Пять!\n\n— Ёж?"), Scene("c1s2", "«Замок»\n"))),),
)
BOOKS = {"en": ENGLISH, "zh": CHINESE, "ru": RUSSIAN}

_PIECES = [
    "\n", "\n", "\n\n", "\n\n\n", " ", "    ", "\t", "\\", "\\\n", "* * *", "***", "---", "- - -", "===", "# ",
    "## Chapter 9: No", "###", "- ", "+ ", "* ", "> ", "1. ", "12) ", "1\\. ", "```", "~~~", "<!-- scene {} -->",
    '<!-- chapter {"id": "x"} -->', "<b>", "&amp;", "&#32;", "&#9;x", "[x]: y", "|", "*so*", "_so_", "**so**", "*a**b*",
    "_a__b_", "* a*", "\r", "\r\n", "\u2028", "\x85", "\xa0", "\u3000", "\ufeff", "]]>", "Mira", "她走了。", "“四”", "«Ёж» — ", "😀",
    "e\u0301", "Language: en", "Author: x", "第一章 锁", "Chapter 3",
]  # fmt: skip

texts = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
    st.text(st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S", "Z"), include_characters="\n\t "), max_size=40),
)
"""Texts of scenes: what the formats have a meaning for, in any order, and any printable characters."""

lines = texts.map(lambda text: " ".join(re.sub(r"[\r\n\u2028\u0085]", " ", text).split()))
"""Titles: one line, as the formats keep it."""


@st.composite
def books(draw: st.DrawFn) -> Book:
    """Books of up to three chapters of up to three scenes, ids of any kind."""
    chapters = []
    for number in range(draw(st.integers(0, 3))):
        scenes = [Scene(f"s/{number}-{place}--é", text) for place, text in enumerate(draw(st.lists(texts, max_size=3)))]
        chapters.append(
            Chapter(f"c>{number}", draw(lines), draw(st.sampled_from(["", "Chapter 1", "第一章", "Глава 2", "---"])), tuple(scenes))
        )
    return Book(
        draw(lines) or "x",
        draw(st.sampled_from(["en", "zh", "ru", "he"])),
        tuple(draw(st.lists(lines.filter(bool), max_size=2))),
        tuple(chapters),
    )
