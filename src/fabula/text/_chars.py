"""Classes of characters and units of text that all of this folder goes by: where a word is, and where a cut may fall."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"
SOUTHERN = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer: written without spaces between words, like Chinese and Japanese."""

CLOSERS = "\"'”’»›」』】》〉）)\\]〕｣＂"
OPENERS = "\"'“‘«‹「『【《〈（(\\[〔｢„‚＂"
QUOTES = "\"'`´“”„‟‘’‚‛«»‹›「」『』｢｣＂＇"
DASHES = "\\-‐‑‒–—―−－"


def lazily(pattern: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """A pattern that is compiled when it is first asked for: wide classes of characters take milliseconds each."""
    return cache(lambda: re.compile(pattern, flags))


UNSPACED = lazily(f"[{HAN}{KANA}{SOUTHERN}]")
IDEOGRAPH = lazily(f"[{HAN}{KANA}]")
SURROGATE = re.compile("[\ud800-\udfff]")

_UNIT = lazily(rf"[{HAN}{KANA}]|[^\W_{HAN}{KANA}]+(?:['’][^\W\d_{HAN}{KANA}]+)*")
_LONGEST_WORD = 40
_JOINERS = "\u200d\ufe0e\ufe0f"
_INNER = "'’ʼ-‑·"


def mend(text: str) -> str:
    """`text` with U+FFFD for every lone or paired surrogate: the same number of characters, and encodable as UTF-8."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def _joins(char: str) -> bool:
    """Whether `char` belongs to the character before it: an accent, a joiner, a skin tone."""
    return char in _JOINERS or unicodedata.category(char)[0] == "M" or "\U0001f3fb" <= char <= "\U0001f3ff"


def inside_character(text: str, at: int) -> bool:
    """Whether a cut at offset `at` would fall inside what a reader sees as one character."""
    if at <= 0 or at >= len(text):
        return False
    a, b = text[at - 1], text[at]
    if b < "\x80":
        return a == "\r" and b == "\n"
    if "\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff":
        return True
    flags = "\U0001f1e6" <= a <= "\U0001f1ff" and "\U0001f1e6" <= b <= "\U0001f1ff"
    return flags or a == "\u200d" or _joins(b)


def inside_word(text: str, at: int) -> bool:
    """Whether a cut at offset `at` would fall inside a word, a number or a character.

    Between two characters of a script that is written without spaces a cut is allowed.
    """
    if at <= 0 or at >= len(text):
        return False
    if inside_character(text, at):
        return True
    a, b = text[at - 1], text[at]
    if a.isspace() or b.isspace() or UNSPACED().match(a) or UNSPACED().match(b):
        return False
    word_a, word_b = _wordly(a), _wordly(b)
    if word_a and word_b:
        return True
    if word_a:
        return at + 1 < len(text) and _links(a, b, text[at + 1])
    return word_b and at >= 2 and _links(text[at - 2], a, b)


def _wordly(char: str) -> bool:
    return char.isalnum() or char == "_" or _joins(char)


def _links(before: str, mark: str, after: str) -> bool:
    if mark in _INNER:
        return _wordly(before) and _wordly(after)
    return mark in ".,:" and before.isdigit() and after.isdigit()


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, or one character of a script without spaces: its lower-case form and its place in the text."""

    form: str
    start: int
    end: int


def units(text: str) -> list[Unit]:
    """The words of `text` in order, each character of Chinese and Japanese by itself; no punctuation.

    A "word" of more than 40 characters (a loop of one letter, an encoded blob, Thai) is taken apart into characters.
    """
    out: list[Unit] = []
    for match in _UNIT().finditer(text):
        start, end = match.span()
        if end - start <= _LONGEST_WORD:
            out.append(Unit(match.group().lower(), start, end))
        else:
            out.extend(Unit(text[i].lower(), i, i + 1) for i in range(start, end))
    return out


def forms(text: str) -> list[str]:
    """The lower-case forms of `units(text)`, faster."""
    out: list[str] = []
    for word in _UNIT().findall(text.lower()):
        if len(word) <= _LONGEST_WORD:
            out.append(word)
        else:
            out.extend(word)
    return out


def mostly_ideographs(text: str) -> bool:
    """Whether more units of `text` are Chinese or Japanese characters than words."""
    single = len(IDEOGRAPH().findall(text))
    return single > 0 and 2 * single > len(_UNIT().findall(text))
