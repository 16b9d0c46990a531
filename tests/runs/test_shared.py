"""Answers that serve every run: found by what was asked, the earliest first, never one that was refused or cut off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import StepFailed
from fabula.models import Answer, Scripted, Usage
from fabula.runs import Context, ModelFacts, Run, create, fingerprint, known, replay
from fabula.store import CallRow, Store
from tests.runs.test_rules import One, go
from tests.runs.ways import MARK, Toy, library, opened, said


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = library(tmp_path / "a.db")
    yield held
    held.close()


def test_pure_answers_are_shared_by_all_runs_and_others_are_not(store: Store) -> None:
    async def step(ctx: Context) -> list[str]:
        shared = await ctx.ask("rate", said("how important?", MARK), pure=True)
        own = await ctx.ask("say", said("how?", MARK))
        return [shared.value["mark"], own.value["mark"]]

    way, model = One(step), Toy()
    outputs = []
    for name in ("first", "second"):
        create(store, way, {}, run=name, seed=name, model=model)
        outputs.append(go(opened(store, way, name, model), 1)[0].output)
    assert outputs[0][0] == outputs[1][0]
    assert outputs[0][1] != outputs[1][1]
    assert [r.purpose for r in model.requests] == ["rate", "say", "say"]


def test_a_question_is_known_before_it_is_asked_once_somebody_has_an_answer(store: Store) -> None:
    async def step(ctx: Context) -> list[str]:
        replies = [await ctx.ask("chunk", said(text, MARK), part=text, pure=True) for text in ctx.premise["texts"]]
        return [str(reply.pos) for reply in replies]

    way, model = One(step), Toy()
    facts = ModelFacts.of(model)
    names = {text: fingerprint(said(text, MARK), facts, "chunk") for text in ("a", "б", "丙", "d")}
    assert known(store, names.values()) == set()
    outputs = {}
    for run, texts in (("first", "aб"), ("second", "a丙бa")):
        create(store, way, {"texts": list(dict.fromkeys(texts))}, run=run, model=model)
        outputs[run] = go(opened(store, way, run, model), 1)[0].output
        assert known(store, names.values()) == {names[text] for text in {"first": "aб", "second": "aб丙"}[run]}
    asked = {row.fingerprint for row in store.rows(CallRow, status="asked")}
    assert asked == {names[text] for text in "aб丙"}, "as the journal has it"
    assert outputs["second"][0] == outputs["first"][0], "the earliest answer serves"
    assert (store.usage("first")["calls"], store.usage("second")["calls"]) == (2, 1), "each run counts what it asked"
    assert store.usage("second")["prompt_tokens"] < store.usage("first")["prompt_tokens"]
    assert asyncio.run(replay(store, way, "second")) == (1, [])
    assert known(store, [fingerprint(said("a", MARK), replace(facts, name="another"), "chunk")]) == set()


@pytest.mark.parametrize("answer", [Answer("Half of an answ", "length", Usage(9, 9)), Answer("Not wanted", "stop", Usage(9, 9))])
def test_an_answer_that_was_cut_off_or_refused_never_serves_another_run(store: Store, answer: Answer) -> None:
    async def step(ctx: Context) -> str:
        reply = await ctx.ask("chunk", said("a"), pure=True, tries=1, check=lambda text, _: "wrong" if "Not" in text else None)
        return reply.text

    way = One(step)
    for run, model in (("first", Scripted(lambda _: answer)), ("second", Scripted(lambda _: "A whole answer."))):
        create(store, way, {}, run=run, model=model)
        held = opened(store, way, run, model)
        if run == "first":
            with pytest.raises(StepFailed, match=r"cut off|wrong"):
                go(held, 1)
            assert known(store, [fingerprint(said("a"), held_facts(held), "chunk")]) == set()
        else:
            assert go(held, 1)[0].output == "A whole answer."
    assert [row.status for row in store.rows(CallRow) if row.status != "asked"] == ["refused", "failed", "answered"]


def held_facts(run: Run) -> ModelFacts:
    return ModelFacts.from_dict(run.piece("model", lane=""))
