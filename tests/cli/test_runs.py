"""`fabula runs`: looking at runs, forking, comparing, exporting, replaying."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from fabula.store import StepRow, open_store
from tests.cli.conftest import Fabula


def test_list_of_an_empty_library(fabula: Fabula) -> None:
    done = fabula("runs", "list")
    assert (done.code, done.out) == (2, "")  # a library that was named and is not there
    assert "fabula write" in done.err
    assert fabula("runs", "list", "--json").json["error"]["code"] == "not_found"


def test_an_unknown_run_is_named(fabula: Fabula, story: str) -> None:
    assert story
    done = fabula("runs", "show", "abcdef")
    assert done.code == 2
    assert "abcdef" in done.err


def test_list_is_plain_and_whole(fabula: Fabula, story: str) -> None:
    done = fabula("runs", "list")
    assert story in done.out
    assert "\x1b" not in done.out
    assert len(done.out.strip().splitlines()) == 2


def test_show(fabula: Fabula, story: str) -> None:
    shown = fabula("runs", "show", story[:5]).out
    for heading in ("Premise", "Setting", "Cast", "Passages", "Plans", "Short-term memory", "Long-term memory (2)", "Model"):
        assert heading in shown
    assert " 3. " in shown
    whole = fabula("runs", "show", story, "--json").json
    assert len(whole["plans"]) == 3
    assert [p["id"] for c in whole["chapters"] for s in c["scenes"] for p in s["passages"]] == ["p1", "p2"]
    assert whole["text"] == fabula("runs", "show", story, "--text").out.removesuffix("\n")


def test_trace_names_memories_plan_model_seed_and_refusals(fabula: Fabula) -> None:
    run = fabula("write", "A keeper finds a letter.", "--model", "misbehaving:refusal@0.3", "--steps", "6", "--json").json["run"]
    told = fabula("runs", "trace", run, "--json").json
    assert told["memories"]
    assert told["memories"][0]["why"]
    assert told["output"]["plan"]["text"]
    statuses = set()
    for step in range(6):
        whole = fabula("runs", "trace", run, "--step", str(step), "--json").json
        statuses |= {call["status"] for call in whole["calls"]}
        assert all(call["prompt"] for call in whole["calls"])
        assert all(isinstance(call["seed"], int) for call in whole["calls"])
    assert statuses >= {"answered", "refused"}
    plain = fabula("runs", "trace", run)
    for words in ("Plan (", "Memories that were recalled", "score", "tokens", "seed", told["memories"][0]["id"]):
        assert words in plain.out, words
    full = fabula("runs", "trace", run, "--passage", "p1", "--prompt").out
    assert "[user]" in full
    assert "A keeper finds a letter" in full or "You are" in full


def test_trace_of_what_is_not_there(fabula: Fabula, story: str) -> None:
    assert fabula("runs", "trace", story, "--step", "99").code == 2
    assert fabula("runs", "trace", story, "--passage", "p99").code == 2


def test_fork_and_diff(fabula: Fabula, story: str) -> None:
    child = fabula("runs", "fork", story, "--at", "2", "--title", "Other", "--json").json["run"]
    assert fabula("runs", "diff", story, story).out.strip().endswith("are the same.")
    fabula("memory", "edit", child, "Mira burns the letter.", "--plan")
    assert fabula("runs", "resume", child, "--steps", "1").code == 0
    found = fabula("runs", "diff", story, child, "--json").json
    assert found["same_until"] == 2
    assert [one["passage"] for one in found["passages"]] == ["p2"]
    assert {line[0] for line in found["passages"][0]["diff"] if line} >= {"+", "-"}
    plain = fabula("runs", "diff", story, child).out
    assert f"--- {story} p2" in plain
    assert f"+++ {child} p2" in plain
    assert "p1" not in plain


def test_stale_after_an_edit(fabula: Fabula, story: str) -> None:
    assert "Nothing rests" in fabula("runs", "stale", story).out
    before = fabula("runs", "show", story, "--json").json["chapters"][0]["scenes"][0]["passages"]
    assert fabula("memory", "edit", story, before[0]["text"] + " The key was gone.", "--passage", "p1").code == 0
    found = fabula("runs", "stale", story, "--json").json["stale"]
    assert [one["step"] for one in found] == [2]
    assert "text:p1 was edited" in found[0]["why"]
    assert "fork" in fabula("runs", "stale", story).out
    after = fabula("runs", "show", story, "--json").json
    assert [p["text"] for p in after["chapters"][0]["scenes"][0]["passages"]][1] == before[1]["text"], "nothing else was changed"
    assert any("text:p1" in edit["changed"] for edit in after["edits"])


def test_export(fabula: Fabula, story: str, home: Path) -> None:
    done = fabula("runs", "export", story, "--jsonl", "journal.jsonl", "--out", "b.epub", "--out", "b.docx", "--out", "b.md", "--credit")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in Path("journal.jsonl").read_text("utf-8").splitlines()]
    assert {row["row"] for row in rows} >= {"run", "step", "call", "piece", "record", "recall"}
    assert [row["pos"] for row in rows] == sorted(row["pos"] for row in rows)
    assert "scripted" in Path("b.md").read_text("utf-8")
    streamed = fabula("runs", "export", story, "--jsonl", "-")
    assert len(streamed.out.splitlines()) == len(rows)
    assert fabula("runs", "export", story).code == 2
    both = fabula("runs", "export", story, "--jsonl", "-", "--json")
    assert (both.code, len(both.out.splitlines())) == (2, 1)
    assert "--jsonl a file" in both.err
    assert fabula("runs", "export", story, "--out", "no/such/folder/b.md").code == 2


def test_replay(fabula: Fabula, story: str, home: Path) -> None:
    expected = {"run": story, "steps": 3, "identical": True, "differences": [], "erased": [], "missing": []}
    assert fabula("runs", "replay", story, "--json").json == expected


def test_replay_passes_over_what_was_erased_and_names_it(fabula: Fabula, story: str) -> None:
    ident = fabula("memory", "list", story, "--json").json["records"][0]["id"]
    assert fabula("runs", "resume", story, "--steps", "1").code == 0
    assert fabula("memory", "erase", ident, "--yes").code == 0
    done = fabula("runs", "replay", story, "--json")
    assert done.code == 0, done.err
    assert (done.json["steps"], done.json["erased"], done.json["identical"]) == (3, [3], True)
    assert "erased: step 3." in fabula("runs", "replay", story).out


def test_replay_of_a_journal_with_a_hole_that_nobody_made_ends_with_4(fabula: Fabula, story: str, home: Path) -> None:
    with sqlite3.connect(home / "novels.db") as database:
        database.execute("DELETE FROM calls WHERE time = 1")
    database.close()
    done = fabula("runs", "replay", story, "--json")
    assert done.code == 4
    assert [one["step"] for one in done.json["missing"]] == [1]
    assert done.json["steps"] == 2
    assert "step 1: " in fabula("runs", "replay", story).out


def test_replay_that_differs_ends_with_4(fabula: Fabula, story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fabula.write import Story

    step = Story.step

    async def other(self: Story, ctx: object) -> object:
        return {**(await step(self, ctx)), "length": -1}  # type: ignore[arg-type]

    monkeypatch.setattr(Story, "step", other)
    done = fabula("runs", "replay", story)
    assert done.code == 4
    assert "output" in done.out
    assert "fabula doctor" in done.err


def test_a_finished_book_goes_on_to_another_length(fabula: Fabula) -> None:
    run = fabula("write", "A keeper.", "--words", "150", "--json").json["run"]
    before = fabula("runs", "show", run, "--text").out.strip()
    done = fabula("runs", "resume", run, "--words", "260", "--json")
    assert done.code == 0, done.err
    assert done.json["finished"]
    assert done.json["length"] > 200
    assert fabula("runs", "show", run, "--text").out.startswith(before)


def test_resume_of_a_finished_book_asks_nothing(fabula: Fabula, home: Path) -> None:
    run = fabula("write", "A keeper.", "--words", "150", "--json").json["run"]
    with_calls = fabula("runs", "show", run, "--json").json["usage"]["calls"]
    done = fabula("runs", "resume", run, "--json")
    assert done.json["finished"]
    assert done.json["usage"]["calls"] == with_calls
    told = fabula("runs", "resume", run).err
    assert "The book is finished." in told
    assert "--words" in told
    assert "0 steps" not in told
    store = open_store(home / "novels.db")
    assert len(store.rows(StepRow, run=run)) == done.json["steps"]
    store.close()
