"""Numbers as headings write them: digits, Chinese and Roman numerals, English and Russian words; read, and written again alike."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

Style = Literal["digits", "chinese", "roman", "english", "russian"]


class Numeral(NamedTuple):
    """A number as it stands in a line."""

    start: int
    end: int
    value: int
    style: Style
    ordinal: bool = False


_DIGITS = re.compile(r"\d{1,5}(?!\d)(?:st|nd|rd|th)?", re.IGNORECASE)
_CHINESE = re.compile(
    r"[〇零一二三四五六七八九十百千两兩廿卅壹贰叁肆伍陆柒捌玖拾佰仟](?:\s?[〇零一二三四五六七八九十百千两兩廿卅壹贰叁肆伍陆柒捌玖拾佰仟]){0,9}"
)
_ROMAN = re.compile(r"[MDCLXVI]+|[ivxlc]+")
_WORD = re.compile(r"[^\W\d_]+")
_MOST_ROMAN = 399
"""A larger one is rather a word: MIX, DI, CIVIL."""

_VALUES = dict(zip("〇零一二三四五六七八九壹贰叁肆伍陆柒捌玖两兩", [0, 0, *range(1, 10), *range(1, 10), 2, 2], strict=True))
_TENS = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000, "廿": 20, "卅": 30}

_ONES_EN = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
    "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS_EN = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_ORDINALS_EN = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
_ONES_RU = (
    "один", "два", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять", "одиннадцать", "двенадцать", "тринадцать",
    "четырнадцать", "пятнадцать", "шестнадцать", "семнадцать", "восемнадцать", "девятнадцать",
)  # fmt: skip
_TENS_RU = (
    "двадцать", "тридцать", "сорок", "пятьдесят", "шестьдесят", "семьдесят", "восемьдесят", "девяносто",
)  # fmt: skip
_STEMS_RU = (
    "перв", "втор", "трет", "четвёрт", "пят", "шест", "седьм", "восьм", "девят", "десят", "одиннадцат", "двенадцат", "тринадцат",
    "четырнадцат", "пятнадцат", "шестнадцат", "семнадцат", "восемнадцат", "девятнадцат",
)  # fmt: skip
_TEN_STEMS_RU = (
    "двадцат", "тридцат", "сороков", "пятидесят", "шестидесят", "семидесят", "восьмидесят", "девяност",
)  # fmt: skip
_ENDINGS_RU = ("ая", "ья", "ый", "ий", "ой", "ое", "ье", "яя")


def numeral_at(text: str, at: int) -> Numeral | None:
    """The number that begins at a place of a line, the longest that is one; None where there is none."""
    for find in (_digits, _chinese, _roman, _words):
        found = find(text, at)
        if found is not None:
            return found
    return None


def _digits(text: str, at: int) -> Numeral | None:
    match = _DIGITS.match(text, at)
    if match is None:
        return None
    ordinal = not match[0].isdigit()
    return Numeral(at, match.end(), int(re.sub(r"\D", "", match[0])), "digits", ordinal)


def _chinese(text: str, at: int) -> Numeral | None:
    match = _CHINESE.match(text, at)
    if match is None:
        return None
    value = chinese_value(re.sub(r"\s", "", match[0]))
    return Numeral(at, match.end(), value, "chinese") if value is not None else None


def chinese_value(signs: str) -> int | None:
    """二十三 → 23, 一百零五 → 105, 一〇五 → 105; None where the signs are no number."""
    if not any(sign in _TENS for sign in signs):
        return int("".join(str(_VALUES[sign]) for sign in signs)) if len(signs) < 6 else None
    total, ones, least = 0, 0, 10_000
    for sign in signs:
        if sign in _TENS:
            unit = _TENS[sign]
            if unit in (20, 30):
                total, ones = total + unit, 0
                continue
            if unit >= least:
                return None
            total, ones, least = total + (ones or 1) * unit, 0, unit
        else:
            ones = _VALUES[sign]
    return total + ones


def _roman(text: str, at: int) -> Numeral | None:
    match = _ROMAN.match(text, at)
    if match is None or text[match.end() : match.end() + 1].isalnum():
        return None
    value = roman_value(match[0].upper())
    return Numeral(at, match.end(), value, "roman") if value and value <= _MOST_ROMAN else None


_ROMAN_SIGNS = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"),
    (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def roman_value(signs: str) -> int:
    """XIV → 14; 0 where it is not written as a number is."""
    value, at = 0, 0
    for worth, sign in _ROMAN_SIGNS:
        while signs.startswith(sign, at):
            value, at = value + worth, at + len(sign)
    return value if at == len(signs) and _as_roman(value) == signs else 0


def _words(text: str, at: int) -> Numeral | None:
    if not text[at : at + 1].isalpha():
        return None
    known = _known_words()
    ends, end = list[int](), at
    while len(ends) < 5 and (match := _WORD.match(text, end)) is not None:
        ends.append(match.end())
        gap = re.compile(r"[-\u2010\u2011\s]").match(text, match.end())
        if gap is None:
            break
        end = gap.end()
    for end in reversed(ends):
        said = re.sub(r"[-\u2010\u2011\s]+", " ", text[at:end]).casefold().replace("ё", "е").removeprefix("the ")
        if said in known:
            value, style, ordinal = known[said]
            return Numeral(at, end, value, style, ordinal)
    return None


@cache
def _known_words() -> dict[str, tuple[int, Style, bool]]:
    known: dict[str, tuple[int, Style, bool]] = {}
    for number in range(1, 200):
        for said in (english(number), english(number, conjoined=False)):
            known[said.replace("-", " ")] = number, "english", False
            known[_ordinal_en(said).replace("-", " ")] = number, "english", True
        known[_russian(number).replace("ё", "е")] = number, "russian", False
        for ending in _ENDINGS_RU:
            known[_ordinal_ru(number, ending).replace("ё", "е")] = number, "russian", True
    known |= {"одна": (1, "russian", False), "две": (2, "russian", False)}
    return known


def english(number: int, *, conjoined: bool = True) -> str:
    """45 → forty-five; 105 → one hundred and five. From 1 to 199."""
    if number >= 100:
        rest = english(number - 100) if number > 100 else ""
        return f"one hundred{' and ' if rest and conjoined else ' ' if rest else ''}{rest}"
    if number < 20:
        return _ONES_EN[number - 1]
    tens, ones = divmod(number, 10)
    return _TENS_EN[tens - 2] + (f"-{_ONES_EN[ones - 1]}" if ones else "")


def _ordinal_en(said: str) -> str:
    head, last = re.fullmatch(r"(.*?)(\w+)", said, re.DOTALL).groups()  # type: ignore[union-attr]
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return head + _ORDINALS_EN.get(last, regular)


def _russian(number: int) -> str:
    if number >= 100:
        return f"сто {_russian(number - 100)}" if number > 100 else "сто"
    if number < 20:
        return _ONES_RU[number - 1]
    tens, ones = divmod(number, 10)
    return _TENS_RU[tens - 2] + (f" {_ONES_RU[ones - 1]}" if ones else "")


def _ordinal_ru(number: int, ending: str) -> str:
    """The ordinal with the ending of its gender, e.g. 23, ая → двадцать третья."""
    if number >= 100:
        return f"сто {_ordinal_ru(number - 100, ending)}" if number > 100 else f"сот{ending}"
    tens, ones = divmod(number, 10)
    if number < 20:
        stem = _STEMS_RU[number - 1]
    elif ones == 0:
        stem = _TEN_STEMS_RU[tens - 2]
    else:
        return f"{_TENS_RU[tens - 2]} {_ordinal_ru(ones, ending)}"
    return stem + ending


_GENDERS_RU = {"ая": "f", "ья": "f", "яя": "f", "ый": "m", "ий": "m", "ой": "m", "ое": "n", "ье": "n"}


def _as_ordinal_ru(number: int, gender: str) -> str:
    last = number % 100 if number % 100 < 20 else number % 10
    if last == 3:
        ending = {"f": "ья", "m": "ий", "n": "ье"}[gender]
    elif gender == "m":
        ending = "ой" if last in (2, 6, 7, 8) or number == 40 else "ый"
    else:
        ending = {"f": "ая", "n": "ое"}[gender]
    return _ordinal_ru(number, ending)


def _as_roman(number: int) -> str:
    out = ""
    for worth, sign in _ROMAN_SIGNS:
        while number >= worth:
            out, number = out + sign, number - worth
    return out


def _as_chinese(number: int) -> str:
    if number >= 10_000:
        return str(number)
    signs, out, zero = "零一二三四五六七八九", "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, unit)
        if digit:
            out += ("零" if zero else "") + signs[digit] + name
            zero = False
        elif out:
            zero = number > 0
    return out.removeprefix("一") if out.startswith("一十") else out or "零"


def written_like(example: str, numeral: Numeral, value: int) -> str:
    """A number written in the way of another.

    Args:
        example: the line that `numeral` was found in.
        numeral: how that one is written.
        value: the number, at least 1; what its way cannot write comes in digits.
    """
    before = example[numeral.start : numeral.end]
    if numeral.style == "chinese":
        return _as_chinese(value)
    if numeral.style == "roman" and value <= _MOST_ROMAN:
        return _as_roman(value) if before.isupper() else _as_roman(value).lower()
    if numeral.style == "english" and value < 200:
        return _cased(before, _ordinal_en(english(value)) if numeral.ordinal else english(value))
    if numeral.style == "russian" and value < 200:
        gender = _GENDERS_RU.get(before[-2:].casefold(), "f")
        return _cased(before, _as_ordinal_ru(value, gender) if numeral.ordinal else _russian(value))
    digits = str(value).zfill(len(before) if before.startswith("0") else 0)
    return digits.translate({ord("0") + n: 0xFF10 + n for n in range(10)}) if re.match("[０-９]", before) else digits


def _cased(before: str, text: str) -> str:
    if before.isupper() and len(before) > 1:
        return text.upper()
    if not before[:1].isupper():
        return text
    words = re.split(r"[-\s]", before)
    each = all(word[:1].isupper() for word in words) if len(words) > 1 else before[0].isascii()  # Chapter Twenty-One, Глава Двадцать первая
    return text.title() if each else text.capitalize()
