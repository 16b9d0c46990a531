"""Split a text by a budget of tokens, at the best places: linear, lossless, never over the budget."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fabula.errors import InputError
from fabula.text._chars import mend
from fabula.text._code import Code
from fabula.text._prose import CHARACTER, SECTION, Cuts, Prose
from fabula.text._stable import Divider
from fabula.text._tokens import SLAB, count_tokens, token_ends

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LEAST_BUDGET = 16
"""Tokens; a single character can take four, and a cut inside a token costs one on either side."""

_BLOCK = 200_000
"""Characters whose cuts are looked for at once: memory does not grow with the text."""

_LOWEST, _POOR, _LAST_RESORT = 0.6, 3.4, 0.4
"""Cuts are looked for from this share of the budget up; while there are only poor ones, from the last."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text: offsets in characters, and its own count of tokens."""

    start: int
    end: int
    tokens: int


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of some `_BLOCK` characters that end at line breaks."""
    start = 0
    while start < len(text):
        stop = start + _BLOCK
        for _ in range(100):
            stop = text.find("\n", stop) + 1 or len(text)
            if seamless(text, stop):
                break
        yield start, stop
        start = stop


def _bytes_before(slab: str) -> npt.NDArray[np.int64]:
    """Bytes in UTF-8 before each character, and at the end."""
    import numpy as np

    codes = np.frombuffer(slab.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))


class _Counter:
    """Tokens before each cut, by one pass over slabs that end at a cut."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin, self.base = 0, 0
        self.seams: list[int] = []
        """Ends of slabs that fall into what the encoding would have taken as one piece."""

    def before(self, ends: list[int], stop: int) -> list[int]:
        """Tokens before each of `ends`, which go on from those of the last call; a token counts where it ends.

        The text is counted up to `stop`, where the next call goes on.
        """
        import numpy as np

        out: list[int] = []
        marks_all = [*ends, stop]
        first = 0
        while first < len(marks_all):
            behind = self._slab(marks_all, first)
            slab = self.text[self.begin : marks_all[behind - 1]]
            marks = np.asarray(marks_all[first:behind], dtype=np.int64) - self.begin
            if slab:
                tokens = token_ends(slab)
                reached = np.searchsorted(tokens, marks if slab.isascii() else _bytes_before(slab)[marks], side="left") + 1
                reached[marks == 0] = 0
                out.extend((np.minimum(reached, len(tokens)) + self.base).tolist())
                self.base += len(tokens)
            else:
                out.extend([self.base] * len(marks))
            self.begin, first = marks_all[behind - 1], behind
            if not seamless(self.text, self.begin):
                self.seams.append(self.begin)
        return out[:-1]

    def _slab(self, marks: list[int], first: int) -> int:
        """How many of `marks` the slab from `first` on takes: it ends without a seam if it can."""
        most = max(first + 1, bisect_right(marks, self.begin + SLAB, first))
        if most == len(marks):
            return most
        return next((behind for behind in range(most, max(first, most - 40), -1) if seamless(self.text, marks[behind - 1])), most)

    def exact(self, start: int, end: int) -> bool:
        """Whether the difference of the counts before `start` and `end` is what `count_tokens` says of the text between."""
        if end - start > SLAB:
            return False
        at = bisect_left(self.seams, start)
        seam = self.seams[at] if at < len(self.seams) else len(self.text) + 1
        if seam == start:
            at += 1
            seam = self.seams[at] if at < len(self.seams) else len(self.text) + 1
        elif not seamless(self.text, start):
            return False
        return seam == end or (seam > end and seamless(self.text, end))


def seamless(text: str, at: int) -> bool:
    """Whether the encoding's pieces end at `at` whatever stands before and behind: at a line break before a line with something on it."""
    if at <= 0 or at >= len(text):
        return True
    if text[at - 1] != "\n":
        return False
    while at < len(text) and text[at] in " \t":
        at += 1
    return at < len(text) and text[at] != "/" and not text[at].isspace()


class _Packer:
    """Fills chunks one after the other, each up to the best cut of its last part, or up to where a stable division ends one."""

    def __init__(self, text: str, budget: int, kind: Literal["prose", "code"], *, stable: bool) -> None:
        self.text, self.budget = mend(text), budget
        # A token has a byte at least, a character four at most: so many of either are within the budget whatever they are.
        most, big = min(budget - 1, SLAB // 2), min(budget // 4 - 1, SLAB // 2)
        self.finder: Code | Prose = (Code if kind == "code" else Prose)(text, most, big)
        self.blocks = _blocks(text)
        self.counter = _Counter(self.text)
        self.ends, self.before, self.scores = [0], [0], [SECTION]
        self.whole = False  # whether all cuts are known
        self.divider = Divider(self.text, budget) if stable else None
        self.settled: deque[int] = deque()  # where chunks must end

    def spans(self) -> Iterator[Span]:
        """The chunks in order."""
        at = 0
        while True:
            while self.settled and self.settled[0] <= self.ends[at]:
                self.settled.popleft()
            ahead = self.before[-1] - self.before[at] > 2 * self.budget and (self.settled or not self.divider)
            if not self.whole and not ahead:
                self._more(at)
                at = 0
                continue
            if at == len(self.ends) - 1:
                return
            to, tokens = self._next(at)
            yield Span(self.ends[at], self.ends[to], tokens)
            at = to

    def _more(self, at: int) -> None:
        """Find the cuts of one more block; those before `at` are forgotten."""
        start, stop = next(self.blocks)
        cuts: Cuts = self.finder.block(start, stop)
        if start == 0:
            del cuts.ends[0], cuts.scores[0]
        self.whole = stop == len(self.text)
        before = self.counter.before(cuts.ends, stop)
        if self.divider:
            self.settled.extend(self.divider.add(cuts.ends, before, cuts.scores))
        if self.whole:
            cuts.add(stop, SECTION)
            before.append(self.counter.base)
            if self.divider:
                self.settled.extend(self.divider.rest(stop, self.counter.base))
        del self.ends[:at], self.before[:at], self.scores[:at]
        self.ends += cuts.ends
        self.before += before
        self.scores += cuts.scores

    def _next(self, at: int) -> tuple[int, int]:
        """The cut to fill up to, and the true count: the count by prefixes can be a token or two off where a cut falls into a token."""
        room = self.budget
        start = self.ends[at]
        while True:
            to = self._best(at, room)
            counted = self.before[to] - self.before[at]
            tokens = counted if self.counter.exact(start, self.ends[to]) else count_tokens(self.text[start : self.ends[to]])
            if tokens <= self.budget or to == at + 1:
                return to, tokens
            room = min(room, counted) - (tokens - self.budget)

    def _best(self, at: int, room: int) -> int:
        reach = bisect_right(self.before, self.before[at] + room, at + 1) - 1
        if reach <= at:
            return at + 1
        if self.settled and self.settled[0] <= self.ends[reach]:
            return bisect_left(self.ends, self.settled[0], at + 1)
        if reach == len(self.ends) - 1:
            return reach
        best, best_value = 0, -99.0
        for to in range(reach, at, -1):
            filled = (self.before[to] - self.before[at]) / self.budget
            if filled < _LOWEST and best_value > (_POOR if filled >= _LAST_RESORT else CHARACTER + 2):
                break
            value = self.scores[to] + 1.5 * filled
            if value > best_value:
                best, best_value = to, value
        return best or reach


def split(text: str, budget_tokens: int, *, kind: Literal["prose", "code"] = "prose", stable: bool = False) -> list[Span]:
    """Split `text` into spans of at most `budget_tokens` tokens each; joined, the spans are the text, character for character.

    A chunk ends at the best place of its last two fifths: before a heading, after a paragraph, a sentence, a line, a clause, a word; in
    code before a declaration of the module or a member of a class, with the comments and decorators above it. Never inside a word,
    unless the word alone exceeds the budget; never inside what is seen as one character, unless that is hundreds of code points. Time
    is linear, and memory beyond the text and the spans is constant. White space is kept too, so that of very long blank stretches a
    span may be all blank.

    Args:
        text: any string; "" gives no spans. Lone surrogates are counted as U+FFFD and kept.
        budget_tokens: tokens as `count_tokens` counts, at least 16. Divide a model's budget by its ratio first.
        kind: "code" looks at indentation and blank lines instead of sentences; right for YAML and JSON too.
        stable: cut where the text itself says so, so that after an edit the cuts soon fall where they fell before: 1.1 to 1.7 chunks
            change on average, at about one more chunk in nine. Where a cut falls depends on some chunks behind it, too.

    Raises:
        InputError: a budget under 16 tokens.
    """
    if budget_tokens < LEAST_BUDGET:
        raise InputError(
            f"A text cannot be split into chunks of {budget_tokens} tokens.", f"Give a budget of at least {LEAST_BUDGET} tokens."
        )
    if not text:
        return []
    return list(_Packer(text, budget_tokens, kind, stable=stable).spans())
