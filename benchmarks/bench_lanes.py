"""Claims: a run of 25,000 lanes is scheduled in seconds of CPU (steps apart), opens in little memory, and a scripted step of a tree costs
less than 10 ms of CPU.

    python benchmarks/bench_lanes.py [LEAVES]

A tree of LEAVES (2,000) leaves, eight below each node, one pure call a node, eight steps at once, no embedder. CPU is this process's own
(`time.process_time`). What the same run costs without its steps is measured on a tree of 22,000 leaves whose steps do nothing.
"""

# ruff: noqa: ARG002  a rule uses none of what it is not about
from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fabula.memory import Memory
from fabula.models import Message, Sampling, Schema, Scripted
from fabula.runs import Context, Recurrence, Rendered, Run, advance, create
from fabula.store import StepRow, open_store, text_hash

_drive: Any = import_module("fabula.runs._drive")

WIDE = 8
SAID = Schema("said", {"type": "object", "required": ["said"], "properties": {"said": {"type": "string"}}})
PARAGRAPH = "Mira counted the boats again, and again one of them was missing; nobody in the harbour would say which. "


def heights(leaves: int) -> list[int]:
    """Nodes at each height."""
    out = [leaves]
    while out[-1] > 1:
        out.append(-(-out[-1] // WIDE))
    return out


class Tree(Recurrence):
    """A reading: leaves read a part of a text each, nodes merge what is below."""

    kind, single = "bench-tree", False

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        """One a node; time is height."""
        return {f"{h}.{n}": (h, h + 1) for h, count in enumerate(heights(premise["leaves"])) for n in range(count)}

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        """Where each leaf reads."""
        return {(f"0.{n}", "span"): [n * 2_000, n * 2_000 + 2_000] for n in range(premise["leaves"])}

    def below(self, run: Run, lane: str) -> list[str]:
        """The nodes that a node merges."""
        height, number = map(int, lane.split("."))
        if not height:
            return []
        count = heights(run.row.premise["leaves"])[height - 1]
        return [f"{height - 1}.{n}" for n in range(number * WIDE, min(count, number * WIDE + WIDE))]

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str]:
        """Only those below."""
        return self.below(run, lane)

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        """Those below."""
        return source in self.below(run, target)

    async def step(self, ctx: Context) -> Any:
        """Read or merge."""
        (lane,) = ctx.lanes
        below = self.below(ctx.run, lane)
        if below:
            text = "\n".join(ctx.piece("said", lane=child) for child in below)
        else:
            start, end = ctx.piece("span")
            text = ctx.text(ctx.premise["texts"][start // 1_000_000])[start % 1_000_000 : end % 1_000_000 or None]
        prompt = Rendered(
            "read", (Message("system", "Say what it says."), Message("user", f"{lane}\n{text}")), SAID, Sampling(max_tokens=300)
        )
        reply = await ctx.ask("read", prompt, pure=True)
        ctx.put("said", reply.value["said"])
        return len(reply.text)


def answer(request: Any) -> str:
    """Eighty words."""
    return '{"said": "' + f"{hash(request.messages[-1].content)} " + "word " * 80 + '"}'


class Forgetful(Scripted):
    """Keeps no requests, which would be most of the memory."""

    def _answer(self, request: Any) -> Any:
        self.requests.clear()
        return super()._answer(request)


async def nothing(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
    """A step that is only scheduled."""
    await asyncio.sleep(0)
    for lane in lanes:
        run.next[lane] = time + 1
    return StepRow(run.id, lanes[0], time, 1, time + 1, None, {})


def memory() -> float:
    """Megabytes of this process at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(leaves: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "bench.db")
        model, way = Forgetful(answer), Tree()
        texts = [(f"Text {n}. " + PARAGRAPH * 10_000)[:1_000_000] for n in range(1 + leaves * 2_000 // 1_000_000)]
        create(store, way, {"leaves": leaves, "texts": [text_hash(text) for text in texts]}, run="tree", model=model, texts=texts)
        run = Run(store, way, "tree", model=model, memory=Memory(store))
        before = memory()
        cpu, wall = time.process_time(), time.time()
        done = asyncio.run(advance(run, at_once=8))
        cpu, wall = time.process_time() - cpu, time.time() - wall
        run.close()
        print(f"steps {len(done)}: CPU {1000 * cpu / len(done):.2f} ms a step, waited {1000 * wall / len(done):.2f} ms a step")
        print(f"library {Path(store.place).stat().st_size / 1e6:.1f} MB, memory at most {memory():.0f} MB ({before:.0f} before)")
        cpu = time.process_time()
        run = Run(store, way, "tree")
        print(f"opened again: CPU {time.process_time() - cpu:.2f} s")
        create(store, way, {"leaves": 22_000, "texts": []}, run="wide")
        cpu = time.process_time()
        run = Run(store, way, "wide", hold=True)
        opened = time.process_time() - cpu
        import_module("fabula.runs._drive").one_step = nothing  # type: ignore[attr-defined]
        cpu = time.process_time()
        done = asyncio.run(advance(run, at_once=8))
        print(f"lanes {len(done)}: opened in {opened:.2f} s, scheduled in {time.process_time() - cpu:.2f} s of CPU")
        store.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
