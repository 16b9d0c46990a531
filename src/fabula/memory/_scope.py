"""A hot scope: what one (line, lanes, entities) holds, as arrays, brought up to date by what was appended since.

A *document* is one state of one record. So views of one line that differ only in `time` or `read_at` share a scope, and each sees the
state of its moment: of run records, every state has the interval of logical times in which it is the current one; of library records there
is the state that all events lead to, and where a view sees only some of the events, one for just those. Documents never change; where a
record gets new events or loses some by a withdrawal, its documents are closed and made anew. What is withdrawn is gone for every view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fabula.memory._columns import Column, Matrix, Names, Postings
from fabula.memory._events import by_id, ordered, states
from fabula.memory._record import Query, Record, View
from fabula.memory._search import ways
from fabula.memory._wording import embedded_text, is_erased, terms_of, text_hash
from fabula.store import FAR, Among, Between, Reach, RecordRow, Store, WithdrawnRow
from fabula.text import lexical_terms

if TYPE_CHECKING:
    from fabula.memory._embedder import Embedder

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

OPEN = 2 * FAR
"""End of a state that no event has overtaken."""
NEVER = 4 * FAR
"""Beginning of a state that no view sees by logical time, or no more."""
ALWAYS = -1
"""Beginning of a library record's latest state."""
RECALLED = ("active", "pending", "unresolved")
"""Statuses that a recall may find."""
_KINDS = {kind: i for i, kind in enumerate(("observation", "reflection", "plan", "summary", "fact", "preference", "utterance"))}
_CHUNK = 2_000
"""Vectors asked of the store at once."""
_MOST_REFOLDED = 500
_KEPT_VIEWS = 4

Place = tuple[tuple[Reach, ...], tuple[str, ...] | None, tuple[str, ...]]


def place_of(view: View) -> Place:
    """What a hot scope is of: a view without its two moments."""
    return view.line, None if view.lanes is None else tuple(sorted(set(view.lanes))), tuple(sorted(set(view.entities)))


@dataclass(frozen=True, slots=True)
class Visible:
    """What a query may find, in the order (episode, logical time, lane, id). All arrays have a place for each of the m records."""

    docs: Ints
    place: Ints
    """(n,) document → place here; -1 = not visible."""
    joined: Bools
    """The place before is the neighbour: same episode."""
    group: Ints
    """Number of the episode, from 0 and ascending; a record without an episode is its own."""
    length: Floats
    """Search terms of the record."""
    joint_length: Floats
    """… and of the neighbour before it."""


class _Library:
    """The events of library records, and which of them a view sees."""

    def __init__(self) -> None:
        self.partial: dict[int, dict[tuple[int, ...], int | None]] = {}
        self.events: list[RecordRow] = []
        self._rows_of: dict[int, range] = {}
        self._number, self._time, self._pos = Column(np.int64), Column(np.int64), Column(np.int64)
        self._own, self._about, self._timed = Column(np.bool_), Column(np.bool_), Column(np.bool_)

    def take(self, number: int, events: Sequence[tuple[RecordRow, bool, bool, bool]]) -> None:
        """Events of a record in order, each with its ways of being seen."""
        self._rows_of[number] = range(len(self.events), len(self.events) + len(events))
        self.partial[number] = {}
        for row, own, about, timed in events:
            self.events.append(row)
            for column, value in (
                (self._number, number), (self._time, row.time), (self._pos, row.pos),
                (self._own, own), (self._about, about), (self._timed, timed),
            ):  # fmt: skip
                column.append(value)

    def drop(self, number: int) -> None:
        """Forget a record."""
        self.flush()
        for at in self._rows_of.pop(number, ()):
            self._number.values[at] = -1
        self.partial.pop(number, None)

    def flush(self) -> None:
        """Take in what is new."""
        for column in (self._number, self._time, self._pos, self._own, self._about, self._timed):
            column.flush()

    def behind(self, time: int, read_at: int) -> list[tuple[int, tuple[int, ...]]]:
        """Records of which a view sees only some events, or none, and which of `events` it sees."""
        self.flush()
        past = self._time.values < time
        seen = (self._own.values & past) | (self._about.values & (self._pos.values <= read_at) & (past | ~self._timed.values))
        numbers = [int(number) for number in np.unique(self._number.values[~seen]) if number >= 0]
        return [(number, tuple(at for at in self._rows_of[number] if seen[at])) for number in numbers]


class HotScope:
    """The records of one place. Not for several threads at once."""

    def __init__(self, store: Store, embedder: Embedder | None, place: Place):
        self._store, self._embedder = store, embedder
        self.line, self.lanes, self.entities = place
        self._pins = {reach.run: reach.pin for reach in self.line}
        self._clear()

    def _clear(self) -> None:
        self.pos = 0
        self.version = 0
        self.records: list[Record] = []
        self.missing: dict[str, list[int]] = {}
        self.postings, self.names = Postings(), Names(lexical_terms)
        self.matrix = Matrix(self._embedder.dim) if self._embedder is not None else None
        self._start, self._end, self._live = Column(np.int64), Column(np.int64), Column(np.bool_)
        self._kind, self._owner, self._restricted = Column(np.int8), Column(np.int32), Column(np.bool_)
        self._episode, self.length, self._importance, self._happened = (
            Column(np.int32),
            Column(np.int32),
            Column(np.float32),
            Column(np.float64),
        )
        self._number = Column(np.int32)
        self._citing, self._cited = Column(np.int32), Column(np.int32)
        self._library = _Library()
        self._numbers: dict[str, int] = {}
        self._idents: list[str] = []
        self._docs_of: dict[int, list[int]] = {}
        self._events_at: dict[int, set[int]] = {}
        self._episodes: dict[str, int] = {"": 0}
        self._keys: list[tuple[int, int, str, str, int]] = []
        self.order: Ints = np.empty(0, np.int64)
        self._closed = 0
        self._views: OrderedDict[tuple[object, ...], Visible] = OrderedDict()

    # -- bringing up to date -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what was committed since the last time. Cheap where nothing was."""
        pos = self._store.position()
        if pos == self.pos:
            return
        if not self.pos:
            self._reload(pos)
            return
        withdrawn = self._withdrawn(pos)
        gone = {row.target for row in withdrawn if row.pos <= self._pins.get(row.run, FAR)}
        touched = {number for target in gone for number in self._events_at.pop(target)}
        rows = self._store.records(self.line, lanes=self.lanes, entities=self.entities, after=self.pos)
        groups = by_id(row for row in rows if row.pos <= pos)
        known = {self._numbers[ident] for ident in groups if self._numbers.get(ident) in self._docs_of}
        for ident, events in groups.items():
            self._note_events(ident, events)
        touched |= known
        # What an ancestor withdraws behind the pin stays for its line, but not for who only sees it as part of the library.
        if len(gone) < len(withdrawn) or len(touched) > _MOST_REFOLDED or self._closed > max(1_000, len(self.records) // 2):
            self._reload(pos)
            return
        fresh = [self._refold(touched)] if touched else []
        fresh.append({ident: events for ident, events in groups.items() if self._numbers[ident] not in known})
        changed = bool(touched)
        for part in fresh:
            for ident, events in part.items():
                changed |= self._take(ident, events)
        self.pos = pos
        self._settle(changed)

    def _withdrawn(self, pos: int) -> list[WithdrawnRow]:
        """What was withdrawn since, of commits with events of this scope."""
        rows = self._store.rows(WithdrawnRow, pos=Between(self.pos + 1, pos))
        return [row for row in rows if row.target in self._events_at]

    def _reload(self, pos: int) -> None:
        version = self.version
        self._clear()
        rows = self._store.records(self.line, lanes=self.lanes, entities=self.entities)
        groups = by_id(row for row in rows if row.pos <= pos)
        del rows
        for ident in list(groups):
            events = groups.pop(ident)  # so that the rows of a large scope go as its documents come
            self._note_events(ident, events)
            self._take(ident, events)
        self.pos, self.version = pos, version
        self._settle(changed=True)

    def _note_events(self, ident: str, events: Sequence[RecordRow]) -> None:
        number = self._number_of(ident)
        for row in events:
            self._events_at.setdefault(row.pos, set()).add(number)

    def _number_of(self, ident: str) -> int:
        number = self._numbers.get(ident)
        if number is None:
            number = self._numbers[ident] = len(self._idents)
            self._idents.append(ident)
        return number

    def _refold(self, numbers: set[int]) -> dict[str, list[RecordRow]]:
        """Close all documents of these records; returns the events that they are to be made of."""
        for number in numbers:
            for doc in self._docs_of.pop(number, ()):
                self._start.values[doc] = NEVER
                self._closed += 1
            self._library.drop(number)
        rows = self._store.rows(RecordRow, id=Among(tuple(self._idents[number] for number in sorted(numbers))))
        return by_id(row for row in rows if self._numbers[row.id] in self._events_at.get(row.pos, ()) and self._sees_lane(row))

    def _sees_lane(self, row: RecordRow) -> bool:
        return row.reach == "library" or ((self.lanes is None or row.lane in self.lanes) and row.run in self._pins)

    def _take(self, ident: str, events: list[RecordRow]) -> bool:
        """Append the documents of one record; True if there are any."""
        number, made = self._numbers[ident], states(events)
        docs = self._docs_of[number] = []
        if made and made[0][0].reach == "library":
            docs.append(self._append(*made[-1], number, ALWAYS, OPEN))
            self._library.take(number, [(row, *ways(self.line, self.lanes, self.entities, row)) for row in ordered(events)])
            return True
        for i, (record, row) in enumerate(made):
            end = made[i + 1][1].time if i + 1 < len(made) else OPEN
            if end > row.time:
                docs.append(self._append(record, row, number, row.time, end))
        return bool(docs)

    def _append(self, record: Record, row: RecordRow, number: int, start: int, end: int) -> int:
        doc = len(self.records)
        self.records.append(record)
        live = record.status in RECALLED and not is_erased(record.text)
        for column, value in (
            (self._start, start), (self._end, end), (self._live, live), (self._number, number),
            (self._kind, _KINDS[record.kind]), (self._owner, self.names.of(record.owner)), (self._restricted, bool(record.audience)),
            (self._episode, self._episodes.setdefault(record.episode, len(self._episodes))),
            (self._importance, np.nan if record.importance is None else record.importance), (self._happened, record.happened),
        ):  # fmt: skip
            column.append(value)
        length = 0
        if live:
            fresh = row.event == "add"  # an edit may have been made from a state that was not the latest: its terms and hash are of that
            length = self.postings.add(doc, row.terms.split(" ") if fresh and row.terms else terms_of(record))
            self.names.add(doc, (record.owner, record.subject, *record.entities))
            for cited in record.evidence:
                self._citing.append(doc)
                self._cited.append(self._number_of(cited))
            if self.matrix is not None:
                self.missing.setdefault(row.hash if fresh and row.hash else text_hash(embedded_text(record)), []).append(doc)
        self.length.append(length)
        return doc

    def _settle(self, changed: bool) -> None:
        """Flush the columns, sort in what is new, and fetch its vectors."""
        for value in vars(self).values():
            if isinstance(value, Column):
                value.flush()
        first = len(self.order)
        if len(self.records) > first:
            self._sort_in(first)
        if self.matrix is not None:
            self.matrix.extend(len(self.records))
            changed |= self._fetch_vectors(first)
        if changed:
            self.version += 1
            self._views.clear()

    def _sort_in(self, first: int) -> None:
        episode = self._episode.values
        fresh = [(int(episode[doc]), r.time, r.lane, r.id, doc) for doc, r in enumerate(self.records[first:], first)]
        fresh.sort()
        docs = [key[-1] for key in fresh]
        if len(fresh) > 100:
            self._keys = sorted(self._keys + fresh)
            self.order = np.fromiter((key[-1] for key in self._keys), np.int64, len(self._keys))
            return
        at = [bisect_left(self._keys, key) for key in fresh]
        self.order = np.insert(self.order, at, docs)
        for key, place in zip(reversed(fresh), reversed(at), strict=True):
            self._keys.insert(place, key)

    # -- vectors -----------------------------------------------------------------------------------------------------------------

    def _fetch_vectors(self, first: int) -> bool:
        """Fetch vectors of new documents; of older ones without, if a probe says that some came (another process rebuilds them)."""
        hashes = [h for h, docs in self.missing.items() if docs[-1] >= first]
        found = self._fetch(hashes)
        old = [h for h, docs in self.missing.items() if docs[-1] < first]
        if old and self._fetch(old[:64]):
            self._fetch(old[64:])
            return True
        return found

    def _fetch(self, hashes: Sequence[str]) -> bool:
        assert self._embedder is not None
        found = False
        for at in range(0, len(hashes), _CHUNK):
            found |= self.fill(self._store.vectors(hashes[at : at + _CHUNK], self._embedder.id).items())
        return found

    def fill(self, vectors: Iterable[tuple[str, bytes]]) -> bool:
        """Set the vectors of these hashes; True if any was missing here."""
        found = False
        for name, vector in vectors:
            docs = self.missing.get(name)
            if docs and all(self.vectors.put(doc, vector) for doc in docs):
                del self.missing[name]
                found = True
        return found

    # -- what a view sees --------------------------------------------------------------------------------------------------------

    def current(self, view: View) -> Bools:
        """(n,) documents that are the current state of their record at a view's moment, whatever their status."""
        swaps = [(self._docs_of[number][0], self._partial(number, seen)) for number, seen in self._library.behind(view.time, view.read_at)]
        if len(self._start.values) < len(self.records):
            self._settle(changed=True)
        mask = (self._start.values < view.time) & (view.time <= self._end.values)
        for whole, partial in swaps:
            mask[whole] = False
            if partial is not None:
                mask[partial] = True
        return mask

    def _partial(self, number: int, seen: tuple[int, ...]) -> int | None:
        """The document of a library record of which a view sees only these events."""
        held = self._library.partial[number]
        if seen not in held:
            made = states([self._library.events[at] for at in seen])
            held[seen] = self._append(*made[-1], number, NEVER, NEVER) if made else None
            if made:
                self._docs_of[number].append(len(self.records) - 1)
        return held[seen]

    def visible(self, view: View, query: Query) -> Visible:
        """What a query may find at a view's moment."""
        key = (self.version, view.time, view.read_at, query.kinds, query.owners, query.asker)
        held = self._views.get(key)
        if held is None:
            held = self._views[key] = self._visible(view, query)
            while len(self._views) > _KEPT_VIEWS:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(key)
        return held

    def _visible(self, view: View, query: Query) -> Visible:
        mask = self.current(view) & self._live.values
        if query.kinds:
            mask &= np.isin(self._kind.values, [_KINDS[kind] for kind in query.kinds])
        if query.owners:
            mask &= np.isin(self._owner.values, [self.names.number[o] for o in query.owners if o in self.names.number])
        if query.asker:
            for doc in np.flatnonzero(mask & self._restricted.values).tolist():
                mask[doc] = self.recalls(doc, query.asker)
        docs = self.order[mask[self.order]]
        episode = self._episode.values[docs]
        joined = np.zeros(len(docs), np.bool_)
        joined[1:] = (episode[1:] == episode[:-1]) & (episode[1:] > 0)
        place = np.full(len(self.records), -1, np.int64)
        place[docs] = np.arange(len(docs))
        length = self.length.values[docs].astype(np.float64)
        joint = length.copy()
        joint[1:] += length[:-1] * joined[1:]
        return Visible(docs, place, joined, np.cumsum(~joined) - 1, length, joint)

    def importance(self, docs: Ints) -> Floats:
        """(m,) 1 .. 10; nan = not rated."""
        return self._importance.values[docs].astype(np.float64)

    def happened(self, docs: Ints) -> Floats:
        """(m,) story hours."""
        happened: Floats = self._happened.values[docs]
        return happened

    @property
    def vectors(self) -> Matrix:
        """The vectors; only where there is an embedder."""
        assert self.matrix is not None
        return self.matrix

    def lacking(self, docs: Ints) -> int:
        """How many of these documents have no vector."""
        return int(np.count_nonzero(~self.vectors.has[docs]))

    def citations(self, seen: Visible) -> tuple[Ints, Ints]:
        """Pairs of places (who cites, who is cited) that are both visible."""
        citing, cited = self._citing.values, self._cited.values
        if not len(citing):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        of = np.full(len(self._numbers), -1, np.int64)
        of[self._number.values[seen.docs]] = np.arange(len(seen.docs))
        source, target = seen.place[citing], of[cited]
        both = (source >= 0) & (target >= 0)
        return source[both], target[both]

    def places(self, seen: Visible, ident: str) -> int | None:
        """The place of a record; None = the query may not find it."""
        found = seen.place[self._docs_of.get(self._numbers.get(ident, -1), [])]
        return next((int(place) for place in found if place >= 0), None)

    def recalls(self, doc: int, asker: str) -> bool:
        """Whether a recall for `asker` may bring a document, as far as its status and audience go."""
        record = self.records[doc]
        return bool(self._live.values[doc]) and (not asker or not record.audience or asker in (record.owner, *record.audience))

    def doc(self, ident: str, current: Bools) -> int | None:
        """The current document of a record; None = it has none at this moment."""
        return next((doc for doc in self._docs_of.get(self._numbers.get(ident, -1), ()) if current[doc]), None)

    @property
    def nbytes(self) -> int:
        """About how much memory the scope takes."""
        return (
            (self.matrix.nbytes if self.matrix is not None else 0)
            + 1_800 * len(self.records)
            + 6 * self.postings.pairs
            + 300 * self.postings.terms
        )
