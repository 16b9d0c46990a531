"""What shapes prompts and limits besides state: the model's facts and the person's limits, as plain values.

The facts of the model in use are a piece of state (lane "", name "model"), set at a run's start and edited when the run is
opened with another model. So a replay knows them without the model, and a fork inherits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fabula.errors import InputError, LimitReached
from fabula.models import Model, Usage

MODEL_PIECE = ("", "model")
SMALL_MODEL_PIECE = ("", "small_model")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a step may know of a model."""

    name: str = "none"
    window: int = 8192
    """Tokens of prompt and answer together."""
    max_answer: int = 4096
    small: bool = False
    """Asks for small-model mode (one call per plan sentence, short book-keeping)."""
    token_ratio: float = 1.0
    """Tokens of this model per token as `text.count_tokens` counts, fixed when the facts were journaled."""
    languages: Mapping[str, str] = field(default_factory=dict)
    prompt_price: float = 0.0
    answer_price: float = 0.0
    price_known: bool = True

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return {**asdict(self), "languages": dict(sorted(self.languages.items()))}

    @classmethod
    def of(cls, model: Model, token_ratio: float | None = None) -> ModelFacts:
        """The facts of a model; `token_ratio` is what was learnt of it before."""
        p = model.profile
        ratio = p.token_ratio if token_ratio is None else token_ratio
        return cls(
            model.name, p.window, p.max_answer, p.small, round(ratio, 3), dict(p.languages), p.prompt_price, p.answer_price, p.price_known
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | None) -> ModelFacts:
        """As journaled; unknown keys of later versions are ignored."""
        known = {name: value[name] for name in cls.__slots__ if value and name in value}
        return cls(**known)

    def cost(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Money for so many tokens."""
        return (prompt_tokens * self.prompt_price + answer_tokens * self.answer_price) / 1_000_000


def _unit(unit: str, count: float) -> str:
    return (unit.removesuffix("s") if count == 1 else unit) or "for money"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may spend in all, over every opening (SPEC M5). None = no limit."""

    tokens: int | None = None
    money: float | None = None
    calls: int | None = None

    def check(self, spent: Mapping[str, float], worst: Usage, facts: ModelFacts) -> None:
        """Stop before a limit is exceeded: what was asked so far plus the worst case of the next request.

        Raises:
            LimitReached: names the limit, what is spent and what the request might cost.
            InputError: a limit of money, and nobody knows what the model costs.
        """
        if self.money is not None and not facts.price_known:
            raise InputError(
                f"There is a limit of money, but the price of {facts.name} is not known.",
                "Set profile.prompt_price and profile.answer_price (per million tokens) in fabula.toml, or limit tokens instead.",
            )
        tokens = spent.get("prompt_tokens", 0) + spent.get("answer_tokens", 0)
        asking = worst.prompt_tokens + worst.answer_tokens
        for name, limit, so_far, more, unit in (
            ("tokens", self.tokens, tokens, asking, "tokens"),
            ("money", self.money, spent.get("cost", 0.0), worst.cost, ""),
            ("calls", self.calls, spent.get("calls", 0), 1, "calls"),
        ):
            if limit is not None and so_far + more > limit:
                raise LimitReached(
                    f"The limit of {limit:g} {_unit(unit, limit)} would be exceeded: {so_far:g} spent, up to {more:g} more asked.",
                    f"Raise the limit (--max-{name}) and resume the run; nothing is lost.",
                    limit=name,
                    value=limit,
                    spent=so_far,
                    next=more,
                )
