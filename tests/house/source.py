"""Where the house's files are, for the tests of the house."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fabula"
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
"""The folders of the package, each with one interface."""


def python_files(*tops: str) -> list[Path]:
    """All Python files below the top folders named, relative to the root, sorted."""
    return sorted(path.relative_to(ROOT) for top in tops for path in (ROOT / top).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file given relative to the root."""
    return ast.parse((ROOT / path).read_text("utf-8"), filename=str(path))


def tracked() -> list[Path]:
    """What git tracks, or would with `git add`, relative to the root; files that are gone are left out."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    return [Path(name) for name in sorted(listed.decode().split("\0")) if name and (ROOT / name).is_file()]


def docstrings(module: ast.Module) -> set[int]:
    """The ids of the nodes that are docstrings, or the string literals that stand under a field."""
    found: set[int] = set()
    for node in ast.walk(module):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def imports(module: ast.Module) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Each import statement as (module, names, line); `import a.b` has no names, a relative import starts with a dot."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), tuple(alias.name for alias in node.names), node.lineno
