"""`fabula ask`: answers with their lines, what the text does not say, conversations, and mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Fabula
from tests.cli.reading import PARTS, fact, read, reader, reading, vaults
from tests.read.models import NAMES, Copyist

__all__ = ["reader", "reading"]


def test_an_answer_with_its_line(fabula: Fabula, reading: str) -> None:
    done = fabula("ask", reading, f"code of {NAMES[5]}")
    assert done.code == 0, done.err
    number = re.findall(rf"{re.escape(fact(5))} \[(\d)\]", done.out)[0]
    assert re.search(rf"^ {number}  part-05\.md:", done.out, re.MULTILINE)
    assert re.search(rf"^ \d  part-05\.md:3  “{re.escape(fact(5))}”$", done.out, re.MULTILINE)


def test_the_latest_reading_is_meant_where_none_is_named(fabula: Fabula, home: Path, reading: str) -> None:
    Path("other.md").write_text("The code of vault Zeta is 9999.\n")
    read(fabula, "other.md", "--task", "List the codes.")
    assert "9999" in fabula("ask", "code of Zeta").out
    assert "9999" not in fabula("ask", reading, "code of Zeta").out


def test_what_the_text_does_not_say(fabula: Fabula, reading: str) -> None:
    done = fabula("ask", reading, "Who painted the wind red?")
    assert done.code == 0
    assert "The text does not say." in done.out
    assert "Looked at: part-" in done.out


def test_several_questions_are_one_conversation(fabula: Fabula, reading: str, reader: Copyist) -> None:
    done = fabula("ask", reading, f"code of {NAMES[1]}", f"code of {NAMES[2]}", "--json")
    assert done.code == 0, done.err
    first, second = done.json["answers"]
    assert (first["found"], second["found"]) == (True, True)
    assert done.json["reading"] == reading
    assert {c["path"] for c in second["claims"]} == {"part-02.md"}
    assert fact(2) in {c["quote"] for c in second["claims"]}
    assert f"code of {NAMES[1]}" in next(r for r in reader.requests if r.purpose == "follow").messages[-1].content
    talk = done.json["run"]
    assert fabula("ask", f"code of {NAMES[3]}", "--json").json["run"] == talk, "the conversation goes on"
    assert fabula("ask", talk, f"code of {NAMES[3]}", "--json").json["run"] == talk
    assert fabula("ask", "--new", f"code of {NAMES[3]}", "--json").json["run"] != talk
    listed = {one["run"]: one for one in fabula("runs", "list", "--json").json["runs"]}
    assert listed[talk]["questions"] == 4
    assert listed[reading]["questions"] == 0
    assert "4 questions" in fabula("runs", "list").out
    assert talk in fabula("runs", "show", reading).out
    assert fabula("runs", "replay", talk).code == 0
    assert f"code of {NAMES[3]}" in fabula("runs", "trace", talk).out
    refused = fabula("runs", "resume", talk)
    assert refused.code == 2
    assert f"fabula ask {talk}" in refused.err


def test_a_question_from_stdin(fabula: Fabula, reading: str) -> None:
    assert fact(4) in fabula("ask", reading, "-", stdin=f"code of {NAMES[4]}\n").out


def test_a_reading_that_is_not_finished_can_be_asked(fabula: Fabula, home: Path, reader: Copyist) -> None:
    vaults(home)
    stopped = fabula("read", "vaults", "--task", "List.", "--chunk-tokens", "300", "--max-calls", "3", "--concurrency", "1", "--json")
    assert stopped.code == 3
    done = fabula("ask", stopped.json["run"], f"code of {NAMES[0]}")
    assert done.code == 0, done.err
    assert fact(0) in done.out
    assert f"3 of {PARTS} chunks are read" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ("There is no question.", "fabula ask")),
        ([""], ("A question is empty.", "fabula ask")),
        (["0123456789ab", "Who?"], ("0123456789ab", "runs list")),
        (["-", "-"], ("cannot be read twice", "once")),
    ],
)
def test_mistakes(fabula: Fabula, reading: str, arguments: list[str], words: tuple[str, ...]) -> None:
    done = fabula("ask", *arguments)
    assert done.code == 2, done.err
    for word in words:
        assert word in done.err
    assert len(fabula("runs", "list", "--json").json["runs"]) == 1


def test_nothing_was_read_yet(fabula: Fabula, story: str) -> None:
    done = fabula("ask", "Who has the key?")
    assert done.code == 2
    assert "Nothing was read yet" in done.err
    done = fabula("ask", story, "Who has the key?")
    assert done.code == 2
    assert "is no reading" in done.err
    assert json.loads(fabula("ask", story, "Who?", "--json").out)["error"]["code"] == "not_possible"


def test_a_conversation_shows_and_exports_its_questions_and_answers(fabula: Fabula, reading: str) -> None:
    asked = fabula("ask", reading, f"code of {NAMES[1]}", "Who painted the wind red?", "--json").json
    talk = asked["run"]
    shown = fabula("runs", "show", talk)
    assert shown.code == 0, shown.err
    for words in (f"? code of {NAMES[1]}", "? Who painted the wind red?", "part-01.md:3", fact(1), "The text does not say.", reading):
        assert words in shown.out, words
    assert "Coverage" not in shown.out
    as_json = fabula("runs", "show", talk, "--json").json
    assert (as_json["reading"], as_json["answers"], as_json["waiting"]) == (reading, asked["answers"], "")
    assert fabula("runs", "export", talk, "--out", "q.md", "--out", "q.json").code == 0
    report = Path("q.md").read_text("utf-8")
    for words in (
        f"## code of {NAMES[1]}",
        "`part-01.md:3`",
        fact(1),
        "## Who painted the wind red?",
        "*The text does not say.*",
    ):
        assert words in report, words
    assert "Individual results" not in report
    assert json.loads(Path("q.json").read_text("utf-8"))["answers"] == asked["answers"]
    assert fabula("runs", "show", talk, "--text").out == report


def test_a_question_that_a_limit_left_waiting(fabula: Fabula, reading: str) -> None:
    question = f"code of {NAMES[1]}"
    stopped = fabula("ask", reading, question, "--max-tokens", "1", "--json")
    assert stopped.code == 3
    talk = stopped.json["run"]
    assert f'fabula ask {talk} "{question}"' in stopped.err
    shown = fabula("runs", "show", talk).out
    assert f"? {question}" in shown
    assert "Not answered yet" in shown
    again = fabula("ask", talk, question, "--json")
    assert (again.code, again.json["run"], len(again.json["answers"])) == (0, talk, 1)
    assert fabula("runs", "show", talk, "--json").json["waiting"] == ""


@pytest.mark.parametrize("first", ["nope", "3aca5e", "0123456789"])
def test_a_mistyped_run_is_no_question(fabula: Fabula, reading: str, reader: Copyist, first: str) -> None:
    done = fabula("ask", first, f"code of {NAMES[1]}")
    assert done.code == 2
    assert repr(first) in done.err
    assert not reader.requests


def test_a_first_word_that_may_be_a_question_is_told(fabula: Fabula, reading: str) -> None:
    assert "taken as a question" in fabula("ask", "summarize/everything/that-is-there", f"code of {NAMES[1]}").err
    assert "taken as a question" not in fabula("ask", "谁有钥匙", f"code of {NAMES[1]}").err


def test_a_missing_library_is_begun_by_reading(fabula: Fabula, home: Path) -> None:
    done = fabula("ask", "Who?", "--library", "none.db")
    assert done.code == 2
    assert "Begin with `fabula read`" in done.err
