"""Readings for tests: a text of so many chunks, read with a scripted model in a library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabula.memory import Memory
from fabula.models import Model
from fabula.read import Study, Task
from fabula.store import Store

CHUNK = 290
"""Tokens."""


def start(store: Store, paths: Sequence[Path], model: Model, task: str = "List the codes of the vaults.", **options: Any) -> Study:
    wanted = {name: options.pop(name) for name in Task.__dataclass_fields__ if name in options}
    whole = Task(**{"task": task, "chunk_tokens": CHUNK, **wanted})
    return Study.start(store, [str(p) for p in paths], whole, model=model, memory=Memory(store), **options)


async def read(
    store: Store, paths: Sequence[Path], model: Model, task: str = "List the codes of the vaults.", **options: Any
) -> dict[str, Any]:
    """Read to the end; the result."""
    study = start(store, paths, model, task, **options)
    try:
        await study.read()
        return study.result()
    finally:
        study.close()


def long_text(chunks: int, facts: int = 40) -> str:
    """A text of about so many chunks, with a planted fact in each of the first `facts`."""
    return "".join(piece(n, fact=n < facts) for n in range(chunks))


def piece(number: int, *, fact: bool = True, code: int | None = None) -> str:
    """About one chunk: one chapter with distinct sentences."""
    from tests.read.models import NAMES

    lines = [
        f"In the {_ORDER[(number * 7 + n) % len(_ORDER)]} house of row {_ORDER[(number + 3 * n) % len(_ORDER)]} lived someone who "
        f"liked the {_ORDER[(number * n + 5) % len(_ORDER)]} season best."
        for n in range(13)
    ]
    told = f"The code of vault {NAMES[number % len(NAMES)]} is {code or 4000 + 37 * number}." if fact else "Nothing was locked there."
    lines.insert(6, told)
    return f"# Street {number}\n\n" + " ".join(lines[:7]) + "\n\n" + " ".join(lines[7:]) + "\n\n"


_ORDER = [
    "amber", "brown", "copper", "dark", "early", "fallow", "golden", "hidden", "inner", "jaded", "kind", "late", "mild", "narrow", "old",
    "pale", "quiet", "round", "still", "tall", "upper", "vast", "warm", "young",
]  # fmt: skip
