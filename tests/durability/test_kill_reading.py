"""SPEC R7 on the real thing: kill -9 of a process that reads a tree over HTTP, eight at once; every resume ends as the unbroken one."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fabula.read import Reading, Study
from fabula.runs import replay
from fabula.store import open_store
from tests.durability import reader
from tests.read.reading import long_text
from tests.runs.ways import log


def _unbroken(path: Path, book: Path, address: str) -> tuple[dict[str, Any], dict[str, Any], float]:
    began = time.monotonic()
    process, _ = reader.begin(path, book, address, None)
    process.join(120)
    assert process.exitcode == 0
    with closing(open_store(path)) as store:
        return log(store, reader.RUN), _result(path), time.monotonic() - began


def _result(path: Path) -> dict[str, Any]:
    with closing(open_store(path)) as store:
        study = Study.open(store, reader.RUN)
        result = study.result()
        study.close()
        return {name: value for name, value in result.items() if name != "usage"}


def _killed_once(path: Path, book: Path, address: str, rng: random.Random, *, at_boundary: bool, took: float) -> bool:
    """Kill one opening; True if it fell inside a step. Nothing that is journaled is asked again."""
    before: set[str] = set()
    if path.exists():
        with closing(open_store(path)) as store:
            before = reader.answered_prompts(store)
    counted = reader.times_asked(address)
    process, go = reader.begin(path, book, address, rng.randrange(4, 80) if at_boundary else None)
    if not at_boundary:
        assert go.wait(60)
        time.sleep(rng.random() * took)
        process.kill()
    process.join(120)
    assert process.exitcode in (-9, 0)
    now = reader.times_asked(address)
    assert not {prompt for prompt in before if now[prompt] > counted[prompt]}, "a journaled answer was asked again"
    with closing(open_store(path)) as store:
        assert [f for f in store.check() if f.serious] == []
        return process.exitcode == -9 and reader.inside_a_step(store)


def _killed_often(folder: Path, kills: int, seed: int) -> int:
    """A reading killed again and again, half at write boundaries; the end equals the unbroken one. Returns how many fell inside a step."""
    rng, inside = random.Random(seed), 0
    book = folder / f"book-{seed}.md"
    book.write_text(long_text(reader.CHUNKS), "utf-8")
    with reader.server() as address:
        whole, result, took = _unbroken(folder / f"whole-{seed}.db", book, address)
        for number in range(kills):
            path = folder / f"killed-{seed}-{number // 5}.db"  # a new reading after every five kills
            inside += _killed_once(path, book, address, rng, at_boundary=number % 2 == 0, took=min(took, 1.0))
            if number % 5 == 4 or number == kills - 1:
                process, _ = reader.begin(path, book, address, None)
                process.join(120)
                assert process.exitcode == 0
                with closing(open_store(path)) as store:
                    assert log(store, reader.RUN) == whole
                    count, differences = asyncio.run(replay(store, Reading(), reader.RUN))
                assert count > reader.CHUNKS
                assert differences == []
                assert _result(path) == result
    return inside


def test_ten_kills(tmp_path: Path) -> None:
    inside = _killed_often(tmp_path, 10, seed=1)
    print(f"10 kills, {inside} inside a step")
    assert inside * 2 >= 10


@pytest.mark.soak
def test_a_hundred_kills(tmp_path: Path) -> None:
    inside = sum(_killed_often(tmp_path, 20, seed) for seed in range(100, 105))
    print(f"100 kills, {inside} inside a step")
    assert inside * 2 >= 100
