"""The synchronous face: one line writes a book; it works in a notebook's running loop; nothing heavy is loaded before it is used."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import InputError, NotFound
from fabula.runs import StepDone, Wrote
from fabula.sync import portal
from tests.cli.author import Author
from tests.cli.reading import PARTS, reader, vaults
from tests.cli.test_continue import as_markdown, author
from tests.read.models import NAMES, Copyist

__all__ = ["author", "reader"]

ROOT = Path(__file__).parents[2]


def test_one_line_writes_a_book(home: Path) -> None:
    heard: list[object] = []
    with fabula.write(
        "A lighthouse keeper finds a letter.", words=160, genre="mystery", cast={"Mira": "keeper"}, listen=heard.append, out="letter.md"
    ) as book:
        assert book.finished
        assert 100 < book.length < 260
        assert book.text() in Path("letter.md").read_text("utf-8").replace("\\", "") or Path("letter.md").stat().st_size > 500
        assert book.premise.genre == "mystery"
        assert [c["name"] for c in book.run.piece("cast")] == ["Mira"]
    assert {type(event) for event in heard} >= {StepDone, Wrote}


def test_a_book_in_hand(home: Path) -> None:
    with fabula.write("A keeper.", steps=0) as book:
        assert book.write(steps=2)
        book.choose(2)
        book.step()
        book.edit_passage("p1", "Mira sold the lighthouse.")
        with pytest.raises(InputError):
            book.choose(9)
        assert book.passages()[0].text == "Mira sold the lighthouse."
        run = book.id
    with fabula.open_library() as library:
        assert [one["run"] for one in library.runs()] == [run]
        with library.open(run, edit=True) as draft:
            draft.set_note("It rains.")
        with library.open(run[:6]) as again:
            assert again.step().output["kind"] == "rederive"
            assert again.run.piece("note") == "It rains."
        with pytest.raises(NotFound):
            library.open("nowhere")


def test_inside_a_running_loop(home: Path) -> None:
    async def notebook() -> int:
        with fabula.write("A keeper.", steps=1) as book:
            return len(book.steps())

    assert asyncio.run(notebook()) == 1


def test_run_sync() -> None:
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    assert fabula.run_sync(add(2, 3)) == 5
    assert fabula.run_sync(lambda: add(2, 4)) == 6
    with pytest.raises(ZeroDivisionError):
        portal.run(lambda: 1 / 0)


def test_an_interrupt_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    def interrupted(_: object) -> None:
        time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fabula.run_sync(long())
    assert ended.wait(10)


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "ends"), ({"words": 100, "wrods": 1}, "wrods"), ({"words": 100, "language": "xx"}, "xx"), ({"words": 0, "steps": 1}, "length")],
)
def test_mistakes(home: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fabula.write("A keeper.", **options)
    with pytest.raises(InputError, match="nonsense"):
        fabula.open_library(nonsense=1)


def test_the_folder_of_the_writer_is_still_one() -> None:
    import fabula.write as writer

    assert writer.Novel.__name__ == "Novel"
    assert callable(fabula.write)
    with pytest.raises(AttributeError):
        fabula.nothing  # noqa: B018
    assert set(fabula.__all__) <= set(dir(fabula))


def test_the_page_names_what_is_there() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert [name for name in fabula.__all__ if not name.startswith("_") and f"fabula.{name}" not in page] == []
    from fabula.read import Study
    from fabula.write import Novel

    named = set(re.findall(r"^book\.(\w+)", page, re.MULTILINE))
    assert [name for name in named if not hasattr(Novel, name) and name != "close"] == []
    said = set(re.findall(r"^ +reading\.(\w+)", page, re.MULTILINE))
    assert len(said) > 2
    assert [name for name in said if not (hasattr(Study, name) or hasattr(fabula.Reading, name))] == []


def test_one_line_reads(home: Path, reader: Copyist) -> None:
    heard: list[object] = []
    folder = vaults(home)
    with fabula.read(folder, task="List the codes.", chunk_tokens=300, out="r.md", listen=heard.append, exclude=["part-00.md"]) as reading:
        assert reading.finished
        result = reading.result()
        assert len(result["individual_results"]) == PARTS - 1
        assert reading.report() == Path("r.md").read_text("utf-8")
        answer = reading.ask(f"code of {NAMES[3]}")
        assert (answer.found, answer.claims[0]["path"]) == (True, "part-03.md")
        again = reading.ask(f"code of {NAMES[4]}")
        assert again.run == answer.run, "one conversation"
        assert reading.ask(f"code of {NAMES[4]}", new=True).run != answer.run
        assert not reading.ask("Who painted the wind red?").found
        assert reading.entities() == []
        with pytest.raises(InputError):
            reading.ask(" ")
        run = reading.id
    assert StepDone in {type(event) for event in heard}
    with fabula.open_library() as library:
        assert {one["way"] for one in library.runs()} == {"tree"}
        with library.open(run) as once_more:
            assert isinstance(once_more, fabula.Reading)
            assert once_more.plan().known_calls == PARTS - 1
            assert once_more.export("r.json") == Path("r.json")
        with library.read(folder, task="List.", chunk_tokens=300, begin_only=True) as planned:
            assert planned.plan().chunks == PARTS
            planned.read()
            assert planned.finished


@pytest.mark.parametrize(
    ("sources", "options"),
    [
        ((), {}),
        (("nowhere",), {}),
        (("vaults",), {"nonsense": 1}),
        (("vaults",), {"way": "treee"}),
        (("vaults",), {"out": "x.pdf"}),
    ],
)
def test_mistakes_of_reading(home: Path, reader: Copyist, sources: tuple[str, ...], options: dict[str, Any]) -> None:
    vaults(home, 1)
    with pytest.raises(InputError):
        fabula.read(*sources, **options)
    assert reader.requests == []


def test_a_book_goes_on(home: Path, author: Author) -> None:
    as_markdown(home / "book.md")
    with fabula.write(continue_from="book.md", steps=1) as book:
        assert book.title == "The Long Lamp"
        assert book.length_before > 5_000
        assert [c["name"] for c in book.run.piece("cast")] == ["Mira"]
        reading = book.premise.reading
    asked = len(author.of("chunk"))
    assert asked > 3
    with fabula.open_library() as library:
        assert library.open(reading, edit=True).finished
        with library.write("They go to sea.", continue_from="book.md", steps=0) as second:
            assert second.premise.reading == reading
    assert len(author.of("chunk")) == asked
    Path("short.md").write_text("# Salt\n\nThe lamp had been out for three nights.\n")
    with fabula.write(continue_from="short.md", steps=1) as short:
        assert short.passages()[0].text == "The lamp had been out for three nights."
    with pytest.raises(NotFound):
        fabula.write(continue_from="missing.md", steps=1)


def test_the_folder_of_the_reader_is_still_one() -> None:
    import fabula.read as folder

    assert folder.Study.__name__ == "Study"
    assert callable(fabula.read)
