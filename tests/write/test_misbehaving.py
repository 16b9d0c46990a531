"""Answers as bad as real ones (issue: Misbehaving answers): bounded retries with a reason, state untouched until all parts are valid."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, get_args

import pytest

from fabula.errors import FabulaError, ModelError, StepFailed
from fabula.memory import Memory
from fabula.models import Fault, Misbehaving, Request, Scripted
from fabula.runs import replay
from fabula.store import CallRow, Store, open_store
from fabula.text import ends_finished
from fabula.write import Novel, Premise, Story
from fabula.write._prose import check_prose, clean, fresh_part, is_refusal, passage_of

LABEL_INSIDE = "Mira read the sign.\nPlan: they wait for the tide.\nShe laughed."
PREMISE = "A lighthouse keeper vanishes on a stormy night, and Inspector Vale finds his broken watch."
_SMALL: tuple[Fault, ...] = ("cut_off_as_stop", "loop", "json_cut", "wrong_language", "bold_labels", "broken_stream")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = open_store(tmp_path / "a.db")
    yield held
    held.close()


def novel_on(store: Store, model: Any, **premise: Any) -> Novel:
    return Novel.start(store, Premise(premise=PREMISE, language="en", **premise), model=model, memory=Memory(store), seed="s")


async def no_sleep(_: float) -> None:
    return None


@pytest.mark.parametrize(("fault", "small"), [*((f, False) for f in get_args(Fault)), *((f, True) for f in _SMALL)])
def test_each_fault_once_at_every_other_call(store: Store, fault: Fault, small: bool) -> None:
    """Every second asking goes wrong in one way; the story is written all the same, and no bad answer is in it."""
    model = Misbehaving(Scripted(words=250, language="en"), script=[fault, None] * 60, sleep=no_sleep)
    novel = novel_on(store, model, small=small, length=900)
    for _ in range(80):
        with contextlib.suppress(ModelError, StepFailed):
            asyncio.run(novel.write(steps=1))
        if len(novel.passages()) >= 2:
            break
    assert len(novel.passages()) >= 2
    for passage in novel.passages():
        assert ends_finished(passage.text, "en")
        assert "**" not in passage.text.split("\n")[0]
        assert "```" not in passage.text
        assert not is_refusal(passage.text)
    assert asyncio.run(replay(store, Story(), novel.id))[1] == []
    for row in store.rows(CallRow, status="refused"):
        assert row.reason
        assert row.answer == "" or all(row.answer.strip() != p.text for p in novel.passages())


@pytest.mark.parametrize("fault", ["never_valid", "refusal", "empty", "wrong_language", "cut_off", "loop"])
def test_what_never_becomes_valid_stops_after_bounded_tries(store: Store, fault: Fault) -> None:
    model = Misbehaving(Scripted(words=250, language="en"), [fault], sleep=no_sleep)
    novel = novel_on(store, model)
    with pytest.raises(StepFailed) as caught:
        asyncio.run(novel.write(steps=1))
    assert caught.value.next_action
    assert store.steps(novel.run.line) == []
    assert len(store.rows(CallRow, status="asked")) <= 4
    assert novel.run.piece("title") == ""


def test_an_endless_stream_is_ended(store: Store) -> None:
    model = Misbehaving(Scripted(words=250, language="en"), ["endless"], sleep=no_sleep)
    novel = novel_on(store, model, small=True)
    with pytest.raises(FabulaError):
        asyncio.run(novel.write(steps=1))
    assert all(len(c.answer) < 40_000 for c in store.rows(CallRow))


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("**Passage:** Mira ran.", "Mira ran."),
        ("Output Paragraph:\nMira ran.", "Mira ran."),
        ("Sure! Here is the next passage:\n\nMira ran.", "Mira ran."),
        ("```\nMira ran.\n```", "Mira ran."),
        ("Mira ran.\n\n(Word count: 2)", "Mira ran."),
        ("正文：林岚跑了。", "林岚跑了。"),
        ("好的，以下是正文：\n\n林岚跑了。", "林岚跑了。"),
        ("Отрывок: Мира побежала.", "Мира побежала."),
        (LABEL_INSIDE, LABEL_INSIDE),
        ("“Here's the thing:” she said.", "“Here's the thing:” she said."),
    ],
)
def test_labels_and_remarks_go_and_the_story_stays(raw: str, kept: str) -> None:
    assert clean(raw) == kept


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I'm sorry, but I can't help with that request.", True),
        ("很抱歉，我无法协助完成这个请求。", True),
        ("Извините, но я не могу помочь с этим запросом.", True),
        ("I'm sorry, Mira said, and put the lamp down. The sea was dark.", False),
        ("Извините, сказала Мира и поставила лампу.", False),
        ("对不起，林岚说，然后放下了灯。", False),
    ],
)
def test_a_refusal_is_told_from_an_apology_in_the_story(text: str, refused: bool) -> None:
    assert is_refusal(text) is refused


def test_of_a_small_models_answer_what_is_new_is_kept() -> None:
    told = "Mira climbed the stairs of the lighthouse. The lamp was cold and the bed was empty."
    raw = "Mira climbed the stairs of the lighthouse. She found a letter under the lamp. She found a letter under the lamp. It was"
    assert fresh_part(raw, "en", [told]) == "She found a letter under the lamp."
    check = check_prose("en", [told], 5, fresh=True)
    assert check(raw, "length") is None
    assert check(told, "stop") == "repeats: all of it"
    assert fresh_part("“走吧。”林岚说。林岚走上灯塔的楼梯。", "zh", ["林岚走上灯塔的楼梯。"]) == "“走吧。”林岚说。"


def test_a_list_of_notes_is_no_prose_and_a_dash_may_open_speech() -> None:
    notes = "Mira went down to the shore.\n- Tomas was banished.\n- Mira did not know."
    assert check_prose("en", [], 1)(notes, "stop") == "labels"
    speech = "Мира вышла на берег.\n- Ты видел его? - спросила она.\n- Нет, - сказал Игнат. - Никого тут не было всю ночь."
    assert check_prose("ru", [], 1)(speech, "stop") is None


def test_a_draft_that_ends_in_mid_sentence_is_never_final() -> None:
    whole = "Mira climbed the stairs and counted them. At the top the lamp was cold. She"
    assert passage_of(whole, "en") == "Mira climbed the stairs and counted them. At the top the lamp was cold."
    assert check_prose("en", [], 5)(whole, "stop") is None
    assert check_prose("en", [], 50)(whole, "stop") == "cut off"
    assert check_prose("en", [], 1, whole=True)(whole, "stop") == "cut off"
    assert check_prose("en", [], 1)("She took a deep breath and", "length") == "cut off"


def test_a_passage_may_not_quote_its_context_again() -> None:
    earlier = "Mira climbed the lighthouse stairs alone that night, her heart pounding, and counted every single step to the top."
    again = f"The wind rose. {earlier} Then she stopped."
    reason = check_prose("en", [earlier], 1)(again, "stop")
    assert reason is not None
    assert reason.startswith("repeats")


def test_the_reason_of_a_refusal_goes_into_the_next_request(store: Store) -> None:
    seen: list[Request] = []

    def say(request: Request) -> str | None:
        seen.append(request)
        return "В бурную ночь смотритель маяка исчез, и никто не знал, куда он ушёл." if len(seen) == 2 else None

    novel = novel_on(store, Scripted(say, words=250, language="en"))
    asyncio.run(novel.write(steps=2))
    passages = [r for r in seen if r.purpose == "passage"]
    assert len(passages) == 2
    assert "language" in passages[1].messages[-1].content.replace(passages[0].messages[-1].content, "")
