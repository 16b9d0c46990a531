"""Where sentences end, in English, Chinese, Russian, Japanese and what is written like them; nothing is ever lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabula.text._chars import CLOSERS, HAN, KANA, OPENERS, inside_character, lazily
from fabula.text._words import MAYBE_LAST, NEVER_LAST, STARTERS

_WIDE = "。！？｡．‼⁇⁈⁉"
_STOPS = ".!?…" + _WIDE + "؟۔।॥။។"
# Behind the marks: closing quotes; a French » behind a space; a German “ or « that nothing follows.
_CLOSE = rf"(?:[{CLOSERS}*_]|[\u00a0\u202f][»›]|\u0020[»›](?=\s|$)|[“«‹](?=[\s,]|$))*"
_END = lazily(rf"[{_STOPS}]+{_CLOSE}")
_SCAN = lazily(rf"[{_STOPS}]+{_CLOSE}|[—–][\"”’»](?=\s+[\"“‘«])|\n\s*|\r\s*")
_RIGHT = "\"'”’»›」』】》〉）)]〕｣＂*_“«‹ \u00a0\u202f"
_CJK_BEFORE = lazily(rf"[{HAN}{KANA}，、；：」』”’）…—]$")
_NEXT = re.compile(rf"\s*[{OPENERS}*_#>]*(?:[-‐-―−][-‐-―−\s]*)?[{OPENERS}*_¿¡.…]*")
_NEW_LINE_START = re.compile(rf"(?:[-–—―]\s|#{{1,6}}\s|[*•·]\s|\d{{1,3}}[.)]\s|[{OPENERS}]|第.{{1,6}}[章节節回卷部])")
_HEADING = re.compile(
    r"\s*(?:#{1,6}\s|第[^\n]{1,6}[章节節回卷部]|(?:chapter|part|book|глава|часть|книга)\s+[\w.]{1,12}\b.{0,60}$)", re.IGNORECASE
)
_SAID_ZH = lazily(rf"[{HAN}]{{0,6}}(?:说|説|問|问|道|喊|叫|答|笑|嘆|叹|吼|と|って)")

_LAST_WORD = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.[ \u00a0]?)*[^\W\d_]+(?:-[^\W\d_]+)?$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_FINAL_LINE = re.compile(r"(?:^|\n)\W*(?:the end|fin|finis|конец|完|终|終|全文完|全书完|全書完|剧终|おわり)\W*$", re.IGNORECASE)
_INITIAL = re.compile(r"[ \u00a0]?[^\W\d_]\.")
_LOOK = 40


def _word_before(text: str, at: int) -> tuple[str, int]:
    """The word, dotted abbreviation or initial that ends at `at`, as it is written, and where it starts."""
    low = max(0, at - _LOOK)
    match = _LAST_WORD.search(text[low:at])
    return (match.group(), low + match.start()) if match else ("", at)


def _abbreviated(text: str, dot: int, after: str, language: str | None) -> bool:
    """Whether the full stop at `dot` only marks an abbreviation, an initial or an ordinal; `after` is the word that follows."""
    word, start = _word_before(text, dot)
    if not word:
        number = re.search(r"\d+$", text[max(0, dot - 4) : dot])
        if number is None:
            return False
        ordinal = language == "de" and len(number.group()) <= 2
        line = text[max(0, dot - _LOOK) : dot - len(number.group())]
        return ordinal or not line.strip(" \t") or line.rstrip(" \t").endswith("\n")  # "1. A list"
    bare = re.sub(r"[\s\u00a0]", "", word)
    if len(bare) == 1 and bare.islower() and _INITIAL.match(text, dot + 1):
        return True  # "z. B.", "т. е."
    if bare.lower() in NEVER_LAST and not (bare == "m" and language in ("en", "ru")):
        return True
    if bare.lower() in MAYBE_LAST and not (len(bare) == 1 and bare.isupper()):
        return _goes_on(text, bare.lower(), start, dot, after)
    initial = bare.rpartition(".")[2]
    if len(initial) == 1 and initial.isupper():
        if initial in "IЯ" and bare == initial and text[max(0, start - 2) : start - 1].islower():
            return False  # "So am I."
        return after.lower() not in STARTERS or bool(_INITIAL.match(text, dot + 1))
    return False


def _goes_on(text: str, bare: str, start: int, dot: int, after: str) -> bool:
    """Whether a sentence goes on after an abbreviation that may also end one."""
    if bare in ("no", "p", "с"):  # "No. 7" against "No."
        return after == "" and bool(re.match(r"\s*\d", text[dot + 1 : dot + 12]))
    if len(bare) == 1 and re.search(r"\d\s*$", text[max(0, start - 4) : start]):
        return after[:1].islower()  # "в 1812 г. Он": the unit of a number
    if bare == "г" or bare == "д" or bare == "м":
        return True  # "г. Москва", "д. 5"
    return not (after == "" or after.lower() in STARTERS)


def _ends_here(text: str, match: re.Match[str], sentence_start: int, language: str | None) -> bool:
    """Whether the marks that `match` found end a sentence."""
    marks = match.group()
    at, end = match.start(), match.end()
    stops = marks.rstrip(_RIGHT)
    if stops in ("—", "–"):
        return True
    if end >= len(text):
        return True
    if inside_character(text, end):
        return False
    following = text[end]
    wide = stops[-1] in _WIDE or (stops[-1] in "…!?" and bool(_CJK_BEFORE().search(text[max(0, at - 1) : at])))
    if wide:
        return _ends_wide(text, stops, end, sentence_start, closed=len(stops) < len(marks))
    if not following.isspace():
        return False
    skipped = _NEXT.match(text, end)
    next_at = skipped.end() if skipped else end
    gap = text[end:next_at]
    first = text[next_at : next_at + 1]
    if "\n\n" in gap or "\r\n\r\n" in gap:
        return True
    if first.islower():
        return False
    word = _NEXT_WORD.match(text, next_at)
    after = word.group() if word else ""
    return not (stops == "." and len(marks) == 1 and _abbreviated(text, at, after, language))


def _ends_wide(text: str, stops: str, end: int, sentence_start: int, *, closed: bool) -> bool:
    """The same for 。！？…… , which need no space behind them."""
    following = text[end]
    if following in "，、；：,;:" or following in _STOPS:
        return False
    if closed:
        return not _SAID_ZH().match(text, end)  # “你来了。”她说。 is one sentence
    if stops[-1] in "…." and stops[0] in "…。":
        # A stammer (我……我不知道) is no end; neither is a pause before the sentence has begun.
        begun = text[sentence_start : end - len(stops)].strip(" \u3000\n“「『‘—")
        return len(begun) >= 3 and not text.startswith(begun[-1:], end)
    return True


def _newline_ends(text: str, match: re.Match[str], sentence_start: int) -> bool:
    """Whether a line break ends the sentence before it: a blank line, a heading, a list, dialogue, Chinese lines."""
    end = match.end()
    before = text[max(sentence_start, match.start() - 100) : match.start()]
    if end >= len(text) or not before.strip():
        return False
    if match.group().count("\n") > 1 or match.group().count("\r") > 1:
        return True
    if _NEW_LINE_START.match(text, end):
        return True
    tail = before.rstrip()[-1]
    if re.match(f"[{HAN}{KANA}」』”》）]", tail) and re.match(rf"[{HAN}{KANA}“「『（《—…]", text[end]):
        return True
    return len(before) < 90 and bool(_HEADING.match(before))


def sentence_ends(text: str, language: str | None = None) -> Iterator[int]:
    """Offsets at which a sentence, with the white space behind it, ends; the last is `len(text)`."""
    start = position = 0
    while match := _SCAN().search(text, position):
        position = match.end()
        if match.group()[0] in "\r\n":
            if _newline_ends(text, match, start):
                yield position
                start = position
            continue
        if not _ends_here(text, match, start, language):
            continue
        while position < len(text) and text[position].isspace():
            position += 1
        if position < len(text) and not inside_character(text, position):
            yield position
            start = position
    if text:
        yield len(text)


def sentences(text: str, language: str | None = None) -> list[str]:
    """The sentences of `text`, each with the white space behind it: joined they are `text`, character for character.

    Args:
        text: prose in any language; rules exist for English, Chinese, Russian, Japanese and languages that end sentences
            with the same marks.
        language: ISO 639-1 code, used where languages differ (German ordinals).
    """
    out, start = [], 0
    for end in sentence_ends(text, language):
        out.append(text[start:end])
        start = end
    return out


def ends_finished(text: str, language: str | None = None) -> bool:
    """Whether the last sentence of `text` is complete: it ends with terminal marks, closing quotes and brackets after them.

    An abbreviation, a comma, a conjunction or half a word at the end is not finished; quotes need not balance. "The End" and the
    like on a line of its own is finished, a dash is before a closing quote (speech cut off by another speaker), and so is 」 in
    Japanese, where the full stop before it is left out.
    """
    tail = text.rstrip()[-200:].rstrip("*_")
    body = tail.rstrip(_RIGHT + "\u3000")
    if not body:
        return False
    closed = len(body) < len(tail)
    last = body[-1]
    if last in _STOPS:
        return not (last == "." and not closed and _cut_at_abbreviation(body, language))
    if closed and last in "—–-―" and tail[len(body)] in "\"'”’»」』":
        return True
    if closed and tail[-1] in "」』" and (language == "ja" or re.search(f"[{KANA}]", body)):
        return True
    return bool(_FINAL_LINE.search(tail))


def _cut_at_abbreviation(body: str, language: str | None) -> bool:
    """Whether the text stops after "Mr." and the like, after an initial, or after the number of a list."""
    if body.endswith(".."):
        return False
    word, start = _word_before(body, len(body) - 1)
    if not word:
        line = body.rpartition("\n")[2].strip()
        return bool(re.fullmatch(r"\d{1,3}\.", line)) or (language == "de" and bool(re.search(r"(?<!\d)\d{1,2}\.$", body)))
    bare = re.sub(r"\s", "", word)
    if bare.lower() in NEVER_LAST:
        return True
    if len(bare) == 1 and bare.isupper():
        return not (bare in "IЯ" and body[max(0, start - 2) : start - 1].isalpha())
    return bare == "г" and not re.search(r"\d\s*$", body[max(0, start - 4) : start])


def trim_to_sentence(text: str, language: str | None = None) -> str:
    """The longest prefix of `text` that ends finished, without white space behind it; "" if there is none.

    Quotes may be left open: the prefix of “I won't go. I wi is “I won't go.
    """
    whole = text.rstrip()
    if ends_finished(whole, language):
        return whole
    second = ""
    for match in reversed(list(_END().finditer(whole))):
        end = match.end()
        if not (_free(whole, match) and ends_finished(whole[max(0, end - 240) : end], language)):
            continue
        if match.group() != ".":
            return whole[:end]
        word = _NEXT_WORD.match(whole, end + 1)
        after = word.group() if word else ""
        if _abbreviated(whole, match.start(), after, language):
            continue
        if not after[:1].islower():
            return whole[:end]
        second = second or whole[:end]  # an abbreviation that we do not know, or a careless writer
    return second


def _free(text: str, match: re.Match[str]) -> bool:
    """Whether the marks are followed by white space, or need none."""
    following = text[match.end() : match.end() + 1]
    wide = match.group()[0] in _WIDE or bool(_CJK_BEFORE().search(text[max(0, match.start() - 1) : match.start()]))
    return (wide or following.isspace()) and not inside_character(text, match.end())
