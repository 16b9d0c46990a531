"""From ranked records to what goes into a prompt: presupposed records come along, and the budget holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fabula.errors import InputError
from fabula.memory._record import Found, Query, Record
from fabula.text import count_tokens, sentences, truncate_tokens

MOST_CUT = 20
"""Of what was left out, so many are listed."""
AHEAD = 40
"""So many records after the last that `limit` allows are looked at where long ones do not fit."""

Bring = Callable[[str], Record | None]
"""The record with an id, if the view sees it and it may be recalled."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a recall puts into the prompt, and what it leaves out."""

    found: list[Found]
    cut: list[tuple[str, float]]


def choose(ranked: Sequence[Found], query: Query, bring: Bring) -> Choice:
    """Take records from the best down while they fit, each with what it presupposes or not at all.

    A record too long for what is left of the budget is passed over. Only where that would leave nothing, the best one is shortened at the
    end of a sentence.
    """
    count = query.count or count_tokens
    left, found, cut = query.budget, list[Found](), list[tuple[str, float]]()
    taken: set[str] = set()
    for candidate in ranked:
        if candidate.record.id in taken:
            continue
        group = [] if len(found) >= query.limit else [candidate, *_presupposed(candidate, taken | query.exclude, bring)]
        cost = sum(count(one.record.text) for one in group) if 0 < len(group) <= query.limit - len(found) else left + 1
        if cost > left:
            cut.append((candidate.record.id, candidate.score))
            continue
        left -= cost
        found += group
        taken.update(one.record.id for one in group)
    if not found and ranked and query.limit > 0 and query.budget > 0:
        first = ranked[0]
        text = shortened(first.record.text, query.budget, count)
        if text:
            share = len(text) / len(first.record.text)
            parts = {**first.parts, "shortened": share} if share < 1 else first.parts
            found = [replace(first, record=replace(first.record, text=text), parts=parts)]
            cut = cut[1:]
    return Choice(found, [pair for pair in cut if pair[0] not in taken][:MOST_CUT])


def _presupposed(candidate: Found, known: Iterable[str], bring: Bring) -> list[Found]:
    seen, out = {*known, candidate.record.id}, list[Found]()
    waiting = list(candidate.record.presupposes)
    while waiting:
        ident = waiting.pop(0)
        if ident in seen:
            continue
        seen.add(ident)
        record = bring(ident)
        if record is not None:
            out.append(Found(record, candidate.score, {"presupposed": candidate.score}))
            waiting += record.presupposes
    return out


def shortened(text: str, budget: int, count: Callable[[str], int]) -> str:
    """The first sentences of a text that fit; where not even one does, as much of it as fits. `count` counts tokens."""
    out, parts = "", sentences(text)
    for i in range(1, len(parts) + 1):
        longer = "".join(parts[:i]).rstrip()
        if count(longer) > budget:
            break
        out = longer
    limit = budget
    while not out and limit > 0:
        piece = truncate_tokens(text, limit).rstrip()
        if count(piece) <= budget:
            return piece
        limit = limit * 3 // 4
    return out


def check(query: Query) -> None:
    """Raises InputError where a question cannot be answered by anything."""
    if not query.text.strip():
        raise InputError("The question to the memory is empty.", "Say what is to be remembered.")
    if query.limit < 0 or query.budget < 0:
        raise InputError(f"A recall needs a limit and a budget of at least 0, not {query.limit} and {query.budget}.")
