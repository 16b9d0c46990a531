"""What was found on the way, taken together: who and what occurs, and where (SPEC R9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fabula.text import lexical_terms

_MOST_ABOUT = 12


@dataclass(slots=True)
class Entity:
    """Someone or something that occurs in what was read."""

    name: str
    kind: str = ""
    """person, place, group, thing, part, idea; empty = not said."""
    about: list[str] = field(default_factory=list)
    """What was said of it, in the order of the text, each once."""
    chunks: list[int] = field(default_factory=list)
    """Where it occurs."""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """(relation, to whom)."""


def entities_of(outcomes: Iterable[tuple[int, dict[str, Any]]]) -> list[Entity]:
    """Entities of all chunks, the most frequent first. Names that differ only in case, or by inflection where the first letters are capital
    letters, are one; a first name is not taken for a full name, which is a guess.
    """
    found: dict[str, Entity] = {}
    spelled: dict[str, Counter[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    for number, outcome in outcomes:
        for entity in outcome.get("entities", ()):
            key = " ".join(lexical_terms(entity["name"])) or entity["name"].casefold()
            one = found.setdefault(key, Entity(entity["name"]))
            spelled.setdefault(key, Counter())[entity["name"]] += 1
            if entity["kind"]:
                kinds.setdefault(key, Counter())[entity["kind"]] += 1
            if entity["about"] and entity["about"] not in one.about:
                one.about.append(entity["about"])
            if number not in one.chunks:
                one.chunks.append(number)
        for relation in outcome.get("relations", ()):
            key = " ".join(lexical_terms(relation["subject"])) or relation["subject"].casefold()
            if key in found:
                pair = (relation["relation"], relation["object"])
                if pair not in found[key].relations:
                    found[key].relations.append(pair)
    for key, one in found.items():
        one.name = spelled[key].most_common(1)[0][0]
        one.kind = kinds[key].most_common(1)[0][0] if key in kinds else ""
    return sorted(found.values(), key=lambda e: (-len(e.chunks), e.chunks[0], e.name))


def entity_line(entity: Entity) -> str:
    """An entity and what was said of it, first and last things first, since people change."""
    about = (
        entity.about if len(entity.about) <= _MOST_ABOUT else [*entity.about[: _MOST_ABOUT // 3], *entity.about[-2 * _MOST_ABOUT // 3 :]]
    )
    relations = [f"{verb} {target}" for verb, target in entity.relations[:6]]
    told = "; ".join([*about, *relations])
    return f"- {entity.name}: {told}" if told else f"- {entity.name}"
