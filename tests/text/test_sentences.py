"""Where sentences end, and whether the last one does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import ends_finished, sentences, trim_to_sentence
from tests.text.samples import DIALOGUE, DIALOGUE_RU, EN, JA, NEXT_EN, RU, TEXTS, ZH
from tests.text.test_tokens import ANY

PIECES = st.sampled_from(
    [
        "Mr. ",
        "She said",
        ". ",
        "?",
        "! ",
        "…",
        "...",
        "”",
        "“",
        "他走了",
        "。",
        "……",
        "」",
        "\n",
        "\n\n",
        "— ",
        "А. ",
        "г. ",
        "3.5 ",
        " ",
        "and ",
        "*",
    ]
)
MIXED = ANY | st.lists(PIECES, max_size=40).map("".join)

SPLIT = {
    "en": [
        "Mr. Vale met Dr. J. R. Brown at 3.5 p.m. in St. Ives. |“Come in!” she said. |He did... and sat. |(It was cold.) |Then he left.",
        "“Hello?” |“Who is it?” asked Mira. |“It’s me,” he said. |\"Wait!\" |He ran. |So am I. |You know e.g. cats, i.e. pets.",
        "The U.S. Army came. |It ended in the U.S. |They left, etc. |The end.",
        "It cost 3.14. |Fifty came. |He said no. |See No. 7 there!",
        "Wrapped line one\ngoes on here. |Next.\n\n|# Chapter 1\n|The sea was calm.",
        "1. First things\n|2. Second things. |Good.",
        "He waited… |Nothing. |“But—” |“No.”",
    ],
    "ru": [
        "Он родился в 1812 г. |Потом жил в г. Москве, т. е. в столице, и т. д. |А. С. Пушкин его знал.",
        "— Ты пришла? — спросила Мира. |— Да. |— Он кивнул… и ушёл.",
        "«Стой!» — крикнул он. |«Нет.» |Она ушла... |Всё.",
        "Было 3,5 тыс. руб. и ещё 2 млн. долл. |Мира молчала.",
        "См. рис. 3. |Он жил на ул. Ленина, д. 5, кв. 12. |Потом уехал.",
        "— Да.\n|— Нет.\n|— Почему?",
    ],
    "zh": [
        "“你来了。”她说。|“我……我不知道！”|他走了……|灯灭了。|什么？！|真的吗？|“走吧。”",
        "第二天，雨停了。|他说：“好。”|然后走了。",
        "第一章 灯塔\n|灯塔已经熄灭了。|船回来了！",
    ],
    "ja": ["「来たの」\n|「ええ」彼女は言った。|雨が降っていた。|「もう遅い！」と彼は叫んだ。"],
    "de": ["„Halt!“ |Er blieb stehen. |»Komm!« |Sie kam.", "Am 3. Oktober kam er. |Er blieb z. B. heute."],
    "fr": ["M. Dupont est parti. |« Vraiment ? » |Oui."],
}  # fmt: skip


@pytest.mark.parametrize(("language", "marked"), [(language, marked) for language, cases in SPLIT.items() for marked in cases])
def test_sentences(language: str, marked: str) -> None:
    assert sentences(marked.replace("|", ""), language) == marked.split("|")
    if language != "de":
        assert sentences(marked.replace("|", "")) == marked.split("|"), "without being told the language"


@given(MIXED)
def test_nothing_is_lost(text: str) -> None:
    found = sentences(text)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize("text", [*TEXTS.values(), DIALOGUE, DIALOGUE_RU, NEXT_EN])
def test_real_prose(text: str) -> None:
    found = sentences(text)
    assert "".join(found) == text
    assert len(found) >= 12
    assert all(ends_finished(sentence) for sentence in found)
    assert ends_finished(text)


def test_one_passage_has_as_many_sentences_in_each_language() -> None:
    assert {language: len(sentences(text)) for language, text in TEXTS.items()} == {"en": 15, "zh": 14, "ru": 15, "ja": 15}


def test_long_texts_are_linear() -> None:
    """Would take minutes if each sentence looked back over all of the text."""
    for text in ("word 3. " * 40_000, "no end here\n" * 40_000, "他……" * 40_000, "\n" * 200_000, "." * 200_000):
        assert "".join(sentences(text)) == text


FINISHED = [
    "He left.", "“He left.”", "He left.'\"", "“Wait—”", "So am I.", "(He left.)", "*He left.*", "He has 3.", "At last!?", "He waited…",
    "...", "他走了。", "“他走了。”", "“走吧……”", "他走了！」", "「来たの」", "Он ушёл…", "«Он ушёл.»", "— Да! ", "Это было в 1812 г.",
    "It ended.\n\nTHE END", "Всё.\nКонец", "……\n（全文完）", "Done.  \n",
]  # fmt: skip
UNFINISHED = [
    "", "  ", "He left", "He left,", "He left and", "“He left,”", "wait—", "He met Mr.", "It was J.", "3.", "He left;", "(gone)",
    "He said:", "“", "他走了", "他走了，", "“他走了", "他说：", "Он ушёл", "Он ушёл,", "Это, т. е.", "Он ушёл»", "в г.", "The En",
]  # fmt: skip


@pytest.mark.parametrize("text", FINISHED)
def test_finished(text: str) -> None:
    assert ends_finished(text)
    assert trim_to_sentence(text) == text.rstrip()


@pytest.mark.parametrize("text", UNFINISHED)
def test_unfinished(text: str) -> None:
    assert not ends_finished(text)
    assert trim_to_sentence("First, this.\n" + text) == "First, this."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("“He left.” she sa", "“He left.”"),
        ("He met Mr. Va", ""),
        ("He left. iPhones ra", "He left."),
        ("He left.\n\n***\n\nThen sh", "He left."),
        ("no end", ""),
        ("It cost 3.5 dol", ""),
        ("He met J. R. R. Tol", ""),
        ("He said “I won’t go. I wi", "He said “I won’t go."),
        ("Wait... no, I", "Wait..."),
        ("他走了。她也走", "他走了。"),
        ("“你来了。”她说", "“你来了。”"),
        ("Он ушёл. Это, т. е. та", "Он ушёл."),
        ("Она ушла.\n\n— Да, — ска", "Она ушла."),
    ],
)
def test_trims(text: str, kept: str) -> None:
    assert trim_to_sentence(text) == kept


@given(MIXED)
def test_trimmed_ends_finished(text: str) -> None:
    kept = trim_to_sentence(text)
    assert text.startswith(kept)
    assert kept == "" or ends_finished(kept)
    assert trim_to_sentence(kept) == kept


@pytest.mark.parametrize("text", [EN, ZH, RU, JA])
def test_every_cut_of_prose_can_be_trimmed(text: str) -> None:
    """Wherever a model stops, at most one sentence is given up."""
    longest = max(map(len, sentences(text)))
    for at in range(longest + 20, len(text), 7):
        kept = trim_to_sentence(text[:at])
        assert len(kept) > at - 2 * longest
        assert ends_finished(kept)
