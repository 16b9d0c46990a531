"""Steps that a person asks for: rewrite a selection on a direction, and derive memory again from an edited text (SPEC W5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabula.memory import Record
from fabula.models import Schema
from fabula.runs import Fallback, always
from fabula.text import is_language, length, sentences
from fabula.write._existing import bare, standing
from fabula.write._passage import MOST_SHORT_TERM, summary_record
from fabula.write._prose import check_language, check_prose, clean
from fabula.write._telling import Telling, answer_tokens, joined, limited

_MOST_AT_ONCE = 4
"""Edited passages that one step derives memory from."""
_MOST_RESTATED = 12
"""Memories of one passage that are told anew."""


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
    position, more = t.position, length(whole, t.language) - length(text, t.language)
    grown = {"old": position["old"] + more} if held.get("old") else {}
    ctx.put("position", {**position, "length": position["length"] + more, **grown})
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
    told = await _tell_anew(t, now)
    lines = list(dict.fromkeys(s.strip() for s in value["short_term"] if s.strip()))[-MOST_SHORT_TERM:]
    ctx.put("short_term", lines)
    ctx.put("rederive", later)
    ctx.rests_only_on([f"text:{p}" for p in now])
    return {"kind": "rederive", "passages": now, "memory_reason": value["reason"], **told}


async def _tell_anew(t: Telling, passages: Sequence[str]) -> dict[str, list[str]]:
    """What was known of passages of a book that was there already, and holds no more: told again from the text as it is now, or forgotten.

    Returns:
        ids of the new records (`told_anew`) and of those that were forgotten (`forgotten`); nothing where there were none.
    """
    held = {p: list(t.ctx.piece(f"memories:{p}", default=[], rests=False)) for p in passages}
    lost: dict[str, dict[str, Any]] = {}
    source: dict[str, str] = {}
    for passage in passages:
        kept, gone = standing(held[passage], t.text(passage))
        held[passage] = kept
        for entry in gone:
            lost.setdefault(entry["id"], entry)
            source.setdefault(entry["id"], passage)
    if not lost:
        return {}
    for ident in lost:
        t.ctx.retract(Record(id=ident, kind="summary", text=""), "its passage was changed")
    new: dict[str, dict[str, Any]] = {}
    for passage in passages:
        mine = [lost[i] for i in lost if source[i] == passage]
        new |= await _restate(t, passage, mine) if mine else {}
    _put_entries(t, held, lost, new)
    return {"told_anew": [e["id"] for e in new.values()], "forgotten": [i for i in lost if i not in new]}


async def _restate(t: Telling, passage: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Old id → new entry of what still holds in other words. What is beyond the prompt's share is forgotten."""
    text = t.text(passage)
    shown = t.fit_lines([e["text"] for e in entries][:_MOST_RESTATED][::-1], "short_term")[::-1]
    prompt = t.tail(
        "restate",
        language_name=t.premise.language_name(),
        passage=t.fit(text, "last"),
        numbered="\n".join(f"{number}. {line}" for number, line in enumerate(shown, 1)),
    )

    def check(raw: str, _finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        said = "\n".join(str(one.get("text", "")) for one in value.get("held", [])) if isinstance(value, dict) else ""
        return f"wrong language: {t.language} was asked for" if is_language(said, t.language) is False else None

    reply = await t.ctx.ask("restate", limited(prompt, t.book_tokens), part=passage, check=check, fallback=always('{"held": []}'))
    out: dict[str, dict[str, Any]] = {}
    for one in reply.value["held"]:
        number, said = int(one["number"]), str(one["text"]).strip()
        if not 1 <= number <= len(shown) or entries[number - 1]["id"] in out or not said:
            continue
        entry = entries[number - 1]
        base = summary_record(t, passage, _chapter_of(t, passage), text, said)
        names = tuple(entry["entities"])
        ident = t.ctx.remember(f"restated-{passage}-{number}", replace(base, kind=entry["kind"], entities=names or base.entities))
        out[entry["id"]] = {**entry, "id": ident, "text": said, "quote": base.quote, "part": [0, len(bare(base.quote))], "gone": False}
    return out


def _put_entries(
    t: Telling, held: Mapping[str, list[dict[str, Any]]], lost: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> None:
    """What is known of each passage, with the new memories in place of the lost ones; also of the other passages that they rest on."""
    touched = dict(held)
    for entry in lost.values():
        for other in entry.get("at", []):
            if other not in touched:
                touched[other] = list(t.ctx.piece(f"memories:{other}", default=[], rests=False))
    for passage, entries in touched.items():
        out = [dict(e) for e in entries if e["id"] not in lost]
        for ident, entry in new.items():
            before = next((e for e in entries if e["id"] == ident), None)
            if passage in held and passage in entry.get("at", [passage]):
                out.append(dict(entry))
            elif before is not None:
                out.append({**entry, "quote": before["quote"], "part": before["part"]})
        t.ctx.put(f"memories:{passage}", out)


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
