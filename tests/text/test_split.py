"""Splitting: lossless, within the budget, at good places, whatever the text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.text import Span, _split, _tokens, count_tokens, split
from fabula.text._chars import inside_word
from fabula.text._prose import PARAGRAPH, Prose
from tests.text.samples import EN, RU, TEXTS, ZH
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
        ";\n",
        "/x\n",
    ]
)

KINDS: list[Literal["prose", "code"]] = ["prose", "code"]


def check(text: str, spans: list[Span], budget: int) -> None:
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])][: len(spans)]
    for span in spans:
        assert span.start < span.end
        assert span.tokens == count_tokens(text[span.start : span.end]) <= budget


@given(ANY | st.lists(PIECES, max_size=60).map("".join), st.integers(16, 60), st.sampled_from(KINDS), st.booleans())
def test_lossless_and_within_budget(text: str, budget: int, kind: Literal["prose", "code"], stable: bool) -> None:
    check(text, split(text, budget, kind=kind, stable=stable), budget)


@given(st.lists(PIECES | ANY, min_size=1, max_size=80).map("".join), st.integers(16, 60), st.sampled_from(KINDS), st.booleans())
def test_blocks_and_slabs_do_not_show(text: str, budget: int, kind: Literal["prose", "code"], stable: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_split, "_BLOCK", 30)
        patch.setattr(_split, "SLAB", 40)
        check(text, split(text, budget, kind=kind, stable=stable), budget)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("language", TEXTS)
def test_cuts_are_the_same_in_blocks(language: str, stable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"# {i}\n\n{TEXTS[language]}\n\n" for i in range(9))
    whole = split(text, 200, stable=stable)
    monkeypatch.setattr(_split, "_BLOCK", 700)
    assert split(text, 200, stable=stable) == whole


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


@pytest.mark.parametrize(
    ("heading", "passage"),
    [
        ("# The {}th day", EN),
        ("### 2.{}. Tides", EN),
        ("Tides of {}\n===========", EN),
        ("Tides of {}\n-----------", EN),
        ("CHAPTER {}. The Tide", EN),
        ("Part {}", EN),
        ("Epilogue", EN),
        ("Глава {}", RU),
        ("ЧАСТЬ ПЕРВАЯ", RU),
        ("Пролог", RU),
        ("第{}章 潮水", ZH),
        ("第 {} 回", ZH),
        ("【第{}章】潮水", ZH),
        ("第二十{}章", ZH),
        ("楔子", ZH),
    ],
)
def test_headings_start_chunks(heading: str, passage: str) -> None:
    text = "".join(f"{heading.format(i)}\n\n{passage}\n\n" for i in range(1, 5))
    spans = split(text, count_tokens(passage) + 40)
    starts = [text[span.start :].split("\n")[0] for span in spans]
    assert starts == [heading.format(i).split("\n")[0] for i in range(1, 5)]


def test_chapters_without_blank_lines() -> None:
    body = ZH.replace("\n\n", "\n　　")
    text = "".join(f"第{i}章 潮水\n　　{body}\n" for i in range(1, 5))
    assert all(text.startswith("第", span.start) for span in split(text, count_tokens(body) + 60))


HEADINGS = st.lists(st.sampled_from(["# Tide\n\n", "## Low\n", "Chapter 3\n\n", "High\n====\n\n"]), max_size=3).map("".join)


@given(st.lists(st.tuples(HEADINGS, st.sampled_from([EN[:200] + "\n\n", RU[:150] + "\n"])), max_size=20))
def test_no_chunk_ends_with_a_heading(parts: list[tuple[str, str]]) -> None:
    text = "".join("".join(part) for part in parts) + EN
    for span in split(text, 120)[:-1]:
        last = text[: span.end].rstrip().rsplit("\n", 1)[-1]
        assert not last.startswith(("# ", "## ", "Chapter", "===", "High")), text[span.start : span.end]


@pytest.mark.parametrize(
    "line",
    [
        "Part of the wall fell.",
        "Section chiefs met at noon and",
        "第一次来的时候，他没有说话，后来才慢慢地把事情的经过讲给大家听，",
        "Books, clocks",
        "#1 of ten",
    ],
)
def test_what_is_no_heading(line: str) -> None:
    text = "".join(f"{EN[:300]}\n\n{line}\n{EN[300:420]}\n\n" for _ in range(6))
    chosen = {text.startswith(line, span.start) for span in split(text, 170)[1:]}
    assert False in chosen, "a paragraph like others"


def test_fenced_blocks_stay_whole() -> None:
    for fence in ("```python", "```", "~~~"):
        text = (EN[:250] + f"\n\n{fence}\n" + "a = b + c\n\n" * 9 + f"{fence[:3]}\n\n") * 12
        for span in split(text, 200):
            assert text[span.start : span.end].count(fence[:3]) % 2 == 0


@pytest.mark.parametrize("end", ["", "```\n\nThe end."])
def test_a_fence_that_is_not_closed_soon_is_none(end: str) -> None:
    text = "```\n\n" + "The tide was low.\n\n" * 1_200 + end
    cuts = Prose(text, 999, 99).block(0, len(text))
    assert cuts.scores[2:1_000:2] == [PARAGRAPH] * 499


def test_counts_are_exact_where_line_breaks_belong_to_marks() -> None:
    """Behind marks a slash on the next line is of the same piece: `;\\n//` is one token."""
    for text in ("a = b;\n// tides\n", "a = b;\n/tides/\n", "tide;\n\n"):
        for budget in range(16, 40):
            check(text * 30, split(text * 30, budget), budget)


def test_scene_breaks_end_chunks() -> None:
    text = f"{EN}\n\n* * *\n\n" * 4
    spans = split(text, count_tokens(EN) + 30)
    assert [text[span.start : span.start + 14] for span in spans] == ["The lighthouse"] * 4


def test_flat_chinese_is_cut_after_sentences() -> None:
    flat = "".join(ZH.split()) * 10
    spans = split(flat, 200)
    check(flat, spans, 200)
    assert all(flat[span.end - 1] in "。”！？" for span in spans)


RANDOM = random.Random(1)
HAZARDS = {
    "base64": "".join(RANDOM.choices("ABCDEFabcdef0123456789+/", k=20_000)),
    "one letter": "a" * 60_000,
    "blank lines": "\n" * 10_000 + "x" + " " * 10_000,
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈" * 500,
    "accents": "e" + "\u0301" * 3_000,
    "table": "\n".join(",".join(str(7 * i * j % 10_007) for j in range(12)) for i in range(300)),
    "windows": (EN * 3).replace("\n", "\r\n"),
    "special tokens": "'<|endoftext|>'  # <|fim_prefix|>\n" * 300,
    "no spaces": "".join(RU.split()),
    "no marks": re.sub(r"[^\u4e00-\u9fff]", "", ZH) * 12,
    "script": "".join(f"function f{i}(a,b){{var c=a+b;if(c>{i}){{return g(c,'x')}}return [a,b,c]}};" for i in range(900)),
    "surrogates": "tide \ud83d and \udc00\ud83d\ude00 sea.\n" * 300,
    "nul": "tide\0\0sea\0" * 900,
    "separators": "a\x1cb\x85c\u2028d\x0be\n" * 500,
    "escapes": '\\"' * 9_000,
    "openers": "/*" * 4_000 + "`" * 3 + '"""' * 2_000,
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HAZARDS)
def test_what_breaks_splitters(name: str, kind: Literal["prose", "code"], stable: bool) -> None:
    text = HAZARDS[name]
    spans = split(text, 100, kind=kind, stable=stable)
    check(text, spans, 100)
    assert sum(span.tokens for span in spans) >= 0.5 * 100 * (len(spans) - 1), "chunks are filled"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HAZARDS)
def test_the_tokenizer_passes_over_a_text_less_than_three_times(
    name: str, kind: Literal["prose", "code"], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0

    def watched(work: Callable[[str], Any]) -> Callable[[str], Any]:
        def count(text: str) -> Any:
            nonlocal seen
            seen += len(text)
            return work(text)

        return count

    monkeypatch.setattr(_split, "token_ends", watched(_tokens.token_ends))
    monkeypatch.setattr(_split, "count_tokens", watched(count_tokens))
    text = HAZARDS[name]
    split(text, 100, kind=kind)
    assert seen <= 3 * len(text) + 1_000


def test_prose_in_lines_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(text: str) -> int:
        raise AssertionError(text)

    text = (EN + "\n\n" + RU + "\n\n" + ZH + "\n\n") * 5
    expected = split(text, 400)
    monkeypatch.setattr(_split, "count_tokens", never)
    assert split(text, 400) == expected


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
