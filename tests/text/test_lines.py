"""Line numbers of offsets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.text import LineIndex, _lines

TEXTS = st.text(st.sampled_from("ab灯\n\r\ud83d\u2028\x0b"), max_size=60)


def by_hand(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text) or [""]


@given(TEXTS, st.integers(1, 9))
def test_agrees_with_counting(text: str, block: int) -> None:
    lines = by_hand(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "_BLOCK", block)
        index = LineIndex(text)
        assert len(index) == len(lines)
    at = 0
    for number, line in enumerate(lines, 1):
        assert index.offsets(number, number) == (at, at + len(line))
        assert {index.line(offset) for offset in range(at, at + len(line))} <= {number}
        at += len(line)
    assert at == len(text)
    assert index.offsets(1, len(lines)) == (0, len(text))
    assert index.line(len(text)) == len(lines)


def test_spans_touch_lines() -> None:
    text = "one\ntwo\r\n三\rfour"
    index = LineIndex(text)
    assert [text[slice(*index.offsets(n, n))] for n in range(1, 5)] == ["one\n", "two\r\n", "三\r", "four"]
    assert index.lines(0, 4) == (1, 1), "a line break belongs to its line"
    assert index.lines(0, 5) == (1, 2)
    assert index.lines(5, 5) == (2, 2), "an empty span is where it is"
    assert index.lines(4, len(text)) == (2, 4)
    assert index.line(8) == 2, "between \\r and \\n"


def test_memory_is_four_bytes_a_line() -> None:
    index = LineIndex("x\n" * 10_000)
    assert len(index) == 10_000
    assert index._list is not None
    assert index._list.nbytes <= 4 * 10_001
    assert index._text is None, "the text is let go"


@pytest.mark.parametrize("call", [lambda i: i.line(9), lambda i: i.line(-1), lambda i: i.lines(3, 2), lambda i: i.lines(0, 9)])
def test_offsets_outside(call) -> None:
    with pytest.raises(InputError, match="not inside a text of 8 characters"):
        call(LineIndex("one\ntwo\n"))


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 3), (2, 1)])
def test_lines_outside(first: int, last: int) -> None:
    with pytest.raises(InputError, match="text of 2 lines"):
        LineIndex("one\ntwo\n").offsets(first, last)
