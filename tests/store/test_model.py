"""Random histories against the naive model: any adapter must answer every question as lists and loops do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.store import (
    FAR,
    Address,
    CallRow,
    LaneRow,
    PieceRow,
    RaisedRow,
    RecordRow,
    Row,
    RunRow,
    StepRow,
    Store,
    WithdrawnRow,
    open_store,
)

from .naive import Naive

NAMES = ("aaa", "bbb", "ccc", "ddd")
LANES = ("main", "b")
WORDS = ("mira", "дом", "米拉", "storm", "🙂")
ABOUT = ("", "mira", "ivan")
STATUS = ("asked", "answered", "refused", "fallback", "failed", "partial", "broken")

times = st.integers(0, 4)
lanes = st.sampled_from(LANES)
words = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def rows_of(run: str) -> st.SearchStrategy[Row]:
    calls = st.builds(
        CallRow, st.just(run), lanes, times, st.just("p"), st.sampled_from(["", "x"]), st.integers(0, 1), st.just(0), st.sampled_from("fg"),
        st.sampled_from(STATUS), st.text(max_size=3), asked=st.integers(0, 12), request=st.sampled_from([{}, {"pure": True}]),
        usage=st.dictionaries(st.sampled_from(["prompt_tokens", "cost"]), st.integers(0, 9), max_size=2),
    )  # fmt: skip
    records = st.builds(
        RecordRow, st.text("xyz", min_size=1, max_size=2), st.just(run), lanes, times, st.just("add"), st.just({}),
        st.sampled_from(["run", "library"]), st.sampled_from(ABOUT), st.sampled_from(["model", "person", "import"]), words,
    )  # fmt: skip
    return st.one_of(
        st.builds(StepRow, st.just(run), lanes, times, st.integers(0, 2), st.integers(1, 9), st.integers(0, 99), st.just({})),
        st.builds(PieceRow, st.just(run), lanes, st.sampled_from(["p", "q"]), st.integers(0, 4), st.integers(-1, 4), st.integers(0, 99)),
        st.builds(RaisedRow, st.just(run), lanes, times, st.just("p"), st.integers(0, 3)),
        st.builds(WithdrawnRow, st.integers(1, 12), st.just(run), st.just("why")),
        st.builds(LaneRow, st.just(run), lanes, st.just(0)),
        calls,
        records,
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, list[Row]]]:
    """Transactions, as (run, rows); forks come in between, of any run that is there, at any cut and pin."""
    there: list[str] = []
    out: list[tuple[str, list[Row]]] = []
    for pos in range(1, draw(st.integers(2, 14))):
        if not there or (len(there) < len(NAMES) and draw(st.integers(0, 3)) == 0):
            run = NAMES[len(there)]
            parent = draw(st.sampled_from([None, *there]))
            cut, pin = (draw(st.integers(0, 5)), draw(st.integers(0, pos - 1))) if parent else (FAR, FAR)
            out.append((run, [RunRow(run, "k", "", "", "", {}, {}, parent, cut, pin)]))
            there.append(run)
        else:
            run = draw(st.sampled_from(there))
            out.append((run, draw(st.lists(rows_of(run), min_size=1, max_size=4))))
    return out


def lived(store: Store, history: list[tuple[str, list[Row]]]) -> Naive:
    """Write a history into the library and into the model. Where a call names a request that is none, it names none."""
    naive = Naive()
    for run, rows in history:
        with store.write(run, "k") as tx:
            for row in rows:
                if isinstance(row, CallRow):
                    here = (row.run, row.step, row.time, row.purpose, row.part, row.sample)
                    asked = [
                        c
                        for c in naive.of(CallRow)
                        if (c.run, c.step, c.time, c.purpose, c.part, c.sample) == here and c.status == "asked" and c.pos < tx.pos
                    ]
                    row = replace(row, asked=asked[-1].pos if asked and row.asked and row.status != "asked" else 0)
                    if row.status == "asked" and any(isinstance(r, CallRow) and r.status == "asked" and r.pos == tx.pos for r in naive.all):
                        continue  # one request a transaction, as its position names it
                tx.add(row)
                naive.all.append(replace(row, pos=tx.pos))
    return naive


@settings(max_examples=40)
@given(histories(), st.data())
def test_any_history_is_read_as_the_rules_say(history: list[tuple[str, list[Row]]], data: st.DataObject) -> None:
    store = open_store(":memory:")
    naive = lived(store, history)
    runs = [row.id for row in naive.of(RunRow)]
    bound = st.integers(0, 14) | st.just(FAR)
    for run in runs:
        line = store.line(run)
        assert line == naive.line(run)
        start, end = data.draw(times), data.draw(bound)
        steps = naive.steps(line, start, end)
        assert store.steps(line, start=start, end=end) == steps
        assert store.steps(line, start=start, end=end, newest_first=True, limit=2) == sorted_back(steps)[:2]
        ends: dict[str, tuple[int, int, int]] = {}
        for s in naive.steps(line):
            before = ends.get(s.step, (0, 0, 0))
            ends[s.step] = max(s.time, before[0]), max(s.until, before[1]), before[2] + 1
        assert store.reached(line) == ends
        after = data.draw(st.integers(0, 14))
        assert {(p.lane, p.name, p.version): p for p in store.pieces(line, after=after)} == naive.pieces(line, after)
        how: dict[str, Any] = {
            "lanes": data.draw(st.none() | st.lists(lanes, max_size=2)),
            "before": data.draw(bound),
            "read_at": data.draw(bound),
            "entities": data.draw(st.lists(st.sampled_from(ABOUT[1:]), max_size=2)),
            "after": after,
        }
        assert store.records(line, **how) == naive.records(line, **how)
        assert store.usage(run) == naive.usage(run)
        for lane in LANES:
            for time in range(5):
                assert store.step_at(line, lane, time) == naive.step_at(line, lane, time)
                assert store.undone(run, lane, time) == naive.undone(run, lane, time)
                assert store.raised(line, lane, time, "p") == naive.raised(line, lane, time, "p")
                address = Address(lane, time, "p", data.draw(st.sampled_from(["", "x"])), 0, 0)
                assert store.verdict(line, address, "f") == naive.verdict(line, address, "f")
        assert [type(row) for row in store.export(line)].count(StepRow) == sum(
            s.run == reach.run and s.pos <= reach.pin for reach in line for s in naive.of(StepRow)
        )
    assert store.pure("f") == naive.pure("f")
    assert store.known(["f", "g", "h", "f"]) == {name for name in "fgh" if naive.pure(name) is not None}
    terms = data.draw(st.lists(st.sampled_from(WORDS), max_size=3))
    among = data.draw(st.none() | st.lists(st.sampled_from(NAMES), max_size=3))
    wanted = naive.search(terms, among)
    found = store.search(terms, runs=among)
    assert sorted(found) == sorted(pair for pair, count in hits(naive, terms, among) if count)
    assert [wanted[pair] for pair in found] == sorted((wanted[pair] for pair in found), reverse=True) or len(set(found)) < len(found)
    store.close()


def hits(naive: Naive, terms: list[str], runs: list[str] | None) -> list[tuple[tuple[str, int], int]]:
    return [
        ((r.id, r.pos), len(set(terms) & set(r.terms.split()))) for r in naive.of(RecordRow) if r.terms and (runs is None or r.run in runs)
    ]


def sorted_back(steps: list[StepRow]) -> list[StepRow]:
    """The order of (time, step) backwards; of equal ones the latest first."""
    return sorted(steps, key=lambda s: (s.time, s.step, s.pos), reverse=True)


@settings(max_examples=15)
@given(histories())
def test_no_history_leaves_findings_but_those_that_it_made(history: list[tuple[str, list[Row]]]) -> None:
    store = open_store(":memory:")
    lived(store, history)
    allowed = {"withdrawn_nothing", "two_verdicts"}
    assert {finding.code for finding in store.check()} <= allowed
    store.repair()
    assert {finding.code for finding in store.check()} <= allowed
    store.close()
