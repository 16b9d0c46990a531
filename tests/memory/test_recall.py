"""What recall promises beside its formula: filters, budget, what is brought along, policies, vectors, notes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from fabula.errors import InputError, NotFound, NotPossible
from fabula.memory import Memory, Policy, Query, Ranking, Record, Sight, View, added, edited, register_policy, retracted, search
from fabula.memory import _fact as fact
from fabula.store import Reach, RecordRow, RunRow, WithdrawnRow
from fabula.text import count_tokens
from tests.memory.conftest import VIEW, Shelf
from tests.memory.naive import HashEmbedder


def rec(ident: str, text: str, time: int = 1, **more: Any) -> Record:
    return Record(ident, more.pop("kind", "fact"), text, run="run", lane="main", time=time, **more)


async def found(memory: Memory, text: str, view: View = VIEW, **more: Any) -> list[str]:
    return [f.record.id for f in (await memory.recall(view, Query(text, **more))).found]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Who has the key to the lighthouse?", "en"),
        ("У кого ключи от маяка?", "ru"),
        ("Что было в письмах Миры?", "ru2"),
        ("灯塔的钥匙在谁那里？", "zh"),
        ("米拉", "zh"),
    ],
)
async def test_finds_in_each_language(shelf: Shelf, question: str, first: str) -> None:
    shelf.add(
        rec("en", "Anton keeps the key of the old lighthouse in his coat."), rec("en2", "The old mill has burnt down."),
        rec("ru", "Ключ от старого маяка лежит у Антона."), rec("ru2", "Мира получила письмо от сестры."),
        rec("zh", "旧灯塔的钥匙在米拉手里。"), rec("zh2", "磨坊昨夜烧毁了。"),
    )  # fmt: skip
    assert (await found(Memory(shelf.store), question))[0] == first


async def test_what_shares_nothing_is_not_found_by_words(shelf: Shelf) -> None:
    shelf.add(rec("a", "The mill has burnt down.", importance=10), rec("b", "A key."))
    assert await found(Memory(shelf.store), "key") == ["b"]
    assert await found(Memory(shelf.store), "xylophone") == []
    assert await found(Memory(shelf.store), "the of") == []


async def test_an_only_record_is_found(shelf: Shelf) -> None:
    assert await found(Memory(shelf.store), "key") == []
    shelf.add(rec("a", "A key."))
    assert await found(Memory(shelf.store), "key") == ["a"]
    assert await found(Memory(shelf.store, HashEmbedder()), "key") == ["a"]


async def test_status_audience_owner_kind(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(
        rec("all", "the key"), rec("pending", "the key", status="pending"), rec("unresolved", "the key", status="unresolved"),
        rec("superseded", "the key", status="superseded"), rec("ended", "the key", status="ended"),
        rec("secret", "the key", audience=("Mira",)), rec("own", "the key", owner="Anton", audience=("Mira",), kind="plan"),
    )  # fmt: skip
    assert set(await found(memory, "key")) == {"all", "pending", "unresolved", "secret", "own"}
    assert set(await found(memory, "key", asker="Mira")) == {"all", "pending", "unresolved", "secret", "own"}
    assert set(await found(memory, "key", asker="Anton")) == {"all", "pending", "unresolved", "own"}
    assert await found(memory, "key", owners=("Anton",)) == ["own"]
    assert await found(memory, "key", owners=("nobody",)) == []
    assert await found(memory, "key", kinds=("plan", "summary")) == ["own"]
    assert set(await found(memory, "key", exclude=frozenset({"all", "own"}))) == {"pending", "unresolved", "secret"}


async def test_frequencies_are_of_the_visible(shelf: Shelf) -> None:
    """A word that is rare here and common in another run, time or lane counts as rare."""
    memory = Memory(shelf.store)
    shelf.add(rec("lamp", "lamp oil"), rec("oil", "oil oil well"), rec("more", "a well"), rec("x", "well done", status="retracted"))
    before = (await memory.recall(VIEW, Query("lamp oil"))).found
    with shelf.store.write("other", "create") as tx:
        tx.add(RunRow("other", "novel", "", "s", "s", {}))
    shelf.write([added(replace(rec(f"o{i}", "lamp"), run="other")) for i in range(20)], "other")
    shelf.add(*(rec(f"later{i}", "lamp", time=50) for i in range(20)))
    after = (await Memory(shelf.store).recall(replace(VIEW, time=50), Query("lamp oil"))).found
    assert [(f.record.id, f.score) for f in before] == [(f.record.id, f.score) for f in after]


async def test_ties_by_time_then_lane_then_id(shelf: Shelf) -> None:
    shelf.add(
        rec("d", "the key", 3),
        rec("c", "the key", 2),
        replace(rec("b", "the key", 2), lane="a"),
        rec("a", "the key", 2),
        rec("z", "the key", 1),
    )
    assert await found(Memory(shelf.store), "key") == ["z", "b", "a", "c", "d"]


async def test_named_owner_outranks(shelf: Shelf) -> None:
    shelf.add(rec("a", "sat by the fire", 1, owner="Anton"), rec("m", "sat by the fire", 2, owner="Mira", entities=("Captain Orlov",)))
    memory = Memory(shelf.store)
    for text in ("Who sat by the fire: Mira?", "Was Orlov by the fire?"):
        recalled = await memory.recall(VIEW, Query(text))
        assert [f.record.id for f in recalled.found] == ["m", "a"], text
        assert recalled.found[0].parts["named"] == pytest.approx(0.1)
        assert "named" not in recalled.found[1].parts
    assert await found(memory, "by the fire", named=("Anton",)) == ["a", "m"]


@pytest.mark.parametrize("dense", [False, True])
async def test_large_scope_goes_by_the_best_of_each_side(shelf: Shelf, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above `LARGE` records the minimum of min-max is the score at `TOP`; what ties there is not lost, and the best stay the best."""
    memory = Memory(shelf.store, HashEmbedder() if dense else None)
    await shelf.keep(memory, *(rec(f"{i:03}", f"the key of door {i}", i) for i in range(200)))
    whole = [await found(memory, text) for text in ("key of door 77", "door 150")]
    monkeypatch.setattr(fact, "LARGE", 100)
    monkeypatch.setattr(fact, "TOP", 20)
    assert [(await found(memory, text))[0] for text in ("key of door 77", "door 150")] == [first for first, *_ in whole] == ["077", "150"]
    recalled = await memory.recall(VIEW, Query("door 150"))
    assert recalled.found[0].parts["lexical"] > 2 * recalled.found[1].parts["lexical"]
    tied = await memory.recall(VIEW, Query("key"))
    assert len(tied.found) == 10
    assert all(f.parts["lexical"] > 0 for f in tied.found)
    x = np.arange(200, dtype=np.float64)
    assert fact.minmax(x)[[0, 180, 199]] == pytest.approx([0, 0, 1])
    assert fact.minmax(np.minimum(x, 150))[[0, 75, 199]] == pytest.approx([0, 0.5, 1])


async def test_derived_fact_lifts_its_source(shelf: Shelf) -> None:
    shelf.add(rec("p1", "They talked all night.", kind="utterance"), rec("p2", "They talked at night.", kind="utterance"))
    shelf.add(rec("f", "Mira gave Anton her grandmother's compass.", evidence=("p2",)))
    recalled = await Memory(shelf.store).recall(VIEW, Query("Who has the compass of Mira's grandmother?"))
    assert [f.record.id for f in recalled.found] == ["f", "p2"]
    assert recalled.found[1].parts["cited"] == pytest.approx(0.5)


async def test_neighbour_inside_the_episode_only(shelf: Shelf) -> None:
    shelf.add(
        rec("q", "Have you ever been to Rome?", 1, episode="one"), rec("a", "Yes, twice!", 2, episode="one"),
        rec("n", "Good morning.", 3, episode="two"), rec("loose", "Twice is enough.", 2),
    )  # fmt: skip
    assert await found(Memory(shelf.store), "who was in Rome") == ["q", "a"]


# -- budget and what is brought along ---------------------------------------------------------------------------------------------------


async def test_budget_holds_and_cut_is_told(shelf: Shelf) -> None:
    shelf.add(*(rec(f"r{i:02}", "key " * (1 + i % 7)) for i in range(40)))
    memory = Memory(shelf.store)
    for budget in (0, 1, 3, 9, 30):
        recalled = await memory.recall(VIEW, Query("key", budget=budget, limit=8))
        assert sum(count_tokens(f.record.text) for f in recalled.found) <= budget
        assert len(recalled.found) <= 8
        assert len(recalled.cut) == 20
        scores = [score for _, score in recalled.cut]
        assert scores == sorted(scores, reverse=True)
        assert not {f.record.id for f in recalled.found} & {ident for ident, _ in recalled.cut}
    assert not (await memory.recall(VIEW, Query("key", limit=0))).found


async def test_own_counter_counts(shelf: Shelf) -> None:
    shelf.add(rec("a", "the key"), rec("b", "the key"))
    assert len(await found(Memory(shelf.store), "key", budget=13, count=len)) == 1


async def test_too_long_is_passed_over(shelf: Shelf) -> None:
    shelf.add(rec("long", "key lock " * 30), rec("short", "key, lamp, door"))
    recalled = await Memory(shelf.store).recall(VIEW, Query("key lock", budget=12))
    assert [f.record.id for f in recalled.found] == ["short"]
    assert [ident for ident, _ in recalled.cut] == ["long"]


@pytest.mark.parametrize(
    ("text", "question", "budget", "left"),
    [
        ("The key lies here. It is made of iron and very, very old.", "key", 6, "The key lies here."),
        ("钥匙在这里。它是铁做的，非常古老，谁也不知道是谁留下的。", "钥匙", 8, "钥匙在这里。"),
        ("Ключ здесь. Он железный и очень старый, ему двести лет.", "ключ", 6, "Ключ здесь."),
    ],
)
async def test_only_record_is_shortened_at_a_sentence(shelf: Shelf, text: str, question: str, budget: int, left: str) -> None:
    shelf.add(rec("long", text))
    recalled = await Memory(shelf.store).recall(VIEW, Query(question, budget=budget))
    assert [f.record.text for f in recalled.found] == [left]
    assert recalled.found[0].parts["shortened"] == pytest.approx(len(left) / len(text))
    assert recalled.cut == []


async def test_presupposed_comes_along_or_neither(shelf: Shelf) -> None:
    shelf.add(
        rec("party", "There will be a party on Friday.", kind="plan"),
        rec("host", "Isabella hosts it.", presupposes=("party",), kind="plan"),
        rec("topic", "Klaus wants to talk about rent.", presupposes=("host",)), rec("rent", "Rent, rent and more talk of rent."),
    )  # fmt: skip
    memory = Memory(shelf.store)
    query = Query("What does Klaus want to talk about?", kinds=("fact",))
    recalled = await memory.recall(VIEW, query)
    assert [f.record.id for f in recalled.found] == ["topic", "host", "party", "rent"]
    assert recalled.found[1].parts == {"presupposed": recalled.found[0].score}
    assert [f.record.id for f in (await memory.recall(VIEW, replace(query, limit=2))).found] == ["rent"]
    assert [f.record.id for f in (await memory.recall(VIEW, replace(query, exclude=frozenset({"party"})))).found] == [
        "topic",
        "host",
        "rent",
    ]
    host = memory.get(VIEW, "host")
    shelf.write([retracted(host, "cancelled", by="person", time=3)])
    assert [f.record.id for f in (await memory.recall(VIEW, query)).found] == ["topic", "rent"]


async def test_presupposing_in_a_circle_ends(shelf: Shelf) -> None:
    shelf.add(rec("a", "the key", presupposes=("b", "a")), rec("b", "the lock", presupposes=("a",)))
    assert await found(Memory(shelf.store), "key") == ["a", "b"]


async def test_presupposed_secret_stays_secret(shelf: Shelf) -> None:
    shelf.add(rec("a", "the key", presupposes=("b",)), rec("b", "the lock", audience=("Mira",)))
    assert await found(Memory(shelf.store), "key", asker="Anton") == ["a"]
    assert await found(Memory(shelf.store), "key", asker="Mira") == ["a", "b"]


# -- policies ---------------------------------------------------------------------------------------------------------------------------


async def test_policies_that_come_later(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    for policy in get_args(Policy):
        if policy == "fact":
            continue
        with pytest.raises(NotPossible, match="comes with the town"):
            await memory.recall(VIEW, Query("key", policy))
    with pytest.raises(InputError, match="no policy 'best'"):
        await memory.recall(VIEW, Query("key", "best"))  # type: ignore[arg-type]
    with pytest.raises(InputError):
        register_policy("fact", lambda sight: sight.fact())


@pytest.mark.parametrize("wrong", [{"text": " "}, {"limit": -1}, {"budget": -1}])
async def test_refuses_questions(shelf: Shelf, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        await Memory(shelf.store).recall(VIEW, replace(Query("key"), **wrong))


async def test_own_policy(shelf: Shelf) -> None:
    """What a policy is given suffices to write one: here the latest, of what the question names, an open commitment first."""

    def latest(sight: Sight) -> Ranking:
        fact = sight.fact()
        assert all(part.shape == (sight.size,) for part in fact.parts.values())
        assert sight.coverage().shape == sight.accessed().shape == sight.importance().shape == sight.named().shape == (sight.size,)
        cosine = sight.cosine()
        assert cosine is not None
        assert np.all(np.abs(cosine) <= 1.001)
        plans = [place for place in range(sight.size) if sight.record(place).kind == "plan"]
        return Ranking({"latest": sight.accessed()}, eligible=sight.named(), always=plans)

    register_policy("latest (a test)", latest)
    memory = Memory(shelf.store, HashEmbedder())
    await shelf.keep(
        memory, rec("a", "old", owner="Mira", happened=1.0), rec("b", "new", owner="Mira", happened=2.0), rec("c", "newest", happened=3.0),
        rec("p", "Meet Anton.", kind="plan"),
    )  # fmt: skip
    query = Query("Mira", "latest (a test)", accessed={"a": 9.0, "nobody": 4.0})  # type: ignore[arg-type]
    recalled = await memory.recall(VIEW, query)
    assert [(f.record.id, f.score) for f in recalled.found] == [("p", 0.0), ("a", 9.0), ("b", 2.0)]


# -- vectors ------------------------------------------------------------------------------------------------------------------------------


async def test_vectors_are_made_once(shelf: Shelf) -> None:
    embedder = HashEmbedder()
    memory = Memory(shelf.store, embedder)
    records = [rec("a", "the key"), rec("b", "the key"), rec("c", "the lamp")]
    rows = await memory.vectors_for(records)
    assert [len(row.vector) for row in rows] == [2 * embedder.dim] * 2
    shelf.write([*map(added, records), *rows])
    assert await memory.vectors_for([*records, rec("d", "a door")]) != []
    assert embedder.texts == 3
    assert await memory.vectors_for(records) == []
    assert embedder.texts == 3
    assert await Memory(shelf.store).vectors_for(records) == []


async def test_dense_finds_what_words_do_not(shelf: Shelf) -> None:
    memory = Memory(shelf.store, HashEmbedder(64, meaning={"vessel": "ship"}))
    await shelf.keep(memory, rec("ship", "Her ship leaks."), rec("mill", "The mill burns."), rec("cat", "A grey cat sleeps."))
    recalled = await memory.recall(VIEW, Query("vessel", limit=1))
    assert [f.record.id for f in recalled.found] == ["ship"]
    assert recalled.embedder == "hash"
    assert recalled.found[0].parts["dense"] == pytest.approx(0.5)
    assert "lexical" not in recalled.found[0].parts


async def test_other_embedder_is_noticed_and_rebuilt(shelf: Shelf) -> None:
    old = Memory(shelf.store, HashEmbedder())
    await shelf.keep(old, *(rec(f"r{i}", f"key {i}") for i in range(150)), rec("gone", "key", status="superseded"))
    embedder = HashEmbedder(48, "other")
    memory, beside = Memory(shelf.store, embedder), Memory(shelf.store, embedder)
    assert (old.missing(VIEW), memory.missing(VIEW), Memory(shelf.store).missing(VIEW)) == (0, 150, 0)
    recalled = await memory.recall(VIEW, Query("key 7"))
    assert (recalled.embedder, [f.record.id for f in recalled.found][:1]) == ("none", ["r7"])
    assert "150 of 150 memories have no vector of other" in recalled.notes[0]
    seen: list[tuple[int, int]] = []
    assert await memory.rebuild(VIEW, lambda done, whole: seen.append((done, whole))) == 150
    assert seen == [(0, 150), (64, 150), (128, 150), (150, 150)]
    for one in (memory, beside, Memory(shelf.store, embedder)):
        recalled = await one.recall(VIEW, Query("key 7"))
        assert (recalled.embedder, recalled.notes, one.missing(VIEW)) == ("other", (), 0)
    assert await memory.rebuild(VIEW) == 0
    assert (await old.recall(VIEW, Query("key 7"))).embedder == "hash"


async def test_interrupted_rebuild_goes_on(shelf: Shelf) -> None:
    shelf.add(*(rec(f"r{i}", f"key {i}") for i in range(150)))
    memory = Memory(shelf.store, HashEmbedder())

    def stop(done: int, whole: int) -> None:
        if done == 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await memory.rebuild(VIEW, stop)
    assert memory.missing(VIEW) == 150 - 64
    assert await memory.rebuild(VIEW) == 150 - 64


async def test_few_missing_are_found_by_words(shelf: Shelf) -> None:
    memory = Memory(shelf.store, HashEmbedder())
    await shelf.keep(memory, *(rec(f"r{i}", f"door {i}") for i in range(30)))
    shelf.add(rec("bare", "the brass key"))
    recalled = await memory.recall(VIEW, Query("brass key", limit=1))
    assert [f.record.id for f in recalled.found] == ["bare"]
    assert (recalled.embedder, "1 of 31" in recalled.notes[0]) == ("hash", True)


async def test_edit_gets_its_own_vector(shelf: Shelf) -> None:
    memory = Memory(shelf.store, HashEmbedder(64, meaning={"vessel": "ship"}))
    await shelf.keep(memory, rec("a", "Her ship leaks."), rec("b", "The mill burns."), rec("c", "A cat sleeps."))
    was = memory.get(VIEW, "a")
    now = replace(was, text="Her goat leaps.")
    shelf.write([edited(was, by="person", time=5, text=now.text), *await memory.vectors_for([now])])
    assert memory.missing(VIEW) == 0
    assert (await memory.recall(VIEW, Query("goat leaps"))).found[0].record.text == "Her goat leaps."
    past = (await memory.recall(replace(VIEW, time=5), Query("vessel"))).found[0]
    assert (past.record.id, past.record.text) == ("a", "Her ship leaks.")


# -- keeping up ----------------------------------------------------------------------------------------------------------------------


async def test_notices_commits_and_withdrawals(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    pos = shelf.add(rec("a", "the key"))
    assert await found(memory, "key") == ["a"]
    shelf.add(rec("b", "the key", 2))
    assert await found(memory, "key") == ["a", "b"]
    shelf.write([WithdrawnRow(pos, "run", "undone")])  # type: ignore[list-item]
    assert await found(memory, "key") == ["b"]
    assert [r.id for r in memory.records(VIEW)] == ["b"]
    with pytest.raises(NotFound):
        memory.get(VIEW, "a")


async def test_nothing_is_kept_of_a_write_that_fails(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(rec("a", "the key"))
    with suppress(KeyError), shelf.store.write("run", "commit") as tx:
        tx.add(added(rec("b", "the key")))
        assert memory.get(VIEW, "a").text == "the key"
        raise KeyError
    shelf.add(rec("c", "the key", 2))
    assert await found(memory, "key") == ["a", "c"]


async def test_views_of_one_line_share_a_scope(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(rec("a", "the key", 1), rec("b", "the key", 2))
    library = rec("l", "the key", 3, reach="library", about="Mira", by="person")
    with shelf.store.write("chat", "commit") as tx:
        tx.add(added(replace(library, run="chat")))
    was = memory.get(VIEW, "a")
    shelf.write([edited(was, by="model", time=4, text="the lock")])
    views = [replace(VIEW, entities=("Mira",), time=time, read_at=read_at) for time in (2, 3, 5) for read_at in (2, 3)]
    for _ in range(2):
        answers = [await found(memory, "key", view) for view in views]
        assert answers == [["a"], ["a", "l"], ["a", "b"], ["a", "b", "l"], ["b"], ["b", "l"]]
    assert len(memory._scopes) == 2


async def test_fork_keeps_what_its_parent_withdraws_later(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    first = shelf.add(rec("a", "the key", 1))
    second = shelf.add(rec("b", "the key", 2))
    with shelf.store.write("fork", "fork") as tx:
        tx.add(RunRow("fork", "novel", "", "s", "s", {}, parent="run", cut=5, pin=tx.pos - 1))
    child = View(tuple(shelf.store.line("fork")))
    assert await found(memory, "key", child) == await found(memory, "key") == ["a", "b"]
    with shelf.store.write("run", "withdraw") as tx:
        tx.add(WithdrawnRow(first, "run", "undone"))
    with shelf.store.write("fork", "commit") as tx:
        tx.add(added(replace(rec("c", "the key", 6), run="fork")))
    assert await found(memory, "key") == ["b"]
    assert await found(memory, "key", child) == ["a", "b", "c"]
    with shelf.store.write("run", "withdraw") as tx:
        tx.add(WithdrawnRow(second, "run", "undone"))
    assert await found(memory, "key") == []
    assert [r.id for r in memory.records(child)] == ["a", "b", "c"]


async def test_withdrawn_in_the_parent_is_gone_from_the_library(shelf: Shelf) -> None:
    """A fork's other lane sees its parent's library record only as part of the library, and there it was undone."""
    memory = Memory(shelf.store)
    pos = shelf.add(rec("l", "the key", 1, reach="library", about="Mira", by="person"))
    with shelf.store.write("fork", "fork") as tx:
        tx.add(RunRow("fork", "town", "", "s", "s", {}, parent="run", cut=5, pin=tx.pos - 1))
    own, other = (View(tuple(shelf.store.line("fork")), (lane,), entities=("Mira",)) for lane in ("main", "side"))
    assert await found(memory, "key", own) == await found(memory, "key", other) == ["l"]
    with shelf.store.write("run", "withdraw") as tx:
        tx.add(WithdrawnRow(pos, "run", "undone"))
    for view, left in ((own, ["l"]), (other, [])):
        assert await found(memory, "key", view) == await found(Memory(shelf.store), "key", view) == left


async def test_withdrawn_library_record_is_gone_for_a_view_that_looks_back(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(rec("a", "the key", 1))
    pos = shelf.add(rec("l", "the key", 5, reach="library", about="Mira"))
    view = replace(VIEW, entities=("Mira",))
    assert await found(memory, "key", view) == ["a", "l"]
    with shelf.store.write("run", "withdraw") as tx:
        tx.add(WithdrawnRow(pos, "run", "undone"))
    assert await found(memory, "key", replace(view, time=3)) == ["a"]
    assert await found(memory, "key", view) == ["a"]


async def test_library_after_the_cut(shelf: Shelf) -> None:
    """Of what was said of a character after a fork's cut, a person's word reaches the fork and a model's does not (DESIGN 4)."""
    with shelf.store.write("fork", "fork") as tx:
        tx.add(RunRow("fork", "novel", "", "s", "s", {}, parent="run", cut=5, pin=tx.pos - 1))
    shelf.add(
        rec("model", "the key", 7, reach="library", about="Mira"), rec("person", "the key", 7, reach="library", about="Mira", by="person"),
        rec("before", "the key", 3, reach="library", about="Mira"),
    )  # fmt: skip
    child = View(tuple(shelf.store.line("fork")), entities=("Mira",))
    assert await found(Memory(shelf.store), "key", child) == ["person"]
    assert [r.id for r in search(shelf.store, "key", view=child)] == ["person"]
    with shelf.store.write("late", "fork") as tx:
        tx.add(RunRow("late", "novel", "", "s", "s", {}, parent="run", cut=5, pin=tx.pos - 1))
    child = View(tuple(shelf.store.line("late")), entities=("Mira",))
    assert await found(Memory(shelf.store), "key", child) == ["before", "person"]
    assert {r.id for r in search(shelf.store, "key", view=child)} == {"before", "person"}


async def test_name_that_nobody_sees_is_nobodys(shelf: Shelf) -> None:
    """ "Captain" names Captain Orlov as long as he is the only captain in sight."""
    shelf.add(rec("orlov", "by the fire", 1, owner="Captain Orlov"), rec("reed", "by the fire", 4, owner="Captain Reed"))
    memory = Memory(shelf.store)
    for time, named in ((9, []), (4, ["orlov"])):
        recalled = await memory.recall(replace(VIEW, time=time), Query("Is the captain by the fire?"))
        assert [f.record.id for f in recalled.found if "named" in f.parts] == named


async def test_part_of_a_chinese_name_names_nobody(shelf: Shelf) -> None:
    shelf.add(rec("olga", "坐在火边。", owner="奥尔加"), rec("orlov", "坐在火边。", owner="奥尔洛夫"))
    for text, named in (("奥尔加坐在火边吗？", "olga"), ("奥尔洛夫坐在火边吗？", "orlov")):
        recalled = await Memory(shelf.store).recall(VIEW, Query(text))
        assert [f.record.id for f in recalled.found if "named" in f.parts] == [named]


def test_episode_counts_by_its_three_best() -> None:
    h, group = np.array([0.5, 0.1, 0.4, 0.3, 0.6, 0.2, 0.0]), np.array([0, 0, 0, 0, 1, 1, 2])
    means = np.array([0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.0])
    assert fact.episodes(h, group) == pytest.approx(means / 0.4)


async def test_erased_is_not_recalled(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(rec("a", "Her name was Rosalind."), rec("b", "Rosalind has the key."))
    assert set(await found(memory, "Rosalind")) == {"a", "b"}
    shelf.store.erase(["Her name was Rosalind."], "asked for")
    memory.forget()
    assert await found(memory, "erased Rosalind") == ["b"]


async def test_retracted_is_listed_only_on_request(shelf: Shelf) -> None:
    memory = Memory(shelf.store)
    shelf.add(rec("b", "two", 2), rec("a", "one"))
    shelf.write([retracted(memory.get(VIEW, "a"), "wrong", by="person", time=3)])
    assert [r.id for r in memory.records(VIEW)] == ["b"]
    assert [r.id for r in memory.records(VIEW, every=True)] == ["a", "b"]
    assert [r.id for r in memory.records(replace(VIEW, time=3))] == ["a", "b"]
    assert memory.get(VIEW, "a").status == "retracted"


async def test_hot_scopes_are_bounded(shelf: Shelf) -> None:
    rows: list[RecordRow] = [added(replace(rec(f"{run}/{i}", f"key {i}"), run=run)) for run in "abcdef" for i in range(50)]
    for run in "abcdef":
        shelf.write([row for row in rows if row.run == run], run)
    memory = Memory(shelf.store, most_bytes=300_000)
    for _ in range(2):
        for run in "abcdef":
            assert await found(memory, "key 7", View((Reach(run),)), limit=1) == [f"{run}/7"]
    held = [place[0][0].run for place in memory._scopes]
    assert 1 <= len(held) < 6
    assert held[-1] == "f"
    tiny = Memory(shelf.store, most_bytes=0)
    assert await found(tiny, "key 7", View((Reach("a"),)), limit=1) == ["a/7"]
    assert len(tiny._scopes) == 1
    memory.close()
    assert not memory._scopes
