"""Splitting: lossless, within the budget, at good places, whatever the text."""

from __future__ import annotations

import random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.text import Span, count_tokens, split
from fabula.text._chars import inside_word
from tests.text.samples import CODE, EN, RU, TEXTS, ZH
from tests.text.test_tokens import ANY

PIECES = st.sampled_from(
    [
        "word ",
        "lighthouse",
        ". ",
        "\n",
        "\n\n",
        "\r\n",
        "灯塔",
        "。",
        "Мира ",
        "👩‍👩‍👧",
        "🏳️‍🌈",
        "e\u0301",
        "3.14 ",
        "\ud83d",
        "\t",
        "  ",
        "x" * 90,
        "—",
        '"',
        "# A\n",
    ]
)

KINDS: list[Literal["prose", "code"]] = ["prose", "code"]


def check(text: str, spans: list[Span], budget: int) -> None:
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])][: len(spans)]
    for span in spans:
        assert span.start < span.end
        assert span.tokens == count_tokens(text[span.start : span.end]) <= budget


@given(ANY | st.lists(PIECES, max_size=60).map("".join), st.integers(16, 60), st.sampled_from(KINDS))
def test_lossless_and_within_budget(text: str, budget: int, kind: Literal["prose", "code"]) -> None:
    check(text, split(text, budget, kind=kind), budget)


@given(
    st.lists(
        st.sampled_from(
            [
                "sea ",
                "lighthouse ",
                "Миру ",
                "don't ",
                "well-kept ",
                "12,345.6 ",
                "灯塔",
                "。",
                ", ",
                "(a) ",
                "f(x,y)",
                "Mira's ",
                "Donaudampfschifffahrtsgesellschaft ",
            ]
        ),
        max_size=80,
    ).map("".join)
)
def test_no_word_is_cut(text: str) -> None:
    assert count_tokens("Donaudampfschifffahrtsgesellschaft") in range(7, 16), "most of a chunk, and yet it fits"
    for span in split(text, 16):
        assert not inside_word(text, span.end), text[span.start : span.end]


@pytest.mark.parametrize("budget", [40, 100, 300])
@pytest.mark.parametrize("language", TEXTS)
def test_prose_is_cut_after_sentences(language: str, budget: int) -> None:
    text = (TEXTS[language] + "\n\n") * 6
    spans = split(text, budget)
    check(text, spans, budget)
    ends = [text[: span.end].rstrip()[-1] for span in spans]
    finished = sum(end in '.!?…”"。！？」' for end in ends) / len(ends)
    assert finished >= {40: 0.5, 100: 0.9, 300: 1}[budget]  # of 40 tokens, some sentences are longer
    assert sum(span.tokens for span in spans[:-1]) >= 0.7 * budget * (len(spans) - 1)


def test_headings_start_chunks() -> None:
    text = "".join(f"# Chapter {i}\n\n{EN}\n\n" for i in range(4))
    spans = split(text, 330)
    assert [text[span.start : span.start + 9] for span in spans] == ["# Chapter"] * 4


def test_flat_chinese_is_cut_after_sentences() -> None:
    flat = "".join(ZH.split()) * 10
    spans = split(flat, 200)
    check(flat, spans, 200)
    assert all(flat[span.end - 1] in "。”！？" for span in spans)


def test_code_is_cut_before_declarations() -> None:
    spans = split(CODE, 110, kind="code")
    check(CODE, spans, 110)
    starts = [CODE[span.start : span.end].lstrip("\n").split("\n")[0] for span in spans]
    assert all(start.startswith(('"""', "class", "@", "def", "    def")) for start in starts), starts


@pytest.mark.parametrize(
    "text",
    [
        "".join(random.Random(1).choices("ABCDEFabcdef0123456789+/", k=20_000)),
        "a" * 20_000,
        "\n" * 10_000 + "x" + " " * 10_000,
        "👩‍👩‍👧‍👦🏳️‍🌈" * 500,
        "e" + "\u0301" * 3_000,
        "\n".join(",".join(str(7 * i * j % 10_007) for j in range(12)) for i in range(300)),
        (EN * 3).replace("\n", "\r\n"),
        "'<|endoftext|>'  # <|fim_prefix|>\n" * 300,
        "".join(RU.split()),
    ],
)
def test_what_breaks_splitters(text: str) -> None:
    spans = split(text, 100)
    check(text, spans, 100)
    assert sum(span.tokens for span in spans) >= 0.5 * 100 * (len(spans) - 1), "chunks are filled"


def test_emoji_and_line_breaks_stay_whole() -> None:
    family = "👩‍👩‍👧‍👦"
    text = family * 40
    assert all((span.end - span.start) % len(family) == 0 for span in split(text, 60))
    windows = "word\r\n" * 60
    assert not any(windows[span.end - 1] == "\r" for span in split(windows, 16))


def test_budget_is_checked() -> None:
    with pytest.raises(InputError, match="15 tokens"):
        split("text", 15)
    assert split("", 16) == []


def test_is_deterministic_and_local() -> None:
    """What follows does not change an earlier chunk, the last two aside."""
    text = (EN + "\n\n") * 5
    assert split(text, 90)[:10] == split(text + "More.", 90)[:10]
