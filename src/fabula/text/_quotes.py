"""What a text repeats from earlier text, and where a quote stands in its source."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from fabula.text._chars import DASHES, HAN, HANGUL, KANA, QUOTES, SOUTHERN, Unit, forms, lazily, mostly_ideographs, units
from fabula.text._sentences import sentence_ends
from fabula.text._terms import lexical_terms

_WORDS, _CHARACTERS = 12, 20
_GRAM_WORDS, _GRAM_CHARACTERS = 5, 8
_PLACES = 8
_SOUGHT = 8
_UNCUT = f"{HAN}{KANA}{SOUTHERN}{HANGUL}"
_WORD = rf"[^\W{_UNCUT}]+(?:[\u0300-\u036f]+[^\W{_UNCUT}]*)*"
_SPACED = lazily(_WORD)
_RUN = lazily(rf"(?P<gap>[\s{DASHES}]+)|(?P<quote>[{QUOTES}]+)|(?P<dots>[….]+)|(?P<word>{_WORD})|(?P<rest>[{_UNCUT}]+|.)", re.DOTALL)
_EDGE = "\U0010ffff"
_EAST = lazily(f"[{HAN}{KANA}、-〃〈-】〔-〟！-／：-？]")


def _grams(items: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(items[i : i + size]) for i in range(len(items) - size + 1)]


def repeated_share(text: str, earlier: Sequence[str]) -> float:
    """Share, 0 to 1, of the sequences of five words (eight characters in Chinese and Japanese) of `text` that occur in `earlier`.

    Case, punctuation and white space do not count. New prose about the same people stays under 0.05; a passage that says its
    context again has 0.3 and more. A text of fewer than five words gives 0.
    """
    size = _GRAM_CHARACTERS if mostly_ideographs(text) else _GRAM_WORDS
    grams = _grams(forms(text), size)
    if not grams:
        return 0.0
    known: set[tuple[str, ...]] = set()
    for piece in earlier:
        known.update(_grams(forms(piece), size))
    return sum(gram in known for gram in grams) / len(grams)


def find_requoted(text: str, earlier: Sequence[str]) -> str | None:
    """The longest stretch of `text` that stands in one of `earlier` word for word, if it is 12 words (20 Chinese or Japanese
    characters) or more; None otherwise. Case, punctuation and white space may differ; the stretch is given as it is in `text`.
    """
    size = _CHARACTERS if mostly_ideographs(text) else _WORDS
    items = units(text)
    if len(items) < size:
        return None
    own = [item.form for item in items]
    best = (0, 0)
    for piece in earlier:
        found = _longest_common(own, forms(piece), size)
        if found[1] - found[0] > best[1] - best[0]:
            best = found
    return _covered(text, items, *best) if best[1] else None


def _covered(text: str, items: list[Unit], first: int, behind: int) -> str:
    return text[items[first].start : items[behind - 1].end]


def _longest_common(own: list[str], other: list[str], size: int) -> tuple[int, int]:
    """(first, behind) of the longest run of at least `size` items of `own` that is in `other`; (0, 0) if there is none."""
    places: dict[tuple[str, ...], list[int]] = {}
    for i, gram in enumerate(_grams(other, size)):
        known = places.setdefault(gram, [])
        if len(known) < _PLACES:  # a phrase that `other` repeats for ever must not make this quadratic
            known.append(i)
    best, i, last = (0, 0), 0, len(own) - size
    while i <= last:
        longest = 0
        for at in places.get(tuple(own[i : i + size]), ()):
            run = size
            while i + run < len(own) and at + run < len(other) and own[i + run] == other[at + run]:
                run += 1
            longest = max(longest, run)
        if longest > best[1] - best[0]:
            best = (i, i + longest)
        i += max(1, longest - size + 1)
    return best


def _folded(text: str) -> Iterator[tuple[str, int, int]]:
    """Pieces (form, start, end) of `text`, in order, that read the same however white space, quote marks, dashes and ellipses are set.

    A piece as long as its form is the text itself; any other is taken whole. A word stands between two empty pieces with the form _EDGE.
    Every run is one piece, found from its start, so that the work is linear in the length of `text`.
    """
    for match in _RUN().finditer(text):
        kind, piece, (start, end) = match.lastgroup, match.group(), match.span()
        if kind == "word":
            yield _EDGE, start, start
            yield piece, start, end
            yield _EDGE, end, end
        elif kind == "gap" and piece.isspace():
            east = start > 0 and end < len(text) and _EAST().match(text[start - 1]) and _EAST().match(text[end])
            yield "" if east else " ", start, end
        elif kind == "dots" and ("…" in piece or len(piece) > len("..")):
            yield "...", start, end
        else:
            yield {"gap": "-", "quote": '"'}.get(kind or "", piece), start, end


def _unfolded(text: str, first: int, behind: int) -> tuple[int, int]:
    """(start, end) in `text` of the stretch from `first` to before `behind` of its joined folded forms."""
    at, begin = 0, -1
    for form, start, end in _folded(text):
        same = len(form) == end - start
        if begin < 0 and first < at + len(form):
            begin = start + (first - at if same else 0)
        if behind <= at + len(form):
            return begin, start + behind - at if same else end
        at += len(form)
    raise AssertionError(f"{behind} is behind the end of the folded text, {at}")


def _cuts_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _SPACED().fullmatch(text, at - 1, at + 1) is not None


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """(start, end) of the first place in `text` where `quote` stands verbatim; None if it does not.

    Only white space (also a line break between two Chinese characters), kinds of quote marks, dashes and ellipses may differ; quote marks
    around the quote may be the quoter's own. The span covers the true text. It cuts no word or row of digits: "50" does not stand in
    "1500"; scripts without spaces, and Korean, whose endings are written to the word, have no such edges. Linear in both lengths.
    """
    bare = quote.strip()
    if not bare:
        return None
    at = text.find(bare)
    if at >= 0 and not _cuts_word(text, at) and not _cuts_word(text, at + len(bare)):
        return at, at + len(bare)
    words = sorted(set(_SPACED().findall(bare)), key=lambda word: (-len(word), word))
    if any(word not in text for word in words[:_SOUGHT]):  # most quotes that do not stand in the text end here, at little cost
        return None
    wanted = "".join(form for form, _, _ in _folded(bare))
    inner = wanted.strip(' "')
    if not inner:
        return None
    folded = "".join(form for form, _, _ in _folded(text))
    for candidate in dict.fromkeys((wanted, inner)):
        at = folded.find(candidate)
        if at >= 0:
            return _unfolded(text, at, at + len(candidate))
    return None


def best_quote(summary: str, text: str, language: str | None = None) -> str:
    """The sentence of `text`, verbatim, that best supports `summary`: it shares most of its terms, rare ones counting more.

    The first sentence if none shares any; "" only if `text` is blank.
    """
    spans, start = [], 0
    for end in sentence_ends(text, language):
        piece = text[start:end].strip()
        if piece:
            spans.append(piece)
        start = end
    wanted = set(lexical_terms(summary))
    found = [set(lexical_terms(piece)) for piece in spans]
    seen = Counter(term for terms in found for term in terms)
    best, best_score = (spans[0] if spans else ""), 0.0
    for piece, terms in zip(spans, found, strict=True):
        shared = sum(math.log(1 + len(spans) / seen[term]) for term in sorted(terms & wanted))
        score = shared / (4 + len(terms)) ** 0.25  # of two that share as much, the shorter says less beside it
        if score > best_score:
            best, best_score = piece, score
    return best
