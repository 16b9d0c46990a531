"""Cuts that a text itself marks out, so that they fall where they fell before once an edit lies behind.

Chunks that are filled greedily differ from the edit to the end of the text, unless by luck. Here each place for a cut has a hash of what
stands before it, and the stretch between two *landmarks* (places that are the best of all for six budgets to both sides) is divided at
least cost: of places that are worse in kind, of chunks that are small, and of high hashes, by their logarithm, so that the rarest places
draw all divisions near them. An edit then changes its own chunk and those up to where the old division and the new one meet, a landmark
at the latest.

Tried and left, on simulated and on real texts: the lowest hash of the window 0.7 to 1.0 (2.4 chunks to read again on average, the worst
a quarter of the text), the same steered to landmarks (1.7 at a fill of 0.81; this: 1.6 at 0.84), costs by the hash itself or its root.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

_CONTEXT = 120
"""Characters before a place that its hash is made of."""

_DENSITY = 30
"""Places for a budget that are looked at: the best of each stretch, which too does not depend on what is far away."""

_RADIUS = 6
"""Budgets to both sides of a landmark without a better place."""

_ROOM = 0.985
"""Share of the budget that is planned with: counts before a cut are a token or two off where it falls into a token."""

_GOOD, _FAIR = 4.6, 2.0
"""Scores: none better is wanted; a landmark has this at least."""

_KIND, _SMALL, _EACH = 3.0, 8.0, 4.0
"""Costs, where the logarithm of a hash between 0 and 1 costs one: of a point of score, of an empty chunk (by the square), of a chunk."""


class _Place(NamedTuple):
    end: int
    tokens: int
    score: float
    key: tuple[int, int]
    """The lower, the better: its kind (the score, rounded, negative) and its hash."""


class _Lowest:
    """Of places that are added in order, those with the lowest key for `radius` tokens to both sides."""

    def __init__(self, radius: int, *, start: bool) -> None:
        self.radius = radius
        self.best: _Place | None = None  # none has beaten it yet
        self.rivals: deque[tuple[int, tuple[int, int]]] = deque()  # keys ascending
        if start:
            self.rivals.append((0, (-99, 0)))

    def add(self, place: _Place) -> _Place | None:
        """One more place; gives the one before it that can no longer be beaten, if there is one."""
        rivals, key, done = self.rivals, place.key, None
        if self.best and place.tokens - self.best.tokens > self.radius:
            done, self.best = self.best, None
        while rivals and rivals[-1][1] >= key:
            rivals.pop()
        while rivals and rivals[0][0] < place.tokens - self.radius:
            rivals.popleft()
        if not rivals:
            self.best = place
        rivals.append((place.tokens, key))
        return done


class Divider:
    """Divides a text whose places come in order into stretches between landmarks, and each stretch into chunks."""

    def __init__(self, text: str, budget: int) -> None:
        self.text, self.budget = text, budget
        self.places = _Lowest(budget // _DENSITY, start=False)
        self.landmarks = _Lowest(_RADIUS * budget, start=True)
        self.open = [_Place(0, 0, 0.0, (0, 0))]
        """The last landmark and the places behind it."""

    def add(self, ends: Sequence[int], before: Sequence[int], scores: Sequence[float]) -> Iterator[int]:
        """More places (offsets, tokens before each, scores); gives the ends of chunks that are settled by now."""
        for end, tokens, score in zip(ends, before, scores, strict=True):
            hashed = crc32(self.text[max(0, end - _CONTEXT) : end].encode())
            place = self.places.add(_Place(end, tokens, score, (-round(score), hashed)))
            if place:
                yield from self._keep(place)

    def rest(self, end: int, tokens: int) -> Iterator[int]:
        """The ends of the last chunks, of a text of so many characters and tokens."""
        if self.places.best and self.places.best.end < end:
            yield from self._keep(self.places.best)
        self.open.append(_Place(end, tokens, _GOOD, (0, 0)))
        yield from self._divide(self.open)

    def _keep(self, place: _Place) -> Iterator[int]:
        self.open.append(place)
        landmark = self.landmarks.add(place) if place.score >= _FAIR else None
        if landmark:
            at = next(i for i in range(len(self.open) - 1, 0, -1) if self.open[i].end == landmark.end)
            yield from self._divide(self.open[: at + 1])
            del self.open[:at]

    def _divide(self, places: list[_Place]) -> list[int]:
        """Ends of the chunks of a stretch, at least cost; its last place is one of them."""
        budget = self.budget
        tokens = [place.tokens for place in places]
        costs, back = [0.0], [0]
        first = 0
        for at in range(1, len(places)):
            place = places[at]
            while first < at - 1 and tokens[at] - tokens[first] > _ROOM * budget:
                first += 1
            best, chosen = math.inf, first
            for start in range(first, at):
                cost = costs[start] + _SMALL * (1 - (tokens[at] - tokens[start]) / budget) ** 2
                if cost < best:
                    best, chosen = cost, start
            costs.append(best + _EACH + _KIND * max(0.0, _GOOD - place.score) + math.log((place.key[1] + 1) / 2**32))
            back.append(chosen)
        ends = []
        at = len(places) - 1
        while at > 0:
            ends.append(places[at].end)
            at = back[at]
        return ends[::-1]
