"""The rules of DESIGN 3, one test each, on toy recurrences."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import AddressTwice, Held, InputError, LimitReached, NotPossible, RateLimited, StepFailed, TooLong
from fabula.memory import Memory, Record, edited
from fabula.models import Answer, Profile, Scripted, Usage
from fabula.runs import (
    Context,
    Limits,
    Noted,
    Recurrence,
    Run,
    advance,
    always,
    create,
    diff,
    drafts,
    export,
    fork,
    leave_input,
    replay,
    stale,
    trace,
)
from fabula.store import CallRow, PieceRow, RecallRow, RecordRow, StepRow, Store
from tests.runs.ways import MARK, Chat, Killed, Novel, Toy, Tree, library, log, mark_of, new, opened, said


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = library(tmp_path / "a.db")
    yield held
    held.close()


def go(run: Run, steps: int) -> list[StepRow]:
    return asyncio.run(advance(run, steps=steps))


class One(Recurrence):
    """A recurrence of one function."""

    kind = "toy-one"

    def __init__(self, function: Any):
        self.function = function

    async def step(self, ctx: Context) -> Any:
        return await self.function(ctx)


def one(store: Store, function: Any, model: Any = None, **options: Any) -> Run:
    model = model or Toy()
    way = One(function)
    run = create(store, way, {}, run="one", seed="s", model=model)
    return opened(store, way, run, model, **options)


# -- steps, pieces ---------------------------------------------------------------------------------------------------------------


def test_a_step_at_t_reads_version_t_and_writes_the_next(store: Store) -> None:
    async def step(ctx: Context) -> int:
        count = ctx.piece("count", 0)
        ctx.put("count", count + 1)
        return int(count)

    run = one(store, step)
    assert [s.output for s in go(run, 3)] == [0, 1, 2]
    assert [p.version for p in run.versions("count")] == [1, 2, 3]
    assert run.piece("count", version=2) == 2


def test_only_changed_pieces_are_written_and_a_put_inside_the_interval_counts(store: Store) -> None:
    async def step(ctx: Context) -> None:
        ctx.put("same", "always")
        ctx.put("talks", "bob", at=ctx.time + 1)
        ctx.put("talks", None, at=ctx.time + 2)
        ctx.until = ctx.time + 2

    run = one(store, step)
    go(run, 2)
    rows = store.rows(PieceRow, run="one")
    assert [p.version for p in rows if p.name == "same"] == [1]
    assert [(p.version, p.value) for p in rows if p.name == "talks"] == [(1, "bob"), (2, None), (3, "bob"), (4, None)]


def test_an_address_may_be_used_once(store: Store) -> None:
    async def step(ctx: Context) -> None:
        await ctx.ask("say", said("a"))
        await ctx.ask("say", said("b"))

    run = one(store, step)
    with pytest.raises(AddressTwice):
        go(run, 1)
    assert store.steps(run.line) == []


def test_parts_named_by_the_code_may_run_at_once(store: Store) -> None:
    async def step(ctx: Context) -> list[str]:
        replies = await asyncio.gather(*(ctx.ask("say", said(p, MARK), part=p) for p in "abc"))
        return [r.value["mark"] for r in replies]

    run = one(store, step)
    (row,) = go(run, 1)
    assert len(set(row.output)) == 3
    assert len(row.uses["calls"]) == 3


def test_random_streams_are_of_the_root_seed_and_named(store: Store) -> None:
    async def step(ctx: Context) -> list[float]:
        return [ctx.random("a").random(), ctx.random("b").random()]

    run = one(store, step)
    (row,) = go(run, 1)
    child = opened(store, run.recurrence, fork(store, "one", 0), Toy())
    assert go(child, 1)[0].output == row.output
    assert row.output[0] != row.output[1]


# -- the journal -------------------------------------------------------------------------------------------------------------------


def test_answer_and_verdict_are_one_row_and_a_refusal_says_why_in_the_next_request(store: Store) -> None:
    answers = iter(["no json", json.dumps({"wrong": 1}), json.dumps({"mark": "right"})])
    model = Scripted(lambda _: next(answers))

    async def step(ctx: Context) -> str:
        return str((await ctx.ask("say", said("give a mark", MARK))).value["mark"])

    run = one(store, step, model)
    assert go(run, 1)[0].output == "right"
    rows = [c for c in store.rows(CallRow) if c.status not in ("asked", "partial")]
    assert [(c.status, c.attempt) for c in rows] == [("refused", 0), ("refused", 1), ("answered", 2)]
    assert "invalid" in rows[0].reason
    assert model.requests[0].messages[0].content == "give a mark"
    assert "could not be used" in model.requests[1].messages[0].content
    assert len(store.steps(run.line)[0].uses["calls"]) == 3


def test_when_tries_are_used_up_a_fall_back_serves_and_is_journaled(store: Store) -> None:
    heard: list[Any] = []

    async def step(ctx: Context) -> str:
        reply = await ctx.ask("say", said("x", MARK), tries=2, fallback=always('{"mark": "spare"}'))
        return f"{reply.value['mark']} {reply.fell_back}"

    run = one(store, step, Scripted(lambda _: "never"), listen=heard.append)
    assert go(run, 1)[0].output == "spare True"
    assert [c.status for c in store.rows(CallRow) if c.status != "asked"] == ["refused", "refused", "fallback"]
    assert any(isinstance(e, Noted) and "fall-back" in e.text for e in heard)
    assert asyncio.run(replay(store, run.recurrence, "one")) == (1, [])


def test_without_a_fall_back_the_step_fails_and_a_later_opening_asks_as_often_again(store: Store) -> None:
    answers = iter(["bad"] * 4 + ['{"mark": "good"}'])

    async def step(ctx: Context) -> str:
        return str((await ctx.ask("say", said("x", MARK), tries=2)).value["mark"])

    model = Scripted(lambda _: next(answers))
    run = one(store, step, model)
    for _ in range(2):
        with pytest.raises(StepFailed, match="refused 2 times"):
            go(run, 1)
        assert store.steps(run.line) == []
    assert go(run, 1)[0].output == "good"
    statuses = [c.status for c in store.rows(CallRow) if c.status != "asked"]
    assert statuses == ["refused", "refused", "failed", "refused", "refused", "failed", "answered"]


def test_transport_failures_count_in_neither_sample_nor_attempt(store: Store) -> None:
    answers: Any = iter([RateLimited("slow down"), '{"mark": "a"}'])

    async def step(ctx: Context) -> str:
        return str((await ctx.ask("say", said("x", MARK))).value["mark"])

    run = one(store, step, Scripted(lambda _: next(answers)))
    with pytest.raises(RateLimited):
        go(run, 1)
    assert go(run, 1)[0].output == "a"
    rows = store.rows(CallRow)
    assert [(c.status, c.attempt) for c in rows] == [("asked", 0), ("broken", 0), ("asked", 0), ("answered", 0)]
    assert store.usage("one")["prompt_tokens"] == rows[3].usage["prompt_tokens"]


def test_partials_are_drafts_and_survive(store: Store) -> None:
    class Dies(Toy):
        async def stream(self, request: Any) -> Any:
            count = 0
            async for event in super().stream(request):
                yield event
                count += 1
                if count == 3:
                    raise Killed

    run = opened(store, Novel(), new(store, Novel(), Dies()), Dies())
    with pytest.raises(Killed):
        go(run, 1)
    ((row, text),) = drafts(store, "run0")
    assert text
    assert text in mark_of(run.model.requests[0])  # type: ignore[union-attr]
    assert row.purpose == "prose"
    run.close()
    again = opened(store, Novel(), "run0", Toy())
    assert len(go(again, 1)) == 1
    assert store.rows(CallRow, status="partial")[0].answer == row.answer


def test_limits_count_what_was_asked_and_stop_before(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model, limits=Limits(calls=3))
    with pytest.raises(LimitReached) as caught:
        go(run, 5)
    assert caught.value.exit_code == 3
    assert len(model.requests) == 3
    run.limits = Limits(tokens=int(store.usage("run0")["prompt_tokens"]) + 10)
    with pytest.raises(LimitReached):
        go(run, 1)
    run.limits = Limits()
    assert len(go(run, 1)) == 1


def test_a_limit_of_money_needs_a_price(store: Store) -> None:
    def priced(known: bool) -> Scripted:
        return Scripted(mark_of, name=f"priced-{known}", profile=Profile("p", prompt_price=2.0, answer_price=8.0, price_known=known))

    async def step(ctx: Context) -> None:
        await ctx.ask("say", said("x", MARK, max_tokens=1_000))

    run = one(store, step, priced(True), limits=Limits(money=0.001))
    with pytest.raises(LimitReached, match="money"):
        go(run, 1)
    run.limits = Limits(money=1.0)
    go(run, 1)
    assert 0 < store.usage("one")["cost"] < 0.001
    run.close()
    with pytest.raises(InputError, match="price"):
        go(opened(store, run.recurrence, "one", priced(False), limits=Limits(money=1.0)), 1)


def test_a_prompt_that_cannot_fit_is_never_sent(store: Store) -> None:
    async def step(ctx: Context) -> None:
        await ctx.ask("say", said("word " * 200_000))

    model = Toy()
    with pytest.raises(TooLong):
        go(one(store, step, model), 1)
    assert model.requests == []
    assert store.rows(CallRow) == []


def test_the_token_ratio_is_fixed_at_the_start_and_what_is_learnt_serves_later_runs(store: Store) -> None:
    model = Scripted(lambda r: Answer(mark_of(r), "stop", Usage(400, 10)))
    run = opened(store, Novel(), new(store, Novel(), model), model)
    before = run.piece("model", lane="")["token_ratio"]
    go(run, 2)
    run.close()
    again = opened(store, Novel(), "run0", model)
    assert again.piece("model", lane="")["token_ratio"] == before
    again.close()
    new(store, Novel(), model, run="run1")
    assert opened(store, Novel(), "run1", model).piece("model", lane="")["token_ratio"] > before


def test_recalls_are_journaled_and_served_from_there(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 3)
    rows = store.rows(RecallRow, run="run0")
    assert len(rows) == 3
    assert rows[2].found["found"]
    assert asyncio.run(replay(store, Novel(), "run0")) == (3, [])


# -- the person ----------------------------------------------------------------------------------------------------------------------


def test_an_edit_counts_from_the_frontier_and_is_in_the_next_request(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 2)
    run.edit({("book", "memory"): "the person's own memory"})
    go(run, 1)
    assert "the person's own memory" in model.requests[-2].messages[0].content
    assert not any("own memory" in r.messages[0].content for r in model.requests[:-2])


def test_an_edit_after_a_crash_in_mid_step_is_used_by_the_step_that_is_made_again(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(fallback=None), new(store, Novel(), model), Scripted({"prose": "not acceptable"}))
    with pytest.raises(StepFailed):
        go(run, 1)
    run.edit({("book", "direction"): "make it rain"})
    run.model = model
    go(run, 1)
    assert "make it rain" in model.requests[0].messages[0].content


def test_edits_can_be_undone_before_and_after_a_step_has_read_them(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 1)
    run.undo_edit(run.edit({("book", "direction"): "first"}))
    assert run.piece("direction") is None
    pos = run.edit({("book", "direction"): "second"})
    go(run, 1)
    run.undo_edit(pos)
    assert run.piece("direction") is None
    assert asyncio.run(replay(store, Novel(), "run0")) == (2, [])
    with pytest.raises(NotPossible):
        run.undo_edit(1)


def test_regenerate_asks_anew_and_swiping_back_asks_nothing(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    first = go(run, 2)[-1].output
    run.regenerate(["prose"])
    second = go(run, 1)[-1].output
    assert second != first
    asked = len(model.requests)
    run.regenerate(["prose"], base=0)
    assert go(run, 1)[-1].output == first
    assert len(model.requests) == asked
    assert [s.time for s in store.steps(run.line)] == [0, 1]
    assert asyncio.run(replay(store, Novel(), "run0")) == (2, [])


def test_regenerate_keeps_a_note_and_drops_edits_of_what_it_wrote(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 2)
    run.edit({("book", "direction"): "more rain", ("book", "text:1"): "edited text"})
    run.regenerate(["prose"])
    assert run.piece("text:1") is None
    go(run, 1)
    assert "more rain" in model.requests[-2].messages[0].content


def test_withdrawn_steps_stay_and_count_and_their_records_are_out(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 3)
    spent = store.usage("run0")
    run.withdraw("book", 1, "undo")
    assert [s.time for s in store.steps(run.line)] == [0]
    assert len(store.rows(StepRow)) == 3
    assert store.usage("run0") == spent
    assert len(store.records(run.line)) == 1
    go(run, 2)
    assert [(s.time, s.take) for s in store.steps(run.line)] == [(0, 1), (1, 2), (2, 2)]


def test_withdrawing_in_a_tree_takes_along_what_it_reaches(store: Store) -> None:
    run = opened(store, Tree(), new(store, Tree()), Toy())
    asyncio.run(advance(run))
    gone = run.withdraw("0.2", 0, "changed")
    assert sorted(s.step for s in gone) == ["0.2", "1.1", "2.0", "3.0"]


# -- forks ---------------------------------------------------------------------------------------------------------------------------


def test_a_fork_shares_the_past_asks_nothing_again_and_differs_after_its_cut(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 4)
    texts = [s.output for s in store.steps(run.line)]
    child = opened(store, Novel(), fork(store, "run0", 2), Toy())
    assert [s.output for s in store.steps(child.line)] == texts[:2]
    go(child, 2)
    assert child.model.requests == []  # type: ignore[union-attr]  # the parent's answers serve, whatever their time
    child.edit({("book", "direction"): "turn left"})
    go(child, 1)
    mine = [s.output for s in store.steps(child.line)]
    assert mine[:4] == texts
    assert len(store.steps(run.line)) == 4


def test_later_edits_and_steps_of_the_parent_do_not_reach_the_child(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 2)
    child = fork(store, "run0", 2)
    run.edit({("book", "memory"): "changed later"})
    go(run, 1)
    held = opened(store, Novel(), child, Toy())
    assert held.piece("memory") != "changed later"
    assert [s.time for s in store.steps(held.line)] == [0, 1]
    assert "changed later" not in json.dumps([m.text for m in Memory(store).records(_view(store, child))])


def _view(store: Store, run: str) -> Any:
    from fabula.memory import View

    return View(tuple(store.line(run)))


def test_an_inherited_step_is_undone_by_a_fork_only(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 2)
    child = opened(store, Novel(), fork(store, "run0", 2), Toy())
    with pytest.raises(NotPossible, match="fork"):
        child.regenerate(["prose"])
    with pytest.raises(InputError):
        fork(store, "run0", -1)


def test_a_fork_of_a_fork_replays(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 3)
    child = opened(store, Novel(), fork(store, "run0", 2, run="child", model_seed="c"), Toy())
    child.edit({("book", "direction"): "left"})
    go(child, 2)
    grandchild = opened(store, Novel(), fork(store, "child", 3, run="grandchild", model_seed="g"), Toy())
    grandchild.edit({("book", "direction"): "right"})
    go(grandchild, 2)
    assert asyncio.run(replay(store, Novel(), "grandchild")) == (5, [])
    assert diff(child, grandchild).common == 3
    assert "book/memory" in diff(child, grandchild).pieces


# -- the library, holders, inbox -------------------------------------------------------------------------------------------------------


def test_a_correction_made_in_a_chat_is_seen_by_the_novels_next_step(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 2)
    chat = opened(store, Chat(), new(store, Chat(), run="chat"), Toy())
    chat.edit({("main", "said"): "Mira's map is a forgery"})
    go(chat, 1)
    go(run, 1)
    assert any("forgery" in r.messages[0].content for r in model.requests)
    assert asyncio.run(replay(store, Novel(), "run0")) == (3, [])


def test_one_holder_and_an_inbox_for_the_others(store: Store, tmp_path: Path) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 1)
    other = library(tmp_path / "a.db")
    with pytest.raises(Held, match="held"):
        opened(other, Novel(), "run0", Toy())
    assert len(Run(other, Novel(), "run0").lanes) == 1  # reading is always possible
    with pytest.raises(NotPossible, match="read only"):
        Run(other, Novel(), "run0").edit({("book", "memory"): "x"})
    leave_input(other, "run0", "edit", {"lane": "book", "name": "direction", "value": "from outside"})
    go(run, 1)
    assert "from outside" in model.requests[-2].messages[0].content
    run.close()
    opened(other, Novel(), "run0", Toy()).close()
    other.close()


# -- trace, stale, export ---------------------------------------------------------------------------------------------------------------


def test_a_trace_names_memories_plan_and_prompt(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 3)
    traced = trace(store, "run0", 2)
    prose = next(c for c in traced.calls if c.verdict.purpose == "prose")
    assert prose.asked is not None
    assert prose.asked.prompt[0][1] == model.requests[-2].messages[0].content
    assert prose.asked.model == "scripted"
    assert [m.text for m in traced.recalls["passages"]]
    assert traced.pieces["book/plan"] in prose.asked.prompt[0][1]
    assert traced.begun is not None


def test_what_rests_on_an_edit_is_stale_and_nothing_else(store: Store) -> None:
    async def step(ctx: Context) -> Any:
        before = ctx.piece(f"text:{ctx.time - 1}", "")
        ctx.put(f"text:{ctx.time}", f"{ctx.time} after {before[:2]}")
        return ctx.time

    run = one(store, step)
    go(run, 4)
    assert stale(run) == []
    run.edit({("main", "text:1"): "another text"})
    found = [(s.step.time, s.direct) for s in stale(run)]
    assert found == [(2, True), (3, False)]
    assert [run.piece(f"text:{n}") for n in (2, 3)] == ["2 after 1 ", "3 after 2 "]


def test_a_changed_memory_makes_stale_what_recalled_it(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 3)
    recalled = {m["id"] for r in store.rows(RecallRow, run="run0", time=2) for m in r.found["found"]}
    record = next(r for r in run.memory.records(_view(store, "run0")) if r.id in recalled)  # type: ignore[union-attr]
    run.edit({}, records=lambda time: [edited(record, by="person", time=time, text="Mira: it was otherwise")])
    assert stale(run)[0].direct


def test_the_export_holds_every_prompt_and_answer_and_stands_for_itself(store: Store) -> None:
    model = Toy()
    run = opened(store, Novel(), new(store, Novel(), model), model)
    go(run, 2)
    child = fork(store, "run0", 1)
    rows = [json.loads(line) for line in export(store, child)]
    assert {r["row"] for r in rows} >= {"run", "call", "step", "piece", "record", "begun", "recall"}
    prompts = [r["prompt"][0][1] for r in rows if r["row"] == "call" and r["status"] == "asked"]
    assert model.requests[0].messages[0].content in prompts
    assert {r["run"] for r in rows if r["row"] == "call"} == {"run0"}


def test_records_and_their_ids_come_from_run_lane_time_and_name(store: Store) -> None:
    async def step(ctx: Context) -> None:
        ctx.remember("a", Record(id="", kind="observation", text="Mira: one"))
        with pytest.raises(AddressTwice):
            ctx.remember("a", Record(id="", kind="observation", text="Mira: two"))

    run = one(store, step)
    go(run, 1)
    assert [r.id for r in store.rows(RecordRow)] == ["one/main/0/a"]


def test_a_step_does_not_see_what_it_is_about_to_remember(store: Store) -> None:
    async def step(ctx: Context) -> int:
        ctx.remember("a", Record(id="", kind="observation", text="Mira: a map"))
        return len(await ctx.recall("map Mira"))

    assert [s.output for s in go(one(store, step), 2)] == [0, 1]


def test_a_run_opened_with_another_model_notes_it_as_state(store: Store) -> None:
    run = opened(store, Novel(), new(store, Novel()), Toy())
    go(run, 1)
    run.close()
    other = Scripted(mark_of, name="another")
    again = opened(store, Novel(), "run0", other)
    go(again, 1)
    assert again.piece("model", lane="")["name"] == "another"
    assert asyncio.run(replay(store, Novel(), "run0")) == (2, [])


def test_cancelling_keeps_what_is_journaled(store: Store) -> None:
    model = Toy(delay=(5.0, 5.0))
    run = opened(store, Novel(), new(store, Novel(), model), model)

    async def main() -> None:
        task = asyncio.ensure_future(advance(run, steps=3))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert run.running == {}
    run.model = Toy()
    before = log(store, "run0")
    assert before["steps"] == []
    assert len(go(run, 1)) == 1
