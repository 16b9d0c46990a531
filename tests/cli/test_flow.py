"""Prose is wrapped while it comes: nothing is lost, no line is too long, Chinese signs stay where they may stand."""

from __future__ import annotations

import io
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fabula.cli._desk_acts import select
from fabula.cli._draft import Draft
from fabula.cli._flow import Flow, wrap
from fabula.cli._output import is_plain, printable, show
from fabula.errors import InputError

TEXT = st.text(alphabet="ab Зя, 灯塔。“”\n", max_size=200)


@given(TEXT, st.lists(st.integers(0, 200), max_size=5), st.integers(20, 40))
def test_lossless_in_any_pieces(text: str, cuts: list[int], width: int) -> None:
    flow, out, places = Flow(width), list[str](), sorted({0, len(text), *(c for c in cuts if c <= len(text))})
    for start, end in pairwise(places):
        out += flow.add(text[start:end])
    out += flow.end()
    assert "".join("".join(out).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in out)


def test_words_stay_whole() -> None:
    assert wrap("The pilot remembered the lighthouse keeper.", 20) == ["The pilot remembered", "the lighthouse", "keeper."]


def test_no_line_begins_with_a_full_stop() -> None:
    lines = wrap("灯塔看守人收到一封没有署名的信，信里只有一句话。他把信读了三遍。", 20)
    assert len(lines) > 2
    assert not [line for line in lines if line[0] in "，。"]


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert wrap("x" * 50, 20) == ["x" * 20, "x" * 20, "x" * 10]


def test_draft_shows_prose_as_it_is_and_of_json_the_story() -> None:
    prose = Draft("passage")
    assert prose.add("The fog ") + prose.add("came.") == [("passage", "The fog "), ("passage", "came.")]
    beginning = Draft("beginning")
    seen = [news for char in '{"title": "Fog", "setting": "A pier.", "cast": [{"name": "Mira"}]}' for news in beginning.add(char)]
    assert "".join(text for name, text in seen if name == "title") == "Fog"
    assert "".join(text for name, text in seen if name == "setting") == "A pier."
    assert {name for name, _ in seen} == {"title", "setting"}
    assert Draft("books").add('{"summary": "x"}') == []


def test_single_call_shows_its_passage() -> None:
    draft = Draft("passage")
    seen = [text for char in '{"passage": "灯灭了。", "summary": "x"}' for _, text in draft.add(char)]
    assert "".join(seen) == "灯灭了。"


def test_a_model_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printable("\x1b[2J\x1b]0;title\x07 text\u202e")
    assert printable("Два слова\n灯塔") == "Два слова\n灯塔"


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("name", "value", "plain"), [("NO_COLOR", "1", True), ("TERM", "dumb", True), ("TERM", "xterm", False)])
def test_plain_where_it_is_wished(monkeypatch: pytest.MonkeyPatch, name: str, value: str, plain: bool) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    assert is_plain(_Screen()) is plain
    assert is_plain(io.StringIO())


def test_a_command_is_not_broken_over_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", screen)
    show("  Nothing is lost at all. Go on with `fabula runs resume 0123456789ab`.")
    assert screen.getvalue() == "  Nothing is lost at all. Go on with\n  `fabula runs resume 0123456789ab`.\n"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("", "One. Two, three. Four."),
        ("Two", "Two"),
        ("Two … Four", "Two, three. Four"),
        ("Two...", "Two, three. Four."),
        ("…three", "One. Two, three"),
    ],
)
def test_select(said: str, part: str) -> None:
    text = "One. Two, three. Four."
    start, end = select(text, said)
    assert text[start:end] == part


@pytest.mark.parametrize("said", ["missing", "o", "Four … One"])
def test_select_refuses(said: str) -> None:
    with pytest.raises(InputError):
        select("One. Two, three. Four. no", said)
