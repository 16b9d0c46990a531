"""What every adapter must do, each rule by a small example."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import FabulaError, InputError, NotFound, StoreError
from fabula.store import (
    FAR,
    LIBRARY,
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
    RaisedRow,
    Reach,
    RecallRow,
    RecordRow,
    Row,
    RunRow,
    StepRow,
    Store,
    TakenRow,
    TextRow,
    VectorRow,
    WithdrawnRow,
    text_hash,
)

from .conftest import Make

ASKED = CallRow(
    "run-a", "main", 3, "passage", "beat-2", 1, 2, "f" * 64, "asked",
    prompt=(("system", "Be brief."), ("user", "Пиши. " * 400)),
    model="m", wall=1.5, usage={"prompt_tokens": 10, "cost": 0.5},
    request={"schema": {"type": "object"}, "sampling": {"temperature": 0.7}, "seed": 5},
)  # fmt: skip
REFUSED = CallRow(
    "run-a", "main", 3, "passage", "beat-2", 1, 2, "f" * 64, "refused", "她走了。" * 500, "wrong language", "stop",
    notes=("dropped top_k",), sequence=3, asked=1,
)  # fmt: skip
USES = {"calls": [1], "recalls": ["p"], "pieces": {"plan": 2}, "seen": [["b", "x", 1]]}
EVERY: tuple[Row, ...] = (
    RunRow("run-a", "write", "Дом · 家", "seed", "model seed", {"say": "她说：「走」", "n": [1, 2.5, None, True]}, {"ratio": 1.25}),
    LaneRow("run-a", "main", 0, 7),
    BegunRow("run-a", "main", 3, 1, 12, 3.5, 1700000000.25),
    StepRow("run-a", "main", 3, 1, 4, {"passage": "Mira “left”.\n🙂"}, USES),
    WithdrawnRow(4, "run-a", "undo"),
    RaisedRow("run-a", "main", 3, "passage", 2),
    ASKED,
    REFUSED,
    RecallRow("run-a", "main", 3, 1, "memories", "q" * 64, {"ids": ["r1"], "scores": [0.5], "cut": []}),
    PieceRow("run-a", "main", "plan", 4, 3, ["a", {"b": "c"}], "person"),
    IntakeRow("run-a", 5, 17),
    RecordRow("rec-1", "run-a", "main", 3, "add", {"text": "A boat."}, "library", "mira", "person", "mira own boat", "h" * 64),
    TextRow("run-a", text_hash("第一章\n\n" + "Море. " * 900), "第一章\n\n" + "Море. " * 900),
    VectorRow("h" * 64, "e5", b"\x00\x01" * 384),
    InboxRow("run-a", "set", {"object": "stove", "state": "on fire"}, 3.25),
    TakenRow(3, "run-a"),
    FactRow("token_ratio:m", 1.25),
)


def put(store: Store, run: str, *rows: Row, kind: str = "test") -> int:
    with store.write(run, kind) as tx:
        for row in rows:
            tx.add(row)
        return tx.pos


@pytest.mark.parametrize("row", EVERY, ids=lambda row: type(row).__name__)
def test_a_row_comes_back_as_it_was_written(store: Store, row: Row) -> None:
    put(store, "x")
    pos = put(store, "run-a", replace(row, pos=99))
    assert store.rows(type(row)) == [replace(row, pos=pos)]
    assert store.rows(type(row), pos=pos) == store.rows(type(row), pos=Between(pos, pos)) == store.rows(type(row), pos=Among((pos, 77)))
    assert store.rows(type(row), pos=pos - 1) == []


def test_positions_count_transactions(make: Make) -> None:
    store = make(clock=lambda: 12.5)
    assert store.position() == 0
    first = put(store, "a", kind="one")
    second = put(store, "b", FactRow("x", 1), FactRow("y", 2), kind="two")
    assert (first, second, store.position()) == (1, 2, 2)
    assert store.rows(LogRow) == [LogRow("a", "one", 12.5, 1), LogRow("b", "two", 12.5, 2)]
    assert [row.pos for row in store.rows(FactRow)] == [2, 2]


def test_an_error_inside_a_write_leaves_nothing(store: Store) -> None:
    put(store, "a", FactRow("kept", 1))
    rows: list[Row] = [
        FactRow("lost", 2),
        RecordRow("r", "a", "main", 0, "add", {}, terms="word"),
        CallRow("a", "main", 0, "p", "", 0, 0, "f", "asked", prompt=(("user", "a text"),), usage={"cost": 1}),
    ]
    with pytest.raises(TypeError, match="kept in a library"):
        put(store, "a", *rows, FactRow("no plain value", object()))
    assert [row.name for row in store.rows(FactRow)] == ["kept"]
    assert store.position() == 1
    assert store.search(["word"]) == []
    assert store.usage("a")["cost"] == 0
    assert put(store, "a") == 2


def test_the_fault_hook_is_called_at_each_boundary(make: Make) -> None:
    seen: list[str] = []
    die = {""}

    def fault(name: str) -> None:
        seen.append(name)
        if name in die:
            raise KeyboardInterrupt

    store = make(fault=fault)
    put(store, "a", FactRow("x", 1), kind="commit")
    assert seen == ["before commit", "inside commit", "after commit"]
    for moment, stays in (("before commit", 1), ("inside commit", 1), ("after commit", 2)):
        die.clear()
        die.add(moment)
        with pytest.raises(KeyboardInterrupt):
            put(store, "a", FactRow("x", 2), kind="commit")
        assert len(store.rows(FactRow)) == store.position() == stays


def test_a_write_cannot_be_opened_twice_nor_used_after_its_end(store: Store) -> None:
    with store.write("a", "x") as tx:
        tx.add(FactRow("x", 1))
        with pytest.raises(StoreError, match="open already"), store.write("a", "y"):
            pass
    with pytest.raises(StoreError, match="over"):
        tx.add(FactRow("y", 1))
    assert [row.name for row in store.rows(FactRow)] == ["x"]


def test_conditions(store: Store) -> None:
    for time in range(6):
        put(store, "a", PieceRow("a", f"lane{time % 2}", "p", time + 1, time, time))
    put(store, "b", PieceRow("b", "lane0", "p", 1, 0, "other"))
    put(store, "a", RunRow("a", "write", "", "", "", {}), RunRow("b", "write", "", "", "", {}, parent="a", cut=2, pin=3))

    def versions(**how: Any) -> list[int]:
        return [row.version for row in store.rows(PieceRow, **how)]

    assert versions(run="a") == [1, 2, 3, 4, 5, 6]
    assert versions(run="a", lane="lane1") == [2, 4, 6]
    assert versions(run="a", newest_first=True, limit=2) == [6, 5]
    assert versions(run="a", limit=0) == []
    assert versions(run="a", time=Between(2, 4)) == versions(run="a", version=Among((5, 3, 4))) == [3, 4, 5]
    assert versions(run="a", pos=Between(3)) == [3, 4, 5, 6]
    assert versions(run="a", pos=Among((5, 1, 900))) == [1, 5]
    assert versions(run="a", pos=Between(-5, -1)) == versions(run="a", pos=-1) == versions(lane=Among(())) == []
    assert versions(run=Among(("a", "b")), time=0) == [1, 1]
    assert [row.id for row in store.rows(RunRow, parent=None)] == ["a"]
    assert store.greatest(PieceRow, "version", run="a", lane="lane0") == 5
    assert store.greatest(PieceRow, "pos", run="a") == 6
    assert store.greatest(PieceRow, "version", run="nobody") is None
    for wrong in ({"value": 1}, {"nonsense": 1}):
        with pytest.raises(TypeError):
            store.rows(PieceRow, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.greatest(PieceRow, "nonsense")


# -- a line of runs --------------------------------------------------------------------------------------------------------


def run(name: str, **more: Any) -> RunRow:
    return RunRow(name, "write", name, "s", "m", {}, **more)


def step(run_: str, time: int, name: str = "main", take: int = 0) -> StepRow:
    return StepRow(run_, name, time, take, time + 1, f"{run_} {time}", {})


def test_a_run_is_found_by_its_beginning(store: Store) -> None:
    put(store, "abcd", run("abcd"), run("abxx"), run("abxyz"), run("家家家家"))
    assert store.run("abcd").id == store.run("abc").id == "abcd"
    assert store.run("家家家").id == "家家家家"
    assert store.run("abxx").pos == 1
    for wrong in ("ab", "", "zzz", "abcde", "abx", "家家"):
        with pytest.raises(NotFound) as caught:
            store.run(wrong)
        assert caught.value.next_action
    with pytest.raises(NotFound, match="several"):
        store.run("abx")
    with pytest.raises(NotFound):
        store.line("nobody")


def fork_of_fork(store: Store) -> dict[str, int]:
    """root writes 0..4; child forks at 3; root undoes 2, edits and goes on; grandchild forks the child at 4."""
    at = {"root": put(store, "root", run("root"), PieceRow("root", "main", "p", 0, -1, "start"))}
    for time in range(5):
        at[f"r{time}"] = put(store, "root", step("root", time), PieceRow("root", "main", "p", time + 1, time, f"r{time}"))
    at["child"] = put(store, "child", run("child", parent="root", cut=3, pin=at["r4"]))
    at["undo"] = put(
        store,
        "root",
        WithdrawnRow(at["r2"], "root", "undo"),
        WithdrawnRow(at["r3"], "root", "undo"),
        WithdrawnRow(at["r4"], "root", "undo"),
    )
    at["edit"] = put(store, "root", PieceRow("root", "main", "p", 1, 0, "edited later", "person"))
    at["r2b"] = put(store, "root", step("root", 2, take=1), PieceRow("root", "main", "p", 3, 2, "r2 again"))
    for time in (3, 4, 5):
        at[f"c{time}"] = put(store, "child", step("child", time), PieceRow("child", "main", "p", time + 1, time, f"c{time}"))
    at["own"] = put(store, "child", PieceRow("child", "main", "p", 3, 2, "child's own word", "person"))
    at["grand"] = put(store, "grand", run("grand", parent="child", cut=4, pin=at["own"]))
    at["cundo"] = put(store, "child", WithdrawnRow(at["c3"], "child", "undo"))
    at["g4"] = put(store, "grand", step("grand", 4), PieceRow("grand", "main", "p", 5, 4, "g4"))
    return at


def test_a_fork_of_a_fork_sees_cut_and_pin(store: Store) -> None:
    at = fork_of_fork(store)
    assert store.line("root") == [Reach("root")]
    assert store.line("grand") == [Reach("grand"), Reach("child", 4, at["own"]), Reach("root", 3, at["r4"])]
    assert store.line(LIBRARY) == [Reach(LIBRARY)]
    put(store, "early", run("early", parent="child", cut=1, pin=at["r1"]))
    assert store.line("early") == [Reach("early"), Reach("child", 1, at["r1"]), Reach("root", 1, at["r1"])]

    def outputs(name: str, **how: Any) -> list[str]:
        return [s.output for s in store.steps(store.line(name), **how)]

    assert outputs("root") == ["root 0", "root 1", "root 2"]
    assert outputs("child") == ["root 0", "root 1", "root 2", "child 4", "child 5"]
    assert outputs("grand") == ["root 0", "root 1", "root 2", "child 3", "grand 4"]
    assert store.reached(store.line("grand")) == {"main": (4, 5, 5)}
    assert store.reached(store.line("root")) == {"main": (2, 3, 3)}
    assert outputs("grand", start=1, end=4) == ["root 1", "root 2", "child 3"]
    assert outputs("grand", newest_first=True, limit=2) == ["grand 4", "child 3"]
    assert outputs("grand", limit=2) == ["root 0", "root 1"]
    assert [s.take for s in store.steps(store.line("root"))] == [0, 0, 1]
    assert [s.take for s in store.steps(store.line("child"))][:3] == [0, 0, 0], "the child keeps the take that the parent undid later"

    def state(name: str) -> dict[int, Any]:
        return {p.version: p.value for p in store.pieces(store.line(name))}

    assert state("root") == {0: "start", 1: "edited later", 2: "r1", 3: "r2 again"}
    assert state("child") == {0: "start", 1: "r0", 2: "r1", 3: "child's own word", 5: "c4", 6: "c5"}
    assert state("grand") == {0: "start", 1: "r0", 2: "r1", 3: "child's own word", 4: "c3", 5: "g4"}
    assert [p.value for p in store.pieces(store.line("grand"), after=at["own"])] == ["g4"]
    assert [(p.version, p.value) for p in store.pieces(store.line("child"))][3:5] == [(3, "r2"), (3, "child's own word")]


def test_one_step_of_a_line(store: Store) -> None:
    at = fork_of_fork(store)
    grand = store.line("grand")
    assert store.step_at(grand, "main", 3) == replace(step("child", 3), pos=at["c3"])
    assert store.step_at(grand, "main", 2) == replace(step("root", 2), pos=at["r2"])
    assert store.step_at(grand, "main", 5) is None
    assert store.step_at(store.line("child"), "main", 3) is None
    assert store.step_at(grand, "other", 2) is None
    assert (store.undone("root", "main", 2), store.undone("root", "main", 1), store.undone("child", "main", 3)) == (1, 0, 1)
    assert store.undone("grand", "main", 3) == 0


def test_lanes_are_ordered_by_time_then_name(store: Store) -> None:
    put(store, "t", run("t"))
    for time, name in ((1, "b"), (0, "b"), (1, "a+c"), (0, "a")):
        put(store, "t", step("t", time, name))
    assert [(s.time, s.step) for s in store.steps(store.line("t"))] == [(0, "a"), (0, "b"), (1, "a+c"), (1, "b")]
    assert [(s.time, s.step) for s in store.steps(store.line("t"), newest_first=True)] == [(1, "b"), (1, "a+c"), (0, "b"), (0, "a")]


def call(run_: str, status: str, *, time: int = 3, sample: int = 0, fingerprint: str = "f", **more: Any) -> CallRow:
    return CallRow(run_, "main", time, "passage", "", sample, 0, fingerprint, status, **more)  # type: ignore[arg-type]


PLACE = Address("main", 3, "passage", "", 0, 0)


def test_verdicts_serve_the_line_whatever_the_cut_up_to_the_pin(store: Store) -> None:
    put(store, "root", run("root"))
    asked = put(store, "root", call("root", "asked"))
    put(store, "root", call("root", "partial", answer="He", asked=asked))
    put(store, "root", call("root", "broken", reason="time out", asked=asked))
    assert store.verdict(store.line("root"), PLACE, "f") is None
    pos = put(store, "root", call("root", "answered", answer="Hello", asked=asked))
    put(store, "child", run("child", parent="root", cut=1, pin=pos))
    put(store, "root", call("root", "answered", answer="later", sample=1))
    root, child = store.line("root"), store.line("child")
    for line in (root, child):
        found = store.verdict(line, PLACE, "f")
        assert found is not None
        assert (found.answer, found.pos) == ("Hello", pos)
    assert store.verdict(root, replace(PLACE, sample=1), "f") is not None
    assert store.verdict(child, replace(PLACE, sample=1), "f") is None, "beyond the pin"
    for other in (
        replace(PLACE, time=4),
        replace(PLACE, part="x"),
        replace(PLACE, attempt=1),
        replace(PLACE, purpose="x"),
        replace(PLACE, step="x"),
    ):
        assert store.verdict(root, other, "f") is None
    assert store.verdict(root, PLACE, "other") is None
    put(store, "child", call("child", "refused", answer="No", reason="cut off"))
    nearest = store.verdict(child, PLACE, "f")
    assert nearest is not None
    assert (nearest.status, nearest.reason) == ("refused", "cut off")
    put(store, "child", call("child", "answered", answer="The latest."))
    latest = store.verdict(child, PLACE, "f")
    assert latest is not None
    assert latest.answer == "The latest."


def test_pure_answers_are_found_anywhere_the_earliest_first(store: Store) -> None:
    put(store, "a", call("a", "answered", answer="not declared"))
    put(store, "a", call("a", "refused", answer="refused", request={"pure": True}))
    put(store, "a", call("a", "answered", answer="no", request={"pure": False}))
    assert store.pure("f") is None
    put(store, "a", call("a", "answered", answer="one", request={"pure": True}))
    put(store, "b", call("b", "answered", answer="two", request={"pure": True}))
    found = store.pure("f")
    assert found is not None
    assert found.answer == "one"
    put(store, "b", call("b", "refused", fingerprint="cut", answer="cut o", finish="length", request={"pure": True}))
    put(store, "b", call("b", "fallback", fingerprint="spare", answer="spare", request={"pure": True}))
    put(store, "b", call("b", "asked", fingerprint="asked", request={"pure": True}))
    names = ["f", "cut", "spare", "asked", *(f"many {n}" for n in range(25_000))]
    assert store.known(names) == {"f"}
    assert store.known([]) == set()
    assert [store.pure(name) for name in names[1:4]] == [None] * 3


def test_raised_samples(store: Store) -> None:
    put(store, "root", run("root"))
    put(store, "root", RaisedRow("root", "main", 2, "passage", 1))
    pin = put(store, "root", RaisedRow("root", "main", 2, "passage", 3))
    put(store, "child", run("child", parent="root", cut=2, pin=pin))
    put(store, "root", RaisedRow("root", "main", 2, "passage", 0))
    root, child = store.line("root"), store.line("child")
    assert (store.raised(root, "main", 2, "passage"), store.raised(child, "main", 2, "passage")) == (0, 3)
    assert store.raised(child, "main", 2, "plans") == store.raised(child, "main", 1, "passage") == 0
    put(store, "child", RaisedRow("child", "main", 2, "passage", 7))
    assert store.raised(child, "main", 2, "passage") == 7


def test_usage_counts_what_was_asked(store: Store) -> None:
    worst = {"prompt_tokens": 100, "answer_tokens": 800, "cost": 2.5}
    assert store.usage("a") == {"prompt_tokens": 0, "answer_tokens": 0, "cached_tokens": 0, "cost": 0, "calls": 0, "refused": 0}
    first = put(store, "a", call("a", "asked", usage=worst))
    assert store.usage("a") == {"prompt_tokens": 100, "answer_tokens": 800, "cached_tokens": 0, "cost": 2.5, "calls": 1, "refused": 0}
    put(store, "a", call("a", "partial", asked=first, usage={"cost": 99}))
    put(store, "a", call("a", "refused", asked=first, usage={"prompt_tokens": 90, "answer_tokens": 10, "cached_tokens": 50, "cost": 0.25}))
    assert store.usage("a") == {"prompt_tokens": 90, "answer_tokens": 10, "cached_tokens": 50, "cost": 0.25, "calls": 1, "refused": 1}
    second = put(store, "a", call("a", "asked", sample=1, usage=worst))
    put(store, "a", call("a", "broken", sample=1, asked=second, usage={"prompt_tokens": 100}))
    put(store, "a", call("a", "asked", sample=1, usage=worst), call("b", "asked", usage=worst))
    assert store.usage("a")["cost"] == 2.75
    assert store.usage("a")["calls"] == 3
    assert store.usage("a")["prompt_tokens"] == 290
    put(store, "a", call("a", "answered", sample=1, asked=second, usage={"cost": 1}))
    assert store.usage("a")["cost"] == 3.75, "a request is settled once"


# -- memory ----------------------------------------------------------------------------------------------------------------


def record(run_: str, time: int, name: str, *, lane: str = "main", **more: Any) -> RecordRow:
    return RecordRow(name, run_, lane, time, "add", {"text": name}, **more)


def ids(rows: list[RecordRow]) -> list[str]:
    return [row.id for row in rows]


def test_own_records_go_by_logical_time(store: Store) -> None:
    put(store, "root", run("root"))
    put(store, "root", record("root", 5, "late"), record("root", 1, "early"))
    gone = put(store, "root", record("root", 2, "undone"))
    pin = put(store, "root", record("root", 2, "other lane", lane="b"))
    put(store, "child", run("child", parent="root", cut=3, pin=pin))
    put(store, "root", WithdrawnRow(gone, "root", "undo"))
    put(store, "root", record("root", 0, "after the pin"))
    root, child = store.line("root"), store.line("child")
    assert ids(store.records(root)) == ["late", "early", "other lane", "after the pin"]
    assert ids(store.records(root, before=5)) == ["early", "other lane", "after the pin"]
    assert ids(store.records(root, lanes=["main"], before=2)) == ["early", "after the pin"]
    assert ids(store.records(root, lanes=[])) == []
    assert ids(store.records(child)) == ["early", "undone", "other lane"]
    assert ids(store.records(child, before=2)) == ["early"]
    assert ids(store.records(child, after=gone)) == ["other lane"]


def test_library_records_go_by_position_and_binding(store: Store) -> None:
    put(store, "root", run("root"), run("other"))
    shared: dict[str, Any] = {"reach": "library", "about": "mira"}
    put(store, "root", record("root", 1, "model before the cut", **shared))
    put(store, "root", record("root", 4, "model after the cut", **shared))
    put(store, "root", record("root", 4, "person after the cut", by="person", **shared))
    pin = store.position()
    put(store, "child", run("child", parent="root", cut=3, pin=pin))
    put(store, "root", record("root", 1, "model after the pin", **shared))
    put(store, "root", record("root", 1, "person after the pin", by="person", **shared))
    put(
        store,
        "other",
        record("other", 9, "from elsewhere", **shared),
        record("other", 9, "about someone else", reach="library", about="ivan"),
    )
    put(store, "other", record("other", 9, "private"))
    put(store, LIBRARY, record(LIBRARY, 0, "said outside any run", by="person", **shared))
    wrong = put(store, "other", record("other", 9, "taken back", **shared))
    before = store.position()
    put(store, "other", WithdrawnRow(wrong, "other", "undo"))
    child = store.line("child")
    always = ["model before the cut", "person after the cut", "person after the pin", "from elsewhere", "said outside any run"]
    assert ids(store.records(child, entities=["mira"])) == always
    assert ids(store.records(child, entities=["mira", "mira"], read_at=before)) == [*always, "taken back"]
    assert ids(store.records(child, entities=["mira"], read_at=pin)) == always[:2]
    assert ids(store.records(child)) == ["model before the cut"]
    assert ids(store.records(child, entities=["ivan"])) == ["model before the cut", "about someone else"]
    assert ids(store.records(child, entities=["mira"], before=1)) == always[1:], "looking back, what a model wrote later is not there"
    assert ids(store.records(child, entities=["mira"], lanes=["nobody"])) == always, "lanes limit the line's own records, not the library"


def test_vectors(store: Store) -> None:
    put(store, "a", VectorRow("h1", "e5", b"\x01\x02"), VectorRow("h2", "e5", b"\x03\x04"), VectorRow("h1", "other", b"\x05\x06"))
    put(store, "a", VectorRow("h1", "e5", b"\xff\xff"), VectorRow("h1", "e5", b"\xee\xee"))
    assert store.vectors(["h1", "h2", "h3", "h1"], "e5") == {"h1": b"\x01\x02", "h2": b"\x03\x04"}
    assert store.vectors(["h1"], "other") == {"h1": b"\x05\x06"}
    assert store.vectors([], "e5") == store.vectors(["h1"], "nobody") == {}
    many = [f"hash {number}" for number in range(25_000)]
    put(store, "a", *(VectorRow(name, "e5", name.encode()) for name in many))
    assert store.vectors(many, "e5") == {name: name.encode() for name in many}


# -- export ----------------------------------------------------------------------------------------------------------------


def test_export_gives_every_row_of_the_line_in_the_order_of_writing(store: Store) -> None:
    written = [row for row in EVERY if not isinstance(row, VectorRow | FactRow)]
    put(store, "run-a", *EVERY)
    put(store, "stranger", LaneRow("stranger", "main", 0))
    put(store, "run-b", run("run-b", parent="run-a", cut=1, pin=1))
    put(store, "run-a", LaneRow("run-a", "after the pin", 0))
    for number in range(270):
        put(store, "run-b", LaneRow("run-b", str(number), 0))
    rows = list(store.export(store.line("run-b")))
    assert [type(row) for row in rows[: len(written) + 1]] == [LogRow, *[type(row) for row in written]]
    assert rows[1 : len(written) + 1] == [replace(row, pos=1) for row in written]
    assert [row.lane for row in rows if isinstance(row, LaneRow)] == ["main", *map(str, range(270))]
    assert [row.pos for row in rows] == sorted(row.pos for row in rows)
    assert isinstance(rows[len(written) + 1], LogRow)


def test_export_may_go_on_while_the_library_is_written(store: Store) -> None:
    for number in range(60):
        put(store, "a", LaneRow("a", str(number), 0))
    count = 0
    for row in store.export([Reach("a")]):
        count += isinstance(row, LaneRow)
        if count % 10 == 0:
            put(store, "a", LaneRow("a", "later", 0))
    assert count == 60


# -- care ------------------------------------------------------------------------------------------------------------------


def test_backup_and_close(store: Store, tmp_path: Path) -> None:
    put(store, "run-a", *EVERY)
    target = tmp_path / "copy.db"
    size = store.backup(target)
    assert size == target.stat().st_size > 0
    with pytest.raises(InputError) as caught:
        store.backup(target)
    assert caught.value.next_action
    store.close()
    store.close()
    for act in (store.position, lambda: put(store, "a"), lambda: store.rows(RunRow), store.check):
        with pytest.raises(FabulaError):
            act()


def test_a_sound_library_has_no_findings(store: Store) -> None:
    put(store, "run-a", *[row for row in EVERY if not isinstance(row, CallRow | StepRow)])
    asked = put(store, "run-a", ASKED)
    done = put(store, "run-a", replace(REFUSED, asked=asked))
    put(store, "run-a", StepRow("run-a", "main", 3, 0, 4, "x", {"calls": [done], "pieces": {"plan": 1}}))
    assert store.check() == []
    assert store.repair() == []


def test_far_means_no_bound(store: Store) -> None:
    put(store, "a", run("a"), step("a", FAR - 1))
    assert len(store.steps(store.line("a"))) == 1
