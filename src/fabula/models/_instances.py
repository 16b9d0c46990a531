"""A valid value for a JSON schema, deterministic, so that a scripted model can answer whatever it is asked."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from fabula.errors import InputError
from fabula.models._prose import Language, joint, sentences

_SENTENCES = 3
"""Sentences of a string that has room."""
_SHORT = {"en": 120, "ru": 120, "zh": 26}
"""Characters: a string that may not be longer than this is a name rather than a sentence."""


class _Maker:
    def __init__(self, root: Mapping[str, Any], key: str, language: Language, mark: str) -> None:
        self._root, self._key, self._language, self._mark = root, key, language, mark

    def make(self, schema: Mapping[str, Any] | bool, path: str, depth: int = 0) -> Any:
        if isinstance(schema, bool):
            return None
        if depth > 40:
            raise InputError(
                f"The schema has no end at {path or 'its root'}.", "Give the scripted model an answer of its own for this schema."
            )
        schema = self._resolve(schema)
        rng = random.Random(f"{self._key}|{path}")
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(list(schema["enum"]))
        for several in ("anyOf", "oneOf"):
            if several in schema:
                branches = [b for b in schema[several] if self._kind(self._resolve(b)) != "null"] or list(schema[several])
                return self.make(rng.choice(branches), path, depth + 1)
        if "allOf" in schema:
            merged: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
            for part in schema["allOf"]:
                merged = _merge(merged, self._resolve(part))
            return self.make(merged, path, depth + 1)
        kind = self._kind(schema)
        if kind == "object":
            return self._object(schema, path, depth)
        if kind == "array":
            return self._array(schema, path, depth)
        makers = {"string": self._string, "integer": self._integer, "number": self._number}
        if kind in makers:
            return makers[kind](schema, path)
        return rng.random() < 0.5 if kind == "boolean" else None

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(20):
            if "$ref" not in schema:
                return schema
            target: Any = self._root
            for step in str(schema["$ref"]).lstrip("#").strip("/").split("/"):
                target = target[step] if step else target
            schema = {**{k: v for k, v in schema.items() if k != "$ref"}, **target}
        return schema

    @staticmethod
    def _kind(schema: Mapping[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        if kind is None:
            if "properties" in schema:
                return "object"
            return "array" if "items" in schema else "string"
        return str(kind)

    def _object(self, schema: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        extra = [name for name in schema.get("required", ()) if name not in properties]
        value = {name: self.make(body, f"{path}.{name}", depth + 1) for name, body in properties.items()}
        return value | dict.fromkeys(extra, self._mark)

    def _array(self, schema: Mapping[str, Any], path: str, depth: int) -> list[Any]:
        first = [self.make(s, f"{path}[{i}]", depth + 1) for i, s in enumerate(schema.get("prefixItems", ()))]
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        count = least or min(2, int(most) if most is not None else 2)
        items, unique = schema.get("items", {"type": "string"}), schema.get("uniqueItems", False)
        if items is False:
            return first
        value = first
        for index in range(len(first), 50 * max(count, 1)):
            if len(value) >= count:
                break
            item = self.make(items, f"{path}[{index}]", depth + 1)
            if not (unique and item in value):
                value.append(item)
        return value

    def _string(self, schema: Mapping[str, Any], path: str) -> str:
        if "pattern" in schema:
            raise InputError(
                f"The scripted model cannot make a string for the pattern at {path}.",
                "Give the scripted model an answer of its own for this schema.",
            )
        if schema.get("format") == "date":
            return "2024-05-17"
        if schema.get("format") == "date-time":
            return "2024-05-17T09:30:00Z"
        least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
        short = _SHORT[self._language]
        if most is not None and int(most) <= short and least <= short:
            text = f"{self._mark} {path.strip('.').rsplit('.', 1)[-1]}"
            return (text + "." * max(0, least - len(text)))[: int(most)]
        text = ""
        for count, sentence in enumerate(sentences(f"{self._key}|{path}", self._language, self._mark)):
            longer = text + joint(self._language) + sentence if text else sentence
            if len(text) >= max(least, 1) and (count >= _SENTENCES or (most is not None and len(longer) > int(most))):
                break
            text = longer
        return text if most is None else text[: int(most)]

    def _integer(self, schema: Mapping[str, Any], path: str) -> int:
        low, high, step = schema.get("minimum"), schema.get("maximum"), int(schema.get("multipleOf", 1))
        if "exclusiveMinimum" in schema:
            low = int(schema["exclusiveMinimum"]) + 1
        if "exclusiveMaximum" in schema:
            high = int(schema["exclusiveMaximum"]) - 1
        first = -(-int(low if low is not None else min(1, high if high is not None else 1)) // step)
        last = int(high if high is not None else first * step + 9 * step) // step
        return random.Random(f"{self._key}|{path}").randint(first, max(first, last)) * step

    def _number(self, schema: Mapping[str, Any], path: str) -> float:
        low = float(schema.get("minimum", schema.get("exclusiveMinimum", 0.0)))
        high = float(schema.get("maximum", schema.get("exclusiveMaximum", low + 1.0)))
        low = min(low, high) if "minimum" in schema or "exclusiveMinimum" in schema else min(low, high - 1.0)
        return low + (high - low) * (0.25 + 0.5 * random.Random(f"{self._key}|{path}").random())


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def make_instance(schema: Mapping[str, Any], key: str, language: Language, mark: str) -> Any:
    """A value that `schema` allows (draft 2020-12 without `pattern`, `not` and `if`); it depends on the arguments alone.

    Strings that have room hold sentences of `language` with `mark` in the first; short ones hold the mark and the field's name.

    Raises:
        InputError: the schema has a pattern, or no end.
    """
    return _Maker(schema, key, language, mark).make(schema, "")
