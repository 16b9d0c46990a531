"""Loops, repeated context, quotes and terms of search."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import best_quote, find_loop, find_quote, find_requoted, lexical_terms, repeated_share, sentences
from fabula.text._quotes import _folded
from tests.text.samples import BALLAD, CHANT_ZH, CODE, DIALOGUE, DIALOGUE_RU, EN, JA, NEXT_EN, RU, TEXTS, ZH
from tests.text.test_tokens import ANY

STUCK = {
    "sentence": (NEXT_EN, " She took a deep breath and walked to the door.", 5),
    "cut sentence": (NEXT_EN, " She took a deep breath and walked to the", 5),
    "two sentences": (EN, "\n\n“I know,” said Mira. Tom looked at the sea.", 5),
    "Chinese": (ZH, "她深吸了一口气，走向门口。", 5),
    "Russian": (RU, " Она глубоко вздохнула и пошла к двери.", 5),
    "Japanese": (JA, "彼女は深く息を吸って、扉へ歩いていった。", 5),
    "word": (EN, " the", 16),
    "character": (ZH, "的", 40),
    "three words": (EN, " on and on", 9),
    "letter": (EN, "a", 200),
    "dots": (EN, ".", 200),
    "blank lines": (EN, "\n", 400),
    "rules": (EN, "\n***\n", 70),
    "paragraph": (RU, "\n\n" + EN[:400], 2),
}


@pytest.mark.parametrize("name", STUCK)
def test_loops_are_found(name: str) -> None:
    before, phrase, times = STUCK[name]
    loop = find_loop(before + phrase * times)
    assert loop is not None
    assert loop.kind == "repeat"
    assert abs(loop.times - times) <= 1
    assert abs(loop.start - len(before)) <= 12
    assert loop.start < loop.keep <= loop.start + len(phrase) + 3
    assert loop.end >= len((before + phrase * times).rstrip()) - len(phrase)
    assert find_loop((before + phrase * times)[-2000:]) is not None, "on the end of a stream too"
    assert find_loop(before + phrase) is None, "said once it is none"


@pytest.mark.parametrize(
    "text",
    [*TEXTS.values(), DIALOGUE, BALLAD, CHANT_ZH, DIALOGUE_RU, NEXT_EN, CODE, EN + NEXT_EN + DIALOGUE + BALLAD, ZH + CHANT_ZH],
)
def test_prose_is_no_loop(text: str) -> None:
    assert find_loop(text) is None


def test_what_people_write_is_no_loop() -> None:
    for text in (
        "Burn the witch! " * 4,
        "哈哈哈哈哈哈哈哈哈哈",
        "No. No. No. No. No.",
        "Never, never, never, never, never!",
        "-" * 80,
        "* * *\n" * 3,
        "I am here. " * 3,
        "",
    ):
        assert find_loop(text) is None, text


def test_a_long_ballad_is_no_loop() -> None:
    words = EN.split()
    stanzas = [" ".join(words[i : i + 12]) for i in range(0, 190, 12)]
    ballad = "".join(f"{stanza},\nBurn, little lamp, burn bright,\nAnd bring the boats home tonight.\n\n" for stanza in stanzas)
    assert find_loop(ballad) is None


def test_the_same_with_small_changes_is_a_loop() -> None:
    text = " ".join(
        f"Chapter {i}: the keeper walked up the winding stair and looked at the sea. He thought of number {i}." for i in range(14)
    )
    loop = find_loop(EN + text)
    assert loop is not None
    assert loop.kind == "share"
    zh = "".join(f"第{i}天，守塔人又走上了盘旋的楼梯，望着灰色的大海，想起了女儿。" for i in range(20))
    assert find_loop(zh) is not None


@given(ANY | st.text("ab .", max_size=300))
def test_loop_offsets(text: str) -> None:
    loop = find_loop(text)
    if loop is not None:
        assert 0 <= loop.start < loop.keep <= loop.end <= len(text)
        assert loop.phrase in text


def test_loops_are_found_in_linear_time() -> None:
    """Would take hours if each period were tried at each place."""
    rabbits = ["a", "a b"]
    while len(rabbits[-1]) < 100_000:
        rabbits.append(rabbits[-1] + " " + rabbits[-2])
    words = random.Random(1).choices((EN + NEXT_EN).split(), k=30_000)
    for text in (rabbits[-1], " ".join(words), "a. " * 60_000, ".-" * 100_000, " " * 200_000 + "x"):
        find_loop(text)


def test_repeated_share() -> None:
    assert repeated_share(NEXT_EN, [EN, DIALOGUE]) < 0.02
    assert repeated_share(ZH, [CHANT_ZH]) < 0.02
    for text in TEXTS.values():
        assert repeated_share(text, ["something else", text]) == 1
        assert repeated_share(text[len(text) // 2 :].upper(), [text]) > 0.97
    assert 0.15 < repeated_share(NEXT_EN + EN[:400], [EN]) < 0.4
    assert repeated_share("Yes.", ["Yes."]) == repeated_share("", [EN]) == repeated_share(EN, []) == 0


def test_requoted() -> None:
    assert find_requoted(NEXT_EN, [EN, RU, DIALOGUE]) is None
    stretch = EN[: EN.index(" with her")]
    assert find_requoted("So it began. " + stretch + " and swam away.", [RU, EN]) == stretch
    assert find_requoted("So: " + " ".join(EN.split()[:11]) + " fell.", [EN]) is None
    assert find_requoted(EN.replace(" ", "\n")[:200], [EN]) is not None, "line breaks aside"
    piece = "她攀上礁石，大衣口袋里装着父亲的钥匙，那封折了两折的信"
    assert find_requoted(f"他说：{piece}在海里。", [ZH]) == piece
    assert find_requoted("他说：" + piece[:15], [ZH]) is None
    assert find_requoted("ab c " * 20_000, ["ab c " * 20_000]) is not None, "and not in quadratic time"


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("I'm not looking for a lamp", "I'm not looking for a lamp"),
        ("“I’m not looking for a lamp,” she said.", '"I\'m not looking for a lamp," she said.'),
        ("'You won’t find anything up there'", "You won't find anything up there"),
        ("The door was\nswollen   with salt", "The door was swollen with salt"),
        ("until they landed. “You won't", "until they landed.\n\n\"You won't"),
        ("  Mira knelt down. ", "Mira knelt down."),
        ("mira knelt down", None),
        ("Mira knelt", "Mira knelt"),
        ("Mira kneeled down", None),
        ("", None),
        ("”", None),
    ],
)
def test_find_quote(quote: str, found: str | None) -> None:
    span = find_quote(quote, EN)
    assert (EN[slice(*span)] if span else None) == found


@pytest.mark.parametrize("dashes", ["- - - - - - x", "— – — – — – x", "-- -- -- -- x"])
def test_a_quote_of_dashes_is_linear_work(dashes: str) -> None:
    """A line of a table is not tried in every way to share it out."""
    assert find_quote(dashes, "-" * 2_000 + " y") is None
    assert find_quote(dashes, "a " + "-" * 2_000 + " x") == (1, 2_004)


def test_find_quote_in_other_languages() -> None:
    assert find_quote("Я не лампу ищу, - сказала она.", RU) is not None
    assert find_quote("Ничего вы там не найдёте, -- произнёс он", RU) is not None
    span = find_quote("「我不是来找灯的。」她说", ZH.replace("来找", "来\n找"))
    assert span is not None
    assert find_quote("我不是去找灯的", ZH) is None
    assert find_quote("wait... he", "“Wait,” but: wait… he") is not None


RUNS = {
    "blanks": " ",
    "lines": "\n",
    "dashes": "-",
    "dashes with blanks": " —",
    "quote marks": '"',
    "kinds of quote marks": "“'",
    "dots": "….",
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_long_run_before_a_quote_is_linear_work(run: str) -> None:
    """A search that begins anew at each character of the run would take minutes for each of these."""
    row = run * (200_000 // len(run))
    for mark in ("— ", "“—", "… "):
        assert find_quote(f"{mark}she left", f"a{row}b and she never left") is None
        end = f"b; {mark}\nshe left".replace("—", "--")
        assert find_quote(f"{mark}she left", f"a{row}{end}") == (len(row) + 4 - (mark == "— "), len(row) + 1 + len(end))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_is_one_piece(run: str) -> None:
    """However long it is, it is looked at once and no search begins inside it."""
    sizes = [[(form, start) for form, start, _ in _folded(f"a{run * n}b")] for n in (50, 5_000)]
    assert len(sizes[0]) == len(sizes[1]) <= len(("edge", "a", "edge", "run", "edge", "b", "edge"))
    assert [form for form, _ in sizes[0]] == [form for form, _ in sizes[1]]


@pytest.mark.parametrize(
    ("quote", "text", "start"),
    [
        ("cat", "concatenation", None),
        ("cat", "Concatenation of a cat.", 19),
        ("the cat", "bathe cats; “the cat”", 13),
        ("50", "1500, 505 and 150", None),
        ("50", "1500 or 50%", 8),
        ("‘50 crowns’", "150 crowns, “50 crowns”", 12),
        ("cat", "cat_food, my_cat", None),
        ("cafe", "cafe\u0301s and cafe\u0301", None),
        ("known", "well-known", 5),
        ("кот", "который скотина", None),
        ("— кот", "который — скот — который; –кот", 25),
        ("дом 5", "дом 57, дом\n5", 8),
        ("не", "нет, она не она", 9),
        ("灯", "我不是来找灯的", 5),
        ("找灯", "来找\n灯的", 1),
        ("15年", "2015年，15年", 6),
        ("iPhone", "用iPhone拍", 1),
        ("の家", "彼女の家へ", 2),
        ("서울", "서울에서", 0),
        ("He left.", "so: He\nleft...", 4),
    ],
)
def test_a_quote_cuts_no_word(quote: str, text: str, start: int | None) -> None:
    span = find_quote(quote, text)
    assert (span and span[0]) == start


@given(st.text(st.sampled_from("ab5灯 \n.-—“\"'…"), max_size=40), st.integers(0, 2**32))
def test_a_piece_is_always_found(text: str, seed: int) -> None:
    """A piece that cuts no word; one that does is found only where it stands whole."""
    rnd = random.Random(seed)
    a, b = sorted((rnd.randint(0, len(text)), rnd.randint(0, len(text))))
    piece = text[a:b].strip()
    edges = [m.start() for m in re.finditer(r"(?<![ab5])|(?![ab5])", text)]
    span = find_quote(piece, text)
    whole = any(text.startswith(piece, at) and at + len(piece) in edges for at in edges)
    assert span is not None if piece and whole else not piece or span is None or span[0] in edges
    if span:
        assert set(span) <= set(edges)
        same = [re.sub(r"[^ab5灯]", "", part) for part in (text[slice(*span)], piece)]
        assert same[0] == same[1]


@pytest.mark.parametrize(
    ("summary", "text", "start"),
    [
        ("Mira finds a child's shoes on the stair.", EN, "On the third step"),
        ("The ferryman reads her ticket.", EN, "The ferryman had looked"),
        ("Мира увидела коричневые ботинки на третьей ступеньке.", RU, "На третьей ступеньке"),
        ("米拉在台阶上发现一双小鞋。", ZH, "第三级台阶上"),
        ("zzz", EN, "The lighthouse had been"),
    ],
)
def test_best_quote(summary: str, text: str, start: str) -> None:
    quote = best_quote(summary, text)
    assert quote.startswith(start)
    assert find_quote(quote, text) is not None
    assert quote in text


@given(ANY, ANY)
def test_best_quote_is_verbatim(summary: str, text: str) -> None:
    quote = best_quote(summary, text)
    assert quote in text
    assert (quote == "") == (text.strip() == "")


def test_terms_of_russian_names() -> None:
    (name,) = lexical_terms("Мира")
    for form in ("Миры", "Мирой", "Мире", "Миру", "МИРА", "«Мирой»"):
        assert lexical_terms(form) == [name], form
    assert lexical_terms("ещё пошёл") == lexical_terms("пошел")
    assert lexical_terms("её ещё моё") == []
    assert lexical_terms("ключи") == lexical_terms("ключом")


def test_terms_of_chinese_words() -> None:
    assert set(lexical_terms("灯塔")) <= set(lexical_terms("旧灯塔里"))
    assert lexical_terms("灯") == ["灯"]
    assert set(lexical_terms("钥匙")) <= set(lexical_terms(ZH))
    assert "我们" not in lexical_terms("我们走")
    assert set(lexical_terms("鍵")) | {"父の", "の鍵"} >= set(lexical_terms("父の鍵"))
    assert lexical_terms("灯塔Mira灯塔") == ["灯塔", "mira", "灯塔"]


def test_terms_of_english() -> None:
    assert lexical_terms("The keeper's lighthouses were burning") == lexical_terms("keeper lighthouse burn")
    assert lexical_terms("Zoë’s café") == lexical_terms("ZOE cafe")
    assert lexical_terms("ＡＢＣ 12") == ["abc", "12"]
    assert lexical_terms("the and of _ !") == []


@given(ANY)
def test_terms_of_anything(text: str) -> None:
    for term in lexical_terms(text):
        assert term
        assert not term.isspace()
        assert " " not in term


def test_sentences_of_code_do_no_harm() -> None:
    assert "".join(sentences(CODE)) == CODE
