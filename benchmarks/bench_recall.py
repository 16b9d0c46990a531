"""Claim: recall is quick however large the library is. Warm, the query's embedding apart: 100,000 records in one scope under 60 ms of CPU;
1,000,000 records with 1,000 in scope under 10 ms. The first query of a process, which loads the scope, is given apart.

    python benchmarks/bench_recall.py [--large 100000] [--library 1000000] [--folder DIR]

The embedder is a hash, so vectors have the size and spread of real ones and no meaning. CPU is this process's own
(`time.process_time`, all threads), so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.memory import Embedder, Memory, Query, Record, View, added, text_hash
from fabula.store import FAR, Reach, RecordRow, RunRow, Store, VectorRow, open_store
from fabula.text import lexical_terms

DIM = 384
PER_COMMIT = 25_000
IN_SCOPE = 1_000
QUERIES = 40
PEOPLE = ["Mira", "Anton", "Captain Orlov", "Isabella", "Мира", "Антон", "米拉", "安东"]
LIMIT_LARGE, LIMIT_LIBRARY = 60.0, 10.0
"""Milliseconds."""


class Hashed:
    """A vector drawn from the hash of the text."""

    id, dim = "hashed-for-benchmarks", DIM

    async def ready(self) -> None:
        """Nothing to do."""

    async def passages(self, texts: list[str], /) -> NDArray[np.float32]:
        """(n, DIM)."""
        return np.stack([unit(np.random.default_rng(list(hashlib.sha256(text.encode()).digest())), 1)[0] for text in texts])

    queries = passages


def unit(chance: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """(rows, DIM) vectors of length 1, near enough to each other as those of one story are."""
    out = chance.standard_normal((rows, DIM), np.float32) + 0.7
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out


class Words:
    """Sentences of made-up words whose frequencies fall as those of a language do, and their search terms without stemming again."""

    def __init__(self, chance: random.Random, size: int = 30_000):
        self._chance = chance
        vowels, rest = "aeiou", "bdfgklmnprstvz"
        self._words = list({"".join(chance.choice(rest) + chance.choice(vowels) for _ in range(chance.randint(2, 5))) for _ in range(size)})
        self._terms = [lexical_terms(word) for word in self._words]
        self._people = [(name, lexical_terms(name)) for name in PEOPLE]

    def sentence(self, length: int = 14) -> tuple[str, str, list[str]]:
        """(owner, text, terms of both)."""
        owner, terms = self._chance.choice(self._people)
        at = [int(len(self._words) ** self._chance.random()) - 1 for _ in range(length)]
        text = " ".join(self._words[i] for i in at) + "."
        return owner, text, [*terms, *(term for i in at for term in self._terms[i])]


def record_rows(words: Words, count: int, run: str, lane: str, **more: Any) -> Iterator[RecordRow]:
    """Events that add records, each with a text of its own."""
    pattern = added(Record("id", "observation", "x", run=run, lane=lane, episode="e", importance=5, **more))
    for time_ in range(count):
        owner, text, terms = words.sentence()
        data = {
            **pattern.data,
            "text": text,
            "owner": owner,
            "episode": f"chapter {time_ // 40}",
            "happened": float(time_),
            "importance": 1 + time_ % 10,
        }
        yield replace(
            pattern, id=f"{run}/{lane}/{time_}", time=time_, data=data, terms=" ".join(terms), hash=text_hash(f"{owner}: {text}")
        )  # fmt: skip


def fill(store: Store, rows: Iterator[RecordRow], chance: np.random.Generator) -> None:
    """Write records with their vectors in few transactions."""
    done = 0
    while part := [row for row, _ in zip(rows, range(PER_COMMIT), strict=False)]:
        vectors = unit(chance, len(part)).astype("<f2")
        with store.write("bench", "bulk") as tx:
            for row, vector in zip(part, vectors, strict=True):
                tx.add(row)
                tx.add(VectorRow(row.hash, Hashed.id, vector.tobytes()))
        done += len(part)
        print(f"\r  {done:,} records", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def library(store: Store, count: int, words: Words, chance: np.random.Generator) -> list[tuple[str, View]]:
    """A library of many scopes of `IN_SCOPE` records: a town's lanes, novels, and characters that are shared. One of each is returned."""
    scopes = max(count // IN_SCOPE, 3)

    def rows() -> Iterator[RecordRow]:
        for i in range(scopes):
            if i % 3 == 0:
                yield from record_rows(words, IN_SCOPE, "town", f"agent {i}")
            elif i % 3 == 1:
                yield from record_rows(words, IN_SCOPE, f"novel {i}", "main")
            else:
                yield from record_rows(words, IN_SCOPE, "library", f"lane {i}", reach="library", about=f"character {i}", by="person")

    fill(store, rows(), chance)
    middle = scopes // 2 // 3 * 3
    return [
        ("a lane of a town", View((Reach("town"),), (f"agent {middle}",))),
        ("a novel", View((Reach(f"novel {middle + 1}"),))),
        ("a shared character", View((Reach("bench"),), entities=(f"character {middle + 2}",))),
    ]


async def ask(store: Store, view: View, embedder: Embedder | None, words: Words) -> dict[str, float]:
    """CPU milliseconds of the first recall, of warm ones (median, worst of 95 %), and of one after a commit of one record."""
    memory = Memory(store, embedder)
    given = Given(embedder) if embedder is not None else None
    memory.embedder = given

    async def once(text: str) -> float:
        if given is not None:
            await given.prepare(text)
        start = time.process_time()
        recalled = await memory.recall(view, Query(text, now=1e5))
        spent = (time.process_time() - start) * 1_000
        assert recalled.found
        return spent

    texts = [f"{PEOPLE[i % len(PEOPLE)]} {words.sentence(8)[1]}" for i in range(QUERIES)]
    first = await once(texts[0])
    warm = sorted([await once(text) for text in texts])
    after = []
    for i, text in enumerate(texts[:10]):
        where = memory.records(replace(view, read_at=FAR))[0]
        row = added(replace(where, id=f"new {view!r} {embedder is None} {i}", text=words.sentence()[1], time=10**6 + i))
        with store.write("bench", "step") as tx:
            tx.add(row)
            for vector in await memory.vectors_for([replace(where, text=row.data["text"])]):
                tx.add(vector)
        after.append(await once(text))
    memory.close()
    return {"first": first, "median": warm[len(warm) // 2], "worst": warm[int(len(warm) * 0.95)], "after": sorted(after)[5]}


class Given:
    """The embedder with the query's vector made beforehand, so that its making is not measured."""

    def __init__(self, inner: Embedder):
        self._inner, self.id, self.dim = inner, inner.id, inner.dim
        self._held: NDArray[np.float32] | None = None

    async def prepare(self, text: str) -> None:
        """Make the next query's vector."""
        self._held = await self._inner.queries([text])

    async def ready(self) -> None:
        """Nothing to do."""

    async def passages(self, texts: list[str], /) -> NDArray[np.float32]:
        """As the inner embedder."""
        return await self._inner.passages(texts)

    async def queries(self, _: list[str], /) -> NDArray[np.float32]:
        """The vector made beforehand."""
        assert self._held is not None
        return self._held


def size_of(folder: Path, name: str) -> int:
    """Bytes of a library with what belongs to it."""
    return sum(file.stat().st_size for file in folder.glob(f"{name}*"))


async def measure(folder: Path, large: int, whole: int) -> int:
    """Build both libraries, ask them, print the table; 0 where the claims hold."""
    words, chance, over = Words(random.Random(1)), np.random.default_rng(1), 0
    print(f"{'scope':44} {'first':>9} {'warm':>8} {'95 %':>8} {'after a commit':>15}   CPU in ms")
    for size, limit in ((large, LIMIT_LARGE), (whole, LIMIT_LIBRARY)):
        start, store = time.process_time(), open_store(folder / f"{size}.db")
        with store.write("bench", "create") as tx:
            for run in ("bench", "large"):
                tx.add(RunRow(run, "novel", "", "s", "s", {}))
        if limit == LIMIT_LARGE:
            fill(store, record_rows(words, size, "large", "main"), chance)
            scopes = [(f"one of {size:,} records", View((Reach("large"),)))]
        else:
            scopes = [(f"{name}, 1,000 of {size:,}", view) for name, view in library(store, size, words, chance)]
        built = time.process_time() - start
        for name, view in scopes:
            for kind, embedder in (("", Hashed()), (", by words only", None)):
                spent = await ask(store, view, embedder, words)
                print(f"{name + kind:44} {spent['first']:9.0f} {spent['median']:8.2f} {spent['worst']:8.2f} {spent['after']:15.2f}")
                over += spent["median"] > limit
        store.close()
        bytes_ = size_of(folder, f"{size}.db")
        print(f"  built in {built:.0f} s of CPU; {bytes_ / 1e6:,.0f} MB; limit {limit:g} ms warm")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"most memory of the process {most:,.0f} MB; {'over' if over else 'within'} the limits")
    return 1 if over else 0


SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""What a machine's settings say of its processor is for other processes; here numpy finds out by itself."""


def main() -> int:
    """Measure, in a process without those settings."""
    if any(name in os.environ for name in SETTINGS):
        os.execve(sys.executable, [sys.executable, *sys.argv], {name: value for name, value in os.environ.items() if name not in SETTINGS})
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", type=int, default=100_000, help="records of the one large scope")
    parser.add_argument("--library", type=int, default=1_000_000, help="records of the library of many scopes of 1,000")
    parser.add_argument(
        "--folder", type=Path, help="where to build the libraries (1,000,000 records take about 2 GB); default: a temporary folder"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return asyncio.run(measure(Path(folder), options.large, options.library))


if __name__ == "__main__":
    sys.exit(main())
