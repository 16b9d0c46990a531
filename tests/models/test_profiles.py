from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, get_args

import pytest
import yaml

from fabula.errors import InputError
from fabula.models import Fitness, Learnt, Profile, Structured, find_profile

OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("model", "address", "expected"),
    [
        ("gpt-4o-mini", OPENAI, {"window": 128000, "structured": "json_schema", "concurrency": 8}),
        ("gpt-4.1", OPENAI, {"window": 1000000}),
        ("gpt-5-mini", OPENAI, {"knobs": frozenset({"max_completion_tokens", "seed"})}),
        ("o3", OPENAI, {"name": "o-series@openai"}),
        ("gpt-4", OPENAI, {"structured": "json_object", "window": 8192}),
        (
            "claude-sonnet-4-5",
            "https://api.anthropic.com/v1/",
            {"structured": "text", "knobs": frozenset({"temperature", "top_p", "stop"})},
        ),
        ("anthropic/claude-opus", "https://openrouter.ai/api/v1", {"name": "claude@openrouter", "structured": "text"}),
        ("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai", {"window": 1000000}),
        ("deepseek-chat", "https://api.deepseek.com", {"structured": "json_object"}),
        ("deepseek-reasoner", "https://api.deepseek.com", {"structured": "json_object"}),
        ("qwen3:8b", "http://127.0.0.1:11434/v1", {"window": 4096, "concurrency": 1, "price_known": True}),
        ("qwen2.5-3b-instruct", "http://localhost:8080/v1", {"small": True, "structured": "json_schema"}),
        ("meta-llama/Llama-3.3-70B", "http://localhost:8000/v1", {"window": 131072, "concurrency": 32}),
        ("llama3.2:1b", "http://[::1]:8080/v1", {"small": True, "price_known": True}),
        ("mistral-large", "https://api.mistral.ai/v1", {"window": 32768, "price_known": False}),
        ("something-new", "https://example.org/v1", {"name": "default", "window": 8192, "structured": "json_schema", "price_known": False}),
        ("something-new", "http://127.0.0.1:5001/v1", {"name": "llama.cpp", "price_known": True}),
        ("qwen2.5-coder-1.5b-instruct-q4_k_m", None, {"structured": "grammar", "small": True}),
        ("scripted", None, {"window": 131072, "price_known": True}),
    ],
)
def test_families_and_servers(model: str, address: str | None, expected: dict[str, Any]) -> None:
    profile = find_profile(model, address)
    assert {name: getattr(profile, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("model", "fitness"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m", ("good", "weak", "unfit")),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m", ("weak", "weak", "unfit")),
        ("smollm2-135m-instruct-q4_1", ("weak", "unfit", "unfit")),
        ("gpt-4o", ("good", "good", "good")),
        ("scripted", ("good", "good", "good")),
    ],
)
def test_languages(model: str, fitness: tuple[Fitness, ...]) -> None:
    assert tuple(find_profile(model).fitness(language) for language in ("en", "zh", "ru")) == fitness


def test_a_person_has_the_last_word() -> None:
    own = {"window": 32768, "knobs+": ["min_p"], "knobs-": ["seed"], "languages": {"ru": "good"}, "structured": "text", "prompt_price": 0.4}
    profile = find_profile("gpt-4o", OPENAI, own)
    assert (profile.window, profile.structured, profile.prompt_price, profile.price_known) == (32768, "text", 0.4, True)
    assert "min_p" in profile.knobs
    assert "seed" not in profile.knobs
    assert find_profile("gpt-4o", OPENAI, {"knobs": ["stop"]}).knobs == {"stop"}
    assert find_profile("gpt-4o", OPENAI, {"request_bytes": None}).request_bytes is None


@pytest.mark.parametrize(
    "own",
    [
        {"windw": 1},
        {"window": "8k"},
        {"window": 0},
        {"window": True},
        {"structured": "xml"},
        {"knobs": "seed"},
        {"knobs+": ["sead"]},
        {"prompt_price": -1},
        {"timeout_seconds": 0},
        {"small": 1},
        {"languages": {"ru": "bad"}},
        {"languages": ["ru"]},
        {"request_bytes": 1.5},
    ],
)
def test_mistakes_of_a_person_are_told(own: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(own)).rstrip("+")) as caught:
        find_profile("gpt-4o", OPENAI, own)
    assert "window" in caught.value.next_action


def test_the_table_itself() -> None:
    table = yaml.safe_load(files("fabula.models").joinpath("profiles.yaml").read_text("utf-8"))
    known = set(Profile.__dataclass_fields__) | {"knobs+", "knobs-"}
    for kind, pattern in (("families", "model"), ("servers", "address")):
        for entry in table[kind]:
            re.compile(entry[pattern])
            assert set(entry) - {pattern} <= known, entry["name"]
            assert entry.get("structured", "text") in get_args(Structured)
            assert set(entry.get("languages", {}).values()) <= set(get_args(Fitness))
            assert not {"prompt_price", "answer_price"} & set(entry), "prices change; a person sets them"
    names = [entry["name"] for entry in table["families"]]
    assert len(names) == len(set(names))


def test_what_was_learnt_only_ever_lowers() -> None:
    profile = Profile("p", window=1000, structured="json_object", request_bytes=500, knobs=frozenset({"seed", "stop"}))
    learnt = Learnt("grammar", 900, 2000, frozenset({"seed"}), 1.5)
    assert learnt.applied(profile) == Profile(
        "p", window=1000, structured="json_object", request_bytes=500, knobs=frozenset({"stop"}), token_ratio=1.5
    )
    assert Learnt("text", 100, 50).applied(profile).structured == "text"
    assert Learnt("text", 100, 50).applied(profile).request_bytes == 100
    assert Learnt("text", 100, 50).applied(profile).window == 50
    assert Learnt.from_dict(learnt.as_dict()) == learnt
    assert Learnt().as_dict() == {}
    assert Learnt.from_dict({"from_a_later_version": 1}) == Learnt()
