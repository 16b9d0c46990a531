"""Finding the JSON in what a model said, and saying in short sentences what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_MOST_SENTENCES = 12
_THINKING_END = "</think>"
_TOKEN = re.compile(
    r"""(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')|(?P<word>\b(?:True|False|None)\b)|(?P<comma>,(?=\s*[}\]]))""", re.DOTALL
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_LONE = re.compile("[\ud800-\udfff]")


def extract_json(text: str) -> object | None:
    """The JSON value that an answer holds, or None.

    - The whole text, a fenced block, or a value with prose around it; a leading byte order mark and a `<think>` part are passed over.
    - Of several top-level values **the last complete object** wins (who thinks aloud corrects himself later); an array serves only where
      there is no object.
    - Trailing commas, single-quoted strings and `True`/`False`/`None` are put right, token by token; nothing else is guessed.
    - **A value that is cut off is never taken for a whole one**, nor is anything inside it: an opening bracket without its closing one
      means None, whatever came before, and so does a closing brace that nothing opened. Lone surrogates, NaN and Infinity mean None.
    """
    spoken = _spoken(text)
    if spoken is None:
        return None
    whole = _parse(spoken)
    if isinstance(whole, dict | list):
        return whole
    values: list[object] = []
    for unit in _units(spoken):
        if unit is None:
            return None
        value = _parse(unit)
        if value is None:
            value = _parse(_repaired(unit))
        if value is not None:
            values.append(value)
    return next((v for v in reversed(values) if isinstance(v, dict)), values[-1] if values else None)


def extract_partial(text: str) -> object | None:
    """As much of the value as is there yet, with strings cut where the text ends: for display only, never for state."""
    import jiter

    spoken = _spoken(text)
    start = -1 if spoken is None else min((i for i in (spoken.find("{"), spoken.find("[")) if i >= 0), default=-1)
    if spoken is None or start < 0:
        return None
    whole = extract_json(text)
    if whole is not None:
        return whole
    try:
        value: object = jiter.from_json(spoken[start:].encode("utf-8", "replace"), partial_mode="trailing-strings")
    except ValueError:
        return None
    return value


def validate(value: object, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with `value`, as short sentences with the path, most important first, at most 12; [] = valid (draft 2020-12).

    The sentences are meant to be sent back to the model as the reason, and say nothing of our program.
    """
    from jsonschema import Draft202012Validator

    errors = sorted(
        Draft202012Validator(dict(schema)).iter_errors(value), key=lambda e: (len(e.absolute_path), [str(p) for p in e.absolute_path])
    )
    said = list(dict.fromkeys(_sentence(error) for error in errors))
    if len(said) > _MOST_SENTENCES:
        return [*said[: _MOST_SENTENCES - 1], f"and {len(said) - _MOST_SENTENCES + 1} more."]
    return said


def _spoken(text: str) -> str | None:
    """The text after any thinking; None if the thinking has not ended."""
    text = text.strip().lstrip("\ufeff").strip()
    if _THINKING_END in text:
        return text.rsplit(_THINKING_END, 1)[1].strip()
    return None if text.startswith("<think>") else text


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _parse(text: str) -> object | None:
    """An object or array, or None. Line breaks inside strings are let through: models write them, and they are unambiguous."""
    try:
        value: object = json.loads(text, strict=False, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and not _has_lone(value) else None


def _has_lone(value: object) -> bool:
    if isinstance(value, str):
        return _LONE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_lone(k) or _has_lone(v) for k, v in value.items())
    return isinstance(value, list) and any(_has_lone(v) for v in value)


def _units(text: str) -> Iterator[str | None]:
    """Top-level bracketed spans, in order; None for a span without an end, and for a brace that nothing opened."""
    position = 0
    while position < len(text):
        char = text[position]
        if char == "}":
            yield None
            return
        if char in "{[":
            end = _end(text, position)
            if end is None:
                yield None
                return
            yield text[position:end]
            position = end
        else:
            position += 1


def _end(text: str, start: int) -> int | None:
    """Index after the bracket that closes the one at `start`; brackets inside strings do not count."""
    open_brackets: list[str] = []
    position, before = start, ""
    while position < len(text):
        char = text[position]
        if char == '"' or (char == "'" and before in "{[,:"):
            closing = _string_end(text, position)
            if closing is None:
                return None
            position, before = closing, char
            continue
        if char in "{[":
            open_brackets.append(char)
        elif char in "}]":
            if not open_brackets or {"}": "{", "]": "["}[char] != open_brackets.pop():
                return None
            if not open_brackets:
                return position + 1
        if not char.isspace():
            before = char
        position += 1
    return None


def _string_end(text: str, start: int) -> int | None:
    quote, position = text[start], start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text[position] == quote:
            return position + 1
        else:
            position += 1
    return None


def _repaired(unit: str) -> str:
    """The span with trailing commas dropped and Python's literals turned into JSON's; strings keep their content."""

    def put_right(match: re.Match[str]) -> str:
        if match["double"] is not None:
            return match["double"]
        if match["single"] is not None:
            inner = match["single"][1:-1].replace("\\'", "'")
            return '"' + re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', inner) + '"'
        return _WORDS.get(match["word"], "") if match["word"] is not None else ""

    return _TOKEN.sub(put_right, unit)


def _path(parts: Any) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.lstrip(".") or "the answer"


def _sentence(error: Any) -> str:
    where, kind, asked, value = _path(error.absolute_path), error.validator, error.validator_value, error.instance
    if kind == "required":
        missing = [name for name in asked if name not in value]
        return f"{where}: {', '.join(repr(name) for name in missing)} is missing."
    if kind == "type":
        wanted = asked if isinstance(asked, str) else " or ".join(asked)
        return f"{where}: must be of type {wanted}, not {_kind(value)}."
    if kind == "enum":
        return f"{where}: must be one of {', '.join(json.dumps(v, ensure_ascii=False) for v in asked)[:200]}."
    if kind in ("minLength", "maxLength"):
        return f"{where}: has {len(value)} characters, {'at least' if kind == 'minLength' else 'at most'} {asked} are needed."
    if kind in ("minItems", "maxItems"):
        return f"{where}: has {len(value)} items, {'at least' if kind == 'minItems' else 'at most'} {asked} are needed."
    if kind in ("minimum", "maximum"):
        return f"{where}: is {value}, must be {'at least' if kind == 'minimum' else 'at most'} {asked}."
    if kind == "additionalProperties":
        return f"{where}: {error.message[:160].rstrip('.')}."
    return f"{where}: {error.message[-160:] if len(error.message) > 160 else error.message}."


def _kind(value: object) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)
