"""Texts of every script come back exactly, and every term of every script is found."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fabula.errors import InputError
from fabula.store import CallRow, FactRow, LaneRow, PieceRow, RecordRow, Row, RunRow, Store

from .test_contract import put, record

TEXTS = [
    "",
    " ",
    "plain",
    "家" * 700,
    "Дом. " * 3000,
    "🙂" * 300,
    "a\x00b",
    "\x00",
    "half \ud83d",
    "\udc00" * 900,
    "\u2028\u2029\ufeff",
    "'\"\\\n\t",
    "z",
    "s",
    "é\u0301",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_text_comes_back_exactly(store: Store, text: str) -> None:
    call = CallRow(
        "a",
        "s",
        0,
        "p",
        "",
        0,
        0,
        "f",
        "answered",
        text,
        text,
        prompt=(("user", text), ("user", text + "!")),
        request={text: text},
        notes=(text, "n"),
    )
    rows: list[Row] = [
        call,
        PieceRow("a", "main", "p", 0, 0, {"k": [text]}),
        RecordRow("r", "a", "main", 0, "add", {"t": text}),
        RunRow("a", "write", text, "", "", {}),
    ]
    pos = put(store, "a", *rows)
    for row in rows:
        assert store.rows(type(row)) == [replace(row, pos=pos)]


def test_half_a_character_in_a_name_is_refused_and_nothing_is_written(store: Store) -> None:
    with pytest.raises(InputError) as caught:
        put(store, "a", FactRow("x", 1), LaneRow("a", "half \ud83d", 0))
    assert caught.value.next_action
    assert store.position() == 0
    with pytest.raises(InputError):
        store.rows(LaneRow, lane="\ud83d")


def test_values_that_are_not_plain_are_refused(store: Store) -> None:
    for value in ({1, 2}, object(), b"bytes"):
        with pytest.raises(TypeError, match="kept in a library"):
            put(store, "a", FactRow("x", value))
    with pytest.raises(InputError, match="64 bits"):
        put(store, "a", LaneRow("a", "x", 2**70))
    assert store.position() == 0
    put(store, "a", FactRow("x", {"t": (1, 2), "big": 2**70, "inf": math.inf}))
    assert store.rows(FactRow)[0].value == {"t": [1, 2], "big": 2**70, "inf": math.inf}


def test_search_ranks_by_the_number_of_terms(store: Store) -> None:
    one = put(store, "a", record("a", 0, "one", terms="mira boat mira harbour"))
    two = put(store, "a", record("a", 1, "two", terms="boat"), record("a", 1, "none", terms=""), record("a", 1, "blank", terms="  "))
    three = put(store, "b", record("b", 1, "three", terms="harbour mira boat storm"))
    four = put(store, "a", record("a", 2, "one", terms="boat storm"))
    assert store.search(["mira", "boat", "harbour"]) == [("three", three), ("one", one), ("one", four), ("two", two)]
    assert store.search(["mira", "boat", "mira"], runs=["a"]) == [("one", one), ("one", four), ("two", two)]
    assert store.search(["boat"], runs=["b", "a", "b"], limit=2) == [("one", four), ("three", three)]
    assert (
        store.search(["storm"], runs=["nobody"])
        == store.search(["storm"], runs=[])
        == store.search([])
        == store.search(["boat"], limit=0)
        == []
    )
    assert store.search(["BOAT"]) == store.search(["boat"]), "capitals do not count"


TERMS = [
    "米拉",
    "家",
    "дом",
    "ёлка",
    "елка",
    "café",
    "cafe",
    "it's",
    'say"',
    "a-b",
    "c++",
    "*",
    "a*",
    "(",
    "and",
    "near",
    "x:y",
    "🙂",
    "🫠",
    "ไทย",
    "हिन्दी",
    "१",
    "\u200d",
    "terms",
    "-a",
    "^a",
    "$5",
    "ß",
    "ﬁ",
    "or",
    "not",
    "{",
    "}",
    "\\",
    "%",
    "_",
    "'",
    ";",
    "--",
]


def test_every_term_is_found_and_only_it(store: Store) -> None:
    put(store, "a", *(record("a", 0, term, terms=f"before {term} after") for term in TERMS))
    for term in TERMS:
        assert [name for name, _ in store.search([term])] == [name for name, _ in store.search([term], runs=["a"])] == [term]
    assert len(store.search(["before"])) == len(TERMS)


def test_search_with_odd_terms_fails_cleanly_or_finds(store: Store) -> None:
    put(
        store,
        "a",
        record("a", 0, "odd", terms="nul\x00l half\ud83d " + "long" * 20_000),
        record("a", 0, "many", terms=" ".join(f"w{n}" for n in range(3000))),
    )
    assert [name for name, _ in store.search(["nul\x00l"])] == ["odd"]
    assert [name for name, _ in store.search(["long" * 20_000])] == ["odd"]
    assert store.search(["half"]) == []
    assert [name for name, _ in store.search([f"w{n}" for n in range(1000)], runs=["a"])] == ["many"]
