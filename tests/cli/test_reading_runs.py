"""`fabula runs` and `fabula memory` on readings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Fabula
from tests.cli.reading import PARTS, fact, read, reader, reading, vaults
from tests.read.models import NAMES, Copyist

__all__ = ["reader", "reading"]


def test_list(fabula: Fabula, reading: str) -> None:
    [one] = fabula("runs", "list", "--json").json["runs"]
    assert (one["kind"], one["title"], one["way"], one["chunks"], one["chunks_read"]) == ("read", "vaults", "tree", PARTS, PARTS)
    assert f"tree, {PARTS} of {PARTS} chunks" in fabula("runs", "list").out


def test_show(fabula: Fabula, reading: str) -> None:
    out = fabula("runs", "show", reading).out
    for words in (
        f"{PARTS} of {PARTS} chunks · finished",
        "List the codes.",
        "part-07.md:1-6",
        "1.0  chunks 1–8",
        "Coverage",
        "scripted: ",
    ):
        assert words in out, words
    shown = fabula("runs", "show", reading, "--json").json
    assert [m["merge"] for m in shown["merges"]] == ["1.0"]
    assert len(shown["individual_results"]) == PARTS
    assert fabula("runs", "show", reading, "--text").out.startswith("# vaults\n")


def test_trace_of_a_chunk(fabula: Fabula, reading: str) -> None:
    out = fabula("runs", "trace", reading, "--chunk", "4").out
    for words in ("Chunk 4 (part-03.md:1-", "Claims (1)", fact(3), "part-03.md:3, quoted", "✓ chunk: scripted", "[answer]"):
        assert words in out, words
    whole = fabula("runs", "trace", reading, "--chunk", "4", "--prompt").out
    assert "§§§ part-03.md" in whole
    told = fabula("runs", "trace", reading, "--chunk", "4", "--json").json
    assert told["claims"][0]["text"] == fact(3)
    assert told["calls"][0]["answer"].startswith("{")
    assert "The answer to the task" in fabula("runs", "trace", reading).out
    assert "Merge 1.0" in fabula("runs", "trace", reading, "--merge", "1.0").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace", "RUN", "--chunk", "99"], "chunks 1 to 8"),
        (["trace", "RUN", "--merge", "7.7"], "no merge '7.7'"),
        (["trace", "RUN", "--passage", "p1"], "--chunk N or --merge NAME"),
        (["resume", "RUN", "--words", "5"], "--words is for books"),
        (["export", "RUN", "--out", "book.epub"], "report.md"),
        (["fork", "RUN", "--corrected"], "--corrected"),
        (["diff", "RUN", "RUN"], "same reading"),
    ],
)
def test_mistakes(fabula: Fabula, reading: str, arguments: list[str], words: str) -> None:
    done = fabula("runs", *(reading if a == "RUN" else a for a in arguments))
    assert done.code == 2, done.err
    assert words in done.err


def test_a_book_has_no_chunks(fabula: Fabula, story: str) -> None:
    done = fabula("runs", "trace", story, "--chunk", "1")
    assert done.code == 2
    assert "--passage ID" in done.err


def test_replay_export_and_resume(fabula: Fabula, reading: str, reader: Copyist) -> None:
    assert f"{PARTS + 1} steps replayed offline, all identical." in fabula("runs", "replay", reading).out
    assert fabula("runs", "export", reading, "--out", "r.md", "--out", "r.json", "--jsonl", "j.jsonl", "--json").json["files"] == [
        "j.jsonl", "r.md", "r.json",
    ]  # fmt: skip
    assert json.loads(Path("r.json").read_text("utf-8"))["run"] == reading
    assert fact(0) in Path("j.jsonl").read_text("utf-8")
    done = fabula("runs", "resume", reading)
    assert done.code == 0, done.err
    assert "The code of vault" in done.out
    assert reader.requests == []


def test_a_change_in_the_journal_is_found_by_replay(fabula: Fabula, reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabula.read._reading.remember", lambda *_, **__: None)
    done = fabula("runs", "replay", reading)
    assert done.code == 4
    assert "0.3@0: records differ" in done.out


def test_diff_of_two_readings(fabula: Fabula, home: Path, reading: str) -> None:
    other = str(read(fabula, "vaults", "--task", "List the codes.")["run"])
    assert "say the same" in fabula("runs", "diff", reading, other).out
    (home / "vaults" / "part-02.md").write_text("The code of vault Zeta is 9999.\n")
    third = str(read(fabula, "vaults", "--task", "List the codes.")["run"])
    out = fabula("runs", "diff", reading, third).out
    assert f"-{fact(2)}" in out.replace("- ", "-")
    assert "+The code of vault Zeta is 9999." in out
    assert "- chunk part-02.md:1-" in out


def test_diff_of_a_reading_and_a_book(fabula: Fabula, story: str, reader: Copyist, home: Path) -> None:
    vaults(home, 2)
    run = str(read(fabula, "vaults", "--task", "List.")["run"])
    assert fabula("runs", "diff", run, story).code == 2


def test_memory(fabula: Fabula, reading: str) -> None:
    out = fabula("memory", "list", reading).out
    assert fact(6) in out
    assert "part-06.md:3" in out
    records = fabula("memory", "list", reading, "--json").json["records"]
    ident = next(r["id"] for r in records if r["text"] == fact(6))
    assert fact(6) in fabula("memory", "show", ident).out
    assert fabula("memory", "edit", ident, "The code of that vault is secret.").code == 0
    assert "The code of that vault is secret." in fabula("memory", "list", reading).out
    assert fact(6) not in fabula("memory", "show", ident).out.splitlines()[0]
    assert fabula("memory", "retract", ident, "--why", "wrong").code == 0
    assert "secret" not in fabula("memory", "list", reading).out
    assert fabula("memory", "add", reading, "Mira keeps the vaults.").code == 0
    assert "Mira keeps" in fabula("memory", "list", reading, "--find", "Mira").out
    assert NAMES[5] in fabula("memory", "list", "--find", NAMES[5]).out
    assert fabula("runs", "stale", reading).code == 0


def test_fork(fabula: Fabula, reading: str) -> None:
    child = fabula("runs", "fork", reading, "--at", "1", "--json").json["run"]
    assert fabula("runs", "list", "--json").json["runs"][0]["state"] == "open"
    done = fabula("runs", "resume", child, "--json")
    assert done.code == 0, done.err
    assert done.json["finished"] is True
