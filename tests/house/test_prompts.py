"""Prompts are files that a person can read, copy and change; none hides in code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, ROOT, docstrings, tree

ASKING = ("write", "read", "town", "chat", "memory", "runs", "evaluate")
LIKE_A_PROMPT = re.compile(
    r"\byou are (?:a|an|the)\b|\byour task\b|\brespond (?:only|with)\b|\breply (?:only|with)\b|你是一|请你|ты [—-]|твоя задача",
    re.IGNORECASE,
)
LONGEST = 200
"""Characters of a string in code; messages of errors and labels are shorter."""


def prompt_like(module: ast.Module) -> list[str]:
    """Strings of a module that are prompts by their length or their words, as `line: beginning`."""
    skip = docstrings(module)
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            text = node.value
        else:
            continue
        if "(?:" in text:
            continue  # a pattern
        if LIKE_A_PROMPT.search(text) or (len(text) > LONGEST and re.search(r"\s", text)):
            found.append(f"{node.lineno}: {text[:60]!r}")
    return found


FILES = sorted(path.relative_to(ROOT) for folder in ASKING for path in (PACKAGE / folder).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_prompt_in_code(path: Path) -> None:
    assert prompt_like(tree(path)) == []


@pytest.mark.parametrize(
    "code", ['ask("You are a novelist.")', 'ask(f"Your task: {x}")', f'ask("{"word " * 50}")', 'ask("你是一位小说家")']
)
def test_would_be_found(code: str) -> None:
    assert prompt_like(ast.parse(code))
