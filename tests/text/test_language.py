"""Which language a text is in, and whether a model kept to the one that was asked for."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from fabula.text import detect_language, is_language, length, step_length, to_tokens, unit
from fabula.text._tokens import count_tokens
from tests.text.samples import CHANT_ZH, DIALOGUE, DIALOGUE_RU, EN, NEXT_EN, RU, TEXTS, ZH

SENTENCES = {
    "uk": "Мара піднялася на вежу й довго дивилася на море, яке шуміло внизу. Їй здавалося, що хтось її кличе.",
    "bg": "Мира се качи на кулата и дълго гледа морето, което шумеше долу. Струваше ѝ се, че някой я вика по име.",
    "be": "Міра паднялася на вежу і доўга глядзела на мора, якое шумела ўнізе. Ёй здавалася, што хтосьці яе кліча.",
    "sr": "Мира се попела на кулу и дуго гледала море које је шумело доле. Чинило јој се да је неко зове по имену.",
    "fr": "Mira monta en haut de la tour et regarda longtemps la mer qui grondait en bas. Il lui semblait que quelqu'un l'appelait.",
    "de": "Mira stieg auf den Turm und sah lange auf das Meer hinaus, das unten rauschte. Ihr war, als riefe jemand ihren Namen.",
    "es": "Mira subió a la torre y miró durante mucho rato el mar que rugía abajo. Le parecía que alguien la llamaba por su nombre.",
    "it": "Mira salì sulla torre e guardò a lungo il mare che mugghiava in basso. Le sembrava che qualcuno la chiamasse per nome.",
    "pt": "Mira subiu à torre e olhou durante muito tempo o mar que rugia lá em baixo. Parecia-lhe que alguém a chamava.",
    "pl": "Mira weszła na wieżę i długo patrzyła na morze, które szumiało w dole. Zdawało jej się, że ktoś ją woła po imieniu.",
    "tr": "Mira kuleye çıktı ve aşağıda uğuldayan denize uzun uzun baktı. Sanki birisi onu adıyla çağırıyordu.",
    "ko": "미라는 탑에 올라가 아래에서 울부짖는 바다를 오랫동안 바라보았다. 누군가 자신의 이름을 부르는 것 같았다.",
    "el": "Η Μίρα ανέβηκε στον πύργο και κοίταξε για πολλή ώρα τη θάλασσα.",
    "ar": "صعدت ميرا إلى البرج ونظرت طويلا إلى البحر",
}


@pytest.mark.parametrize(
    ("language", "text"), [*TEXTS.items(), *SENTENCES.items(), ("en", DIALOGUE), ("ru", DIALOGUE_RU), ("zh", CHANT_ZH), ("en", NEXT_EN)]
)
def test_knows_languages(language: str, text: str) -> None:
    assert detect_language(text) == language
    assert is_language(text, language) is True
    for other in {"en", "zh", "ru", "ja"} - {language}:
        assert is_language(text, other) is False, other


@pytest.mark.parametrize(("text", "language"), [("Мира открыла дверь.", "ru"), ("米拉打开门。", "zh"), ("Мы вышли к морю.", "ru")])
def test_knows_short_sentences(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    "text", ["", "  ", "12345", "!!!", "Mira", "OK", "灯", "Да.", EN[:300] + ZH[:100], EN[:500] + "\n\n" + f"{SENTENCES['fr']}\n" * 4]
)
def test_cannot_tell(text: str) -> None:
    assert detect_language(text) is None


def test_among() -> None:
    assert detect_language("Mira opens the door.", among=("en", "zh", "ru")) == "en"
    assert detect_language("Миру видели.", among=("en", "ru")) == "ru"
    assert detect_language(ZH, among=("en", "ru")) is None
    assert detect_language(SENTENCES["uk"], among=("ru", "uk")) == "uk"
    assert detect_language(SENTENCES["pt"], among=("es-MX", "pt-BR")) == "pt"


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(TEXTS, 2)))
def test_switch_half_way_is_noticed(first: str, second: str) -> None:
    one, other = TEXTS[first], TEXTS[second]
    text = one[: len(one) // 2] + "\n\n" + other[len(other) // 2 :]
    assert is_language(text, first) is False
    assert is_language(text, second) is False


def test_switch_near_the_end_is_noticed() -> None:
    assert is_language(ZH + "\n\n" + EN[:130], "zh") is False
    assert is_language(RU + "\n\n" + EN[:180], "ru") is False
    assert is_language(EN + "\n\n" + SENTENCES["fr"] * 2, "en") is False


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("她打开 iPhone，给 Mira Brown 发了一条 WhatsApp 消息。然后她看了看窗外的大海，什么也没有说。", "zh"),
        ("Она достала iPhone и написала Тому. Ответ пришёл сразу: «OK». Мира улыбнулась и спрятала телефон в карман пальто.", "ru"),
        (
            "Katarzyna Wojciechowska met Grzegorz Brzęczyszczykiewicz at Chrząszczyżewoszyce, and they talked about nothing.",
            "en",
        ),
        (
            "Наташа said nothing. She looked at the samovar, at Пётр Ильич, and at the snow behind the window, and she thought of Moscow.",
            "en",
        ),
        (EN + "\n\nShe read: “Конец главы.”\n\n“灯塔,” he said, “is their word for it.”\n\n" + NEXT_EN, "en"),
        (
            "“Bonjour, mademoiselle,” said the old man. “Vous cherchez quelqu'un?” She did not answer at once; it had begun to rain.",
            "en",
        ),
    ],
)
def test_names_and_foreign_words_are_accepted(text: str, language: str) -> None:
    assert is_language(text, language) is True


@pytest.mark.parametrize(
    ("text", "language", "verdict"),
    [
        ("Mira opens the door.", "zh", False), ("Mira opens the door.", "ru", False), ("米拉打开门。", "en", False),
        ("Мира открыла дверь.", "en", False), ("Mira", "zh", None), ("Ekaterina Sokolova", "zh", None), ("OK", "zh", None),
        ("", "en", None),
        ("…", "ru", None), ("Anything at all.", "tlh", None), ("米拉打开门。", "zh-Hans", True), (ZH, "ja", False),
        (TEXTS["ja"], "zh", False),
    ],
)  # fmt: skip
def test_short_answers(text: str, language: str, verdict: bool | None) -> None:
    assert is_language(text, language) is verdict


def test_memory_stays_small() -> None:
    """All tables together: the process may have 300 MB for everything."""
    code = (
        "import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "from fabula.text import count_tokens, detect_language, lexical_terms\n"
        "detect_language('The sea was calm that day, and nobody came.')\n"
        "detect_language('Море было тихо в тот вечер.')\n"
        "count_tokens('x'); lexical_terms('Мира, sea'); print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert int(done.stdout) < 150, done.stderr


def test_lengths() -> None:
    assert length("Don't stop — the well's dry, 3.5 km.", "en") == 8
    assert length("Мира ушла; «Да», — сказала она.", "ru") == 5
    assert length("“他走了……”她说：OK！", "zh") == 7
    assert length("「来た」と彼は言った。", "ja") == 8
    assert length("他走了 slowly", "en") == 4
    assert length("", "zh") == 0
    assert (unit("zh-TW"), unit("ja"), unit("ko"), unit("en"), unit("ru")) == ("characters", "characters", "words", "words", "words")


@pytest.mark.parametrize("language", TEXTS)
def test_tokens_for_a_length(language: str) -> None:
    """Enough for the passage, and not twice too much."""
    text = TEXTS[language]
    assert count_tokens(text) <= to_tokens(length(text, language), language) <= 1.3 * count_tokens(text)
    assert to_tokens(-1, language) == 0


def test_a_step_tells_as_much_in_each_language() -> None:
    """The same passage fills the same share of a step, within a quarter."""
    shares = [length(text, language) / step_length(language)[1] for language, text in TEXTS.items()]
    assert max(shares) < 1.25 * min(shares)
    assert step_length("en") == (200, 400)
    assert step_length("zh-Hans") == step_length("zh") == (320, 640)
