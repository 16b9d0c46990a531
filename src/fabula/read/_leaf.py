"""Reading one chunk: one structured call; what is claimed is found in the text, and what cannot be read is said (SPEC R2, R8).

A chunk whose answer is cut off, or whose prompt is refused as too long, is read in halves, and these in halves again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabula.errors import StepFailed, TooLarge, TooLong
from fabula.memory import Record
from fabula.models import extract_json, validate
from fabula.read._chunks import Chunk, Part
from fabula.read._evidence import Finder
from fabula.read._look import Reader, fence_for, fenced
from fabula.runs import Check, Fallback, Refusal, Rendered
from fabula.text import count_tokens, ends_finished, is_language, lexical_terms, sentences, split, trim_to_sentence

_LEAST = 160
"""Tokens of a chunk below which it is not halved any more."""
_TRIES = 2
_MOST_FAILED_FIRST, _MOST_FAILED = 2, 8
"""Pieces of a chunk that may fail before it is given up: while nothing of it could be read, and after that."""
_HAVE_SMALL = ("chunk", "roll")

Outcome = dict[str, Any]
"""relevant, summary, claims, entities, relations, open; `context` where it rolls; `unread`: why it could not be read; `unread_parts`: why,
document and lines of pieces of it."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a chunk is asked about."""

    purpose: str = "chunk"
    prompt: str = "chunk"
    """Name of the prompt; a small model gets its `-small` form."""
    part: str = ""
    context: str = ""
    known: Sequence[str] = ()
    slots: dict[str, Any] = field(default_factory=dict)
    """Further slots of the prompt."""
    task: str = ""
    """Instead of the reading's own."""


async def read_chunk(r: Reader, number: int, asking: Asking) -> Outcome:
    """What one call, or several where one cannot, says of a chunk."""
    chunk = r.chunk(number)
    texts = r.texts(chunk)
    if not any(text.strip() for text in texts):
        return {**_nothing(), "blank": True}
    outcome = await _read(r, chunk, texts, asking, _Patience())
    outcome["claims"] = [{"id": f"{number}.{n}", **claim} for n, claim in enumerate(_distinct(outcome["claims"]), 1)]
    return outcome


@dataclass(slots=True)
class _Patience:
    """How many pieces that are too small to be halved may fail: few while nothing of the chunk could be read, since a model that ends
    nothing ends nothing in the other pieces either; more once something could, since then it is the text that it stumbles over.
    """

    failed: int = 0
    read: bool = False

    @property
    def spent(self) -> bool:
        return self.failed >= (_MOST_FAILED if self.read else _MOST_FAILED_FIRST)


async def _read(r: Reader, chunk: Chunk, texts: list[str], asking: Asking, patience: _Patience) -> Outcome:
    try:
        outcome = await _ask(r, chunk, texts, asking)
    except (StepFailed, TooLong, TooLarge) as error:
        why = _why(error)
        halves = _halved(r, chunk, texts)
    else:
        patience.read = True
        return outcome
    if not halves:
        patience.failed += 1
        return {**_nothing(), "unread": why}
    out: Outcome = {}
    lost: list[dict[str, Any]] = []
    for name, (half, half_texts) in zip("ab", halves, strict=True):
        if not any(text.strip() for text in half_texts):
            continue
        if patience.spent:
            lost.append(_lost(half, why))
            continue
        context = out.get("context") or asking.context
        one = await _read(r, half, half_texts, replace(asking, part=f"{asking.part}{name}", context=context), patience)
        if "unread" in one:
            lost.append(_lost(half, one["unread"]))
        else:
            out = _joined(out, one) if out else one
    if not out:
        return {**_nothing(), "unread": lost[0]["why"]}
    return {**out, "unread_parts": [*out.get("unread_parts", ()), *lost]} if lost else out


async def _ask(r: Reader, chunk: Chunk, texts: list[str], asking: Asking) -> Outcome:
    prompt = chunk_prompt(r, chunk, texts, asking)
    check, rescue = _checks(r, prompt.schema.body if prompt.schema else {})
    reply = await r.ctx.ask(asking.purpose, prompt, part=asking.part, check=check, tries=_TRIES, fallback=rescue, pure=True)
    return _outcome(r, chunk, texts, dict(reply.value), asking.task or (r.words_task if r.shape.way == "ask" else ""))


def chunk_prompt(r: Reader, chunk: Chunk, texts: list[str], asking: Asking) -> Rendered:
    """The prompt that reads a chunk: the task first, then the context, then the text, then what to answer."""
    known, kinds = r.documents(), r.ctx.piece("documents", lane="")["kinds"]
    fence = fence_for(texts)
    small = r.sizes.small and asking.prompt in _HAVE_SMALL
    return r.render(
        f"{asking.prompt}-small" if small else asking.prompt,
        max_tokens=r.sizes.answer + (int(r.sizes.context * 1.3) if asking.prompt == "roll" else 0),
        task=asking.task or r.words_task,
        language_name=r.language_name,
        documents=fenced([known[p.document] for p in chunk.parts], texts, fence),
        context=r.cut(asking.context, r.sizes.context * 2),
        known="\n".join(f"- {line}" for line in asking.known),
        claims=r.sizes.claims,
        words=r.digest_words() if asking.prompt == "digest" else r.summary_words(),
        fence=fence,
        code=all(kinds[p.document] == "code" for p in chunk.parts),
        **asking.slots,
    )


def _checks(r: Reader, schema: Any) -> tuple[Check, Fallback]:
    """Refuse another language, and emptiness where something was said to be there; when the tries are used up, what is only in another
    language serves all the same: it is better than not to have read the chunk, and it is journaled as a fall-back.
    """

    def check(text: str, _finish: str) -> str | None:
        value: Any = extract_json(text)
        said = str(value.get("summary", "")) or " ".join(value.get("facts", ()))
        if value.get("relevant", True) and not said.strip():
            return "empty: relevant, but without a summary"
        return f"wrong language: {r.language_name} is wanted" if is_language(said, r.language) is False else None

    def rescue(refusals: list[Refusal]) -> str | None:
        usable = [x.text for x in refusals if x.reason.startswith("wrong language") and not validate(extract_json(x.text), schema)]
        return usable[-1] if usable else None

    return check, rescue


def _outcome(r: Reader, chunk: Chunk, texts: list[str], value: dict[str, Any], task: str = "") -> Outcome:
    kinds = r.ctx.piece("documents", lane="")["kinds"]
    finder = Finder(chunk, texts, [kinds[p.document] for p in chunk.parts])
    if "facts" in value:
        value = _of_facts(value)
        if task:  # a small model is not asked whether it matters: what has no word of the question does not
            wanted = frozenset(lexical_terms(task))
            value["relevant"] = not wanted or any(wanted & frozenset(lexical_terms(c["text"])) for c in value["claims"])
    entities = list(value.get("entities", ()))
    claims = []
    for claim in value.get("claims", ())[: r.sizes.claims]:
        evidence = finder.find(claim["text"], claim["quote"])
        names = [e["name"] for e in entities if e["name"] in claim["text"]]
        claims.append({"text": claim["text"].strip(), **evidence.as_dict(), "about": names[:8]})
    out: Outcome = {
        "relevant": bool(value.get("relevant", True)),
        "summary": (summary := finished(value.get("summary", ""))),
        "where": {key: finder.part_of(summary).as_dict()[key] for key in ("document", "lines", "place")},
        "claims": claims,
        "entities": [
            {**e, "name": e["name"].strip(), **finder.find(f"{e['name']} {e['about']}", "").as_dict()}
            for e in entities
            if e["name"].strip()
        ],
        "relations": [
            {**one, **finder.find(f"{one['subject']} {one['relation']} {one['object']}", "").as_dict()}
            for one in value.get("relations", ())
        ],
        "open": list(value.get("open", ())),
    }
    return {**out, "context": value["context"].strip()} if "context" in value else out


def _of_facts(value: dict[str, Any]) -> dict[str, Any]:
    """A small model's short answer as the whole one: it quotes nothing, since what it quotes it makes up; the program finds the places."""
    facts = list(dict.fromkeys(first_sentence(fact) for fact in value["facts"]))
    names = [{"name": n, "kind": "", "about": next((f for f in facts if n in f), "")} for n in dict.fromkeys(value["names"])]
    whole = {"summary": " ".join(facts), "claims": [{"text": f, "quote": ""} for f in facts], "entities": names}
    return {**whole, "context": value["context"]} if "context" in value else whole


def finished(text: str) -> str:
    """A text without the beginning of a sentence that its answer had no room to end; all of it where it is but one."""
    text = text.strip()
    return text if ends_finished(text) else trim_to_sentence(text) or text


def first_sentence(text: str) -> str:
    """A small model says a fact once and then again."""
    parts = sentences(text.strip())
    return parts[0].strip() if parts else text.strip()


def _lost(chunk: Chunk, why: str) -> dict[str, Any]:
    """A piece that could not be read, by its first document's lines."""
    part = chunk.parts[0]
    return {"why": why, "document": part.document, "lines": [part.line, part.line + max(0, part.lines - 1)]}


def _nothing() -> Outcome:
    return {"relevant": False, "summary": "", "claims": [], "entities": [], "relations": [], "open": []}


def _joined(a: Outcome, b: Outcome) -> Outcome:
    """Two halves as one."""
    out: Outcome = {name: [*a[name], *b[name]] for name in ("claims", "entities", "relations", "open")}
    out |= {"relevant": a["relevant"] or b["relevant"], "summary": f"{a['summary']} {b['summary']}".strip()}
    here, there = a.get("where"), b.get("where")
    if here or there:
        out["where"] = dict(here or there or {})
        if here and there and here["document"] == there["document"]:
            out["where"]["lines"] = [here["lines"][0], there["lines"][1]]
    if "context" in a or "context" in b:
        out["context"] = b.get("context") or a["context"]
    left = [*a.get("unread_parts", ()), *b.get("unread_parts", ())]
    return {**out, "unread_parts": left} if left else out


def _halved(r: Reader, chunk: Chunk, texts: list[str]) -> list[tuple[Chunk, list[str]]]:
    """Two halves of a chunk, or none where it is too small for that."""
    if chunk.tokens <= _LEAST:
        return []
    if len(chunk.parts) > 1:
        at = len(chunk.parts) // 2
        halves = [(chunk.parts[:at], texts[:at]), (chunk.parts[at:], texts[at:])]
    else:
        part, text = chunk.parts[0], texts[0]
        kind = r.ctx.piece("documents", lane="")["kinds"][part.document]
        spans = split(text, max(32, count_tokens(text) * 6 // 10), kind=kind)
        if len(spans) < 2:
            return []
        cut = spans[len(spans) // 2].start
        before = text.count("\n", 0, cut)
        tail = tuple((at - cut, label) for at, label in part.places if at >= cut)
        open_place = [label for at, label in part.places if at < cut][-1:]
        second = Part(part.document, part.line + before, part.lines - before, "", ((0, open_place[0]), *tail) if open_place else tail)
        halves = [((replace(part, lines=before + (text[cut - 1] != "\n")),), [text[:cut]]), ((second,), [text[cut:]])]
    return [(Chunk(chunk.number, sum(map(count_tokens, own)), tuple(parts)), list(own)) for parts, own in halves]


def _why(error: StepFailed | TooLong | TooLarge) -> str:
    reasons = getattr(error, "details", {}).get("reasons")
    return "; ".join(dict.fromkeys(reasons)) if reasons else error.message


def _distinct(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({c["text"].casefold(): c for c in reversed(claims)}.values())[::-1]


# -- what is remembered ---------------------------------------------------------------------------------------------------------


def remember(r: Reader, number: int, outcome: Outcome, prefix: str = "") -> None:
    """Keep what a chunk says as memories with evidence (SPEC R9). A claim without support stays in the report, and is no memory."""
    if outcome.get("blank") or "unread" in outcome:
        return
    known = r.documents()
    for n, claim in enumerate(outcome["claims"], 1):
        if claim["support"] != "none":
            r.ctx.remember(f"{prefix}claim-{number}-{n}", _fact(known, claim, text=claim["text"], entities=tuple(claim["about"])))
    for n, entity in enumerate({e["name"]: e for e in outcome["entities"]}.values(), 1):
        if entity["about"] and entity["support"] != "none" and all(entity["about"] != c["text"] for c in outcome["claims"]):
            whole = {"text": f"{entity['name']}: {entity['about']}", "subject": entity["name"], "attribute": "is", "value": entity["about"]}
            r.ctx.remember(f"{prefix}entity-{number}-{n}", _fact(known, entity, entities=(entity["name"],), **whole))
    for n, relation in enumerate(outcome["relations"], 1):
        if relation["support"] == "none":
            continue
        subject, verb, target = relation["subject"], relation["relation"], relation["object"]
        whole = {"text": f"{subject} — {verb} — {target}", "subject": subject, "attribute": verb, "value": target}
        r.ctx.remember(f"{prefix}relation-{number}-{n}", _fact(known, relation, entities=(subject, target), **whole))
    if outcome["summary"]:
        where = known[outcome["where"]["document"]]
        cite = citation(known, outcome["where"])
        record = Record(id="", kind="summary", text=outcome["summary"], source=where, evidence=(cite,), episode=where)
        r.ctx.remember(f"{prefix}summary-{number}", record)


def _fact(names: Sequence[str], evidence: dict[str, Any], **fields: Any) -> Record:
    """A fact with the place where it is written."""
    name = names[evidence["document"]]
    return Record(id="", kind="fact", quote=evidence["quote"], evidence=(citation(names, evidence),), source=name, episode=name, **fields)


def citation(names: Sequence[str], claim: dict[str, Any]) -> str:
    """`path:12-15`, or `path:12`."""
    first, last = claim["lines"]
    return f"{names[claim['document']]}:{first}" + (f"-{last}" if last != first else "")
