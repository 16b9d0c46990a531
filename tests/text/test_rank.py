"""Relevance of long texts for a question, without an index."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import _rank, rank, sentences
from tests.text.samples import DIALOGUE, DIALOGUE_RU, EN, NEXT_EN, RU, TEXTS, ZH
from tests.text.test_tokens import ANY

STOCK = {"en": EN + NEXT_EN + DIALOGUE, "ru": RU + DIALOGUE_RU, "zh": ZH}
FACTS = {
    "en": [
        ("The apothecary hid a silver compass under the third beehive.", "Where was the compass of the apothecaries hidden?"),
        ("Ivo's grandmother had been baptised in Trondheim.", "In which city was the grandmother baptised?"),
        ("They were dying their sails with walnut shells.", "How were the sails dyed, and with which shell?"),
        ("It was possible to cross at low water only in March.", "What about the possibility of crossing at low water?"),
        ("A café stood where the chapel burned.", "Which cafe stands at the burned chapel?"),
    ],
    "ru": [
        ("Аптекарь спрятал серебряный компас под третьим ульем.", "Где лежит компас, который прятал аптекарь, и под каким он ульем?"),
        ("Бабушку Иво крестили в Тронхейме.", "Кто из бабушек крещён в Тронхейме?"),
        ("Паруса красили скорлупой грецких орехов.", "Чем красят парус: скорлупой ореха?"),
        ("Тетёрка сидела на заборе аптеки.", "Что делала тетерка у забора аптеки?"),
        ("В марте озёра замерзали до самого дна.", "Когда замерзало озеро, до дна?"),
    ],
    "zh": [
        ("药剂师把银罗盘藏在第三个蜂箱下面。", "罗盘被药剂师藏在哪里？"),
        ("伊沃的祖母是在特隆赫姆受洗的。", "祖母在哪个城市受洗？"),
        ("他们用核桃壳给船帆染色。", "船帆是用什么染色的？"),
        ("三月里湖水一直冻到湖底。", "湖水什么时候冻到底？"),
        ("面包师提前一小时关了店铺。", "谁提前关了店铺？"),
    ],
}


def haystack(language: str, size: int) -> list[str]:
    """Twenty texts of about `size` characters each, shuffled from our passages, with a fact in every fourth."""
    chance = random.Random(11)
    stock = [sentence.strip() for sentence in sentences(STOCK[language]) if len(sentence) > 8]
    gap = "" if language == "zh" else " "
    texts = [gap.join(chance.choices(stock, k=size // 40)) for _ in range(20)]
    for number, (fact, _) in enumerate(FACTS[language]):
        middle = len(texts[4 * number]) // 2
        texts[4 * number] = texts[4 * number][:middle] + gap + fact + gap + texts[4 * number][middle:]
    return texts


@pytest.mark.parametrize("size", [400, 20_000])
@pytest.mark.parametrize("language", FACTS)
def test_finds_the_text_that_has_the_fact(language: str, size: int) -> None:
    texts = haystack(language, size)
    for number, (_, question) in enumerate(FACTS[language]):
        scores = rank(question, texts)
        assert max(range(20), key=lambda i: scores[i]) == 4 * number, question


def test_inflections_count_and_other_words_do_not() -> None:
    assert rank("Run!", ["They were running.", "He runs.", "The runway.", "Runes."]) == pytest.approx(
        [*rank("run", ["They were running.", "He runs.", "x" * 11, "Runes."])]
    )
    for question, same, other in [
        ("story", "stories", "store"),
        ("маяк", "маяками", "мак"),
        ("Мира", "Мирой", "мороз"),
        ("灯塔", "旧灯塔里", "塔灯"),
        ("hope", "hoping", "hop"),
        ("use", "using", "usher"),
        ("day", "days", "dab"),
        ("possible", "possibility", "possum"),
        ("1812", "1812", "181"),
    ]:
        first, second = rank(question, [same, other])
        assert first > 0, (question, same)
        assert second == 0, (question, other)


def test_what_only_begins_alike_counts_half() -> None:
    exact, related, inside = rank("light", ["a light here", "lighthouse it", "a daylight so"])
    assert exact > related > 0
    assert inside == 0


def test_rare_words_count_more_and_long_texts_less() -> None:
    sea, bell, both, long = rank("sea bell", ["the sea", "the bell", "the sea", "the sea " + "and so on " * 50])
    assert bell > sea == both > long > 0


def test_more_occurrences_count_more_but_ever_less() -> None:
    one, two, three, none = rank("sea", ["sea x x", "sea sea x", "sea sea sea", "x x x x x x x"])
    assert three > two > one > none == 0
    assert two - one > three - two


def test_identifiers_and_capitals() -> None:
    assert all(score > 0 for score in rank("token", ["count_tokens(x)", "TOKENS", "TokenRatio", "“Token”"]))


def test_marks_and_widths_fold() -> None:
    assert all(score > 0 for score in rank("café", ["CAFÉ", "cafe\u0301", "cafe", "ｃａｆé"]))
    assert all(score > 0 for score in rank("ёлка", ["елка", "ЁЛКУ", "ёлки"]))


@pytest.mark.parametrize("question", ["", "?!", "what is it and who are they", "что это и как", "我们的"])
def test_nothing_to_look_for(question: str) -> None:
    assert rank(question, [EN, RU, ZH]) == [0.0, 0.0, 0.0]


def test_no_texts_and_empty_ones() -> None:
    assert rank("sea", []) == []
    assert rank("sea", ["", ""]) == [0.0, 0.0]
    assert rank("sea", ["", "sea"])[1] > 0


def test_texts_are_read_once_one_by_one() -> None:
    alive = 0

    def texts() -> Iterator[str]:
        nonlocal alive
        for i in range(5):
            alive += 1
            yield f"the sea {i}"

    assert len(rank("sea", texts())) == alive == 5


@given(
    st.lists(ANY | st.sampled_from([*TEXTS.values()]), max_size=4),
    ANY | st.sampled_from(["lighthouse key", "маяк ключ", "灯塔 钥匙"]),
    st.integers(1, 60),
)
def test_pieces_do_not_show(texts: list[str], question: str, piece: int) -> None:
    expected = rank(question, texts)
    assert all(score >= 0 for score in expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rank, "_PIECE", 2_000 + piece)
        assert rank(question, texts) == expected


def test_a_pair_across_pieces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rank, "_PIECE", 2_100)
    text = "山" * 2_099 + "灯塔" + "山" * 3_000
    assert rank("灯塔", [text, "山"])[0] > 0


def test_one_endless_word() -> None:
    assert rank("lighthouse", ["lighthouse" * 30_000, "a lighthouse"])[1] > 0
