"""What was committed stays, whatever dies: power, disk space, processes, patience."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabula.errors import LibraryBusy, LibraryFull
from fabula.store import LogRow, VectorRow, open_store
from fabula.store._sqlite import SQLiteStore

from .filling import assert_whole, fill, until_full

FRAME = 24 + 4096


def test_power_cut_at_every_frame_of_the_log(path: Path, tmp_path: Path) -> None:
    store = open_store(path)
    fill(store, 4)
    base = path.read_bytes()
    log = path.with_name(path.name + "-wal").read_bytes()
    ends = [at for at in range(32, len(log), FRAME) if log[at + 4 : at + 8] != bytes(4)]
    store.close()
    assert len(ends) >= 5
    commits = [at + FRAME for at in ends]
    rng = random.Random(1)
    seen = set()
    frames = range(32, len(log) + 1, FRAME)
    cuts = [(cut, b"") for cut in frames] + [(cut + rng.randrange(1, FRAME), b"") for cut in frames[:-1:2]]
    cuts += [(cut + rng.randrange(1, FRAME), rng.randbytes(FRAME)) for cut in frames[:-1:7]]
    copy = tmp_path / "cut" / "fabula.db"
    for cut, rest in cuts:
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        copy.write_bytes(base)
        copy.with_name(copy.name + "-wal").write_bytes(log[:cut] + rest)
        again = open_store(copy)
        expected = sum(end <= cut for end in commits)
        last = assert_whole(again)
        assert last - assert_whole_base(base, tmp_path) == expected
        if last not in seen:
            seen.add(last)
            assert again.check() == []
            fill(again, 1)
            assert assert_whole(again) > last
        again.close()
    assert len(seen) == len(commits) + 1


_BASE: dict[int, int] = {}


def assert_whole_base(base: bytes, tmp_path: Path) -> int:
    """How many transactions the file holds without its log."""
    if hash(base) not in _BASE:
        copy = tmp_path / "base.db"
        copy.write_bytes(base)
        store = open_store(copy)
        _BASE[hash(base)] = store.position()
        store.close()
    return _BASE[hash(base)]


def test_a_full_disk_loses_nothing_and_is_got_over(path: Path) -> None:
    store = SQLiteStore(path)
    fill(store, 3)
    (pages,) = store._db.all("PRAGMA page_count")[0]
    store._db.one(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(LibraryFull) as caught:
        until_full(store, 100)
    assert caught.value.next_action
    before = assert_whole(store)
    with pytest.raises(LibraryFull):
        fill(store, 1, 1_000_000)
    assert assert_whole(store) == before > 4
    store._db.one("PRAGMA max_page_count = 1000000")
    fill(store, 2)
    assert assert_whole(store) == before + 2
    assert store.check() == []
    store.close()


FULL = """
import resource, sys
from fabula.errors import LibraryFull
from fabula.store import open_store
from tests.store.filling import assert_whole, fill, until_full
store = open_store(sys.argv[1])
fill(store, 2)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (300_000, 600_000, 350_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        until_full(store, 3000)
    except LibraryFull as error:
        assert error.next_action
    else:
        raise SystemExit("the disk never filled")
    before = assert_whole(store)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fill(store, 2)
assert assert_whole(store) == before + 2
assert store.check() == [], store.check()
print(store.position())
"""


def run_child(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_a_file_that_may_not_grow_loses_nothing_and_is_got_over(path: Path) -> None:
    child = run_child(FULL, path)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    store = open_store(path)
    assert assert_whole(store) == int(out) > 10
    store.close()


APPEND = """
import sys
from fabula.store import VectorRow, open_store
store = open_store(sys.argv[1])
for number in range(int(sys.argv[3])):
    with store.write(sys.argv[2], "append") as tx:
        for row in range(5):
            tx.add(VectorRow(f"{sys.argv[2]} {number} {row}", "m", tx.pos.to_bytes(4, "little")))
"""


def append_at_once(path: Path, processes: int, count: int) -> None:
    open_store(path).close()
    children = [run_child(APPEND, path, f"run-{number}", count) for number in range(processes)]
    assert [child.wait(timeout=300) for child in children] == [0] * processes
    for child in children:
        assert child.stdout is not None
        child.stdout.close()
    store = open_store(path)
    logs = store.rows(LogRow)
    assert [row.pos for row in logs] == list(range(1, processes * count + 1))
    rows = store.rows(VectorRow)
    assert len(rows) == processes * count * 5
    assert (
        [row.pos for row in rows]
        == [int.from_bytes(row.vector, "little") for row in rows]
        == [pos for pos in range(1, len(logs) + 1) for _ in range(5)]
    )
    for number in range(processes):
        own = [row.hash for row in rows if row.hash.startswith(f"run-{number} ")]
        assert own == [f"run-{number} {at} {row}" for at in range(count) for row in range(5)], "each process's order is kept"
    assert store.check() == []
    store.close()


def test_four_processes_append_without_a_gap(path: Path) -> None:
    append_at_once(path, 4, 50)


@pytest.mark.soak
def test_four_processes_append_for_long(path: Path) -> None:
    append_at_once(path, 4, 2000)


WRITER = """
import sys
from fabula.store import open_store
from tests.store.filling import fill
store = open_store(sys.argv[1])
while True:
    fill(store, 1, 2000)
    print(store.position(), flush=True)
"""


def kill_writers(path: Path, count: int, seed: int) -> int:
    """Kill a writer at random moments, again and again on one library; returns how many kills came between two commits."""
    rng = random.Random(seed)
    said = whole = 0
    for _ in range(count):
        child = run_child(WRITER, path)
        assert child.stdout is not None
        said = int(child.stdout.readline())
        time.sleep(rng.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
        child.stdout.close()
        child.wait()
        said = max([said, *(int(line) for line in rest[:-1])])
        store = open_store(path)
        last = assert_whole(store)
        assert last in (said, said + 1), "what was said to be committed is there"
        whole += last == said
        store.close()
    store = open_store(path)
    assert store.check() == []
    store.close()
    return whole


def test_a_killed_writer_leaves_a_whole_library(path: Path) -> None:
    kill_writers(path, 3, seed=7)


@pytest.mark.soak
def test_many_killed_writers_leave_a_whole_library(path: Path) -> None:
    kill_writers(path, 200, seed=8)


def test_a_locked_library_is_busy_and_can_be_read(path: Path) -> None:
    store = open_store(path, busy_seconds=0.15)
    fill(store, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    start = time.monotonic()
    with pytest.raises(LibraryBusy) as caught:
        fill(store, 1)
    assert time.monotonic() - start >= 0.1
    assert caught.value.next_action
    assert assert_whole(store) == 2
    second = open_store(path, busy_seconds=0.15)
    assert assert_whole(second) == 2
    second.close()
    other.execute("ROLLBACK")
    fill(store, 1)
    assert assert_whole(store) == 3
    store.close()
    other.close()


def test_a_library_that_another_program_keeps_for_itself_is_busy(path: Path) -> None:
    open_store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("INSERT INTO counter VALUES ('x', 0)")
    with pytest.raises(LibraryBusy):
        open_store(path, busy_seconds=0.1)
    other.close()
    open_store(path).close()


def test_a_writer_waits_for_another(path: Path) -> None:
    store = open_store(path)
    fill(store, 1)
    child = run_child(
        "import sqlite3, sys, time\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('BEGIN IMMEDIATE')\n"
        "print('locked', flush=True)\ntime.sleep(0.3)\nc.execute('COMMIT')\n",
        path,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "locked\n"
    fill(store, 1)
    assert assert_whole(store) == 3
    child.communicate()
    store.close()


@pytest.mark.parametrize("moment", ["before fill", "inside fill", "after fill"])
def test_a_fault_at_every_boundary_leaves_a_whole_library(path: Path, moment: str) -> None:
    seen = [0]

    def fault(name: str) -> None:
        seen[0] += name == moment
        if name == moment and seen[0] == 3:
            raise KeyboardInterrupt

    store = open_store(path, fault=fault)
    with pytest.raises(KeyboardInterrupt):
        fill(store, 5)
    assert assert_whole(store) == (4 if moment == "after fill" else 3)
    fill(store, 1)
    assert store.check() == []
    store.close()
