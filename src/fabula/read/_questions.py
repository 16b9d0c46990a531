"""Questions after a reading (SPEC R9): answered from what is remembered, with citations; where that is not enough the text itself is
searched and its best places are read; "not in the text" is an answer, with the places that were looked at.

A question is a step on a fork of the reading, so that the reading stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fabula.read._evidence import Finder
from fabula.read._leaf import Asking, citation, read_chunk, remember
from fabula.read._look import Reader, together
from fabula.read._merge import cited
from fabula.read._seek import ranked
from fabula.read._shape import QUESTIONS
from fabula.text import detect_language

_LATIN = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
MOST_PLACES = 3
"""Chunks that are looked at for one question."""
MOST_LINES = 4
"""Stretches of one such chunk that are shown verbatim."""
_MOST_FACTS = 40
_MOST_TURNS = 6
"""Earlier questions that a follow-up sees."""


async def question_step(r: Reader) -> dict[str, Any]:
    """Answer the question that a person put; the next one sees it."""
    question = str(r.ctx.piece("question")["text"])
    turns: list[dict[str, str]] = list(r.ctx.piece("conversation", default=[]))[-_MOST_TURNS:]
    earlier = "\n".join(f"? {t['question']}\n= {r.cut(t['answer'], 200)}" for t in turns)
    clear = await _made_clear(r, question, earlier)
    claims = await _remembered(r, clear)
    looked = _places(r, clear, claims)
    claims = [*_lines(r, clear, looked), *claims]
    answer = await _answer(r, clear, earlier, claims, "memory") if claims else None
    if answer is None:
        found = await _looked_up(r, clear, looked)
        claims = [*found, *claims]
        answer = await _answer(r, clear, earlier, claims, "text") if found else None
    statements = [_with_claims(s, claims) for s in answer or []]
    text = " ".join(s["text"] for s in statements)
    r.ctx.put("conversation", [*turns, {"question": clear, "answer": text}])
    names = r.documents()
    places = [
        citation(names, {"document": p.document, "lines": [p.line, p.line + max(0, p.lines - 1)]}) for n in looked for p in r.chunk(n).parts
    ]
    return {"kind": "answer", "question": question, "asked": clear, "found": bool(statements), "statements": statements, "looked": places}


async def _made_clear(r: Reader, question: str, earlier: str) -> str:
    """A follow-up as a question of its own, so that memory is searched for whom it means."""
    if not earlier:
        return question
    prompt = r.render("follow", max_tokens=200, question=question, earlier=earlier)
    reply = await r.ctx.ask("follow", prompt, tries=2, fallback=lambda _: '{"question": ""}')
    clear = str(reply.value["question"]).strip()
    return clear or question


async def _remembered(r: Reader, question: str) -> list[dict[str, Any]]:
    """What memory has on it, as claims with their places."""
    memos = await r.ctx.recall(
        question, part="facts", limit=_MOST_FACTS, budget=r.sizes.shown // 2, kinds=("fact", "summary"), everywhere=True
    )
    out = []
    for memo in memos:
        claim = _claim_of(r, memo.id)
        if claim is not None:
            out.append(claim)
    return out


def _claim_of(r: Reader, record: str) -> dict[str, Any] | None:
    """The claim, entity, relation or summary that a record was made of, with its place."""
    lane, time, name = record.split("/")[-3:]
    if lane == QUESTIONS:  # what was read for an earlier question
        number, which = name.split("-")[-2:]
        asked: list[dict[str, Any]] = r.ctx.piece(f"asked:{time}", default=[])
        return next((c for c in asked if c["id"] == f"{number}.{which}@{time}"), None)
    kind, number, *rest = name.split("-")
    outcome = r.result(int(number))
    if outcome is None:
        return None
    if kind == "claim":
        claims: list[dict[str, Any]] = outcome["claims"]
        return claims[int(rest[0]) - 1] if int(rest[0]) <= len(claims) else None
    if kind == "summary":
        return {
            **outcome["where"],
            "id": f"{number}.0",
            "text": outcome["summary"],
            "quote": "",
            "support": "chunk",
        }
    if kind == "entity":
        found = list({e["name"]: e for e in outcome["entities"]}.values())[int(rest[0]) - 1]
        return {**found, "id": f"{number}.e{rest[0]}", "text": f"{found['name']}: {found['about']}"}
    found = outcome["relations"][int(rest[0]) - 1]
    return {**found, "id": f"{number}.r{rest[0]}", "text": f"{found['subject']} — {found['relation']} — {found['object']}"}


def _places(r: Reader, question: str, claims: Sequence[dict[str, Any]]) -> list[int]:
    """The chunks that have most of the question's words; where none has any, as in another language, those of what memory has on it."""
    best = ranked(r, question)[:MOST_PLACES]
    return best or (ranked(r, " ".join(c["text"] for c in claims[:3]))[:MOST_PLACES] if claims else [])


def _lines(r: Reader, question: str, places: Sequence[int]) -> list[dict[str, Any]]:
    """The lines of these chunks that are nearest to the question, verbatim: what a report left out stands there all the same."""
    kinds = r.ctx.piece("documents", lane="")["kinds"]
    out: list[dict[str, Any]] = []
    for number in places:
        chunk = r.chunk(number)
        finder = Finder(chunk, r.texts(chunk), [kinds[p.document] for p in chunk.parts])
        for n, place in enumerate(finder.near(question, MOST_LINES), 1):
            out.append({"id": f"{number}.l{n}", "text": " ".join(place.quote.split()), **place.as_dict()})
    return out


async def _looked_up(r: Reader, question: str, places: Sequence[int]) -> list[dict[str, Any]]:
    """Read these places for this question. Returns what they say."""
    outcomes = await together([read_chunk(r, n, Asking("chunk", "chunk", part=f"asked-{n}", task=question)) for n in places])
    found = []
    for number, outcome in zip(places, outcomes, strict=True):
        if outcome["relevant"]:
            remember(r, number, {**outcome, "entities": [], "relations": [], "summary": ""}, prefix="asked-")
            found += [{**c, "id": f"{c['id']}@{r.ctx.time}"} for c in outcome["claims"]]
    r.ctx.put(f"asked:{r.ctx.time}", found)
    return found


async def _answer(r: Reader, question: str, earlier: str, claims: Sequence[dict[str, Any]], part: str) -> list[dict[str, Any]] | None:
    """The answer from these claims; None = they do not answer it."""
    shown: list[tuple[str, tuple[str, ...]]] = []
    lines: list[str] = []
    left = r.sizes.shown
    for claim in claims:
        quote = " ".join(claim["quote"].split())
        quote = f" («{quote}»)" if quote and quote not in claim["text"] else ""
        line = f"[{len(shown) + 1}] {claim['text']}{quote}"
        left -= r.count(line) + 1
        if left < 0:
            break
        shown.append((claim["text"], (claim["id"],)))
        lines.append(line)
    asked = r.in_language(_language_of(question) or r.language)
    prompt = asked.render(
        "answer",
        max_tokens=min(r.sizes.final_answer, 900),
        question=question,
        language_name=asked.language_name,
        facts="\n".join(lines),
        earlier=r.cut(earlier, r.sizes.context),
        words=asked.words(300),
    )
    reply = await r.ctx.ask("answer", prompt, part=part, tries=3)
    if not reply.value["found"] or not reply.value["statements"]:
        return None
    return [cited(s["text"], s["from"], shown) for s in reply.value["statements"]]


def _language_of(question: str) -> str | None:
    """Of a question; names and identifiers in Latin letters do not count where the rest is in others."""
    return detect_language(question) or detect_language(_LATIN.sub(" ", question))


def _with_claims(statement: dict[str, Any], claims: Sequence[dict[str, Any]]) -> dict[str, Any]:
    by_id = {c["id"]: c for c in claims}
    return {**statement, "claims": [by_id[c] for c in statement["claims"] if c in by_id]}
