"""A model that misbehaves on purpose, in every way that real ones were seen to, each by a name of its own."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, get_args

from fabula.errors import Filtered, InputError, RateLimited, ServerFailed, TimedOut, TooLarge, TooLong, Unreachable
from fabula.models._extract import extract_json
from fabula.models._instances import make_instance
from fabula.models._port import Answer, Event, Model, Profile, Request, TextDelta, complete
from fabula.models._prose import Language, make_prose, prose_length
from fabula.models._scripted import prompt_hash, replay, request_language

Fault = Literal[
    "cut_off",
    "cut_off_as_stop",
    "loop",
    "bold_labels",
    "plan_lines",
    "missing_field",
    "label_in_prose",
    "prose_around_json",
    "json_cut",
    "wrong_language",
    "refusal",
    "filtered",
    "filtered_finish",
    "never_valid",
    "empty",
    "endless",
    "broken_stream",
    "rate_limited",
    "rate_limited_silent",
    "server_error",
    "timed_out",
    "unreachable",
    "too_long",
    "too_large",
]
"""What can go wrong.

- `cut_off`, `cut_off_as_stop`: ends in mid-sentence (JSON: in mid-value), with finish `length`, or with `length` reported as `stop`
- `loop`: the last sentence again and again until the tokens are used up
- `bold_labels`: Markdown labels in bold instead of JSON, or before the prose
- `plan_lines`: strings, or the prose, with each sentence on a line of its own, as a list
- `missing_field`: one required field is not there (prose has none: unchanged)
- `label_in_prose`: a line that looks like a label in the middle of the text
- `prose_around_json`: friendly words and a fence around the answer
- `json_cut`: cut after some byte, with finish `stop`
- `wrong_language`: right in form, in another language
- `refusal`, `filtered`, `filtered_finish`: a polite refusal as text; the provider's filter, as an error and as a finish reason
- `never_valid`: an object that no schema allows, a row of signs instead of prose
- `empty`, `endless`: no text at all; text without end
- `broken_stream`: some text, then the connection is gone
- `rate_limited` (tells how long to wait), `rate_limited_silent`, `server_error`, `timed_out`, `unreachable`, `too_long`, `too_large`
"""
FAULTS: tuple[Fault, ...] = get_args(Fault)

_OTHER: dict[Language, Language] = {"en": "ru", "zh": "en", "ru": "zh"}
_REFUSALS: dict[Language, str] = {
    "en": "I'm sorry, but I can't help with that request.",
    "zh": "很抱歉，我无法协助完成这个请求。",
    "ru": "Извините, но я не могу помочь с этим запросом.",
}
_LABELS: dict[Language, str] = {"en": "Plan 2: they wait for the tide.", "zh": "计划二：他们等待退潮。", "ru": "План 2: они ждут отлива."}
_ENDS = re.compile(r"(?<=[.!?。！？”])\s*")


class Misbehaving:
    """A model around another one that misbehaves now and then, or always.

    Args:
        base: answers, where nothing goes wrong.
        faults: the faults to choose from.
        rate: the share of askings that go wrong.
        seed: for the choice; the same seed and order of askings give the same faults.
        script: which fault at which asking, None for none; when it is used up, nothing goes wrong. Instead of `faults` and `rate`.
        cut_at: where `json_cut` cuts, as bytes of UTF-8; by chance if None.
        seconds: what `rate_limited` tells to wait, in seconds.
        silence: how long `timed_out` keeps silent before it raises, in seconds, spent in `sleep`.
        sleep: how to wait.

    `applied` lists (number of the asking from 0, fault) in order.
    """

    def __init__(
        self,
        base: Model,
        faults: Sequence[Fault] = FAULTS,
        *,
        rate: float = 1.0,
        seed: int = 0,
        script: Sequence[Fault | None] | None = None,
        cut_at: int | None = None,
        seconds: float = 1.0,
        silence: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        unknown = sorted({str(name) for name in (*faults, *(script or ())) if name is not None} - set(FAULTS))
        if unknown:
            raise InputError(f"There is no fault {unknown[0]!r}.", f"Choose from {', '.join(FAULTS)}.")
        self.base, self._faults, self._rate, self._script = base, tuple(faults), rate, script
        self._rng = random.Random(seed)
        self._cut_at, self._seconds, self._silence, self._sleep = cut_at, seconds, silence, sleep
        self._asked = 0
        self.applied: list[tuple[int, Fault]] = []

    @property
    def name(self) -> str:
        """The base's name."""
        return self.base.name

    @property
    def profile(self) -> Profile:
        """The base's profile."""
        return self.base.profile

    async def close(self) -> None:
        """Close the base."""
        await self.base.close()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Answer, or misbehave.

        Raises:
            ModelError: as the fault says.
        """
        fault = self._next()
        if fault is None:
            async for event in self.base.stream(request):
                yield event
            return
        await self._raise(fault)
        answer = await complete(self.base, request)
        if fault == "endless":
            async for event in _endless(answer.text, self._sleep):
                yield event
        spoilt = self._spoil(fault, answer, request)
        async for event in replay(spoilt, delay=0.0, sleep=self._sleep):
            if fault == "broken_stream" and not isinstance(event, TextDelta):
                raise ServerFailed(f"The connection to {self.name} was broken off.", broken_off=True)
            yield event

    def _next(self) -> Fault | None:
        number, self._asked = self._asked, self._asked + 1
        fault: Fault | None = None
        if self._script is not None:
            fault = self._script[number] if number < len(self._script) else None
        elif self._faults and self._rng.random() < self._rate:
            fault = self._rng.choice(self._faults)
        if fault is not None:
            self.applied.append((number, fault))
        return fault

    async def _raise(self, fault: Fault) -> None:
        name = self.name
        if fault == "rate_limited":
            raise RateLimited(f"{name} takes no more requests for now.", status=429, seconds=self._seconds)
        if fault == "rate_limited_silent":
            raise RateLimited(f"{name} takes no more requests for now.", status=429)
        if fault == "server_error":
            raise ServerFailed(f"{name} failed with status 500.", status=500)
        if fault == "timed_out":
            await self._sleep(self._silence)
            raise TimedOut(f"{name} kept silent for too long.")
        if fault == "unreachable":
            raise Unreachable(f"Nothing answers where {name} should be.")
        if fault == "too_long":
            raise TooLong(f"The prompt is too long for {name}.", status=400, window=self.profile.window)
        if fault == "too_large":
            raise TooLarge(f"The request is too large for {name}.", status=413)
        if fault == "filtered":
            raise Filtered(f"{name} refused the content.", status=400)

    def _spoil(self, fault: Fault, answer: Answer, request: Request) -> Answer:
        text, language = answer.text, request_language(request)
        if fault in ("cut_off", "cut_off_as_stop", "broken_stream"):
            return _with(answer, _in_mid_sentence(text), "length" if fault == "cut_off" else "stop")
        if fault == "loop":
            return _with(answer, _looped(text, request.sampling.max_tokens), "length")
        if fault == "json_cut":
            raw = text.encode()
            at = self._cut_at if self._cut_at is not None else self._rng.randrange(max(1, len(raw)))
            return _with(answer, raw[:at].decode("utf-8", "ignore"))
        if fault == "refusal":
            return _with(answer, _REFUSALS[language])
        if fault in ("empty", "filtered_finish"):
            return _with(answer, "", "stop" if fault == "empty" else "filter")
        if fault == "never_valid":
            return _with(answer, "???" if request.schema is None else '{"ok": "yes", "note": 7}')
        if fault == "wrong_language":
            return _with(answer, _in_language(_OTHER[language], text, request))
        value = extract_json(text) if request.schema is not None else None
        if isinstance(value, dict):
            return _with(answer, self._spoilt_object(fault, value, request, language))
        return _with(answer, _spoilt_prose(fault, text, language))

    def _spoilt_object(self, fault: Fault, value: dict[str, Any], request: Request, language: Language) -> str:
        if fault == "bold_labels":
            return "\n\n".join(f"**{name.replace('_', ' ').title()}:** {_as_words(field)}" for name, field in value.items())
        if fault == "prose_around_json":
            fenced = json.dumps(value, ensure_ascii=False, indent=2)
            return f"Sure! Here is what you asked for:\n\n```json\n{fenced}\n```\n\nTell me if I should change it."
        if fault == "missing_field":
            required = [name for name in (request.schema.body.get("required", ()) if request.schema else ()) if name in value]
            gone = self._rng.choice(required or sorted(value))
            return json.dumps({name: field for name, field in value.items() if name != gone}, ensure_ascii=False)
        change = _on_lines if fault == "plan_lines" else lambda text: _labelled(text, language)
        return json.dumps(_each_string(value, change), ensure_ascii=False)


def _with(answer: Answer, text: str, finish: Literal["stop", "length", "filter"] = "stop") -> Answer:
    return Answer(text, finish, answer.usage, answer.notes)


def _in_mid_sentence(text: str) -> str:
    """About two thirds, ending inside a word or a value."""
    at = max(1, len(text) * 2 // 3)
    while at > 1 and not text[at - 1].isalpha():
        at -= 1
    return text[:at]


def _sentences(text: str) -> list[str]:
    return [part for part in _ENDS.split(text) if part]


def _looped(text: str, max_tokens: int) -> str:
    last = (_sentences(text) or ["…"])[-1]
    return text + " " + " ".join([last] * max(8, min(60, max_tokens // max(1, len(last) // 4))))


def _on_lines(text: str) -> str:
    return "\n".join(f"- {sentence}" for sentence in _sentences(text))


def _labelled(text: str, language: Language) -> str:
    parts = _sentences(text)
    middle = len(parts) // 2
    gap = "" if language == "zh" else " "
    return f"{gap.join(parts[:middle])}\n\n{_LABELS[language]}\n\n{gap.join(parts[middle:])}".strip()


def _spoilt_prose(fault: Fault, text: str, language: Language) -> str:
    if fault == "bold_labels":
        return f"**Output Paragraph:**\n\n{text}\n\n**Output Memory:**"
    if fault == "prose_around_json":
        return f"Sure! Here is the passage:\n\n{text}\n\nTell me if I should change it."
    if fault == "plan_lines":
        return _on_lines(text)
    return _labelled(text, language) if fault == "label_in_prose" else text


def _in_language(language: Language, text: str, request: Request) -> str:
    if request.schema is not None:
        return json.dumps(make_instance(request.schema.body, f"other|{text}", language, prompt_hash(request)), ensure_ascii=False)
    return make_prose(f"other|{text}", language, prompt_hash(request), prose_length(text, request_language(request)))


def _each_string(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value) if len(_sentences(value)) > 1 else value
    if isinstance(value, list):
        return [_each_string(item, change) for item in value]
    return {name: _each_string(item, change) for name, item in value.items()} if isinstance(value, dict) else value


def _as_words(value: Any) -> str:
    if isinstance(value, list):
        return "\n" + "\n".join(f"{i}. {_as_words(item)}" for i, item in enumerate(value, 1))
    return "; ".join(_as_words(item) for item in value.values()) if isinstance(value, dict) else str(value)


async def _endless(text: str, sleep: Callable[[float], Awaitable[None]]) -> AsyncIterator[Event]:
    """Text for ever; ends only when the stream is closed."""
    while True:
        for word in (text or "…").split(" "):
            await sleep(0.0)
            yield TextDelta(word + " ")
