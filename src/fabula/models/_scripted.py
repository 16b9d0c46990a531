"""A model that follows a script: for tests, benchmarks and demonstrations without weights or network.

Its default answer contains a hash of the whole prompt, so that any difference in what was seen shows in what is said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from fabula.errors import FabulaError, ServerFailed
from fabula.models._instances import make_instance
from fabula.models._port import Answer, Event, Finish, Note, Profile, Request, TextDelta, Usage
from fabula.models._prose import Language, make_prose, script_language

_PIECE = 24
"""Characters of one text delta."""

Scriptable = str | Mapping[str, Any] | Answer | FabulaError | None
"""An answer: text, an object (sent as JSON), a whole Answer with its finish reason, an error to raise, or None for the default answer."""
Script = Sequence[Scriptable] | Callable[[Request], Scriptable] | Mapping[str, Any] | None
"""A list (one answer after another), a function of the request, or rules: purpose → answer, list or function, with `*` for all others."""

SCRIPTED_PROFILE = Profile(
    "scripted", window=131_072, max_answer=32_768, knobs=frozenset({"temperature", "top_p", "min_p", "stop", "seed"}), concurrency=64
)
"""Window and answer in tokens."""


def prompt_hash(request: Request) -> str:
    """12 hex digits of all that the model sees but the seed: what a default answer of `Scripted` contains."""
    return request.fingerprint("")[:12]


def request_language(request: Request) -> Language:
    """The language of the last user message, by its script."""
    users = [m.content for m in request.messages if m.role == "user"] or [m.content for m in request.messages]
    return script_language(users[-1] if users else "")


def crude_tokens(text: str) -> int:
    """About the tokens of a text, without tables: four bytes of UTF-8 each, at least one."""
    return len(text.encode("utf-8", "surrogatepass")) // 4 + 1


def default_answer(request: Request, *, words: int, key: str, language: Language | None = None) -> str:
    """What `Scripted` says when no script does.

    Prose without a schema (`words` words, in Chinese characters, less where `max_tokens` is small), else JSON that the schema allows.
    """
    language, mark = language or request_language(request), prompt_hash(request)
    if request.schema is not None:
        return json.dumps(make_instance(request.schema.body, key, language, mark), ensure_ascii=False)
    return make_prose(key, language, mark, max(1, min(words, request.sampling.max_tokens * 2 // 5)))


async def replay(answer: Answer, *, delay: float, sleep: Callable[[float], Awaitable[None]]) -> AsyncIterator[Event]:
    """Stream an answer in pieces of 24 characters with `delay` seconds before each."""
    for note in answer.notes:
        yield Note(note)
    for start in range(0, len(answer.text), _PIECE):
        await sleep(delay)
        yield TextDelta(answer.text[start : start + _PIECE])
    yield answer.usage
    yield Finish(answer.finish)


class Scripted:
    """A model that follows a script.

    Args:
        answers: the script; None = always the default answer.
        words: length of default prose in words (Chinese: characters), or a function of the request.
        seedless: the default answer depends on the request without its seed; else on both.
        nonce: called at each asking; its value makes the default answer to one request differ from asking to asking.
        delay: seconds before each piece of an answer, spent in `sleep` (which a test replaces by a virtual one).
        count_tokens: counts tokens for usage; without it usage is a crude estimate and says so.

    Every request is kept in `requests`, in the order of asking; `in_flight` and `most_in_flight` count streams.
    """

    def __init__(
        self,
        answers: Script = None,
        *,
        name: str = "scripted",
        profile: Profile = SCRIPTED_PROFILE,
        words: int | Callable[[Request], int] = 120,
        language: Language | None = None,
        seedless: bool = False,
        nonce: Callable[[], str] | None = None,
        delay: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        self._name, self._profile = name, profile
        self._answers = answers
        self._words, self._language, self._seedless, self._nonce = words, language, seedless, nonce
        self._delay, self._sleep, self._count = delay, sleep, count_tokens
        self._taken: dict[str, int] = {}
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def profile(self) -> Profile:
        """The profile given."""
        return self._profile

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Answer by the script.

        Raises:
            ServerFailed: a list has no answer left.
            FabulaError: whatever error the script says.
        """
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            async for event in replay(self._answer(request), delay=self._delay, sleep=self._sleep):
                yield event
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        """Nothing to release."""

    def _answer(self, request: Request) -> Answer:
        scripted = self._look_up(request)
        if isinstance(scripted, FabulaError):
            raise scripted
        if isinstance(scripted, Answer):
            return scripted
        if scripted is None:
            words = self._words(request) if callable(self._words) else self._words
            text = default_answer(request, words=words, key=self._key(request), language=self._language)
        else:
            text = scripted if isinstance(scripted, str) else json.dumps(scripted, ensure_ascii=False)
        return Answer(text, "stop", self.usage(request, text))

    def _look_up(self, request: Request) -> Scriptable:
        if not isinstance(self._answers, Mapping):
            return self._pick(self._answers, request, "*")
        rule = request.purpose if request.purpose in self._answers else "*"
        return self._pick(self._answers.get(rule), request, rule)

    def _pick(self, script: Any, request: Request, rule: str) -> Scriptable:
        if isinstance(script, Sequence) and not isinstance(script, str):
            taken = self._taken.get(rule, 0)
            self._taken[rule] = taken + 1
            if taken >= len(script):
                raise ServerFailed(f"The script has no answer number {taken + 1} for {rule!r}.", "Give the scripted model more answers.")
            script = script[taken]
        picked: Scriptable = script(request) if callable(script) else script
        return picked

    def _key(self, request: Request) -> str:
        seed = "" if self._seedless else str(request.seed)
        return f"{request.fingerprint('')}|{seed}|{self._nonce() if self._nonce else ''}"

    def usage(self, request: Request, text: str) -> Usage:
        """Usage of one answer, with the profile's prices."""
        count = self._count or crude_tokens
        prompt, answer = sum(count(m.content) for m in request.messages), count(text)
        cost = (prompt * self._profile.prompt_price + answer * self._profile.answer_price) / 1_000_000
        return Usage(prompt, answer, 0, cost, self._count is None)
