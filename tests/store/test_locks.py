"""Who holds a run, seen from this process, from others, and after a holder died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fabula.errors import Held, StoreError
from fabula.store import Holder, _locks, open_store

HOLD = """
import sys
from fabula.store import open_store
store = open_store(sys.argv[1])
store.hold("run-a")
print("held", flush=True)
sys.stdin.read()
"""


def child(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_one_holder(path: Path) -> None:
    one, two = open_store(path, clock=lambda: 1700000000.0), open_store(path)
    assert one.holder("run-a") is None
    one.hold("run-a")
    one.hold("run-a")
    assert one.holder("run-a") == two.holder("run-a") == Holder(os.getpid(), 1700000000.0, os.uname().nodename)
    with pytest.raises(Held, match=f"process {os.getpid()}") as caught:
        two.hold("run-a")
    assert caught.value.next_action
    assert caught.value.details["process"] == os.getpid()
    two.hold("run-b")
    two.release("run-a")
    assert two.holder("run-a") is not None, "what is not one's own is not released"
    one.release("run-a")
    one.release("run-a")
    two.hold("run-a")
    two.close()
    one.hold("run-a")
    one.close()
    assert list(path.with_name(path.name + ".locks").iterdir()) == []


def test_a_library_in_memory_has_holders_too() -> None:
    store = open_store(":memory:")
    store.hold("a")
    store.hold("a")
    found = store.holder("a")
    assert found is not None
    assert found.process == os.getpid()
    store.release("a")
    assert store.holder("a") is None
    store.close()


def test_one_library_by_two_paths_has_one_holder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    one = open_store(path)
    two = open_store(link)
    monkeypatch.chdir(path.parent)
    three = open_store(path.name)
    monkeypatch.chdir("/")
    one.hold("a")
    for other in (two, three):
        with pytest.raises(Held):
            other.hold("a")
        other.close()
    one.close()


@pytest.mark.parametrize("run", ["../../outside", "家", "a/b", "x" * 300, "", "nul\x00l", "CON", ".hidden", "half\ud83d"])
def test_any_run_has_a_lock_file_inside_the_folder(path: Path, run: str) -> None:
    store, other = open_store(path), open_store(path)
    store.hold(run)
    assert len(list(path.with_name(path.name + ".locks").iterdir())) == 1
    assert other.holder(run) is not None
    with pytest.raises(Held):
        other.hold(run)
    store.close()
    other.close()


def test_a_dead_holder_frees_its_run_at_once(path: Path) -> None:
    store = open_store(path)
    process = child(HOLD, path)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "held\n"
    holder = store.holder("run-a")
    assert holder is not None
    assert holder.process == process.pid
    with pytest.raises(Held, match=f"process {process.pid}"):
        store.hold("run-a")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert store.holder("run-a") is None
    assert [finding.code for finding in store.check()] == ["leftover_locks"]
    assert not store.check()[0].serious
    store.hold("run-a")
    assert store.check() == []
    store.release("run-a")
    process.stdin.close()
    process.stdout.close()
    store.close()


def test_leftover_lock_files_are_swept(path: Path) -> None:
    store = open_store(path)
    folder = path.with_name(path.name + ".locks")
    folder.mkdir()
    (folder / "dead.lock").write_text(json.dumps({"process": 1, "since": 0, "host": "x"}))
    (folder / "broken.lock").write_text("{")
    store.hold("alive")
    assert store.holder("dead") is None
    (finding,) = store.repair()
    assert finding.repaired
    assert [found.name for found in folder.iterdir()] == ["alive.lock"]
    store.close()


def test_a_holder_whose_file_cannot_be_read_holds_all_the_same(path: Path) -> None:
    store, other = open_store(path), open_store(path)
    store.hold("a")
    (path.with_name(path.name + ".locks") / "a.lock").write_text("")
    assert other.holder("a") == Holder(0, 0.0)
    with pytest.raises(Held, match="unknown"):
        other.hold("a")
    store.close()
    other.close()


def test_a_child_process_does_not_inherit_a_hold(path: Path) -> None:
    store, other = open_store(path), open_store(path)
    store.hold("run-a")
    started = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False)
    store.release("run-a")
    other.hold("run-a")
    other.release("run-a")
    started.communicate()
    store.hold("run-a")
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:  # the forked child: it holds nothing, writes nothing, and does not free its parent's lock
        code = 1
        try:
            with store.write("run-a", "x"):
                pass
        except StoreError:
            code = 0
        os.read(ready, 1)
        os._exit(code)
    with pytest.raises(Held):
        other.hold("run-a")
    store.release("run-a")
    other.hold("run-a")
    os.write(go, b"x")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    os.close(ready)
    os.close(go)
    store.close()
    other.close()


def test_asking_for_the_holder_does_not_get_in_its_way(path: Path) -> None:
    """Who asks takes the lock for a moment; whoever wants to hold the run meanwhile must not be told that it is held."""
    store = open_store(path)
    store.hold("a")
    store.release("a")
    asking = os.open(path.with_name(path.name + ".locks") / "a.lock", os.O_CREAT | os.O_RDWR)
    assert _locks._lock(asking)
    timer = threading.Timer(0.03, os.close, (asking,))
    timer.start()
    store.hold("a")
    timer.join()
    store.close()


def test_a_file_that_its_last_holder_took_away_is_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening the file and locking it, its holder may have given it back and removed it."""
    one, two, three = open_store(path), open_store(path), open_store(path)
    one.hold("a")
    lock = _locks._lock

    def late(file: int) -> bool:
        one.release("a")
        return lock(file)

    monkeypatch.setattr(_locks, "_lock", late)
    two.hold("a")
    monkeypatch.undo()
    with pytest.raises(Held):
        three.hold("a")
    for store in (one, two, three):
        store.close()


ORPHAN = """
import os, subprocess, sys, time
from fabula.store import open_store
store = open_store(sys.argv[1])
store.hold("run-a")
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
else:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False).pid
print(child, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_a_child_that_outlives_the_holder_does_not_keep_its_run(path: Path, way: str) -> None:
    store = open_store(path)
    process = child(ORPHAN, path, way)
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    with pytest.raises(Held):
        store.hold("run-a")
    process.kill()
    process.wait()
    store.hold("run-a")
    os.kill(orphan, signal.SIGKILL)
    process.communicate()
    store.close()
