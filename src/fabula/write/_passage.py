"""The step of RecurrentGPT (SPEC W1): plan, recall, passage, book-keeping, one commit.

plan      the person's, or chosen and revised by the simulated author (W4)
recall    the long-term memories that the plan retrieves (W2)
passage   streamed prose; for small models a call per sentence of the plan
books     summary, short-term memory made anew with the reason, three candidate plans
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.memory import Record
from fabula.models import Message
from fabula.runs import Check, Memo, Rendered, always
from fabula.text import best_quote, find_quote, length, repeated_share, sentences, step_length
from fabula.write._prose import both, check_language, check_prose, fresh_part, loops, passage_of
from fabula.write._telling import Place, Telling, amount, answer_tokens, joined, limited, plan_beats, plan_text, unit_name

MOST_MEMORIES = 8
MOST_SHORT_TERM = 20
"""Sentences (W1: 10–20)."""
_SMALL_SHORT_TERM = 14
_MOST_CONTINUATIONS = 2
_LAST_LINES = 2
"""Sentences of the text so far that a small model sees."""
_FEW_NOTES = 6
"""Sentences of the short-term memory that a small model sees while it writes."""
_TOPICS = 3
_OLD_NEWS = 0.6
"""Share of a plan that may have been told already."""


@dataclass(frozen=True, slots=True)
class Books:
    """What the book-keeping after a passage yields."""

    summary: str
    reason: str
    short_term: tuple[str, ...]
    plans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan that a passage follows."""

    text: str
    by: str
    """person or author."""
    reason: str = ""
    choice: int | None = None
    """Number of the candidate that it was made from, from 1."""

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return {"text": self.text, "by": self.by, "reason": self.reason, "choice": self.choice}


async def passage_step(t: Telling) -> dict[str, Any]:
    """One passage. Returns the step's output."""
    place = t.place()
    plan = await choose_plan(t, place)
    memos = await recall(t, plan.text)
    if t.premise.single_call:
        text, books = await single_call(t, place, plan, memos)
    else:
        text = await (beats if t.small else prose)(t, place, plan, memos)
        books = await keep_books(t, place, plan, text)
    passage = f"p{t.ctx.time}"
    settle(t, place, passage, text, books)
    return {
        "kind": "passage",
        "passage": passage,
        "chapter": place.chapter,
        "place": place.kind,
        "plan": plan.as_dict(),
        "memories": [m.id for m in memos],
        "length": length(text, t.language),
        "memory_reason": books.reason,
    }


# -- the plan ----------------------------------------------------------------------------------------------------------------


async def choose_plan(t: Telling, place: Place) -> Plan:
    """The person's plan where there is one; else the simulated author picks one of the candidates and revises it."""
    held = t.ctx.piece("plan")
    if held:
        return Plan(held["text"], held.get("by", "person"), held.get("reason", ""), held.get("choice"))
    candidates: list[str] = list(t.ctx.piece("plans", default=[]))
    outline = t.ctx.piece(f"outline:{place.outline}") if place.outline is not None else None
    if outline and place.new_chapter:
        return Plan(outline["plan"], "outline", outline["title"])
    if not candidates:
        return Plan(t.premise.premise, "premise")
    shown = [t.fit(c, "plan") for c in candidates]
    check = check_language(t.language, "reason") if t.small else check_language(t.language, "reason", "plan")
    if t.small:
        prompt = t.tail(
            "author-small",
            plans=shown,
            last=t.fit(t.last_text(), "last", keep="end"),
            place=place.kind,
            language_name=t.premise.language_name(),
        )
        draw = t.ctx.random("author").randint(1, len(candidates))
        reply = await t.ctx.ask(
            "author", prompt, check=check, small=True, fallback=always(_json({"reason": "drawn by lot", "choice": draw}))
        )
        index = min(int(reply.value["choice"]), len(candidates)) - 1
        return Plan(candidates[index], "author", reply.value["reason"], index + 1)
    tail = t.tail(
        "author",
        plans=shown,
        note=t.note(),
        place=place.kind,
        ending=t.ending(),
        language_name=t.premise.language_name(),
        reader=t.premise.reader,
    )
    reply = await t.ctx.ask("author", joined(t.context(), tail), check=check)
    index = min(int(reply.value["choice"]), len(candidates))
    return Plan(reply.value["plan"], "author", reply.value["reason"], index)


async def recall(t: Telling, plan: str) -> list[Memo]:
    """What the plan retrieves, what is remembered of the last passage apart (its text is in the prompt)."""
    last = t.position["last"]
    held = t.ctx.piece(f"text:{last}", rests=False) if last else None
    known = t.ctx.piece(f"memories:{last}", default=[], rests=False)
    exclude = frozenset([*(e["id"] for e in known if e["kind"] != "summary"), *filter(None, [(held or {}).get("record")])])
    return await t.ctx.recall(plan, part="plan", limit=4 if t.small else MOST_MEMORIES, budget=t.memories_budget(), exclude=exclude)


# -- the passage ---------------------------------------------------------------------------------------------------------------


def passage_prompt(t: Telling, place: Place, plan: Plan, memos: Sequence[Memo]) -> Rendered:
    """The prompt of a novel's step: everything that the model sees before it writes a passage."""
    tail = t.tail("passage", **_slots(t, place, plan, memos))
    return limited(joined(t.context(), tail), min(t.passage_tokens, answer_tokens(place.high, t.language, t.facts.token_ratio)))


def _slots(t: Telling, place: Place, plan: Plan, memos: Sequence[Memo]) -> dict[str, Any]:
    """What both ways of asking for a passage show after the context."""
    return {
        "memories": t.memories(memos),
        "plan": t.fit(plan.text, "plan"),
        "note": t.note(),
        "low": place.low,
        "high": place.high,
        "unit": unit_name(t.language),
        "place": place.kind,
        "ending": t.ending(),
        "play": t.play,
    }


async def prose(t: Telling, place: Place, plan: Plan, memos: Sequence[Memo]) -> str:
    """A passage in one call, continued where it falls short. What is kept is the finished part of what the model wrote."""
    prompt = passage_prompt(t, place, plan, memos)
    earlier = t.recent_texts()
    reply = await t.ctx.stream("passage", prompt, check=check_prose(t.language, earlier, max(1, place.low // 4)), watch=loops)
    text = passage_of(reply.text, t.language)
    for number in range(1, _MOST_CONTINUATIONS + 1):
        short = place.low - length(text, t.language)
        if short <= place.low // 5:
            break
        tail = t.tail("more", low=short, unit=unit_name(t.language))
        more = limited(
            joined(prompt, tail, middle=[Message("assistant", text)]),
            min(t.passage_tokens, answer_tokens(short * 2, t.language, t.facts.token_ratio)),
        )
        check = check_prose(t.language, [*earlier, text], 1)
        added = await t.ctx.stream("passage", more, part=f"more-{number}", check=check, tries=2, fallback=always("-"), watch=loops)
        if added.fell_back:
            break
        text = f"{text}\n\n{passage_of(added.text, t.language)}"
    return text


def beat_prompt(t: Telling, place: Place, beat: str, before: str, memos: Sequence[Memo], size: int, *, ends: bool) -> Rendered:
    """The prompt of one paragraph for a small model: little of what was told, since it repeats what it sees."""
    p, gap = t.premise, "" if t.language in ("zh", "ja") else " "
    lines = [s.strip() for s in sentences(before, t.language) if s.strip()]
    known = [*t.memories(memos)[:2], *t.short_term()[-_FEW_NOTES:]]
    prompt = t.tail(
        "beat",
        title=t.ctx.piece("title", default=""),
        genre=p.genre,
        setting=t.fit(t.ctx.piece("setting", default=""), "setting"),
        cast=t.cast_lines(),
        style=t.fit(t.ctx.piece("style", default=""), "style"),
        person=p.person or ("second" if t.play else ""),
        tense=p.tense or ("present" if t.play else ""),
        language_name=p.language_name(),
        play=t.play,
        notes="\n".join(f"- {line}" for line in t.fit_lines(list(dict.fromkeys(known)), "memories")),
        last=t.fit(gap.join(lines[-_LAST_LINES:]), "plan", keep="end"),
        beat=beat,
        note=t.note(),
        length=amount(size, t.language),
        place=place.kind if place.kind != "last" or ends else "landing",
        ending=t.ending(),
    )
    return limited(prompt, min(t.passage_tokens, answer_tokens(size + size // 2, t.language, t.facts.token_ratio)))


async def beats(t: Telling, place: Place, plan: Plan, memos: Sequence[Memo]) -> str:
    """A passage for small models: one call for each sentence of the plan (research/local-model.md, 7)."""
    paragraph = step_length(t.language)[1] // 6  # about what a small model writes, whatever it is asked for
    steps = plan_beats(plan.text, t.language, max(2, round((place.low + place.high) / 2 / paragraph)))
    most = step_length(t.language)[1] // 5  # a small model that is asked for more goes round in circles
    low, high = min(most, max(1, place.low // len(steps))), min(most, max(2, place.high // len(steps)))
    earlier, parts = t.recent_texts(), list[str]()
    for number, beat in enumerate(steps, 1):
        ends = number == len(steps)
        prompt = beat_prompt(t, place, beat, parts[-1] if parts else t.last_text(), memos, (low + high) // 2, ends=ends)
        before = [*earlier, *parts, *(m.content for m in prompt.messages if m.role == "assistant")]  # the example is not the story
        check = check_prose(t.language, before, max(1, low // 3), fresh=True)
        last_chance = ends and not parts
        reply = await t.ctx.stream(
            "passage", prompt, part=f"beat-{number}", check=check, tries=4, watch=loops, fallback=None if last_chance else always("-")
        )
        if not reply.fell_back:
            parts.append(fresh_part(reply.text, t.language, before))
    return "\n\n".join(parts)


async def single_call(t: Telling, place: Place, plan: Plan, memos: Sequence[Memo]) -> tuple[str, Books]:
    """Passage and book-keeping in one structured answer, as the paper has it."""
    words = {"language_name": t.premise.language_name(), "plan_sentences": t.plan_sentences()}
    tail = t.tail("single", **_slots(t, place, plan, memos), **words)
    prompt = limited(joined(t.context(), tail), t.passage_tokens + t.book_tokens)
    inside = check_prose(t.language, t.recent_texts(), max(1, place.low // 4))

    def check_passage(raw: str, _finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        return inside(str(value["passage"]), "stop") if isinstance(value, dict) else "invalid: there is no complete JSON object in it"

    check = both(check_passage, check_language(t.language, "summary", "short_term", "plans"), check_plans)
    reply = await t.ctx.ask("passage", prompt, check=check)
    value = reply.value
    return passage_of(value["passage"], t.language), books_of(value)


# -- the books --------------------------------------------------------------------------------------------------------------------


async def keep_books(t: Telling, place: Place, plan: Plan, text: str) -> Books:
    """Summary, short-term memory and plans, after the passage."""
    return await small_books(t, place, text) if t.small else await whole_books(t, place, plan, text)


async def whole_books(t: Telling, place: Place, plan: Plan, text: str) -> Books:
    """One structured call on the same prompt prefix."""
    tail = t.tail(
        "book",
        language_name=t.premise.language_name(),
        play=t.play,
        place=place.kind,
        ending=t.ending(),
        plan_sentences=t.plan_sentences(),
    )
    asked = Message("user", t.fit(plan.text, "plan"))
    prompt = limited(joined(t.context(), tail, middle=[asked, Message("assistant", text)]), t.book_tokens)
    check = both(check_language(t.language, "summary", "short_term", "plans"), check_plans)
    reply = await t.ctx.ask("books", prompt, check=check)
    return books_of(reply.value)


def books_of(value: Mapping[str, Any]) -> Books:
    """A structured answer as books: empty and doubled sentences go, the latest twenty stay."""
    lines = list(dict.fromkeys(s.strip() for s in value["short_term"] if s.strip()))[-MOST_SHORT_TERM:]
    return Books(value["summary"].strip(), value["reason"].strip(), tuple(lines), tuple(p.strip() for p in value["plans"]))


def check_plans(raw: str, _finish: str) -> str | None:
    """Three plans must be three."""
    from fabula.models import extract_json

    value = extract_json(raw)
    if not isinstance(value, dict) or not isinstance(value.get("plans"), list):
        return "invalid: plans are missing"
    plans = [str(p) for p in value["plans"]]
    return "invalid: two of the plans are the same" if len({p.strip().casefold() for p in plans}) < len(plans) else None


async def small_books(t: Telling, place: Place, text: str) -> Books:
    """Short calls, each of which a small model can do; code does the rewriting of the short-term memory."""
    name = t.premise.language_name()
    known = t.fit_lines(t.short_term(), "short_term")
    prompt = t.tail("summary", language_name=name, passage=t.fit(text, "last", keep="end"), known="\n".join(f"- {k}" for k in known))
    check = check_language(t.language, "summary", "new")
    lead = sentences(text, t.language)[0].strip()
    fallback = _json({"summary": lead, "new": [lead]})
    reply = await t.ctx.ask("books", prompt, part="summary", check=check, fallback=always(fallback))
    summary, before = reply.value["summary"].strip(), t.short_term()
    new: list[str] = []
    for line in (s.strip() for s in reply.value["new"]):
        if line and line not in before and repeated_share(line, [*before, *new]) <= _OLD_NEWS:
            new.append(line)
    lines, reason = await _forget_outdated(t, [*before, *new], summary)
    plans = () if place.kind == "last" else await _small_plans(t, place, lines, text)
    return Books(summary, reason or f"+ {len(new)}", tuple(lines), plans)


async def _forget_outdated(t: Telling, lines: list[str], summary: str) -> tuple[list[str], str]:
    """Where the short-term memory is full, the model says what is outdated, and code drops it."""
    if len(lines) <= _SMALL_SHORT_TERM:
        return lines, ""
    most = len(lines) - _SMALL_SHORT_TERM + 1
    numbered = "\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1))
    prompt = t.tail("outdated", language_name=t.premise.language_name(), numbered=numbered, passage=summary, most=most)
    oldest = _json({"outdated": list(range(1, most + 1)), "reason": "the oldest"})
    reply = await t.ctx.ask("books", prompt, part="outdated", small=True, fallback=always(oldest))
    gone = set(list(dict.fromkeys(int(n) for n in reply.value["outdated"]))[:most])
    kept = [line for n, line in enumerate(lines, 1) if n not in gone]
    return kept[-_SMALL_SHORT_TERM:], str(reply.value["reason"])


async def _small_plans(t: Telling, place: Place, lines: Sequence[str], text: str) -> tuple[str, ...]:
    """Three plans, each asked for by its topic: a small model asked for three at once tells one three times."""
    names = [c["name"] for c in t.cast()]
    spare = t.tail("spare-plans", names=names or ["…"]).messages[0].content.splitlines()
    shown, last = t.fit_lines(lines, "short_term"), t.fit(text, "plan", keep="end")
    plans: list[str] = []
    for number in range(1, _TOPICS + 1):
        prompt = t.tail(
            "plans",
            language_name=t.premise.language_name(),
            short_term="\n".join(f"- {line}" for line in shown),
            last=last,
            place=place.kind,
            ending=t.ending(),
            play=t.play,
            genre=t.premise.genre,
            setting=t.fit(t.ctx.piece("setting", default=""), "setting"),
            number=number,
            who=names[(t.ctx.time + number) % len(names)] if names else "",
        )
        check = both(check_language(t.language, "plan"), check_news([text, *shown, *plans]))
        fallback = always(_json({"plan": [spare[number - 1]]}))
        reply = await t.ctx.ask("books", prompt, part=f"plan-{number}", check=check, tries=2, fallback=fallback)
        plans.append(plan_text(reply.value["plan"], t.language))
    return tuple(plans)


def check_news(told: Sequence[str]) -> Check:
    """A check for a small model's plan: its sentences differ, and most of them were not told already."""

    def check(raw: str, _finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        plan = [str(s).strip() for s in value.get("plan", [])] if isinstance(value, dict) else []
        if len({s.casefold() for s in plan}) < len(plan):
            return "repeats: two sentences of the plan are the same"
        return "repeats: most of the plan was told already" if repeated_share(" ".join(plan), told) > _OLD_NEWS else None

    return check


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


# -- what the step leaves ------------------------------------------------------------------------------------------------------------


def settle(t: Telling, place: Place, passage: str, text: str, books: Books, *, by: str = "model") -> None:
    """Put the pieces and remember the summary."""
    ctx, position = t.ctx, t.position
    size = length(text, t.language)
    record = ctx.remember("summary", summary_record(t, passage, place.chapter, text, books.summary))
    ctx.put(f"text:{passage}", {"text": text, "by": by, "record": record})
    place_passage(t, place, passage)
    fresh = place.chapter != position["chapter"]
    ctx.put(
        "position",
        {
            **position,
            "length": position["length"] + size,
            "passages": position["passages"] + 1,
            "chapter": place.chapter,
            "chapter_length": size + (0 if fresh else position["chapter_length"]),
            "last": passage,
            "outline": place.outline,
        },
    )
    ctx.put("short_term", list(books.short_term))
    ctx.put("plans", list(books.plans))
    ctx.put("plan", None)
    if place.kind == "last":
        ctx.put("ended", True)


def place_passage(t: Telling, place: Place, passage: str) -> None:
    """Append a passage to its chapter, which is made where it is new."""
    ctx = t.ctx
    held = ctx.piece(f"chapter:{place.chapter}", rests=False)
    if held is None:
        outline = ctx.piece(f"outline:{place.outline}") if place.outline is not None else None
        title = outline["title"] if outline else ""
        ctx.put(
            f"chapter:{place.chapter}",
            {"title": title, "label": "", "outline": place.outline, "scenes": [{"id": f"s{ctx.time}", "passages": [passage]}]},
        )
        ctx.put("chapters", [*ctx.piece("chapters", default=[], rests=False), place.chapter])
        return
    scenes = [dict(s) for s in held["scenes"]]
    scenes[-1] = {**scenes[-1], "passages": [*scenes[-1]["passages"], passage]}
    ctx.put(f"chapter:{place.chapter}", {**held, "scenes": scenes})


def summary_record(t: Telling, passage: str, chapter: str, text: str, summary: str, quote: str = "") -> Record:
    """The long-term memory of a passage (W2), with words that occur in it (DESIGN 3: each derived record carries a quote)."""
    span = find_quote(quote, text) if quote else None
    words = text[span[0] : span[1]] if span else best_quote(summary, text, t.language)
    return Record(
        id="",
        kind="summary",
        text=summary,
        evidence=(passage,),
        source="narrator",
        quote=words,
        episode=chapter,
        entities=t.named_in(f"{summary} {text}"),
    )
