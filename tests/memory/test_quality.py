"""Recall on our own paraphrases: floors under what was measured, so that a fault in fusion, stems or bigrams shows."""

from __future__ import annotations

import re
import statistics

import pytest

from fabula.memory import Embedder, Memory, Query, Record
from fabula.memory._fact import Scene, minmax
from fabula.memory._scope import Floats
from fabula.models import E5
from fabula.text import lexical_terms
from tests.memory.conftest import VIEW, Shelf
from tests.memory.naive import HashEmbedder
from tests.memory.paraphrases import LANGUAGES, MEANING, Line
from tests.models.smollm import fetched

Asked = list[tuple[str, str]]
"""(question, id of the record that answers it)."""


def library(languages: str = "en zh ru") -> tuple[list[Record], Asked]:
    records: list[Record] = []
    asked: Asked = []
    for language in languages.split():
        for episode, lines in LANGUAGES[language].items():
            for line in lines:
                records.append(record(language, episode, line, len(records)))
                if line[2]:
                    asked.append((line[2], records[-1].id))
    return records, asked


def record(language: str, episode: str, line: Line, number: int) -> Record:
    owner, text, _ = line
    ident = f"{language}/{number}"
    return Record(ident, "utterance" if owner else "fact", text, owner, episode=episode, run="run", lane="main", time=number)


async def hits(shelf: Shelf, embedder: Embedder | None, languages: str = "en zh ru", names: str = "") -> dict[str, float]:
    """Share of the questions whose record is the first, and among the first five, per language: `en@1`, `en@5`, … and `@1`, `@5`."""
    memory = Memory(shelf.store, embedder)
    records, asked = library(languages)
    await shelf.keep(memory, *records)
    out: dict[str, list[bool]] = {}
    for question, ident in asked:
        found = [f.record.id for f in (await memory.recall(VIEW, Query(question, limit=5))).found]
        for at in (1, 5):
            for key in (f"@{at}", f"{ident[:2]}@{at}"):
                out.setdefault(key, []).append(ident in found[:at])
    return {key: statistics.fmean(own) for key, own in out.items()}


def above(measured: dict[str, float], floors: dict[str, float]) -> None:
    below = {key: (round(measured[key], 3), floor) for key, floor in floors.items() if measured[key] < floor}
    assert not below, f"(measured, floor): {below}; all: {measured}"


def test_set_is_large_enough() -> None:
    records, asked = library()
    assert len(records) == 69
    assert len(asked) == 42
    assert len({question for question, _ in asked}) == 42


BY_WORDS = {"@1": 0.45, "@5": 0.92, "en@5": 0.85, "zh@5": 0.85, "ru@5": 0.85}
WITH_MEANING = {"@1": 0.86, "@5": 0.95, "en@1": 0.78, "zh@1": 0.78, "ru@1": 0.78}
WITH_E5 = {"@1": 0.62, "@5": 0.95, "en@1": 0.49, "zh@1": 0.7, "ru@1": 0.49}
"""Measured: 0.67 and 1.0; with min-max in place of coverage 0.60."""


async def test_by_words(shelf: Shelf) -> None:
    above(await hits(shelf, None), BY_WORDS)


async def test_with_a_dictionary_for_meaning(shelf: Shelf) -> None:
    above(await hits(shelf, HashEmbedder(256, meaning=MEANING)), WITH_MEANING)


@pytest.mark.embedded
async def test_with_e5(shelf: Shelf) -> None:
    fetched("multilingual-e5-small")
    embedder = E5()
    try:
        above(await hits(shelf, embedder), WITH_E5)
    finally:
        await embedder.close()


# -- the floors are of use: each of these mistakes falls through one ----------------------------------------------------------------


def words_as_written(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def no_pairs(text: str) -> list[str]:
    return [term for term in lexical_terms(text) if not re.search("[\u4e00-\u9fff]", term)]


def stretched(self: Scene) -> tuple[Floats, Floats]:
    """A lone match on a name counts as much as a whole match."""
    dense, lexical = SIDES(self)
    return dense, 0.5 * minmax(lexical)


def without_words(self: Scene) -> tuple[Floats, Floats]:
    dense, lexical = SIDES(self)
    return dense, 0 * lexical


SIDES = Scene._sides
FAULTS: dict[str, tuple[str, object, HashEmbedder | None]] = {
    "words as written": ("terms", words_as_written, None),
    "no pairs of characters": ("terms", no_pairs, None),
    "min-max for coverage": ("sides", stretched, HashEmbedder(256, meaning=MEANING)),
    "dense alone": ("sides", without_words, HashEmbedder(256)),
    "no meaning": ("none", None, HashEmbedder(256)),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_floor_under(shelf: Shelf, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    what, instead, embedder = FAULTS[fault]
    if what == "terms":
        for module in ("_wording", "_memory", "_scope"):
            monkeypatch.setattr(f"fabula.memory.{module}.lexical_terms", instead)
    elif what == "sides":
        monkeypatch.setattr(Scene, "_sides", instead)
    with pytest.raises(AssertionError, match="floor"):
        above(await hits(shelf, embedder), WITH_MEANING if embedder else BY_WORDS)
