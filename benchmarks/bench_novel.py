"""Claim: a novel is bounded. 1,000 steps on the scripted model without an embedder: prompt tokens never above the budget, CPU of a step
flat (last 100 against first 100), memory of the process, and what engine, store and token counting take of it.

    python benchmarks/bench_novel.py [STEPS]

CPU is this process's own (`time.process_time`), so that other work on the machine does not count. Engine, store and token counting are
measured as the CPU of a step less that of the checks of language, loops and repetition and of the scripted model itself, which are
timed where they run.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from fabula.memory import Memory
from fabula.models import Scripted
from fabula.runs import Asked, Progress, StepDone
from fabula.store import open_store
from fabula.write import Novel, Premise

BUDGET = 6_000
SPENT: dict[str, float] = defaultdict(float)


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its CPU added up under a name."""

    def call(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **options)
        finally:
            SPENT[name] += time.process_time() - start

    return call


class Timed(Scripted):
    """The scripted model, with the CPU of making up an answer set apart."""

    def _answer(self, request: Any) -> Any:
        return timed("model", super()._answer)(request)


def main(steps: int) -> None:
    """Write and print the table."""
    prose_module, passage_module = import_module("fabula.write._prose"), import_module("fabula.write._passage")
    for name in ("is_language", "find_loop", "find_requoted", "repeated_share", "trim_to_sentence", "ends_finished"):
        setattr(prose_module, name, timed("checks", getattr(prose_module, name)))
    vars(passage_module)["best_quote"] = timed("checks", passage_module.best_quote)
    prompts: list[int] = []
    marks: list[tuple[float, float, float]] = []

    def listen(event: Progress) -> None:
        if isinstance(event, Asked):
            prompts.append(event.prompt_tokens)
        elif isinstance(event, StepDone):
            marks.append((time.process_time(), SPENT["checks"], SPENT["model"]))

    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "bench.db"
        store = open_store(library)
        model = Timed(words=320, language="en")
        premise = Premise(premise="A lighthouse keeper vanishes.", language="en", prompt_tokens=BUDGET, chapter_length=3_000)
        novel = Novel.start(store, premise, model=model, memory=Memory(store), listen=listen, seed="bench")
        model.requests = _Forgetful()
        asyncio.run(novel.write(steps=steps + 1))
        words, size = novel.length, library.stat().st_size
        novel.close()
        store.close()
    whole = [b[0] - a[0] for a, b in pairwise(marks)]
    ours = [(b[0] - a[0]) - (b[1] - a[1]) - (b[2] - a[2]) for a, b in pairwise(marks)]
    edge = min(100, len(whole) // 2)
    print(f"{len(whole)} steps, {words:,} words, library {size / 1e6:.1f} MB")
    first, last = mean(prompts[: edge * 3]), mean(prompts[-edge * 3 :])
    print(f"prompt tokens: most {max(prompts):,} of {BUDGET:,}; mean of the first {edge} steps: {first:,.0f}, of the last: {last:,.0f}")
    ratios = [mean(times[-edge:]) / mean(times[:edge]) for times in (whole, ours)]
    print(f"CPU a step, last {edge} / first {edge}: {ratios[0]:.2f} (all), {ratios[1]:.2f} (ours)")
    print(f"CPU a step: {1000 * mean(whole):.1f} ms; engine, store, memory and token counting: {1000 * mean(ours):.1f} ms")
    print(f"  the rest: checks {1000 * SPENT['checks'] / len(whole):.1f} ms, scripted model {1000 * SPENT['model'] / len(whole):.1f} ms")
    print(f"memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")


class _Forgetful(list[Any]):
    """The scripted model keeps its requests; a benchmark of memory must not."""

    def append(self, item: Any) -> None:
        """Forget it."""


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
