"""The preview of a manuscript: what was found, and what looks wrong, before anything is kept."""

from __future__ import annotations

import io

import pytest

from fabula.cli._chapters import preview, show_preview
from fabula.formats import Book, Chapter, Scene

TEXT = {
    "en": "It rained on the quay, and nobody said why. ",
    "zh": "码头上下着雨，没有人说为什么。",
    "ru": "На набережной шёл дождь, и никто не сказал почему. ",
}


def book(*chapters: tuple[str, str, int], language: str = "en") -> Book:
    """Chapters from (label, title, sentences); no sentences = no scene."""
    found = (
        Chapter(f"c{n}", title, label, (Scene(f"s{n}", TEXT[language] * size),) if size else ())
        for n, (label, title, size) in enumerate(chapters)
    )
    return Book("The Quay", "und", (), tuple(found))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_a_tidy_book() -> None:
    found = preview(
        book(("Part One", "Winter", 0), ("Prologue", "", 9), ("Chapter 1", "The Harbour", 20), ("Chapter 2", "", 20),
             ("Part Two", "Summer", 0), ("Chapter 1", "Ice", 20), ("Side Story 1", "", 9)),
        "en",
    )  # fmt: skip
    assert found.warnings == ()
    assert found.whole() == "The Quay: 5 chapters in 2 volumes, 702 words."
    assert [(c.number, c.volume, c.heading, c.length) for c in found.chapters if c.number] == [
        (1, "Part One: Winter", "Prologue", 81),
        (2, "Part One: Winter", "Chapter 1: The Harbour", 180),
        (3, "Part One: Winter", "Chapter 2", 180),
        (4, "Part Two: Summer", "Chapter 1: Ice", 180),
        (5, "Part Two: Summer", "Side Story 1", 81),
    ]
    lines = found.lines()
    assert lines[0].strip() == "Part One: Winter"
    assert lines[1].split() == ["1", "Prologue", "81", *found.chapters[1].begins.split()]
    assert len({line.index("It rained") for line in lines if "It rained" in line}) == 1
    assert [c["heading"] for c in found.as_dict()["chapters"]] == [c.heading for c in found.chapters if c.number]


@pytest.mark.parametrize(
    ("chapters", "warning"),
    [
        ([("Chapter 1", "", 9), ("Chapter 3", "", 9)], "“Chapter 3” follows number 1: 2 is missing."),
        ([("Chapter 1", "", 9), ("Chapter 5", "", 9)], "“Chapter 5” follows number 1: 2 to 4 are missing."),
        ([("Chapter 1", "", 9), ("Chapter 1", "", 9)], "“Chapter 1”: the number 1 comes twice."),
        ([("Chapter 7", "", 9), ("Chapter 3", "", 9)], "“Chapter 3” follows number 7."),
        ([("Chapter 7", "", 9), ("Chapter 1", "", 9)], "“Chapter 1” follows number 7: the numbers begin again."),
        ([("Chapter 1", "", 9), ("Chapter 2", "", 0)], "“Chapter 2” has no text."),
        ([("Chapter 1", "", 50), ("Chapter 2", "", 900), ("Chapter 3", "", 60)],
         "“Chapter 2” has 8,100 words, the others about 540: is a heading missing in it?"),
        ([("", "", 9), ("Chapter 1", "", 9)], "81 words stand before the first heading; they are kept as a chapter of their own."),
        ([("", "", 900)], "No heading was found; the whole text is one chapter."),
    ],
)  # fmt: skip
def test_what_looks_wrong_is_said(chapters: list[tuple[str, str, int]], warning: str) -> None:
    found = preview(book(*chapters), "en")
    assert found.warnings == (warning,)
    assert sum(c.doubtful for c in found.chapters) == 1
    assert found.lines()[-1] == f"! {warning}"
    assert any(line.startswith("! ") for line in found.lines()[:-2])


def test_many_warnings_are_counted() -> None:
    found = preview(book(*((f"Chapter {n}", "", 9) for n in range(1, 60, 2))), "en")
    assert len(found.warnings) == 9
    assert found.warnings[-1] == "… and 21 more of this kind."


def test_a_long_book_is_shown_by_its_ends_and_what_is_doubtful() -> None:
    found = preview(book(*((f"第{n}章", "雨", 9) for n in range(1, 301) if n != 150), language="zh"), "zh")
    lines = found.lines()
    assert len(lines) < 32
    assert found.whole() == "The Quay: 299 chapters, 34,983 字."
    assert sum("more …" in line for line in lines) == 2
    assert any("第151章" in line and line.startswith("!") for line in lines)
    assert "第300章" in lines[-3]


def test_plain_without_a_terminal_and_a_table_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    found = preview(book(("Глава 1", "Гавань \x1b[31m", 9), ("Глава 3", "", 9), language="ru"), "ru")
    plain, terminal = io.StringIO(), Terminal()
    show_preview(found, plain)
    show_preview(found, terminal)
    assert plain.getvalue().splitlines() == [line.replace("\x1b", "�") for line in found.lines()]
    assert "\x1b[31mн" not in terminal.getvalue()
    assert "Гавань �[31m" in terminal.getvalue()
    assert "\x1b[33m" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    show_preview(found, again := Terminal())
    assert again.getvalue() == plain.getvalue()
