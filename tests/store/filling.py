"""Transactions that can be seen to be whole, for tests and for the processes that they start."""

from __future__ import annotations

from fabula.store import CallRow, FactRow, LogRow, RecordRow, RunRow, Store


def fill(store: Store, count: int, size: int = 1) -> None:
    """Transactions of three rows that belong together."""
    if not store.rows(RunRow, limit=1):
        with store.write("a", "create") as tx:
            tx.add(RunRow("a", "write", "", "", "", {}))
    for _ in range(count):
        with store.write("a", "fill") as tx:
            tx.add(FactRow("first", [tx.pos, "x" * size]))
            tx.add(RecordRow(f"r{tx.pos}", "a", "m", 0, "add", {"n": tx.pos}, terms=f"word t{tx.pos}", hash=f"h{tx.pos}"))
            tx.add(CallRow("a", "m", tx.pos, "p", "", 0, 0, "f", "asked", prompt=(("user", f"prompt {tx.pos}"),), usage={"cost": 1}))


def assert_whole(store: Store) -> int:
    """The library is a prefix of what was written: every transaction whole, none missing; returns how many."""
    last = store.position()
    logs = store.rows(LogRow)
    assert [row.pos for row in logs] == list(range(1, last + 1))
    filled = [row.pos for row in logs if row.kind == "fill"]
    assert [row.value[0] for row in store.rows(FactRow)] == filled
    assert [row.data["n"] for row in store.rows(RecordRow)] == filled
    assert [row.prompt[0][1] for row in store.rows(CallRow)] == [f"prompt {pos}" for pos in filled]
    assert sorted(pos for _, pos in store.search(["word"], limit=10_000)) == filled
    assert store.usage("a")["cost"] == len(filled)
    return last


def until_full(store: Store, size: int) -> None:
    for _ in range(10_000):
        fill(store, 1, size)
