"""SPEC M3 on the real thing: kill -9 of a process that writes a story over HTTP; every resume ends as DESIGN 3 says."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from fabula.runs import replay
from fabula.store import CallRow
from fabula.write import Novel, Story
from tests.durability import writer
from tests.runs.ways import log


def _unbroken(path: Path, address: str) -> tuple[dict[str, object], str, float, int]:
    started = time.monotonic()
    process, _ = writer.start(path, address, None)
    process.join(120)
    assert process.exitcode == 0
    took = time.monotonic() - started
    store = writer.journal(path)
    out = log(store, writer.RUN), Novel.open(store, writer.RUN).text(), took, store.position()
    store.close()
    return out


def _killed_once(path: Path, address: str, rng: random.Random, *, at_boundary: bool, took: float, boundaries: int) -> bool:
    """Kill one opening; True if it fell inside a step. Checks that the journal is whole and that nothing journaled was asked again."""
    before_kill: set[int] = set()
    if path.exists():
        store = writer.journal(path)
        before_kill = writer.verdict_seeds(store)
        store.close()
    counted = writer.times_asked(address)
    process, go = writer.start(path, address, rng.randrange(2, boundaries) if at_boundary else None)
    if not at_boundary:
        assert go.wait(60)
        time.sleep(rng.random() * took)
        process.kill()
    process.join(120)
    assert process.exitcode in (-9, 0)
    store = writer.journal(path)
    inside = process.exitcode == -9 and writer.inside_a_step(store)
    assert [f for f in store.check() if f.serious] == []
    again = {seed for seed in before_kill if writer.times_asked(address)[seed] > counted[seed]}
    assert not again, "a journaled answer was asked again"
    store.close()
    return inside


def _session(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """One story killed many times, half at write boundaries; the end equals the unbroken one. Returns (kills, inside a step)."""
    rng = random.Random(seed)
    with writer.server() as address:
        whole, text, took, _ = _unbroken(folder / f"whole-{seed}.db", address)
        path, inside = folder / f"killed-{seed}.db", 0
        for number in range(kills):
            at = number % 2 == 0
            inside += _killed_once(path, address, rng, at_boundary=at, took=min(took, 0.5), boundaries=24)
        process, _ = writer.start(path, address, None)
        process.join(120)
        assert process.exitcode == 0
    store = writer.journal(path)
    assert Novel.open(store, writer.RUN).text() == text
    assert log(store, writer.RUN) == whole
    count, differences = asyncio.run(replay(store, Story(), writer.RUN))
    assert count >= writer.STEPS
    assert differences == []
    statuses = {c.status for c in store.rows(CallRow)}
    assert "answered" in statuses
    store.close()
    return kills, inside


def test_twenty_kills(tmp_path: Path) -> None:
    results = [_session(tmp_path, 10, seed) for seed in (1, 2)]
    kills, inside = (sum(r[i] for r in results) for i in (0, 1))
    print(f"{kills} kills, {inside} inside a step")
    assert inside * 2 >= kills


@pytest.mark.soak
def test_two_hundred_kills(tmp_path: Path) -> None:
    results = [_session(tmp_path, 10, seed) for seed in range(100, 120)]
    kills, inside = (sum(r[i] for r in results) for i in (0, 1))
    print(f"{kills} kills, {inside} inside a step")
    assert inside * 2 >= kills
