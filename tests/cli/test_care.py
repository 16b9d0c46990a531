"""`fabula backup` and `fabula doctor`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Fabula


def test_backup_is_a_library(fabula: Fabula, story: str, home: Path) -> None:
    assert fabula("backup", "copy.db", "--json").json["bytes"] > 10_000
    assert fabula("runs", "list", "--library", "copy.db", "--json").json["runs"][0]["run"] == story
    again = fabula("backup", "copy.db")
    assert again.code == 2
    assert "exists already" in again.err
    assert fabula("backup", "other.db", "--library", "missing.db").code == 2
    assert not Path("missing.db").exists()


def test_doctor_finds_all_in_order(fabula: Fabula, story: str) -> None:
    done = fabula("doctor")
    assert done.code == 0, done.out + done.err
    assert "1 runs, sound" in done.out
    assert "in order" in done.out
    assert "scripted" in done.out


def test_doctor_without_a_library_makes_none(fabula: Fabula, home: Path) -> None:
    assert fabula("doctor").code == 0
    assert not (home / "novels.db").exists()


def damage(home: Path) -> None:
    """Sums that do not add up: what a disk that lies leaves behind."""
    with sqlite3.connect(home / "novels.db") as database:
        database.execute("UPDATE totals SET calls = 99")
    database.close()


def test_doctor_repairs_and_says_what_it_did(fabula: Fabula, story: str, home: Path) -> None:
    damage(home)
    found = fabula("doctor", "--json")
    assert found.code == 4, found.out
    assert found.json["left"] >= 1
    assert "--repair" in fabula("doctor").out
    mended = fabula("doctor", "--repair", "--json")
    assert mended.code == 0, mended.out
    assert [one["repaired"] for one in mended.json["findings"] if one["repaired"]]
    assert fabula("doctor").code == 0
    assert list(home.glob("novels.db.before-repair*")), "a copy was made first"


def test_doctor_of_a_file_that_is_no_library(fabula: Fabula, home: Path) -> None:
    Path("novels.db").write_text("this is a shopping list\n" * 20)
    done = fabula("doctor")
    assert done.code == 4
    assert "not a library" in done.out
    for command in (["runs", "list"], ["write", "x", "--steps", "1"]):
        wrong = fabula(*command)
        assert wrong.code == 2
        assert "novels.db is not a library" in wrong.err
    assert Path("novels.db").read_text().startswith("this is a shopping list")


def test_a_database_of_another_program_is_a_wrong_path_and_a_damaged_library_is_not(fabula: Fabula, story: str, home: Path) -> None:
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE log(a)")
    other.close()
    done = fabula("runs", "list", "--library", "other.db")
    assert done.code == 2
    assert "another program" in done.err
    library = home / "novels.db"
    library.write_bytes(library.read_bytes()[:4096] + b"\xff" * 60_000)
    assert fabula("runs", "list").code == 1


def test_doctor_names_a_bad_setting(fabula: Fabula, home: Path) -> None:
    Path("fabula.toml").write_text("modle = 'x'\n")
    done = fabula("doctor", "--json")
    assert done.code == 4
    assert "modle" in next(one["what"] for one in done.json["findings"] if one["left"])


@pytest.mark.parametrize("command", [["runs", "list"], ["write", "x", "--steps", "1"]])
def test_a_bad_settings_file_stops_every_command(fabula: Fabula, home: Path, command: list[str]) -> None:
    Path("fabula.toml").write_text("modle = 'x'\n")
    done = fabula(*command)
    assert done.code == 2
    assert "fabula.toml" in done.err
    assert "modle" in done.err


def test_a_mistyped_library_is_noticed_and_not_made(tmp_path: Path) -> None:
    """Only what begins something makes a library."""
    import subprocess
    import sys

    missing = tmp_path / "nowhere.db"
    for command in (["runs", "list"], ["runs", "show", "abc"], ["memory", "list"], ["runs", "fork", "abc"]):
        done = subprocess.run(
            [sys.executable, "-c", "from fabula.cli import main; raise SystemExit(main())", *command, "--library", str(missing)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2, command
        assert "nowhere.db" in done.stderr
        assert not missing.exists()


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    import subprocess
    import sys

    for out in (tmp_path / "no" / "such" / "book.epub", tmp_path):
        target = out if out.suffix else out / "folder.md"
        if not out.suffix:
            target.mkdir()
        command = [
            "write",
            "A keeper vanishes.",
            "--auto",
            "--model",
            "scripted",
            "--out",
            str(target),
            "--library",
            str(tmp_path / "a.db"),
        ]
        done = subprocess.run(
            [sys.executable, "-c", "from fabula.cli import main; raise SystemExit(main())", *command], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert not (tmp_path / "a.db").exists()
