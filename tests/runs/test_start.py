"""What a run starts with, and what a step may look at beyond its own lanes: source texts, records, other lanes' memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, NotFound, NotPossible
from fabula.memory import Memory, Record
from fabula.runs import Context, Recurrence, Run, advance, create, export, fork, replay
from fabula.store import LogRow, RecallRow, RecordRow, RunRow, Store, TextRow, text_hash
from tests.runs.ways import MARK, Killed, Novel, Toy, library, opened, said

TEXTS = ("Chapter 1. Mira came home.\n", "第二章。米拉数了数船。\n" * 300, "Глава 3. Мира пересчитала лодки.\n")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = library(tmp_path / "a.db")
    yield held
    held.close()


class Tree(Recurrence):
    """Leaves that each read one text and remember it, and a root above them."""

    kind, single = "toy-reading", False

    def __init__(self, look: Any = None):
        self.look = look

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        leaves = {f"leaf{n}": (0, 1) for n in range(len(premise["texts"]))}
        return {**leaves, "mid": (1, 2), "root": (2, 3), "question": (3, 9)}

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        return not target.startswith("leaf") and source != "question"

    async def step(self, ctx: Context) -> Any:
        (lane,) = ctx.lanes
        if lane.startswith("leaf"):
            text = ctx.text(ctx.premise["texts"][int(lane[4:])])
            mark = (await ctx.ask("chunk", said(text, MARK), pure=True)).value["mark"]
            ctx.put("mark", mark)
            ctx.remember("fact", Record(id="", kind="fact", text=f"{lane}: Mira, {text[:9]}", quote=text[:9]))
            return [mark, len(text)]
        return await self.look(ctx) if self.look is not None else None


def reading(store: Store, look: Any = None, *, run: str = "r", **how: Any) -> Run:
    way = Tree(look)
    create(store, way, {"texts": [text_hash(text) for text in TEXTS]}, run=run, seed="s", model=Toy(), texts=TEXTS, **how)
    return opened(store, way, run, Toy())


def test_a_step_reads_source_texts_and_its_replay_too(store: Store) -> None:
    run = reading(store)
    done = asyncio.run(advance(run, until=1))
    assert {s.step: s.output[1] for s in done} == {f"leaf{n}": len(text) for n, text in enumerate(TEXTS)}
    run.close()
    assert asyncio.run(replay(store, Tree(), "r")) == (3, [])
    with pytest.raises(NotFound, match="no source text"):
        run.text(text_hash("another"))
    rows = [line for line in export(store, "r") if '"row": "text"' in line]
    assert len(rows) == 3
    assert "米拉" in rows[1]


def test_texts_are_written_bit_by_bit_before_the_run_is_made(store: Store) -> None:
    heard: list[int] = []

    def texts() -> Iterator[str]:
        for number in range(5):
            heard.append(len(store.rows(LogRow, kind="texts")))
            yield f"{number} " * 500_000
        yield "0 " * 500_000

    create(store, Novel(), {"premise": "x"}, run="r", texts=texts())
    assert heard == [0, 0, 1, 1, 2], "two million characters a transaction"
    assert [row.kind for row in store.rows(LogRow)] == ["texts"] * 3 + ["create"]
    assert len(store.rows(TextRow, run="r")) == 5, "each once"


def test_a_start_that_is_killed_leaves_no_damage_and_can_be_made_again(tmp_path: Path) -> None:
    records = [Record(id="", kind="fact", text="Mira: has a map")]
    texts = ["x" * 1_500_000, "y" * 1_500_000, "z"]

    def start(store: Store) -> str:
        return create(store, Novel(), {"premise": "x"}, run="r", records=records, texts=iter(texts))

    boundaries: list[str] = []
    whole = library(tmp_path / "whole.db", boundaries.append)
    start(whole)
    whole.close()
    assert len(boundaries) == 9
    for at in range(len(boundaries)):
        passed = 0

        def fault(_name: str, at: int = at) -> None:
            nonlocal passed
            passed += 1
            if passed == at + 1:
                raise Killed

        store = library(tmp_path / f"{at}.db", fault)
        with pytest.raises(Killed):
            start(store)
        store.close()
        again = library(tmp_path / f"{at}.db")
        assert again.check() == []
        if not again.rows(RunRow):
            start(again)
        assert [again.text(text_hash(text)) for text in texts] == texts
        assert len(again.records(again.line("r"))) == 1
        assert again.check() == []
        again.close()


def test_texts_read_last_stay_in_memory_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [sign * 1_000_000 for sign in "abcdefghijkl"]
    create(store, Novel(), {"premise": "x"}, run="r", texts=texts)
    run, asked, read = Run(store, Novel(), "r"), [], store.text

    def watched(name: str) -> str:
        asked.append(name)
        return read(name)

    monkeypatch.setattr(store, "text", watched)
    for text in [*texts, texts[-1], texts[4], texts[0], texts[4]]:
        assert run.text(text_hash(text)) == text
    assert asked == [text_hash(text) for text in [*texts, texts[0]]]


# -- records at the start ------------------------------------------------------------------------------------------------------


def test_records_at_the_start_are_seen_by_the_first_step(store: Store) -> None:
    old = Record(id="", kind="fact", text="Mira: has a brother", source="a book", happened=-3.0)
    given = Record(id="book/7", kind="summary", text="Mira: found a map", recorded=5.0, by="person")

    async def look(ctx: Context) -> list[str]:
        return sorted(m.id for m in await ctx.recall("Mira map brother"))

    class Way(Novel):
        async def step(self, ctx: Context) -> Any:
            return await look(ctx)

    create(store, Way(), {"premise": "x"}, run="r", model=Toy(), records=[old, given])
    run = opened(store, Way(), "r", Toy())
    (row,) = asyncio.run(advance(run, steps=1))
    assert row.output == ["book/7", "r/book/-1/1"]
    first, second = store.rows(RecordRow)
    assert (first.time, first.lane, first.by, first.reach, first.pos) == (-1, "book", "import", "run", store.run("r").pos)
    assert first.data["happened"] == -3.0
    assert first.data["recorded"] > 0
    assert (second.by, second.data["recorded"]) == ("import", 5.0)
    child = opened(store, Way(), fork(store, "r", 0), Toy())
    assert asyncio.run(advance(child, steps=1))[0].output == row.output
    assert asyncio.run(replay(store, Way(), "r")) == (1, [])


def test_a_record_stands_in_its_lane_or_its_owners(store: Store) -> None:
    records = [
        *(Record(id="", kind="fact", text=f"Mira: {n}") for n in range(9)),
        Record(id="", kind="fact", text="Mira: in the middle", lane="mid"),
        Record(id="", kind="fact", text="Mira: of a leaf", owner="leaf1"),
        Record(id="", kind="fact", text="Mira: of her own", owner="Mira"),
    ]
    reading(store, records=records)
    rows = store.rows(RecordRow)
    assert [row.lane for row in rows[9:]] == ["mid", "leaf1", "leaf0"]
    assert [row.id for row in rows[8:11]] == ["r/leaf0/-1/09", "r/mid/-1/10", "r/leaf1/-1/11"], "in the order given, also as words"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"lane": "nowhere"}, "lane 'nowhere'"),
        ({"id": "twice"}, "another one"),
        ({"reach": "library", "about": "Mira"}, "whole library"),
        ({"text": " "}, "no text"),
    ],
)
def test_a_record_that_cannot_be_brought_is_refused_before_anything_is_written(store: Store, wrong: dict[str, Any], why: str) -> None:
    fine = Record(id="twice", kind="fact", text="Mira: fine")
    bad = Record(**{"id": "", "kind": "fact", "text": "Mira: bad", **wrong})
    with pytest.raises(InputError, match=why) as caught:
        create(store, Novel(), {"premise": "x"}, records=[fine, bad], texts=["x"])
    assert caught.value.next_action
    assert store.position() == 0


def test_a_run_of_this_id_is_not_made_twice(store: Store) -> None:
    reading(store)
    before = store.position()
    with pytest.raises(InputError, match="already"):
        reading(store)
    assert store.position() == before


# -- recalling from other lanes ------------------------------------------------------------------------------------------------


def found(text: str = "Mira", **how: Any) -> Any:
    async def look(ctx: Context) -> Any:
        if ctx.lanes in (("root",), ("mid",)):
            return None
        return sorted(m.text[:5] for m in await ctx.recall(text, **how))

    return look


async def recall_mid(ctx: Context) -> Any:
    if ctx.lanes != ("mid",):
        return None
    own = await ctx.recall("Mira", part="own")
    same = await ctx.recall("Mira", part="same", lanes=("mid",))
    some = await ctx.recall("Mira", part="some", lanes=("leaf2", "leaf0"))
    return [[m.text[:5] for m in memos] for memos in (own, same, sorted(some, key=lambda m: m.text))]


def test_a_recall_of_other_lanes_that_have_come_so_far(store: Store) -> None:
    run = reading(store, recall_mid)
    asyncio.run(advance(run, until=2))
    (mid,) = [s for s in store.steps(run.line) if s.step == "mid"]
    assert mid.output == [[], [], ["leaf0", "leaf2"]]
    rows = {row.part: row.query for row in store.rows(RecallRow)}
    assert rows["own"] == rows["same"] != rows["some"], "only what differs from the default is part of the question"
    run.close()
    assert asyncio.run(replay(store, Tree(recall_mid), "r")) == (4, [])


def test_a_default_recall_is_asked_as_it_always_was(store: Store) -> None:
    """Journals of before replay: the hash of a plain recall is what it was when there were no lanes to choose."""
    run = reading(store, found(limit=7, budget=300))
    asyncio.run(advance(run, until=4))
    (row,) = store.rows(RecallRow)
    assert row.query == hashlib.sha256(b"Mira\x1f7\x1f300\x1f\x1f\x1f\x1ffact").hexdigest()[:16]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"lanes": ("leaf0", "leaf1")}, "leaf1, which is at 0"),
        ({"lanes": ("nobody",)}, "does not have"),
        ({"lanes": ("leaf0",), "everywhere": True}, "not both"),
    ],
)
def test_lanes_that_are_not_so_far_cannot_be_recalled(store: Store, how: dict[str, Any], why: str) -> None:
    class Hasty(Tree):
        def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
            return False

    way = Hasty(found(**how))
    create(store, way, {"texts": [text_hash(text) for text in TEXTS]}, run="r", model=Toy(), texts=TEXTS)
    run = opened(store, way, "r", Toy())
    asyncio.run(advance(run, steps=1))
    run.next.update(leaf1=0)

    async def ask() -> Any:
        return await way.step(Context(run, ("question",), 3))

    with pytest.raises(NotPossible, match=why):
        asyncio.run(ask())


def test_a_question_on_a_fork_of_an_unfinished_reading_finds_what_is_there(store: Store) -> None:
    run = reading(store)
    asyncio.run(advance(run, steps=2))
    child = opened(store, Tree(found(everywhere=True)), fork(store, "r", 1, run="q"), Toy())
    child.next.update(mid=2, root=3)  # nobody drives them here

    async def ask() -> Any:
        ctx = Context(child, ("question",), 3)
        return await ctx.commit(await child.recurrence.step(ctx))

    assert asyncio.run(ask()).output == ["leaf0", "leaf1"]
    asyncio.run(advance(run, until=1))
    child.close()
    count, differences = asyncio.run(replay(store, Tree(found(everywhere=True)), "q"))
    assert (count, differences) == (3, [])


def test_everywhere_is_refused_while_other_steps_are_made(store: Store) -> None:
    async def look(ctx: Context) -> Any:
        return await ctx.recall("Mira", everywhere=True)

    class Town(Tree):
        def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
            return False

        async def step(self, ctx: Context) -> Any:
            return await look(ctx)

    create(store, Town(), {"texts": ["x", "y"]}, run="r", model=Toy())
    with pytest.raises(NotPossible, match="while other steps"):
        asyncio.run(advance(opened(store, Town(), "r", Toy()), until=1))


def test_a_lane_that_has_ended_keeps_nobody_waiting_and_may_be_read(store: Store) -> None:
    """The leaves end at 1; the root at 2, which they reach by the rule, does not wait for more of them."""

    async def look(ctx: Context) -> Any:
        return [ctx.piece("mark", lane=f"leaf{n}") for n in range(3)] if ctx.lanes == ("root",) else None

    run = reading(store, look)
    done = {s.step: s.output for s in asyncio.run(advance(run, until=3))}
    assert done["root"] == [done[f"leaf{n}"][0] for n in range(3)]
    assert list(done)[-2:] == ["mid", "root"]


def test_vectors_of_what_a_run_starts_with_are_made_afterwards(store: Store) -> None:
    class Embedder:
        id, dim = "tiny", 2

        async def ready(self) -> None: ...

        async def passages(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, float(len(text))] for text in texts]

        async def queries(self, texts: list[str]) -> list[list[float]]:
            return await self.passages(texts)

        async def close(self) -> None: ...

    run = reading(store, records=[Record(id="", kind="fact", text="Mira: has a map")])
    from fabula.runs import view_of

    memory = Memory(store, Embedder())  # type: ignore[arg-type]
    assert memory.missing(view_of(run)) == 1
    assert asyncio.run(memory.rebuild(view_of(run))) == 1
    assert memory.missing(view_of(run)) == 0
