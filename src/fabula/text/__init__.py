"""Plain text in any language: tokens, languages, sentences, lengths, repetition, terms for search, relevance, quotes, splitting, lines.

Knows characters, words, sentences and the o200k table of tokens. Does not know models (a model's tokens are ours times its
`TokenRatio`), files, runs or memory; everything here is a function of its arguments, in Python strings and offsets in characters.
The tables of tokens, languages and stems are loaded by the first call that needs them.
"""

from __future__ import annotations

from fabula.text._language import detect_language, is_language
from fabula.text._length import length, step_length, to_tokens, unit
from fabula.text._lines import LineIndex
from fabula.text._loops import Loop, find_loop
from fabula.text._names import LANGUAGE_NAMES
from fabula.text._quotes import best_quote, find_quote, find_requoted, repeated_share
from fabula.text._rank import rank
from fabula.text._sentences import ends_finished, sentences, trim_to_sentence
from fabula.text._split import Span, split
from fabula.text._terms import lexical_terms
from fabula.text._tokens import TokenRatio, count_tokens, truncate_tokens

__all__ = [
    "LANGUAGE_NAMES",
    "LineIndex",
    "Loop",
    "Span",
    "TokenRatio",
    "best_quote",
    "count_tokens",
    "detect_language",
    "ends_finished",
    "find_loop",
    "find_quote",
    "find_requoted",
    "is_language",
    "length",
    "lexical_terms",
    "rank",
    "repeated_share",
    "sentences",
    "split",
    "step_length",
    "to_tokens",
    "trim_to_sentence",
    "truncate_tokens",
    "unit",
]
