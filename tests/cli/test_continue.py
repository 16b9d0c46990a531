"""`fabula write --continue BOOK`: a long manuscript is shown, read, and gone on from; nothing is asked twice (SPEC W3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.models import SCRIPTED_PROFILE
from tests.cli.author import READS, Author
from tests.cli.conftest import Fabula, prompts
from tests.read.models import NAMES

CHAPTERS = 12


@pytest.fixture
def author(monkeypatch: pytest.MonkeyPatch) -> Author:
    """The model, which reads in small chunks."""
    model = Author(profile=replace(SCRIPTED_PROFILE, window=8_000, max_answer=2_000))
    monkeypatch.setattr("fabula.models.open_model", lambda *_, **__: model)
    monkeypatch.setattr("fabula.read._task.ARTICLE_TOKENS", 1_500)
    return model


def chapters(count: int = CHAPTERS) -> list[tuple[str, str]]:
    """(heading, text) of each chapter, with a fact in each; about 500 words."""
    wind = "The wind went over the hills and nobody spoke of it. " * 22
    return [(f"Chapter {n + 1}", f"{wind}\n\nThe code of vault {NAMES[n]} is {4000 + 37 * n}.\n\n{wind}") for n in range(count)]


def as_markdown(path: Path) -> None:
    path.write_text("# The Long Lamp\n\n" + "\n\n".join(f"## {h}\n\n{t}" for h, t in chapters()), "utf-8")


def as_text(path: Path) -> None:
    path.write_text("\n\n\n".join(f"{h}\n\n{t}" for h, t in chapters()), "utf-8")


def as_book(path: Path) -> None:
    from fabula.formats import Book, Chapter, Scene, write_book

    book = Book("The Long Lamp", "en", chapters=tuple(Chapter(h, label=h, scenes=(Scene(h, t),)) for h, t in chapters()))
    write_book(book, path)


@pytest.mark.parametrize(
    ("name", "make"), [("book.md", as_markdown), ("book.txt", as_text), ("book.epub", as_book), ("book.docx", as_book)]
)
def test_a_novel_goes_on_from_a_book(fabula: Fabula, home: Path, author: Author, name: str, make: Callable[[Path], None]) -> None:
    make(home / name)
    done = fabula("write", "--continue", name, "--words", "150", "--auto", "--out", "new.md")
    assert done.code == 0, done.err
    for words in (f"{CHAPTERS} chapters", f"Reading {name}", "a novel that goes on from it", "memories and 1 person", "words anew after"):
        assert words in done.err, words
    new, reading = fabula("runs", "list", "--json").json["runs"]
    assert (new["kind"], reading["kind"], reading["state"]) == ("write", "read", "finished")
    shown = fabula("runs", "show", new["run"], "--json").json
    assert shown["reading"] == reading["run"]
    assert [c["label"] for c in shown["chapters"]][:CHAPTERS] == [h for h, _ in chapters()]
    assert shown["cast"][0]["name"] == "Mira"
    assert {m["text"] for m in shown["memories"]} >= {f"The code of vault {NAMES[n]} is {4000 + 37 * n}." for n in range(CHAPTERS)}
    told = prompts(author.of("passage", "author"))
    for words in ("Short sentences, dry humour.", "Mira is at home.", "A town with many vaults.", "Mira opens vault number"):
        assert words in told, words
    whole = Path("new.md").read_text("utf-8")
    assert all(fact in whole for fact in (f"The code of vault {NAMES[0]} is 4000.", f"The code of vault {NAMES[CHAPTERS - 1]}"))
    out = fabula("runs", "show", new["run"]).out
    assert f"Manuscript ({CHAPTERS} chapters)" in out
    assert f"reading {reading['run']}" in out


def test_the_same_again_asks_no_chunk_twice(fabula: Fabula, home: Path, author: Author) -> None:
    as_markdown(home / "book.md")
    stopped = fabula("write", "--continue", "book.md", "--words", "150", "--auto", "--max-calls", "3")
    assert stopped.code == 3
    reading = re.findall(r"fabula runs resume (\w+)", stopped.err)[-1]
    assert "Go on with the same command" in stopped.err
    resumed = fabula("runs", "resume", reading)
    assert resumed.code == 0, resumed.err
    assert f"fabula write --continue {home / 'book.md'}" in resumed.err
    read = len(author.of("chunk", "merge", "final"))
    assert read == len({r.fingerprint("") for r in author.of("chunk", "merge", "final")}), "no call twice"
    done = fabula("write", "--continue", "book.md", "--steps", "1", "--json")
    assert done.code == 0, done.err
    assert done.json["reading"] == reading
    assert len(author.of("chunk", "merge", "final")) == read
    author.requests.clear()
    again = fabula("write", "--continue", reading, "--steps", "1", "--json")
    assert again.code == 0, again.err
    assert again.json["reading"] == reading
    assert author.of(*READS) == []


def test_what_a_person_gives_stands(fabula: Fabula, home: Path, author: Author) -> None:
    as_markdown(home / "book.md")
    Path("memory.md").write_text("- Only Odd is awake.\n")
    done = fabula(
        "write", "--continue", "book.md", "--steps", "1", "--title", "Salt", "--style", "long and slow", "--cast",
        "Odd: a cat", "--memory", "memory.md", "--plan", "Odd catches a fish.", "--setting", "On a ship.", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    shown = fabula("runs", "show", done.json["run"], "--json").json
    assert shown["title"] == "Salt"
    assert [c["name"] for c in shown["cast"]] == ["Odd", "Mira"]
    told = prompts(author.of("passage"))
    for words in ("long and slow", "Only Odd is awake.", "Odd catches a fish.", "On a ship."):
        assert words in told, words
    assert "Short sentences, dry humour." not in told
    author.requests.clear()
    assert fabula("write", "They go to sea.", "--continue", "book.md", "--steps", "1").code == 0
    assert "They go to sea." in prompts(author.of("passage")), "a premise says how it goes on"


def test_a_person_who_sees_other_chapters_stops_it(fabula: Fabula, home: Path, author: Author, monkeypatch: pytest.MonkeyPatch) -> None:
    as_markdown(home / "book.md")
    asked: list[str] = []

    def answer(question: str, *, default: bool) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("fabula.cli._input.ask_yes", answer)
    done = fabula("write", "--continue", "book.md", "--interactive")
    assert done.code == 0
    assert asked == ["Are these the chapters?"]
    assert "Nothing was kept. Mark each chapter" in done.err
    assert not (home / "novels.db").exists()


def test_limits_count_both(fabula: Fabula, home: Path, author: Author) -> None:
    as_markdown(home / "book.md")
    done = fabula("write", "--continue", "book.md", "--words", "2000", "--auto", "--max-calls", "24", "--json")
    assert done.code == 3
    assert len(author.requests) == 24
    author.requests.clear()
    again = fabula("write", "--continue", "book.md", "--words", "2000", "--auto", "--max-calls", "24")
    assert again.code == 3
    assert len(author.requests) == 24, "what an earlier command has read does not count"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--continue", "missing.epub"], "There is no file missing.epub"),
        (["--continue", "book.md", "--opening", "book.md"], "an opening are both given"),
        (["--continue", "book.md", "--out", "x.pdf"], "x.pdf"),
        (["--continue", "book.md", "--step-length", "9-1"], "no range"),
        (["--continue", "book.md", "--language", "xx"], "'xx'"),
    ],
)
def test_mistakes(fabula: Fabula, home: Path, author: Author, arguments: list[str], words: str) -> None:
    as_markdown(home / "book.md")
    done = fabula("write", *arguments, "--steps", "1")
    assert done.code == 2, done.err
    assert words in done.err
    assert author.requests == []
    assert not (home / "novels.db").exists()


def test_a_reading_of_something_else_is_no_beginning(fabula: Fabula, home: Path, author: Author) -> None:
    as_markdown(home / "book.md")
    run = fabula("read", "book.md", "--task", "Who is in it", "--json").json["run"]
    done = fabula("write", "--continue", run, "--steps", "1")
    assert done.code == 2
    assert "was not made for a novel" in done.err


@pytest.mark.parametrize("name", ["p.pdf", "p.html", "p.rtf", "p.py", "p"])
def test_what_is_no_manuscript_is_refused(fabula: Fabula, home: Path, author: Author, name: str) -> None:
    (home / name).write_text("%PDF-1.4 <p>{\\rtf1 A story.</p>\n" * 40)
    done = fabula("write", "--continue", name, "--words", "150", "--auto")
    assert done.code == 2
    assert name in done.err
    for kind in ("EPUB", "DOCX", "Markdown", "TXT"):
        assert kind in done.err
    assert not author.requests


@pytest.mark.parametrize("long", [True, False])
def test_an_unfinished_novel_of_the_same_book_is_named(fabula: Fabula, home: Path, author: Author, long: bool) -> None:
    if long:
        as_markdown(home / "book.md")
    else:
        (home / "book.md").write_text("# One\n\nMira looked at the sea. The lamp was lit.\n")
    command = ("write", "--continue", "book.md", "--words", "2000", "--auto", "--steps", "1")
    first = fabula(*command)
    assert first.code == 0, first.err
    assert "not finished" not in first.err
    begun = fabula("runs", "list", "--json").json["runs"][0]["run"]
    again = fabula(*command)
    assert again.code == 0, again.err
    assert f"`fabula runs resume {begun}`" in again.err
    assert "begins another one beside it" in again.err
