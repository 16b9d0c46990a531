"""A process that reads a book over HTTP, eight chunks at once, to be killed; and what its journal must look like afterwards."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from fabula.models import Message, Request, Sampling, Schema
from fabula.store import CallRow, LogRow, Store

RUN = "kill-reading"
CHUNKS = 30


def read(library: str, book: str, address: str, boundary: int | None, go: Any) -> None:
    """Begin the reading or go on with it; die by SIGKILL at a write boundary, if one is given."""
    from fabula.memory import Memory
    from fabula.models import ModelChoice, open_model
    from fabula.read import Study
    from fabula.store import open_store
    from tests.read.reading import start

    passed = 0

    def fault(_name: str) -> None:
        nonlocal passed
        passed += 1
        if boundary is not None and passed >= boundary:
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(library, fault=fault)
    profile = {"window": 32_768, "max_answer": 4_096, "concurrency": 8}
    model = open_model(ModelChoice(model="reader", base_url=address, api_key="none", profile=profile))
    go.set()

    async def main() -> None:
        if store.rows(LogRow, run=RUN, kind="create", limit=1):
            study = Study.open(store, RUN, model=model, memory=Memory(store))
        else:
            study = start(store, [Path(book)], model, run=RUN, seed="seed", way="tree")
        await study.read()
        study.close()
        await model.close()

    asyncio.run(main())
    store.close()


@contextmanager
def server() -> Iterator[str]:
    """The copying reader behind HTTP, in a process of its own that ends with this one."""
    with Popen([sys.executable, "-m", "tests.durability.reader"], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield json.loads(process.stdout.readline())["address"]
        process.stdin.close()
        process.wait(20)


async def _serve() -> None:
    from fabula.models.test_server import ScriptedServer
    from tests.read.models import Copyist

    async with ScriptedServer(Copyist(200, seconds=0.01), keep_bodies=False) as running:
        sys.stdout.write(json.dumps({"address": running.address}) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["fabula.read", "fabula.memory", "fabula.models", "fabula.runs", "openai", "numpy", "tests.durability.reader"]
)


def begin(library: Path, book: Path, address: str, boundary: int | None) -> tuple[BaseProcess, Any]:
    """Start a reader; the event is set when it begins."""
    go = _CONTEXT.Event()
    process = _CONTEXT.Process(target=read, args=(str(library), str(book), address, boundary, go), daemon=True)
    process.start()
    return process, go


def times_asked(address: str) -> Counter[str]:
    """Hash of a prompt → how often the server was asked with it."""
    with urllib.request.urlopen(address.removesuffix("/v1") + "/requests", timeout=20) as response:
        return Counter(entry["prompt"] for entry in json.load(response)["requests"] if entry["prompt"])


def answered_prompts(store: Store) -> set[str]:
    """Hashes of the prompts that have a verdict in the journal, as the server names them."""
    asked = {row.pos: row for row in store.rows(CallRow, status="asked")}
    return {_hash(asked[c.asked]) for c in store.rows(CallRow) if c.status in ("answered", "refused") and c.asked}


def _hash(row: CallRow) -> str:
    messages = tuple(Message(role, text) for role, text in row.prompt)  # type: ignore[arg-type]
    schema = row.request["schema"]
    sampling: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.request["sampling"].items()}
    return Request(messages, "", Schema(schema["name"], schema["body"]) if schema else None, Sampling(**sampling)).fingerprint("")[:12]


def inside_a_step(store: Store) -> bool:
    """The process died between the first thing that a step journaled and its commit."""
    rows = store.rows(LogRow, run=RUN, newest_first=True, limit=1)
    return bool(rows) and rows[0].kind not in ("texts", "create", "learnt", "model") and not _whole(store)


def _whole(store: Store) -> bool:
    from fabula.store import StepRow

    steps = store.rows(StepRow, run=RUN)
    return any(s.output.get("kind") == "final" for s in steps)


if __name__ == "__main__":
    asyncio.run(_serve())
