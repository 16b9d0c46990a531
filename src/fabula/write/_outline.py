"""An outline of chapters, asked for in batches. A model that skips numbers (from 30 to 71, say) leaves a gap, which is found
and filled: what is missing is computed from what is there, never from the highest number seen.
"""

from __future__ import annotations

from typing import Any

from fabula.runs import Check
from fabula.write._telling import Telling

BATCH = 10
"""Chapters a request."""


def outline_missing(t: Telling) -> list[int]:
    """Indices of the first batch of chapters that the outline lacks; empty = it is whole (or there is none)."""
    size = t.ctx.piece("outline_size", default=0)
    first = next((n for n in range(size) if t.ctx.piece(f"outline:{n}", rests=False) is None), None)
    if first is None:
        return []
    return [n for n in range(first, min(first + BATCH, size)) if t.ctx.piece(f"outline:{n}", rests=False) is None]


def holds_some(numbers: list[int]) -> Check:
    """At least one of the chapters asked for is in the answer."""

    def check(raw: str, _finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        got = {c.get("number") for c in value.get("chapters", [])} if isinstance(value, dict) else set()
        return None if got & set(numbers) else f"invalid: the chapters {numbers[0]} to {numbers[-1]} are missing"

    return check


async def outline_step(t: Telling, missing: list[int]) -> dict[str, Any]:
    """Ask for some chapters; take those that were asked for, whatever else the answer holds. What is still missing is asked next."""
    ctx, p = t.ctx, t.premise
    numbers = [n + 1 for n in missing]
    size = ctx.piece("outline_size")
    before = [ctx.piece(f"outline:{n}", rests=False) for n in range(max(0, missing[0] - 4), missing[0])]
    after = [ctx.piece(f"outline:{n}", rests=False) for n in range(missing[-1] + 1, min(size, missing[-1] + 3))]
    prompt = t.tail(
        "outline",
        premise=t.fit(p.premise, "setting"),
        title=ctx.piece("title", default=""),
        setting=t.fit(ctx.piece("setting", default=""), "setting"),
        cast=t.cast_lines(),
        genre=p.genre,
        language_name=p.language_name(),
        total=size,
        numbers=", ".join(map(str, numbers)),
        before="\n".join(f"- {c['title']}: {c['plan']}" for c in before if c),
        after="\n".join(f"- {c['title']}: {c['plan']}" for c in after if c),
        ending=t.ending(),
    )

    reply = await ctx.ask("outline", prompt, check=holds_some(numbers))
    taken = []
    for chapter in reply.value["chapters"]:
        number = chapter["number"]
        if number in numbers and number not in taken:
            ctx.put(f"outline:{number - 1}", {"title": chapter["title"].strip(), "plan": chapter["plan"].strip()})
            taken.append(number)
    return {"kind": "outline", "chapters": sorted(taken), "missing": sorted(set(numbers) - set(taken))}
