"""Models around a model: asking again, a bound on what is in flight, a limit on what is spent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from fabula.errors import FabulaError, InputError, LimitReached, RateLimited, ServerFailed, TimedOut, Unreachable
from fabula.models._port import Event, Model, Note, Profile, Request, TextDelta, Usage
from fabula.models._scripted import crude_tokens

_RETRIABLE = (RateLimited, ServerFailed, TimedOut, Unreachable)
_MESSAGE_TOKENS = 8
"""Tokens that a chat template adds to each message, at most."""


@asynccontextmanager
async def closing(events: AsyncIterator[Event]) -> AsyncIterator[AsyncIterator[Event]]:
    """Close a stream at the end of the block, so that leaving it early stops the generation at once."""
    try:
        yield events
    finally:
        close: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
        if close is not None:
            await close()


class Around:
    """A model around another one."""

    def __init__(self, model: Model) -> None:
        self.inner = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    @property
    def profile(self) -> Profile:
        """The inner model's profile."""
        return self.inner.profile

    @property
    def learnt(self) -> Any:
        """What the inner model learnt of its server; None where it learns nothing."""
        return getattr(self.inner, "learnt", None)

    async def ready(self) -> None:
        """Do now what the first request would do, where the inner model has such a thing (fetch weights, start a server)."""
        ready: Callable[[], Awaitable[None]] | None = getattr(self.inner, "ready", None)
        if ready is not None:
            await ready()

    async def close(self) -> None:
        """Close the inner model."""
        await self.inner.close()


class Retrying(Around):
    """Asks again where that may help: rate limits, server errors, silence, nothing there.

    Waits as long as the server tells, else twice as long each time, with jitter. What was delivered cannot be taken back, so after the
    first text nothing is asked again, unless `whole`: then all is held back until the answer is whole. Each retry leaves a Note.

    Args:
        model: the inner model.
        tries: most askings in all.
        seconds: most seconds of waiting in all; a server that wants more ends the tries.
        first: seconds before the second asking, where the server does not tell.
        longest: most seconds of one wait of our own choice.
        rng: for the jitter.
        sleep: how to wait (seconds); a test gives a virtual one.
        whole: hold the answer back until it is whole.
    """

    def __init__(
        self,
        model: Model,
        *,
        tries: int = 5,
        seconds: float = 300.0,
        first: float = 1.0,
        longest: float = 60.0,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        whole: bool = False,
    ) -> None:
        super().__init__(model)
        self._tries, self._seconds, self._first, self._longest = tries, seconds, first, longest
        self._rng, self._sleep, self._whole = rng or random.Random(), sleep, whole

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask, and ask again.

        Raises:
            ModelError: the last error, with `details["tries"]`; at once, if asking again cannot help.
        """
        waited = 0.0
        for number in range(1, self._tries + 1):
            held: list[Event] = []
            delivered = False
            try:
                async with closing(self.inner.stream(request)) as events:
                    async for event in events:
                        if self._whole:
                            held.append(event)
                            continue
                        delivered = delivered or isinstance(event, TextDelta)
                        yield event
            except _RETRIABLE as error:
                error.details["tries"] = number
                wait = self._wait(error, number)
                if delivered or number == self._tries or waited + wait > self._seconds or error.details.get("retry") is False:
                    raise
                for event in held:
                    if isinstance(event, Note):
                        yield event
                yield Note(f"Asked again after {wait:.1f} s ({number} of {self._tries} tries): {error.message}")
                waited += wait
                await self._sleep(wait)
                continue
            for event in held:
                yield event
            return

    def _wait(self, error: FabulaError, number: int) -> float:
        own = min(self._longest, self._first * 2.0 ** (number - 1)) * (0.5 + self._rng.random() / 2)
        told = error.details.get("seconds")
        # A little more than told, so that many who were told the same do not come back at one moment.
        return float(told) + 0.1 * own if isinstance(told, int | float) else own


class Concurrent(Around):
    """At most `limit` streams at once (the profile's `concurrency` if None); the others wait in order.

    A stream counts until it is closed, so a consumer that leaves one open keeps its place.
    """

    def __init__(self, model: Model, limit: int | None = None) -> None:
        super().__init__(model)
        self._limit = limit or model.profile.concurrency
        self._gate: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Wait for a place, then ask."""
        loop = asyncio.get_running_loop()
        if self._gate is None or self._loop is not loop:
            self._gate, self._loop = asyncio.Semaphore(self._limit), loop
        async with self._gate, closing(self.inner.stream(request)) as events:
            async for event in events:
                yield event


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent: calls, tokens, and money in the profile's currency."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and answer tokens."""
        return self.prompt_tokens + self.answer_tokens

    def plus(self, other: Spent) -> Spent:
        """Sum of both."""
        return Spent(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.answer_tokens + other.answer_tokens,
            self.cost + other.cost,
        )

    def minus(self, other: Spent) -> Spent:
        """Difference."""
        return Spent(
            self.calls - other.calls,
            self.prompt_tokens - other.prompt_tokens,
            self.answer_tokens - other.answer_tokens,
            self.cost - other.cost,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a person allows; None = no limit. `money` in the profile's currency."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None


@dataclass
class Budget:
    """Limits and what was spent, shared by all models of a run. `spent` may start from an earlier opening's snapshot."""

    limits: Limits = field(default_factory=Limits)
    spent: Spent = field(default_factory=Spent)
    reserved: Spent = field(default_factory=Spent)
    """The worst case of the calls in flight."""

    def reserve(self, worst: Spent, currency: str = "USD") -> None:
        """Set the worst case of a call aside.

        Raises:
            LimitReached: with it a limit could be exceeded. Nothing was set aside.
        """
        after = self.spent.plus(self.reserved).plus(worst)
        checks = (
            ("calls", after.calls, self.limits.calls, self.spent.calls, "calls"),
            ("tokens", after.tokens, self.limits.tokens, self.spent.tokens, "tokens"),
            ("money", after.cost, self.limits.money, self.spent.cost, currency),
        )
        for what, needed, limit, spent, unit in checks:
            if limit is not None and needed > limit:
                one = unit.removesuffix("s") if limit == 1 else unit
                raise LimitReached(
                    f"The limit of {limit:g} {one} could be exceeded: {spent:.6g} are spent, with the next call it could be {needed:.6g}.",
                    what=what,
                    limit=limit,
                    spent=spent,
                    needed=needed,
                )
        self.reserved = self.reserved.plus(worst)

    def settle(self, worst: Spent, real: Spent) -> None:
        """Replace what was set aside by what was spent."""
        self.reserved = self.reserved.minus(worst)
        self.spent = self.spent.plus(real)


class Budgeted(Around):
    """Stops **before** a limit is exceeded, counting what is asked: the worst case is the prompt's estimate plus `max_tokens`.

    A call that fails on its way is charged too: its prompt, unless the server refused to look at it, and the text that came.

    Args:
        model: the inner model. Put this inside `Retrying`, so that every asking counts.
        budget: the limits and what was spent, shared.
        count_tokens: counts tokens of a text; without it a crude estimate serves.
        margin: by what factor the prompt's estimate is raised, so that a tokenizer of another kind does not exceed the limit.

    Raises:
        InputError: a limit of money, but the model's price is unknown.
    """

    def __init__(self, model: Model, budget: Budget, *, count_tokens: Callable[[str], int] | None = None, margin: float = 1.15) -> None:
        super().__init__(model)
        self.budget, self._count, self._margin = budget, count_tokens, margin
        if budget.limits.money is not None and not model.profile.price_known:
            raise InputError(
                f"A limit of money cannot be kept: the price of {model.name} is unknown.",
                "Set `profile = {prompt_price = …, answer_price = …}` (per million tokens), or limit the tokens instead.",
            )

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask, if the worst case is within the limits.

        Raises:
            LimitReached: it is not; nothing was asked.
        """
        profile = self.profile
        prompt = self._estimate(request)
        most = min(request.sampling.max_tokens, profile.max_answer)
        worst = self._priced(prompt, most)
        self.budget.reserve(worst, profile.currency)
        usage: Usage | None = None
        text: list[str] = []
        looked_at = True
        try:
            async with closing(self.inner.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Usage):
                        usage = event if usage is None else usage.plus(event)
                    elif isinstance(event, TextDelta):
                        text.append(event.text)
                    yield event
        except FabulaError as error:
            looked_at = isinstance(error, ServerFailed | TimedOut) and error.details.get("sent") is not False
            raise
        finally:
            if usage is not None:
                real = Spent(1, usage.prompt_tokens, usage.answer_tokens, usage.cost)
            elif looked_at or text:
                real = self._priced(prompt, min(most, self._tokens("".join(text)) if text else 0))
            else:
                real = Spent(calls=1)
            self.budget.settle(worst, real)

    def _tokens(self, text: str) -> int:
        if self._count is None:
            return ceil(crude_tokens(text) * self._margin)
        return ceil(self._count(text) * self.profile.token_ratio * self._margin)

    def _estimate(self, request: Request) -> int:
        schema = 0 if request.schema is None else self._tokens(str(dict(request.schema.body))) + _MESSAGE_TOKENS
        return sum(self._tokens(m.content) + _MESSAGE_TOKENS for m in request.messages) + schema

    def _priced(self, prompt: int, answer: int) -> Spent:
        profile = self.profile
        return Spent(1, prompt, answer, (prompt * profile.prompt_price + answer * profile.answer_price) / 1_000_000)
