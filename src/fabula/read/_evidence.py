"""Where in its chunk a claim is written (SPEC R8): every span that is cited was found by the program, none is taken from a model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabula.read._chunks import Chunk, Part
from fabula.text import find_quote, lexical_terms, sentences

_MOST_QUOTE = 400
"""Characters."""
_SHARED = 0.5
"""Share of a claim's terms that a sentence must hold to count as its source."""
_FEWEST_SHARED = 2
_UNRELATED = 0.2
"""A quote that shares less of the claim's terms says something else; if a sentence is there that says the claim, it is taken instead."""
_IDENTIFIER = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`|\b([A-Za-z]\w*_\w+|_\w{3,}|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)\b")
_DECLARED = r"(?:def|class|func|fn|function|interface|struct|enum|trait|type|module|const|let|var|val|#define)\s+{}(?!\w)"
_AROUND = 120
"""Characters before what is looked for, where only a part of a line can be quoted."""
_WORD = re.compile(r"\w{3,}")
_DOTS = re.compile(r"\s*(?:\.\.\.|…+|\[\.\.\.\]|\[…\])\s*")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in a document."""

    document: int
    first: int
    """Line, from 1."""
    last: int
    quote: str
    """What stands there, verbatim."""
    place: str
    """Page or chapter, where the document has any."""
    support: str
    """`quoted`: the model's quote stands there; `found`: the program found the sentence that says it; `named`: in code, what the claim
    names stands there, and no more is known; `none`: none of them, the span is that of the whole part."""

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return {
            "document": self.document, "lines": [self.first, self.last], "quote": self.quote, "place": self.place, "support": self.support,
        }  # fmt: skip


class Finder:
    """Finds claims in one chunk. Sentences are taken apart only when a quote does not stand there word for word."""

    def __init__(self, chunk: Chunk, texts: Sequence[str], kinds: Sequence[str] = ()):
        """Args:
        chunk: in which to find.
        texts: of its parts.
        kinds: prose or code, of its parts; code is looked through line by line.
        """
        self.chunk, self.texts, self.kinds = chunk, texts, kinds or ["prose"] * len(texts)
        self._sentences: list[tuple[int, int, str, frozenset[str]]] | None = None

    def find(self, claim: str, quote: str) -> Evidence:
        """The place where a claim is written."""
        for wanted in _quotes(quote):
            for index, text in enumerate(self.texts):
                span = find_quote(wanted, text)
                if span is not None:
                    better = self._closest(claim, "") if _shared(claim, wanted) < _UNRELATED else None
                    if better is not None:
                        return self._found(better, claim)
                    if not _apart(claim, wanted):
                        return self._at(index, *span, "quoted")
        best = self._closest(claim, quote)
        if best is not None:
            return self._found(best, f"{quote} {claim}")
        return self._named(f"{quote} {claim}") or self.part_of(claim)

    def part_of(self, claim: str) -> Evidence:
        """The part of the chunk that has most of a claim's words, whole: all that can be said where the claim itself was not found."""
        best = 0
        if len({part.document for part in self.chunk.parts}) > 1:
            wanted = frozenset(lexical_terms(claim))
            best = max(range(len(self.texts)), key=lambda n: (len(wanted & frozenset(lexical_terms(self.texts[n]))), -n))
        first = self.chunk.parts[best]
        last = first if len({part.document for part in self.chunk.parts}) > 1 else self.chunk.parts[-1]
        return Evidence(first.document, first.line, last.line + max(0, last.lines - 1), "", self._place(first, 0), "none")

    def near(self, question: str, most: int) -> list[Evidence]:
        """The stretches of the chunk that share most rare terms with a question, each with the sentence before and after it."""
        if self._sentences is None:
            self._sentences = list(self._split())
        wanted, seen = frozenset(lexical_terms(question)), Counter(term for *_, terms in self._sentences for term in terms)
        scored = [(sum(1 / seen[term] for term in terms & wanted), -n) for n, (*_, terms) in enumerate(self._sentences)]
        out: list[Evidence] = []
        used: set[int] = set()
        for score, n in sorted(scored, reverse=True):
            if len(out) == most or not score:
                break
            if -n not in used:
                around = [i for i in (-n - 1, -n, -n + 1) if 0 <= i < len(scored) and self._sentences[i][0] == self._sentences[-n][0]]
                used.update(around)
                out.append(self._at(self._sentences[-n][0], *self._stretch(around, -n), "quoted"))
        return out

    def _stretch(self, numbers: Sequence[int], middle: int) -> tuple[int, int]:
        """From the first to behind the last of these sentences, or the middle one alone where that is more than may be quoted."""
        assert self._sentences is not None
        spans = {n: (self._sentences[n][1], self._sentences[n][1] + len(self._sentences[n][2])) for n in numbers}
        first, behind = spans[numbers[0]][0], spans[numbers[-1]][1]
        return (first, behind) if behind - first <= _MOST_QUOTE else spans[middle]

    def _found(self, best: tuple[int, int, str], words: str) -> Evidence:
        index, start, text = best
        if len(text) > _MOST_QUOTE:  # a script on one line: what is quoted is around the first word that the claim shares
            at = min((found for word in _WORD.findall(words) if (found := text.find(word)) >= 0), default=0)
            start, text = start + max(0, at - _AROUND), text[max(0, at - _AROUND) :][:_MOST_QUOTE]
        return self._at(index, start, start + len(text), "found")

    def _at(self, index: int, start: int, end: int, support: str) -> Evidence:
        part, text = self.chunk.parts[index], self.texts[index]
        quote = text[start:end].strip()
        start = text.index(quote, start)
        shown = quote[:_MOST_QUOTE]
        first = part.line + text.count("\n", 0, start)
        return Evidence(part.document, first, first + shown.count("\n"), shown, self._place(part, start), support)

    def _place(self, part: Part, offset: int) -> str:
        at = bisect_right([place[0] for place in part.places], offset)
        return part.places[at - 1][1] if at else ""

    def _named(self, words: str) -> Evidence | None:
        """In code the line that declares what the claim names, else the first one that has it. No more than that is said by it."""
        names = list(dict.fromkeys(a or b for a, b in _IDENTIFIER.findall(words)))
        for pattern in (_DECLARED, r"(?<!\w){}(?!\w)"):
            for name in names:
                for index, (text, kind) in enumerate(zip(self.texts, self.kinds, strict=True)):
                    match = re.search(pattern.format(re.escape(name)), text) if kind == "code" else None
                    if match:
                        start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - _AROUND)
                        end = text.find("\n", match.end())
                        return self._at(index, start, end if end >= 0 else len(text), "named")
        return None

    def _closest(self, claim: str, quote: str) -> tuple[int, int, str] | None:
        """The sentence that shares most of the claim's and the quote's terms, if it shares enough."""
        wanted = frozenset(lexical_terms(claim)) | frozenset(lexical_terms(quote))
        if len(wanted) < _FEWEST_SHARED:
            return None
        if self._sentences is None:
            self._sentences = list(self._split())
        best, best_score = None, 0.0
        for index, start, text, terms in self._sentences:
            shared = len(terms & wanted)
            score = shared / len(wanted) - 0.002 * len(terms)
            enough = shared >= _FEWEST_SHARED and shared / len(wanted) >= _SHARED
            if enough and score > best_score:
                best, best_score = (index, start, text), score
        return best

    def _split(self) -> list[tuple[int, int, str, frozenset[str]]]:
        out = []
        for index, (text, kind) in enumerate(zip(self.texts, self.kinds, strict=True)):
            at = 0
            for sentence in text.split("\n") if kind == "code" else _pieces(text):
                start = text.index(sentence, at)
                at = start + len(sentence)
                if sentence.strip():
                    out.append((index, start, sentence, frozenset(lexical_terms(sentence))))
        return out


def _apart(claim: str, quote: str) -> bool:
    """Whether a quote has nothing to do with a claim in the same script: not one term in common. In another script it may be translated."""
    return _script(claim) == _script(quote) and _shared(claim, quote) == 0.0


def _script(text: str) -> str:
    """Of most letters: latin, cyrillic, other."""
    letters = [c for c in text if c.isalpha()]
    latin, cyrillic = sum(c < "\u0250" for c in letters), sum("\u0400" <= c <= "\u052f" for c in letters)
    return "latin" if 2 * latin > len(letters) else "cyrillic" if 2 * cyrillic > len(letters) else "other"


def _shared(claim: str, quote: str) -> float:
    """Share of a claim's terms that a quote holds."""
    terms = frozenset(lexical_terms(claim))
    return len(terms & frozenset(lexical_terms(quote))) / len(terms) if terms else 1.0


def _pieces(text: str) -> list[str]:
    """Sentences, and lines where a sentence is none (code, tables)."""
    return [piece for sentence in sentences(text) for piece in (sentence.split("\n") if len(sentence) > _MOST_QUOTE else [sentence])]


def _quotes(quote: str) -> list[str]:
    """The quote as given, then the longest stretch of one that leaves something out; none where it says nothing ("the", "});")."""
    quote = quote.strip()
    if not lexical_terms(quote):
        return []
    parts = [p for p in _DOTS.split(quote) if p.strip()]
    longest = max(parts, key=len, default="")
    return [quote, longest] if longest != quote and len(longest) >= 8 else [quote]
