"""Capability profiles: data about servers and model families, and a person's word over it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from fabula.errors import InputError
from fabula.models._port import Fitness, Profile, Structured

_FIELDS = {field.name for field in fields(Profile)}
_KNOBS = frozenset({
    "temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "dry_multiplier", "stop", "seed", "max_completion_tokens",
})  # fmt: skip


@cache
def _table() -> Mapping[str, list[dict[str, Any]]]:
    import yaml

    table: Mapping[str, list[dict[str, Any]]] = yaml.safe_load(files("fabula.models").joinpath("profiles.yaml").read_text("utf-8"))
    return table


def find_profile(model: str, base_url: str | None = None, override: Mapping[str, Any] | None = None) -> Profile:
    """What is known of a model at an address: the family, then the server, then the person's own word (`override`).

    An embedded model has no address. What matches nothing gets the defaults of `Profile`: a window of 8,192 tokens, JSON schema.

    Raises:
        InputError: `override` has an unknown field, or a value that the field cannot have.
    """
    profile = Profile(name="default")
    family = next((entry for entry in _table()["families"] if re.search(entry["model"], model, re.IGNORECASE)), None)
    server = next((entry for entry in _table()["servers"] if base_url and re.search(entry["address"], base_url, re.IGNORECASE)), None)
    if family is not None:
        profile = _changed(profile, {k: v for k, v in family.items() if k != "model"})
    if server is not None:
        profile = _served(profile, server)
    return override_profile(profile, override or {})


def _served(profile: Profile, server: Mapping[str, Any]) -> Profile:
    """The family's profile at a server: windows and answers are never raised, and fields of a family that takes no knobs stay away."""
    changes = {k: v for k, v in server.items() if k not in ("address", "name")}
    for limit in ("window", "max_answer"):
        if limit in changes and profile.name != "default":
            changes[limit] = min(changes[limit], getattr(profile, limit))
    if "max_completion_tokens" in profile.knobs:
        changes.pop("knobs", None)
    if profile.structured == "text":
        changes.pop("structured", None)
    return _changed(profile, changes | {"name": f"{profile.name}@{server['name']}" if profile.name != "default" else server["name"]})


def _changed(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    values = {k: v for k, v in changes.items() if k in _FIELDS}
    knobs = frozenset(values.get("knobs", profile.knobs))
    values["knobs"] = (knobs | frozenset(changes.get("knobs+", ()))) - frozenset(changes.get("knobs-", ()))
    return replace(profile, **values)


def override_profile(profile: Profile, override: Mapping[str, Any]) -> Profile:
    """The profile with a person's own word over it; a price that is set counts as known.

    Raises:
        InputError: an unknown field, or a value that the field cannot have.
    """
    if not override:
        return profile
    for name, value in override.items():
        _check(name, value)
    changes = dict(override)
    if "prompt_price" in changes or "answer_price" in changes:
        changes.setdefault("price_known", True)
    return _changed(profile, changes)


def _check(name: str, value: Any) -> None:
    """Raise InputError where a person's own value cannot be."""
    action = f"Correct `profile` in the settings; it may hold {', '.join(sorted(_FIELDS - {'name'}))}."
    if name not in _FIELDS | {"knobs+", "knobs-"}:
        raise InputError(f"The setting `profile` has an unknown field {name!r}.", action)
    wrong = False
    if name in ("window", "max_answer", "concurrency") or (name == "request_bytes" and value is not None):
        wrong = not isinstance(value, int) or isinstance(value, bool) or value < 1
    elif name in ("prompt_price", "answer_price", "token_ratio", "timeout_seconds"):
        wrong = not isinstance(value, int | float) or isinstance(value, bool) or value < 0 or (value == 0 and name[-5:] != "price")
    elif name in ("small", "price_known"):
        wrong = not isinstance(value, bool)
    elif name == "structured":
        wrong = value not in get_args(Structured)
    elif name == "languages":
        wrong = not isinstance(value, Mapping) or any(fitness not in get_args(Fitness) for fitness in value.values())
    elif name.startswith("knobs"):
        wrong = isinstance(value, str) or not set(value) <= _KNOBS
    if wrong:
        raise InputError(f"The setting `profile` has {name} = {value!r}, which cannot be.", action)
