"""Books at a glance, for lists, without opening them."""

from __future__ import annotations

from typing import Any

from fabula.runs import latest_piece, overview
from fabula.store import RunRow, Store
from fabula.write._premise import Premise
from fabula.write._story import Story
from fabula.write._telling import LANE


def glances(store: Store) -> list[dict[str, Any]]:
    """Every run of a library, the latest first.

    Returns:
        run (its id), kind (`write`, `play`, or that of another way in), title, language, length (in the language's unit), steps,
        state (`open`, `finished`, or who holds it), model, parent, changed (wall time, seconds since 1970).
    """
    found = [_glance(store, row) for row in store.rows(RunRow)]
    return sorted(found, key=lambda one: (-one["changed"], one["run"]))


def _glance(store: Store, row: RunRow) -> dict[str, Any]:
    one, line = overview(store, row.id), store.line(row.id)
    out: dict[str, Any] = {
        "run": row.id, "kind": row.kind, "title": row.title, "language": str(row.premise.get("language", "")), "length": 0,
        "steps": one.steps, "state": "open", "model": one.model, "parent": row.parent, "changed": one.changed,
    }  # fmt: skip
    if row.kind == Story.kind:
        premise = Premise.from_dict(row.premise)
        out["kind"] = premise.mode
        out["title"] = latest_piece(store, line, LANE, "title") or row.title or " ".join(premise.premise.split()[:8])
        out["length"] = latest_piece(store, line, LANE, "position", {"length": 0})["length"]
        if latest_piece(store, line, LANE, "ended"):
            out["state"] = "finished"
    if one.holder is not None:
        out["state"] = f"held by process {one.holder.process}"
    return out
