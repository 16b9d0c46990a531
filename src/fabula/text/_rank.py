"""How much each of many long texts has to do with a question, without an index and in one pass."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from fabula.text._chars import HAN, HANGUL, KANA, lazily
from fabula.text._terms import stem, word_terms

_PIECE = 1 << 17
"""Characters of a text that are looked at together."""

_K1, _B = 1.2, 0.75
_RELATED = 0.5
"""What counts for a word that only begins like the term."""

_LEAST_RELATED, _MOST_MORE = 4, 6
"""Letters of a term that other words may begin with, and how many letters more such a word may have."""

_UNSPACED = lazily(f"[{HAN}{KANA}{HANGUL}]")
# Accented Latin letters, wide letters and ligatures, combining marks. Punctuation of Chinese is not among them: it would be everywhere.
_FOLDED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff\uff10-\uff5a\ufb00-\ufb06]")
_COMBINING = re.compile("[\u0300-\u036f]")
_REST = re.compile(r"[^\W_]{0,40}")


@lru_cache(maxsize=2_000)
def _fold(char: str) -> str:
    return _COMBINING.sub("", unicodedata.normalize("NFKD", char)).lower()


def _folded(match: re.Match[str]) -> str:
    return _fold(match.group())


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Stretches of `text`, lower case and folded, cut at white space or marks if possible, and each with one character more."""
    start = 0
    while start < len(text):
        stop = start + _PIECE
        if stop < len(text):
            low = stop - 2_000
            stop = max(text.rfind(mark, low, stop) for mark in "\n 。，") + 1 or stop
        piece = text[start : stop + 1].lower()
        if not piece.isascii():
            piece = _FOLDED.sub(_folded, piece)
            if "ё" in piece:
                piece = piece.replace("ё", "е")
        yield (piece[:-1] if stop < len(text) else piece), piece
        start = stop


def _prefix(word: str, term: str) -> str:
    """What all words of this term begin with: happ for happy and happiest, possi for possible and possibility."""
    size = 0
    while size < min(len(word), len(term)) and word[size] == term[size]:
        size += 1
    common = term[:size]
    short = common[:-2] if common.endswith("bl") else common.rstrip("iye") if common.isascii() else common
    return short if len(short) >= 2 else common or term


def _words(text: str, prefix: str) -> Iterator[str]:
    """The words of `text` that begin with `prefix`. Faster than a pattern of all prefixes: `find` skips."""
    at = text.find(prefix)
    while at >= 0:
        end = at + len(prefix)
        if at == 0 or not text[at - 1].isalnum():
            rest = _REST.match(text, end)
            end = rest.end() if rest else end
            yield text[at:end]
        at = text.find(prefix, end)


class _Question:
    """The terms of a question, and how often a text has each."""

    def __init__(self, question: str) -> None:
        words = [(word.replace("ё", "е"), term) for word, term in word_terms(_FOLDED.sub(_folded, question))]
        self.terms = list(dict.fromkeys(term for _, term in words))
        self.number = {term: i for i, term in enumerate(self.terms)}
        self.pairs = [term for term in self.terms if _UNSPACED().match(term)]
        prefixes = {_prefix(word, term) for word, term in words if not _UNSPACED().match(term)}
        self.prefixes = [prefix for prefix in prefixes if not any(prefix != other and prefix.startswith(other) for other in prefixes)]
        self.meaning: dict[str, tuple[tuple[int, float], ...]] = {}

    def counts(self, text: str) -> list[float]:
        """Occurrences of each term in `text`."""
        out = [0.0] * len(self.terms)
        for piece, more in _pieces(text):
            for prefix in self.prefixes:
                for word, count in Counter(_words(piece, prefix)).items():
                    for number, weight in self._means(word):
                        out[number] += count * weight
            for pair in self.pairs:
                out[self.number[pair]] += (piece if len(pair) == 1 else more).count(pair)
        return out

    def _means(self, word: str) -> tuple[tuple[int, float], ...]:
        """Numbers of the terms that `word` stands for, each with its weight."""
        found = self.meaning.get(word)
        if found is None:
            exact = self.number.get(stem(word))
            if exact is not None:
                found = ((exact, 1.0),)
            else:
                found = tuple(
                    (number, _RELATED)
                    for term, number in self.number.items()
                    if len(term) >= _LEAST_RELATED and word.startswith(term) and len(word) <= len(term) + _MOST_MORE
                )
            if len(self.meaning) > 50_000:
                self.meaning.clear()
            self.meaning[word] = found
        return found


def rank(question: str, texts: Iterable[str]) -> list[float]:
    """How relevant each of `texts` is to `question`, 0 or more, in order; 0 where it has none of the question's words.

    The terms are those of `lexical_terms`, stop words left out. A word of a text counts in full where it has the stem of a term, so that
    all its inflections do, and half where it only begins like one (lighthouse for light, four letters at least); Chinese, Japanese and
    Korean go by pairs of characters. Scores are BM25 (k1 1.2, b 0.75, Lucene's inverse document frequency) over these very texts, so
    scores of different calls do not compare. Each text is read once (50 to 120 MB/s) and not kept: pass a generator to read files
    one by one.

    Args:
        question: in any language; the texts must be in the same one, for words are compared and not what they mean.
        texts: long or short; lengths count in characters.
    """
    asked = _Question(question)
    found: list[list[float]] = []
    sizes: list[int] = []
    for text in texts:
        found.append(asked.counts(text) if asked.terms else [])
        sizes.append(len(text))
    mean = sum(sizes) / len(sizes) if sizes and any(sizes) else 1.0
    weights = []
    for number in range(len(asked.terms)):
        having = sum(counts[number] > 0 for counts in found)
        weights.append(math.log(1 + (len(found) - having + 0.5) / (having + 0.5)))
    scores = []
    for counts, size in zip(found, sizes, strict=True):
        damp = _K1 * (1 - _B + _B * size / mean)
        scores.append(
            math.fsum(weight * count * (_K1 + 1) / (count + damp) for weight, count in zip(weights, counts, strict=True) if count)
        )
    return scores
