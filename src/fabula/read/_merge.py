"""Merging reports upwards: what is shown is numbered, and what is said names the numbers that it rests on (SPEC R7, R8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fabula.errors import StepFailed, TooLarge, TooLong
from fabula.models import extract_json
from fabula.read._leaf import finished
from fabula.read._look import Reader, together
from fabula.text import is_language, lexical_terms

_TRIES = 2
_LINKED = 0.5
"""Share of a statement's terms that a fact must hold to be taken for its source where the statement names none."""
_UNRELATED = 0.1
"""A fact that holds less of a statement's terms is hardly its source."""
_MANY, _NEAR = 4, 0.2
"""Of more facts than so many, those that hold less of a statement's terms are left out, if any hold more."""
_MOST_LINKED = 3
_LEAST_SHARE = 48
"""Tokens of a part; with less than that for each, parts are merged in groups first."""

Report = dict[str, Any]
"""statements: [{text, claims: [claim id], support}]; covers: [chunk numbers]; `by`: program, where no answer was usable."""


@dataclass(slots=True)
class Shown:
    """A part of what is merged."""

    title: str
    covers: tuple[int, ...]
    summary: str = ""
    items: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """(text, ids of the claims that it rests on)."""
    unread: str = ""

    @property
    def empty(self) -> bool:
        """There is nothing to say of it."""
        return not self.summary and not self.items


def part_of_chunk(r: Reader, number: int, outcome: dict[str, Any] | None) -> Shown:
    """A chunk as a merge sees it: claims that were found in the text, or, where none was, all of them."""
    names = r.names(r.chunk(number))
    title = ", ".join(names[:4]) + (f" (+{len(names) - 4})" if len(names) > 4 else "")
    if outcome is None or "unread" in outcome:
        return Shown(title, (number,), unread=outcome["unread"] if outcome else "not read")
    if not outcome["relevant"]:
        return Shown(title, (number,))
    written = [c for c in outcome["claims"] if c["support"] != "none"]  # what the text does not say is no matter for a summary
    items: list[tuple[str, tuple[str, ...]]] = [(c["text"], (c["id"],)) for c in written or outcome["claims"]]
    summary = " ".join(c["text"] for c in written) if r.sizes.small and written else outcome["summary"]
    return Shown(title, (number,), summary, items) if items else Shown(title, (number,), "", [(summary, (f"{number}.0",))])


def part_of_report(report: Report) -> Shown:
    """A merged part."""
    items = [(s["text"], tuple(s["claims"])) for s in report["statements"]]
    return Shown("", tuple(report["covers"]), "", items, report.get("unread", ""))


async def merge(r: Reader, parts: Sequence[Shown], *, last: bool, part: str = "", lead: str = "") -> Report:
    """One report of several.

    Args:
        r: the step.
        parts: in order.
        last: it answers the task.
        part: names the call.
        lead: what is known of the whole, shown first.

    Raises:
        StepFailed: nothing could be read.
    """
    covers = sorted({n for p in parts for n in p.covers})
    useful = [p for p in parts if not p.empty]
    if not useful:
        unread = [p.unread for p in parts if p.unread]
        if last and unread and len(unread) == len(parts):
            raise StepFailed(f"Nothing could be read: {unread[0]}.", purpose="chunk", reasons=unread[:3])
        return {"statements": [], "covers": covers, **({"unread": unread[0]} if unread and len(unread) == len(parts) else {})}
    if len(useful) == 1 and not last and not useful[0].summary:
        return {"statements": [_statement(text, claims, "cited") for text, claims in useful[0].items], "covers": covers}
    return {"statements": await _statements(r, useful, last, part, lead), "covers": covers}


async def merge_all(r: Reader, parts: Sequence[Shown], *, lead: str = "") -> Report:
    """The answer to the task from any number of parts: merged in groups first where one call could show but a line of each."""
    level = 0
    covers = sorted({n for p in parts for n in p.covers})
    while len(parts) > 2 and r.sizes.shown // len(parts) < _LEAST_SHARE:
        level += 1
        size = max(2, min(r.sizes.fan_in, r.sizes.shown // (2 * _LEAST_SHARE)))
        batches = [parts[at : at + size] for at in range(0, len(parts), size)]
        reports = await together([merge(r, b, last=False, part=f"{level}.{n}") for n, b in enumerate(batches)])
        parts = [part_of_report(report) for report in reports]
    return {**await merge(r, parts, last=True, lead=lead), "covers": covers}


async def _statements(r: Reader, parts: Sequence[Shown], last: bool, part: str, lead: str) -> list[dict[str, Any]]:
    try:
        return await _ask(r, parts, last, part, lead)
    except (StepFailed, TooLong, TooLarge):
        if len(parts) < 2:
            return [_statement(text, claims, "program") for text, claims in parts[0].items]
    half = len(parts) // 2
    return [
        *await _statements(r, parts[:half], last, f"{part}a", lead),
        *await _statements(r, parts[half:], last, f"{part}b", lead),
    ]


async def _ask(r: Reader, parts: Sequence[Shown], last: bool, part: str, lead: str) -> list[dict[str, Any]]:
    text, shown = layout(r, parts, r.sizes.shown, lead)
    answer = r.sizes.final_answer if last else r.sizes.merge_answer
    prompt = r.render(
        "merge-small" if r.sizes.small else "merge",
        max_tokens=answer,
        task=r.words_task,
        language_name=r.language_name,
        parts=text,
        words=r.words(int(answer * 0.6)),
        statements=min(8, len(parts) + 2) if r.sizes.small else max(4, min(40, answer // 80)),
        last=last,
    )

    def check(answer: str, _finish: str) -> str | None:
        value: Any = extract_json(answer)
        said = "\n".join(s["text"] for s in value["statements"])
        return f"wrong language: {r.language_name} is wanted" if is_language(said, r.language) is False else None

    reply = await r.ctx.ask("final" if last else "merge", prompt, part=part, check=check, tries=_TRIES, pure=True)
    return [cited(s["text"], s["from"], shown) for s in reply.value["statements"]]


def layout(r: Reader, parts: Sequence[Shown], tokens: int, lead: str = "") -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """Parts as a prompt shows them, within so many tokens, and the numbered items in order. Where not all fits, every part gets an equal
    share, and what a short part leaves over goes to the others.
    """
    head = f"{r.cut(lead, tokens // 4)}\n\n" if lead else ""
    tokens -= r.count(head)
    shares = _shares([_need(r, p) for p in parts], tokens)
    blocks: list[str] = []
    shown: list[tuple[str, tuple[str, ...]]] = []
    for number, (one, share) in enumerate(zip(parts, shares, strict=True), 1):
        lines = [f"## {number}" + (f": {' '.join(r.cut(one.title, share // 4).split())}" if one.title else "")]
        room = share - r.count(lines[0]) - 4
        if one.summary and room > 40:
            lines.append(r.cut(one.summary, max(30, room * 2 // 5 if one.items else room)))
            room -= r.count(lines[-1])
        for text, claims in one.items:
            room -= r.count(text) + 6
            if room < 0 and len(lines) > 1:
                break
            shown.append((text, claims))
            lines.append(f"[{len(shown)}] {text if room >= 0 else r.cut(text, max(16, share - 8))}")
        blocks.append("\n".join(lines))
    return head + "\n\n".join(blocks), shown


def _need(r: Reader, part: Shown) -> int:
    return r.count(part.title) + r.count(part.summary) + sum(r.count(text) + 6 for text, _ in part.items) + 12


def _shares(needs: Sequence[int], total: int) -> list[int]:
    """What each gets of a total: all that it needs, or an equal share of what those that need less leave."""
    out, left, rest = [0] * len(needs), total, len(needs)
    for index in sorted(range(len(needs)), key=lambda n: (needs[n], n)):
        out[index] = min(needs[index], left // max(1, rest))
        left, rest = left - out[index], rest - 1
    return out


def cited(text: str, numbers: Sequence[int], shown: Sequence[tuple[str, tuple[str, ...]]]) -> dict[str, Any]:
    """A statement with the claims that it rests on. Where it names none that was shown, or only such as have next to nothing in common
    with it, those that plainly say the same are found.
    """
    items = [shown[n - 1] for n in dict.fromkeys(numbers) if 1 <= n <= len(shown)]
    support = "cited"
    wanted = frozenset(lexical_terms(text))
    if len(items) > _MANY:  # a small model names all that it was shown
        near = [item for item in items if _held(wanted, item[0]) >= _NEAR]
        items = near or items
    if len(wanted) > 1 and max((_held(wanted, fact) for fact, _ in items), default=0.0) < _UNRELATED:
        scored = sorted(((_held(wanted, fact), -n) for n, (fact, _) in enumerate(shown)), reverse=True)[:_MOST_LINKED]
        found = [shown[-n] for score, n in scored if score >= _LINKED]
        if found or not items:
            items, support = found, "found"
    if not items:
        support = "none"
    return _statement(text, tuple(dict.fromkeys(c for _, claims in items for c in claims)), support)


def _held(wanted: frozenset[str], fact: str) -> float:
    """Share of the wanted terms that a fact holds."""
    return len(wanted & frozenset(lexical_terms(fact))) / len(wanted) if wanted else 0.0


def _statement(text: str, claims: Sequence[str], support: str) -> dict[str, Any]:
    return {"text": finished(text), "claims": list(claims), "support": support}
