"""Opening a library: new, old, foreign, damaged, unwritable; and that reads use the indexes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, LibraryBusy, LibraryDamaged, LibraryFull, LibraryTooNew, StoreError
from fabula.store import (
    Address,
    Among,
    BegunRow,
    Between,
    CallRow,
    FactRow,
    InboxRow,
    IntakeRow,
    LaneRow,
    LogRow,
    PieceRow,
    Reach,
    RecallRow,
    RecordRow,
    RunRow,
    StepRow,
    TakenRow,
    TextRow,
    WithdrawnRow,
    _database,
    open_store,
    text_hash,
)
from fabula.store._schema import MIGRATIONS
from fabula.store._sqlite import SQLiteStore


def image(path: Path) -> dict[str, bytes]:
    return {found.name: found.read_bytes() for found in sorted(path.parent.iterdir()) if found.is_file()}


def test_folder_is_made_and_an_empty_file_is_a_new_library(tmp_path: Path) -> None:
    deep = tmp_path / "книги" / "a b%20?#'" / "fabula.db"
    for place in (deep, tmp_path / "empty.db"):
        if place.parent == tmp_path:
            place.touch()
        with_one = open_store(place)
        with with_one.write("a", "x") as tx:
            tx.add(FactRow("x", 1))
        with_one.close()
        again = open_store(str(place))
        assert [row.value for row in again.rows(FactRow)] == [1]
        assert again.place == str(place)
        again.close()
        assert sorted(found.name for found in place.parent.glob(f"{place.name}*")) == [place.name]


def test_a_creation_that_was_interrupted_is_taken_up(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.close()
    assert path.stat().st_size > 0
    open_store(path).close()
    assert open_store(path).position() == 0


@pytest.mark.parametrize("content", [b"x", b"once upon a time\n" * 50, b"SQLite format 3\x00short", bytes(5000)])
def test_a_file_that_is_no_library_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LibraryDamaged, match=path.name) as caught:
        open_store(path)
    assert caught.value.next_action
    assert image(path) == {path.name: content}


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("mark", [0, 77])
def test_a_database_of_another_program_is_left_alone(path: Path, mode: str, mark: int) -> None:
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA journal_mode = {mode}")
    raw.execute(f"PRAGMA application_id = {mark}")
    raw.execute("CREATE TABLE log(a)")
    raw.close()
    before = image(path)
    with pytest.raises(LibraryDamaged, match="another program"):
        open_store(path)
    assert image(path) == before


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="folder") as caught:
        open_store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as second:
        open_store(tmp_path / "file" / "fabula.db")
    assert caught.value.next_action
    assert second.value.next_action


def test_a_library_of_a_later_version_is_refused_and_left_alone(path: Path) -> None:
    open_store(path).close()
    raw = sqlite3.connect(path)
    raw.execute("INSERT INTO migrations VALUES ('9999_later', 0)")
    raw.commit()
    raw.close()
    before = image(path)[path.name][28:]
    with pytest.raises(LibraryTooNew, match="9999_later"):
        open_store(path)
    assert image(path)[path.name][28:] == before


def test_a_migration_runs_once_after_a_copy_was_made(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(path)
    with store.write("a", "x") as tx:
        tx.add(FactRow("kept", 1))
    store.close()
    calls: list[str] = []

    def add_notes(database: Any) -> None:
        calls.append("notes")
        database.do("CREATE TABLE notes(n INTEGER PRIMARY KEY) STRICT")

    monkeypatch.setattr("fabula.store._opening.MIGRATIONS", (*MIGRATIONS, ("0003_notes", add_notes)))
    for _ in range(2):
        store = open_store(path)
        assert [row.name for row in store.rows(FactRow)] == ["kept"]
        store.close()
    assert calls == ["notes"]
    monkeypatch.undo()
    old = open_store(path.with_name("fabula.db.before-0003_notes"))
    assert [row.name for row in old.rows(FactRow)] == ["kept"]
    old.close()
    with pytest.raises(LibraryTooNew, match="0003_notes"):
        open_store(path)


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(path).close()

    def fails(database: Any) -> None:
        database.do("CREATE TABLE half(n)")
        database.do("nonsense")

    monkeypatch.setattr("fabula.store._opening.MIGRATIONS", (*MIGRATIONS, ("0003_fails", fails)))
    with pytest.raises(StoreError):
        open_store(path)
    monkeypatch.undo()
    store = open_store(path)
    assert store.check() == []
    store.close()
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    raw.close()


def test_the_log_of_another_library_is_not_taken_in(path: Path, tmp_path: Path) -> None:
    """A backup is put in the place of a library whose log was left behind by a kill."""
    store = open_store(path)
    store.backup(tmp_path / "backup.db")
    with store.write("a", "x") as tx:
        tx.add(PieceRow("a", "m", "p", 0, 0, list(range(9000))))
    log = path.with_name(path.name + "-wal").read_bytes()
    assert log
    store.close()
    path.write_bytes((tmp_path / "backup.db").read_bytes())
    path.with_name(path.name + "-wal").write_bytes(log)
    before = path.read_bytes()
    with pytest.raises(LibraryDamaged, match="log of another library"):
        open_store(path)
    assert path.read_bytes() == before
    path.with_name(path.name + "-wal").unlink()
    again = open_store(path)
    assert (again.position(), again.check()) == (0, [])
    again.close()


@pytest.mark.parametrize("newer", ["file", "log"])
def test_the_log_of_another_time_is_not_taken_in(path: Path, newer: str) -> None:
    """The file, or the log, is an old copy that somebody made without Fabula."""
    log = path.with_name(path.name + "-wal")
    states = []
    for _ in range(2):
        store = SQLiteStore(path)
        for number in range(5):
            with store.write("a", "x") as tx:
                tx.add(PieceRow("a", "m", "p", number, 0, [number] * 900))
        written = log.read_bytes()
        store.close()
        states.append((path.read_bytes(), written))
    (old_file, old_log), (new_file, new_log) = states
    if newer == "file":
        path.write_bytes(new_file)
        log.write_bytes(old_log)
    else:
        store = SQLiteStore(path)
        with store.write("a", "x") as tx:
            tx.add(PieceRow("a", "m", "p", 9, 0, 9))
        new_log = log.read_bytes()
        store.close()
        path.write_bytes(old_file)
        log.write_bytes(new_log)
    with pytest.raises(LibraryDamaged, match="log of another library"):
        open_store(path)


def test_the_own_log_is_taken_in(path: Path, tmp_path: Path) -> None:
    store = open_store(path)
    for number in range(30):
        with store.write("a", "x") as tx:
            tx.add(PieceRow("a", "m", "p", number, 0, [number] * 900))
    copy = tmp_path / "copy.db"
    for end in ("", "-wal"):
        copy.with_name(copy.name + end).write_bytes(path.with_name(path.name + end).read_bytes())
    store.close()
    again = open_store(copy)
    assert (again.position(), len(again.rows(PieceRow)), len(again.check())) == (30, 30, 1)
    again.close()


CODES = {
    sqlite3.SQLITE_BUSY: LibraryBusy, sqlite3.SQLITE_LOCKED: LibraryBusy, 517: LibraryBusy, sqlite3.SQLITE_FULL: LibraryFull,
    778: LibraryFull, 1034: LibraryFull, 4874: LibraryFull, 266: LibraryDamaged, 522: LibraryDamaged, 11: LibraryDamaged,
    sqlite3.SQLITE_NOTADB: LibraryDamaged, 267: LibraryDamaged, sqlite3.SQLITE_READONLY: StoreError, sqlite3.SQLITE_CANTOPEN: StoreError,
    sqlite3.SQLITE_TOOBIG: InputError, sqlite3.SQLITE_ERROR: StoreError, sqlite3.SQLITE_CONSTRAINT: StoreError,
}  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_every_error_of_the_database_has_its_own_here(code: int) -> None:
    error = sqlite3.OperationalError("said")
    error.sqlite_errorcode = code
    ours = _database.translated(error, "place")
    assert type(ours) is CODES[code]
    assert "place" in ours.message
    assert ours.next_action


# -- how reads find their rows -----------------------------------------------------------------------------------------------


class Watched(SQLiteStore):
    """Collects the SQL of every read."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.asked: list[tuple[str, Any]] = []
        inner = self._db.all

        def all_(sql: str, values: Any = ()) -> Any:
            self.asked.append((sql, values))
            return inner(sql, values)

        def one(sql: str, values: Any = ()) -> Any:
            found = all_(sql, values)
            return found[0] if found else None

        def stream(sql: str, values: Any = ()) -> Any:
            yield from all_(sql, values)

        self._db.all, self._db.one, self._db.stream = all_, one, stream  # type: ignore[method-assign]


def written(store: Watched) -> None:
    with store.write("a", "x") as tx:
        tx.add(CallRow("a", "main", 3, "p", "", 0, 0, "f", "asked", prompt=(("user", "x"),)))
    with store.write("a", "x") as tx:
        tx.add(CallRow("a", "main", 3, "p", "", 0, 0, "f", "answered", asked=tx.pos - 1))


LINE = [Reach("a"), Reach("b", 5, 9)]
AT = {"run": "a", "step": "main", "time": 3}
READS: dict[str, Any] = {
    "steps": lambda s: s.steps(LINE, start=2, end=7),
    "newest step": lambda s: s.steps(LINE, newest_first=True, limit=1),
    "step_at": lambda s: s.step_at(LINE, "main", 3),
    "undone": lambda s: s.undone("a", "main", 3),
    "pieces": lambda s: s.pieces(LINE, after=7),
    "small pieces": lambda s: s.pieces(LINE, most=9),
    "a large piece": lambda s: s.rows(PieceRow, run="a", lane="m", name="p", version=1),
    "reached": lambda s: s.reached(LINE),
    "verdict": lambda s: s.verdict(LINE, Address("main", 3, "p", "", 0, 0), "f"),
    "pure": lambda s: s.pure("f"),
    "known": lambda s: s.known(["f", "g"]),
    "raised": lambda s: s.raised(LINE, "main", 3, "p"),
    "usage": lambda s: s.usage("a"),
    "text": lambda s: s.text(text_hash("x")),
    "texts of a run": lambda s: s.rows(TextRow, run="a"),
    "text of a run": lambda s: s.rows(TextRow, run="a", hash="h"),
    "records": lambda s: s.records(LINE, entities=["mira"], after=7, lanes=["main"]),
    "vectors": lambda s: s.vectors(["h"], "e5"),
    "search": lambda s: s.search(["x", "y"], runs=["a"]),
    "line": lambda s: s.line("abc"),
    "position": lambda s: s.position(),
    "begun": lambda s: s.rows(BegunRow, **AT, take=0, limit=1),
    "recall": lambda s: s.rows(RecallRow, **AT, take=0, part="x", query="q", limit=1),
    "recalls since": lambda s: s.rows(RecallRow, run="a", pos=Between(7)),
    "lanes": lambda s: s.rows(LaneRow, run="a"),
    "fact": lambda s: s.rows(FactRow, name="x", newest_first=True, limit=1),
    "last sample": lambda s: s.greatest(CallRow, "sample", **AT, purpose="p"),
    "last time": lambda s: s.greatest(StepRow, "time", run="a"),
    "last version": lambda s: s.greatest(PieceRow, "version", run="a", lane="m", name="p"),
    "last position": lambda s: s.greatest(LogRow, "pos", run="a"),
    "calls at": lambda s: s.rows(CallRow, pos=Among((3, 4))),
    "step at position": lambda s: s.rows(StepRow, pos=3),
    "partials": lambda s: s.rows(CallRow, asked=7, status="partial"),
    "calls of a step": lambda s: s.rows(CallRow, **AT),
    "inbox": lambda s: s.rows(InboxRow, run="a", pos=Between(7)),
    "taken": lambda s: s.rows(TakenRow, run="a"),
    "intake": lambda s: s.rows(IntakeRow, run="a", newest_first=True, limit=1),
    "news": lambda s: s.rows(RecordRow, reach="library", pos=Between(7)),
    "history": lambda s: s.rows(RecordRow, id="r"),
    "own since": lambda s: s.rows(RecordRow, run="a", pos=Between(7)),
    "withdrawn": lambda s: s.rows(WithdrawnRow, run="a", pos=Between(7)),
    "last act": lambda s: s.rows(LogRow, run="a", newest_first=True, limit=1),
    "writing": written,
    "children": lambda s: s.rows(RunRow, parent="a"),
}


SORTED = ("search", "reached", "verdict", "last sample", "calls of a step", "recall", "begun")
"""Reads that sort the few rows of one address, or a run's once, when it is opened."""


@pytest.mark.parametrize("name", READS)
def test_no_read_of_a_step_looks_through_a_table(name: str) -> None:
    store = Watched()
    with store.write("abc", "x") as tx:
        tx.add(RunRow("abc", "k", "", "", "", {}))
        tx.add(RecordRow("r", "a", "m", 0, "add", {}, terms="x"))
        tx.add(TextRow("a", text_hash("x"), "x"))
    store.asked.clear()
    READS[name](store)
    assert store.asked
    for sql, values in list(store.asked):
        plan = [row[3] for row in store._db.connection.execute("EXPLAIN QUERY PLAN " + sql, values)]
        for line in plan:
            scan = line.startswith("SCAN") and not any(fine in line for fine in ("json_each", "VIRTUAL TABLE INDEX 0:M", "(subquery", "j "))
            assert not scan, f"{sql}\n{plan}"
            assert "TEMP B-TREE" not in line or name in SORTED, f"{sql}\n{plan}"
    store.close()


def test_a_message_is_kept_once_and_small(path: Path) -> None:
    store = SQLiteStore(path)
    story = "".join(f"Chapter {n}. The harbour was quiet, and Mira counted the boats again; {n} of them were missing. " for n in range(200))
    prompt = (("system", "You are a novelist."), ("user", story))
    for sample in range(5):
        with store.write("a", "ask") as tx:
            tx.add(CallRow("a", "main", 0, "p", "", sample, 0, "f", "asked", prompt=(*prompt, ("user", f"Go on {sample}."))))
    assert [row.prompt[:2] for row in store.rows(CallRow)] == [prompt] * 5
    assert store._db.all("SELECT count(*) FROM texts") == [(7,)]
    assert store._db.all("SELECT max(length(body)) FROM texts")[0][0] < len(story) / 4
    store.close()
