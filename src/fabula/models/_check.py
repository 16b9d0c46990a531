"""`fabula model check`: three small requests, and in plain words what works, how fast, and what is assumed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fabula.errors import AuthFailed, EmbeddedFailed, FabulaError, TimedOut, Unreachable, WeightsMissing
from fabula.models._extract import extract_json, validate
from fabula.models._port import Finish, Message, Model, Note, Profile, Request, Sampling, Schema, TextDelta, Usage

Kind = Literal["plain", "structured", "streamed"]

_POINTLESS = (AuthFailed, EmbeddedFailed, TimedOut, Unreachable, WeightsMissing)
"""After one of these the other requests would end alike."""

_PERSON = Schema(
    "person",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 40},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
)
_REQUESTS: dict[Kind, Request] = {
    "plain": Request(
        (Message("user", "Answer with one word: what is the colour of fresh snow?"),),
        "check",
        sampling=Sampling(max_tokens=256, temperature=0.0),
    ),
    "structured": Request(
        (
            Message(
                "user", "Mira the lighthouse keeper is 34 years old. Give her name and her age as a JSON object with the keys name and age."
            ),
        ),
        "check",
        schema=_PERSON,
        sampling=Sampling(max_tokens=512, temperature=0.0),
    ),
    "streamed": Request(
        (Message("user", "Describe a harbour at dawn in about sixty words."),), "check", sampling=Sampling(max_tokens=512, temperature=0.7)
    ),
}


@dataclass(frozen=True)
class Trial:
    """One request of the check. `first_seconds`: from asking to the first text; `rate`: tokens per second after it; None where unknown."""

    kind: Kind
    works: bool
    says: str
    """One sentence for the person."""
    seconds: float = 0.0
    first_seconds: float | None = None
    rate: float | None = None
    notes: tuple[str, ...] = ()
    next_action: str = ""


@dataclass(frozen=True)
class Report:
    """What the check found. Holds no key and no prompt."""

    model: str
    trials: tuple[Trial, ...]
    assumes: tuple[str, ...] = field(default=())
    """What is taken for granted about the model, in sentences."""
    ready_seconds: float | None = None
    """How long an embedded model took to be fetched and loaded, once; None for an address."""

    @property
    def works(self) -> bool:
        """All three requests were answered well."""
        return all(trial.works for trial in self.trials)

    def lines(self) -> list[str]:
        """The report in plain words, a line each."""
        lines = [f"{self.model}: {'works' if self.works else 'does not work as it should'}."]
        if self.ready_seconds is not None:
            lines.append(f"· Loaded in {self.ready_seconds:.1f} s.")
        for trial in self.trials:
            lines.append(f"{'✓' if trial.works else '✗'} {trial.says}")
            lines += [f"    {note}" for note in trial.notes]
            if trial.next_action:
                lines.append(f"    → {trial.next_action}")
        return [*lines, *(f"· {sentence}" for sentence in self.assumes)]

    def as_dict(self) -> dict[str, Any]:
        """As `--json` shows it."""
        return {**asdict(self), "works": self.works}


@dataclass
class _Heard:
    """One answer as it came. Times in seconds since asking."""

    text: str = ""
    pieces: int = 0
    first: float | None = None
    last: float = 0.0
    usage: Usage | None = None
    finish: str = "unknown"
    notes: list[str] = field(default_factory=list)


async def check_model(model: Model) -> Report:
    """Send one plain, one structured and one streamed request, one after another.

    Returns:
        What works. An error of the model is part of the report, not raised.
    """
    trials: list[Trial] = []
    ready_seconds = await _load(model)
    for kind, request in _REQUESTS.items():
        started = time.monotonic()
        try:
            trials.append(_judge(kind, await _hear(model, request)))
        except FabulaError as error:
            trials.append(
                Trial(kind, works=False, says=f"{kind}: {error.message}", seconds=time.monotonic() - started, next_action=error.next_action)
            )
            if isinstance(error, _POINTLESS):
                rest = list(_REQUESTS)[len(trials) :]
                trials += [Trial(other, works=False, says=f"{other}: not tried after that.") for other in rest]
                break
    return Report(model.name, tuple(trials), tuple(_assumptions(model.profile)), ready_seconds)


async def _load(model: Any) -> float | None:
    """Let an embedded model load first, so that its loading is not taken for slowness. What fails here fails in the first request again."""
    while not hasattr(model, "ready") and hasattr(model, "inner"):
        model = model.inner
    if not hasattr(model, "ready"):
        return None
    started = time.monotonic()
    with suppress(FabulaError):
        await model.ready()
    return time.monotonic() - started


async def _hear(model: Model, request: Request) -> _Heard:
    heard, started = _Heard(), time.monotonic()
    async for event in model.stream(request):
        if isinstance(event, TextDelta):
            heard.text += event.text
            heard.pieces += 1
            heard.last = time.monotonic() - started
            heard.first = heard.last if heard.first is None else heard.first
        elif isinstance(event, Usage):
            heard.usage = event
        elif isinstance(event, Finish):
            heard.finish = event.reason
        elif isinstance(event, Note):
            heard.notes.append(event.text)
    heard.last = time.monotonic() - started
    return heard


def _judge(kind: Kind, heard: _Heard) -> Trial:
    works, says = {"plain": _judge_plain, "structured": _judge_structured, "streamed": _judge_streamed}[kind](heard)
    return Trial(kind, works, f"{kind}: {says}", heard.last, heard.first, _rate(heard), tuple(heard.notes))


def _judge_plain(heard: _Heard) -> tuple[bool, str]:
    if not heard.text.strip():
        return False, f"the answer is empty (it ended by {heard.finish!r})."
    return True, f"answers in {heard.last:.1f} s, the first word after {heard.first or 0:.1f} s."


def _judge_structured(heard: _Heard) -> tuple[bool, str]:
    value = extract_json(heard.text)
    if value is None:
        return False, "the answer holds no whole JSON object; the writer will ask again, and often in vain."
    faults = validate(value, _PERSON.body)
    if faults:
        return False, f"the JSON does not follow its schema: {faults[0]}"
    clean = heard.text.strip().startswith("{") and heard.text.strip().endswith("}")
    return True, "follows a JSON schema" + ("." if clean else ", with other text around it that is taken away.")


def _judge_streamed(heard: _Heard) -> tuple[bool, str]:
    if not heard.text.strip():
        return False, f"the answer is empty (it ended by {heard.finish!r})."
    rate = _rate(heard)
    speed = f"{rate:.0f} tokens a second" if rate else "at a speed that could not be measured"
    if heard.pieces == 1:
        return True, f"the answer comes in one piece after {heard.last:.1f} s, {speed}; text cannot be shown as it is written."
    usage = "" if heard.usage is not None and not heard.usage.estimated else " The server does not tell usage; tokens are estimated."
    return True, f"streams, the first word after {heard.first or 0:.1f} s, then {speed}.{usage}"


def _rate(heard: _Heard) -> float | None:
    tokens = heard.usage.answer_tokens if heard.usage is not None else 0
    start = heard.first if heard.first is not None and heard.pieces > 1 else 0.0
    span = heard.last - start
    return tokens / span if tokens > 1 and span > 0 else None


def _assumptions(profile: Profile) -> list[str]:
    rungs = {
        "grammar": "structured answers by a grammar that the server enforces",
        "json_schema": "structured answers by JSON schema",
        "json_object": "structured answers by JSON mode, checked by us",
        "text": "structured answers are taken out of plain text, checked by us",
    }
    size = f"a window of {profile.window:,} tokens, answers of at most {profile.max_answer:,}, {profile.concurrency} requests at once"
    said = [
        f"Assumed (profile {profile.name!r}): {size}; {rungs[profile.structured]}.",
        f"Settings sent to it: {', '.join(sorted(profile.knobs)) or 'none'}.",
    ]
    for fitness, words in (("weak", "Weak in"), ("unfit", "Not fit to write in")):
        found = [_language(code) for code, value in profile.languages.items() if value == fitness]
        if found:
            said.append(f"{words}: {', '.join(found)}.")
    if profile.small:
        said.append("A small model: passages are written a sentence of the plan at a time.")
    if not profile.price_known:
        said.append("Its price is not known; a money limit needs prompt_price and answer_price.")
    return said


def _language(code: str) -> str:
    return "all other languages" if code == "*" else code
