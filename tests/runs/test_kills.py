"""Durability (SPEC M3): killed at any write boundary, a resumed run equals the unbroken one, and no journaled answer is asked again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import NotFound
from fabula.runs import advance, replay
from fabula.store import CallRow
from tests.runs import ways
from tests.runs.ways import UNTIL, WAYS, Killed, Toy, library, log, new, opened


def drive(path: Path, kind: str, *, kill_at: int | None = None, asked: list[Any] | None = None) -> tuple[dict[str, Any] | None, int]:
    """One opening; (log, boundaries passed), or (None, …) where it was killed at the boundary `kill_at`."""
    passed = 0

    def fault(_name: str) -> None:
        nonlocal passed
        passed += 1
        if kill_at is not None and passed >= kill_at:
            raise Killed

    store = library(path, fault)
    way = WAYS[kind]()
    model = Toy(invalid=0.25)
    try:
        try:
            store.run("run0")
        except NotFound:
            new(store, way, model)
        run = opened(store, way, "run0", model)
        asyncio.run(advance(run, until=UNTIL[kind]))
        run.close()
        return log(store, "run0"), passed
    except Killed:
        return None, passed
    finally:
        if asked is not None:
            asked += model.requests
        store.close()


def answered(path: Path) -> set[int]:
    """Seeds, which name the addresses, of the calls that have a verdict in the journal."""
    store = library(path)
    asked = {c.pos: c for c in store.rows(CallRow, status="asked")}
    verdicts = [c for c in store.rows(CallRow) if c.status in ("answered", "refused")]
    seeds = {int(asked[c.asked].request["seed"]) for c in verdicts if not asked[c.asked].request["pure"]}
    store.close()
    return seeds


@pytest.mark.parametrize("kind", ["toy-novel", "toy-tree", "toy-town"])
def test_killed_at_write_boundaries(kind: str, tmp_path: Path) -> None:
    whole, boundaries = drive(tmp_path / "whole.db", kind)
    assert boundaries > 40
    stride = {"toy-novel": 13, "toy-tree": 31, "toy-town": 61}[kind]
    for number, at in enumerate(range(1, boundaries, stride)):
        path = tmp_path / f"{at}.db"
        got, _ = drive(path, kind, kill_at=at)
        assert got is None
        if number % 3 == 0:  # some are killed twice
            drive(path, kind, kill_at=5)
        before = answered(path)
        again: list[Any] = []
        got, _ = drive(path, kind, asked=again)
        assert got == whole, f"killed at boundary {at}"
        twice = [r for r in again if r.purpose != "chunk" and r.seed in before]
        assert not twice, f"asked again after boundary {at}"


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["toy-novel", "toy-tree", "toy-town"])
def test_killed_at_every_write_boundary(kind: str, tmp_path: Path) -> None:
    whole, boundaries = drive(tmp_path / "whole.db", kind)
    for at in range(1, boundaries):
        path = tmp_path / f"{at}.db"
        drive(path, kind, kill_at=at)
        got, _ = drive(path, kind)
        assert got == whole, f"killed at boundary {at}"
    print(f"{kind}: killed at {boundaries - 1} boundaries")


@pytest.mark.parametrize("kind", ["toy-novel", "toy-tree", "toy-town"])
def test_every_step_replays_from_the_journal_alone(kind: str, tmp_path: Path) -> None:
    drive(tmp_path / "a.db", kind)
    store = library(tmp_path / "a.db")
    count, differences = asyncio.run(replay(store, WAYS[kind](), "run0"))
    assert count > 3
    assert differences == []


def test_a_planted_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay can fail: a step whose code changed comes out otherwise."""
    drive(tmp_path / "a.db", "toy-novel")
    store = library(tmp_path / "a.db")
    monkeypatch.setattr(ways, "digest", lambda *parts: "other")
    _, differences = asyncio.run(replay(store, WAYS["toy-novel"](), "run0"))
    assert {d.what for d in differences} == {"pieces"}


def town(path: Path, delay: tuple[float, float] | None, seed: str, *, lock_step: bool) -> tuple[dict[str, Any], float]:
    store = library(path)
    way, model = WAYS["toy-town"](), Toy(delay=delay, delay_seed=seed)
    new(store, way, model, agents={f"a{n}": n * 3 for n in range(6)})
    run = opened(store, way, "run0", model)
    _, took = ways.run_virtual(advance(run, until=8, lock_step=lock_step))
    run.close()
    out = log(store, "run0")
    store.close()
    return out, took


def test_out_of_order_equals_lock_step_and_is_faster(tmp_path: Path) -> None:
    slow, long = town(tmp_path / "lock.db", (0.5, 12.0), "x", lock_step=True)
    for seed in ("y", "z"):
        free, short = town(tmp_path / f"{seed}.db", (0.5, 12.0), seed, lock_step=False)
        assert free == slow
        assert short < long
