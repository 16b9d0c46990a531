"""`fabula memory`: a person's changes hold from the next request on, are undone by name, and what is erased is gone."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from fabula.cli import _input
from fabula.models import Request
from fabula.store import open_store
from tests.cli.conftest import Fabula, prompts


def records(fabula: Fabula, *arguments: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = fabula("memory", "list", *arguments, "--json").json["records"]
    return found


def test_list_show_history(fabula: Fabula, story: str) -> None:
    found = records(fabula, story)
    assert [r["status"] for r in found] == ["active", "active"]
    assert set(found[0]) >= {"id", "status", "subject", "attribute", "value", "scope", "text"}
    shown = fabula("memory", "show", found[0]["id"])
    assert found[0]["text"] in shown.out
    assert "narrator" in shown.out
    told = fabula("memory", "history", found[0]["id"], "--json").json["history"]
    assert [change["event"] for change in told] == ["add"]
    assert fabula("memory", "show", "nowhere/book/1/summary").code == 2


def test_find_also_in_chinese(fabula: Fabula) -> None:
    run = fabula("write", "灯塔看守人收到一封信。", "--steps", "1", "--json").json["run"]
    fabula("memory", "add", run, "米拉把银哨子藏在井里。")
    fabula("memory", "add", run, "Mira hid the whistle in the well.")
    assert [r["text"] for r in records(fabula, run, "--find", "银哨子")] == ["米拉把银哨子藏在井里。"]
    assert [r["text"] for r in records(fabula, "--find", "whistle")] == ["Mira hid the whistle in the well."]
    assert "No memory has the words" in fabula("memory", "list", run, "--find", "elephant").err


def test_an_edit_is_in_the_next_request_and_no_model_changes_it_back(fabula: Fabula, story: str, asked: list[Request]) -> None:
    first = records(fabula, story)[0]
    done = fabula("memory", "edit", first["id"], "Mira read the mark on the silver whistle, and only Mira.")
    assert done.code == 0, done.err
    plan = "Mira reads the mark on the silver whistle again."
    assert fabula("memory", "edit", story, plan, "--plan").code == 0
    assert fabula("runs", "resume", story, "--steps", "1").code == 0
    passage = prompts([request for request in asked if request.purpose == "passage"])
    assert "and only Mira." in passage
    assert plan in passage
    assert first["text"] not in passage
    again = next(r for r in records(fabula, story) if r["id"] == first["id"])
    assert (again["text"], again["by"]) == ("Mira read the mark on the silver whistle, and only Mira.", "person")


def test_state_edits_are_in_the_next_request(fabula: Fabula, story: str, asked: list[Request]) -> None:
    assert fabula("memory", "edit", story, "-", "--short-term", stdin="Odile is dead.\n- The lamp is broken.\n").code == 0
    assert fabula("memory", "edit", story, "It rains in every scene.", "--note").code == 0
    assert fabula("memory", "edit", story, "An island without a name.", "--setting").code == 0
    assert fabula("runs", "resume", story, "--steps", "1").code == 0
    passage = prompts([request for request in asked if request.purpose == "passage"])
    for words in ("- Odile is dead.", "- The lamp is broken.", "It rains in every scene.", "An island without a name."):
        assert words in passage, words


def test_a_passage_edit_is_remembered_anew(fabula: Fabula, story: str, asked: list[Request]) -> None:
    assert fabula("memory", "edit", story, "Mira sold the lighthouse.", "--passage", "p2").code == 0
    assert [r["status"] for r in records(fabula, story, "--all")] == ["active", "retracted"]
    assert fabula("runs", "resume", story, "--steps", "2").code == 0
    assert asked[0].purpose == "rederive"
    assert "Mira sold the lighthouse." in prompts([request for request in asked if request.purpose == "passage"])


@pytest.mark.parametrize("length", [5, 12])
def test_a_run_in_place_of_a_memory_is_told_what_to_say(fabula: Fabula, story: str, length: int) -> None:
    done = fabula("memory", "edit", story[:length], "New words.")
    assert done.code == 2
    for words in (f"{story} is a run", "--short-term", "--note", "--plan", "--setting", "--passage"):
        assert words in done.err
    assert "no memory" in fabula("memory", "edit", "zzzzzz", "New words.").err


def test_an_empty_passage_is_refused_with_a_way_that_is_there(fabula: Fabula, story: str) -> None:
    import fabula as program

    done = fabula("memory", "edit", story, "", "--passage", "p1")
    assert done.code == 2
    assert 'remove_passage("p1")' in done.err
    with program.open_library() as library, library.open(story, edit=True) as book:
        book.remove_passage("p1")
    assert [p["id"] for c in fabula("runs", "show", story, "--json").json["chapters"] for s in c["scenes"] for p in s["passages"]] == ["p2"]


def test_retract_and_restore(fabula: Fabula, story: str) -> None:
    ident = records(fabula, story)[0]["id"]
    assert fabula("memory", "retract", ident).code == 2, "a reason is needed"
    assert fabula("memory", "retract", ident, "--why", "It never happened.").code == 0
    assert ident not in [r["id"] for r in records(fabula, story)]
    assert ident in [r["id"] for r in records(fabula, story, "--all")]
    assert fabula("memory", "restore", ident).code == 0
    assert ident in [r["id"] for r in records(fabula, story)]
    told = fabula("memory", "history", ident).out
    assert "It never happened." in told
    assert "a person" in told


def test_an_edit_in_a_fork_stays_there(fabula: Fabula, story: str) -> None:
    child = fabula("runs", "fork", story, "--json").json["run"]
    ident = records(fabula, story)[0]["id"]
    assert fabula("memory", "edit", ident, "Only in the fork.", "--run", child).code == 0
    assert "Only in the fork." in [r["text"] for r in records(fabula, child)]
    assert "Only in the fork." not in [r["text"] for r in records(fabula, story)]


def test_erase_asks_then_leaves_no_byte(fabula: Fabula, story: str, home: Path) -> None:
    secret = "The keeper's real name is Aurelio Quint."
    fabula("memory", "add", story, secret)
    ident = next(r["id"] for r in records(fabula, story) if r["text"] == secret)
    assert fabula("runs", "resume", story, "--steps", "1").code == 0
    refused = fabula("memory", "erase", ident)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "can no longer be replayed" in refused.out
    assert b"Aurelio Quint" in b"".join(path.read_bytes() for path in home.glob("novels.db*") if path.is_file())
    done = fabula("memory", "erase", ident, "--yes")
    assert done.code == 0, done.err
    assert "Erased" in done.out
    assert secret not in [r["text"] for r in records(fabula, story, "--all")]
    store = open_store(home / "novels.db")
    store.close()
    assert b"Aurelio Quint" not in b"".join(path.read_bytes() for path in home.glob("novels.db*") if path.is_file())


def test_library_records_of_a_series(fabula: Fabula) -> None:
    fabula("write", "A keeper.", "--series", "Lamps", "--cast", "Mira: keeper, blind in one eye", "--steps", "1")
    found = records(fabula)
    assert [r["text"] for r in found] == ["Mira: keeper, blind in one eye"]
    assert fabula("memory", "edit", found[0]["id"], "Mira: keeper, sees well").code == 0
    assert [r["text"] for r in records(fabula)] == ["Mira: keeper, sees well"]


def test_the_editor(fabula: Fabula, story: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = home / "editor.py"
    editor.write_text("import sys\npath = sys.argv[1]\ntext = open(path).read()\nopen(path, 'w').write(text.rstrip() + ' Added.\\n')\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    assert _input.edit_text("Before.") == "Before. Added."
    editor.write_text("raise SystemExit(3)\n")
    with pytest.raises(Exception, match="status 3"):
        _input.edit_text("Before.")
    monkeypatch.setenv("EDITOR", "no-such-editor-anywhere")
    with pytest.raises(Exception, match="cannot be started"):
        _input.edit_text("Before.")
    assert not editor.stat().st_mode & stat.S_IXOTH or os.name == "nt"


@pytest.mark.parametrize(
    "arguments",
    [
        ["edit", "{run}", "x", "--note", "--plan"],
        ["edit", "{run}", "", "--note"],
        ["edit", "{run}", "--note"],
        ["edit", "{run}", "x", "--passage", "p9"],
    ],
)
def test_mistakes(fabula: Fabula, story: str, arguments: list[str]) -> None:
    done = fabula("memory", *(one.format(run=story) for one in arguments))
    assert done.code == 2
    assert "→" in done.err
