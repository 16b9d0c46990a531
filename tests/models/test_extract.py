from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.models import extract_json, extract_partial, validate

VALUE = {
    "title": 'The "key"',
    "memory": "Она ушла. 她走了。\n}{",
    "plans": [{"text": "a, b", "n": 1}, {"text": "[c]", "n": None}],
    "ok": True,
}

scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6), v, max_size=3), max_leaves=8)
objects = st.dictionaries(st.text(max_size=6), values, min_size=1, max_size=4)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "frame",
    [
        "@@",
        "\ufeff@@",
        " \n@@\n",
        "```json\n@@\n```",
        "```\n@@\n```",
        "Sure! Here it is:\n\n```json\n@@\n```\nTell me more.",
        "答案：@@。",
        "Вот ответ: @@ — готово.",
        '<think>Perhaps {"a": 1}?</think>\n@@',
        "First [1] and {sigh}. @@ :-)",
        "It's done: @@",
        'I say {"draft": 1}, no: @@',
    ],
)
def test_whole_values_are_found(frame: str, ascii_only: bool, indent: int | None) -> None:
    assert extract_json(frame.replace("@@", json.dumps(VALUE, ensure_ascii=ascii_only, indent=indent))) == VALUE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
        ("{'a': 'it\\'s', 'b': True, 'c': None, 'd': False}", {"a": "it's", "b": True, "c": None, "d": False}),
        ("{'a': 'say \"hi\"', 'b': \"it's\"}", {"a": 'say "hi"', "b": "it's"}),
        ('{"a": "None, True,}", "b": 1,}', {"a": "None, True,}", "b": 1}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ("[1, 2]", [1, 2]),
        ('see [1]: {"a": 1} and [2]', {"a": 1}),
        ('{"a": 1} {"b": 2}', {"b": 2}),
        ("{}", {}),
    ],
)
def test_small_repairs(text: str, value: object) -> None:
    assert extract_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "5",
        '"a"',
        "null",
        "{",
        "}",
        '{"a": 1',
        '{"a": {"b": 1}',
        '[{"a": 1}, {"b": 2}',
        '{"a": "x" "y"}',
        "{a: 1}",
        '{"a": 1 "b": 2}',
        '{"a": "she said "} and left"}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": "\\ud83d"}',
        "{'a': 'it's'}",
        '<think>{"a": 1}',
        '{"a": 1} {"b": ',
        '{"a": {1, 2}}',
        '{"a": f"x"}',
        '{"a": __import__("os")}',
        "[" * 50_000,
        "{" * 50_000,
        '{"a":' * 50_000,
        "[" * 3000 + "]" * 3000,
        '{"a": 1]',
        '{"bad" "syntax": [{"name": "Mira"}]}',
    ],
)
def test_what_is_not_whole_or_not_sure_is_none(text: str) -> None:
    assert extract_json(text) is None


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here: {} Bye."])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_cut_at_every_byte(frame: str, ascii_only: bool) -> None:
    said = json.dumps(VALUE, ensure_ascii=ascii_only, indent=1)
    raw = frame.replace("{}", said).encode()
    whole_from = len(frame.split("{}")[0].encode()) + len(said.encode())
    for at in range(len(raw)):
        text = raw[:at].decode("utf-8", "ignore")
        assert extract_json(text) == (VALUE if at >= whole_from else None), at
        partial = extract_partial(text)
        assert partial is None or isinstance(partial, dict)
        if isinstance(partial, dict) and isinstance(partial.get("memory"), str):
            assert VALUE["memory"].startswith(partial["memory"].rstrip("\ufffd"))  # type: ignore[attr-defined]


@given(objects, st.data())
def test_cut_anywhere_is_never_taken_for_whole(value: dict[str, Any], data: st.DataObject) -> None:
    said = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    assert extract_json(said) == value
    assert extract_json(said[: data.draw(st.integers(0, len(said) - 1))]) is None


@given(objects)
def test_python_literals_cut_anywhere(value: dict[str, Any]) -> None:
    said = repr(value)
    assert extract_json(said) in (value, None)
    assert all(extract_json(said[:at]) is None for at in range(len(said)))


@given(st.text(alphabet="{}[]\"'\\,: abTrue1\n", max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    extract_json(text)
    extract_partial(text)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3},
        "plans": {
            "type": "array",
            "minItems": 3,
            "items": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n", "text"]},
        },
        "mood": {"enum": ["calm", "dark"]},
        "reason": {"type": "string"},
    },
    "required": ["title", "plans", "reason"],
    "additionalProperties": False,
}


def test_sentences_say_where_and_what() -> None:
    assert validate({"title": "abc", "plans": [{"n": 1, "text": "a"}] * 3, "reason": "r"}, SCHEMA) == []
    said = validate({"title": "a", "plans": [{"n": 9}], "mood": "gay", "extra": 1}, SCHEMA)
    assert said == [
        "the answer: 'reason' is missing.",
        "the answer: Additional properties are not allowed ('extra' was unexpected).",
        'mood: must be one of "calm", "dark".',
        "plans: has 1 items, at least 3 are needed.",
        "title: has 1 characters, at least 3 are needed.",
        "plans[0]: 'text' is missing.",
        "plans[0].n: is 9, must be at most 3.",
    ]
    assert validate([1], SCHEMA) == ["the answer: must be of type object, not array."]
    assert validate(None, SCHEMA) == ["the answer: must be of type object, not null."]


def test_sentences_are_few_and_short() -> None:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "integer", "pattern": "x"} for i in range(50)}}
    said = validate({f"p{i}": "Mira " * 500 for i in range(50)}, schema)
    assert len(said) == 12
    assert said[-1] == "and 89 more."
    assert all(len(sentence) < 200 for sentence in said)
