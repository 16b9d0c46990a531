"""Ways that read one chunk in the light of those before it: the chain, and the two passes (SPEC R2).

What the context says in prose may drift; facts are carried beside it word for word, and a fact that no longer fits is named in the step's
output, stays in memory, and comes back when a later chunk recalls it.
"""

from __future__ import annotations

from typing import Any

from fabula.read._leaf import Asking, read_chunk, remember
from fabula.read._look import Reader
from fabula.read._merge import merge_all, part_of_chunk
from fabula.read._shape import digest, number_of
from fabula.text import truncate_tokens

_QUERY = 300
"""Tokens of a chunk's beginning by which it recalls what was dropped."""
_MOST_RECALLED = 12


async def chain_step(r: Reader) -> dict[str, Any]:
    """The next chunk with the context, or, after the last one, the answer."""
    number = r.ctx.time
    if number == r.shape.chunks:
        return await final_step(r)
    context, carried = r.ctx.piece("context", default=""), list(r.ctx.piece("facts", default=[]))
    known = [*(await _recalled(r, number, carried)), *(text for _, text in carried)]
    slots = {"context_words": r.words(r.sizes.context)}
    outcome = await read_chunk(r, number, Asking("chunk", "roll", context=context, known=known, slots=slots))
    new_context = outcome.pop("context", "") or context
    kept = _trimmed(r, new_context)
    carried, dropped = _carry(r, [*carried, *([c["id"], c["text"]] for c in outcome["claims"])])
    r.ctx.put("context", kept)
    r.ctx.put("facts", carried)
    if dropped:
        r.ctx.put("dropped", int(r.ctx.piece("dropped", default=0)) + len(dropped))
    r.ctx.put(f"result:{number}", outcome)
    r.ctx.put(f"given:{number}", {"context": context, "facts": known})
    remember(r, number, outcome)
    out: dict[str, Any] = {"kind": "chunk", "chunk": number, "claims": len(outcome["claims"]), "dropped": dropped}
    return {**out, "unread": outcome["unread"]} if "unread" in outcome else out


def _trimmed(r: Reader, context: str) -> str:
    """A context that is longer than asked for is cut at its share; what it says stands in the results too."""
    most = int(r.sizes.context * 1.3)
    if r.count(context) <= most:
        return context
    return truncate_tokens(context, max(1, int(most / r.sizes.ratio)))


def _carry(r: Reader, facts: list[list[str]]) -> tuple[list[list[str]], list[str]]:
    """The facts that still fit, the latest first to stay, and the ids of those that do not."""
    left, first = r.sizes.known, len(facts)
    while first > 0 and left >= r.count(facts[first - 1][1]) + 3:
        left -= r.count(facts[first - 1][1]) + 3
        first -= 1
    return facts[first:], [ident for ident, _ in facts[:first]]


async def _recalled(r: Reader, number: int, carried: list[list[str]]) -> list[str]:
    """Of the facts that were dropped those that this chunk is about."""
    if not r.ctx.piece("dropped", default=0):
        return []
    text = "\n".join(r.texts(r.chunk(number)))
    query = truncate_tokens(text, _QUERY).strip()
    if not query:
        return []
    memos = await r.ctx.recall(query, part="facts", limit=_MOST_RECALLED, budget=r.sizes.known // 2, kinds=("fact",))
    have = {text for _, text in carried}
    return [m.text for m in sorted(memos, key=lambda m: (m.time, m.id)) if m.text not in have]


async def digest_step(r: Reader) -> dict[str, Any]:
    """Two passes, the first: what a chunk is about."""
    number = number_of(r.ctx.lanes[0])
    outcome = await read_chunk(r, number, Asking("digest", "digest"))
    r.ctx.put("digest", outcome["summary"])
    out = {"kind": "digest", "chunk": number}
    return {**out, "unread": outcome["unread"]} if "unread" in outcome else out


async def context_step(r: Reader) -> dict[str, Any]:
    """Two passes, between them: the context made anew with a group's digests."""
    group = r.ctx.time - 1
    first, behind = group * r.shape.group, min((group + 1) * r.shape.group, r.shape.chunks)
    digests = [str(r.ctx.piece("digest", default="", lane=digest(n))) for n in range(first, behind)]
    context = str(r.ctx.piece("context", default=""))
    share = r.sizes.shown // max(1, behind - first)
    lines = [r.cut(text, share) for text in digests if text]
    if lines:
        prompt = r.render(
            "group",
            max_tokens=int(r.sizes.context * 1.5),
            task=r.words_task,
            language_name=r.language_name,
            context=context,
            digests="\n\n".join(lines),
            words=r.words(r.sizes.context),
        )
        reply = await r.ctx.ask("context", prompt, tries=3, pure=True)
        context = _trimmed(r, reply.value["context"].strip())
    r.ctx.put("context", context)
    return {"kind": "context", "chunks": [first, behind - 1]}


async def second_step(r: Reader) -> dict[str, Any]:
    """Two passes, the second: a chunk in the light of all before it."""
    number = number_of(r.ctx.lanes[0])
    first = number // r.shape.group * r.shape.group
    context = str(r.ctx.piece("context", default="", lane="context"))
    near = [str(r.ctx.piece("digest", default="", lane=digest(n))) for n in range(first, number)]
    share = r.sizes.context // max(1, len(near))
    whole = "\n\n".join(filter(None, [context, *(r.cut(text, share) for text in near)]))
    outcome = await read_chunk(r, number, Asking("chunk", "chunk", context=whole))
    r.ctx.put("result", outcome)
    r.ctx.put("given", {"context": whole, "facts": []})
    remember(r, number, outcome)
    out = {"kind": "chunk", "chunk": number, "claims": len(outcome["claims"])}
    return {**out, "unread": outcome["unread"]} if "unread" in outcome else out


async def final_step(r: Reader) -> dict[str, Any]:
    """The answer to the task, from what was said of every chunk."""
    lane = "context" if r.shape.way == "two-pass" else r.ctx.lanes[0]
    context = str(r.ctx.piece("context", default="", lane=lane))
    parts = [part_of_chunk(r, n, r.result(n)) for n in range(r.shape.chunks)]
    report = await merge_all(r, parts, lead=context)
    r.ctx.put("report", report)
    return {"kind": "final", "statements": len(report["statements"])}
