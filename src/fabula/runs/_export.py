"""The journal as JSON Lines (SPEC M7): every prompt, answer, model, usage, memory change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from fabula.store import LIBRARY, Row, Store, VectorRow


def export(store: Store, run: str) -> Iterator[str]:
    """One JSON object a line, by position: `{"row": "call", "pos": …, …}`. The run's ancestors are included up to each pin, so the
    file stands for itself. Vectors are left out (they can be computed again); keys and addresses are never in a journal.
    """
    line = store.line(store.run(run).id if run != LIBRARY else run)
    for row in store.export(line):
        if not isinstance(row, VectorRow):
            yield json.dumps(row_dict(row), ensure_ascii=False)


def row_dict(row: Row) -> dict[str, Any]:
    """A row as plain values, with its class as `row` (`CallRow` → `call`)."""
    name = type(row).__name__.removesuffix("Row").lower()
    return {"row": name, **{f.name: getattr(row, f.name) for f in fields(row)}}
