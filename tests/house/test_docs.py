"""The documentation cannot rot: generated pages are current, every command is there, links lead somewhere."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.source import FOLDERS, ROOT, tracked

HAS_CLI = "cli" in FOLDERS


def commands(command: Any, path: str = "fabula") -> dict[str, Any]:
    """Every command of a Typer program by its full name, groups included."""
    found = {path: command}
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            found |= commands(inner, f"{path} {name}")
    return found


@pytest.fixture(scope="module")
def all_commands() -> dict[str, Any]:
    if not HAS_CLI:
        pytest.skip("there is no command line yet")
    import typer.main

    return commands(typer.main.get_command(importlib.import_module("fabula.cli").app))


def test_page_is_current(tmp_path: Path, all_commands: dict[str, Any]) -> None:
    page = tmp_path / "cli.md"
    subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py"), str(page)], check=True, capture_output=True)
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == page.read_text("utf-8"), "run `make docs`"


def test_every_command_is_documented(all_commands: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert len(all_commands) > 1
    assert [name for name in all_commands if not re.search(rf"^#+ `{re.escape(name)}`$", page, re.MULTILINE)] == []


def test_every_command_has_help(all_commands: dict[str, Any]) -> None:
    assert [name for name, command in all_commands.items() if not (command.help or "").strip()] == []
    bare = [
        f"{name} {parameter.name}"
        for name, command in all_commands.items()
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden and not parameter.help
    ]
    assert bare == []


def test_links_lead_somewhere() -> None:
    dead = []
    for page in tracked():
        if page.suffix == ".md" and page.parts[0] in {"docs", "README.md", "CHANGELOG.md"}:
            text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
            targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
            dead += [f"{page}: {target}" for target in targets if not (ROOT / page.parent / target).exists()]
    assert dead == []
