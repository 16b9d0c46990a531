"""Growing arrays and postings: what a hot scope is made of."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_TF = 255


class Column:
    """A one-dimensional array that grows at its end. What is appended counts from the next `flush` on."""

    def __init__(self, dtype: Any):
        self._held: NDArray[Any] = np.empty(0, dtype)
        self._size = 0
        self._fresh: list[Any] = []

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        self._fresh.append(value)

    def flush(self) -> None:
        """Take in what was appended."""
        if not self._fresh:
            return
        need = self._size + len(self._fresh)
        if need > len(self._held):
            self._held = grown(self._held, self._size, need)
        self._held[self._size : need] = self._fresh
        self._size = need
        self._fresh = []

    @property
    def values(self) -> NDArray[Any]:
        """(n,) view of what was flushed; writing to it writes to the column."""
        return self._held[: self._size]


def grown(held: NDArray[Any], size: int, need: int) -> NDArray[Any]:
    """A larger copy: exactly as large as needed the first time, then geometrically larger."""
    room = need if size == 0 else max(need, size + size // 2, 64)
    larger = np.empty((room, *held.shape[1:]), held.dtype)
    larger[:size] = held[:size]
    return larger


class Matrix:
    """Vectors of the documents of a scope, float32, a row a document; rows without a vector are zero."""

    def __init__(self, dim: int):
        self.dim = dim
        self._held = np.empty((0, dim), np.float32)
        self._has = np.empty(0, np.bool_)
        self._size = 0

    def extend(self, size: int) -> None:
        """Make room for `size` documents in all."""
        if size > len(self._held):
            self._held, self._has = grown(self._held, self._size, size), grown(self._has, self._size, size)
        self._held[self._size : size] = 0
        self._has[self._size : size] = False
        self._size = size

    def put(self, doc: int, vector: bytes) -> bool:
        """Set a row from a float16 vector; False where the vector has another size."""
        if len(vector) != self.dim * 2:
            return False
        self._held[doc] = np.frombuffer(vector, "<f2")
        self._has[doc] = True
        return True

    def similar(self, query: NDArray[np.float32], docs: NDArray[np.int64]) -> NDArray[np.float32]:
        """(len(docs),) dot products with a query (dim,)."""
        if len(docs) * 4 < self._size:
            return self._held[docs] @ query
        return (self._held[: self._size] @ query)[docs]

    @property
    def has(self) -> NDArray[np.bool_]:
        """(n,) which documents have a vector."""
        return self._has[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self._size * self.dim * 4


class Postings:
    """For each search term the documents that hold it and how often; one number a pair: document * 256 + count."""

    def __init__(self) -> None:
        self._of: dict[str, array[int]] = {}
        self.pairs = 0

    def add(self, doc: int, terms: Iterable[str]) -> int:
        """Index a document; returns how many terms it has, with repeats. `doc` < 2**24."""
        counts: dict[str, int] = {}
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
        of, high = self._of, doc << 8
        for term, count in counts.items():
            held = of.get(term)
            if held is None:
                held = of[term] = array("I")
            held.append(high | min(count, _MOST_TF))
        self.pairs += len(counts)
        return sum(counts.values())

    def of(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """(documents, counts) of a term; None where no document has it."""
        held = self._of.get(term)
        if held is None:
            return None
        codes = np.array(held, np.int64)
        return codes >> 8, (codes & _MOST_TF).astype(np.float64)

    @property
    def terms(self) -> int:
        """How many different terms."""
        return len(self._of)


class Names:
    """The names in a scope, and which of them a text names: by equality of search terms, so that inflected and Chinese names count."""

    def __init__(self, split: Callable[[str], list[str]]):
        self._split = split
        self.number: dict[str, int] = {}
        self._words: list[list[frozenset[str]]] = []
        self._with: dict[frozenset[str], set[int]] = {}
        self._holding: dict[str, set[frozenset[str]]] = {}
        self.docs: list[array[int]] = []

    def add(self, doc: int, names: Iterable[str]) -> None:
        """Note that a document is about these names."""
        for name in dict.fromkeys(names):
            if name:
                self.docs[self.of(name)].append(doc)

    def of(self, name: str) -> int:
        """The number of a name, new or known."""
        at = self.number.get(name)
        if at is None:
            at = self.number[name] = len(self._words)
            words = [frozenset(terms) for terms in map(self._split, name.split()) if terms]
            self._words.append(words)
            self.docs.append(array("I"))
            for word in words:
                self._with.setdefault(word, set()).add(at)
                for term in word:
                    self._holding.setdefault(term, set()).add(word)
        return at

    def named(self, terms: frozenset[str], place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of documents about somebody of whom a text with these terms holds every word, or a word that is of no other visible
        name ("Orlov" names Captain Orlov).

        Args:
            terms: search terms of the text.
            place: (n,) document → place; -1 = not visible.
        """
        said = {word for term in terms for word in self._holding.get(term, ()) if word <= terms}
        seen = {at: self.places(at, place) for at in {at for word in said for at in self._with[word]}}
        bearers = {word: sum(1 for at in self._with[word] if len(seen[at])) for word in said}
        own = {word for word in said if bearers[word] == 1}
        meant = [at for at in sorted(seen) if said.issuperset(self._words[at]) or not own.isdisjoint(self._words[at])]
        return np.concatenate([np.empty(0, np.int64), *(seen[at] for at in meant)])

    def places(self, at: int, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of the visible documents about a name."""
        places = place[np.array(self.docs[at], np.int64)]
        return places[places >= 0]

    def equal(self, name: str) -> list[int]:
        """Names that are this one: letter by letter, else all its terms."""
        if name in self.number:
            return [self.number[name]]
        terms = frozenset(self._split(name))
        return [at for at, words in enumerate(self._words) if words and frozenset[str]().union(*words) == terms]
