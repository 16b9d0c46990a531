"""Claim: a reading asks seldom and waits little. 100 chunks on a loopback server that takes 200 ms a call, 8 at once: calls and waiting of
each way beside the source article's rule (two calls a chunk, in order), in one run; then one edited sentence; then what a chunk costs
in CPU, and memory over a folder of so many megabytes.

    python benchmarks/bench_read.py [CHUNKS] [MEGABYTES]

Waiting is wall time; everything else beside it on the machine makes it longer for all ways alike, so look at the ratios.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fabula.models import Model, ModelChoice, open_model, test_server
from fabula.store import open_store
from tests.read.article import article_calls
from tests.read.models import Copyist
from tests.read.reading import long_text, piece, read

SECONDS = 0.2
AT_ONCE = 8


class Slow(Copyist):
    """The copyist; the article's two prompts, which have no schema, are answered as well."""

    def _say(self, request):  # type: ignore[no-untyped-def]
        return super()._say(request) if request.schema else "So it says. " * 20


def model_at(server: test_server.ScriptedServer) -> Model:
    """A model at the server."""
    profile = {"window": 32_768, "max_answer": 4_096, "concurrency": AT_ONCE}
    return open_model(ModelChoice(model="reader", base_url=server.address, api_key="none", profile=profile))


async def waiting(chunks: int, folder: Path) -> None:
    """Calls and waiting of each way, and again after an edit."""
    path, text = folder / "book.md", long_text(chunks)
    path.write_text(text, "utf-8")
    async with test_server.ScriptedServer(Slow(300, seconds=SECONDS), keep_bodies=False) as server:
        model = model_at(server)
        await article_calls(model, ["warm up"])
        server.log.clear()
        began = time.monotonic()
        await article_calls(model, [piece(n) for n in range(chunks)])
        base, calls = time.monotonic() - began, len(server.log)
        print(f"{'':28} calls  seconds  × less waiting")
        print(f"{'the article: two, in order':28} {calls:5}  {base:7.1f}  1.0")
        for way in ("chain", "two-pass", "tree"):
            with closing(open_store(folder / f"{way}.db")) as store:
                server.log.clear()
                began = time.monotonic()
                await read(store, [path], model, way=way)
                took = time.monotonic() - began
                print(f"{way:28} {len(server.log):5}  {took:7.1f}  {base / took:.1f}")
                server.log.clear()
                path.write_text(text.replace("vault Driftfield", "vault Nowhere"), "utf-8")
                began = time.monotonic()
                await read(store, [path], model, way=way)
                took = time.monotonic() - began
                print(f"{'  after one edited sentence':28} {len(server.log):5}  {took:7.1f}  {base / took:.1f}")
                path.write_text(text, "utf-8")
        await model.close()


CHILD = """
import asyncio, resource, sys, time
sys.path.insert(0, {root!r})
from contextlib import closing
from pathlib import Path
from fabula.store import open_store
from tests.read.models import Copyist
from tests.read.reading import start
class Forgetful(list):
    def append(self, request):
        pass
async def main():
    model = Copyist(200)
    model.requests = Forgetful()
    with closing(open_store({library!r})) as store:
        began = time.process_time()
        study = start(store, [Path({folder!r})], model, chunk_tokens=8_000, way="tree")
        gathered = time.process_time() - began
        await study.read()
        spent = time.process_time() - began
        n = study.shape.chunks
        print(f"{{n}} chunks: gathering {{gathered:.1f}} s of CPU, reading {{1000 * (spent - gathered) / n:.1f}} ms of CPU a chunk, "
              f"{{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}} MB at most")
        study.close()
asyncio.run(main())
"""


def memory(megabytes: int, folder: Path) -> None:
    """A folder of so many megabytes, read in a process of its own."""
    sources = folder / "sources"
    sources.mkdir()
    text = long_text(400)
    files = max(1, megabytes * 1_000_000 // len(text))
    for n in range(files):
        (sources / f"book-{n:04}.md").write_text(f"# Book {n}\n\n" + text.replace("house", f"house {n}"), "utf-8")
    size = sum(p.stat().st_size for p in sources.iterdir()) / 1e6
    print(f"\na folder of {size:.0f} MB in {files} files, scripted model, no embedder")
    code = CHILD.format(root=str(Path(__file__).resolve().parents[1]), library=str(folder / "big.db"), folder=str(sources))
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "FABULA_EMBEDDER": "none"})
    print(f"library: {(folder / 'big.db').stat().st_size / 1e6:.0f} MB")


def main(chunks: int = 100, megabytes: int = 20) -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(waiting(chunks, Path(folder)))
        memory(megabytes, Path(folder))
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
