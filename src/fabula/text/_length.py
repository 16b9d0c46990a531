"""Lengths in the unit that a language's writers count in, and what that is in tokens."""

from __future__ import annotations

import math
import re
from typing import Literal

from fabula.text._chars import forms

_CHARACTERS = frozenset({"zh", "yue", "ja", "th", "lo", "my", "km"})
_LETTER = re.compile(r"[^\W_]")

# Tokens of o200k for a unit of prose, punctuation and blanks included. Measured on one passage that we wrote in four languages
# (tests/text/samples): en 1.16, zh 0.99, ru 1.92, ja 0.96; plus 8 %, since other prose has longer words and rarer names.
_TOKENS = {"en": 1.25, "zh": 1.07, "ru": 2.07, "ja": 1.04}
_TOKENS_OTHER = {"words": 2.2, "characters": 1.5}

# 200 to 400 English words (SPEC W1) told in another language. The same four passages: for 100 English words, 76 Russian ones
# (no articles, fewer auxiliaries), 141 Chinese characters and 191 Japanese ones. Translators reckon with 160 to 170 and 200 to
# 220 characters, for denser texts; the middle, rounded, is taken.
_FEW_WORDS = frozenset({"ru", "uk", "be", "bg", "pl", "cs", "sk", "sl", "hr", "sr", "mk", "lt", "lv", "et", "fi", "hu", "tr", "ko", "kk"})
_STEPS = {"zh": (320, 640), "yue": (320, 640), "ja": (400, 800)}


def _base(language: str) -> str:
    return re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]


def unit(language: str) -> Literal["words", "characters"]:
    """What lengths are counted in: characters for Chinese, Japanese, Thai, Lao, Burmese and Khmer, else words."""
    return "characters" if _base(language) in _CHARACTERS else "words"


def length(text: str, language: str) -> int:
    """Length of `text` in the language's unit; punctuation and white space do not count.

    In words, a Chinese or Japanese character counts as a word of its own; in characters, every letter and digit counts.
    """
    return len(_LETTER.findall(text)) if unit(language) == "characters" else len(forms(text))


def to_tokens(amount: int, language: str) -> int:
    """Roughly how many o200k tokens `amount` words or characters of prose take, rounded up; for `max_tokens`, times a model's ratio."""
    rate = _TOKENS.get(_base(language)) or _TOKENS_OTHER[unit(language)]
    return math.ceil(max(0, amount) * rate)


def step_length(language: str) -> tuple[int, int]:
    """Least and most of one step's passage in the language's unit: what 200 to 400 English words (SPEC W1) tell."""
    base = _base(language)
    if base in _STEPS:
        return _STEPS[base]
    if base in _CHARACTERS:
        return 700, 1400
    return (150, 300) if base in _FEW_WORDS else (200, 400)
