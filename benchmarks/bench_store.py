"""What the store costs, as ratios against plain sqlite3 in the same run: `python benchmarks/store.py`.

Plain means the least that does the same to the disk: one INSERT of the same text in one transaction, or one SELECT by key,
with WAL and `synchronous=FULL`. CPU seconds of this process are compared, since a disk's wall time varies tenfold.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fabula.store import (
    Address,
    BegunRow,
    Between,
    CallRow,
    PieceRow,
    Reach,
    RecallRow,
    RecordRow,
    RunRow,
    StepRow,
    Store,
    VectorRow,
    open_store,
)

STEPS = 1000
PASSAGE = "The harbour was quiet that night, and Mira counted the boats once more before she went in. " * 22
PROMPT = "".join(
    f"{number}. What is known of the harbour, its boats and its people, in the words of the passages so far. " for number in range(90)
)
LINE = [Reach("novel")]


def cpu(act: Callable[[], object], times: int) -> float:
    """CPU microseconds of one act."""
    start = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - start) / times * 1e6


def plain(folder: Path) -> tuple[float, float]:
    """An append and a read of plain sqlite3, microseconds."""
    raw = sqlite3.connect(folder / "plain.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE log(n INTEGER PRIMARY KEY, run TEXT, kind TEXT, value TEXT)")

    def append() -> None:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO log(run, kind, value) VALUES (?, ?, ?)", ("novel", "x", PASSAGE))
        raw.execute("COMMIT")

    cost = cpu(append, 1000)
    read = cpu(lambda: raw.execute("SELECT * FROM log WHERE n = ?", (500,)).fetchone(), 5000)
    raw.close()
    return cost, read


def step(store: Store, time_: int) -> None:
    """The six transactions of a novel's step: two requests with their answers, a piece of the stream, the commit."""
    uses = []
    for purpose, answer in (("passage", PASSAGE), ("books", json.dumps({"memory": PASSAGE[:900], "plans": []}))):
        prompt = (("system", PROMPT[:2000]), ("user", f"{time_} {purpose} {PROMPT}"))
        usage = {"prompt_tokens": 2000, "answer_tokens": 700, "cost": 0.001}
        with store.write("novel", "ask") as tx:
            if purpose == "passage":
                tx.add(BegunRow("novel", "main", time_, 0, tx.pos, float(time_), 0.0))
                tx.add(RecallRow("novel", "main", time_, 0, "memories", "q", {"ids": [f"r{n}" for n in range(20)]}))
            tx.add(CallRow("novel", "main", time_, purpose, "", 0, 0, "f" * 64, "asked", prompt=prompt, model="m", usage=usage))
            asked = tx.pos
        if purpose == "passage":
            with store.write("novel", "partial") as tx:
                tx.add(CallRow("novel", "main", time_, purpose, "", 0, 0, "f" * 64, "partial", answer[:500], asked=asked))
        with store.write("novel", "answer") as tx:
            tx.add(CallRow("novel", "main", time_, purpose, "", 0, 0, "f" * 64, "answered", answer, asked=asked, usage=usage))
            uses.append(tx.pos)
    with store.write("novel", "commit") as tx:
        tx.add(StepRow("novel", "main", time_, 0, time_ + 1, {"passage": PASSAGE}, {"calls": uses, "recalls": ["memories"], "pieces": {}}))
        for name in ("memory", "plans", "place"):
            tx.add(PieceRow("novel", "main", name, time_ + 1, time_, PASSAGE[:900]))
        for number in range(4):
            name = f"r{time_}-{number}"
            terms = f"harbour boat mira night quiet count word{time_ % 97} word{number}"
            tx.add(RecordRow(name, "novel", "main", time_, "add", {"text": PASSAGE[:300]}, terms=terms, hash=f"{name:>064}"))
            tx.add(VectorRow(f"{name:>064}", "e5", bytes(768)))


READS: dict[str, Callable[[Store], object]] = {
    "verdict (a passage of 2,000 characters)": lambda s: s.verdict(LINE, Address("main", STEPS // 2, "passage", "", 0, 0), "f" * 64),
    "verdict that is not there": lambda s: s.verdict(LINE, Address("main", STEPS + 9, "passage", "", 0, 0), "f" * 64),
    "usage": lambda s: s.usage("novel"),
    "step_at": lambda s: s.step_at(LINE, "main", STEPS // 2),
    "undone": lambda s: s.undone("novel", "main", STEPS // 2),
    "raised": lambda s: s.raised(LINE, "main", STEPS // 2, "passage"),
    "begun": lambda s: s.rows(BegunRow, run="novel", step="main", time=STEPS // 2, take=0, limit=1),
    "recall": lambda s: s.rows(RecallRow, run="novel", step="main", time=STEPS // 2, take=0, part="memories", query="q", limit=1),
    "pieces since the last step": lambda s: s.pieces(LINE, after=s.position() - 6),
    "records since the last step": lambda s: s.records(LINE, after=s.position() - 6),
    "requests since the last step": lambda s: s.rows(StepRow, run="novel", pos=Between(s.position() - 6)),
}


def main() -> int:
    """Print the table; returns 1 where a step's cost grows with the run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        append, read = plain(folder)
        print(f"plain sqlite3: append {append:.0f} us, read {read:.1f} us of CPU")
        store = open_store(folder / "fabula.db")
        with store.write("novel", "create") as tx:
            tx.add(RunRow("novel", "write", "", "", "", {}))
        costs = []
        for hundred in range(STEPS // 100):
            times = iter(range(hundred * 100, hundred * 100 + 100))
            costs.append(cpu(lambda times=times: step(store, next(times)), 100))  # type: ignore[misc]
        print(f"a novel's step (6 transactions, 17 rows, 3 prompts): {costs[0]:.0f} us, {costs[0] / append:.1f} plain appends")
        growth = sum(costs[-3:]) / sum(costs[:3])
        print(f"last steps of {STEPS} against first: {growth:.2f}x")
        size = sum(path.stat().st_size for path in folder.glob("fabula.db*"))
        written = STEPS * (2 * len(PROMPT) + 4 * len(PASSAGE))
        print(f"{size / STEPS / 1024:.1f} KiB a step on disk, {size / written:.2f} of the characters that were written")
        for what, act in READS.items():
            one = cpu(lambda act=act: act(store), 1000)  # type: ignore[misc]
            print(f"{what:45} {one:7.1f} us {one / read:6.1f} plain reads")
        found = cpu(lambda: store.search(["mira", "word5", "boat"], runs=["novel"]), 20)
        print(f"{'search of 3 terms in 4,000 records':45} {found:7.1f} us")
        start = time.process_time()
        findings = store.check()
        print(f"check: {time.process_time() - start:.2f} s, {len(findings)} findings")
        store.close()
        start = time.process_time()
        store = open_store(folder / "fabula.db")
        rows = len(store.steps(LINE)) + len(store.pieces(LINE)) + len(store.records(LINE))
        print(f"open and read all steps, pieces and records of the run ({rows} rows): {time.process_time() - start:.2f} s")
        store.close()
        return int(growth > 1.5)


if __name__ == "__main__":
    sys.exit(main())
