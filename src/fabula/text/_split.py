"""Split a text by a budget of tokens, at the best places: linear, lossless, never over the budget."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fabula.errors import InputError
from fabula.text._chars import HAN, KANA, inside_character, inside_word, lazily, mend
from fabula.text._sentences import sentence_ends
from fabula.text._tokens import SLAB, count_tokens, token_ends

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LEAST_BUDGET = 16
"""Tokens; a single character can take four, and a cut inside a token costs one on either side."""

_SECTION, _PARAGRAPH, _SENTENCE, _LINE, _CLAUSE, _WORD, _CHARACTER, _NEVER = 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -6.0, -9.0
_BEFORE = -1.0
"""Before a blank line, a closing bracket and the like: what follows belongs to what precedes."""

_HEADING = re.compile(r"\s*(?:#{1,6} |=+$|-{3,} ?FILE|(?:chapter|part|book|глава|часть|книга)\s|第.{1,6}[章节節回卷部])", re.IGNORECASE)
_CLAUSE_END = lazily(rf"[，、：；,;:—–]+[\s\"'”’»」』）)]*|\s+|(?<=[{HAN}{KANA}])(?=[{HAN}{KANA}])")
_STOPS = '。！？；.!?…"”’」』»'
_DECLARES = (
    "def ",
    "class ",
    "@",
    "async def ",
    "func ",
    "fn ",
    "public ",
    "private ",
    "function ",
    "export ",
    "impl ",
    "struct ",
    "interface ",
)
_CONTINUES = ("else", "elif", "except", "finally", "and ", "or ", '"""', "'''", ")", "]", "}")
_OPEN_ENDS = (",", "(", "[", "{", "\\", "=", "@")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text: offsets in characters, and its own count of tokens."""

    start: int
    end: int
    tokens: int


@dataclass(slots=True)
class _Cuts:
    """Where cuts are allowed: offsets in ascending order, and how good each is."""

    ends: list[int]
    scores: list[float]

    def add(self, end: int, score: float) -> None:
        self.ends.append(end)
        self.scores.append(score)


def _lines(text: str, big: int) -> _Cuts:
    """Line ends of prose with their scores; inside lines of more than `big` characters also sentences, clauses, words, characters."""
    cuts = _Cuts([], [])
    lines = text.splitlines(keepends=True)
    position = 0
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        end = position + len(line)
        if len(line) > big:
            _inside_line(text, position, end, big, cuts)
        cuts.add(end, _line_score(line.strip(), following))
        position = end
    return cuts


def _line_score(body: str, following: str) -> float:
    if not following or _HEADING.match(following):
        return _SECTION
    blank_next = not following.strip()
    if not body:
        return _BEFORE if blank_next else _PARAGRAPH
    if blank_next:
        return _BEFORE  # a blank line stays with what precedes it
    return _SENTENCE if body[-1] in _STOPS else _LINE


def _inside_line(text: str, start: int, end: int, big: int, cuts: _Cuts) -> None:
    line = text[start:end]
    begun = 0
    for stop in sentence_ends(line):
        if stop - begun > big:
            _inside_sentence(text, start + begun, start + stop, big, cuts)
        if stop < len(line):
            cuts.add(start + stop, _SENTENCE)
        begun = stop


def _inside_sentence(text: str, start: int, end: int, big: int, cuts: _Cuts) -> None:
    """Clauses, words and characters without spaces; a word of more than `big` characters is cut between characters, reluctantly."""
    last = start
    for match in _CLAUSE_END().finditer(text, start, end):
        at = match.end()
        if at >= end or (at == match.start() and at - last < 8):
            continue
        blank = not match.group().strip()
        if inside_word(text, at):
            continue
        _inside_word(text, last, at, big, cuts)
        cuts.add(at, _WORD if blank else _CLAUSE)
        last = at
    _inside_word(text, last, end, big, cuts)


def _inside_word(text: str, start: int, end: int, big: int, cuts: _Cuts) -> None:
    last, at = start, start + big
    while at < end:
        back, score = at, _WORD
        while back > last and inside_word(text, back):
            back -= 1
        if back == last:
            back, score = at, _CHARACTER
            while back > last and inside_character(text, back):
                back -= 1
        if back == last:
            back, score = at, _NEVER
        cuts.add(back, score)
        last, at = back, back + big


def _score_code(text: str, cuts: _Cuts) -> None:
    """Scores for source code without a parser: the shallower the next line and the blanker the one before, the better."""
    for i, end in enumerate(cuts.ends):
        if text[end - 1 : end] != "\n":
            continue  # inside a long line: as in prose, below every line end
        stop = text.find("\n", end)
        line = text[end : stop if stop >= 0 else len(text)]
        cuts.scores[i] = _code_score(text[max(0, end - 200) : end], line[:400])
    for i, end in enumerate(cuts.ends):
        if text[end - 1 : end] != "\n" and cuts.scores[i] > _CHARACTER:
            cuts.scores[i] = min(cuts.scores[i], _LINE) - 3


def _code_score(before: str, line: str) -> float:
    body = line.strip()
    if not body:
        return _BEFORE
    wide = line.expandtabs(4)
    indent = len(wide) - len(wide.lstrip())
    score = 3.0 - min(indent / 4, 3) + (2 if before.endswith(("\n\n", "\n\r\n")) else 0)
    if body.startswith(_CONTINUES):
        score = -0.5
    elif body.startswith(_DECLARES):
        score += 1
    previous = before.rstrip()
    if previous.endswith(_OPEN_ENDS) or previous.rpartition("\n")[2].lstrip().startswith("@"):
        score = _BEFORE
    return score


def _tokens_before(text: str, ends: list[int]) -> list[int]:
    """Tokens before each of `ends`, a token counted where it ends: one pass over slabs that end at a cut."""
    import numpy as np

    out: list[int] = []
    first, base, begin = 0, 0, 0
    while first < len(ends):
        behind = first + 1
        while behind < len(ends) and ends[behind] - begin <= SLAB:
            behind += 1
        slab = text[begin : ends[behind - 1]]
        marks = np.asarray(ends[first:behind], dtype=np.int64) - begin
        tokens = token_ends(slab)
        reached = np.searchsorted(tokens, _bytes_before(slab)[marks] if not slab.isascii() else marks, side="left") + 1
        out.extend((np.minimum(reached, len(tokens)) + base).tolist())
        base += len(tokens)
        begin, first = ends[behind - 1], behind
    return out


def _bytes_before(slab: str) -> npt.NDArray[np.int64]:
    """Bytes in UTF-8 before each character, and at the end."""
    import numpy as np

    codes = np.frombuffer(slab.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))


class _Packer:
    """Fills chunks one after the other, each up to the best cut of its last part."""

    def __init__(self, text: str, budget: int, cuts: _Cuts) -> None:
        self.text, self.budget, self.scores = text, budget, cuts.scores
        self.ends = [0, *cuts.ends]
        self.before = [0, *_tokens_before(text, cuts.ends)]

    def spans(self) -> Iterator[Span]:
        at = 0
        while at < len(self.ends) - 1:
            to, tokens = self._next(at)
            yield Span(self.ends[at], self.ends[to], tokens)
            at = to

    def _next(self, at: int) -> tuple[int, int]:
        """The cut to fill up to, and the true count: the count by prefixes can be a token or two off where a cut falls into a token."""
        room = self.budget
        while True:
            to = self._best(at, room)
            tokens = count_tokens(self.text[self.ends[at] : self.ends[to]])
            if tokens <= self.budget or to == at + 1:
                return to, tokens
            room = min(room, self.before[to] - self.before[at]) - (tokens - self.budget)

    def _best(self, at: int, room: int) -> int:
        reach = bisect_right(self.before, self.before[at] + room, at + 1) - 1
        if reach <= at:
            return at + 1
        if reach == len(self.ends) - 1:
            return reach
        best, best_value = 0, -99.0
        to = reach
        while to > at:
            filled = (self.before[to] - self.before[at]) / self.budget
            score = self.scores[to - 1]
            if filled < 0.6 and best_value > _CHARACTER + 2:
                break
            value = score + 1.5 * filled
            if value > best_value:
                best, best_value = to, value
            to -= 1
        return best or reach


def split(text: str, budget_tokens: int, *, kind: Literal["prose", "code"] = "prose") -> list[Span]:
    """Split `text` into spans of at most `budget_tokens` tokens each; joined, the spans are the text, character for character.

    A chunk ends at the best place of its last two fifths: before a heading, after a paragraph, a sentence, a line, a clause, a word; in
    code before a line that is little indented and declares something. Never inside a word, unless the word alone exceeds the
    budget; never inside what is seen as one character, unless that is hundreds of code points. Time
    is linear. White space is kept too, so that of very long blank stretches a span may be all blank.

    Args:
        text: any string; "" gives no spans. Lone surrogates are counted as U+FFFD and kept.
        budget_tokens: tokens as `count_tokens` counts, at least 16. Divide a model's budget by its ratio first.
        kind: "code" looks at indentation and blank lines instead of sentences.

    Raises:
        InputError: a budget under 16 tokens.
    """
    if budget_tokens < LEAST_BUDGET:
        raise InputError(
            f"A text cannot be split into chunks of {budget_tokens} tokens.", f"Give a budget of at least {LEAST_BUDGET} tokens."
        )
    if not text:
        return []
    big = min(budget_tokens // 4 - 1, SLAB // 2)  # so many characters are within the budget whatever they are: four bytes each
    cuts = _lines(text, big)
    if kind == "code":
        _score_code(text, cuts)
    return list(_Packer(mend(text), budget_tokens, cuts).spans())
