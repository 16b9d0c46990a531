"""What a novel needs in order to go on from a book that was read (SPEC W3, R9): three calls after the reading.

cast      setting, people, places
style     how it is told, from some of its passages
state     short-term memory at its end, and three plans
"""

from __future__ import annotations

from typing import Any

from fabula.read._knowledge import entities_of, entity_line
from fabula.read._look import Reader, fence_for, fenced
from fabula.text import truncate_tokens

_LATEST = 3
"""Chunks at the end whose reports are shown whole."""
_PASSAGES = (0.02, 0.5, 0.96)
"""Where in the book passages are taken from, as shares of its chunks."""
_ENDING = 700
"""Tokens of the last lines."""


async def story_step(r: Reader) -> dict[str, Any]:
    """The next of the three."""
    step = r.ctx.time - r.shape.end
    return await (_cast, _style, _state)[step](r)


def _told(r: Reader) -> str:
    """What happens: the report."""
    lane = r.shape.last
    report = r.ctx.piece("report", lane=lane) or {"statements": []}
    return "\n".join(s["text"] for s in report["statements"])


async def _cast(r: Reader) -> dict[str, Any]:
    outcomes = [(n, r.result(n) or {}) for n in range(r.shape.chunks)]
    entities = entities_of(outcomes)
    places = [entity_line(e) for e in entities if e.kind == "place"]
    people = [entity_line(e) for e in entities if e.kind in ("person", "group", "")]
    share = r.sizes.shown // 4
    prompt = r.render(
        "story-cast",
        max_tokens=min(r.sizes.final_answer, 2_000),
        language_name=r.language_name,
        people="\n".join(r.fill(people, 2 * share)),
        places="\n".join(r.fill(places, share // 2)) or "-",
        story=r.cut(_told(r), share),
    )
    reply = await r.ctx.ask("cast", prompt, tries=3, pure=True)
    r.ctx.put("cast", dict(reply.value))
    return {"kind": "cast", "people": len(reply.value["cast"])}


async def _style(r: Reader) -> dict[str, Any]:
    numbers = list(dict.fromkeys(min(r.shape.chunks - 1, int(share * r.shape.chunks)) for share in _PASSAGES))
    most = int(r.sizes.shown / 4 / r.sizes.ratio)
    texts = [truncate_tokens("\n".join(r.texts(r.chunk(n))), min(600, most)) for n in numbers]
    fence = fence_for(texts)
    prompt = r.render(
        "story-style",
        max_tokens=400,
        language_name=r.language_name,
        passages=fenced([str(n) for n in range(1, len(texts) + 1)], texts, fence),
        fence=fence,
    )
    reply = await r.ctx.ask("style", prompt, tries=3, pure=True)
    r.ctx.put("style", dict(reply.value))
    return {"kind": "style"}


async def _state(r: Reader) -> dict[str, Any]:
    share = r.sizes.shown // 5
    cast = [f"- {c['name']}: {c['about']}" for c in r.ctx.piece("cast")["cast"]]
    latest: list[str] = []
    for number in range(max(0, r.shape.chunks - _LATEST), r.shape.chunks):
        outcome = r.result(number) or {}
        latest += [outcome.get("summary", ""), *(f"- {c['text']}" for c in outcome.get("claims", ()))]
    last = "\n".join(r.texts(r.chunk(r.shape.chunks - 1)))
    prompt = r.render(
        "story-state",
        max_tokens=min(r.sizes.final_answer, 2_500),
        language_name=r.language_name,
        cast="\n".join(r.fill(cast, share)),
        story=r.cut(_told(r), share),
        latest="\n".join(r.fill([line for line in latest if line], share)),
        ending=truncate_tokens(last, min(_ENDING, int(share / r.sizes.ratio)), keep="end"),
    )
    reply = await r.ctx.ask("state", prompt, tries=3, pure=True)
    r.ctx.put("state", dict(reply.value))
    return {"kind": "state"}
