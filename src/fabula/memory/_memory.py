"""The memory of a library: recall, vectors, and the current records of a view."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fabula.errors import NotFound
from fabula.memory._choose import AHEAD, check, choose
from fabula.memory._embedder import Embedder
from fabula.memory._policy import policy
from fabula.memory._record import Found, Query, Recalled, Record, View
from fabula.memory._wording import embedded_text, text_hash
from fabula.store import LIBRARY, Store, VectorRow
from fabula.text import lexical_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fabula.memory._policy import Ranking, Sight
    from fabula.memory._scope import HotScope, Place, Visible

_BATCH = 64
"""Texts embedded and committed at once in a rebuild."""
_FEW = 0.1
"""While more than this share of the records lacks a vector, a recall goes by words only."""


class Memory:
    """Recall over a store. Keeps hot scopes in this process; nothing in them is anything but derived.

    Args:
        store: the library.
        embedder: None = recall by words only, and no vectors are made.
        most_bytes: how much memory hot scopes may take before the least recently used is dropped; the one in use always stays.
    """

    def __init__(self, store: Store, embedder: Embedder | None = None, *, most_bytes: int = 400_000_000):
        self.store, self.embedder, self.most_bytes = store, embedder, most_bytes
        self._scopes: OrderedDict[Place, HotScope] = OrderedDict()
        self._ready = False

    # -- recall ------------------------------------------------------------------------------------------------------------------

    async def recall(self, view: View, query: Query) -> Recalled:
        """What the view's memory has on a question, best first, within `query.limit` records and `query.budget` tokens.

        The same library, view, query and embedder give the same answer.

        Raises:
            InputError: an empty question, a negative limit or budget, an unknown policy.
            NotPossible: a policy that a way in brings which is not loaded.
            ModelError: the embedder failed.
        """
        function = policy(query.policy)
        check(query)
        notes, vector = await self._vector(view, query)
        # The scope is looked up again: while the embedder worked, others may have committed, or dropped it.
        scope = self._scope(view)
        seen = scope.visible(view, query)
        sight = _sight(scope, seen, query, vector)
        ranked = _ranked(sight, function(sight))
        current = scope.current(view) if any(found.record.presupposes for found in ranked) else None

        def bring(ident: str) -> Record | None:
            doc = None if current is None else scope.doc(ident, current)
            return None if doc is None or not scope.recalls(doc, query.asker) else scope.records[doc]

        choice = choose(ranked, query, bring)
        used = "none" if vector is None or self.embedder is None else self.embedder.id
        return Recalled(choice.found, choice.cut, query.policy, used, notes)

    async def _vector(self, view: View, query: Query) -> tuple[tuple[str, ...], NDArray[np.float32] | None]:
        """The question's vector, or None where words alone must do; and what the person should know of it."""
        if self.embedder is None:
            return (), None
        await self._make_ready()
        scope = self._scope(view)
        seen = scope.visible(view, query)
        lacking, whole = scope.lacking(seen.docs), len(seen.docs)
        if not whole:
            return (), None
        if lacking > _FEW * whole:
            many = f"{lacking} of {whole} memories have no vector of {self.embedder.id}, being made with another embedder or none"
            return (f"{many}. Until they are rebuilt, the memory is searched by words only.",), None
        vector = (await self.embedder.queries([query.text]))[0]
        few = f"{lacking} of {whole} memories have no vector of {self.embedder.id} yet and are found by their words only."
        return (few,) if lacking else (), vector

    # -- records -----------------------------------------------------------------------------------------------------------------

    def records(self, view: View, *, every: bool = False) -> list[Record]:
        """Current records that the view sees, by (logical time, lane, id).

        Args:
            view: whose memory, and as of when.
            every: also those that are superseded, ended or retracted.
        """
        from fabula.memory._scope import RECALLED

        scope = self._scope(view)
        docs = scope.current(view).nonzero()[0].tolist()
        records = [scope.records[doc] for doc in docs]
        return sorted((r for r in records if every or r.status in RECALLED), key=lambda r: (r.time, r.lane, r.id))

    def get(self, view: View, ident: str) -> Record:
        """The current state of a record, whatever its status.

        Raises:
            NotFound: the view sees no such record.
        """
        scope = self._scope(view)
        doc = scope.doc(ident, scope.current(view))
        if doc is None:
            raise NotFound(f"There is no memory {ident!r} here.", "List the memories with `fabula memory list`.")
        return scope.records[doc]

    # -- vectors -----------------------------------------------------------------------------------------------------------------

    async def vectors_for(self, records: Iterable[Record]) -> list[VectorRow]:
        """Vectors of records that are about to be committed; those that the library has are left out. Empty without an embedder.

        Raises:
            ModelError: the embedder failed.
        """
        if self.embedder is None:
            return []
        texts = {text_hash(text): text for text in map(embedded_text, records)}
        if texts:
            await self._make_ready()
        return await self._embed(self._without_vector(texts))

    async def _make_ready(self) -> None:
        """Until the embedder is ready, hot scopes are without vectors."""
        if self.embedder is not None and not self._ready:
            await self.embedder.ready()
            self._ready = True
            self.forget()

    def _without_vector(self, texts: dict[str, str]) -> dict[str, str]:
        assert self.embedder is not None
        there = self.store.vectors(list(texts), self.embedder.id) if texts else {}
        return {name: text for name, text in texts.items() if name not in there}

    async def _embed(self, texts: dict[str, str]) -> list[VectorRow]:
        import numpy as np

        assert self.embedder is not None
        if not texts:
            return []
        made = np.asarray(await self.embedder.passages(list(texts.values())), np.float32)
        made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
        return [VectorRow(name, self.embedder.id, row.astype("<f2").tobytes()) for name, row in zip(texts, made, strict=True)]

    def missing(self, view: View) -> int:
        """How many texts that a recall of this view could find have no vector of this embedder; 0 without an embedder."""
        return len(self._lacking(view))

    async def rebuild(self, view: View, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors of a view, in batches, each committed at once; recalls go on meanwhile. Returns how many were made.

        Args:
            view: whose memory.
            progress: called with (done, of how many) before the first and after each batch.

        Raises:
            ModelError: the embedder failed; what was made stays, and a later call goes on from there.
        """
        await self._make_ready()
        texts = self._lacking(view)
        run = view.line[0].run if view.line else LIBRARY
        names = list(texts)
        for at in range(0, len(names), _BATCH):
            if progress is not None:
                progress(at, len(names))
            rows = await self._embed({name: texts[name] for name in names[at : at + _BATCH]})
            with self.store.write(run, "vectors") as tx:
                for row in rows:
                    tx.add(row)
            for scope in self._scopes.values():
                scope.fill((row.hash, row.vector) for row in rows)
            await asyncio.sleep(0)
        if progress is not None:
            progress(len(names), len(names))
        return len(names)

    def _lacking(self, view: View) -> dict[str, str]:
        """Hash and text of the visible records without a vector."""
        if self.embedder is None:
            return {}
        scope = self._scope(view)
        texts = (embedded_text(scope.records[doc]) for doc in scope.visible(view, Query("")).docs.tolist())
        return self._without_vector({text_hash(text): text for text in texts})

    # -- care --------------------------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop what is kept hot. Needed after `Store.erase` and `Store.repair`; commits, withdrawals and forks are noticed without it."""
        self._scopes.clear()

    def close(self) -> None:
        """Drop what is kept hot. The store and the embedder are whoever made them to close."""
        self.forget()

    def _scope(self, view: View) -> HotScope:
        from fabula.memory._scope import HotScope, place_of

        place = place_of(view)
        scope = self._scopes.get(place)
        if scope is None:
            scope = HotScope(self.store, self.embedder if self._ready else None, place)
        scope.refresh()
        self._scopes[place] = scope
        self._scopes.move_to_end(place)
        total = sum(one.nbytes for one in self._scopes.values())
        while total > self.most_bytes and len(self._scopes) > 1:
            total -= self._scopes.popitem(last=False)[1].nbytes
        return scope


def _sight(scope: HotScope, seen: Visible, query: Query, vector: NDArray[np.float32] | None) -> Sight:
    from fabula.memory._fact import Scene

    return Scene(scope, seen, query, lexical_terms(query.text), vector)


def _ranked(sight: Sight, ranking: Ranking) -> Sequence[Found]:
    """The best records, as many as the choice can look at: by score, then by (logical time, lane, id)."""
    import numpy as np

    query, parts = sight.query, ranking.parts
    if not sight.size:
        return []
    score = np.sum(list(parts.values()), axis=0).round(6)
    ranked = score if ranking.eligible is None else np.where(ranking.eligible, score, -np.inf)
    most = min(sight.size, query.limit + len(query.exclude) + AHEAD)
    least = np.partition(ranked, sight.size - most)[sight.size - most]
    places = [int(place) for place in np.flatnonzero((ranked >= least) & (ranked > -np.inf))]

    def order(place: int) -> tuple[float, int, str, str]:
        record = sight.record(place)
        return -float(score[place]), record.time, record.lane, record.id

    places = [*ranking.always, *(place for place in sorted(places, key=order) if place not in ranking.always)]
    out = []
    for place in places:
        record = sight.record(place)
        if record.id not in query.exclude:
            shown = {name: float(part[place]) for name, part in parts.items() if part[place]}
            out.append(Found(record, float(score[place]), shown))
    return out[: query.limit + AHEAD]
