"""Claim: going on with a whole book costs no more than going on with a short one. A manuscript of 100,000 words and 2,000 memories of it
against one of 2,000 words and 40: CPU of making, opening, a step, an edit of an old passage, showing, export; tokens of the prompts.

    python benchmarks/bench_continue.py [WORDS]

CPU is this process's own (`time.process_time`), scripted model, no embedder.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabula.memory import Memory
from fabula.models import Scripted
from fabula.runs import Asked, Progress, replay
from fabula.store import open_store
from fabula.text import length, sentences
from fabula.write import ManuscriptChapter, Novel, Premise, Remembered, Story

STEPS = 20


class _Prose(Scripted):
    """Makes up prose of any length, without a run."""

    def prose(self, words: int) -> str:
        """So many words."""
        from fabula.models import Message, Request

        out, size, number = [], 0, 0
        while size < words:
            number += 1
            out.append(self._answer(Request((Message("user", f"part {number}"),), purpose="passage")).text)
            size += length(out[-1], "en")
        return "\n\n".join(out)


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """(milliseconds of CPU, result)."""
    start = time.process_time()
    result = work()
    return (time.process_time() - start) * 1000, result


def measure(words: int) -> dict[str, float]:
    """Everything that is measured, on a manuscript of so many words."""
    text = _Prose(words=400, language="en").prose(words)
    parts = text.split("\n\n")
    each = max(1, len(parts) // max(1, words // 4_000))
    chapters = tuple(
        ManuscriptChapter(f"Title {n // each + 1}", f"Chapter {n // each + 1}", ("\n\n".join(parts[n : n + each]),))
        for n in range(0, len(parts), each)
    )
    told = sentences(text, "en")
    step = max(1, len(told) // (words // 50))
    known = tuple(Remembered(f"It is known: {s.strip()}", "fact", quote=s.strip()) for s in told[::step])
    out: dict[str, float] = {"words": words, "memories": len(known)}
    prompts: list[int] = []

    def listen(event: Progress) -> None:
        if isinstance(event, Asked):
            prompts.append(event.prompt_tokens)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        store = open_store(path)
        premise = Premise(manuscript=chapters, memories=known, plans=("Mira rows out.", "Odile waits.", "The bell rings."), title="Bench")
        model = Scripted(words=320, language="en")
        out["start"], novel = cpu(lambda: Novel.start(store, premise, model=model, memory=Memory(store), seed="bench", listen=listen))
        out["library MB"] = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        out["first step"], _ = cpu(lambda: asyncio.run(novel.write(steps=1)))
        whole, _ = cpu(lambda: asyncio.run(novel.write(steps=STEPS)))
        out["a step"] = whole / STEPS
        out["most prompt tokens"] = max(prompts)
        old = next(p for p in novel.passages() if novel.run.piece(f"memories:{p.id}"))
        out["edit of an old passage"], _ = cpu(lambda: novel.edit_passage(old.id, old.text.replace("a", "e")))
        out["the step after it"], _ = cpu(lambda: asyncio.run(novel.write(steps=1)))
        out["regenerate"], _ = cpu(novel.regenerate)
        out["fork"], child = cpu(lambda: novel.fork(3))
        run = novel.id
        novel.close()
        out["open to go on"], again = cpu(lambda: Novel.open(store, run, model=model, memory=Memory(store)))
        again.close()
        out["open a fork"], _ = cpu(lambda: Novel.open(store, child))
        out["export .epub"], _ = cpu(lambda: again.export(Path(folder) / "x.epub"))
        out["replay, a step"] = cpu(lambda: asyncio.run(replay(store, Story(), run)))[0] / STEPS
        store.close()
        from fabula.cli import main as fabula

        with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
            out["runs show"], _ = cpu(lambda: fabula(["runs", "show", run, "--library", str(path)]))
        out["lines shown"] = shown.getvalue().count("\n")
    return out


def main(words: int) -> None:
    """Print both beside each other."""
    measure(1_000)  # what is loaded once is loaded
    small, large = measure(2_000), measure(words)
    for name in small:
        unit = "" if name in ("words", "memories", "library MB", "most prompt tokens", "lines shown") else " ms"
        print(f"{name:24} {small[name]:>10,.1f}{unit:3} {large[name]:>12,.1f}{unit}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
