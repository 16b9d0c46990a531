"""The embedded model, for real, on SmolLM2: what it answers, its cache, and what happens when somebody dies."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fabula.errors import AuthFailed, EmbeddedFailed, InputError, NotFound
from fabula.models import (
    Answer,
    Concurrent,
    EmbeddedModel,
    Finish,
    Message,
    OpenAIModel,
    Profile,
    Progress,
    Request,
    Sampling,
    Schema,
    Scripted,
    TextDelta,
    check_model,
    complete,
    embedded_grammar,
    open_embedded,
    validate,
)
from fabula.models import _embedded_server as server_module
from tests.models.smollm import SMOLLM, fetched

pytestmark = pytest.mark.embedded

PEOPLE = Schema(
    "people",
    {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 12}, "minItems": 1, "maxItems": 3},
            "place": {"type": "string", "enum": ["island", "town"]},
        },
        "required": ["names", "place"],
        "additionalProperties": False,
    },
)
STORY = "You are a novelist.\n\n" + "Vale came to the island by the last ferry; the keeper had vanished in the storm. " * 4


def chat(*texts: str, tokens: int = 16, schema: Schema | None = None) -> Request:
    """A request: the system's text, then the user's and the assistant's in turn."""
    roles = ["system", *(["user", "assistant"] * len(texts))]
    messages = tuple(Message(role, text) for role, text in zip(roles, texts, strict=False))  # type: ignore[arg-type]
    return Request(messages, schema=schema, sampling=Sampling(max_tokens=tokens, temperature=0.0), seed=1)


@pytest.fixture(scope="module")
def keeper() -> Iterator[EmbeddedModel]:
    """Keeps one server alive for this module."""
    fetched(SMOLLM)
    model = open_embedded(SMOLLM)
    asyncio.run(model.ready())
    yield model
    asyncio.run(model.close())


@pytest.fixture
async def model(keeper: EmbeddedModel) -> AsyncIterator[EmbeddedModel]:
    """A model of the test's own event loop, on the keeper's server."""
    model = open_embedded(SMOLLM)
    yield model
    await model.close()


# What it answers


async def test_plain_streamed_structured(model: EmbeddedModel) -> None:
    events = [event async for event in model.stream(chat(STORY, "Write the next sentence."))]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 3, "it streams"
    assert isinstance(events[-1], Finish)
    plain = await complete(model, chat(STORY, "Write the next sentence."))
    assert plain.text[:20] == "".join(pieces)[:20]  # what comes later depends on what the cache had: numbers differ in the last digit
    assert plain.usage.answer_tokens > 3
    assert not plain.usage.estimated
    said = await complete(model, chat(STORY, "Who is here?", tokens=60, schema=PEOPLE))
    assert validate(json.loads(said.text), PEOPLE.body) == []
    assert said.notes == ()


async def test_knobs_are_taken(model: EmbeddedModel) -> None:
    sampling = Sampling(8, 0.9, 0.9, 0.08, 0.1, 0.1, 0.8, ("\n\n",))
    answer = await complete(model, Request((Message("user", "Hello!"),), sampling=sampling))
    assert answer.notes == (), "nothing is dropped"
    assert answer.text


async def test_book_keeping_finds_the_passage_in_the_cache(model: EmbeddedModel) -> None:
    passage = await complete(model, chat(STORY, "Write the next passage.", tokens=24))
    await complete(model, chat("You are a cook.", "How do I boil an egg? " * 4, tokens=4))
    book = await complete(model, chat(STORY, "Write the next passage.", passage.text, "Who is here?", tokens=40, schema=PEOPLE))
    assert book.usage.cached_tokens >= passage.usage.prompt_tokens - 8, "it landed in the slot that had read the passage's prompt"


async def test_exact_counts(model: EmbeddedModel) -> None:
    request = chat("Ты писатель. 你是作家。", "Once upon a time")
    answer = await complete(model, request)
    assert await model.count_prompt_tokens(request.messages) == answer.usage.prompt_tokens
    assert await model.count_tokens("") == 0
    assert await model.count_tokens("Once upon a time") == 4


async def test_leaving_a_stream_stops_the_generation(model: EmbeddedModel) -> None:
    stream = model.stream(chat("Count.", "Count from one to a thousand.", tokens=2000))
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()  # type: ignore[attr-defined]
    answers: list[Answer] = await asyncio.gather(*(complete(model, chat("Speak.", "Say a word.", tokens=3)) for _ in range(2)))
    assert all(answer.text for answer in answers), "both slots are free again"


async def test_profile() -> None:
    profile = open_embedded(SMOLLM, window=4096, slots=3, profile={"timeout_seconds": 5}).profile
    assert (profile.window, profile.concurrency, profile.structured, profile.timeout_seconds) == (4096, 3, "grammar", 5)
    assert profile.small
    assert profile.fitness("ru") == "unfit"
    assert {"min_p", "dry_multiplier", "seed"} <= profile.knobs
    with pytest.raises(InputError):
        open_embedded(SMOLLM, profile={"no such field": 1})
    with pytest.raises(NotFound, match="embeds text"):
        open_embedded("multilingual-e5-small")


def test_the_grammar_is_the_servers_own() -> None:
    code = "import json, sys, xllamacpp; print(xllamacpp.json_schema_to_grammar(json.loads(sys.argv[1])), end='')"
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3000}, "имя": {"const": "值\n"}}}
    made = subprocess.run([sys.executable, "-c", code, json.dumps(schema)], capture_output=True, text=True, check=True).stdout
    ours = embedded_grammar(schema)
    assert ours.partition("%json ")[0] == made.partition("%json ")[0]
    assert json.loads(ours.partition("%json ")[2]) == json.loads(made.partition("%json ")[2])


# One server, and its key


async def test_one_server_for_all_users(keeper: EmbeddedModel, model: EmbeddedModel) -> None:
    await model.ready()
    assert model.server is keeper.server
    other = open_embedded(SMOLLM)
    await other.ready()
    await other.close()
    await other.close()
    assert keeper.server is not None
    assert keeper.server.alive(), "closing one user does not end the server of the others"


async def test_the_key_is_needed_and_not_seen(keeper: EmbeddedModel, model: EmbeddedModel) -> None:
    await model.ready()
    server = model.server
    assert server is not None
    stranger = OpenAIModel(SMOLLM, await server.start() + "/v1", "wrong", Profile("x"))
    with pytest.raises(AuthFailed):
        await complete(stranger, chat("Speak.", "Say a word."))
    await stranger.close()
    assert server.key.encode() not in await asyncio.to_thread(public, server.pid)
    assert server.key not in repr(model) + repr(server)


def public(pid: int | None) -> bytes:
    """What a list of processes shows of one, where there is such a list."""
    files = [Path(f"/proc/{pid}/{file}") for file in ("cmdline", "environ")]
    return b"".join(file.read_bytes() for file in files if file.exists())


# Who dies


async def test_a_killed_server_is_started_again(model: EmbeddedModel) -> None:
    await model.ready()
    server = model.server
    assert server is not None
    assert server.pid
    before = server.pid
    os.kill(before, signal.SIGINT)  # Ctrl-C reaches the whole group; the child leaves it to the parent
    assert await server.healthy()
    os.kill(before, signal.SIGKILL)
    answer = await complete(model, chat("Speak.", "Say a word.", tokens=3))
    assert answer.text
    assert server.pid != before
    assert await server.healthy()
    assert server.restarts == 1


async def test_death_in_mid_answer_is_said_and_mended(model: EmbeddedModel) -> None:
    await model.ready()
    server = model.server
    assert server is not None
    heard: list[str] = []

    async def listen() -> None:
        async for event in model.stream(chat("Count.", "Count from one to a thousand.", tokens=2000)):
            if isinstance(event, TextDelta):
                heard.append(event.text)
                if len(heard) == 1 and server.pid:
                    os.kill(server.pid, signal.SIGKILL)

    with pytest.raises(EmbeddedFailed, match="in the middle of an answer") as caught:
        await listen()
    assert heard
    assert caught.value.next_action
    assert (await complete(model, chat("Speak.", "Say a word.", tokens=3))).text


async def test_restarts_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for the child dies at once when asked; no model is loaded."""
    script = 'import sys; sys.stdin.readline(); print(\'{"address": "http://127.0.0.1:1"}\', flush=True); sys.stdin.read()'
    stand_in(monkeypatch, script)
    server = server_module.EmbeddedServer(server_module.ServerSettings(tmp_path / "x.gguf", "x"))
    for _ in range(server_module._RESTARTS + 1):
        await server.start()
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(EmbeddedFailed, match=r"died 4 times .*signal 9"):
        await server.start()
    await server.stop()
    await server.start()
    assert server.alive(), "a stop is a new beginning"
    await server.stop()


def stand_in(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    popen = subprocess.Popen
    monkeypatch.setattr("subprocess.Popen", lambda _, **more: popen([sys.executable, "-c", script], **more))


async def test_a_file_that_cannot_be_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    model = open_embedded(broken, cache_dir=tmp_path)
    with pytest.raises(EmbeddedFailed, match=r"could not load broken\.gguf.*status 1") as caught:
        await complete(model, chat("Speak.", "Say a word."))
    assert str(tmp_path / "logs" / "broken.log") in caught.value.next_action
    assert (tmp_path / "logs" / "broken.log").stat().st_size
    await model.close()


PARENT = """
import asyncio, os, subprocess, sys
from fabula.models import open_embedded
model = open_embedded(sys.argv[1])
async def main():
    if sys.argv[2] != "loading":
        await model.ready()
    else:
        task = asyncio.create_task(model.ready())
        while model.server is None or model.server.pid is None:
            await asyncio.sleep(0.001)
    if sys.argv[2] == "leaked":  # some other process keeps the pipe open
        os.set_inheritable(model.server._child.stdin.fileno(), True)
        keeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], close_fds=False, stdout=subprocess.DEVNULL)
        print(keeper.pid, end=" ")
    print(model.server.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["loaded", "loading", "leaked"])
def test_the_server_ends_with_its_parent(when: str) -> None:
    fetched(SMOLLM)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, SMOLLM, when], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    *others, child = map(int, parent.stdout.readline().split())
    assert running(child)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    end = time.monotonic() + 20
    while running(child) and time.monotonic() < end:
        time.sleep(0.02)
    outlives = running(child)
    for other in others:
        os.kill(other, signal.SIGKILL)
    assert not outlives, "the child outlives its parent"


def running(pid: int) -> bool:
    """Whether a process runs (a dead one that nobody has collected does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stopped_server_ends_by_itself() -> None:
    server = server_module.EmbeddedServer(server_module.ServerSettings(fetched(SMOLLM), SMOLLM))
    server.start_blocking()
    child = server._child
    assert child is not None
    server.stop_blocking()
    assert child.returncode == 0, "it need not be killed: the closed pipe tells it"
    assert not server.alive()


# The log, and the check


def test_the_log_stays_small(tmp_path: Path) -> None:
    log, tail = tmp_path / "logs" / "x.log", deque[str](maxlen=3)
    lines = [b"%06d %s\n" % (number, b"x" * 92) for number in range(10_000)]
    server_module._keep_log(io.BytesIO(b"".join(lines)), log, tail)
    files = sorted(path.name for path in log.parent.iterdir())
    assert files == ["x.log", "x.old.log"]
    assert all((log.parent / name).stat().st_size <= server_module._LOG_BYTES for name in files)
    assert log.read_bytes().splitlines()[-1] == lines[-1].strip()
    assert [line[:6] for line in tail] == ["009997", "009998", "009999"]


async def test_check_says_what_works(model: EmbeddedModel) -> None:
    report = await check_model(Concurrent(model))
    assert report.works, report.lines()
    assert report.ready_seconds is not None
    assert [trial.kind for trial in report.trials] == ["plain", "structured", "streamed"]
    assert report.trials[2].rate
    text = "\n".join(report.lines())
    assert "streams, the first word after" in text
    assert "Not fit to write in: all other languages" in text
    assert model.server is not None
    assert model.server.key not in text + json.dumps(report.as_dict())


async def test_check_of_models_that_fail() -> None:
    chatty = await check_model(Scripted(lambda request: "no JSON here"))
    assert [trial.works for trial in chatty.trials] == [True, False, True]
    nobody = OpenAIModel("x", "http://127.0.0.1:1/v1", "a-secret-key", Profile("x"))
    report = await check_model(nobody)
    await nobody.close()
    assert not report.works
    assert report.trials[2].says.endswith("not tried after that.")
    assert "→" in "\n".join(report.lines())
    assert "secret" not in "\n".join(report.lines()) + json.dumps(report.as_dict())


async def test_progress_tells_of_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    stand_in(monkeypatch, 'import sys; sys.stdin.readline(); print(\'{"address": "http://127.0.0.1:1"}\', flush=True); sys.stdin.read()')
    news: list[Progress] = []
    model = open_embedded(own, cache_dir=tmp_path, progress=news.append)
    await model.ready()
    await model.close()
    assert [each.phase for each in news] == ["loading"]
