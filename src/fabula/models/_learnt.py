"""What a server teaches us by refusing: kept for the process by the adapter, and beyond it by whoever stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabula.models._port import Profile, Structured

LADDER: tuple[Structured, ...] = ("grammar", "json_schema", "json_object", "text")
"""The rungs, best first."""


@dataclass(frozen=True)
class Learnt:
    """Facts that refine a profile. None and empty: nothing learnt."""

    structured: Structured | None = None
    """The highest rung of the schema ladder that was not refused."""
    request_bytes: int | None = None
    """Largest request, bytes, that may still be taken; from a 413."""
    window: int | None = None
    """Tokens, where a refusal told it."""
    refused: frozenset[str] = frozenset()
    """Optional fields that the server does not take."""
    token_ratio: float | None = None
    """Prompt tokens as told, per token as counted; not applied before the next opening (a run's ratio is fixed at its start)."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, without what was not learnt."""
        values = {
            "structured": self.structured,
            "request_bytes": self.request_bytes,
            "window": self.window,
            "token_ratio": self.token_ratio,
        }
        return {k: v for k, v in values.items() if v is not None} | ({"refused": sorted(self.refused)} if self.refused else {})

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Learnt:
        """The inverse of `as_dict`; unknown names are passed over, so that a later version's facts do no harm."""
        known = {k: values[k] for k in ("structured", "request_bytes", "window", "token_ratio") if k in values}
        return Learnt(refused=frozenset(values.get("refused", ())), **known)

    def applied(self, profile: Profile) -> Profile:
        """The profile as refined by what was learnt; a limit is only ever lowered, a rung only ever stepped down."""
        changes: dict[str, Any] = {"knobs": profile.knobs - self.refused}
        if self.structured is not None and LADDER.index(self.structured) > LADDER.index(profile.structured):
            changes["structured"] = self.structured
        if self.request_bytes is not None:
            changes["request_bytes"] = min(self.request_bytes, profile.request_bytes or self.request_bytes)
        if self.window is not None:
            changes["window"] = min(self.window, profile.window)
        if self.token_ratio is not None:
            changes["token_ratio"] = self.token_ratio
        return replace(profile, **changes)
