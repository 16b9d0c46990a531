"""Edit-stable splitting: an edit changes the chunks around it, and soon no others."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from fabula.text import sentences, split
from tests.text.samples import DIALOGUE, DIALOGUE_RU, EN, NEXT_EN, RU, ZH

BUDGET = 600
STOCK = {"en": EN + NEXT_EN + DIALOGUE, "ru": RU + DIALOGUE_RU, "zh": ZH}
NOTES = {"en": "An editor added this.", "ru": "Это добавлено при правке.", "zh": "这是编辑后来补上的。"}


def long_text(language: str, paragraphs: int = 500) -> str:
    """Paragraphs of one to four sentences, each with a number in it."""
    chance = random.Random(5)
    stock = [sentence.strip() for sentence in sentences(STOCK[language]) if len(sentence) > 12]
    gap = "" if language == "zh" else " "
    return "\n\n".join(f"{chance.randint(1, 9999)} {gap.join(chance.sample(stock, chance.randint(1, 4)))}" for _ in range(paragraphs))


def edits(text: str, note: str, count: int) -> Iterator[str]:
    starts = [match.end() for match in re.finditer(r"\n\n", text)]
    for number in range(count):
        at, end = starts[number * len(starts) // count : number * len(starts) // count + 2]
        yield text[:at] + note + "\n\n" + text[at:]
        yield text[:at] + text[end:]
        yield text[:at] + note + "\n\n" + text[end:]
        yield text[:at] + "X" + text[at + 1 :]


def chunks(text: str, budget: int, *, stable: bool) -> list[str]:
    return [text[span.start : span.end] for span in split(text, budget, stable=stable)]


def changed(text: str, note: str, *, stable: bool) -> list[int]:
    known = set(chunks(text, BUDGET, stable=stable))
    return [sum(chunk not in known for chunk in chunks(edited, BUDGET, stable=stable)) for edited in edits(text, note, 5)]


def test_an_edit_changes_few_chunks() -> None:
    stable: list[int] = []
    plain: list[int] = []
    for language, note in NOTES.items():
        text = long_text(language)
        stable += changed(text, note, stable=True)
        plain += changed(text, note, stable=False)
    assert min(stable) >= 1
    assert sum(stable) / len(stable) <= 2.3
    assert max(stable) <= 14
    assert sum(plain) / len(plain) >= 2 * sum(stable) / len(stable), "filled greedily, cuts shift to the end"


@pytest.mark.parametrize("language", STOCK)
def test_stable_chunks_are_filled(language: str) -> None:
    spans = split(long_text(language), BUDGET, stable=True)
    assert max(span.tokens for span in spans) <= BUDGET
    assert sum(span.tokens for span in spans[:-1]) / (len(spans) - 1) >= 0.78 * BUDGET


def test_stable_cuts_are_the_same_everywhere() -> None:
    """The hash must not be Python's, which differs from process to process, nor change with a release."""
    text = f"{EN}\n\n{NEXT_EN}\n\n{DIALOGUE}\n\n{RU}\n\n{ZH}"
    ends = [456, 876, 1374, 1776, 2115, 2364, 2703, 2953, 3316, 3512, 3632, 3770]
    assert [span.end for span in split(text, 120, stable=True)] == ends


def test_the_best_kind_of_cut_comes_first() -> None:
    text = long_text("en", 60)
    assert all(chunk.endswith("\n\n") for chunk in chunks(text, BUDGET, stable=True)[:-1])
