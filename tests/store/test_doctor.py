"""Damage of every kind is found, named, mended where it can be, and nothing else is touched."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from fabula.errors import Held, LibraryDamaged, NotFound
from fabula.store import CallRow, FactRow, LaneRow, LogRow, PieceRow, RecordRow, StepRow, VectorRow, open_store, salvage
from fabula.store._carve import _TYPES, shapes
from fabula.store._schema import TABLES
from fabula.store._sqlite import SQLiteStore

from .filling import assert_whole, fill
from .test_contract import EVERY


def sound(path: Path) -> SQLiteStore:
    """A library with something of everything that `check` looks at."""
    store = SQLiteStore(path)
    fill(store, 3)
    with store.write("a", "ask") as tx:
        tx.add(CallRow("a", "m", 90, "q", "", 0, 0, "f", "asked", prompt=(("user", "你好 " * 800),), usage={"cost": 3}))
    with store.write("a", "answer") as tx:
        tx.add(CallRow("a", "m", 90, "q", "", 0, 0, "f", "answered", "Да. " * 900, asked=tx.pos - 1, usage={"cost": 2}))
    with store.write("a", "commit") as tx:
        tx.add(StepRow("a", "m", 90, 0, 91, "x", {"calls": [tx.pos - 1], "pieces": {"p": tx.pos}}))
        tx.add(PieceRow("a", "m", "p", 91, 90, "y"))
        for name in ("h1", "h2", "h3"):
            tx.add(VectorRow(name, "e5", b"\x00\x3c" * 384))
    assert store.check() == []
    return store


SAME = "run, step, time, purpose, part, sample, attempt, fingerprint"
REST = "answer, reason, finish, prompt, model, request, '{}', notes, sequence, asked, wall, pure"
DAMAGE: dict[str, tuple[str, str]] = {
    "missing_log": ("DELETE FROM log WHERE n = (SELECT n FROM log ORDER BY n LIMIT 1 OFFSET 2)", "lost"),
    "gap": ("UPDATE counter SET value = value + 2; INSERT INTO log SELECT (max(n) >> 20) + 2 << 20, 0, 'a', 'x', 0 FROM log", "lost"),
    "lost_rows": ("DELETE FROM facts WHERE n = (SELECT min(n) FROM facts)", "a backup"),
    "counter behind": ("UPDATE counter SET value = 1", "set right"),
    "counter ahead": ("UPDATE counter SET value = value + 3", "set right"),
    "counter gone": ("DELETE FROM counter", "set right"),
    "verdict_without_asked": ("DELETE FROM calls WHERE status = 'asked' AND time = 90", "themselves"),
    "step_uses_nothing": ("UPDATE steps SET uses = '{\"calls\":[77]}'", "Nothing"),
    "step_uses_nothing, a piece": ("DELETE FROM pieces", "Nothing"),
    "withdrawn_nothing": ("INSERT INTO withdrawn VALUES ((SELECT max(n) FROM log) + 5, 999, 'a', '')", "Nothing"),
    "missing_runs": ("UPDATE pieces SET run = 'ghost'", "kind `lost`"),
    "missing_runs, a parent": ("UPDATE runs SET parent = 'ghost'", "kind `lost`"),
    "half_written_vector": ("UPDATE vectors SET vector = x'0001' WHERE hash = 'h2'", "Dropped 1"),
    "half_written_vector, empty": ("UPDATE vectors SET vector = x'' WHERE hash = 'h2'", "Dropped 1"),
    "half_written_vector, odd": ("UPDATE vectors SET vector = substr(vector, 2) WHERE hash = 'h2'", "Dropped 1"),
    "half_written_vector, no number": ("UPDATE vectors SET vector = CAST(x'007e' || substr(vector, 3) AS BLOB)", "Dropped 3"),
    "index_out_of_step": ("INSERT INTO find(rowid, terms) VALUES (5, 'stray')", "anew from 3 records"),
    "index_out_of_step, lost": ("INSERT INTO find(find) VALUES ('delete-all')", "anew from 3 records"),
    "index_out_of_step, changed": ("UPDATE records SET terms = 'other' WHERE n = (SELECT min(n) FROM records)", "anew from 3 records"),
    "totals": ("UPDATE totals SET cost = cost + 1", "added up"),
    "totals gone": ("DELETE FROM totals", "added up"),
    "missing_texts": ("DELETE FROM texts WHERE id = 2", "⟨lost⟩"),
    "unreadable_texts": ("UPDATE texts SET body = x'7a00' WHERE id = 2", "⟨lost⟩"),
    "unreadable_rows": ("UPDATE records SET data = '{' WHERE n = (SELECT min(n) FROM records)", "taken out"),
    "unreadable_rows, packed": ("UPDATE calls SET answer = x'7a' WHERE status = 'answered'", "taken out"),
    "two_verdicts": (f"INSERT INTO calls SELECT n + 9, {SAME}, 'failed', {REST} FROM calls WHERE status = 'answered'", "Nothing"),
}  # fmt: skip
STAYS = {"step_uses_nothing", "withdrawn_nothing", "two_verdicts"}
"""What cannot be mended is still said afterwards."""


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_mended(path: Path, name: str) -> None:
    store = sound(path)
    sql, done = DAMAGE[name]
    code = name.split(",")[0].split(" ")[0]
    for statement in sql.split("; "):
        store._db.do(statement)
    before = [(finding.code, finding.repaired) for finding in store.check()]
    assert (code, "") in before
    assert store.check() == store.check(), "looking changes nothing"
    repaired = {finding.code: finding for finding in store.repair()}
    assert done in repaired[code].repaired
    assert all(finding.message and finding.repaired for finding in repaired.values())
    after = {finding.code for finding in store.check()}
    assert after <= STAYS
    assert (code in after) == (code in STAYS)
    (copy,) = [
        found for found in path.parent.iterdir() if found.name.startswith(f"{path.name}.before-repair-") and "-wal" not in found.name
    ]
    kept = SQLiteStore(copy)
    assert code in {finding.code for finding in kept.check()}, "the copy is as it was before"
    kept.close()
    fill(store, 1)
    store.close()


def test_a_lost_run_can_be_exported(path: Path) -> None:
    store = sound(path)
    store._db.do("DELETE FROM runs")
    store.repair()
    run = store.run("a")
    assert run.kind == "lost"
    assert len([row for row in store.export(store.line("a")) if isinstance(row, StepRow)]) == 1
    store.close()


def test_repair_in_memory() -> None:
    store = open_store(":memory:")
    assert isinstance(store, SQLiteStore)
    fill(store, 2)
    store._db.do("DELETE FROM totals")
    assert [finding.code for finding in store.repair()] == ["totals"]
    assert store.check() == []
    store.close()


# -- damaged pages ---------------------------------------------------------------------------------------------------------


def large(path: Path, count: int = 120) -> None:
    store = open_store(path)
    fill(store, count, 900)
    store.close()


def overwrite(path: Path, at: int, content: bytes) -> None:
    raw = bytearray(path.read_bytes())
    raw[at : at + len(content)] = content
    path.write_bytes(raw)


def test_a_damaged_index_is_built_anew(path: Path) -> None:
    large(path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_master SET sql = replace(sql, 'facts(name)', 'facts(value)') WHERE name = 'facts_name'")
    raw.commit()
    raw.close()
    store = open_store(path)
    codes = {finding.code: finding for finding in store.check()}
    assert "damaged_pages" in codes
    repaired = store.repair()
    assert any("built anew" in finding.repaired for finding in repaired)
    assert store.check() == []
    assert assert_whole(store) == 121
    store.close()
    assert not list(path.parent.glob("*.damaged-*")), "no salvage was needed"


def test_a_damaged_table_is_salvaged_and_the_damaged_file_kept(path: Path) -> None:
    large(path)
    store = SQLiteStore(path)
    sql = "SELECT pageno FROM dbstat WHERE name = 'facts' AND pagetype = 'leaf' ORDER BY path"
    pages = [row[0] for row in store._db.all(sql)]
    store.close()
    assert len(pages) > 10
    overwrite(path, (pages[5] - 1) * 4096, bytes(4096))
    damaged = path.read_bytes()
    store = SQLiteStore(path)
    assert "damaged_pages" in {finding.code for finding in store.check()}
    found = {finding.code: finding for finding in store.repair()}
    assert "salvaged" in found
    (kept,) = [p for p in path.parent.glob(f"{path.name}.damaged-*") if not p.name.endswith(("-wal", "-shm"))]
    assert kept.name in found["salvaged"].repaired
    assert kept.read_bytes()[5 * 4096 :] == damaged[5 * 4096 :]
    assert store.check() == []
    assert [row.pos for row in store.rows(LogRow)] == list(range(1, 122))
    assert len(store.rows(RecordRow)) == 120
    lost = 120 - len(store._db.all("SELECT n FROM facts"))
    assert 0 < lost < 10
    assert f" {lost} rows of {lost} transactions are missing" in found["lost_rows"].message
    assert store.position() == 121
    fill(store, 1)
    store.close()


def test_a_file_that_was_cut_short_is_salvaged(path: Path) -> None:
    large(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 9 // 10 // 4096 * 4096])
    found = {finding.code for finding in salvage(path)}
    assert "salvaged" in found
    store = open_store(path)
    assert store.check() == []
    assert store.position() >= 60
    assert len(store.rows(RecordRow)) >= 60
    store.close()


def test_lost_pages_do_not_go_unsaid(path: Path) -> None:
    """A page that is lost is found when the library is opened or checked, and what can be read is saved."""
    large(path, 40)
    whole = path.read_bytes()
    rng = random.Random(3)
    mended = 0
    for _ in range(10):
        for found in path.parent.iterdir():
            if found.is_file():
                found.unlink()
        path.write_bytes(whole)
        overwrite(path, rng.randrange(1, len(whole) // 4096) * 4096, rng.choice((bytes(4096), rng.randbytes(4096))))
        try:
            store = open_store(path)
        except LibraryDamaged:
            salvage(path)
            store = open_store(path)
        if store.check():
            store.repair()
            mended += 1
            assert {finding.code for finding in store.check()} <= STAYS
        fill(store, 1)
        store.close()
    assert mended > 4


def test_a_lost_beginning_loses_little(path: Path) -> None:
    large(path, 20)
    overwrite(path, 0, bytes(3 * 4096))
    with pytest.raises(LibraryDamaged) as caught:
        open_store(path)
    assert "fabula doctor" in caught.value.next_action
    assert {finding.code for finding in salvage(path)} >= {"saved_rows", "salvaged"}
    store = open_store(path)
    assert store.check() == []
    assert store.position() == 21
    assert len(store.rows(RecordRow)) == 20
    store.close()


def test_a_row_can_be_told_from_its_columns() -> None:
    store = SQLiteStore(":memory:")
    found = shapes(store._db, (*(table.name for table in TABLES.values()), "texts"))
    for one, two in combinations(found.values(), 2):
        pairs = zip(one[1:], two[1:], strict=False)
        told = [not set(_TYPES[a]) & set(_TYPES[b]) and not (a_null and b_null) for (a, a_null), (b, b_null) in pairs]
        assert len(one) != len(two) or any(told), (one, two)
    store.close()


def test_every_row_of_a_sound_library_can_be_carved(path: Path) -> None:
    """Also what stands in the log beside it only, long rows, and every kind of row and number."""
    store = sound(path)
    with store.write("a", "all") as tx:
        for row in EVERY:
            tx.add(replace(row, asked=0) if isinstance(row, CallRow) else row)
        for number in (0, 1, -1, 127, -128, 2**15, -(2**23), 2**31, 2**47, -(2**59), 2**60):
            tx.add(LaneRow("a", str(number), number))
        tx.add(FactRow("random", random.Random(1).randbytes(20_000).hex()))
    wanted = {kind: store.rows(kind) for kind in {type(row) for row in EVERY}}
    copy = path.with_name("copy.db")
    for end in ("", "-wal"):
        copy.with_name(copy.name + end).write_bytes(path.with_name(path.name + end).read_bytes())
    store.close()
    found = {finding.code: finding for finding in salvage(copy)}
    assert "lost_rows" not in found
    store = SQLiteStore(copy)
    assert {kind: store.rows(kind) for kind in wanted} == wanted
    store.close()


@pytest.mark.parametrize("content", [b"", b"once upon a time " * 900, bytes(9000)])
def test_what_never_was_a_library_is_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LibraryDamaged) as caught:
        salvage(path)
    assert "backup" in caught.value.next_action
    raw = sqlite3.connect(path.with_name("other.db"))
    raw.execute("CREATE TABLE log(n INTEGER PRIMARY KEY, run TEXT, kind TEXT, wall REAL)")
    raw.execute("INSERT INTO log VALUES (5, 'a', 'b', 1.5)")
    raw.commit()
    raw.close()
    with pytest.raises(LibraryDamaged, match="another program"):
        salvage(path.with_name("other.db"))
    assert path.read_bytes() == content
    assert sorted(found.name for found in path.parent.iterdir()) == ["fabula.db", "other.db"]


def test_salvage_refuses_what_is_held_or_not_there(path: Path) -> None:
    with pytest.raises(NotFound):
        salvage(path)
    store = open_store(path)
    fill(store, 1)
    store.hold("a")
    with pytest.raises(Held):
        salvage(path)
    store.close()


def test_salvage_moves_a_foreign_log_away(path: Path, tmp_path: Path) -> None:
    store = open_store(path)
    fill(store, 2)
    store.backup(tmp_path / "backup.db")
    fill(store, 30, 3000)
    log = path.with_name(path.name + "-wal").read_bytes()
    store.close()
    path.write_bytes((tmp_path / "backup.db").read_bytes())
    path.with_name(path.name + "-wal").write_bytes(log)
    (finding,) = salvage(path)
    assert finding.code == "foreign_log"
    assert [found.read_bytes() for found in path.parent.glob("*.damaged-*-wal")] == [log]
    store = open_store(path)
    assert assert_whole(store) == 3
    assert store.check() == []
    store.close()
