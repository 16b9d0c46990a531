from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabula.errors import Filtered, InputError, ModelError, RateLimited, ServerFailed, TimedOut, TooLarge, TooLong, Unreachable
from fabula.models import (
    FAULTS,
    Answer,
    Fault,
    Message,
    Misbehaving,
    Request,
    Sampling,
    Schema,
    Scripted,
    complete,
    extract_json,
    validate,
)
from fabula.text import ends_finished, find_loop, is_language
from tests.models.streams import Read

PROMPTS = {"en": "Write about a lighthouse.", "zh": "写一个关于灯塔的故事。", "ru": "Напиши рассказ о маяке."}
SCHEMA = Schema(
    "notes",
    {
        "type": "object",
        "properties": {
            "memory": {"type": "string", "minLength": 120},
            "plans": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string", "minLength": 90}},
            "reason": {"type": "string", "minLength": 10},
        },
        "required": ["memory", "plans", "reason"],
        "additionalProperties": False,
    },
)


def prose(language: str) -> Request:
    return Request((Message("user", PROMPTS[language]),), sampling=Sampling(2000))


def notes(language: str) -> Request:
    return replace(prose(language), schema=SCHEMA)


async def answer(fault: Fault, request: Request, **options: Any) -> Answer:
    return await complete(Misbehaving(Scripted(), [fault], **options), request)


async def good(request: Request) -> str:
    return (await complete(Scripted(), request)).text


@pytest.mark.parametrize("language", PROMPTS)
@pytest.mark.parametrize(("fault", "finish"), [("cut_off", "length"), ("cut_off_as_stop", "stop")])
async def test_cut_off(language: str, fault: Fault, finish: str) -> None:
    said = await answer(fault, prose(language))
    assert said.finish == finish
    assert not ends_finished(said.text, language)
    assert (await good(prose(language))).startswith(said.text)
    assert len(said.text) > 40
    assert extract_json((await answer(fault, notes(language))).text) is None


@pytest.mark.parametrize("language", PROMPTS)
async def test_loops(language: str) -> None:
    said = await answer("loop", prose(language))
    assert said.finish == "length"
    assert find_loop(said.text) is not None
    assert find_loop(await good(prose(language))) is None


@pytest.mark.parametrize("language", PROMPTS)
async def test_wrong_language(language: str) -> None:
    said = await answer("wrong_language", prose(language))
    assert said.finish == "stop"
    assert is_language(said.text, language) is False
    value = extract_json((await answer("wrong_language", notes(language))).text)
    assert isinstance(value, dict)
    assert validate(value, SCHEMA.body) == []
    assert is_language(value["memory"], language) is False


@pytest.mark.parametrize("language", PROMPTS)
async def test_forms(language: str) -> None:
    request = notes(language)
    whole = extract_json(await good(request))
    assert isinstance(whole, dict)

    labels = (await answer("bold_labels", request)).text
    assert "**Memory:**" in labels
    assert extract_json(labels) is None
    assert (await answer("bold_labels", prose(language))).text.startswith("**Output Paragraph:**")

    lines = extract_json((await answer("plan_lines", request)).text)
    assert isinstance(lines, dict)
    assert all(plan.count("\n") >= 1 for plan in lines["plans"])

    missing = extract_json((await answer("missing_field", request)).text)
    assert isinstance(missing, dict)
    assert len(missing) == 2
    assert len(validate(missing, SCHEMA.body)) == 1

    labelled = extract_json((await answer("label_in_prose", request)).text)
    assert isinstance(labelled, dict)
    assert any(mark in labelled["memory"] for mark in ("\n\nPlan 2:", "\n\n计划二：", "\n\nПлан 2:"))
    assert "\n\n" in (await answer("label_in_prose", prose(language))).text

    around = (await answer("prose_around_json", request)).text
    assert around.startswith("Sure!")
    assert extract_json(around) == whole

    never = await answer("never_valid", request)
    assert validate(extract_json(never.text), SCHEMA.body)
    assert (await answer("never_valid", prose(language))).text == "???"
    assert "\n" not in (await answer("refusal", request)).text
    assert (await answer("empty", request)).text == ""
    assert (await answer("filtered_finish", request)).finish == "filter"


async def test_json_cut_at_each_byte() -> None:
    request = notes("ru")
    size = len((await good(request)).encode())
    for at in range(0, size, 7):
        said = await answer("json_cut", request, cut_at=at)
        assert said.finish == "stop"
        assert extract_json(said.text) is None
        assert len(said.text.encode()) in (at, at - 1)
    assert extract_json((await answer("json_cut", request, cut_at=size)).text) is not None


@pytest.mark.parametrize(
    ("fault", "kind", "seconds"),
    [
        ("rate_limited", RateLimited, 2.5),
        ("rate_limited_silent", RateLimited, None),
        ("server_error", ServerFailed, None),
        ("timed_out", TimedOut, None),
        ("unreachable", Unreachable, None),
        ("too_long", TooLong, None),
        ("too_large", TooLarge, None),
        ("filtered", Filtered, None),
    ],
)
async def test_errors(fault: Fault, kind: type[ModelError], seconds: float | None) -> None:
    with pytest.raises(kind) as caught:
        await answer(fault, prose("en"), seconds=2.5)
    assert caught.value.details.get("seconds") == seconds


async def test_a_broken_stream_gives_some_text_first() -> None:
    read = Read()
    with pytest.raises(ServerFailed):
        await read.take(Misbehaving(Scripted(), ["broken_stream"]), prose("en"))
    assert read.text
    assert not read.ended
    assert (await good(prose("en"))).startswith(read.text)


async def test_endless_ends_when_it_is_left() -> None:
    stream = Misbehaving(Scripted(), ["endless"]).stream(prose("en"))
    count = 0
    async for _ in stream:
        count += 1
        if count > 3000:
            break
    await stream.aclose()  # type: ignore[attr-defined]


async def test_scripts_rates_and_names() -> None:
    model = Misbehaving(Scripted(), script=["empty", None, "refusal"])
    said = [(await complete(model, prose("en"))).text for _ in range(5)]
    assert [bool(text) for text in said] == [False, True, True, True, True]
    assert model.applied == [(0, "empty"), (2, "refusal")]

    def share(seed: int) -> list[tuple[int, str]]:
        model = Misbehaving(Scripted(), ["empty", "refusal"], rate=0.3, seed=seed)
        for _ in range(100):
            model._next()
        return list(model.applied)

    assert share(1) == share(1) != share(2)
    assert 15 < len(share(1)) < 45
    with pytest.raises(InputError, match="'lopp'"):
        Misbehaving(Scripted(), ["lopp"])  # type: ignore[list-item]


async def test_every_fault_is_a_fault_for_prose_or_for_objects() -> None:
    """No fault leaves both kinds of answers as they were."""
    for fault in set(FAULTS) - {"endless"}:
        changed = False
        for request in (prose("en"), notes("en")):
            try:
                said = await answer(fault, request)
            except ModelError:
                changed = True
            else:
                changed = changed or said.text != await good(request) or said.finish != "stop"
        assert changed, fault


async def test_prose_that_is_no_json_for_a_schema_is_spoilt_as_prose() -> None:
    said = await complete(Misbehaving(Scripted("One. Two. Three."), ["plan_lines"]), notes("en"))
    assert said.text == "- One.\n- Two.\n- Three."
