"""Source texts: kept once by content, read by their hash, and known to everything that takes care of a library."""

from __future__ import annotations

import sqlite3
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest

from fabula.errors import InputError, LibraryDamaged, LibraryTooNew, NotFound
from fabula.store import CallRow, FactRow, Reach, RunRow, StepRow, Store, TextRow, open_store, text_hash
from fabula.store._erase import mark
from fabula.store._schema import FIND, MIGRATIONS, START
from fabula.store._sqlite import SQLiteStore

from .filling import assert_whole, fill
from .test_contract import put
from .test_erase import bytes_of

TEXTS = {
    "en": "Mira counted the boats.\n\n" * 200,
    "zh": "米拉数了数船，少了一条。\n" * 150,
    "ru": "Мира пересчитала лодки.\r\n" * 170,
    "code": "def boats(n: int) -> int:\n    return n - 1\n",
    "empty": "",
    "half": "half \ud83d of a sign",
}


def source(run: str, text: str) -> TextRow:
    return TextRow(run, text_hash(text), text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_source_text_is_read_by_its_content(store: Store, text: str) -> None:
    pos = put(store, "a", source("a", text))
    assert store.text(text_hash(text)) == text
    assert store.rows(TextRow, run="a") == [TextRow("a", text_hash(text), text, pos)]
    assert store.rows(TextRow, run="b") == []
    assert text_hash(text) == text_hash(text) != text_hash(text + " ")
    assert len(text_hash(text)) == 32


def test_what_is_not_there_is_said(store: Store) -> None:
    with pytest.raises(NotFound, match="no source text") as caught:
        store.text(text_hash("never brought"))
    assert caught.value.next_action
    put(store, "a", CallRow("a", "m", 0, "p", "", 0, 0, "f", "asked", prompt=(("user", "only asked"),)))
    with pytest.raises(NotFound):
        store.text(text_hash("only asked"))


def test_a_wrong_name_is_refused_and_nothing_is_written(store: Store) -> None:
    with pytest.raises(InputError, match="content says"):
        put(store, "a", source("a", "one"), TextRow("a", text_hash("two"), "three"))
    assert store.position() == 0
    with pytest.raises(NotFound):
        store.text(text_hash("one"))


def test_a_text_is_kept_once_however_many_name_it(path: Path) -> None:
    store = SQLiteStore(path)
    text = TEXTS["en"]
    for run in ("a", "b", "c"):
        put(store, run, source(run, text), source(run, text + run), source(run, text))
    put(store, "a", CallRow("a", "m", 0, "p", "", 0, 0, "f", "asked", prompt=(("user", text),)))
    assert store._db.all("SELECT count(*) FROM texts") == [(4,)]
    assert store._db.all("SELECT max(length(body)) FROM texts")[0][0] < len(text) / 4, "compressed"
    assert [row.hash for row in store.rows(TextRow, run="b")] == [text_hash(text), text_hash(text + "b"), text_hash(text)]
    store.close()


# -- a library of before ---------------------------------------------------------------------------------------------------


def old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library as the first version made it."""
    with monkeypatch.context() as patched:
        patched.setattr("fabula.store._opening.MIGRATIONS", MIGRATIONS[:1])
        store = open_store(path)
        fill(store, 3)
        store.close()


def test_a_library_of_0001_opens_and_keeps_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(path, monkeypatch)
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT name FROM migrations").fetchall() == [("0001_start",)]
    assert raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'sources'").fetchone() is None
    raw.close()
    store = open_store(path)
    assert assert_whole(store) == 4
    assert store.check() == []
    pos = put(store, "a", source("a", TEXTS["zh"]))
    assert store.text(text_hash(TEXTS["zh"])) == TEXTS["zh"]
    store.close()
    again = open_store(path)
    assert again.rows(TextRow) == [TextRow("a", text_hash(TEXTS["zh"]), TEXTS["zh"], pos)]
    again.close()
    copy = path.with_name(path.name + ".before-0002_sources")
    monkeypatch.setattr("fabula.store._opening.MIGRATIONS", MIGRATIONS[:1])
    before = open_store(copy)
    assert assert_whole(before) == 4
    before.close()
    with pytest.raises(LibraryTooNew, match="0002_sources"):
        open_store(path)


def test_the_first_tables_are_as_they_were_released() -> None:
    """A migration is never changed once there are libraries that it made."""
    assert sha256((START + FIND).encode()).hexdigest()[:16] == "fb84e0231e0c63d4"


# -- care --------------------------------------------------------------------------------------------------------------------


def test_texts_that_nobody_refers_to_are_no_damage(path: Path) -> None:
    """A reading that was killed before its run was made."""
    store = open_store(path)
    put(store, "never made", source("never made", TEXTS["ru"]))
    put(store, "never made", source("never made", TEXTS["en"]))
    assert store.check() == []
    assert store.repair() == []
    assert store.text(text_hash(TEXTS["ru"])) == TEXTS["ru"]
    store.close()


def test_a_lost_text_is_found_and_mended(path: Path) -> None:
    store = SQLiteStore(path)
    fill(store, 1)
    put(store, "a", source("a", "x" * 40), source("a", TEXTS["zh"]))
    store._db.do("DELETE FROM texts WHERE id = (SELECT max(text) FROM sources)")
    with pytest.raises(LibraryDamaged):
        store.text(text_hash(TEXTS["zh"]))
    with pytest.raises(LibraryDamaged):
        store.rows(TextRow)
    assert [finding.code for finding in store.check()] == ["missing_texts"]
    store.repair()
    assert store.check() == []
    assert store.text(text_hash(TEXTS["zh"])) == "⟨lost⟩"
    assert store.text(text_hash("x" * 40)) == "x" * 40
    store._db.do("UPDATE texts SET body = x'7a00' WHERE id = (SELECT min(text) FROM sources)")
    assert [finding.code for finding in store.check()] == ["unreadable_texts"]
    store.repair()
    assert store.check() == []
    store._db.do("DELETE FROM sources WHERE n = (SELECT min(n) FROM sources)")
    assert [finding.code for finding in store.check()] == ["lost_rows"]
    store.close()


def test_a_backup_and_an_export_carry_them(path: Path, tmp_path: Path) -> None:
    store = open_store(path)
    put(store, "root", RunRow("root", "read", "", "", "", {}), source("root", TEXTS["en"]))
    pin = store.position()
    put(store, "child", RunRow("child", "read", "", "", "", {}, parent="root", cut=0, pin=pin), source("child", TEXTS["zh"]))
    put(store, "root", source("root", "after the pin"))
    exported = [row for row in store.export(store.line("child")) if isinstance(row, TextRow)]
    assert [(row.run, row.text) for row in exported] == [("root", TEXTS["en"]), ("child", TEXTS["zh"])]
    store.backup(tmp_path / "copy.db")
    store.close()
    copy = open_store(tmp_path / "copy.db")
    assert copy.text(text_hash(TEXTS["zh"])) == TEXTS["zh"]
    copy.close()


def test_an_export_holds_one_text_at_a_time(path: Path) -> None:
    store = open_store(path)
    size, count = 400_000, 25
    for number in range(count):
        put(store, "a", source("a", f"{number} " * (size // (1 + len(str(number))))))
    tracemalloc.start()
    try:
        lengths = [len(row.text) for row in store.export([Reach("a")]) if isinstance(row, TextRow)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(lengths) > 0.9 * size * count
    assert peak < 6 * size
    store.close()


SECRET = "Mira's real name\nis Anna Berg"


def test_what_was_erased_is_in_no_source_text_and_every_span_stays(path: Path) -> None:
    store = open_store(path)
    text = f"Chapter 1\n{'The harbour was quiet. ' * 90}{SECRET}, they said.\nChapter 2\nNothing."
    put(store, "a", RunRow("a", "read", "", "", "", {}), source("a", text), source("a", "clean"))
    put(store, "b", RunRow("b", "read", "", "", "", {}), source("b", text))
    put(store, "c", RunRow("c", "read", "", "", "", {}), source("c", "clean too"))
    before = bytes_of(path)
    counts = store.erase([SECRET], "a wish")
    assert (counts["sources"], counts["prompts"], counts["replays"]) == (1, 0, 0)
    assert store.rows(FactRow, name="erased")[0].value["runs"] == ["a", "b"]
    after = store.text(text_hash(text))
    assert "Anna" not in after
    assert len(after) == len(text)
    assert [at for at, sign in enumerate(after) if sign == "\n"] == [at for at, sign in enumerate(text) if sign == "\n"]
    assert after.index("Chapter 2") == text.index("Chapter 2")
    assert after.replace("\n", "⏎").count(mark(SECRET)[:16]) == 1
    assert store.check() == []
    assert len(before) > 0
    assert b"Anna" not in bytes_of(path)
    put(store, "c", source("c", text))
    assert store.text(text_hash(text)) == text, "brought again, it is there again"
    assert store.erase(["Anna Berg"], "")["sources"] == 1
    assert "Anna" not in store.text(text_hash(text))
    store.close()


def test_a_step_of_another_run_that_went_by_a_shared_answer_is_counted(path: Path) -> None:
    store = open_store(path)
    put(store, "a", RunRow("a", "read", "", "", "", {}), RunRow("b", "read", "", "", "", {}))
    asked = put(store, "a", CallRow("a", "0", 0, "p", "", 0, 0, "f", "asked", prompt=(("user", f"Read: {SECRET}"),)))
    said = put(store, "a", CallRow("a", "0", 0, "p", "", 0, 0, "f", "answered", "fine", asked=asked, request={"pure": True}))
    put(store, "a", StepRow("a", "0", 0, 1, 1, "x", {"calls": [said]}))
    put(store, "b", StepRow("b", "0", 0, 1, 1, "x", {"calls": [said]}), StepRow("b", "1", 0, 1, 1, "x", {"calls": []}))
    assert store.erase([SECRET], "")["replays"] == 2
    store.close()
