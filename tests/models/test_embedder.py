"""Embedders: E5 for real, an address on loopback, and the one for tests."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.errors import AuthFailed, InputError, ServerFailed, Unreachable, Unsupported, WeightsMissing
from fabula.models import E5, Embedder, HashEmbedder, HttpEmbedder, open_embedder
from fabula.models import _embedder as embedder_module
from tests.models.smollm import fetched

# E5

FACTS = [
    "Mira: hid the broken watch under the lamp.",
    "The ferry leaves the island at noon.",
    "Мира спрятала сломанные часы под лампой.",
    "Паром уходит с острова в полдень.",
    "米拉把坏掉的手表藏在灯下。",
    "渡轮中午离开小岛。",
]
QUESTIONS = ["Where is the watch?", "When does the ferry go?", "Где часы?", "Когда уходит паром?", "手表在哪里？", "渡轮什么时候走？"]


@pytest.fixture(scope="module")
def e5() -> Iterator[E5]:
    fetched("multilingual-e5-small")
    embedder = E5()
    yield embedder
    asyncio.run(embedder.close())


async def test_e5_finds_what_is_asked_in_three_languages(e5: E5) -> None:
    facts, questions = await e5.passages(FACTS), await e5.queries(QUESTIONS)
    assert facts.shape == (6, e5.dim)
    assert facts.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(facts, axis=1), 1, atol=1e-5)
    likeness = questions @ facts.T
    assert list(likeness.argmax(1)) == [0, 1, 2, 3, 4, 5]
    other_languages = np.where(np.arange(6)[:, None] // 2 == np.arange(6)[None] // 2, -1, likeness)
    assert [int(best) % 2 for best in other_languages.argmax(1)].count(0) >= 2
    assert other_languages[0].argmax() in (2, 4)


async def test_e5_gives_the_numbers_of_the_model(e5: E5) -> None:
    """The first numbers as another implementation gives them (full 32-bit weights, another tokenizer)."""
    passage, query = await e5.passages(FACTS[:1]), await e5.queries(["手表在哪里？"])
    np.testing.assert_allclose(passage[0, :6], [0.0960, 0.0095, -0.0289, -0.0234, 0.0510, -0.0059], atol=2e-4)
    np.testing.assert_allclose(query[0, :6], [0.0875, -0.0118, -0.0236, -0.0175, 0.0687, -0.0355], atol=2e-4)


async def test_e5_does_not_mind_company(e5: E5) -> None:
    texts = ["short", *FACTS, "a longer text " * 8]
    together = await e5.passages(texts)
    for number, text in enumerate(texts):
        np.testing.assert_allclose(together[number], (await e5.passages([text]))[0], atol=1e-4)


async def test_e5_splits_and_averages_long_texts(e5: E5, monkeypatch: pytest.MonkeyPatch) -> None:
    await e5.ready()
    engine = e5._engine
    assert engine is not None
    words = [f"word{number}" for number in range(250)]
    rows = engine._windows("passage: ", " ".join(words))
    assert len(rows) > 1
    assert max(map(len, rows)) <= 512
    head = engine._encode("passage: ")
    body = [token for row in rows for token in row[1 + len(head) : -1]]
    assert head + body == engine._encode("passage: " + " ".join(words)), "nothing is lost, nothing is read twice"
    assert max(map(len, rows)) - min(map(len, rows)) <= len(rows), "no crumb at the end"
    whole = (await e5.passages([" ".join(words)]))[0]
    expected = sum(engine._run([row])[0] for row in rows)
    np.testing.assert_allclose(whole, expected / np.linalg.norm(expected), atol=1e-4)


async def test_e5_takes_odd_texts(e5: E5) -> None:
    assert (await e5.passages([])).shape == (0, 384)
    vectors = await e5.passages(["", " \n", "\ud800", "\x00", "🦜" * 700, "<mask></s>"])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    same = await e5.passages(["ﬁne\u3000weather", "fine weather"])
    np.testing.assert_allclose(same[0], same[1], atol=1e-5)


async def test_e5_leaves_the_loop_free(e5: E5) -> None:
    task = asyncio.create_task(e5.passages(FACTS * 6))
    ticks = 0
    while not task.done():
        await asyncio.sleep(0)
        ticks += 1
    assert ticks > 10
    assert (await task).shape == (36, 384)


def test_e5_is_small() -> None:
    """The most memory of a whole process that embeds, bytes: measured 191 MB."""
    if not sys.platform.startswith("linux"):
        pytest.skip("this system does not tell a process's memory")
    fetched("multilingual-e5-small")
    code = """
import asyncio, pathlib
from fabula.models import open_embedder
async def main():
    embedder = open_embedder("e5")
    await embedder.passages(["Mira walked along the shore and found the watch. " * 8] * 8 + ["word " * 600])
    await embedder.close()
asyncio.run(main())
status = pathlib.Path("/proc/self/status").read_text()  # not getrusage: there the parent's memory counts too
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert peak * 1024 < 300e6


async def test_e5_whose_files_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "weights.bin"
    broken.write_bytes(b"something else")

    async def here(*_: object, **__: object) -> Path:
        return broken

    monkeypatch.setattr(embedder_module, "fetch_in_thread", here)
    monkeypatch.setattr(embedder_module, "fetch", lambda *_, **__: broken)
    embedder = E5(cache_dir=tmp_path)
    with pytest.raises(WeightsMissing, match="not a file of E5 weights"):
        await embedder.queries(["x"])
    await embedder.close()


# An address


class Server:
    """`/v1/embeddings` and `/v1/models` on loopback; `change` may spoil the answer."""

    def __init__(self) -> None:
        self.change: Callable[[dict[str, Any]], object] = lambda body: body
        self.status, self.models = 200, ["only-one"]
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.address = ""

    def answer(self, path: str, body: dict[str, Any]) -> object:
        if path.endswith("/models"):
            return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in self.models]}
        self.asked.append(body)
        rows = [{"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0, 0.0]} for i, text in enumerate(body["input"])]
        rows.reverse()
        return self.change({"object": "list", "model": body["model"], "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            server.keys.append(self.headers.get("Authorization"))
            said = json.dumps(server.answer(self.path, body)).encode()
            self.send_response(server.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.address = f"http://127.0.0.1:{http.server_port}/v1"
    yield server
    http.shutdown()
    http.server_close()
    thread.join()


async def test_an_address(server: Server) -> None:
    embedder = HttpEmbedder(server.address + "#some-model", api_key="a-key", prefixes=("p: ", "q: "))
    assert embedder.id == "some-model/remote"
    with pytest.raises(Unsupported):
        _ = embedder.dim
    texts = ["x" * number for number in range(1, 101)]
    vectors = await embedder.passages(texts)
    expected = np.array([[len(text) + 3, 1, 0] for text in texts], np.float32)
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert embedder.dim == 3
    assert [len(body["input"]) for body in server.asked] == [64, 36]
    assert (await embedder.queries(["?"])).shape == (1, 3)
    assert server.asked[-1]["input"] == ["q: ?"]
    assert (await embedder.passages([])).shape == (0, 3)
    assert set(server.keys) == {"Bearer a-key"}
    assert "a-key" not in repr(embedder)
    await embedder.close()
    await embedder.close()


async def test_an_address_with_one_model_needs_no_name(server: Server) -> None:
    embedder = open_embedder(server.address)
    assert isinstance(embedder, HttpEmbedder)
    with pytest.raises(Unsupported):
        _ = embedder.id
    await embedder.ready()
    assert (embedder.id, embedder.dim) == ("only-one/remote", 3)
    assert server.keys[0] is None, "no key is sent where none is known"
    server.models = ["a", "b"]
    unnamed = HttpEmbedder(server.address)
    with pytest.raises(InputError, match="a, b"):
        await unnamed.ready()
    await unnamed.close()
    await embedder.close()


def drop_one(body: dict[str, Any]) -> object:
    return {**body, "data": body["data"][1:]}


def other_length(body: dict[str, Any]) -> object:
    body["data"][0]["embedding"] = [1.0]
    return body


def no_direction(body: dict[str, Any]) -> object:
    body["data"][0]["embedding"] = [0.0, 0.0, 0.0]
    return body


@pytest.mark.parametrize("change", [drop_one, other_length, no_direction])
async def test_an_address_that_answers_nonsense(server: Server, change: Callable[[dict[str, Any]], object]) -> None:
    server.change = change
    embedder = HttpEmbedder(server.address + "#m")
    with pytest.raises(ServerFailed):
        await embedder.passages(["one", "two"])
    await embedder.close()


async def test_an_address_that_refuses(server: Server) -> None:
    server.status = 401
    embedder = HttpEmbedder(server.address + "#m", api_key="a-secret-key")
    with pytest.raises(AuthFailed) as caught:
        await embedder.passages(["one"])
    assert "secret" not in str(caught.value)
    await embedder.close()
    nobody = HttpEmbedder("http://127.0.0.1:1/v1#m")
    nobody._retries = 0
    with pytest.raises(Unreachable):
        await nobody.passages(["one"])
    await nobody.close()


# For tests, and the choice


async def test_hash_embedder_is_the_same_everywhere() -> None:
    embedder = HashEmbedder(64)
    vectors = await embedder.passages(["Mira's eyes are green", "mira's EYES are green", "别的", "", "\ud800"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert vectors[0] @ vectors[2] < 0.5
    np.testing.assert_array_equal(
        vectors, await HashEmbedder(64).queries(["Mira's eyes are green", "mira's EYES are green", "别的", "", "\ud800"])
    )
    np.testing.assert_allclose(vectors[0, :8], [0.209, 0.0, -0.209, 0.0, -0.209, 0.0, 0.209, 0.209], atol=1e-3)
    assert "tests" in embedder.id


def test_choices(tmp_path: Path) -> None:
    assert open_embedder("none") is None
    chosen = open_embedder(" E5 ", cache_dir=tmp_path)
    assert isinstance(chosen, E5)
    assert isinstance(chosen, Embedder)
    assert (chosen.id, chosen.dim) == ("multilingual-e5-small/fp32", 384)
    assert list(tmp_path.iterdir()) == [], "nothing is fetched before it is needed"
    with pytest.raises(InputError, match="no embedder named 'bert'"):
        open_embedder("bert")
