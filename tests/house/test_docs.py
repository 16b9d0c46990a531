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
    assert [name for name in all_commands if name != "fabula" and not re.search(rf"^#+ `{re.escape(name)}`$", page, re.MULTILINE)] == []


def test_every_command_has_help(all_commands: dict[str, Any]) -> None:
    assert [name for name, command in all_commands.items() if not (command.help or "").strip()] == []
    bare = [
        f"{name} {parameter.name}"
        for name, command in all_commands.items()
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden and not parameter.help
    ]
    assert bare == []


def said_commands(text: str) -> list[list[str]]:
    """The command lines that a text names, in backticks or as an indented line, as words."""
    found = re.findall(r"`fabula ([^`]+)`|^    (?:[A-Z_]+=\S+ )*fabula (.+?)(?: {2,}#.*| \\\\)?$", text, re.MULTILINE)
    return [re.sub(r'"[^"]*"', "TEXT", inline or block).split() for inline, block in found]


def mistakes(words: list[str], all_commands: dict[str, Any]) -> list[str]:
    """Words of a command line that the program does not know: a command, or an option of it."""
    name = "fabula"
    while words and f"{name} {words[0]}" in all_commands:
        name, words = f"{name} {words[0]}", words[1:]
    command = all_commands[name]
    if getattr(command, "commands", None) and words and re.fullmatch("[a-z]+", words[0]):
        return [f"{name} {words[0]}"]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    return [f"{name} {word}" for word in words if re.match("--[a-z]", word) and word.partition("=")[0].rstrip(".,;:)") not in options]


def test_commands_that_texts_name_exist(all_commands: dict[str, Any]) -> None:
    """README, documentation, errors and their next actions send nobody to a command that is not there."""
    wrong = []
    for path in tracked():
        if path.suffix in {".md", ".py"} and path.parts[0] in {"README.md", "docs", "src"} and path.name not in {"cli.md", "log.md"}:
            text = (ROOT / path).read_text("utf-8")
            wrong += [f"{path}: {word}" for words in said_commands(text) for word in mistakes(words, all_commands)]
    assert wrong == []


def test_links_lead_somewhere() -> None:
    dead = []
    for page in tracked():
        if page.suffix == ".md" and page.parts[0] in {"docs", "README.md", "CHANGELOG.md"}:
            text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
            targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
            dead += [f"{page}: {target}" for target in targets if not (ROOT / page.parent / target).exists()]
    assert dead == []
