"""The policy `fact` and the arithmetic under it: dense and lexical similarity fused by query coverage, then features of the context.

With D = minmax(cosine), c1 and c2 the coverage of the question by a record alone and together with the record before it:

    h     = 0.5 D + (c1 + c2) / 2                 without an embedder: h = (c1 + c2) / 2, over the greatest
    score = h + 0.1 (h before + h after)          neighbours, inside the episode
          + 0.2 minmax(mean of the 3 best h of the episode)
          + 0.5 (best h of a derived record that cites this one)
          + 0.1 [by or about somebody whom the question names]
          + 0.1 importance + 0.05 recency         both 0 .. 1

On questions spread over long dialogues this finds 0.77 of the evidence within ten records, cosine alone 0.53, the sum of relevance, recency
and importance 0.12. Coverage (BM25 divided by the sum of the idf of the question's terms) takes the place of min-max on the lexical
side because a lone match on a name, stretched to 1, would outweigh a good paraphrase. Reciprocal ranks would throw the gain away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabula.memory._policy import Ranking
from fabula.memory._record import Query, Record
from fabula.memory._scope import Bools, Floats, HotScope, Ints, Visible

K1, B = 1.2, 0.75
"""Of BM25, in the form whose sum over the terms stays below the sum of their idf."""
DENSE, LEXICAL, NEIGHBOURS, EPISODE, CITED, NAMED, IMPORTANCE, RECENCY = 0.5, 1.0, 0.1, 0.2, 0.5, 0.1, 0.1, 0.05
DECAY = 0.995
"""Recency of a story hour ago."""
LARGE = 20_000
"""Above so many records the minimum of min-max is the score at `TOP`, and only the `TOP` of each side count."""
TOP = 200
_EQUAL = 1e-4
"""Values that differ by no more are equal: what remains is the rounding of float32, which depends on where a row stands."""
_LONG = 64
"""Search terms of a record that counts as long where importance is not rated."""


class Scene:
    """A `Sight` on a hot scope."""

    def __init__(self, scope: HotScope, seen: Visible, query: Query, terms: Sequence[str], vector: NDArray[np.float32] | None):
        self._scope, self._seen, self._query, self._vector = scope, seen, query, vector
        self._terms = tuple(dict.fromkeys(terms))
        self._coverage: Floats | None = None

    @property
    def query(self) -> Query:
        """The question."""
        return self._query

    @property
    def size(self) -> int:
        """How many records."""
        return len(self._seen.docs)

    def record(self, place: int) -> Record:
        """The record at a place."""
        return self._scope.records[int(self._seen.docs[place])]

    def cosine(self) -> Floats | None:
        """(m,); nan = no vector."""
        if self._vector is None or self._scope.matrix is None:
            return None
        similar = self._scope.matrix.similar(self._vector, self._seen.docs).astype(np.float64)
        similar = similar.round(6)
        similar[~self._scope.matrix.has[self._seen.docs]] = np.nan
        return similar

    def importance(self) -> Floats:
        """(m,) 1 .. 10; nan = not rated."""
        return self._scope.importance(self._seen.docs)

    def accessed(self) -> Floats:
        """(m,) story hours."""
        hours = self._scope.happened(self._seen.docs)
        if self._query.accessed:
            for ident, hour in self._query.accessed.items():
                place = self._scope.places(self._seen, ident)
                if place is not None:
                    hours[place] = max(hours[place], hour)
        return hours

    def named(self) -> Bools:
        """(m,)."""
        names, place = self._scope.names, self._seen.place
        out = np.zeros(self.size, np.bool_)
        if not self._query.named:
            out[names.named(frozenset(self._terms), place)] = True
        for name in self._query.named:
            for at in names.equal(name):
                out[names.places(at, place)] = True
        return out

    def coverage(self) -> Floats:
        """(m,) 0 .. 1."""
        if self._coverage is None:
            self._coverage = self._cover()
        return self._coverage

    def _cover(self) -> Floats:
        """Document frequencies and lengths are of the visible records, not of the index, which holds other times and states too."""
        seen, size = self._seen, self.size
        alone, joint = np.zeros(size), np.zeros(size)
        most_alone = most_joint = 0.0
        mean_alone, mean_joint = (max(float(x.mean()), 1.0) if size else 1.0 for x in (seen.length, seen.joint_length))
        held = np.zeros(size)
        nothing = np.empty(0, np.int64), np.empty(0)
        for term in self._terms:
            docs, counts = self._scope.postings.of(term) or nothing
            places = seen.place[docs]
            counts, places = counts[places >= 0], places[places >= 0]
            idf = _idf(size, len(places))
            most_alone += idf
            alone[places] += idf * _saturated(counts, seen.length[places], mean_alone)
            held[places] = counts
            inside = places + 1 < size
            after, after_counts = places[inside] + 1, counts[inside]
            follows = seen.joined[after]
            after, after_counts = after[follows], after_counts[follows]
            both = np.concatenate([places, after[held[after] == 0]])
            held[after] += after_counts
            idf = _idf(size, len(both))
            most_joint += idf
            joint[both] += idf * _saturated(held[both], seen.joint_length[both], mean_joint)
            held[both] = 0
        return (alone / most_alone + joint / most_joint) / 2 if self._terms else alone

    def fact(self) -> Ranking:
        """The ranking of the policy `fact`."""
        size = self.size
        dense, lexical = self._sides()
        h = dense + lexical
        parts: dict[str, Floats] = {"dense": dense, "lexical": lexical}
        parts["neighbours"] = NEIGHBOURS * beside(h, self._seen.joined)
        parts["episode"] = EPISODE * episodes(h, self._seen.group)
        source, target = self._scope.citations(self._seen)
        if len(source):
            cited = np.zeros(size)
            np.maximum.at(cited, target, h[source])
            parts["cited"] = CITED * cited
        parts["named"] = NAMED * self.named().astype(np.float64)
        eligible = None if self._vector is not None else np.sum(list(parts.values()), axis=0) > 0
        rated = self.importance()
        unrated = np.minimum(np.log1p(self._seen.length) / np.log1p(_LONG), 1)
        parts["importance"] = IMPORTANCE * np.where(np.isnan(rated), unrated, (rated - 1) / 9)
        parts["recency"] = RECENCY * DECAY ** np.maximum(self._query.now - self.accessed(), 0)
        return Ranking(parts, eligible)

    def _sides(self) -> tuple[Floats, Floats]:
        """(dense, lexical) as they add up to h."""
        lexical, cosine = self.coverage(), self.cosine()
        if cosine is None:
            if self.size > LARGE:
                lexical = np.where(lexical >= _floor(lexical), lexical, 0.0)
            return np.zeros(self.size), LEXICAL * lexical / (float(lexical.max(initial=0.0)) or 1.0)
        known = cosine[~np.isnan(cosine)]
        cosine = np.where(np.isnan(cosine), known.mean() if len(known) else 0.0, cosine)  # no vector: neither for nor against
        dense = minmax(cosine)
        if self.size > LARGE:
            near = (dense > 0) | (lexical >= _floor(lexical))
            lexical = np.where(near, lexical, 0.0)
        return DENSE * dense, LEXICAL * lexical


def _idf(size: int, having: int) -> float:
    """A term that nobody has weighs as much as one that one record has."""
    having = max(having, 1)
    return float(np.log1p((size - having + 0.5) / (having + 0.5)))


def _saturated(counts: Floats, length: Floats, mean: float) -> Floats:
    return counts / (counts + K1 * (1 - B + B * length / mean))


def _floor(x: Floats) -> float:
    return float(np.partition(x, len(x) - TOP)[len(x) - TOP])


def minmax(x: Floats) -> Floats:
    """Stretched to 0 .. 1; zeros where all are equal. Of many values the `TOP`-th greatest is the minimum."""
    if not len(x):
        return x
    low, high = _floor(x) if len(x) > LARGE else float(x.min()), float(x.max())
    low = low if low < high else float(x.min())
    return np.maximum(x - low, 0) / (high - low) if high - low > _EQUAL else np.zeros(len(x))


def beside(h: Floats, joined: Bools) -> Floats:
    """(m,) sum of the neighbours' h inside the episode."""
    out = np.zeros(len(h))
    out[1:] += h[:-1] * joined[1:]
    out[:-1] += h[1:] * joined[1:]
    return out


def episodes(h: Floats, group: Ints) -> Floats:
    """(m,) the mean of the three best h of a record's episode (of as many as there are), stretched over the episodes to 0 .. 1."""
    if not len(h):
        return h
    count = int(group[-1]) + 1
    some = np.flatnonzero(h)
    some = some[np.lexsort((-h[some], group[some]))]
    of = group[some]
    first = np.searchsorted(of, of)
    best = some[np.arange(len(some)) - first < 3]
    total = np.bincount(group[best], h[best], count)
    mean = total / np.minimum(np.bincount(group, minlength=count), 3)
    low, high = float(mean.min()), float(mean.max())
    stretched: Floats = (mean - low) / (high - low) if high - low > _EQUAL else np.zeros(count)
    return stretched[group]
