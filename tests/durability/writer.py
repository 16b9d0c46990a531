"""A process that writes a story over HTTP, to be killed; and what its journal must look like afterwards."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fabula.store import CallRow, LogRow, Store, open_store

RUN = "kill-run"
STEPS = 5


def write(library: str, address: str, boundary: int | None, go: Any) -> None:
    """Go on with the story until it has its steps; die by SIGKILL at a write boundary, if one is given."""
    from fabula.memory import Memory
    from fabula.models import ModelChoice, open_model
    from fabula.runs import create
    from fabula.write import Novel, Premise, Story

    passed = 0

    def fault(_name: str) -> None:
        nonlocal passed
        passed += 1
        if boundary is not None and passed >= boundary:
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(library, fault=fault)
    model = open_model(ModelChoice(model="scripted-server", base_url=address, api_key="none"))
    premise = Premise(premise="A lighthouse keeper vanishes, and Inspector Vale finds his broken watch.", language="en").checked()
    if not store.rows(LogRow, run=RUN, limit=1):
        create(store, Story(), premise.as_dict(), run=RUN, seed="seed", model=model)
    novel = Novel.open(store, RUN, model=model, memory=Memory(store))
    novel.run.partial_seconds = 0.01
    go.set()

    async def main() -> None:
        await novel.write(stop=lambda: len(novel.passages()) >= STEPS)
        await model.close()

    asyncio.run(main())
    novel.close()
    store.close()


@contextmanager
def server(delay: float = 0.001) -> Iterator[str]:
    """A model server whose answers are a function of the request."""
    command = [sys.executable, "-m", "fabula.models.test_server", "--port", "0", "--words", "220", "--delay", str(delay), "--no-bodies"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield json.loads(process.stdout.readline())["address"]
        process.stdin.close()
        process.wait(20)


def times_asked(address: str) -> Counter[int]:
    """Seed (which names the address of a call) → how often the server was asked with it."""
    with urllib.request.urlopen(address.removesuffix("/v1") + "/requests", timeout=20) as response:
        return Counter(int(entry["seed"]) for entry in json.load(response)["requests"] if entry["seed"] is not None)


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["fabula.write", "fabula.memory", "fabula.models", "fabula.runs", "openai", "numpy", "tests.durability.writer"]
)


def start(library: Path, address: str, boundary: int | None) -> tuple[BaseProcess, Any]:
    """Start a writer; the event is set when it begins."""
    go = _CONTEXT.Event()
    process = _CONTEXT.Process(target=write, args=(str(library), address, boundary, go), daemon=True)
    process.start()
    return process, go


def verdict_seeds(store: Store) -> set[int]:
    """Seeds of the calls that have a verdict in the journal."""
    asked = {row.pos: row for row in store.rows(CallRow, status="asked")}
    return {int(asked[c.asked].request["seed"]) for c in store.rows(CallRow) if c.status in ("answered", "refused") and c.asked}


def inside_a_step(store: Store) -> bool:
    """The process died between the first thing that a step journaled and its commit."""
    rows = store.rows(LogRow, run=RUN, newest_first=True, limit=1)
    return bool(rows) and rows[0].kind not in ("create", "commit", "learnt", "model")


def journal(path: Path) -> Store:
    """The library, opened to look at."""
    return open_store(path)
