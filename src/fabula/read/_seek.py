"""Reading for a question: only what may matter, found by the question's words and those that a model adds; what was not read is said."""

from __future__ import annotations

from typing import Any

from fabula.read._leaf import Asking, read_chunk, remember
from fabula.read._look import Reader, together
from fabula.read._merge import merge_all, part_of_chunk
from fabula.read._shape import MOST_ROUNDS
from fabula.text import rank

A_ROUND = 8
"""Most chunks that are read in one round."""
_MOST_CANDIDATES = 400
_TITLES = 600
"""Tokens of the list of titles that a model sees."""


async def seek_step(r: Reader) -> dict[str, Any]:
    """Terms first; then rounds of reading; then the answer."""
    if r.ctx.time == 0:
        return await _terms_step(r)
    if r.ctx.time <= MOST_ROUNDS and not r.ctx.piece("enough", default=False):
        return await _round_step(r)
    return await _answer_step(r)


async def _terms_step(r: Reader) -> dict[str, Any]:
    titles = r.fill([f"- {name}" for name in r.documents()], _TITLES)
    prompt = r.render("terms", max_tokens=300, task=r.words_task, titles="\n".join(titles))
    reply = await r.ctx.ask("terms", prompt, tries=2, fallback=lambda _: '{"terms": ["-"]}', pure=True)
    terms = [t for t in reply.value["terms"] if t.strip("- ")]
    r.ctx.put("terms", terms)
    return {"kind": "terms", "terms": terms}


def ranked(r: Reader, question: str) -> list[int]:
    """Chunks that have something of the question's words, the best first."""
    chunks = range(r.shape.chunks)
    names = r.documents()

    def text(number: int) -> str:
        chunk = r.chunk(number)
        return "\n".join([*(names[p.document] for p in chunk.parts), *r.texts(chunk)])

    scores = rank(question, (text(n) for n in chunks))
    return sorted((n for n in chunks if scores[n] > 0), key=lambda n: (-scores[n], n))[:_MOST_CANDIDATES]


async def _round_step(r: Reader) -> dict[str, Any]:
    """Read the best chunks that were not read yet."""
    read: list[int] = list(r.ctx.piece("read", default=[]))
    wanted = " ".join([r.words_task, *r.ctx.piece("terms", default=[])])
    left = [n for n in ranked(r, wanted) if n not in read]
    if not left and not read:
        left = list(range(r.shape.chunks))  # not one word of it occurs: the beginning may say what the text calls it
    chosen = sorted(left[:A_ROUND])
    outcomes = await together([read_chunk(r, n, Asking("chunk", "chunk", part=f"{n}")) for n in chosen])
    relevant = 0
    for number, outcome in zip(chosen, outcomes, strict=True):
        r.ctx.put(f"result:{number}", outcome)
        remember(r, number, outcome)
        relevant += outcome["relevant"]
    r.ctx.put("read", sorted([*read, *chosen]))
    hopeless = all("unread" in outcome for outcome in outcomes)
    enough = len(left) <= len(chosen) or (bool(read) and not relevant) or hopeless
    r.ctx.put("enough", enough)
    return {"kind": "round", "chunks": chosen, "relevant": relevant}


async def _answer_step(r: Reader) -> dict[str, Any]:
    read: list[int] = list(r.ctx.piece("read", default=[]))
    report = await merge_all(r, [part_of_chunk(r, n, r.result(n)) for n in read])
    r.ctx.put("report", {**report, "covers": read})
    r.ctx.put("done", True)
    return {"kind": "final", "statements": len(report["statements"]), "read": len(read), "of": r.shape.chunks}
