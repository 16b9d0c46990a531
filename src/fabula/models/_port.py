"""The port to a language model: a request value in, a stream of events out (DESIGN 5).

Nothing here knows a provider. `Request.fingerprint` is what the journal compares: the seed and the purpose are not part
of it, so that a fork finds its parent's answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "filter", "unknown"]
Structured = Literal["grammar", "json_schema", "json_object", "text"]
Fitness = Literal["good", "weak", "unfit"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. `None` leaves a knob to the server; knobs that the profile does not list are dropped with a Note."""

    max_tokens: int = 1024
    """Most tokens of the answer."""
    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    dry_multiplier: float | None = None
    """Repetition control of llama.cpp servers."""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """A structured answer: a JSON schema (draft 2020-12) of type object, and a name for it."""

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """All that is sent, whatever the server."""

    messages: tuple[Message, ...]
    purpose: str = ""
    """What the call is for, e.g. `passage`. Not sent; scripted models and wrappers see it."""
    schema: Schema | None = None
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    """0 .. 2**31 - 1. Not part of the fingerprint."""

    def fingerprint(self, model: str) -> str:
        """SHA-256 (first 32 hex digits) of model, messages, schema and sampling."""
        sampling = {name: getattr(self.sampling, name) for name in Sampling.__slots__}
        body = [
            model,
            [[m.role, m.content] for m in self.messages],
            None if self.schema is None else [self.schema.name, self.schema.body],
            sampling,
        ]
        text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def with_seed(self, seed: int) -> Request:
        """The same request under another seed."""
        return replace(self, seed=seed)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them (estimated=True: as we count them), and money in `currency` units."""

    prompt_tokens: int = 0
    answer_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    estimated: bool = False

    def plus(self, other: Usage) -> Usage:
        """Sum of both."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.answer_tokens + other.answer_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the answer. Always the last event of a stream that did not raise."""

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class Note:
    """Something the journal should keep: a knob that was dropped, a step down the schema ladder, a retry."""

    text: str


Event = TextDelta | Usage | Finish | Note


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, collected from a stream."""

    text: str
    finish: FinishReason
    usage: Usage
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """What is known about a server and a model family. Data, loaded from `profiles.yaml`; see `find_profile`."""

    name: str
    window: int = 8192
    """Tokens of prompt and answer together."""
    max_answer: int = 4096
    """Most tokens of one answer."""
    request_bytes: int | None = None
    """The server's limit in bytes; None = unknown (learnt from the first 413)."""
    structured: Structured = "json_schema"
    """The highest rung of the schema ladder that works."""
    knobs: frozenset[str] = frozenset({"temperature", "top_p", "stop", "seed"})
    """Sampling fields (and `seed`) that the server takes; others are dropped with a Note."""
    small: bool = False
    """A small model: one call per sentence of the plan, short book-keeping calls."""
    languages: Mapping[str, Fitness] = field(default_factory=dict)
    """ISO 639-1 code → fitness; a language that is not listed has the fitness of `*`, and that defaults to `good`."""
    prompt_price: float = 0.0
    """Money per 1,000,000 prompt tokens."""
    answer_price: float = 0.0
    """Money per 1,000,000 answer tokens."""
    price_known: bool = False
    """Whether the two prices are the true ones (a local model's are known to be 0). Unknown prices make a money limit an input error."""
    currency: str = "USD"
    token_ratio: float = 1.0
    """Tokens of this model per token as `text.count_tokens` counts; refined by what servers report."""
    concurrency: int = 4
    """Requests in flight at once."""
    timeout_seconds: float = 600.0
    """Longest silence (seconds) between two events of a stream."""

    def fitness(self, language: str) -> Fitness:
        """How fit the model is to write `language` (ISO 639-1)."""
        return self.languages.get(language, self.languages.get("*", "good"))


@runtime_checkable
class Model(Protocol):
    """A language model. Errors are those of the ModelError branch; cancelling the iteration stops the generation."""

    @property
    def name(self) -> str:
        """Names the model in fingerprints and in the journal, e.g. `qwen2.5-coder-1.5b-instruct-q4_k_m`. Holds no address and no key."""

    @property
    def profile(self) -> Profile:
        """What is known about it."""

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask once. Text deltas and notes as they come, then usage, then Finish."""

    async def close(self) -> None:
        """Release connections and processes. May be called twice."""


async def complete(model: Model, request: Request) -> Answer:
    """Collect a whole stream.

    Raises:
        ModelError: as the model raises it.
    """
    text: list[str] = []
    notes: list[str] = []
    usage, finish = Usage(), Finish("unknown")
    async for event in model.stream(request):
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, Usage):
            usage = usage.plus(event)
        elif isinstance(event, Finish):
            finish = event
        else:
            notes.append(event.text)
    return Answer("".join(text), finish.reason, usage, tuple(notes))
