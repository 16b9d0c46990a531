"""One folder, one interface: a docstring, explicit imports, a sorted `__all__`, and every public name documented."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from tests.house.source import FOLDERS, tree


def front(folder: str) -> ast.Module:
    return tree(Path("src") / "fabula" / folder / "__init__.py")


def bound_names(module: ast.Module) -> set[str]:
    """Public names that the top level of a module binds, by import or definition."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("folder", FOLDERS)
def test_all(folder: str) -> None:
    module = importlib.import_module(f"fabula.{folder}")
    listed = list(module.__all__)
    assert len(listed) == len(set(listed)), "each name once (ruff keeps them sorted)"
    assert set(listed) == bound_names(front(folder)), "__all__ lists every public name of the folder, and no other"


@pytest.mark.parametrize("folder", FOLDERS)
def test_says_what_it_knows(folder: str) -> None:
    text = ast.get_docstring(front(folder)) or ""
    assert len(text) >= 60, "the folder's docstring says what it knows and what it does not know"
    assert "know" in text.lower()


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_star(folder: str) -> None:
    assert not [node for node in ast.walk(front(folder)) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_documented(folder: str) -> None:
    module = importlib.import_module(f"fabula.{folder}")
    bare = []
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
            # A dataclass without a docstring gets its signature as one.
            if not own or own.startswith(f"{name}("):
                bare.append(name)
    assert bare == []
