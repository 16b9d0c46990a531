"""Asking a model from inside a step: addresses, verdicts, refusals, partial answers (DESIGN 3, The journal).

The order of writes for one request:

    asked      before it is sent (worst case of its usage, so that limits count what was asked)
    partial*   deltas of a stream, at least once a second
    answered | refused | broken      the verdict, or the transport's failure (which counts in neither sample nor attempt)

Answer and verdict are one row: there is no moment at which an unjudged answer is in the journal. A rerun takes verdicts, never
the check. When tries are used up, `fallback` (its value serves) or `failed` is a row of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fabula.errors import (
    AddressTwice,
    AuthFailed,
    ModelError,
    Offline,
    RateLimited,
    StepFailed,
    TooLarge,
    TooLong,
    Unreachable,
    Unsupported,
)
from fabula.models import Event, Finish, Message, Model, Request, TextDelta, Usage, closing, extract_json, validate
from fabula.runs._facts import Limits, ModelFacts
from fabula.runs._progress import Answered, Asked, Noted, Wrote
from fabula.store import Address, CallRow, Store

if TYPE_CHECKING:
    from fabula.runs._context import Context
    from fabula.runs._prompts import Rendered

_FREE = (AuthFailed, RateLimited, TooLarge, TooLong, Unreachable, Unsupported)
"""Failures after which the server has certainly done no work that costs anything."""

_NO_LIMITS = Limits()
_MOST_TRIES = 10_000
_WATCHED = 400
"""Characters between two looks at a stream."""
_ENDLESS = 16
"""Characters a token at most; a stream that brings more than its `max_tokens` can hold is ended."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that was not accepted. It never becomes content."""

    text: str
    reason: str
    finish: str


Check = Callable[[str, str], str | None]
"""(answer, finish reason) → a reason to refuse, or None. Reasons read `code` or `code: detail`, e.g. `cut off`, `too short: 120 words`."""

Watch = Callable[[str], bool]
"""The text so far → it will come to nothing (it loops, say): stop reading, which stops the generation."""

Fallback = Callable[[list[Refusal]], str | None]
"""What serves when the tries are used up; None = the step fails. Must depend on the refusals alone."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of a step, as the way in puts it."""

    purpose: str
    prompt: Rendered
    part: str = ""
    sample: int = 0
    check: Check | None = None
    tries: int = 3
    fallback: Fallback | None = None
    pure: bool = False
    """The answer is a function of the prompt alone and may serve every run. One that was refused or cut off never does."""
    stream: bool = False
    small: bool = False
    """Ask the small model, where the run has one."""
    watch: Watch | None = None
    """Looks at the text so far, every few hundred characters; what it says ends the stream, and the check sees what there is."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An accepted answer."""

    text: str
    value: Any
    """Parsed, for a structured answer; else None."""
    finish: str
    pos: int
    fell_back: bool = False


def seed_of(model_seed: str, address: Address | None) -> int:
    """The seed sent to the model: of the run's model seed and the address; a constant for pure calls."""
    if address is None:
        return 1
    text = "\x1f".join(
        [model_seed, address.step, str(address.time), address.purpose, address.part, str(address.sample), str(address.attempt)]
    )
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1


def fingerprint(prompt: Rendered, facts: ModelFacts, purpose: str) -> str:
    """What a question is known by in the journal (32 hex digits), before any answer to it was refused.

    It comes of the model's name, the messages, the schema and the sampling; `purpose` is no part of it, and is taken so that a
    question is put here as in `ctx.ask`.
    """
    return Request(prompt.messages, purpose, prompt.schema, prompt.sampling).fingerprint(facts.name)


def known(store: Store, fingerprints: Iterable[str]) -> set[str]:
    """Those questions that some run of the library has an accepted answer to and that, asked as `pure`, are not sent again."""
    return store.known(list(fingerprints))


async def ask(ctx: Context, question: Ask) -> Reply:
    """Return an accepted answer, from the journal where it is there.

    Raises:
        StepFailed: refused as often as allowed, and no fall-back.
        Offline: a replay, and the journal lacks the answer.
        LimitReached, ModelError: nothing was lost; the run can be resumed.
    """
    run = ctx.run
    ctx.once((question.purpose, question.part, question.sample))
    sample = question.sample + run.store.raised(run.line, ctx.key, ctx.time, question.purpose)
    refusals: list[Refusal] = []
    since_failure: list[Refusal] = []
    for attempt in range(_MOST_TRIES):
        address = Address(ctx.key, ctx.time, question.purpose, question.part, sample, attempt)
        request = _request(ctx, question, refusals, address)
        facts = ctx.facts(question.small)
        fingerprint = request.fingerprint(facts.name)
        row = run.store.verdict(run.line, address, fingerprint)
        if row is None and question.pure:
            row = run.store.pure(fingerprint)
        if row is None and len(since_failure) >= question.tries:
            row = await _give_up(ctx, question, address, fingerprint, since_failure)
        elif row is None:
            row = await _send(ctx, question, address, request, fingerprint, facts)
        ctx.used_calls.append(row.pos)
        if row.status in ("answered", "fallback"):
            return _reply(question, row)
        if row.status == "failed":
            since_failure = []  # an earlier opening gave up here; this one may ask as often again
        else:
            refusal = Refusal(row.answer, row.reason, row.finish)
            refusals.append(refusal)
            since_failure.append(refusal)
    raise StepFailed(f"{question.purpose} was refused {_MOST_TRIES} times.")


def always(value: str) -> Fallback:
    """A fall-back that serves a value known before."""
    return lambda _: value


def _named(question: Ask) -> str:
    return f"{question.purpose} ({question.part})" if question.part else question.purpose


def _reply(question: Ask, row: CallRow) -> Reply:
    value = extract_json(row.answer) if question.prompt.schema is not None else None
    return Reply(row.answer, value, row.finish, row.pos, row.status == "fallback")


def _request(ctx: Context, question: Ask, refusals: list[Refusal], address: Address) -> Request:
    """The request of one attempt: after a refusal the last message says why, so that the model can do better."""
    prompt = question.prompt
    messages = prompt.messages
    if refusals:
        code, _, detail = refusals[-1].reason.partition(":")
        said = ctx.run.engine_prompts.render("refused", code=code.strip(), detail=detail.strip()).messages[0].content
        last = messages[-1]
        messages = (
            (*messages[:-1], Message(last.role, f"{last.content}\n\n{said}")) if last.role == "user" else (*messages, Message("user", said))
        )
    return Request(
        messages, question.purpose, prompt.schema, prompt.sampling, seed_of(ctx.run.row.model_seed, None if question.pure else address)
    )


async def _give_up(ctx: Context, question: Ask, address: Address, fingerprint: str, refusals: list[Refusal]) -> CallRow:
    value = question.fallback(refusals) if question.fallback is not None else None
    reasons = "; ".join(dict.fromkeys(r.reason for r in refusals))
    status = "failed" if value is None else "fallback"
    row = _row(ctx, address, fingerprint, status=status, answer=value or "", reason=f"refused {len(refusals)} times: {reasons}")
    pos = ctx.journal(status, row)
    if value is None:
        raise StepFailed(
            f"The model's answer for {_named(question)} was refused {len(refusals)} times: {reasons}.",
            purpose=question.purpose,
            reasons=[r.reason for r in refusals],
        )
    ctx.run.tell(Noted(f"{question.purpose}: the tries are used up ({reasons}); the fall-back serves."))
    return replace(row, pos=pos)


def _row(ctx: Context, address: Address, fingerprint: str, **columns: Any) -> CallRow:
    a = address
    return CallRow(ctx.run.id, a.step, a.time, a.purpose, a.part, a.sample, a.attempt, fingerprint, wall=ctx.run.clock(), **columns)


async def _send(ctx: Context, question: Ask, address: Address, request: Request, fingerprint: str, facts: ModelFacts) -> CallRow:
    run = ctx.run
    model = run.model_for(question.small)
    if model is None:
        raise Offline(f"The journal has no answer for {address.purpose} of step {address.time}.", address=str(address))
    prompt_tokens = ctx.count_messages(request.messages)
    most = request.sampling.max_tokens
    if prompt_tokens + most > facts.window:
        raise TooLong(
            f"The prompt of {_named(question)} takes {prompt_tokens} tokens, its answer up to {most}; the window has {facts.window}.",
            prompt_tokens=prompt_tokens,
            window=facts.window,
        )
    worst = Usage(prompt_tokens, most, 0, facts.cost(prompt_tokens, most), estimated=True)
    if run.limits != _NO_LIMITS:
        run.limits.check(run.store.usage(run.id), worst, facts)
    asked = ctx.journal(
        "asked",
        _row(
            ctx,
            address,
            fingerprint,
            status="asked",
            prompt=tuple((m.role, m.content) for m in request.messages),
            model=facts.name,
            request=_sent(request, question),
            usage=usage_dict(worst),
        ),
        settle=False,
    )
    run.tell(Asked(address.purpose, address.part, address.attempt, prompt_tokens))
    receiving = _Receiving(ctx, question, address, fingerprint, asked)
    try:
        await receiving.take(model, request)
    except ModelError as error:
        spent = Usage(0, 0) if isinstance(error, _FREE) else Usage(prompt_tokens, ctx.count(receiving.text), 0, 0.0, estimated=True)
        spent = replace(spent, cost=facts.cost(spent.prompt_tokens, spent.answer_tokens))
        ctx.journal(
            "broken",
            _row(
                ctx, address, fingerprint, status="broken", reason=error.code, asked=asked, usage=usage_dict(spent), answer=receiving.text
            ),
            settle=False,
        )
        raise
    return _judge(ctx, question, address, fingerprint, receiving, prompt_tokens, facts)


def _sent(request: Request, question: Ask) -> dict[str, Any]:
    sampling = {name: getattr(request.sampling, name) for name in type(request.sampling).__slots__}
    kept = {name: list(v) if isinstance(v, tuple) else v for name, v in sampling.items() if v not in (None, ())}
    schema = None if request.schema is None else {"name": request.schema.name, "body": dict(request.schema.body)}
    return {"schema": schema, "sampling": kept, "seed": request.seed, "pure": question.pure}


def usage_dict(usage: Usage) -> dict[str, Any]:
    """As journaled."""
    return {name: getattr(usage, name) for name in Usage.__slots__}


class _Receiving:
    """Takes a stream; its deltas become partial rows at least once a second."""

    def __init__(self, ctx: Context, question: Ask, address: Address, fingerprint: str, asked: int):
        self.ctx, self.question, self.address, self.fingerprint, self.asked = ctx, question, address, fingerprint, asked
        self.text, self.finish, self.usage = "", "unknown", Usage()
        self.notes: list[str] = []
        self._pending: list[str] = []
        self._sequence, self._written = 0, time.monotonic()

    async def take(self, model: Model, request: Request) -> None:
        pieces: list[str] = []
        try:
            async with closing(model.stream(request)) as events:
                await self._read(events, pieces, request.sampling.max_tokens * _ENDLESS + 1_000)
        except (asyncio.CancelledError, ModelError):
            if self.question.stream and self._pending:
                self._flush()  # the draft stays retrievable
            raise
        finally:
            self.text = "".join(pieces)

    async def _read(self, events: AsyncIterator[Event], pieces: list[str], most: int) -> None:
        run, question = self.ctx.run, self.question
        size = looked = 0
        async for event in events:
            if isinstance(event, TextDelta):
                pieces.append(event.text)
                self._pending.append(event.text)
                size += len(event.text)
                run.tell(Wrote(self.address.purpose, self.address.part, event.text))
                if question.stream and time.monotonic() - self._written >= run.partial_seconds:
                    self._flush()
                if size > most:
                    self.finish = "length"
                    return
                if question.watch is not None and size - looked >= _WATCHED:
                    looked = size
                    if question.watch("".join(pieces)):
                        self.finish = "stopped"
                        return
            elif isinstance(event, Usage):
                self.usage = self.usage.plus(event)
            elif isinstance(event, Finish):
                self.finish = event.reason
            else:
                self.notes.append(event.text)
                run.tell(Noted(event.text))

    def _flush(self) -> None:
        row = _row(
            self.ctx,
            self.address,
            self.fingerprint,
            status="partial",
            answer="".join(self._pending),
            sequence=self._sequence,
            asked=self.asked,
        )
        self.ctx.journal("partial", row)
        self._pending.clear()
        self._sequence, self._written = self._sequence + 1, time.monotonic()


def _judge(
    ctx: Context, question: Ask, address: Address, fingerprint: str, got: _Receiving, prompt_tokens: int, facts: ModelFacts
) -> CallRow:
    usage = got.usage
    if usage.prompt_tokens == 0 and usage.answer_tokens == 0:
        usage = Usage(prompt_tokens, ctx.count(got.text), estimated=True)
    if usage.cost == 0.0:
        usage = replace(usage, cost=facts.cost(usage.prompt_tokens, usage.answer_tokens))
    reason = judge(question, got.text, got.finish)
    row = _row(
        ctx,
        address,
        fingerprint,
        status="refused" if reason else "answered",
        answer=got.text,
        reason=reason or "",
        finish=got.finish,
        model=facts.name,
        request={"pure": question.pure},
        usage=usage_dict(usage),
        notes=tuple(got.notes),
        asked=got.asked,
    )
    pos = ctx.journal(row.status, row)
    ctx.run.learn_ratio(facts, prompt_tokens, usage)
    ctx.run.tell(Answered(address.purpose, address.part, row.reason, usage))
    return replace(row, pos=pos)


def judge(question: Ask, text: str, finish: str) -> str | None:
    """A reason to refuse an answer, or None."""
    if finish == "filter":
        return "filtered"
    if not text.strip():
        return "empty"
    schema = question.prompt.schema
    if schema is not None:
        value = extract_json(text)
        if value is None:
            return "cut off" if finish == "length" else "invalid: there is no complete JSON object in it"
        faults = validate(value, schema.body)
        if faults:
            return "invalid: " + "; ".join(faults[:3])
    elif question.pure and finish == "length":
        return "cut off"  # other runs would take it for whole
    return question.check(text, finish) if question.check is not None else None


def twice(address: object) -> AddressTwice:
    """The error for an address that one execution of a step uses twice."""
    return AddressTwice(f"A step used the address {address} twice.")


def answers_of(rows: list[CallRow]) -> Mapping[int, CallRow]:
    """Verdict rows by the position of their `asked` row."""
    return {row.asked: row for row in rows if row.asked and row.status in ("answered", "refused")}
