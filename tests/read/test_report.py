"""A report means what it says: nothing that came from a document or a model is markup."""

from __future__ import annotations

from typing import Any

import pytest

from fabula.read import report_of


def result(**changes: Any) -> dict[str, Any]:
    claim = {
        "id": "0.1", "number": 1, "text": "It calls __init__ of *Gate*", "path": "a/__init__.py", "lines": [3, 4], "place": "",
        "quote": "<img src=x> [see](http://x)", "support": "quoted", "chunk": 1,
    }  # fmt: skip
    sources = [{"path": "a/__init__.py", "lines": [3, 3]}]
    chunk = {"chunk": 1, "sources": sources, "read": True, "relevant": True, "result": "R", "claims": ["0.1"]}
    row = {"path": "a/__init__.py", "lines": 1_200, "chunks": 1, "read": 1, "claims": 1, "cited": 1, "notes": []}
    found: dict[str, Any] = {
        "run": "abc", "title": "a_b", "task": "What | for?", "way": "tree", "finished": True, "language": "en",
        "final_summary": "See <script> and ![p](http://x), *so*: `<b>` [1]", "statements": [], "claims": [claim],
        "individual_context_summaries": [{"chunk": 1, "summary": "It begins.", "covers": [1]}],
        "individual_results": [chunk],
        "coverage": {"documents": 1, "chunks": 1, "read": 1, "relevant": 1, "share": 1.0, "not_in_summary": [], "by_document": [row]},
        "lost": [], "sources": [{"where": "a|b", "name": "a", "commit": "0123456789abcdef"}], "skipped": [], "findings": [],
        "usage": {"calls": 1, "prompt_tokens": 12_000, "answer_tokens": 30},
    }  # fmt: skip
    return {**found, **changes}


@pytest.mark.parametrize(
    "words",
    [
        r"See \<script> and ![p]\(http://x), *so*: `<b>` [1]",
        r"1. It calls \_\_init\_\_ of \*Gate\* — `a/__init__.py:3-4`: “\<img src=x> [see]\(http://x)”",
        "### Chunk 1: `a/__init__.py:3`\n",
        "| `a/__init__.py` | 1,200 | 1 of 1 | 1 | 1 |",
        "- Read: `a|b` at 0123456789ab",
        "1 of 1 chunk of 1 document read",
        "1 call, 12,000 prompt and 30 answer tokens",
    ],
)
def test_no_markup_but_ours(words: str) -> None:
    assert words in report_of(result())


def test_a_bar_in_a_path_ends_no_cell() -> None:
    row = {"path": "a|b.md", "lines": 1, "chunks": 1, "read": 1, "claims": 0, "cited": 0, "notes": []}
    coverage = {**result()["coverage"], "by_document": [row]}
    assert r"| `a\|b.md` | 1 |" in report_of(result(coverage=coverage))
