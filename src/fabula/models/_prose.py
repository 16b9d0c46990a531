"""Made-up prose for scripted answers: deterministic, varied, in English, Chinese or Russian, never in need of a model."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh", "ru"]

_CJK = re.compile(r"[\u3400-\u9fff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_LATIN = re.compile(r"[A-Za-z]")


@dataclass(frozen=True)
class _Lexicon:
    """Sentence frames and what fills their slots. No fixed part of a frame is long, so that frames used twice do not look like a loop."""

    frames: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]
    marked: str
    """The sentence that carries the mark."""
    joint: str
    """What stands between two sentences."""


_EN = _Lexicon(
    frames=(
        "{time} {who} found {thing} {place}.",
        "Nobody had told {who} why {thing} mattered.",
        "{who} counted {number} {adj} steps, then stopped {place}.",
        '"{who} will miss {thing} before long," said {who2}.',
        "Somewhere {place} a {adj} bell answered.",
        "It was {who2}, {adj} and tired, who carried {thing}.",
        "{who} looked at {thing} and thought of {number} winters.",
        "What {who} wanted was {adj}; what {who2} offered was {thing}.",
        "{time} the rain had turned {adj}, and {place} it smelled of salt.",
        "Without {thing}, {who} said, there was no way back.",
        "The {adj} light moved along the wall and rested on {thing}.",
        "{who2} waited {place} until {who} spoke.",
        "Twice {who} hid {thing}; twice it was moved.",
        "A {adj} voice asked for {number} coins and got none.",
        "{place}, where the path bends, {who} turned round.",
        "Only {thing} remained of what {who2} had promised.",
        "How {adj} the morning seemed to {who} {time} no letter could tell.",
        "{who} laughed, {who2} did not.",
        "They shared {thing} and spoke of {number} {adj} roads.",
        "Then a door closed {place}, softly, and {who} knew.",
    ),
    slots={
        "who": (
            "Mira",
            "Tomas",
            "Inspector Vale",
            "Anselm",
            "the ferryman",
            "Odile",
            "old Brandt",
            "Ruth",
            "the pilot",
            "Jory",
            "Sabine",
            "Corin",
        ),
        "who2": (
            "Ilse",
            "the keeper",
            "Marten",
            "Dr Hale",
            "her brother",
            "Perrin",
            "the clerk",
            "Noor",
            "Captain Wray",
            "Linnet",
            "Edda",
            "Pask",
        ),
        "place": (
            "under the stairs",
            "by the harbour wall",
            "in the empty hall",
            "behind the chapel",
            "on the long bridge",
            "at the edge of the wood",
            "near the well",
            "above the boathouse",
            "between two carts",
            "beside the cold stove",
            "past the orchard",
            "below the lamp room",
        ),
        "thing": (
            "the brass key",
            "a torn timetable",
            "his grandmother's ring",
            "the sealed letter",
            "one wet glove",
            "a map without names",
            "the silver whistle",
            "her father's knife",
            "an unsigned note",
            "the broken watch",
            "a jar of blue ink",
            "the last photograph",
            "a coil of rope",
            "the second ledger",
        ),
        "adj": (
            "pale",
            "narrow",
            "stubborn",
            "quiet",
            "crooked",
            "bright",
            "hollow",
            "patient",
            "bitter",
            "slow",
            "gentle",
            "grey",
            "restless",
            "plain",
        ),
        "time": (
            "At dusk",
            "Before noon",
            "That night",
            "An hour later",
            "In the second week",
            "Toward morning",
            "When the tide fell",
            "On Sunday",
        ),
        "number": ("three", "seven", "eleven", "forty", "nineteen", "two hundred", "five", "sixty"),
    },
    marked="{who} read the mark {mark} on {thing} and kept silent.",
    joint=" ",
)

_ZH = _Lexicon(
    frames=(
        "{time}，{who}在{place}找到了{thing}。",
        "没有人告诉{who}，{thing}为什么重要。",
        "{who}数了{number}步，停在{place}。",
        "“{who}迟早会发现{thing}不见了。”{who2}说。",
        "{place}那边，传来{adj}的钟声。",
        "{who2}带着{thing}走来，神情{adj}。",
        "{who}望着{thing}，想起{number}年前的冬天。",
        "{who}要的是真相，{who2}给的却是{thing}。",
        "{time}雨停了，{place}弥漫着{adj}的气味。",
        "要是没有{thing}，{who}就回不去了。",
        "{adj}的光沿着墙移动，落在{thing}上。",
        "{who2}守在{place}，等{who}先开口。",
        "{who}两次藏起{thing}，两次都被人挪走。",
        "一个{adj}的声音要{number}枚铜钱，谁也没有理会。",
        "走到{place}，{who}忽然转过身来。",
        "{who2}许诺的一切，只剩下{thing}。",
        "{who}笑了，{who2}没有笑。",
        "他们分了{thing}，谈起{number}条{adj}的旧路。",
        "{place}的门轻轻合上，{who}什么都明白了。",
        "{time}，{who2}把灯吹灭，屋里变得{adj}。",
    ),
    slots={
        "who": ("米拉", "林岚", "老周", "陈警官", "阿宁", "渡船人", "苏婉", "沈先生", "小满", "方医生"),
        "who2": ("守塔人", "她的弟弟", "许伯", "韩青", "账房", "白露", "船长", "何姑娘", "顾三", "梅姨"),
        "place": (
            "楼梯下面",
            "码头边",
            "空荡的大厅",
            "小教堂后面",
            "长桥上",
            "林子边缘",
            "古井旁",
            "船屋顶上",
            "冷炉子旁边",
            "果园尽头",
            "灯室底下",
        ),
        "thing": (
            "铜钥匙",
            "撕破的时刻表",
            "祖母的戒指",
            "封好的信",
            "一只湿手套",
            "没有地名的地图",
            "银哨子",
            "父亲的小刀",
            "停走的怀表",
            "最后一张照片",
            "第二本账簿",
        ),
        "adj": ("苍白", "狭窄", "固执", "安静", "明亮", "空洞", "苦涩", "缓慢", "温和", "灰暗", "不安", "寻常"),
        "time": ("黄昏时分", "正午之前", "那天夜里", "一个钟头以后", "第二个星期", "天快亮的时候", "退潮以后", "星期天"),
        "number": ("三", "七", "十一", "四十", "十九", "两百", "五", "六十"),
    },
    marked="{who}在{thing}上看到记号{mark}，一句话也没有说。",
    joint="",
)

_RU = _Lexicon(
    frames=(
        "{time} {who} нашла {thing} {place}.",
        "Никто не объяснил, зачем {who} хранит {thing}.",
        "{who} сделала {number} шагов и замерла {place}.",
        "— Скоро все заметят пропажу, — сказала {who2}.",
        "Где-то {place} отозвался {adj} колокол.",
        "{who2} принесла {thing} и молча села.",
        "{who} смотрела на {thing}, вспоминая {adj} вечер.",
        "{who} ждала правды, а {who2} предложила {thing}.",
        "{time} дождь утих, и {place} запахло солью.",
        "Потеряв {thing}, {who} не смогла бы вернуться.",
        "{adj} свет скользнул по стене и исчез {place}.",
        "{who2} стояла {place}, пока {who} не заговорила.",
        "Дважды {who} прятала {thing}, дважды кто-то находил тайник.",
        "{adj} голос попросил {number} монет, но ответа не было.",
        "Там, {place}, {who} вдруг обернулась.",
        "Обещания кончились; {who2} оставила лишь {thing}.",
        "{who} засмеялась, {who2} отвернулась.",
        "Они разделили {thing} и вспомнили {adj} путь.",
        "Потом {place} тихо закрылась дверь, и {who} всё поняла.",
        "{time} {who2} погасила лампу, и наступил {adj} покой.",
    ),
    slots={
        "who": ("Мира", "Анна", "Вера", "смотрительница", "Зоя", "Марта", "Ольга", "Нина", "Лидия", "Тася"),
        "who2": ("Ирина", "старуха", "соседка", "Полина", "учительница", "Клара", "сестра", "Рита", "хозяйка", "Ева"),
        "place": (
            "под лестницей",
            "у причала",
            "в пустом зале",
            "за часовней",
            "на длинном мосту",
            "на опушке",
            "возле колодца",
            "над сараем",
            "у остывшей печи",
            "за садом",
        ),
        "thing": (
            "медный ключ",
            "порванное расписание",
            "бабушкино кольцо",
            "запечатанное письмо",
            "мокрую перчатку",
            "карту без названий",
            "серебряный свисток",
            "отцовский нож",
            "сломанные часы",
            "последнюю фотографию",
            "вторую тетрадь",
        ),
        "adj": (
            "бледный",
            "узкий",
            "упрямый",
            "тихий",
            "ясный",
            "глухой",
            "терпеливый",
            "горький",
            "медленный",
            "серый",
            "странный",
            "простой",
        ),
        "time": ("В сумерках", "До полудня", "Той ночью", "Час спустя", "На второй неделе", "Под утро", "После отлива", "В воскресенье"),
        "number": ("пять", "семь", "одиннадцать", "сорок", "девятнадцать", "двести", "шесть", "шестьдесят"),
    },
    marked="{who} прочла знак {mark} и спрятала {thing}.",
    joint=" ",
)

_LEXICA: dict[Language, _Lexicon] = {"en": _EN, "zh": _ZH, "ru": _RU}


def script_language(text: str) -> Language:
    """The language that the letters of `text` suggest; Chinese characters weigh double, and English is meant if unsure."""
    cjk, cyrillic, latin = (len(found.findall(text)) for found in (_CJK, _CYRILLIC, _LATIN))
    if cjk and 2 * cjk >= max(latin, cyrillic):
        return "zh"
    return "ru" if cyrillic and cyrillic >= latin else "en"


def prose_length(text: str, language: Language) -> int:
    """Length in the language's unit: words, or characters without spaces for Chinese."""
    return len(re.sub(r"\s", "", text)) if language == "zh" else len(text.split())


class _Deck:
    """Draws without repeating until all were drawn, then shuffles again."""

    def __init__(self, cards: tuple[str, ...], rng: random.Random) -> None:
        self._cards, self._rng = list(cards), rng
        self._left: list[str] = []

    def draw(self) -> str:
        if not self._left:
            self._left = self._cards[:]
            self._rng.shuffle(self._left)
        return self._left.pop()


def sentences(key: str, language: Language, mark: str) -> Iterator[str]:
    """Endless finished sentences that depend on `key` alone; the first contains `mark`."""
    lexicon, rng = _LEXICA[language], random.Random(key)
    decks = {name: _Deck(cards, rng) for name, cards in lexicon.slots.items()}
    frames = _Deck(lexicon.frames, rng)

    def fill(frame: str) -> str:
        used = {name: deck.draw() for name, deck in decks.items() if "{" + name + "}" in frame}
        text = frame.format(mark=mark, **used)
        return text[0].upper() + text[1:]

    yield fill(lexicon.marked)
    while True:
        yield fill(frames.draw())


def joint(language: Language) -> str:
    """What stands between two sentences of the language."""
    return _LEXICA[language].joint


def make_prose(key: str, language: Language, mark: str, length: int) -> str:
    """Paragraphs of five sentences, at least `length` words (Chinese: characters) long, ending with a finished sentence."""
    paragraphs: list[list[str]] = []
    total = 0
    for index, sentence in enumerate(sentences(key, language, mark)):
        if index % 5 == 0:
            if total >= length:
                break
            paragraphs.append([])
        elif total >= length:
            break
        paragraphs[-1].append(sentence)
        total += prose_length(sentence, language)
    return "\n\n".join(joint(language).join(paragraph) for paragraph in paragraphs)
