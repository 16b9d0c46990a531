"""Where a claim is written: what is cited stands there, on the lines that are said, and what is nowhere is said to be nowhere."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.read._chunks import Chunk, Part
from fabula.read._evidence import Evidence, Finder
from fabula.text import lexical_terms

TEXT = {
    "en": (
        "Mira kept the ninth key under the loose board.\n"
        "“Nobody,” said the mayor — and he meant it — “opens vault Amber.” The tide was\nout that morning.\n\n"
        "Her brother had sold the ferry to a stranger for forty crowns. It rained until noon.\n"
    ),
    "zh": (
        "米拉把第九把钥匙藏在松动的木板下面。\n"
        "“谁也不许，”镇长说——他是认真的——“打开琥珀金库。”那天早上\n潮水已经退了。\n\n"
        "她的哥哥以四十克朗的价钱把渡船卖给了一个外乡人。雨一直下到中午。\n"
    ),
    "ru": (
        "Мира прятала девятый ключ под шаткой доской.\n"
        "«Никто, — сказал мэр, и он не шутил, — не откроет хранилище Янтарь». Отлив начался\nеще утром.\n\n"
        "Её брат продал паром чужаку за сорок крон. Дождь шёл до полудня.\n"
    ),
}
CODE = (
    "import os\n\n\nclass VaultKeeper:\n    def open_vault(self, code: int) -> bool:\n        # the code is checked twice\n"
    "        if code != self.code:\n            raise WrongCode(code)\n        return True\n\n\n"
    "def close_all(keepers):\n    for keeper in keepers:\n        keeper.open_vault(0)\n"
)


def finder(*texts: str, line: int = 1, places: Sequence[tuple[int, str]] = (), kinds: Sequence[str] = ()) -> Finder:
    """Of a chunk of documents 0, 1, …, each from `line` on."""
    parts = tuple(
        Part(n, line, text.count("\n") + (not text.endswith("\n")), f"h{n}", tuple(places) if n == 0 else ())
        for n, text in enumerate(texts)
    )
    return Finder(Chunk(0, 100, parts), list(texts), kinds)


def right(f: Finder, found: Evidence) -> Evidence:
    """A citation is true: its quote stands on its lines, and begins and ends there."""
    index = next(n for n, part in enumerate(f.chunk.parts) if part.document == found.document)
    part, text = f.chunk.parts[index], f.texts[index]
    assert part.line <= found.first <= found.last <= part.line + max(0, part.lines - 1)
    if found.support == "none":
        assert found.quote == ""
        return found
    lines = text.split("\n")[found.first - part.line : found.last - part.line + 1]
    assert found.quote in "\n".join(lines)
    assert found.quote.count("\n") == found.last - found.first
    assert found.quote == found.quote.strip() != ""
    return found


# -- the model's quote ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "quote", "found", "lines"),
    [
        ("en", "the ninth key under the loose board", "the ninth key under the loose board", (1, 1)),
        ("en", '"Nobody," said the mayor - and he meant it', "“Nobody,” said the mayor — and he meant it", (2, 2)),
        ("en", "The tide was out  that morning", "The tide was\nout that morning", (2, 3)),
        ("en", "«Her brother had sold the ferry»", "Her brother had sold the ferry", (5, 5)),
        ("en", "had sold the ferry ... forty crowns", "had sold the ferry", (5, 5)),
        ("en", "It rained [...] until noon", "until noon", (5, 5)),
        ("zh", "第九把钥匙藏在松动的木板下面", "第九把钥匙藏在松动的木板下面", (1, 1)),
        ("zh", '"谁也不许,"镇长说', None, None),
        ("zh", "「谁也不许，」镇长说--他是认真的", "“谁也不许，”镇长说——他是认真的", (2, 2)),
        ("zh", "那天早上潮水已经退了", "那天早上\n潮水已经退了", (2, 3)),
        ("zh", "她的哥哥以四十克朗……卖给了一个外乡人", "她的哥哥以四十克朗", (5, 5)),
        ("ru", "девятый ключ под шаткой доской", "девятый ключ под шаткой доской", (1, 1)),
        ("ru", '"Никто, - сказал мэр, и он не шутил', "«Никто, — сказал мэр, и он не шутил", (2, 2)),
        ("ru", "Отлив начался еще утром", "Отлив начался\nеще утром", (2, 3)),
        ("ru", "Её брат […] за сорок крон", "за сорок крон", (5, 5)),
    ],
)
def test_quotes(language: str, quote: str, found: str | None, lines: tuple[int, int] | None) -> None:
    f = finder(TEXT[language])
    evidence = right(f, f.find("", quote))
    if found is None:
        assert evidence.support != "quoted"
    else:
        assert (evidence.quote, (evidence.first, evidence.last), evidence.support) == (found, lines, "quoted")


def test_lines_go_on_from_the_part() -> None:
    f = finder(TEXT["en"], line=40)
    found = right(f, f.find("", "The tide was out that morning"))
    assert (found.first, found.last) == (41, 42)


def test_a_quote_that_says_something_else_gives_way() -> None:
    """The words stand there, but they are not what is claimed."""
    f = finder(TEXT["en"])
    found = right(f, f.find("The brother sold the ferry to a stranger for forty crowns.", "until noon"))
    assert (found.support, found.first) == ("found", 5)
    assert "sold the ferry" in found.quote


@pytest.mark.parametrize("claim", ["米拉的哥哥卖掉了渡船。", "Её брат продал паром."])
def test_a_claim_in_another_language_keeps_its_quote(claim: str) -> None:
    f = finder(TEXT["en"])
    found = right(f, f.find(claim, "sold the ferry to a stranger"))
    assert (found.support, found.quote) == ("quoted", "sold the ferry to a stranger")


def test_a_long_quote_is_cut_and_its_lines_with_it() -> None:
    text = "\n".join(f"Line {n} says that the tide is out and the boats lie still." for n in range(1, 30)) + "\n"
    f = finder(text)
    found = right(f, f.find("", text))
    assert len(found.quote) <= 400
    assert found.first == 1
    assert found.last < 9


# -- what the program finds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "claim", "quote", "line", "holds"),
    [
        ("en", "Mira hid the ninth key under a loose board.", "the key lay beneath the floor", 1, "ninth key"),
        ("en", "A stranger bought the ferry for forty crowns.", "", 5, "forty crowns"),
        ("zh", "第九把钥匙在松动的木板下面。", "钥匙放在地板底下", 1, "第九把钥匙"),
        ("zh", "哥哥把渡船以四十克朗卖给外乡人。", "", 5, "四十克朗"),
        ("ru", "Девятый ключ Мира прятала под шаткими досками.", "ключ лежал под полом", 1, "девятый ключ"),
        ("ru", "Брат Миры продал чужаку паром за сорок крон.", "", 5, "сорок крон"),
    ],
)
def test_the_sentence_that_says_it_is_found(language: str, claim: str, quote: str, line: int, holds: str) -> None:
    f = finder(TEXT[language])
    found = right(f, f.find(claim, quote))
    assert (found.support, found.first) == ("found", line)
    assert holds in found.quote


@pytest.mark.parametrize(
    ("language", "claim", "quote"),
    [
        ("en", "The lighthouse was built by a queen from the north.", "the queen laid the first stone"),
        ("en", "Ninth.", ""),
        ("zh", "灯塔是北方的女王建造的。", "女王放下第一块石头"),
        ("ru", "Маяк построила королева с севера.", "королева заложила первый камень"),
        ("en", "The lighthouse was built by a queen from the north.", "the"),
        ("zh", "灯塔是北方的女王建造的。", "，"),
        ("ru", "Маяк построила королева с севера.", "и"),
        ("en", "", ""),
        ("en", "…", "..."),
    ],
)
def test_what_is_invented_is_not_found(language: str, claim: str, quote: str) -> None:
    f = finder(TEXT[language], line=7)
    found = right(f, f.find(claim, quote))
    assert (found.support, found.quote) == ("none", "")
    assert (found.first, found.last) == (7, 11)


def test_one_common_word_is_no_source() -> None:
    f = finder(TEXT["en"])
    assert f.find("The key of the kingdom was forged by dwarves in a distant mountain.", "").support == "none"


# -- code ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "quote", "line"),
    [
        ("The class `VaultKeeper` guards a vault.", "class VaultKeeper", 4),
        ("`open_vault()` compares the code and raises an error.", "opens the vault", 5),
        ("VaultKeeper knows its code.", "", 4),
        ("close_all goes through all keepers.", "def close_all(self)", 12),
        ("A wrong code raises WrongCode.", "raise WrongCode(code)", 8),
        ("The code is checked two times.", "# the code is checked twice", 6),
    ],
)
def test_code_is_found_by_line(claim: str, quote: str, line: int) -> None:
    f = finder(CODE, kinds=["code"])
    found = right(f, f.find(claim, quote))
    assert (found.first, found.last) == (line, line)
    assert found.support in ("quoted", "found", "named")


def test_a_name_that_does_not_occur_is_not_found() -> None:
    f = finder(CODE, kinds=["code"])
    assert f.find("`delete_vault()` removes everything from disk.", "shutil.rmtree(path)").support == "none"


# -- several documents, places --------------------------------------------------------------------------------------------------


def test_the_right_document_of_several() -> None:
    f = finder("Nothing here.\n", TEXT["en"], CODE, kinds=["prose", "prose", "code"])
    assert right(f, f.find("", "sold the ferry")).document == 1
    assert right(f, f.find("", "for keeper in keepers:")).document == 2
    assert right(f, f.find("A stranger has the ferry for forty crowns, sold by her brother.", "")).document == 1
    nowhere = f.find("The queen of the north built a lighthouse.", "")
    assert (nowhere.document, nowhere.first, nowhere.last) == (0, 1, 1)


def test_none_is_the_whole_chunk_of_one_document() -> None:
    parts = (Part(3, 10, 5, "a"), Part(3, 15, 2, "b"))
    found = Finder(Chunk(0, 50, parts), ["x\n" * 5, "y\n" * 2]).find("", "")
    assert (found.document, found.first, found.last, found.support) == (3, 10, 16, "none")


@pytest.mark.parametrize(
    ("quote", "place"),
    [("Mira kept", ""), ("said the mayor", "page 2"), ("Her brother", "page 3"), ("It rained", "page 4"), ("nowhere", "")],
)
def test_places(quote: str, place: str) -> None:
    text = TEXT["en"]
    places = [(text.index("“Nobody"), "page 2"), (text.index("Her brother"), "page 3"), (text.index("It rained"), "page 4")]
    assert finder(text, places=places).find("", quote).place == place


def test_a_place_from_the_beginning() -> None:
    f = finder(TEXT["en"], places=[(0, "Chapter 1")])
    assert f.find("", "until noon").place == "Chapter 1"
    assert f.find("", "").place == "Chapter 1"


# -- any text ------------------------------------------------------------------------------------------------------------------


@given(st.sampled_from([*TEXT.values(), CODE, "", "\n\n", "x"]), st.integers(0, 2**32), st.booleans())
def test_any_stretch_is_found(text: str, seed: int, code: bool) -> None:
    rnd = random.Random(seed)
    edges = [at for at in range(len(text) + 1) if not re.fullmatch(r"[^\W\u3041-\u9fff]{2}", text[max(0, at - 1) : at + 1])]
    start = rnd.choice(edges)
    quote = text[start : rnd.choice([at for at in edges if start <= at <= start + 60])]
    f = finder(text, line=rnd.randint(1, 9), kinds=["code" if code else "prose"])
    found = right(f, f.find("", quote))
    assert (found.support == "quoted") == bool(lexical_terms(quote))


@given(st.text(max_size=200), st.text(max_size=60), st.text(max_size=60))
def test_any_answer_of_a_model(text: str, claim: str, quote: str) -> None:
    for kind in ("prose", "code"):
        f = finder(text, kinds=[kind])
        right(f, f.find(claim, quote))


# -- what is no evidence -------------------------------------------------------------------------------------------------------


def test_a_quote_that_has_nothing_to_do_with_the_claim_is_none() -> None:
    f = finder(TEXT["en"])
    assert f.find("The moon is made of green cheese and nobody minds.", "Mira").support == "none"
    assert f.find("Mira kept the ninth key.", "ninth key under the loose board").support == "quoted"
    assert f.find("Девятый ключ лежал под доской.", "ninth key under the loose board").support == "quoted", "a claim in another script"


def test_code_that_only_names_is_said_to_name() -> None:
    found = finder(CODE, kinds=["code"]).find("`VaultKeeper` objects are deleted after thirty days.", "")
    assert found.support == "named"
    assert "class VaultKeeper" in found.quote


def test_a_script_on_one_line_quotes_what_it_is_about() -> None:
    text = ";".join(f"function f{n}(x){{return x*{n}}}" for n in range(4_000))
    found = finder(text, kinds=["code"]).find("The function `f2718` multiplies by 2718.", "")
    assert "f2718" in found.quote
    assert found.quote in text


def test_what_is_not_found_in_several_files_is_put_to_the_nearest() -> None:
    texts = ["Apples are red.\n", "The boat lies in the harbour and is old.\n"]
    chunk = Chunk(0, 50, (Part(0, 1, 1, "a"), Part(1, 1, 1, "z")))
    found = Finder(chunk, texts).find("Someone renamed a boat in some harbour long ago, they say, secretly.", "")
    assert (found.support, found.document) == ("none", 1)
