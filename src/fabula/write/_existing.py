"""A book that is there already becomes the beginning of a run (SPEC W3): its text is the manuscript, what is known of it the memory.

Pure functions of plain values. The text is cut into passages of the size that a step has, so that what a step reads of it, and what an
edit of it derives anew, does not grow with the book; joined with what stood between them, the passages of a scene are the scene,
character for character.

A passage `P` of it has, beside `text:P`, a piece `memories:P`: the memories whose quote stands in it. Where an edit takes the quote
away, these go, and are told anew from the text as it is now.
"""

from __future__ import annotations

import bisect
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from fabula.errors import InputError
from fabula.memory import Record
from fabula.text import count_tokens, length, lexical_terms, split

if TYPE_CHECKING:
    from fabula.formats import Book
    from fabula.write._premise import Premise

PASSAGE = 600
"""Tokens of a passage, about (o200k): what a prompt shows of the end of the book, and what an edit derives anew."""
_LEAST = 3
"""A last passage of less than a third of the others is joined to the one before it."""
_NO_LETTER = re.compile(r"[\W_]+")

KnownKind = Literal["summary", "fact", "observation"]


@dataclass(frozen=True, slots=True)
class ManuscriptChapter:
    """A chapter of a book that is to be continued, as it is printed."""

    title: str = ""
    label: str = ""
    """What is printed over it: "Chapter 3", 第三章; empty where the book has nothing."""
    scenes: tuple[str, ...] = ()
    """The texts of its scenes. A chapter without any is a heading of its own, that of a volume, say."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Something that is known of a book that is to be continued."""

    text: str
    """Names its people ("Mira has the key", never "she")."""
    kind: KnownKind = "observation"
    """A summary is one of a part of the book."""
    quote: str = ""
    """Words of the book that it rests on, verbatim; white space and punctuation may differ. Empty = it rests on no one place."""
    quotes: tuple[str, ...] = ()
    """Further words that it rests on: those of other places that a summary sums up."""
    entities: tuple[str, ...] = ()
    """Names of the people, places and things that it is about; empty = those of the cast that the text names."""
    evidence: tuple[str, ...] = ()
    """Ids or citations, e.g. `book.epub:120-124`."""
    subject: str = ""
    attribute: str = ""
    value: str = ""
    order: int = 0
    """Where in the book, in any unit; equal ones stay in the order given."""


@dataclass(frozen=True, slots=True)
class Existing:
    """The first state and memory of a run that goes on with a book."""

    pieces: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[Record, ...] = ()


def manuscript_of(book: Book) -> tuple[ManuscriptChapter, ...]:
    """A book that was read from a file as `Premise.manuscript` takes it; chapters with neither heading nor text are left out."""
    found = (ManuscriptChapter(c.title, c.label, tuple(s.text for s in c.scenes if s.text.strip())) for c in book.chapters)
    return tuple(c for c in found if c.title or c.label or c.scenes)


def check_existing(chapters: Sequence[ManuscriptChapter], known: Sequence[Remembered]) -> None:
    """Raises InputError where a manuscript holds no text, or a memory is none."""
    if chapters and not any(scene.strip() for chapter in chapters for scene in chapter.scenes):
        raise InputError("The manuscript holds no text.", "Give the chapters with their scenes, or leave the manuscript out.")
    for number, one in enumerate(known, 1):
        if one.kind not in get_args(KnownKind):
            raise InputError(f"Memory {number} is a {one.kind!r}.", f"It is one of: {', '.join(get_args(KnownKind))}.")
        if not one.text.strip():
            raise InputError(f"Memory {number} of the manuscript says nothing.", "Leave it out.")


def sample(chapters: Sequence[ManuscriptChapter], most: int = 4_000) -> str:
    """The beginning of the manuscript's text, at most so many characters, by which its language is told."""
    out = ""
    for chapter in chapters:
        for scene in chapter.scenes:
            out += scene[: most - len(out)] + "\n"
            if len(out) > most:
                return out
    return out


def existing(premise: Premise, run: str, lane: str) -> Existing:
    """The manuscript and the memories of a checked premise as pieces of state and records of the run."""
    pieces, passages = _manuscript(premise.manuscript, premise.language) if premise.manuscript else ({}, [])
    texts = [(chapter, passage, pieces[f"text:{passage}"]["text"]) for chapter, passage in passages]
    places = _Places(texts)
    names = [c.name for c in premise.cast]
    records: list[Record] = []
    held: dict[str, list[dict[str, Any]]] = {}
    chapter, now = passages[0][0] if passages else "before", time.time()
    known = sorted(premise.memories, key=lambda one: one.order)
    for number, one in enumerate(known):
        found = {passage: (at, said) for quote in (*reversed(one.quotes), one.quote) for at, passage, said in places.find(quote)}
        chapter = next(reversed(found.values()))[0] if found else chapter
        record = _record(one, f"{run}/{lane}/-1/known-{number:06}", chapter, names, float(number - len(known)), now)
        records.append(record)
        entry = {"id": record.id, "kind": one.kind, "text": record.text, "entities": list(record.entities), "at": sorted(found)}
        for passage, (_, said) in found.items():
            held.setdefault(passage, []).append({**entry, **said})
    pieces.update({f"memories:{passage}": entries for passage, entries in held.items()})
    return Existing(pieces, tuple(records))


def _record(one: Remembered, ident: str, chapter: str, names: Sequence[str], happened: float, now: float) -> Record:
    """Memories of one chapter are neighbours; they happened before the first step, an hour apart, in the book's order."""
    return Record(
        id=ident,
        kind=one.kind,
        text=one.text.strip(),
        happened=happened,
        recorded=now,
        evidence=tuple(one.evidence),
        source="narrator",
        realm="story fact" if one.kind == "fact" and one.attribute else "",
        subject=one.subject,
        attribute=one.attribute,
        value=one.value,
        quote=one.quote,
        episode=chapter,
        entities=tuple(one.entities) or named(names, one.text),
    )


def named(names: Sequence[str], text: str) -> tuple[str, ...]:
    """Which of these names occur in a text, also inflected."""
    terms = set(lexical_terms(text)) if names else set()
    return tuple(name for name in names if any(term in terms for term in lexical_terms(name)))


# -- the text ----------------------------------------------------------------------------------------------------------------


def _manuscript(chapters: Sequence[ManuscriptChapter], language: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Pieces of state, and (chapter, passage) of every passage in order."""
    pieces: dict[str, Any] = {}
    order: list[str] = []
    passages: list[tuple[str, str]] = []
    size = 0
    for number, chapter in enumerate(chapters, 1):
        ident = f"m{number}"
        scenes: list[dict[str, Any]] = []
        for place, scene in enumerate((s for s in chapter.scenes if s.strip()), 1):
            ids: list[str] = []
            for before, text in cut(scene):
                passage = f"{ident}p{len(scenes) + 1}-{len(ids) + 1}"
                between = {"before": before} if ids else {}
                pieces[f"text:{passage}"] = {"text": text, "by": "person", "record": "", "old": True, **between}
                ids.append(passage)
                passages.append((ident, passage))
                size += length(text, language)
            scenes.append({"id": f"{ident}s{place}", "passages": ids})
        pieces[f"chapter:{ident}"] = {"title": chapter.title, "label": chapter.label, "given": True, "scenes": scenes}
        order.append(ident)
    pieces["chapters"] = order
    last = passages[-1][1] if passages else ""
    pieces["position"] = {
        "length": size, "passages": len(passages), "chapter": "", "chapter_length": 0, "last": last, "outline": None,
        "old": size, "old_passages": len(passages),
    }  # fmt: skip
    return pieces, passages


def cut(text: str) -> list[tuple[str, str]]:
    """A scene as (what stands before it, passage), of about 600 tokens each; joined they are the scene, character for character."""
    size = count_tokens(text)
    if size <= PASSAGE * 3 // 2:
        return [("", text)]
    share = size / round(size / PASSAGE)
    ends = [span.end for span in split(text, int(share * 1.15))][:-1]
    if ends and count_tokens(text[ends[-1] :]) < share / _LEAST:
        ends.pop()
    out: list[tuple[str, str]] = []
    start, before = 0, ""
    least, most = len(text) - len(text.lstrip()), len(text.rstrip())
    for end in ends:
        if not max(least, start) < end < most:
            continue
        first, behind = _blank_around(text, end)
        if first <= start:
            continue
        out.append((before, text[start:first]))
        start, before = behind, text[first:behind]
    return [*out, (before, text[start:])]


def _blank_around(text: str, at: int) -> tuple[int, int]:
    """The white space at a cut, up to its last newline: what stands after that is the indentation of what follows."""
    first = behind = at
    while first > 0 and text[first - 1].isspace():
        first -= 1
    while behind < len(text) and text[behind].isspace():
        behind += 1
    newline = text.rfind("\n", first, behind)
    return (first, newline + 1) if newline >= 0 else (first, behind)


# -- where a memory comes from -------------------------------------------------------------------------------------------------


def bare(text: str) -> str:
    """A text by its letters and digits alone, as quotes are compared: the marks and blanks between them are a matter of print."""
    return _NO_LETTER.sub("", text).casefold()


class _Places:
    """Finds in which passages a quote stands, in one search of the book."""

    def __init__(self, texts: Sequence[tuple[str, str, str]]):
        """`texts`: (chapter, passage, text)."""
        self._ids = [(chapter, passage) for chapter, passage, _ in texts]
        parts = [bare(text) for _, _, text in texts]
        self._starts, at = [], 0
        for part in parts:
            self._starts.append(at)
            at += len(part)
        self._book = "".join(parts)

    def find(self, quote: str) -> list[tuple[str, str, dict[str, Any]]]:
        """(chapter, passage, quote and which of its letters stand there) of the first place; it may begin in one and end in the next."""
        wanted = bare(quote)
        at = self._book.find(wanted) if wanted else -1
        if at < 0:
            return []
        out, first, end = [], at, at + len(wanted)
        place = bisect.bisect_right(self._starts, at) - 1
        while at < end:
            behind = min(end, self._starts[place + 1] if place + 1 < len(self._starts) else end)
            if behind > at:
                out.append((*self._ids[place], {"quote": quote, "part": [at - first, behind - first]}))
            at, place = behind, place + 1
        return out


def standing(entries: Sequence[Mapping[str, Any]], text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries of `memories:P` that hold with this text of the passage, and those that do not: a fact holds as long as its quote
    stands there; a summary was made from more than its quote.
    """
    words = bare(text)
    holds = [e["kind"] != "summary" and bare(e["quote"])[slice(*e["part"])] in words for e in entries]
    return [dict(e) for e, kept in zip(entries, holds, strict=True) if kept], [
        dict(e) for e, kept in zip(entries, holds, strict=True) if not kept
    ]
