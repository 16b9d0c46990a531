"""Large values of pieces stay in the library: whoever looks at them notices nothing, and a long run opens in little memory."""

from __future__ import annotations

import asyncio
import base64
import json
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.runs import Run, _state, advance, create, diff, fork, replay, stale, stale_pieces
from fabula.runs._state import State, size
from fabula.store import FAR, UNREAD, PieceRow, Reach, Store
from tests.runs import test_rules as rules
from tests.runs.test_rules import go
from tests.runs.ways import Novel, Toy, Tree, library, new, opened


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = library(tmp_path / "a.db")
    yield held
    held.close()


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_state, "_SMALL", 0)
    monkeypatch.setattr(_state, "_LARGE", -1)
    monkeypatch.setattr(_state, "_KEPT", 0)


RULES = [
    rules.test_a_step_at_t_reads_version_t_and_writes_the_next,
    rules.test_only_changed_pieces_are_written_and_a_put_inside_the_interval_counts,
    rules.test_an_edit_counts_from_the_frontier_and_is_in_the_next_request,
    rules.test_edits_can_be_undone_before_and_after_a_step_has_read_them,
    rules.test_regenerate_asks_anew_and_swiping_back_asks_nothing,
    rules.test_regenerate_keeps_a_note_and_drops_edits_of_what_it_wrote,
    rules.test_withdrawing_in_a_tree_takes_along_what_it_reaches,
    rules.test_a_fork_shares_the_past_asks_nothing_again_and_differs_after_its_cut,
    rules.test_later_edits_and_steps_of_the_parent_do_not_reach_the_child,
    rules.test_a_fork_of_a_fork_replays,
    rules.test_what_rests_on_an_edit_is_stale_and_nothing_else,
    rules.test_a_run_opened_with_another_model_notes_it_as_state,
]


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rules_hold_with_every_value_left_in_the_library(store: Store, rule: Any) -> None:
    rule(store)


texts = st.sampled_from(["", "short", "long " * 30, "лодка " * 30, "船" * 90])
values = texts | st.none() | st.integers(0, 9) | st.lists(texts, max_size=3) | st.dictionaries(st.sampled_from("ab"), texts, max_size=2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), st.sampled_from("pq"), st.integers(0, 4), values), max_size=20), st.integers(0, 20))
def test_a_state_is_what_was_put_last(puts: list[tuple[str, str, int, Any]], opened_after: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_state, "_SMALL", 40)
        patched.setattr(_state, "_LARGE", 80)
        patched.setattr(_state, "_KEPT", 200)
        store = library(":memory:")
        run = create(store, Novel(), {"premise": "p"}, run="r")
        line = store.line(run)
        state = State(store, line)
        expected: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        for number, (lane, name, version, value) in enumerate(puts):
            if number == opened_after:
                state = State(store, line)
            with store.write(run, "edit") as tx:
                tx.add(PieceRow(run, lane, name, version, 0, value))
                pos = tx.pos
            state.put(PieceRow(run, lane, name, version, 0, value, pos=pos))
            held = expected.setdefault((lane, name), [])
            held.append((version, value))
            held.sort(key=lambda item: item[0])
        for one in (state, State(store, line)):
            for (lane, name), held in expected.items():
                rows = one.versions(lane, name)
                assert [(row.version, one.value(row)) for row in rows] == held
                for version in range(5):
                    row = one.row(lane, name, version)
                    upto = [value for v, value in held if v <= version]
                    assert (row is None) == (not upto)
                    assert row is None or one.value(row) == upto[-1]
                assert name in one.names(lane, FAR)
            assert one._kept <= 200 or len(one._read) == 1
            assert one._kept == sum(large for _, large in one._read.values())
            assert all(row.value is UNREAD or size(row.value) < 300 for row in one.rows())
            assert one.row("nowhere", "p", FAR) is None
        store.close()


def test_what_is_long_is_left_and_read_when_it_is_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = [f"{n} лодка" for n in range(3_000)], "x" * 900

    async def step(ctx: Any) -> int:
        ctx.put("long", [*long, ctx.time])
        ctx.put("short", short)
        return len(ctx.piece("long", default=[]))

    run = rules.one(store, step)
    assert [s.output for s in go(run, 3)] == [0, 3_001, 3_001]
    run.close()
    again = Run(store, run.recurrence, "one")
    assert [row.value is UNREAD for row in again._state.versions("main", "long")] == [True] * 3
    assert [row.value for row in again._state.versions("main", "short")] == [short]
    assert [row.value[-1] for row in again.versions("long")] == [0, 1, 2]
    assert again.version("main", "long", 2) == ([*long, 1], 2, again.written("main", "long", 2))
    assert again.piece("long")[-1] == 2
    read = 0
    rows = store.rows

    def counted(kind: Any, **how: Any) -> Any:
        nonlocal read
        read += 1
        return rows(kind, **how)

    monkeypatch.setattr(store, "rows", counted)
    for _ in range(3):
        again.piece("long", version=2)
    assert read == 0, "what was read last is still there"
    assert again.written("main", "nothing") == 0
    assert asyncio.run(replay(store, run.recurrence, "one")) == (3, [])


def test_store_pieces_leaves_what_is_longer_than_asked_for(store: Store) -> None:
    random = base64.b85encode(Random(1).randbytes(700)).decode()
    with store.write("a", "x") as tx:
        for name, value in (("a", "x" * 8), ("b", "x" * 9), ("c", random), ("d", None), ("e", "x" * 5_000)):
            tx.add(PieceRow("a", "m", name, 0, 0, value))
    found = {row.name: row.value for row in store.pieces([Reach("a")], most=10)}
    assert found == {"a": "x" * 8, "b": UNREAD, "c": UNREAD, "d": None, "e": UNREAD}
    found = {row.name: row.value for row in store.pieces([Reach("a")], most=9_000)}
    assert found == {"a": "x" * 8, "b": "x" * 9, "c": random, "d": None, "e": UNREAD}, "what is compressed may be of any length"
    whole = {row.name: row.value for row in store.pieces([Reach("a")])}
    assert whole == {"a": "x" * 8, "b": "x" * 9, "c": random, "d": None, "e": "x" * 5_000}


def test_a_run_of_many_lanes_opens_in_little_memory(tmp_path: Path) -> None:
    store = library(tmp_path / "many.db")
    count, length = 1_500, 12_000

    class Wide(Tree):
        def lanes(self, premise: Any) -> dict[str, tuple[int, int]]:
            return {f"0.{n}": (0, 1) for n in range(count)}

        def start(self, premise: Any) -> dict[tuple[str, str], Any]:
            return {(f"0.{n}", "chunk"): f"{n} " * (length // (1 + len(str(n)))) for n in range(count)}

    create(store, Wide(), {"chunks": []}, run="r")
    tracemalloc.start()
    try:
        run = Run(store, Wide(), "r")
        peak = tracemalloc.get_traced_memory()[1]
        for lane in run.lanes:
            assert run.piece("chunk", lane=lane).startswith(lane[2:])
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert peak < count * length / 10
    assert after < 8_000_000
    store.close()


def test_looking_at_what_is_stale_reads_only_what_was_edited(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_state, "_SMALL", 0)
    new(store, Tree())
    run = opened(store, Tree(), "run0", Toy())
    asyncio.run(advance(run))
    run.close()
    again = Run(store, Tree(), "run0", hold=True)
    again.edit({("0.3", "chunk"): "edited"})
    assert again.edited() == [("0.3", "chunk")]
    looked: list[PieceRow] = []
    value = State.value

    def watched(self: State, row: PieceRow) -> Any:
        looked.append(row)
        return value(self, row)

    monkeypatch.setattr(State, "value", watched)
    assert [s.step.step for s in stale(again)] == ["0.3", "1.1", "2.0", "3.0"]
    assert {(row.lane, row.name) for row in looked} == {("0.3", "chunk")}
    assert sorted(stale_pieces(again)) == ["0.3/text", "1.1/text", "2.0/text", "3.0/text"]
    assert {(row.lane, row.name) for row in looked} == {("0.3", "chunk")}


def test_two_branches_are_compared_by_what_they_do_not_share(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 3)
    child = opened(store, Novel(), fork(store, "run0", 2), Toy())
    child.edit({("book", "direction"): "left"})
    go(child, 1)
    found = diff(run, child).pieces
    assert "book/memory" in found
    assert "book/text:1" not in found
    assert found["book/direction"] == (None, "left")


def test_texts_whose_tokens_were_counted_do_not_pile_up(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    texts = [f"{n} " + "boat " * 30_000 for n in range(20)]
    counts = [run.count(text, 1.0) for text in texts]
    assert sum(map(len, run._counts)) <= 1_000_000
    assert [run.count(text, 2.0) for text in texts] == [2 * count for count in counts]


def test_sizes_are_about_right() -> None:
    for value in ("x" * 500, ["ab"] * 100, {"k": [1, 2.5, None, True, "лодка" * 40]}, {"a": {"b": "c" * 99}}):
        assert 0.6 < size(value) / len(json.dumps(value, ensure_ascii=False)) < 1.8
