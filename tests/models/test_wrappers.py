from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import (
    AuthFailed,
    FabulaError,
    InputError,
    LimitReached,
    ModelError,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLong,
    Unreachable,
)
from fabula.models import (
    SCRIPTED_PROFILE,
    Answer,
    Budget,
    Budgeted,
    Concurrent,
    Event,
    Finish,
    Limits,
    Message,
    Misbehaving,
    Note,
    Request,
    Retrying,
    Sampling,
    Schema,
    Scripted,
    Spent,
    TextDelta,
    Usage,
    closing,
    complete,
    guard,
)
from tests.models.streams import Read

ASKED = Request((Message("user", "Write about the sea."),), sampling=Sampling(100))
PRICED = replace(SCRIPTED_PROFILE, prompt_price=1_000.0, answer_price=10_000.0, price_known=True)


class Clock:
    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def retrying(answers: Any, clock: Clock, **options: Any) -> tuple[Retrying, Scripted]:
    inner = Scripted(answers)
    return Retrying(inner, sleep=clock.sleep, rng=random.Random(1), **options), inner


@pytest.mark.parametrize("error", [RateLimited("Slow."), ServerFailed("Broken."), TimedOut("Silent."), Unreachable("Nothing.")])
async def test_what_may_pass_is_asked_again(error: ModelError) -> None:
    clock = Clock()
    model, inner = retrying([error, error, "done"], clock)
    answer = await complete(model, ASKED)
    assert answer.text == "done"
    assert len(inner.requests) == 3
    assert len(answer.notes) == 2
    assert error.message in answer.notes[0]
    first, second = clock.waits
    assert 0.5 <= first <= 1.0
    assert 1.0 <= second <= 2.0


@pytest.mark.parametrize("error", [AuthFailed("No."), TooLong("Long."), ModelError("No credit."), ServerFailed("Gone.", retry=False)])
async def test_what_cannot_pass_is_not(error: ModelError) -> None:
    clock = Clock()
    model, inner = retrying([error, "done"], clock)
    with pytest.raises(type(error)):
        await complete(model, ASKED)
    assert len(inner.requests) == 1
    assert clock.waits == []


async def test_the_server_says_how_long() -> None:
    clock = Clock()
    model, _ = retrying([RateLimited("Slow.", seconds=20.0), ServerFailed("Slow.", seconds=0.0), "done"], clock)
    await complete(model, ASKED)
    assert 20.0 <= clock.waits[0] <= 20.1
    assert 0.0 <= clock.waits[1] <= 0.2


async def test_waits_are_bounded_in_number_length_and_sum() -> None:
    clock = Clock()
    model, inner = retrying(lambda r: ServerFailed("Broken."), clock, tries=9, seconds=10_000, longest=8.0)
    with pytest.raises(ServerFailed) as caught:
        await complete(model, ASKED)
    assert caught.value.details["tries"] == len(inner.requests) == 9
    assert max(clock.waits) <= 8.0

    clock = Clock()
    model, inner = retrying(lambda r: RateLimited("Slow.", seconds=40.0), clock, seconds=100)
    with pytest.raises(RateLimited):
        await complete(model, ASKED)
    assert len(inner.requests) == 3
    assert sum(clock.waits) <= 100


async def test_delivered_text_is_never_asked_for_again() -> None:
    clock = Clock()
    inner = Misbehaving(Scripted(), script=["broken_stream"])
    read = Read()
    with pytest.raises(ServerFailed):
        await read.take(Retrying(inner, sleep=clock.sleep), ASKED)
    assert read.text
    assert clock.waits == []


async def test_whole_answers_may_be_asked_again_after_text() -> None:
    clock = Clock()
    model = Retrying(Misbehaving(Scripted(), script=["broken_stream"]), sleep=clock.sleep, whole=True)
    answer = await complete(model, ASKED)
    assert answer.text == (await complete(Scripted(), ASKED)).text
    assert len(answer.notes) == 1


async def test_notes_of_failed_askings_are_kept() -> None:
    clock = Clock()

    class Noting(Scripted):
        async def stream(self, request: Request) -> AsyncIterator[Event]:
            yield Note("knob dropped")
            if len(self.requests) == 0:
                self.requests.append(request)
                raise ServerFailed("Broken.")
            async for event in super().stream(request):
                yield event

    for whole in (True, False):
        answer = await complete(Retrying(Noting(["done"]), sleep=clock.sleep, whole=whole), ASKED)
        assert [note[:5] for note in answer.notes] == ["knob ", "Asked", "knob "]


async def test_no_more_than_the_profile_allows_at_once() -> None:
    inner = Scripted(profile=replace(SCRIPTED_PROFILE, concurrency=3))
    model = Concurrent(inner)
    await asyncio.gather(*(complete(model, ASKED.with_seed(i)) for i in range(12)))
    assert inner.most_in_flight == 3
    one = Scripted()
    await asyncio.gather(*(complete(Concurrent(one, 1), ASKED) for _ in range(2)))
    assert one.most_in_flight == 2  # two wrappers, two gates


async def test_a_cancelled_stream_gives_its_place_back() -> None:
    gate = asyncio.Event()

    async def sleep(_: float) -> None:
        await gate.wait()

    model = Concurrent(Scripted(sleep=sleep), 1)
    first = asyncio.create_task(complete(model, ASKED))
    await asyncio.sleep(0)
    second = asyncio.create_task(complete(model, ASKED))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert (await second).finish == "stop"
    with pytest.raises(asyncio.CancelledError):
        await first


def test_one_gate_serves_several_event_loops() -> None:
    model = Concurrent(Scripted(), 1)
    for _ in range(2):
        asyncio.run(complete(model, ASKED))


def real(request: Request, answer: int, prompt: int = 40) -> Callable[[Request], Answer]:
    return lambda _: Answer("x" * answer, "stop", Usage(prompt, answer, 0, (prompt * 1_000 + answer * 10_000) / 1e6))


async def one_by_one(model: Budgeted, times: int) -> None:
    for _ in range(times):
        await complete(model, ASKED)


async def test_each_limit_stops_before_it_is_exceeded() -> None:
    for limits, what in ((Limits(calls=2), "calls"), (Limits(tokens=400), "tokens"), (Limits(money=2.3), "money")):
        budget = Budget(limits)
        inner = Scripted(real(ASKED, 30), profile=PRICED)
        model = Budgeted(inner, budget, count_tokens=lambda text: 20)
        with pytest.raises(LimitReached) as caught:
            await one_by_one(model, 50)
        done = len(inner.requests)
        assert caught.value.details["what"] == what
        assert done >= 1
        assert replace(budget.spent, cost=0) == Spent(done, 40 * done, 30 * done)
        assert budget.spent.cost == pytest.approx(0.34 * done)
        assert budget.reserved.tokens == budget.reserved.calls == 0
        assert budget.reserved.cost == pytest.approx(0)
        assert caught.value.next_action


async def test_an_earlier_snapshot_counts() -> None:
    with pytest.raises(LimitReached):
        await complete(Budgeted(Scripted(), Budget(Limits(calls=5), Spent(calls=5))), ASKED)
    with pytest.raises(LimitReached):
        await complete(Budgeted(Scripted(), Budget(Limits(tokens=1000), Spent(3, 500, 450))), ASKED)


async def test_calls_in_flight_count_with_their_worst_case() -> None:
    budget = Budget(Limits(tokens=300))
    model = Budgeted(Scripted(), budget, count_tokens=lambda text: 10)
    results = await asyncio.gather(*(complete(model, ASKED.with_seed(i)) for i in range(5)), return_exceptions=True)
    assert sum(isinstance(result, LimitReached) for result in results) == 3
    assert budget.reserved.tokens == 0


@given(st.integers(1, 3000), st.lists(st.tuples(st.integers(0, 100), st.integers(0, 40), st.booleans()), max_size=30))
def test_a_budget_is_never_exceeded(limit: int, calls: list[tuple[int, int, bool]]) -> None:
    """As long as the worst case holds: prompt up to the estimate, answer up to max_tokens."""
    budget = Budget(Limits(tokens=limit))

    async def run() -> None:
        for answer, prompt, fails in calls:
            usage = Answer("y" * answer, "stop", Usage(prompt, answer))
            base = Scripted([ServerFailed("Broken.") if fails else usage])
            with suppress(LimitReached, ServerFailed):
                await complete(Budgeted(base, budget, count_tokens=lambda text: 30), ASKED)
            assert budget.spent.tokens <= limit
            assert budget.reserved.tokens == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "tokens"), [(RateLimited("Slow."), 0), (AuthFailed("No."), 0), (ServerFailed("Broken."), 43), (TimedOut("Silent."), 43)]
)
async def test_failures_are_charged_where_the_server_may_have_worked(error: FabulaError, tokens: int) -> None:
    budget = Budget()
    with pytest.raises(type(error)):
        await complete(Budgeted(Scripted([error]), budget, count_tokens=lambda text: 30), ASKED)
    assert budget.spent == Spent(1, tokens)


async def test_a_stream_that_is_left_is_charged_for_what_came() -> None:
    budget = Budget()
    model = Budgeted(Scripted(), budget, count_tokens=lambda text: len(text.split()), margin=1.0)
    async with closing(model.stream(ASKED)) as events:
        text = ""
        async for event in events:
            assert isinstance(event, TextDelta)
            text += event.text
            if len(text.split()) > 10:
                break
    assert budget.spent == Spent(1, 4 + 8, len(text.split()))
    assert budget.reserved == Spent()


async def test_money_needs_a_known_price() -> None:
    unknown = Scripted(profile=replace(SCRIPTED_PROFILE, price_known=False))
    with pytest.raises(InputError, match="price"):
        Budgeted(unknown, Budget(Limits(money=1.0)))
    Budgeted(unknown, Budget(Limits(tokens=1)))


async def test_a_guarded_model_counts_every_asking() -> None:
    clock, budget = Clock(), Budget(Limits(calls=3))
    inner = Scripted([RateLimited("Slow."), RateLimited("Slow."), "done"])
    model = guard(inner, budget, sleep=clock.sleep)
    assert (await complete(model, ASKED)).text == "done"
    assert budget.spent.calls == 3
    with pytest.raises(LimitReached):
        await complete(model, ASKED)
    assert len(inner.requests) == 3
    assert (model.name, model.profile) == (inner.name, inner.profile)
    await model.close()


async def test_the_schema_is_part_of_the_estimate() -> None:
    schema = Schema("x", {"type": "object", "properties": {"a": {"type": "string", "description": "long " * 200}}})
    plain, structured = Budgeted(Scripted(), Budget()), Budgeted(Scripted(), Budget())
    assert structured._estimate(replace(ASKED, schema=schema)) > plain._estimate(ASKED) + 200


async def test_wrapped_streams_end_as_they_should() -> None:
    events = [event async for event in guard(Concurrent(Scripted())).stream(ASKED)]
    assert isinstance(events[-1], Finish)
    assert isinstance(events[-2], Usage)
