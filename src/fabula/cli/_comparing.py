"""Two branches side by side: a unified diff by passage, a sentence a line."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from fabula.cli._output import show

if TYPE_CHECKING:
    from fabula.write import Novel

_QUIET = ("position", "plans", "chapters", "record")


def compare(left: Novel, right: Novel) -> dict[str, Any]:
    """What two books differ in, as plain values."""
    from fabula.runs import diff
    from fabula.store import FAR

    found = diff(left.run, right.run)
    ours, theirs = ({p.id: p.text for p in one.passages()} for one in (left, right))
    order = list(dict.fromkeys([*ours, *theirs]))
    passages = [
        {"passage": p, "diff": _lines(ours.get(p, ""), theirs.get(p, ""), left.language, right.language)}
        for p in order
        if ours.get(p) != theirs.get(p)
    ]
    state = {
        key.partition("/")[2]: list(values)
        for key, values in found.pieces.items()
        if not key.partition("/")[2].startswith(("text:", "chapter:", "model", *_QUIET))
    }
    return {
        "a": left.id, "b": right.id, "same_until": None if found.common >= FAR else found.common,
        "only_a": len(found.left), "only_b": len(found.right), "passages": passages, "state": state,
    }  # fmt: skip


def _lines(left: str, right: str, *languages: str) -> list[str]:
    from fabula.text import sentences

    a, b = (
        [s.strip() for paragraph in text.split("\n") for s in sentences(paragraph, language) if s.strip()]
        for text, language in zip((left, right), languages, strict=True)
    )
    return [line.rstrip("\n") for line in difflib.unified_diff(a, b, n=1, lineterm="")][2:]


def print_comparison(found: dict[str, Any]) -> None:
    """As a person reads a diff."""
    if not found["passages"] and not found["state"]:
        show(f"{found['a']} and {found['b']} are the same.")
        return
    if found["same_until"] is not None:
        steps = f"{found['only_a']} steps are only in A, {found['only_b']} only in B"
        show(f"The same before step {found['same_until']}; {steps}.", "dim")
    for one in found["passages"]:
        show(f"--- {found['a']} {one['passage']}", "bold")
        show(f"+++ {found['b']} {one['passage']}", "bold")
        for line in one["diff"]:
            show(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))
    for name, (left, right) in found["state"].items():
        show(f"--- {found['a']} {name}", "bold")
        show(f"+++ {found['b']} {name}", "bold")
        for line in _state_lines(left, right):
            show(line, {"+": "green", "-": "red"}.get(line[:1], ""))


def _state_lines(left: Any, right: Any) -> list[str]:
    a, b = (_said(value) for value in (left, right))
    return [line for line in difflib.ndiff(a, b) if not line.startswith("?")]


def _said(value: Any) -> list[str]:
    if value in (None, "", []):
        return ["(nothing)"]
    if isinstance(value, dict):
        return [f"{name}: {inner}" for name, inner in value.items() if inner not in (None, "")]
    if isinstance(value, list):
        return [line for inner in value for line in (_said(inner) if isinstance(inner, dict) else [str(inner)])]
    return str(value).splitlines()
