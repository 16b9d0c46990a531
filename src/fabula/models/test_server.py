"""`python -m fabula.models.test_server`: a loopback server in the OpenAI format for tests and benchmarks. It needs no model.

Prints one JSON line, `{"address": "http://127.0.0.1:PORT/v1", "pid": …}`, and ends when standard input closes, so that it never outlives
whoever started it. `GET /requests` tells what it was asked. In one's own process: `async with ScriptedServer(…) as server:` and
`server.address`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import Sequence
from typing import cast

from fabula.models._misbehaving import FAULTS, Fault, Misbehaving
from fabula.models._port import Model
from fabula.models._scripted import Scripted
from fabula.models._scripted_server import ScriptedServer, embed_text

__all__ = ["ScriptedServer", "embed_text", "main", "make_server"]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fabula.models.test_server", description="A loopback model server for tests and benchmarks."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--words", type=int, default=120, help="length of a prose answer in words (Chinese: characters)")
    parser.add_argument("--seedless", action="store_true", help="answers do not depend on the seed")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each piece of an answer")
    parser.add_argument("--faults", default="", help=f"comma-separated, or `all`: {', '.join(FAULTS)}")
    parser.add_argument("--rate", type=float, default=0.2, help="share of askings that go wrong, if --faults is given")
    parser.add_argument("--seed", type=int, default=0, help="for the choice of faults")
    parser.add_argument("--limit-bytes", type=int, default=None, help="larger requests get 413")
    parser.add_argument("--key", default=None, help="demand this key")
    parser.add_argument("--rungs", default="json_schema,json_object", help="kinds of structured answers that are taken")
    parser.add_argument("--no-usage", action="store_true", help="do not tell usage")
    parser.add_argument("--plain", action="store_true", help="never stream")
    parser.add_argument("--no-bodies", action="store_true", help="do not keep the bodies of requests")
    return parser.parse_args(argv)


def make_server(options: argparse.Namespace) -> ScriptedServer:
    """The server that the options describe."""
    model: Model = Scripted(words=options.words, seedless=options.seedless, delay=options.delay)
    if options.faults:
        names = FAULTS if options.faults == "all" else cast("tuple[Fault, ...]", tuple(options.faults.split(",")))
        model = Misbehaving(model, names, rate=options.rate, seed=options.seed)
    return ScriptedServer(
        model,
        key=options.key,
        limit_bytes=options.limit_bytes,
        rungs=[rung for rung in options.rungs.split(",") if rung],
        usage=not options.no_usage,
        streaming=not options.plain,
        keep_bodies=not options.no_bodies,
    )


async def _serve(options: argparse.Namespace) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_end() -> None:
        while sys.stdin.buffer.read(4096):
            continue
        loop.call_soon_threadsafe(over.set)

    server = make_server(options)
    await server.start(options.port)
    sys.stdout.write(json.dumps({"address": server.address, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    threading.Thread(target=wait_for_end, daemon=True).start()
    await over.wait()
    await server.stop()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until standard input closes."""
    try:
        asyncio.run(_serve(_arguments(argv)))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
