"""Loops of a model: a phrase said over and over, or the same few phrases in turn. Refrains and echoes of dialogue are legal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fabula.text._chars import IDEOGRAPH, OPENERS, Unit, units

# Marks without letters in between: a row of dashes as a scene break is legal, 40 rows are not.
_MARKS = re.compile(r"([^\w\s]{1,4}?)\1{159,}|((?:[^\w\s]{1,3}\s{1,2}){1,3}?)\2{39,}|(\s)\3{299,}")
_TAIL = re.compile(rf"[^\w\s{OPENERS[1:]}]*")
_SHARE, _WINDOW, _STRIDE = 0.5, 240, 120


@dataclass(frozen=True, slots=True)
class Loop:
    """A stretch of text that repeats itself.

    Attributes:
        start: offset in characters where the repeating stretch starts.
        end: offset behind it.
        keep: offset behind the first time that the phrase is said: text up to here is worth keeping.
        phrase: what is repeated, as it stands in the text the first time; for the kind "share" the commonest sequence of words.
        times: how often it is said.
        kind: "repeat" for one phrase said again and again without a break, "share" for too many sequences of words said before.
    """

    start: int
    end: int
    keep: int
    phrase: str
    times: int
    kind: Literal["repeat", "share"]


def _weight(items: list[Unit]) -> list[float]:
    """What each unit counts in words: a character of Chinese or Japanese six tenths."""
    return [0.6 if item.end - item.start == 1 and IDEOGRAPH().match(item.form) else 1.0 for item in items]


def _too_often(words: float, times: float) -> bool:
    """Whether a phrase of so many words, said so often in a row, is a loop and not emphasis, a chant or a refrain."""
    if words < 1.5:
        return words * times >= 14 and times >= 14
    if words < 4.5:
        return times >= 7 and words * times >= 18
    if words < 11.5:
        return times >= 4
    return times >= 3 if words < 30 else times >= 2


def _runs(forms: list[str], gram: int) -> Iterator[tuple[int, int, int]]:
    """(first unit, unit behind the last, period) of maximal stretches where each `gram` units occurred one period before."""
    last: dict[tuple[str, ...], int] = {}
    begun, period = 0, 0
    for i in range(len(forms) - gram + 1):
        key = tuple(forms[i : i + gram])
        distance = i - last.get(key, i)
        last[key] = i
        if distance == period:
            continue
        if period:
            yield begun - period, i - 1 + gram, period
        begun, period = i, distance
    if period:
        yield begun - period, len(forms), period


def _repeats(items: list[Unit], forms: list[str]) -> Iterator[tuple[int, int, int]]:
    """Stretches with their period, short periods by short sequences so that a phrase that holds itself does not hide them."""
    for gram, low, high in ((1, 1, 3), (3, 2, 11), (8, 4, len(items))):
        for first, behind, period in _runs(forms, gram):
            if low <= period <= high:
                yield first, behind, period


def _repeat(text: str, items: list[Unit], forms: list[str]) -> Loop | None:
    weights = _weight(items)
    best: Loop | None = None
    for first, behind, period in _repeats(items, forms):
        times = (behind - first) / period
        words = sum(weights[first : first + period])
        if times < 2 or not _too_often(words, times):
            continue
        keep = _behind(text, items[first + period - 1])
        if best is None or items[first].start < best.start:
            phrase = text[items[first].start : keep]
            best = Loop(items[first].start, _behind(text, items[behind - 1]), keep, phrase, int(times), "repeat")
    return best


def _share(text: str, items: list[Unit], forms: list[str]) -> Loop | None:
    """The first window of some 240 words of which half the sequences of four words (seven characters) were said in it before."""
    east = sum(1 for form in forms if len(form) == 1 and IDEOGRAPH().match(form)) * 2 > len(forms)
    gram, window, stride = (7, _WINDOW * 5 // 3, _STRIDE * 5 // 3) if east else (4, _WINDOW, _STRIDE)
    for low in range(0, max(1, len(items) - stride), stride):
        part = forms[low : low + window]
        if len(part) < window // 2:
            break
        grams = Counter(tuple(part[i : i + gram]) for i in range(len(part) - gram + 1))
        if 1 - len(grams) / grams.total() < _SHARE:
            continue
        common, times = grams.most_common(1)[0]
        at = next(i for i in range(len(part)) if tuple(part[i : i + gram]) == common)
        seen: set[tuple[str, ...]] = set()
        again = next(i for i in range(len(part)) if _again(tuple(part[i : i + gram]), seen))
        start, keep = items[low].start, _behind(text, items[low + max(again - 1, 0)])
        phrase = text[items[low + at].start : items[low + at + gram - 1].end]
        return Loop(start, items[min(low + window, len(items)) - 1].end, keep, phrase, times, "share")
    return None


def _behind(text: str, item: Unit) -> int:
    """The offset behind a unit and the marks that end its phrase."""
    match = _TAIL.match(text, item.end)
    return match.end() if match else item.end


def _again(gram: tuple[str, ...], seen: set[tuple[str, ...]]) -> bool:
    if gram in seen:
        return True
    seen.add(gram)
    return False


def find_loop(text: str) -> Loop | None:
    """The first loop in `text`, or None.

    A loop is a phrase said again and again without a break (a word 14 times, three words 7 times, a sentence 4 times, a long one three
    times, a paragraph twice; case, punctuation and line breaks aside), or a stretch of 240 words half of whose sequences of four words
    were said in it before. Works the same without spaces (ten Chinese characters count as six words) and inside very long words.
    Time is linear in the length, 2 ms (Chinese 12 ms) for 4,000 characters: for a stream, call it on the last 4,000 now and then.
    """
    marks = _MARKS.search(text)
    if marks:
        phrase = marks.group(1) or marks.group(2) or marks.group(3)
        start, end = marks.span()
        return Loop(start, end, start + len(phrase), phrase, (end - start) // len(phrase), "repeat")
    items = units(text)
    forms = [item.form for item in items]
    return _repeat(text, items, forms) or _share(text, items, forms)
