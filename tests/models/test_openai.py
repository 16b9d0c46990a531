"""The real SDK against our loopback server: the ladder, knobs, limits, cancelling, parallel streams, other processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fabula.errors import AuthFailed, Filtered, ModelError, RateLimited, ServerFailed, TimedOut, TooLarge, TooLong, Unreachable
from fabula.models import (
    Learnt,
    Message,
    Misbehaving,
    OpenAIModel,
    Profile,
    Request,
    Sampling,
    Schema,
    Scripted,
    complete,
    crude_tokens,
    extract_json,
    find_profile,
    prompt_hash,
    validate,
)
from fabula.models.test_server import ScriptedServer
from tests.models.streams import Read

KNOBS = frozenset({"temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "dry_multiplier", "stop", "seed"})
PROFILE = Profile("p", knobs=KNOBS)
SCHEMA = Schema(
    "move",
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "why": {"type": "string"}},
        "required": ["n", "why"],
        "additionalProperties": False,
    },
)
ASKED = Request(
    (Message("system", "You write."), Message("user", "Write about a lighthouse.")), sampling=Sampling(500, 0.7, stop=("END",)), seed=7
)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(Scripted(words=40), hang_seconds=20) as running:
        yield running


OPENED: list[OpenAIModel] = []


def at(server: ScriptedServer, profile: Profile = PROFILE, key: str | None = None, **options: Any) -> OpenAIModel:
    OPENED.append(OpenAIModel("scripted", server.address, key, profile, **options))
    return OPENED[-1]


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    while OPENED:
        await OPENED.pop().close()


def body(server: ScriptedServer, which: int = -1) -> Mapping[str, Any]:
    sent: Mapping[str, Any] = server.log[which]["body"]
    return sent


async def test_the_answer_over_http_is_the_answer(server: ScriptedServer) -> None:
    for request in (ASKED, ASKED.with_seed(8), replace(ASKED, messages=(Message("user", "写一个故事。"),)), replace(ASKED, schema=SCHEMA)):
        direct = await complete(Scripted(words=40), request)
        answer = await complete(at(server), request)
        assert (answer.text, answer.finish, answer.notes) == (direct.text, "stop", ())
        assert answer.usage == replace(direct.usage, estimated=False)
    assert server.asked()[f"{prompt_hash(ASKED)}:7"] == 1


async def test_all_knobs_are_sent(server: ScriptedServer) -> None:
    sampling = Sampling(300, 0.7, 0.9, 0.05, 0.1, 0.2, 0.8, ("END", "STOP"))
    answer = await complete(at(server), replace(ASKED, sampling=sampling))
    sent = {k: v for k, v in body(server).items() if k not in ("messages", "model", "stream", "stream_options")}
    assert sent == {
        "max_tokens": 300,
        "temperature": 0.7,
        "top_p": 0.9,
        "min_p": 0.05,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "dry_multiplier": 0.8,
        "stop": ["END", "STOP"],
        "seed": 7,
    }
    assert answer.notes == ()
    assert server.log[-1]["prompt"] == prompt_hash(replace(ASKED, sampling=sampling))


async def test_knobs_outside_the_profile_are_dropped_with_a_note(server: ScriptedServer) -> None:
    profile = Profile("p", knobs=frozenset({"max_completion_tokens"}), max_answer=100)
    answer = await complete(at(server, profile), ASKED)
    sent = body(server)
    assert sent["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature", "stop", "seed"} & set(sent)
    assert [note.split(" is")[0] for note in answer.notes] == ["max_tokens", "temperature", "stop", "seed"]


async def test_refused_knobs_are_learnt_one_by_one() -> None:
    async with ScriptedServer(refuse=["max_tokens", "temperature", "stream_options"]) as server:
        model = at(server, count_tokens=crude_tokens)
        answer = await complete(model, ASKED)
        assert len(server.log) == 4
        assert len(answer.notes) == 3
        assert answer.usage.estimated
        assert "max_completion_tokens" in body(server)
        assert body(server)["seed"] == 7
        assert (await complete(model, ASKED)).notes == ("temperature is not sent: scripted does not take it.",)
        assert len(server.log) == 5
        assert model.learnt.refused == {"max_tokens", "temperature", "stream_options"}
        again = at(server, learnt=Learnt.from_dict(json.loads(json.dumps(model.learnt.as_dict()))))
        await complete(again, ASKED)
        assert len(server.log) == 6


@pytest.mark.parametrize(
    ("rungs", "sent", "askings"),
    [
        (("grammar", "json_schema", "json_object"), "grammar", 1),
        (("json_schema", "json_object"), "json_schema", 2),
        (("json_object",), "json_object", 3),
        ((), "text", 4),
    ],
)
async def test_the_schema_ladder(rungs: tuple[str, ...], sent: str, askings: int) -> None:
    async with ScriptedServer(Scripted(lambda r: None if r.schema else '{"n": 1, "why": "by grammar"}'), rungs=rungs) as server:
        model = at(server, replace(PROFILE, structured="grammar"), grammar=lambda schema: f"grammar of {sorted(schema['properties'])}")
        answer = await complete(model, replace(ASKED, schema=SCHEMA))
        assert validate(extract_json(answer.text), SCHEMA.body) == []
        assert len(server.log) == askings
        assert len(answer.notes) == askings - 1
        last = body(server)
        assert ("grammar" in last) is (sent == "grammar")
        assert last.get("response_format", {}).get("type", "text") == (sent if sent.startswith("json") else "text")
        in_prompt = '"additionalProperties": false' in last["messages"][-1]["content"]
        assert in_prompt is (sent in ("json_object", "text"))
        if sent == "grammar":
            assert last["grammar"] == "grammar of ['n', 'why']"
        if sent == "json_schema":
            assert last["response_format"]["json_schema"] == {"name": "move", "strict": True, "schema": SCHEMA.body}
        answer = await complete(model, replace(ASKED, schema=SCHEMA, seed=9))
        assert answer.notes == ()
        assert len(server.log) == askings + 1
        assert model.profile.structured == sent
        assert model.learnt.structured == (None if askings == 1 else sent)


async def test_a_loose_schema_is_not_called_strict(server: ScriptedServer) -> None:
    for loose in (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}},
            "required": ["a"],
            "additionalProperties": False,
        },
    ):
        await complete(at(server), replace(ASKED, schema=Schema("x", loose)))
        assert body(server)["response_format"]["json_schema"]["strict"] is False


async def test_one_refused_schema_does_not_cost_the_others_their_rung() -> None:
    import httpx2

    def handler(request: httpx2.Request) -> httpx2.Response:
        sent = json.loads(request.content)
        if sent.get("response_format", {}).get("json_schema", {}).get("name") == "bad":
            said = "Invalid schema for response_format 'bad': number of repetitions exceeds sane defaults"
            return httpx2.Response(400, json={"error": {"message": said, "param": "response_format"}})
        return httpx2.Response(
            200, json={"choices": [{"message": {"content": json.dumps(sent.get("response_format"))}, "finish_reason": "stop"}]}
        )

    model = OpenAIModel(
        "m", "http://model.example/v1", None, PROFILE, http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    )
    for _ in range(2):
        assert json.loads((await complete(model, replace(ASKED, schema=Schema("bad", SCHEMA.body)))).text)["type"] == "json_object"
        assert json.loads((await complete(model, replace(ASKED, schema=Schema("good", SCHEMA.body)))).text)["type"] == "json_schema"
    assert model.learnt.structured is None


async def test_a_server_that_ignores_the_schema_gets_it_in_the_prompt() -> None:
    async with ScriptedServer(ignore_schema=True) as server:
        model = at(server)
        notes = [(await complete(model, replace(ASKED, schema=SCHEMA, seed=seed))).notes for seed in range(4)]
        assert [len(n) for n in notes] == [0, 1, 0, 0]
        assert SCHEMA.body["required"] == ["n", "why"]
        assert '"why"' not in body(server, 1)["messages"][-1]["content"]
        assert '"why"' in body(server, 2)["messages"][-1]["content"]


async def test_one_good_answer_proves_the_rung() -> None:
    script = [None, "no", "no", "no"]
    async with ScriptedServer(Scripted(lambda r: script[min(r.seed, 3)])) as server:
        model = at(server)
        for seed in range(4):
            assert (await complete(model, replace(ASKED, schema=SCHEMA, seed=seed))).notes == ()


async def test_plain_json_and_no_usage() -> None:
    async with ScriptedServer(streaming=False, usage=False) as server:
        for counter in (None, len):
            answer = await complete(at(server, count_tokens=counter), ASKED)
            assert answer.text == (await complete(Scripted(), ASKED)).text
            assert answer.usage.estimated
            assert answer.usage.answer_tokens == (counter or crude_tokens)(answer.text)
            assert answer.usage.prompt_tokens >= 10


async def test_the_window_holds_before_sending(server: ScriptedServer) -> None:
    model = at(server, replace(PROFILE, window=600, token_ratio=2.0), count_tokens=lambda text: len(text.split()))
    fits = replace(ASKED, messages=(Message("user", "sea " * 47),))
    await complete(model, fits)
    for request in (
        replace(ASKED, messages=(Message("user", "sea " * 49),)),
        replace(fits, sampling=Sampling(504)),
    ):
        with pytest.raises(TooLong) as caught:
            await complete(model, request)
        assert caught.value.details["estimated"]
    assert len(server.log) == 1


async def test_the_window_as_the_server_tells_it() -> None:
    async with ScriptedServer(window=20) as server:
        with pytest.raises(TooLong) as caught:
            await complete(at(server), replace(ASKED, messages=(Message("user", "sea " * 100),)))
        assert caught.value.details == {"status": 400, "provider_code": "400", "n_prompt_tokens": 101, "window": 20}


@pytest.mark.parametrize("tell", [True, False])
async def test_the_limit_in_bytes(tell: bool) -> None:
    async with ScriptedServer(limit_bytes=2000, tell_limit=tell) as server:
        model = at(server)
        long = replace(ASKED, messages=(Message("user", "море " * 300),))
        with pytest.raises(TooLarge):
            await complete(model, long)
        await complete(model, ASKED)
        with pytest.raises(TooLarge) as caught:
            await complete(model, long)
        assert caught.value.details["sent"] is False
        assert [entry["status"] for entry in server.log] == [413, 200]
        assert model.profile.request_bytes == (2000 if tell else server.log[0]["bytes"] - 1)
        exact = at(server, replace(PROFILE, request_bytes=server.log[1]["bytes"]))
        await complete(exact, ASKED)
        with pytest.raises(TooLarge):
            await complete(at(server, replace(PROFILE, request_bytes=server.log[1]["bytes"] - 1)), ASKED)


async def test_keys(server: ScriptedServer) -> None:
    server.key = "sk-right"
    await complete(at(server, key=" sk-right\n"), ASKED)
    for key in ("sk-wrong-key", None):
        with pytest.raises(AuthFailed) as caught:
            await complete(at(server, key=key), ASKED)
        assert "sk-wrong-key" not in repr(caught.value.as_dict())


async def test_without_a_key_none_is_sent(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    seen: list[str] = []
    original = server._http._handler

    async def handler(asked: Any, exchange: Any) -> None:
        seen.append(repr(asked.headers))
        await original(asked, exchange)

    server._http._handler = handler
    await complete(at(server), ASKED)
    assert seen
    assert "authorization" not in seen[0]
    assert "sk-of-somebody-else" not in seen[0]


async def test_nothing_there() -> None:
    async with ScriptedServer() as server:
        model = at(server)
    with pytest.raises(Unreachable) as caught:
        await complete(model, ASKED)
    assert "FABULA_BASE_URL" in caught.value.next_action


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("rate_limited", RateLimited),
        ("rate_limited_silent", RateLimited),
        ("server_error", ServerFailed),
        ("unreachable", ServerFailed),
        ("broken_stream", ServerFailed),
        ("too_long", TooLong),
        ("too_large", TooLarge),
        ("filtered", Filtered),
    ],
)
async def test_faults_over_http(server: ScriptedServer, fault: Any, kind: type[ModelError]) -> None:
    model = at(server)
    server.faults.append(fault)
    read = Read()
    with pytest.raises(ModelError) as caught:
        await read.take(model, ASKED)
    assert not read.ended
    assert type(caught.value) is kind
    assert caught.value.details.get("seconds") == (1.0 if fault == "rate_limited" else None)
    assert bool(read.text) is (fault == "broken_stream")
    fresh = at(server)
    assert (await complete(fresh, ASKED)).finish == "stop"
    assert [entry["state"] for entry in server.log][-1] == "answered"


async def test_a_silent_server(server: ScriptedServer) -> None:
    server.faults.append("timed_out")
    with pytest.raises(TimedOut):
        await complete(at(server, replace(PROFILE, timeout_seconds=0.2)), ASKED)
    await until(lambda: server.log[0]["state"] in ("left", "cut"))


async def test_silence_in_mid_stream() -> None:
    import httpx2

    class Stalled(httpx2.AsyncByteStream):
        closed = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b'data: {"choices": [{"index": 0, "delta": {"content": "The sea"}}]}\n\n'
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            self.closed = True

    stalled = Stalled()
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=stalled, headers={"content-type": "text/event-stream"}))
    profile = replace(PROFILE, timeout_seconds=0.5)
    model = OpenAIModel("m", "http://model.example/v1", None, profile, http_client=httpx2.AsyncClient(transport=transport))
    read = Read()
    with pytest.raises(TimedOut, match="mid-answer"):
        await read.take(model, ASKED)
    assert read.text == "The sea"
    assert stalled.closed


async def until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never came true")


@pytest.mark.parametrize("way", ["leave", "cancel"])
async def test_leaving_the_iteration_closes_the_connection(server: ScriptedServer, way: str) -> None:
    server.faults.append("endless")
    model = at(server)
    got: list[str] = []

    async def read(stop_after: int | None) -> None:
        stream = model.stream(ASKED)
        async for event in stream:
            got.append(getattr(event, "text", ""))
            if stop_after and len(got) >= stop_after:
                break
        await stream.aclose()  # type: ignore[attr-defined]

    if way == "leave":
        await read(5)
    else:
        task = asyncio.create_task(read(None))
        await until(lambda: len(got) > 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until(lambda: server.log[0]["state"] == "left")
    assert (await complete(model, ASKED)).finish == "stop"


async def test_cancelling_while_the_server_is_silent(server: ScriptedServer) -> None:
    server.faults.append("timed_out")
    task = asyncio.create_task(complete(at(server), ASKED))
    await until(lambda: server.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: server.log[0]["state"] in ("left", "cut"))


async def test_parallel_streams_keep_apart(server: ScriptedServer) -> None:
    model = at(server)
    requests = [replace(ASKED, messages=(Message("user", f"Write about light {i}."),), seed=i) for i in range(24)]
    answers = await asyncio.gather(*(complete(model, request) for request in requests))
    for request, answer in zip(requests, answers, strict=True):
        assert answer.text == (await complete(Scripted(words=40), request)).text


def test_one_model_serves_several_event_loops() -> None:
    async def once(model: OpenAIModel | None) -> OpenAIModel:
        async with ScriptedServer(Scripted(words=5)) as server:
            model = model or at(server)
            model._base_url = server.address
            await complete(model, ASKED)
            await model.close()
            return model

    model = asyncio.run(once(None))
    assert asyncio.run(once(model)) is model


async def test_close_twice(server: ScriptedServer) -> None:
    model = at(server)
    await complete(model, ASKED)
    await model.close()
    await model.close()
    assert (await complete(model, ASKED)).finish == "stop"
    await model.close()


async def test_text_arrives_while_it_is_made() -> None:
    gate = asyncio.Event()

    async def sleep(_: float) -> None:
        if read.text:
            gate.set()
        await asyncio.sleep(0)

    read = Read()
    async with ScriptedServer(Scripted(words=400, sleep=sleep)) as server:
        await read.take(at(server), ASKED)
    assert gate.is_set()
    assert len(read.events) > 20


async def test_embeddings_are_deterministic_and_near_where_words_are_shared(server: ScriptedServer) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="x", base_url=server.address, max_retries=0) as client:
        texts = ["The brass key lay in the lamp room.", "A brass key from the lamp room", "银哨子在码头边", "Снег шёл всю ночь", ""]
        got = [row.embedding for row in (await client.embeddings.create(model="e", input=texts)).data]
        raw = (await client.embeddings.create(model="e", input=texts[0], encoding_format="float")).data[0].embedding
        models = [model.id async for model in client.models.list()]
    assert got[0] == pytest.approx(raw, abs=1e-6)
    assert all(sum(x * x for x in row) == pytest.approx(1.0, abs=1e-5) for row in got)

    def near(a: int, b: int) -> float:
        return sum(x * y for x, y in zip(got[a], got[b], strict=True))

    assert near(0, 1) > max(near(0, 2), near(0, 3)) + 0.2
    assert models == ["scripted"]


def test_another_process_serves_until_its_input_ends() -> None:
    command = [
        sys.executable,
        "-m",
        "fabula.models.test_server",
        "--port",
        "0",
        "--words",
        "30",
        "--key",
        "k",
        "--faults",
        "server_error",
        "--rate",
        "0",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        model = OpenAIModel("scripted", address, "k", find_profile("scripted", address))

        async def twice() -> None:
            for _ in range(2):
                assert (await complete(model, ASKED)).text == (await complete(Scripted(words=30), ASKED)).text
            await model.close()

        asyncio.run(twice())
        with urllib.request.urlopen(address.removesuffix("/v1") + "/requests") as reply:
            told = json.load(reply)
        assert told["count"] == 2
        assert told["asked"] == {f"{prompt_hash(ASKED)}:7": 2}
        assert "body" not in told["requests"][0]
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(timeout=20) == 0


async def test_what_the_server_refuses(server: ScriptedServer) -> None:
    import httpx2

    async with httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.get(server.address + "/nothing")).status_code == 404
        assert (await client.post(server.address + "/chat/completions", content=b"{")).status_code == 400
        chunked = client.stream(
            "POST", server.address + "/chat/completions", content=_parts(b'{"messages": [', b'{"role": "user", "content": "Hi"}]}')
        )
        async with chunked as reply:
            assert prompt_hash(Request((Message("user", "Hi"),))) in (await reply.aread()).decode()
        assert (await client.post(server.address.replace("/v1", "/faults"), json=["server_error"])).json() == {"faults": ["server_error"]}
    with pytest.raises(ServerFailed):
        await complete(at(server), ASKED)


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_misbehaving_model_behind_the_server_is_repeatable() -> None:
    async def run() -> list[str]:
        async with ScriptedServer(Misbehaving(Scripted(words=20), ["cut_off", "empty"], rate=0.5, seed=3)) as server:
            return [(await complete(at(server), ASKED.with_seed(seed))).text for seed in range(6)]

    assert await run() == await run()
