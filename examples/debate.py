"""A fifth way in, on the engine's public names alone: two voices debate, and a run of it resumes, forks, replays and traces.

    python examples/debate.py "Should the lighthouse be torn down?"

State: what was said last, and who speaks next. Input: nothing. Output: one turn. What was said longer ago comes back from memory.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabula.memory import Memory, Record
from fabula.models import Message, ModelChoice, Sampling, open_model
from fabula.runs import Context, Pieces, Recurrence, Rendered, Run, advance, create, replay, trace
from fabula.store import open_store

VOICES = ("Ada", "Bruno")


class Debate(Recurrence):
    """One lane; a turn a step."""

    kind = "debate"

    def start(self, premise: Mapping[str, Any]) -> Pieces:  # noqa: ARG002
        """Nothing was said yet."""
        return {("main", "last"): "", ("main", "turn"): 0}

    def finished(self, run: Run) -> bool:
        """Six turns are enough."""
        return int(run.piece("turn")) >= 6

    async def step(self, ctx: Context) -> dict[str, str]:
        """One turn, in the light of the last one and of what memory has on it."""
        voice, last = VOICES[ctx.piece("turn") % 2], ctx.piece("last")
        earlier = await ctx.recall(last or ctx.premise["question"], limit=3)
        lines = [f"Question: {ctx.premise['question']}", *(f"Earlier: {m.text}" for m in earlier), f"Just now: {last}" if last else ""]
        prompt = "\n".join([*filter(None, lines), f"You are {voice}. Answer in two sentences."])
        reply = await ctx.stream("turn", Rendered("turn", (Message("user", prompt),), None, Sampling(max_tokens=120, temperature=0.8)))
        ctx.put("last", f"{voice}: {reply.text.strip()}")
        ctx.put("turn", ctx.piece("turn") + 1)
        ctx.remember("said", Record(id="", kind="utterance", owner=voice, text=reply.text.strip(), source=voice))
        return {"voice": voice, "said": reply.text.strip()}


async def debate(question: str, library: Path, model_name: str = "embedded") -> str:
    """Drive a debate to its end; returns the run's id."""
    store, model = open_store(library), open_model(ModelChoice(model=model_name))
    way = Debate()
    run = Run(store, way, create(store, way, {"question": question}, model=model), model=model, memory=Memory(store))
    for step in await advance(run):
        print(f"{step.output['voice']}: {step.output['said']}\n")
    count, differences = await replay(store, way, run.id)
    prompt = trace(store, run.id, count - 1).calls[-1].asked
    print(f"{count} turns, replayed from the journal with {len(differences)} differences; the last one was asked with:\n")
    print(prompt.prompt[0][1] if prompt else "")
    run.close()
    await model.close()
    store.close()
    return run.id


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(debate(" ".join(sys.argv[1:]) or "Should the lighthouse be torn down?", Path(folder) / "debate.db"))
