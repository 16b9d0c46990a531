from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError, RateLimited, ServerFailed
from fabula.models import (
    Answer,
    Message,
    Request,
    Sampling,
    Schema,
    Scripted,
    TextDelta,
    Usage,
    complete,
    extract_json,
    prompt_hash,
    request_language,
    validate,
)
from fabula.text import ends_finished, find_loop, is_language

PLANS = Schema(
    "plans",
    {
        "type": "object",
        "$defs": {"plan": {"type": "object", "properties": {"text": {"type": "string", "minLength": 80}}, "required": ["text"]}},
        "properties": {
            "title": {"type": "string", "minLength": 3, "maxLength": 40},
            "memory": {"type": "string", "minLength": 1600, "maxLength": 2200},
            "reason": {"type": "string"},
            "plans": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"$ref": "#/$defs/plan"}},
            "choice": {"type": "integer", "minimum": 1, "maximum": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 0.5},
            "mood": {"enum": ["calm", "dark"]},
            "kind": {"const": "scene"},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
            "when": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
        },
        "required": ["title", "memory", "reason", "plans", "choice", "share", "mood", "kind", "tags", "when", "either"],
        "additionalProperties": False,
    },
)


def ask(text: str, seed: int = 0, schema: Schema | None = None, purpose: str = "", max_tokens: int = 1024) -> Request:
    messages = (Message("system", "You write stories."), Message("user", text))
    return Request(messages, purpose, schema, Sampling(max_tokens), seed)


@pytest.mark.parametrize(
    ("text", "language"),
    [("Write about a lighthouse.", "en"), ("写一个关于灯塔的故事。Name: Mira", "zh"), ("Напиши рассказ о маяке. JSON", "ru")],
)
async def test_default_prose_is_finished_in_the_language_and_holds_the_hash(text: str, language: str) -> None:
    request = ask(text, max_tokens=8000)
    assert request_language(request) == language
    for words in (60, 400, 1500):
        answer = await complete(Scripted(words=words), request)
        assert answer.finish == "stop"
        assert prompt_hash(request) in answer.text
        assert is_language(answer.text, language)
        assert ends_finished(answer.text, language)
        assert find_loop(answer.text) is None
        length = len(answer.text) if language == "zh" else len(answer.text.split())
        assert words <= length <= words + 80


async def test_any_difference_in_the_prompt_shows() -> None:
    base = ask("Write about a lighthouse.")
    others = [
        ask("Write about a lighthouse!"),
        replace(base, messages=base.messages[1:]),
        replace(base, sampling=Sampling(1025)),
        replace(base, schema=Schema("x", {"type": "object", "properties": {"a": {"type": "string"}}})),
    ]
    answers = [(await complete(Scripted(), request)).text for request in (base, *others)]
    assert len(set(answers)) == len(answers)
    assert len({prompt_hash(request) for request in (base, *others)}) == len(answers)


async def test_it_is_a_function_of_request_and_seed() -> None:
    request = ask("Write.", seed=1)
    one, same, other = [(await complete(Scripted(), r)).text for r in (request, replace(request, purpose="other"), request.with_seed(2))]
    assert one == same != other
    assert prompt_hash(request) == prompt_hash(request.with_seed(2))
    seedless = [(await complete(Scripted(seedless=True), r)).text for r in (request, request.with_seed(2))]
    assert seedless[0] == seedless[1]
    counter = itertools.count()
    model = Scripted(nonce=lambda: str(next(counter)))
    assert (await complete(model, request)).text != (await complete(model, request)).text


@given(st.integers(0, 2**31 - 1), st.sampled_from(["Write.", "写。", "Пиши же."]))
def test_default_objects_are_valid_and_hold_the_hash(seed: int, text: str) -> None:
    request = ask(text, seed, PLANS)
    value = extract_json(asyncio.run(complete(Scripted(), request)).text)
    assert isinstance(value, dict)
    assert validate(value, PLANS.body) == []
    assert prompt_hash(request) in value["title"]
    assert prompt_hash(request) in value["memory"]
    assert len({plan["text"] for plan in value["plans"]}) == 3


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6}}},
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5, "minimum": 7}}},
        {"type": "object", "properties": {"a": {"type": "integer", "maximum": -3}}},
        {"type": "object", "properties": {"a": {"type": "number", "maximum": -3}}},
        {"type": "object", "properties": {"a": {"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 5}}}},
        {"type": "object", "properties": {"a": {"type": "array", "maxItems": 0, "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 50, "maxLength": 60}}},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": False}},
        },
        {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}]},
        {
            "type": "object",
            "properties": {"a": {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "array", "items": {"type": "null"}}]}},
        },
    ],
)
async def test_odd_schemas(schema: dict[str, object]) -> None:
    for seed in range(8):
        value = extract_json((await complete(Scripted(), ask("Go.", seed, Schema("x", schema)))).text)
        assert validate(value, schema) == []


async def test_a_schema_without_an_end_and_a_pattern_are_told() -> None:
    endless = {
        "type": "object",
        "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
    }
    for schema in (endless, {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$"}}}):
        with pytest.raises(InputError):
            await complete(Scripted(), ask("Go.", schema=Schema("x", schema)))


async def test_lists_functions_and_rules() -> None:
    whole = Answer("cut", "length", Usage(3, 1))
    model = Scripted(["one", {"a": 1}, whole, RateLimited("Later.", seconds=3.0), None])
    assert (await complete(model, ask("a"))).text == "one"
    assert json.loads((await complete(model, ask("a"))).text) == {"a": 1}
    assert await complete(model, ask("a")) == whole
    with pytest.raises(RateLimited):
        await complete(model, ask("a"))
    assert prompt_hash(ask("a")) in (await complete(model, ask("a"))).text
    with pytest.raises(ServerFailed, match="number 6"):
        await complete(model, ask("a"))
    assert [r.messages[1].content for r in model.requests] == ["a"] * 6

    model = Scripted({"plan": ["p1", "p2"], "rate": lambda r: {"n": len(r.messages)}, "*": "else"})
    said = [(await complete(model, ask("a", purpose=p))).text for p in ("plan", "rate", "memory", "plan")]
    assert said == ["p1", '{"n": 2}', "else", "p2"]
    assert prompt_hash(ask("b")) in (await complete(Scripted({"plan": "p"}), ask("b"))).text


async def test_delays_are_virtual_and_streams_can_be_left() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    model = Scripted(delay=2.0, sleep=sleep)
    text = ""
    stream = model.stream(ask("a"))
    async for event in stream:
        assert isinstance(event, TextDelta)
        text += event.text
        assert model.in_flight == 1
        if len(text) > 30:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert model.in_flight == 0
    assert slept == [2.0] * len(slept)
    assert slept
    assert (await complete(model, ask("a"))).text.startswith(text)
