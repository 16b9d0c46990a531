"""Every way in which servers were seen to fail, in their own words, against the error that a person gets."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from fabula.errors import (
    AuthFailed,
    FabulaError,
    Filtered,
    InputError,
    ModelError,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLarge,
    TooLong,
    Unreachable,
)
from fabula.models import Message, OpenAIModel, Profile, Request, Sampling, complete
from tests.models.streams import Read

KEY = "sk-secret-0123456789abcdef"
REQUEST = Request((Message("user", "Write about the sea."),), sampling=Sampling(64))


def failing(status: int, body: Any, headers: dict[str, str] | None = None) -> Callable[[httpx2.Request], httpx2.Response]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _: httpx2.Response(status, content=content, headers={"content-type": "application/json", **(headers or {})})


def model_at(handler: Callable[[httpx2.Request], Any], profile: Profile | None = None, **options: Any) -> OpenAIModel:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    return OpenAIModel("m", "http://user:pw@model.example:81/v1?key=hidden", KEY, profile or Profile("p"), http_client=client, **options)


async def error_of(handler: Callable[[httpx2.Request], Any], **options: Any) -> FabulaError:
    with pytest.raises(FabulaError) as caught:
        await complete(model_at(handler, **options), REQUEST)
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + repr(error.as_dict()) + str(error.__cause__)
    for secret in (KEY, "hidden", "user:pw", "Write about the sea"):
        assert secret not in shown
    assert error.message
    assert error.next_action
    return error


def wrapped(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, you requested 9012 tokens (8000 in the messages, 1012 in the completion)."
)
CASES: list[tuple[int, Any, type[FabulaError], dict[str, Any]]] = [
    (
        401,
        wrapped(f"Incorrect API key provided: {KEY}.", code="invalid_api_key"),
        AuthFailed,
        {"status": 401, "provider_code": "invalid_api_key"},
    ),
    (403, wrapped("Country not supported"), AuthFailed, {"status": 403}),
    (403, wrapped("Your chosen model requires moderation and your input was flagged"), Filtered, {"status": 403}),
    (404, wrapped("The model `m` does not exist", code="model_not_found"), ModelError, {"status": 404}),
    (408, wrapped("Timeout"), TimedOut, {"status": 408}),
    (504, b"<html><body>Gateway Time-out</body></html>", TimedOut, {"status": 504}),
    (402, wrapped("Insufficient Balance"), ModelError, {"status": 402}),
    (429, wrapped("You exceeded your current quota", code="insufficient_quota"), ModelError, {"status": 429}),
    (400, wrapped(OPENAI_LONG, code="context_length_exceeded"), TooLong, {"n_prompt_tokens": 8000, "window": 8192}),
    (
        400,
        wrapped(
            "the request exceeds the available context size", code=400, type="exceed_context_size_error", n_prompt_tokens=5005, n_ctx=4096
        ),
        TooLong,
        {"n_prompt_tokens": 5005, "window": 4096},
    ),
    (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
            "code": 400,
        },
        TooLong,
        {"n_prompt_tokens": 5000, "window": 4096},
    ),
    (
        400,
        {"message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096."},
        TooLong,
        {"n_prompt_tokens": 5000, "window": 4096},
    ),
    (400, {"message": "'max_tokens' is too large: 9999. This model's maximum context length is 4096 tokens"}, TooLong, {"window": 4096}),
    (400, wrapped("prompt is too long: 210000 tokens > 200000 maximum"), TooLong, {"n_prompt_tokens": 210000, "window": 200000}),
    (
        400,
        wrapped("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        TooLong,
        {"n_prompt_tokens": 190000, "window": 200000},
    ),
    (
        400,
        wrapped("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        TooLong,
        {"n_prompt_tokens": 1200000},
    ),
    (
        400,
        {"message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"},
        TooLong,
        {"window": 32768},
    ),
    (
        400,
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. "
            "However, the model is loaded with context length of only 4096 tokens"
        },
        TooLong,
        {"n_prompt_tokens": 5000, "window": 4096},
    ),
    (
        413,
        wrapped("Request too large on tokens per minute: Limit 6000, Requested 8000", code="rate_limit_exceeded"),
        TooLong,
        {"status": 413},
    ),
    (400, wrapped("The response was filtered", code="content_filter"), Filtered, {"provider_code": "content_filter"}),
    (400, wrapped("Content Exists Risk"), Filtered, {}),
    (400, wrapped("Output data may contain inappropriate content.", code="data_inspection_failed"), Filtered, {}),
    (400, wrapped("Something is odd"), ModelError, {"status": 400}),
    (422, {"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}, ModelError, {"status": 422}),
    (500, wrapped("boom"), ServerFailed, {"status": 500}),
    (502, b"<html>Bad Gateway</html>", ServerFailed, {"status": 502}),
    (529, wrapped("Overloaded", type="overloaded_error"), ServerFailed, {"status": 529}),
]


@pytest.mark.parametrize(("status", "body", "kind", "details"), CASES)
async def test_statuses(status: int, body: Any, kind: type[FabulaError], details: dict[str, Any]) -> None:
    error = await error_of(failing(status, body))
    assert type(error) is kind
    assert {name: error.details.get(name) for name in details} == details
    assert error.message.count("\n") == 0
    assert len(error.message) < 320


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 30.0),
        ({"retry-after": "soon"}, "", None),
        ({"x-ratelimit-reset-requests": "1m6s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "2h"}, "", 7200.0),
        (
            {
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-tokens": "400",
            },
            "",
            0.02,
        ),
        ({"x-ratelimit-reset-requests": "1760000000"}, "", None),
        ({}, "Rate limit reached. Please try again in 1m2.5s.", 62.5),
        ({}, "Quota. Please retry in 34s", 34.0),
        ({}, "Please try again in 250ms.", 0.25),
        ({}, "Slow down.", None),
    ],
)
async def test_how_long_to_wait(headers: dict[str, str], message: str, seconds: float | None) -> None:
    error = await error_of(failing(429, wrapped(message), headers))
    assert type(error) is RateLimited
    assert error.details.get("seconds") == seconds


@pytest.mark.parametrize(
    ("text", "limit"), [("too big", -1), ("Maximum is 2 kb", -1), ("limit: 100 bytes", 100), ("max 0.0625 KiB allowed", 64)]
)
async def test_a_limit_in_bytes_is_learnt_and_held(text: str, limit: int) -> None:
    sizes: list[int] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        sizes.append(len(request.content))
        return httpx2.Response(413, text=text)

    model = model_at(handler)
    with pytest.raises(TooLarge) as caught:
        await complete(model, REQUEST)
    expected = limit if limit > 0 else sizes[0] - 1
    assert caught.value.details["limit_bytes"] == expected == model.learnt.request_bytes == model.profile.request_bytes
    with pytest.raises(TooLarge) as caught:
        await complete(model, REQUEST)
    assert caught.value.details["sent"] is False
    assert caught.value.details["sent_bytes"] == sizes[0]
    assert len(sizes) == 1
    again = model_at(handler, learnt=type(model.learnt).from_dict(json.loads(json.dumps(model.learnt.as_dict()))))
    assert again.profile.request_bytes == expected


async def test_a_window_is_learnt_and_held() -> None:
    handler = failing(400, wrapped("prompt is too long: 210 tokens > 100 maximum"))
    model = model_at(handler, count_tokens=len)
    with pytest.raises(TooLong):
        await complete(model, REQUEST)
    assert model.profile.window == 100
    with pytest.raises(TooLong) as caught:
        await complete(model, Request((Message("user", "x" * 60),), sampling=Sampling(64)))
    assert caught.value.details == {"n_prompt_tokens": 65, "window": 100, "estimated": True}


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectError("refused"), Unreachable),
        (httpx2.ConnectTimeout("slow"), Unreachable),
        (httpx2.UnsupportedProtocol("no"), Unreachable),
        (httpx2.ReadTimeout("silent"), TimedOut),
        (httpx2.WriteTimeout("silent"), TimedOut),
        (httpx2.ReadError("reset"), ServerFailed),
        (httpx2.RemoteProtocolError("closed"), ServerFailed),
    ],
)
async def test_the_connection(raised: Exception, kind: type[FabulaError]) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise raised

    assert type(await error_of(handler)) is kind


def streamed(*chunks: Any, done: bool = True) -> Callable[[httpx2.Request], httpx2.Response]:
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if done else [])
    raw = "".join(f"data: {line}\n\n" for line in lines).encode()
    return lambda _: httpx2.Response(200, content=raw, headers={"content-type": "text/event-stream"})


def piece(content: Any = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}]}


@pytest.mark.parametrize(
    "chunks",
    [
        [piece("The sea.", None)],
        [piece("The sea."), "{not json"],
        [piece("The sea."), piece(None, "error")],
        [piece("The sea."), piece(None, "insufficient_system_resource")],
        [piece("The sea."), {"error": {"message": "internal", "code": 500}}],
        [],
    ],
)
async def test_a_stream_without_an_end_is_broken_off(chunks: list[Any]) -> None:
    error = await error_of(streamed(*chunks, done=False))
    assert type(error) is ServerFailed


async def test_errors_in_mid_stream_keep_their_kind() -> None:
    said = {"message": "the request exceeds the available context size", "type": "exceed_context_size_error", "code": 400, "n_ctx": 4}
    assert type(await error_of(streamed(piece("The"), {"error": said}))) is TooLong
    assert type(await error_of(streamed(piece("The"), {"error": {"message": "slow", "code": 429}}))) is RateLimited


async def test_a_web_page_is_no_answer() -> None:
    error = await error_of(lambda _: httpx2.Response(200, text="<html>Welcome</html>", headers={"content-type": "text/html"}))
    assert type(error) is ServerFailed
    assert "/v1" in error.next_action
    error = await error_of(lambda _: httpx2.Response(200, json={"error": {"message": "slow", "code": 429}}))
    assert type(error) is RateLimited


USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}


@pytest.mark.parametrize(
    ("chunks", "text", "finish", "tokens"),
    [
        ([piece("The "), piece("sea."), piece(None, "stop"), USAGE], "The sea.", "stop", (9, 3, 4)),
        ([piece("The sea."), piece(None, "stop") | {"usage": None}, USAGE], "The sea.", "stop", (9, 3, 4)),
        ([piece("The sea.", "stop")], "The sea.", "stop", None),
        (
            [piece(None, role="assistant"), piece(""), {"choices": None}, {"choices": []}, {}, piece("Sea."), piece(None, "eos")],
            "Sea.",
            "stop",
            None,
        ),
        ([piece(None, reasoning_content="Hmm."), piece("Sea.", reasoning_content=None), piece(None, "stop")], "Sea.", "stop", None),
        ([piece("<thi"), piece("nk>Hmm. </th"), piece("ink>\n\nSea."), piece(None, "stop")], "Sea.", "stop", None),
        ([piece("<think>Hmm."), piece(None, "length")], "", "length", None),
        ([piece("<th"), piece(None, "stop")], "<th", "stop", None),
        ([piece("I < you <think>.", "stop")], "I < you <think>.", "stop", None),
        ([piece([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Sea."}], "stop")], "Sea.", "stop", None),
        ([{"choices": [{"index": 0, "delta": None, "text": "Sea.", "finish_reason": "stop"}]}], "Sea.", "stop", None),
        ([{"choices": [{"index": 1, "delta": {"content": "Other."}}]}, piece("Sea.", "stop")], "Sea.", "stop", None),
        ([piece("Sea."), piece(None, "max_tokens")], "Sea.", "length", None),
        ([piece("Sea."), piece(None, "content_filter")], "Sea.", "filter", None),
        ([piece(None, refusal="I cannot."), piece(None, "stop")], "", "filter", None),
        ([piece("Sea."), piece(None, "because")], "Sea.", "unknown", None),
        ([piece("Sea."), USAGE], "Sea.", "unknown", (9, 3, 4)),
        ([piece(None, "stop"), USAGE], "", "stop", (9, 3, 4)),
        ([piece("Sea.", "stop") | USAGE | {"choices": piece("Sea.", "stop")["choices"]}], "Sea.", "stop", (9, 3, 4)),
    ],
)
async def test_odd_streams_are_read(chunks: list[Any], text: str, finish: str, tokens: tuple[int, int, int] | None) -> None:
    answer = await complete(model_at(streamed(*chunks)), REQUEST)
    assert (answer.text, answer.finish) == (text, finish)
    assert answer.usage.estimated is (tokens is None)
    if tokens:
        assert (answer.usage.prompt_tokens, answer.usage.answer_tokens, answer.usage.cached_tokens) == tokens


async def test_all_tokens_and_stop_means_cut_off() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 64}}
    answer = await complete(model_at(streamed(piece("The s"), piece(None, "stop"), usage)), REQUEST)
    assert answer.finish == "length"
    assert "cut off" in answer.notes[0]


async def test_prices_and_told_costs() -> None:
    priced = Profile("p", prompt_price=2.0, answer_price=8.0, price_known=True)
    told = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.5}}
    handler = streamed(piece("Sea.", "stop"), told)
    assert (await complete(model_at(handler, priced), REQUEST)).usage.cost == pytest.approx(0.00208)
    assert (await complete(model_at(handler), REQUEST)).usage.cost == 0.5


async def test_the_ratio_of_tokens_is_learnt_for_later() -> None:
    told: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 48, "completion_tokens": 1}}
    model = model_at(streamed(piece("Sea.", "stop"), told), count_tokens=len)
    assert "token_ratio" not in model.learnt.as_dict()
    await complete(model, REQUEST)
    assert model.learnt.as_dict() == {"token_ratio": 2.0}
    assert model.profile.token_ratio == 1.0


async def test_keys_show_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await error_of(failing(500, wrapped(f"bad key {KEY}")))
        model = model_at(failing(400, wrapped(f"Unsupported parameter: 'seed' with {KEY}", param="seed")))
        read = Read()
        with pytest.raises(ModelError):
            await read.take(model, REQUEST)
    assert read.notes
    assert not read.ended
    assert KEY not in repr(model) + " ".join(read.notes) + caplog.text + repr(model.learnt)
    assert repr(model) == "OpenAIModel('m', 'http://model.example:81/v1')"
    with pytest.raises(InputError) as caught:
        OpenAIModel("m", "http://model.example/v1", "sk-secret\nX-Evil: 1", Profile("p"))
    assert "sk-secret" not in str(caught.value) + caught.value.next_action
