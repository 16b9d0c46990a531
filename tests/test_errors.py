"""The error tree is complete: drawn, listed, each with a code and a next action, and nothing else is raised."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from fabula import errors
from fabula.errors import FabulaError
from tests.house.source import python_files, tree

CLASSES = {name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, FabulaError)}
ROW = re.compile(r"^    (?P<stem>[│├└─ ]*)(?P<name>[A-Z]\w+)(?P<rest>.*)$")


def drawn() -> dict[str, tuple[str, str]]:
    """The tree of the module's docstring: name → (name of its parent, what the line says)."""
    rows: dict[str, tuple[str, str]] = {}
    line_of: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := ROW.match(line):
            depth = len(match["stem"]) // 4
            line_of[depth:] = [match["name"]]
            rows[match["name"]] = (line_of[depth - 1] if depth else "", match["rest"])
    return rows


def test_tree_is_complete() -> None:
    assert drawn().keys() == CLASSES.keys()
    assert errors.__all__ == sorted(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_tree_is_true(name: str) -> None:
    kind, (parent, says) = CLASSES[name], drawn()[name]
    assert kind.__bases__[0].__name__ == (parent or "Exception")
    for pattern, value in ((r"exit (\d+)", kind.exit_code), (r"HTTP (\d+)", kind.http_status)):
        if said := re.search(pattern, says):
            assert int(said[1]) == value


@pytest.mark.parametrize("name", CLASSES)
def test_next_action(name: str) -> None:
    error = CLASSES[name]("The stove is on fire.", seconds=3)
    assert re.match(r"[A-Z].{15,}\.$", error.next_action)
    assert (CLASSES[name].__doc__ or "").strip()
    assert error.as_dict() == {
        "code": error.code,
        "message": "The stove is on fire.",
        "next_action": error.next_action,
        "details": {"seconds": 3},
    }
    assert CLASSES[name]("a", "Do this.").next_action == "Do this."


def test_codes_are_stable() -> None:
    codes = [kind("x").code for kind in CLASSES.values()]
    assert len(set(codes)) == len(codes)
    assert errors.RateLimited("x").code == "rate_limited"
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


ALSO_RAISED = {
    "AssertionError", "AttributeError", "CancelledError", "Exit", "KeyError", "KeyboardInterrupt", "NotImplementedError",
    "StopAsyncIteration", "SystemExit", "TypeError", "ValueError",
}  # fmt: skip
"""Mistakes of a programmer, and ways to end a program: neither is meant for the person."""
SIGNALS = {"BadZipFile": "src/fabula/formats/", "Unreadable": "src/fabula/read/"}
"""Raised and caught inside one folder."""


def test_nothing_else_is_raised() -> None:
    strange = []
    for path in python_files("src"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                kind = node.exc.func.attr if isinstance(node.exc.func, ast.Attribute) else getattr(node.exc.func, "id", "")
                # Lower-case: a function that makes the error. Underscore: a signal inside one module.
                own = kind in SIGNALS and SIGNALS[kind] in path.as_posix()
                if kind[:1].isupper() and kind not in CLASSES.keys() | ALSO_RAISED and not own:
                    strange.append(f"{path}:{node.lineno} {kind}")
    assert strange == []


def test_no_error_is_swallowed() -> None:
    silent = []
    for path in python_files("src"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"}
            ):
                if all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body):
                    silent.append(f"{path}:{node.lineno}")
    assert silent == []
