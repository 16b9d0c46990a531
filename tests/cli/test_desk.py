"""Writing and playing with a person, driven through standard input: what is typed is in the next request."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabula.models import Request
from tests.cli.conftest import Done, Fabula, prompts


@pytest.fixture
def editor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that adds a sentence."""
    script = home / "editor.py"
    script.write_text(
        "import sys\npath = sys.argv[1]\ntext = open(path).read()\nopen(path, 'w').write(text.rstrip() + ' The third key is lost.\\n')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")


def sit(fabula: Fabula, *lines: str, premise: str = "A lighthouse keeper finds a letter.") -> Done:
    done = fabula("write", premise, "--interactive", "--seed", "3", stdin="".join(f"{line}\n" for line in lines))
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    return done


def the_run(fabula: Fabula) -> str:
    return str(fabula("runs", "list", "--json").json["runs"][0]["run"])


def passage_prompts(asked: list[Request]) -> list[str]:
    return [prompts([request]) for request in asked if request.purpose == "passage"]


def test_enter_pick_own_plan_and_quit(fabula: Fabula, asked: list[Request]) -> None:
    done = sit(fabula, "", "2", "w Mira burns the letter.", "q")
    plans = fabula("runs", "show", the_run(fabula), "--json").json
    assert plans["steps"] == 4
    assert "Mira burns the letter." in passage_prompts(asked)[-1]
    assert done.out.count("fabula> ") == 4
    assert "author" not in [request.purpose for request in asked], "a person decided"
    assert "fabula runs resume" in done.err


def test_what_cannot_be_picked_says_what_can_be_done(fabula: Fabula) -> None:
    done = sit(fabula, "1", "e 1", "q")
    assert done.err.count("This passage has its plan already.") == 2
    assert "Enter writes it" in done.err
    run = fabula("write", "A keeper.", "--words", "150", "--json").json["run"]
    done = fabula("runs", "resume", run, "--interactive", stdin="\n1\ne 1\nq\n")
    assert done.code == 0
    assert "There are 0 plans" not in done.err
    assert "There is no plan" not in done.err
    assert done.err.count("The book is finished.") == 4, "at the beginning and for each act"


def test_the_end_of_input_is_the_end_of_the_sitting(fabula: Fabula) -> None:
    sit(fabula, "", "1")
    assert fabula("runs", "show", the_run(fabula), "--json").json["passages"] == 2


def test_every_edit_is_in_the_next_request(fabula: Fabula, asked: list[Request], editor: None) -> None:
    sit(fabula, "", "me", "n It never stops raining.", "t", "c", "e 1", "q")
    last = passage_prompts(asked)[-1]
    assert last.count("The third key is lost.") >= 4, "short-term memory, setting, cast and plan"
    assert "It never stops raining." in last


@pytest.mark.parametrize(("answer", "rederived"), [("y", 1), ("n", 0)])
def test_a_passage_is_edited_and_its_memory_asked_for(
    fabula: Fabula, asked: list[Request], editor: None, answer: str, rederived: int
) -> None:
    done = sit(fabula, "", "p", answer, "1", "q")
    assert "anew from its new text now?" in done.out
    assert [request.purpose for request in asked].count("rederive") == rederived
    assert "The third key is lost." in passage_prompts(asked)[-1]
    shown = fabula("runs", "show", the_run(fabula), "--json").json
    passages = shown["chapters"][0]["scenes"][0]["passages"]
    assert passages[0]["text"].endswith("The third key is lost.")
    assert [p["by"] for p in passages] == ["person", "model"]


def test_an_earlier_passage_and_a_memory(fabula: Fabula, asked: list[Request], editor: None) -> None:
    sit(fabula, "", "1", "p p1", "y", "l", "le 2", "lr 1", "never so", "w Somebody says that the third key is lost.", "q")
    told = passage_prompts(asked)[-1]
    assert told.count("The third key is lost.") >= 1
    everything = fabula("memory", "list", the_run(fabula), "--all", "--json").json["records"]
    assert [r["status"] for r in everything].count("retracted") == 2


def test_regenerate_swipe_and_back(fabula: Fabula) -> None:
    done = sit(fabula, "", "r", "r", "s", "s 1", "q")
    run = the_run(fabula)
    shown = fabula("runs", "show", run, "--json").json
    texts = [line for line in done.out.splitlines() if line.startswith(" ")]
    assert shown["passages"] == 1
    assert len({line for line in texts if line.lstrip()[:1] in "123"}) >= 3
    first = done.out.split("fabula> ")[1].strip().split("\n\n")[0]
    assert shown["text"].startswith(first), "swiped back to the first text"


def test_rewrite_a_selection(fabula: Fabula, asked: list[Request]) -> None:
    sit(fabula, "", "x", "shorten", "", "make it one sentence", "n", "q")
    request = next(request for request in asked if request.purpose == "rewrite")
    assert "make it one sentence" in prompts([request])


def test_undo_back_fork_export(fabula: Fabula, home: Path) -> None:
    done = sit(fabula, "", "1", "u", "b", "f", "1", "o fork.md", "q")
    assert "Step 2 (passage) is undone." in done.out
    assert Path("fork.md").read_text("utf-8")
    runs = fabula("runs", "list", "--json").json["runs"]
    assert len(runs) == 2
    child = next(run for run in runs if run["parent"])
    assert child["steps"] == 3
    assert f"fabula runs resume {child['run']}" in done.err


def test_back_to_a_step(fabula: Fabula) -> None:
    sit(fabula, "", "1", "1", "b 2", "q")
    assert fabula("runs", "show", the_run(fabula), "--json").json["passages"] == 1


def test_the_author_for_some_passages(fabula: Fabula, asked: list[Request]) -> None:
    sit(fabula, "", "a 2", "q")
    assert [request.purpose for request in asked].count("author") == 2


def test_looking_changes_nothing(fabula: Fabula, asked: list[Request]) -> None:
    done = sit(fabula, "", "h", "m", "l", "l letter", "i", "s", "b", "q")
    assert "Memories that were recalled" in done.out
    assert "author's note" in done.out
    assert fabula("runs", "show", the_run(fabula), "--json").json["steps"] == 2


def test_mistakes_are_said_and_the_sitting_goes_on(fabula: Fabula) -> None:
    done = sit(fabula, "z", "9", "r", "", "b x", "p p77", "le 4", "u", "u", "u", "", "q")
    for words in ("nothing that can be done here", "is no number", "no passage p77", "no memory 4"):
        assert words in done.err, words


def test_without_an_editor_lines_are_typed(fabula: Fabula, asked: list[Request]) -> None:
    sit(fabula, "w", "Mira digs.", "She finds", "nothing.", ".", "q")
    assert "Mira digs.\nShe finds\nnothing." in passage_prompts(asked)[-1]


@pytest.mark.parametrize(
    ("premise", "act"),
    [
        ("A keeper finds a letter.", "I burn the letter."),
        ("灯塔看守人收到一封信。", "我烧掉了那封信。"),
        ("Смотритель маяка находит письмо.", "Я сжигаю письмо."),
    ],
)
def test_play(fabula: Fabula, asked: list[Request], premise: str, act: str) -> None:
    done = fabula("play", premise, stdin=f"1\n{act}\nundo\nmemory\nhelp\n{act}\nquit\n")
    assert done.code == 0, done.err
    assert act in passage_prompts(asked)[-1]
    assert done.out.count("What do you do? ") == 7
    assert done.out.split("What do you do? ")[0].count("A number, or your own words") == 1
    run = fabula("runs", "list", "--json").json["runs"][0]
    assert (run["kind"], run["steps"]) == ("play", 4)
    second = {"en": "second", "zh": "第二人称", "ru": "втор"}[run["language"]]
    assert second in passage_prompts(asked)[0].lower() or "you" in passage_prompts(asked)[0].lower()
    more = fabula("runs", "resume", run["run"], "--interactive", stdin="2\nquit\n")
    assert more.code == 0
    assert "What do you do? " in more.out


def test_play_alone(fabula: Fabula) -> None:
    done = fabula("play", "A keeper.", "--auto", "--steps", "3", "--json")
    assert done.json["passages"] == 2


def test_the_language_of_a_plan_is_the_story_s(fabula: Fabula, asked: list[Request]) -> None:
    sit(fabula, "", "w 林岚把信烧了。", "q", premise="灯塔看守人收到一封没有署名的信。")
    assert "林岚把信烧了。" in passage_prompts(asked)[-1]
