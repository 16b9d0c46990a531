"""What of a model's answer a person may see while it comes: prose as it is, of structured answers the fields that are story."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_FIELDS = {"beginning": ("title", "setting"), "passage": ("passage",), "author": ("plan",)}
"""Purpose → the fields of its structured answer that are shown."""
_PROSE = ("passage", "rewrite", "beginning")
"""Purposes whose plain answers are prose."""


@dataclass
class Draft:
    """One answer while it comes."""

    purpose: str
    part: str = ""
    raw: str = ""
    shown: dict[str, str] = field(default_factory=dict)
    """Field → what was given out of it so far; prose is the field of its purpose."""

    def add(self, text: str) -> list[tuple[str, str]]:
        """Take a delta; returns (field, new text) of what can be shown now."""
        self.raw += text
        start = self.raw.lstrip()[:1]
        if start == "{":
            return self._from_json()
        if self.purpose in _PROSE and start and not self.raw.lstrip().startswith("```"):
            name = "setting" if self.purpose == "beginning" else "passage"
            return self._news(name, self.raw.lstrip())
        return []

    def _from_json(self) -> list[tuple[str, str]]:
        from fabula.models import extract_partial

        names = _FIELDS.get(self.purpose, ())
        if not names:
            return []
        value: Any = extract_partial(self.raw)
        if not isinstance(value, dict):
            return []
        return [news for name in names if isinstance(value.get(name), str) for news in self._news(name, value[name])]

    def _news(self, name: str, whole: str) -> list[tuple[str, str]]:
        before = self.shown.get(name, "")
        if not whole.startswith(before) or whole == before:
            return []
        self.shown[name] = whole
        return [(name, whole[len(before) :])]
