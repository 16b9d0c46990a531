"""Imports go down only, and each folder is entered by its front door."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.house.source import FOLDERS, ROOT, imports, python_files, tree


def test_floors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", list(sys.path))  # it puts the folder in front
    status = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def front_door_violations(path: Path) -> list[str]:
    """Imports of another folder's underscore modules, as `file:line module`."""
    home = path.parts[2] if path.parts[:2] == ("src", "fabula") and len(path.parts) > 3 else ""
    found = []
    for module, names, line in imports(tree(path)):
        parts = module.split(".")
        if parts[0] != "fabula" or len(parts) < 2 or parts[1] == home:
            continue
        if any(part.startswith("_") for part in parts[1:]) or any(name.startswith("_") and not name.startswith("__") for name in names):
            found.append(f"{path}:{line} {module}")
        elif parts[1] in FOLDERS and len(parts) > 2:
            found.append(f"{path}:{line} {module} (say: from fabula.{parts[1]} import …)")
    return found


@pytest.mark.parametrize("top", ["src", "benchmarks", "examples"])
def test_front_door(top: str) -> None:
    assert [line for path in python_files(top) for line in front_door_violations(path)] == []


def test_names() -> None:
    """Names say what a thing is: no Manager, Helper or Utils."""
    vague = ("manager", "helper", "util", "misc", "common")
    assert [str(path) for path in python_files("src") if any(word in path.stem.lower() for word in vague)] == []
