"""What recall must equal: the same formulas over plain lists, with nothing kept from one call to the next."""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabula.memory import Query, Record, View, embedded_text, fold, terms_of, text_hash
from fabula.store import RecordRow, Store
from fabula.text import lexical_terms

LIVE = ("active", "pending", "unresolved")


class HashEmbedder:
    """Words in common make texts alike; nothing is learnt. `meaning` maps a search term to what it means."""

    def __init__(self, dim: int = 32, name: str = "hash", meaning: dict[str, str] | None = None):
        self.id, self.dim, self.meaning = name, dim, meaning or {}
        self.texts = 0

    async def ready(self) -> None:
        pass

    async def passages(self, texts: list[str], /) -> NDArray[np.float32]:
        self.texts += len(texts)
        return np.stack([self.vector(text) for text in texts])

    async def queries(self, texts: list[str], /) -> NDArray[np.float32]:
        self.texts += len(texts)
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> NDArray[np.float32]:
        out = np.full(self.dim, 0.01, np.float64)
        for term in lexical_terms(text):
            digest = hashlib.sha256((self.id + self.meaning.get(term, term)).encode()).digest()
            for at, weight in struct.iter_unpack("<Hb", digest[:12]):
                out[at % self.dim] += weight / 64
        return (out / np.linalg.norm(out)).astype(np.float32)


def rows_seen(store: Store, view: View) -> list[RecordRow]:
    """The events of a view; what was withdrawn later than `read_at` is gone too."""
    now = {(row.id, row.pos, row.event) for row in store.records(view.line, lanes=view.lanes, entities=view.entities)}
    rows = store.records(view.line, lanes=view.lanes, before=view.time, read_at=view.read_at, entities=view.entities)
    return [row for row in rows if (row.id, row.pos, row.event) in now]


def minmax(x: list[float]) -> list[float]:
    low, high = (min(x), max(x)) if x else (0.0, 0.0)
    return [(v - low) / (high - low) if high - low > 1e-4 else 0.0 for v in x]


def idf(n: int, df: int) -> float:
    return math.log(1 + (n - max(df, 1) + 0.5) / (max(df, 1) + 0.5))


def coverage(query: Sequence[str], docs: list[list[str]]) -> list[float]:
    terms, n = dict.fromkeys(query), len(docs)
    if not terms or not docs:
        return [0.0] * n
    counts = [Counter(doc) for doc in docs]
    mean = max(sum(map(len, docs)) / n, 1.0)
    weight = {term: idf(n, sum(term in c for c in counts)) for term in terms}
    out = []
    for doc, count in zip(docs, counts, strict=True):
        spread = 1.2 * (0.25 + 0.75 * len(doc) / mean)
        out.append(sum(weight[t] * count[t] / (count[t] + spread) for t in terms if count[t]) / sum(weight.values()))
    return out


def names_of(record: Record) -> list[str]:
    return [name for name in dict.fromkeys((record.owner, record.subject, *record.entities)) if name]


def named(records: list[Record], query: Query, terms: list[str]) -> list[bool]:
    everyone = dict.fromkeys(name for record in records for name in names_of(record))
    words = {name: [frozenset(lexical_terms(word)) for word in name.split() if lexical_terms(word)] for name in everyone}
    bearers = Counter(word for own in words.values() for word in set(own))
    meant = set()
    for name, own in words.items():
        said = [word for word in own if word <= set(terms)]
        if said and (len(said) == len(own) or any(bearers[word] == 1 for word in said)):
            meant.add(name)
    if query.named:
        meant = set(query.named)
    return [bool(meant & set(names_of(record))) for record in records]


def scores(records: list[Record], query: Query, store: Store, embedder: HashEmbedder | None) -> list[float]:
    """Scores of the policy `fact`. `records` are in the order (episode in order of first appearance, time, lane, id)."""
    n = len(records)
    terms = lexical_terms(query.text)
    joined = [i > 0 and bool(records[i].episode) and records[i].episode == records[i - 1].episode for i in range(n)]
    alone = [terms_of(record) for record in records]
    joint = [(alone[i - 1] if joined[i] else []) + alone[i] for i in range(n)]
    lexical = [(a + b) / 2 for a, b in zip(coverage(terms, alone), coverage(terms, joint), strict=True)]
    if embedder is None:
        h = [c / (max(lexical) or 1) for c in lexical]
    else:
        vectors = store.vectors([text_hash(embedded_text(r)) for r in records], embedder.id)
        asked = embedder.vector(query.text).astype(np.float64)
        cosine = [float(np.frombuffer(vectors[text_hash(embedded_text(r))], "<f2").astype(np.float64) @ asked) for r in records]
        h = [0.5 * d + c for d, c in zip(minmax(cosine), lexical, strict=True)]
    groups: dict[object, list[int]] = {}
    for i, record in enumerate(records):
        groups.setdefault(record.episode or i, []).append(i)
    best = {key: sum(sorted((h[i] for i in own), reverse=True)[:3]) / min(3, len(own)) for key, own in groups.items()}
    stretched = dict(zip(best, minmax(list(best.values())), strict=True))
    bonus = named(records, query, terms)
    out = []
    for i, record in enumerate(records):
        beside = (h[i - 1] if joined[i] else 0) + (h[i + 1] if i + 1 < n and joined[i + 1] else 0)
        cited = max((h[j] for j, other in enumerate(records) if record.id in other.evidence), default=0)
        weight = min(math.log1p(len(alone[i])) / math.log1p(64), 1) if record.importance is None else (record.importance - 1) / 9
        told = h[i] + 0.1 * beside + 0.2 * stretched[record.episode or i] + 0.5 * cited + 0.1 * bonus[i]
        hours = max(query.now - max(record.happened, query.accessed.get(record.id, record.happened)), 0)
        out.append(-math.inf if embedder is None and told <= 0 else told + 0.1 * weight + 0.05 * 0.995**hours)
    return out


def visible(records: list[Record], query: Query) -> list[Record]:
    """What may be found, in the order in which `scores` wants it."""
    out = [
        r
        for r in records
        if r.status in LIVE
        and (not query.kinds or r.kind in query.kinds)
        and (not query.owners or r.owner in query.owners)
        and (not query.asker or not r.audience or query.asker in (*r.audience, r.owner))
    ]
    return sorted(out, key=lambda r: (r.episode, r.time, r.lane, r.id))


def ranking(store: Store, view: View, query: Query, embedder: HashEmbedder | None) -> list[tuple[Record, float]]:
    """All records that may be found, best first, ties by (time, lane, id)."""
    records = visible(list(fold(rows_seen(store, view)).values()), query)
    pairs = zip(records, scores(records, query, store, embedder), strict=True)
    return sorted(((r, s) for r, s in pairs if s > -math.inf), key=lambda p: (-p[1], p[0].time, p[0].lane, p[0].id))
