"""Terms for lexical search: stems by script, overlapping pairs of characters where words are not separated."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from fabula.text._chars import HAN, HANGUL, KANA, lazily
from fabula.text._words import STOP, STOP_PAIRS

_RUN = lazily(rf"([{HAN}{KANA}{HANGUL}]+)|([^\W_{HAN}{KANA}{HANGUL}]+)")
_CYRILLIC = re.compile("[\u0400-\u052f]")
_MARKS = re.compile("[\u0300-\u036f]")

_PARTICLES = frozenset("的了着是在和也就都不我你他她它这那有与而把被让给从对很到去来说为之以于吗呢吧啊呀么们个上下里中のはがをにでともへや")


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The Snowball stem of a lower-case word: Russian for Cyrillic, English for the rest."""
    if _CYRILLIC.search(word):
        return _snow("russian", word.replace("ё", "е"))
    if not word.isascii():
        word = _MARKS.sub("", unicodedata.normalize("NFD", word))
    return _snow("english", word)


@lru_cache(maxsize=2)
def _snowball(language: str) -> object:
    import Stemmer  # type: ignore[import-not-found]

    return Stemmer.Stemmer(language)


def _snow(language: str, word: str) -> str:
    stem: str = _snowball(language).stemWord(word)  # type: ignore[attr-defined]
    return stem


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    pairs = (run[i : i + 2] for i in range(len(run) - 1))
    return [pair for pair in pairs if pair not in STOP_PAIRS and not (pair[0] in _PARTICLES and pair[1] in _PARTICLES)]


def word_terms(text: str) -> Iterator[tuple[str, str]]:
    """Each word of `text` as it is written, folded, and its term; pairs of characters are both."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for run, word in _RUN().findall(text.lower()):
        if run:
            for pair in _pairs(run):
                yield pair, pair
        elif word.replace("ё", "е") not in STOP:
            yield word, stem(word)


def lexical_terms(text: str) -> list[str]:
    """Terms of `text` for full-text search, in order, repeats kept; the same function for what is stored and what is asked.

    Lower case, compatibility forms and accents of Latin letters folded; stop words of English, Russian and Chinese left out; Snowball
    stems by script (Latin: English, Cyrillic: Russian with ё as е), so that Мирой and Миры meet Мира; Chinese, Japanese and
    Korean as overlapping pairs of characters, a single character alone kept, so that 灯塔 is found in 旧灯塔里.
    """
    return [term for _, term in word_terms(text)]
