"""Who goes when: the schedule answers as asking everybody each time does, but in linear work; limits, withdrawals and edits meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import InputError, LimitReached, NotPossible, StepFailed
from fabula.models import Scripted
from fabula.runs import Context, Limits, Noted, Recurrence, Run, StepBegun, _drive, advance, create, replay
from fabula.store import FAR, CallRow, StepRow, Store, WithdrawnRow
from tests.runs.ways import MARK, Town, Toy, Tree, library, log, mark_of, new, opened, run_virtual, said, share


@pytest.fixture
def store() -> Any:
    held = library(":memory:")
    yield held
    held.close()


class Told(Tree):
    """The tree that says whom a lane waits for."""

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
        return self.children(lane)


class ToldTown(Town):
    """The town that says so of some lanes and of others not."""

    def __init__(self, told: str = "abcdef"):
        self.told = told

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
        return [other for other in reversed(run.lanes) if other != lane] if lane[0] in self.told else None


# -- the same as asking everybody --------------------------------------------------------------------------------------------


async def plain(run: Run, *, until: int = FAR, steps: int | None = None, lock_step: bool = False, lanes: Any = None) -> None:
    """The rule once more, as simply as it can be said: after each commit look at all lanes, and of each at all others."""
    running, begun, barrier = run.running, 0, -1
    driven = run.lanes if lanes is None else lanes

    def blocked(lane: str) -> bool:
        time = run.next[lane]
        return any(
            since < min(time, run.lanes[other][1]) and run.recurrence.reaches(run, other, since, lane, time)
            for other, since in run.next.items()
            if other != lane
        )

    while True:
        if not running and run.recurrence.finished(run):
            return
        busy = {lane for among, _ in running.values() for lane in among}
        open_lanes = [lane for lane in driven if run.next[lane] < min(until, run.lanes[lane][1])]
        low = min((run.next[lane] for lane in open_lanes), default=until)
        for lane in sorted(open_lanes, key=lambda name: (run.next[name], name)):
            time = run.next[lane]
            if steps is not None and begun >= steps:
                break
            if lane in busy or (lock_step and (time > low or (running and barrier != low))) or blocked(lane):
                continue
            together = run.recurrence.joins(run, lane, time)
            if any(other in busy or run.next[other] != time or blocked(other) or other not in driven for other in together):
                continue
            barrier = low
            running[asyncio.ensure_future(_drive.one_step(run, together, time))] = together, time
            busy |= set(together)
            begun += 1
        if not running:
            return
        finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            running.pop(task)
            task.result()


def lived(way: Recurrence, drive: Any, seed: str, how: Mapping[str, Any]) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """What began, in that order, and the log."""
    store = library(":memory:")
    model, began = Toy(delay=(0.5, 12.0), delay_seed=seed), []

    def heard(event: Any) -> None:
        if isinstance(event, StepBegun):
            began.append((event.step, event.time))

    premise: dict[str, Any] = {"agents": {f"{name}{n}": n * 3 for n, name in enumerate("abcdef")}} if isinstance(way, Town) else {}
    if isinstance(way, Tree):
        premise = {"chunks": [f"chunk {n}" for n in range(13)]}
    new(store, way, model, **premise)
    run = opened(store, way, "run0", model, listen=heard)
    run_virtual(drive(run, **how))
    out = log(store, "run0")
    store.close()
    return began, out


HOW: dict[str, dict[str, Any]] = {
    "all": {},
    "lock-step": {"lock_step": True},
    "some steps": {"steps": 9},
    "until 1": {"until": 1},
}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@pytest.mark.parametrize("seed", ["x", "y"])
def test_a_tree_goes_as_if_everybody_was_asked(how: dict[str, Any], seed: str) -> None:
    expected = lived(Tree(), plain, seed, how)
    assert lived(Tree(), advance, seed, how) == expected
    assert lived(Told(), advance, seed, how) == expected
    assert len(expected[0]) > 5


@pytest.mark.parametrize("how", [{"until": 6}, {"until": 4, "lock_step": True}, {"steps": 41}], ids=json.dumps)
@pytest.mark.parametrize("seed", ["x", "y"])
def test_a_town_goes_as_if_everybody_was_asked(how: dict[str, Any], seed: str) -> None:
    expected = lived(Town(), plain, seed, how)
    assert any("+" in step for step, _ in expected[0]), "somebody talks"
    for way in (Town(), ToldTown(), ToldTown("ace")):
        assert lived(way, advance, seed, how) == expected


@pytest.mark.parametrize("way", [Tree, Told])
def test_only_some_lanes(way: type[Tree]) -> None:
    lanes = [*(f"0.{n}" for n in range(5)), "1.0", "1.1", "1.2", "2.0"]
    expected = lived(way(), plain, "x", {"lanes": lanes})
    assert lived(way(), advance, "x", {"lanes": lanes}) == expected
    assert sorted(step for step, _ in expected[0]) == ["0.0", "0.1", "0.2", "0.3", "0.4", "1.0", "1.1", "2.0"], "1.2 waits for 0.5"


def test_a_step_together_with_a_lane_that_is_not_driven_is_not_made() -> None:
    expected = lived(Town(), plain, "x", {"until": 6, "lanes": ["a0", "b1"]})
    for way in (Town(), ToldTown()):
        assert lived(way, advance, "x", {"until": 6, "lanes": ["a0", "b1"]}) == expected


class Dice(Recurrence):
    """Lanes by dice: who reaches whom, who joins whom, how far a step goes. `turn` is what somebody changes meanwhile."""

    kind, single = "toy-dice", False

    def __init__(self, dice: str, count: int, told: float):
        self.dice, self.count, self.told, self.turn = dice, count, told, 0

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        return {f"l{n}": (int(2 * share(self.dice, "born", n)), 2 + int(12 * share(self.dice, "ends", n))) for n in range(self.count)}

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        return share(self.dice, self.turn, source, since, target, time) < 0.35

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
        if share(self.dice, "told", lane, time) >= self.told:
            return None
        return sorted(run.lanes, key=lambda other: share(self.dice, lane, time, other))

    def joins(self, run: Run, lane: str, time: int) -> tuple[str, ...]:
        other = f"l{int(self.count * share(self.dice, 'other', lane, time))}"
        return tuple(sorted((lane, other))) if other != lane and share(self.dice, "joins", lane, time) < 0.3 else (lane,)


def diced(dice: str, count: int, told: float, drive: Any, how: Mapping[str, Any], meanwhile: float) -> list[tuple[Any, ...]]:
    """What began, and when."""
    store, way, began = library(":memory:"), Dice(dice, count, told), []
    create(store, way, {}, run="r")
    run = Run(store, way, "r", hold=True)

    async def step(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
        began.append((lanes, time, asyncio.get_running_loop().time()))
        await asyncio.sleep(0.1 + share(dice, "takes", lanes, time))
        for lane in lanes:
            run.next[lane] = time + 1 + (share(dice, "far", lanes, time) < 0.3)
        return StepRow(run.id, "+".join(lanes), time, 1, run.next[lanes[0]], None, {})

    async def main() -> None:
        driving = asyncio.ensure_future(drive(run, **how))
        if meanwhile:
            await asyncio.sleep(meanwhile)
            way.turn = 1
            busy = {lane for lanes, _ in run.running.values() for lane in lanes}
            for lane in run.lanes.keys() - busy:
                if share(dice, "back", lane) < 0.3:  # withdrawn
                    run.next[lane] = max(run.lanes[lane][0], run.next[lane] - 1)
            run.changes += 1
        await driving

    before, _drive.one_step = _drive.one_step, step
    try:
        run_virtual(main())
    finally:
        _drive.one_step = before
        store.close()
    return began


@settings(max_examples=80, deadline=None)
@given(
    st.text("abcdef", min_size=6, max_size=6),
    st.integers(2, 9),
    st.sampled_from([0.5, 1.0, 1.0]),
    st.fixed_dictionaries({"lock_step": st.booleans(), "until": st.sampled_from([FAR, FAR, 3]), "some": st.booleans()}),
    st.sampled_from([0.0, 0.3, 0.7, 1.1, 1.9]),
)
def test_whatever_the_rule_the_order_is_the_same(dice: str, count: int, told: float, how: dict[str, Any], meanwhile: float) -> None:
    how = dict(how)
    if how.pop("some"):
        how["lanes"] = [f"l{n}" for n in range(count) if share(dice, "driven", n) < 0.8] or ["l0"]
    expected = diced(dice, count, told, plain, how, meanwhile)
    assert diced(dice, count, told, advance, how, meanwhile) == expected


# -- how many at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_no_more_at_once_and_the_same_in_the_end(store: Store, at_once: int) -> None:
    expected = lived(Tree(), plain, "x", {})[1]
    most = []

    def heard(event: Any) -> None:
        most.append(len(run.running))

    model = Toy(delay=(0.5, 12.0), delay_seed="z")
    new(store, Told(), model, chunks=[f"chunk {n}" for n in range(13)])
    run = opened(store, Told(), "run0", model, listen=heard)
    done, _ = run_virtual(advance(run, at_once=at_once))
    assert max(most) == at_once
    assert log(store, "run0") == expected
    assert len(done) == 23
    if at_once == 1:
        assert [(s.time, s.step) for s in done] == sorted((s.time, s.step) for s in done)
    assert asyncio.run(replay(store, Told(), "run0")) == (23, [])


def test_a_lane_that_is_not_there_and_none_at_once_are_refused(store: Store) -> None:
    new(store, Told())
    run = opened(store, Told(), "run0", Toy())
    with pytest.raises(InputError, match=r"no lane .7\.7."):
        asyncio.run(advance(run, lanes=["0.1", "7.7"]))
    with pytest.raises(InputError, match="At least one"):
        asyncio.run(advance(run, at_once=0))

    class Wrong(Told):
        def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
            return ["elsewhere"]

    run.recurrence = Wrong()
    with pytest.raises(NotPossible, match="'elsewhere'"):
        asyncio.run(advance(run))
    assert store.rows(CallRow) == []


# -- linear work -----------------------------------------------------------------------------------------------------------------


class Counted(Told):
    """A tree whose steps cost nothing, which counts what it is asked."""

    def __init__(self, wide: int | None = None):
        self.wide, self.asked, self.waits, self.looks = wide, 0, 0, 0

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        if self.wide is None:
            return super().lanes(premise)
        return {**{f"0.{n}": (0, 1) for n in range(self.wide)}, "1.0": (1, 2)}

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        return {}

    def children(self, lane: str) -> list[str]:
        return super().children(lane) if self.wide is None or lane != "1.0" else [f"0.{n}" for n in range(self.wide)]

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        self.asked += 1
        return int(target.split(".")[0]) > int(source.split(".")[0])

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str] | None:
        self.waits += 1
        way = self

        class Looked(list[str]):
            def __getitem__(self, at: Any) -> Any:
                way.looks += 1
                return super().__getitem__(at)

        return Looked(self.children(lane))


async def empty(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
    for lane in lanes:
        run.next[lane] = time + 1
    return StepRow(run.id, "+".join(lanes), time, 1, time + 1, None, {})


async def by_dice(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
    await asyncio.sleep(1 + share(*lanes, time))
    return await empty(run, lanes, time)


@pytest.mark.parametrize("at_once", [None, 8])
def test_a_tree_of_many_lanes_is_scheduled_in_linear_work(store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int | None) -> None:
    monkeypatch.setattr(_drive, "one_step", by_dice)
    way = Counted()
    create(store, way, {"chunks": [""] * 2_048}, run="r")
    run = Run(store, way, "r", hold=True)
    done, _ = run_virtual(advance(run, at_once=at_once))
    assert len(done) == 4_095
    assert way.asked <= 2 * len(done)
    assert way.waits <= len(done)


@pytest.mark.parametrize("at_once", [None, 50])
def test_one_lane_that_waits_for_very_many(store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int | None) -> None:
    async def in_turn(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
        await asyncio.sleep(1 + int(lanes[0][2:]) / 10_000)
        return await empty(run, lanes, time)

    monkeypatch.setattr(_drive, "one_step", in_turn)
    way = Counted(wide=2_000)
    create(store, way, {"chunks": []}, run="r")
    run = Run(store, way, "r", hold=True)
    done, _ = run_virtual(advance(run, at_once=at_once))
    assert done[-1].step == "1.0"
    assert way.asked <= 2 * 2_000
    assert 0 < way.looks <= 2 * 2_000


def test_withdrawing_in_a_tree_of_many_lanes_is_linear_work(store: Store) -> None:
    way = Counted()
    create(store, way, {"chunks": [""] * 1_024}, run="r")
    with store.write("r", "commits") as tx:
        for lane, (born, ends) in way.lanes({"chunks": [""] * 1_024}).items():
            tx.add(StepRow("r", lane, born, 1, ends, None, {}))
    with store.write("r", "more") as tx:
        tx.add(StepRow("r", "0.0", 1, 1, 2, None, {}))
    run = Run(store, way, "r", hold=True)
    way.asked = way.waits = 0
    live = store.steps(run.line)
    from fabula.runs._schedule import reached

    gone, since = reached(run, live, "0.5", 0)
    assert [s.step for s in gone] == [f"{h}.{5 >> h}" for h in range(11)]
    assert since == {f"{h}.{5 >> h}": h for h in range(11)}
    assert way.waits <= len(live)
    assert way.asked <= 2 * len(gone)


# -- withdrawing -------------------------------------------------------------------------------------------------------------------


def plainly_reached(run: Run, live: Sequence[StepRow], step: str, time: int) -> list[StepRow]:
    """All that a step could have reached, as long as anything is found."""
    first: dict[str, int] = {}
    for s in live:
        if (s.step, s.time) == (step, time):
            first = dict.fromkeys(step.split("+"), time)
    changed = bool(first)
    while changed:
        changed = False
        for s in live:
            hit = any(
                s.time >= since and (lane == source or (s.time > since and run.recurrence.reaches(run, source, since, lane, s.time)))
                for lane in s.step.split("+")
                for source, since in first.items()
            )
            for lane in s.step.split("+") if hit else ():
                if s.time < first.get(lane, FAR):
                    first[lane], changed = s.time, True
    return [s for s in live if any(s.time >= first.get(lane, FAR) for lane in s.step.split("+"))]


@pytest.mark.parametrize(
    "way", [Town(), ToldTown(), ToldTown("ace"), Tree(), Told()], ids=lambda w: f"{type(w).__name__}{getattr(w, 'told', '')}"
)
def test_what_a_step_takes_along_is_what_it_could_have_reached(store: Store, way: Recurrence) -> None:
    from fabula.runs._schedule import reached

    premise: dict[str, Any] = {"agents": {f"{name}{n}": n * 4 for n, name in enumerate("abcdef")}} if isinstance(way, Town) else {}
    new(store, way, **premise)
    run = opened(store, way, "run0", Toy())
    run_virtual(advance(run, until=7))
    live = store.steps(run.line)
    sizes = set()
    for s in live:
        gone, _ = reached(run, live, s.step, s.time)
        assert gone == plainly_reached(run, live, s.step, s.time)
        sizes.add(len(gone))
    assert len(sizes) > 3
    assert reached(run, live, "nobody", 0) == ([], {})


@pytest.mark.parametrize("way", [Tree, Told])
def test_a_step_in_flight_is_cancelled_with_what_it_read_however_far_away_that_came_from(store: Store, way: type[Tree]) -> None:
    """A leaf is withdrawn while the root is being made: the root reads the middle, the middle read the leaf."""
    slow = Toy()

    class Slow(Toy):
        async def stream(self, request: Any) -> Any:
            if request.purpose == "merge":
                await asyncio.sleep(5.0)
            async for event in slow.stream(request):
                yield event

    new(store, way(), chunks=["a", "b", "c", "d"])
    run = opened(store, way(), "run0", Slow())

    async def main() -> Any:
        driving = asyncio.ensure_future(advance(run))
        await asyncio.sleep(7.0)
        assert [step for step, _ in run.running.values()] == [("2.0",)]
        gone = run.withdraw("0.1", 0, "changed", carry=False)
        assert sorted(s.step for s in gone) == ["0.1", "1.0"]
        return await driving

    done, _ = run_virtual(main())
    assert [s.step for s in done[-3:]] == ["0.1", "1.0", "2.0"]
    live = {s.step: s for s in store.steps(run.line)}
    assert live["2.0"].uses["pieces"]["1.0/text"] == live["1.0"].pos
    assert (live["0.1"].take, live["1.0"].take, live["2.0"].take) == (2, 2, 1)
    assert len(store.rows(WithdrawnRow)) == 2
    assert asyncio.run(replay(store, way(), "run0")) == (7, [])


def test_what_changes_the_state_otherwise_than_by_a_step_is_noticed(store: Store) -> None:
    new(store, Told())
    run = opened(store, Told(), "run0", Toy())
    asyncio.run(advance(run, steps=3))
    before = run.changes
    pos = run.edit({("0.5", "chunk"): "edited"})
    assert run.changes > before
    between = run.changes
    run.undo_edit(pos)
    assert run.changes > between
    between = run.changes
    run.withdraw("0.0", 0, "changed")
    assert run.changes > between


# -- limits ------------------------------------------------------------------------------------------------------------------------


def capped(store: Store, limits: Limits, *, at_once: int = 8, way: Recurrence | None = None) -> tuple[Run, Toy, LimitReached]:
    model = Toy(delay=(0.5, 12.0), delay_seed="x")
    way = way or Told()
    new(store, way, model, chunks=[f"chunk {n}" for n in range(13)])
    run = opened(store, way, "run0", model, limits=limits)
    with pytest.raises(LimitReached) as caught:
        run_virtual(advance(run, at_once=at_once))
    return run, model, caught.value


@pytest.mark.parametrize("calls", [1, 5, 13, 20])
def test_at_a_limit_what_is_in_flight_is_received_and_nothing_more_is_asked(store: Store, calls: int) -> None:
    expected = lived(Tree(), plain, "x", {})[1]
    run, model, error = capped(store, Limits(calls=calls))
    assert error.exit_code == 3
    assert error.details["limit"] == "calls"
    assert len(model.requests) == store.usage("run0")["calls"] == calls
    rows = store.rows(CallRow)
    assert sorted(row.asked for row in rows if row.status == "answered") == [row.pos for row in rows if row.status == "asked"]
    assert run.running == {}
    assert len(store.steps(run.line)) == calls, "every answer that was paid for went into a step"
    run.limits = Limits()
    run_virtual(advance(run, at_once=8))
    assert log(store, "run0") == expected
    assert len(model.requests) == 23, "nothing was asked twice"


def test_a_limit_of_tokens_stops_as_cleanly(store: Store) -> None:
    run, _, error = capped(store, Limits(tokens=1_200))
    assert error.details["limit"] == "tokens"
    usage = store.usage("run0")
    assert usage["prompt_tokens"] + usage["answer_tokens"] <= 1_200
    assert not [row for row in store.rows(CallRow, status="asked") if not store.rows(CallRow, asked=row.pos)]
    run.limits = Limits()
    done, _ = run_virtual(advance(run))
    assert len(done) + usage["calls"] == 23


def test_at_a_limit_a_step_in_flight_may_go_on_within_it_and_reach_it_itself(store: Store) -> None:
    class Twice(Told):
        async def step(self, ctx: Context) -> Any:
            first = await ctx.ask("one", said(ctx.lanes[0], MARK))
            second = await ctx.ask("two", said(first.text, MARK))
            return second.text

    run, model, _ = capped(store, Limits(calls=9), at_once=4, way=Twice())
    assert len(model.requests) == 9
    verdicts = [row for row in store.rows(CallRow) if row.status == "answered"]
    assert len(verdicts) == 9
    asked = len(model.requests)
    run.limits = Limits()
    run_virtual(advance(run, at_once=4))
    assert len(model.requests) == 46, "nothing was asked twice"
    assert asked == 9


def test_what_fails_while_a_limit_is_waited_out_is_said_and_the_limit_is_raised(store: Store) -> None:
    heard: list[Any] = []

    class Fails(Told):
        async def step(self, ctx: Context) -> Any:
            await ctx.ask("chunk", said(ctx.lanes[0], MARK))
            if ctx.lanes[0] == "0.1":
                await asyncio.sleep(50.0)
                raise StepFailed("the sky fell")
            await ctx.ask("more", said(ctx.lanes[0] + "!", MARK))

    new(store, Fails(), chunks=["a", "b", "c"])
    run = opened(store, Fails(), "run0", Toy(), limits=Limits(calls=3), listen=heard.append)
    with pytest.raises(LimitReached):
        run_virtual(advance(run, at_once=2))
    assert [event.text for event in heard if isinstance(event, Noted)] == ["Step 0.1 failed while the limit was waited out: the sky fell"]


def test_any_other_failure_cancels_what_is_in_flight(store: Store) -> None:
    model = Scripted(mark_of)

    class Fails(Told):
        async def step(self, ctx: Context) -> Any:
            if ctx.lanes[0] == "0.0":
                await asyncio.sleep(1.0)
                raise StepFailed("the sky fell")
            await asyncio.sleep(2.0)

    new(store, Fails(), model)
    run = opened(store, Fails(), "run0", model)
    with pytest.raises(StepFailed):
        run_virtual(advance(run))
    assert run.running == {}
    assert store.steps(run.line) == []


def test_cancelling_while_a_limit_is_waited_out_ends_at_once(store: Store, tmp_path: Path) -> None:
    model = Toy(delay=(5.0, 50.0), delay_seed="x")
    new(store, Told(), model, chunks=[f"chunk {n}" for n in range(13)])
    run = opened(store, Told(), "run0", model, limits=Limits(calls=4))

    async def main() -> None:
        driving = asyncio.ensure_future(advance(run, at_once=6))
        await asyncio.sleep(2.0)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving

    run_virtual(main())
    assert run.running == {}
    assert store.usage("run0")["calls"] == 4
    assert store.rows(CallRow, status="answered") == []
