"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast

from tests.house.source import ROOT, python_files, tree

MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 100
TOPS = ("src", "tests", "benchmarks", "examples", "docs")


def test_files() -> None:
    sizes = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path in python_files(*TOPS)}
    assert {str(path): size for path, size in sizes.items() if size > MOST_LINES_OF_A_FILE} == {}


def test_functions() -> None:
    long = {}
    for path in python_files(*TOPS):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long[f"{path}:{node.lineno} {node.name}"] = lines
    assert long == {}
