"""Steps that a person asks for: rewrite a selection on a direction, and derive memory again from an edited text (SPEC W5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabula.memory import Record
from fabula.models import Schema
from fabula.runs import Fallback, always
from fabula.text import length, sentences
from fabula.write._passage import MOST_SHORT_TERM, summary_record
from fabula.write._prose import check_language, check_prose, clean
from fabula.write._telling import Telling, answer_tokens, joined, limited

_MOST_AT_ONCE = 4
"""Edited passages that one step derives memory from."""


async def rewrite_step(t: Telling, task: Mapping[str, Any]) -> dict[str, Any]:
    """Rewrite, expand or shorten a selection. The rest of the passage stays byte for byte."""
    ctx, passage = t.ctx, task["passage"]
    text = t.text(passage)
    start, end = task["start"], task["end"]
    selection = text[start:end]
    size = length(selection, t.language)
    most = {"expand": size * 3, "shorten": max(8, size)}.get(task["how"], size * 2) + 20
    tail = t.tail(
        "rewrite",
        how=task["how"],
        direction=t.fit(task["direction"], "note"),
        before=t.fit(text[:start], "memories", keep="end"),
        selection=selection,
        after=t.fit(text[end:], "plan"),
        note=t.note(),
        language_name=t.premise.language_name(),
    )
    prompt = limited(joined(t.context(), tail), min(t.passage_tokens, answer_tokens(most, t.language, t.facts.token_ratio)))
    reply = await ctx.stream("rewrite", prompt, check=check_prose(t.language, [], 1, whole=True))
    new = clean(reply.text).strip("⟦⟧").strip()
    lead, trail = selection[: len(selection) - len(selection.lstrip())], selection[len(selection.rstrip()) :]
    held = ctx.piece(f"text:{passage}")
    whole = f"{text[:start]}{lead}{new}{trail}{text[end:]}"
    ctx.put("task", None)
    ctx.put(f"text:{passage}", {**held, "text": whole})
    position = t.position
    ctx.put("position", {**position, "length": position["length"] + length(whole, t.language) - length(text, t.language)})
    ctx.put("rederive", sorted({*ctx.piece("rederive", default=[]), passage}))
    return {
        "kind": "rewrite",
        "passage": passage,
        "how": task["how"],
        "direction": task["direction"],
        "before": selection,
        "after": f"{lead}{new}{trail}",
    }


async def rederive_step(t: Telling, passages: list[str]) -> dict[str, Any]:
    """Summaries and short-term memory again, from the text as it is now. The text is the truth."""
    ctx = t.ctx
    now, later = passages[:_MOST_AT_ONCE], passages[_MOST_AT_ONCE:]
    now = [p for p in now if ctx.piece(f"text:{p}", rests=False)]
    last = t.position["last"]
    old = list(ctx.piece("short_term", default=[], rests=False))
    value = (
        await _derive(t, now, old, t.last_text() if last and last not in now else "")
        if now
        else {"summaries": [], "reason": "", "short_term": old}
    )
    for passage, summary in zip(now, value["summaries"], strict=False):
        held = ctx.piece(f"text:{passage}")
        if held.get("record"):
            ctx.retract(Record(id=held["record"], kind="summary", text=""), "its passage was changed")
        record = ctx.remember(f"summary-{passage}", summary_record(t, passage, _chapter_of(t, passage), held["text"], summary))
        ctx.put(f"text:{passage}", {**held, "record": record})
    lines = list(dict.fromkeys(s.strip() for s in value["short_term"] if s.strip()))[-MOST_SHORT_TERM:]
    ctx.put("short_term", lines)
    ctx.put("rederive", later)
    ctx.rests_only_on([f"text:{p}" for p in now])
    return {"kind": "rederive", "passages": now, "memory_reason": value["reason"]}


async def _derive(t: Telling, passages: list[str], old: list[str], last: str) -> Mapping[str, Any]:
    texts = [t.fit(t.text(p), "last") if len(passages) == 1 else t.fit(t.text(p), "plan") for p in passages]
    prompt = t.tail(
        "rederive",
        language_name=t.premise.language_name(),
        short_term="\n".join(f"- {line}" for line in t.fit_lines(old, "short_term")),
        changed=texts,
        last=t.fit(last, "plan", keep="end"),
    )

    def check(raw: str, finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        if isinstance(value, dict) and len(value["summaries"]) < len(passages):
            return f"invalid: {len(passages)} summaries are needed, one for each passage"
        return check_language(t.language, "summaries", "short_term")(raw, finish)

    fallback: Fallback | None = None
    if t.small:
        import json

        leads = [sentences(text, t.language)[0].strip() for text in texts]
        kept = json.dumps(
            {"summaries": leads, "reason": "the first sentence of each passage", "short_term": [*old, *leads][-14:]}, ensure_ascii=False
        )
        fallback = always(kept)
    prompt = replace(prompt, schema=_as_many(prompt.schema, len(passages)))
    reply = await t.ctx.ask("rederive", limited(prompt, t.book_tokens), check=check, fallback=fallback)
    return dict(reply.value)


def _as_many(schema: Schema | None, count: int) -> Schema | None:
    """The schema with exactly so many summaries, so that a server can hold the model to it."""
    if schema is None:
        return None
    body = copy.deepcopy(dict(schema.body))
    body["properties"]["summaries"].update(minItems=count, maxItems=count)
    return Schema(schema.name, body)


def _chapter_of(t: Telling, passage: str) -> str:
    for chapter in t.ctx.piece("chapters", default=[], rests=False):
        held = t.ctx.piece(f"chapter:{chapter}", rests=False)
        if held and any(passage in scene["passages"] for scene in held["scenes"]):
            return str(chapter)
    return ""
