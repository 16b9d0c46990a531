"""What is remembered (SPEC M1): natural language plus data about it.

A record is never stored as such: the store keeps events (`RecordRow`), and `fold` makes the current record of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fabula.store import FAR, Reach

Kind = Literal["observation", "reflection", "plan", "summary", "fact", "preference", "utterance"]
Status = Literal["active", "pending", "unresolved", "superseded", "ended", "retracted"]
Level = Literal["everything", "character", "story", "arc", "scene"]
Realm = Literal["", "preference", "user fact", "story fact"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a record holds (SPEC C3): the innermost that covers the place counts. `version` is an axis of its own."""

    level: Level = "story"
    name: str = ""
    """Id of the character, story, arc or scene; empty for `everything`, and for the run's own story."""
    version: str = ""
    """An alternate of the story; empty = the main line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One memory."""

    id: str
    kind: Kind
    text: str
    """Names its people ("Mira: …", never "I")."""
    owner: str = ""
    """Whose memory it is: an entity, or empty for the narrator's."""
    happened: float = 0.0
    """Story hours."""
    recorded: float = 0.0
    """Wall time, seconds since 1970."""
    valid_from: str | None = None
    """Scene id from which it holds; None = always."""
    valid_until: str | None = None
    importance: float | None = None
    """1 .. 10; None = not rated."""
    evidence: tuple[str, ...] = ()
    """Ids that it rests on: records, passages."""
    source: str = ""
    """Who said or saw it: a person, a character, `narrator`, a model."""
    audience: tuple[str, ...] = ()
    """Who in the story may know it; empty = everyone."""
    scope: Scope = field(default_factory=Scope)
    status: Status = "active"
    realm: Realm = ""
    subject: str = ""
    attribute: str = ""
    value: str = ""
    quote: str = ""
    """Words that occur verbatim in the passage it was derived from."""
    presupposes: tuple[str, ...] = ()
    """Ids that a recall brings along."""
    episode: str = ""
    """Chapter, conversation or day: neighbours and the episode score stay inside it."""
    entities: tuple[str, ...] = ()
    """Names of the people, places and things that the text is about."""
    # where it stands in the journal
    run: str = ""
    lane: str = ""
    time: int = 0
    """Logical time of the event that added it."""
    reach: Literal["run", "library"] = "run"
    about: str = ""
    """Library records: the entity under which runs that bound it find the record. Empty = `added` derives it."""
    by: str = "model"
    """Who made the latest change: model, person, import."""
    pos: int = 0
    """Position of the latest event; (id, pos) is a reference to this very state of the record."""
    added: int = 0
    """Position of the event that added it. A later event names it, and goes where that one is withdrawn."""


@dataclass(frozen=True, slots=True)
class View:
    """What a step may see (DESIGN 3): its own line by logical time, the library by position."""

    line: tuple[Reach, ...]
    lanes: tuple[str, ...] | None = None
    """None = all lanes of the line."""
    time: int = FAR
    """Only what happened at a logical time before this."""
    read_at: int = FAR
    entities: tuple[str, ...] = ()
    """Library entities that the run has bound."""


Policy = Literal["fact", "mind", "paper", "released"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the memory."""

    text: str
    policy: Policy = "fact"
    limit: int = 10
    """Most records."""
    budget: int = 1_000
    """Most tokens, as `count` counts, of the found texts."""
    count: Callable[[str], int] | None = None
    """Counts tokens; None = `text.count_tokens`."""
    now: float = 0.0
    """Story hours: recency and validity."""
    named: tuple[str, ...] = ()
    """Entities that the question names; found in the text by code when empty."""
    kinds: tuple[Kind, ...] = ()
    """Only these kinds; empty = all."""
    owners: tuple[str, ...] = ()
    """Only memories of these owners ("" = the narrator's); empty = all."""
    asker: str = ""
    """For whom the memory is asked: records whose audience leaves this one out are not found. Empty = the narrator, who knows all."""
    exclude: frozenset[str] = frozenset()
    """Record ids that are in the prompt already."""
    accessed: Mapping[str, float] = field(default_factory=dict)
    """Story hours of the last access, by record id (policies with recency)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A record and what brought it in."""

    record: Record
    score: float
    parts: Mapping[str, float]
    """dense, lexical, neighbours, episode, cited, named, importance, recency … each as added to the score. `presupposed`: the score of
    the record that brought this one along, which is all its score. `shortened`: which share of the text is left, not part of the score."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a recall found, best first."""

    found: Sequence[Found]
    cut: Sequence[tuple[str, float]]
    """(id, score) of what the budget or the limit left out, best first, at most 20."""
    policy: Policy
    embedder: str
    """Id of the embedder, or `none` where only the lexical side took part."""
    notes: Sequence[str] = ()
    """For the person: e.g. that vectors are being rebuilt for another embedder."""
