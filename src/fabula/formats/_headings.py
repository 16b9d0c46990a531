"""One line as a heading: "Chapter 3: The Lock", 第三章　锁, Глава третья. Замок, and the many ways in which files print it.

`split_heading` takes a line that is known to be a heading apart. `find_heading` says whether a line of plain text is one: strict, since
a sentence may begin like a heading ("Chapter two was the worst", 第一章里说). Whether the lines around it allow it, and what comes of
headings that need their neighbours to be believed, is for `_text`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from fabula.formats._numerals import Numeral, numeral_at, written_like

Kind = Literal["volume", "chapter", "other"]
"""`volume`: what holds chapters (卷, Part, Том). `other`: a prologue, an interlude, a side story: outside the count."""


class Heading(NamedTuple):
    """What a heading says."""

    kind: Kind
    label: str
    """Without the brackets, marks and blanks of its print: 第一章, Chapter One."""
    title: str
    number: int | None = None
    unit: str = ""
    """The word that is counted, in lower case: chapter, 章, глава."""
    glued: bool = False
    """Nothing stands between label and title (第一章风起): a heading only where its number fits the others."""
    volume: Heading | None = None
    """The volume that stands on the same line before it: 第一卷 风起 第一章 少年."""
    level: int = 0
    """Number of `#` before it."""

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """What makes it the same heading in a table of contents and in the text."""
        return self.kind, self.unit, self.number, "" if self.number is not None else self.title.casefold()


_VOLUMES = (
    "volume", "vol", "part", "book", "act", "том", "часть", "книга", "акт", "действие", "раздел", "teil", "partie",
)  # fmt: skip
_CHAPTERS = (
    "chapter", "chap", "ch", "глава", "гл", "kapitel", "chapitre", "capítulo", "capitulo",
)  # fmt: skip
_NAMED = (
    "prologue", "epilogue", "interlude", "intermission", "preface", "foreword", "afterword", "postscript", "introduction", "prelude",
    "coda", "appendix", "finale", r"side\s+story", r"side\s+stories", r"bonus\s+chapter", r"extra\s+chapter", "extra", "omake",
    "пролог", "эпилог", "интерлюдия", "интермедия", "предисловие", "послесловие", "введение", "вступление", "заключение", "приложение",
    r"побочная\s+история", r"бонусная\s+глава", r"дополнительная\s+глава", "экстра", "бонус", r"от\s+автора",
    "プロローグ", "エピローグ", "あとがき", "閑話",
)  # fmt: skip
_EAST_NAMED = (
    "楔子", "序章", "序幕", "序言", "序曲", "自序", "序", "引子", "引言", "前言", "尾声", "尾聲", "终章", "終章", "结语", "結語",
    "后记", "後記", "跋", "番外篇", "番外卷", "番外章", "番外", "外传", "外傳", "外篇", "间章", "間章", "幕间", "幕間", "插曲",
    "附录", "附錄", "大结局", "大結局",
)  # fmt: skip
_UNITS = r"(?P<unit>部分|章|回|节|節|话|話|折|卷|部|集|季|册|冊|篇|辑|輯)"
_VOLUME_UNITS = frozenset((
    "部分", "卷", "部", "集", "季", "册", "冊", "篇", "辑", "輯",
))  # fmt: skip

_WORD = re.compile(rf"(?P<unit>{'|'.join((*_VOLUMES, *_CHAPTERS))})(?:\.\s*|\s+|(?=[#№\d]))[#№]?\s*(?P<the>the\s+)?", re.IGNORECASE)
_AFTER_ORDINAL = re.compile(r"\s+(?P<unit>part|book|act|volume|chapter|том|часть|книга|глава)(?!\w)", re.IGNORECASE)
_EAST = re.compile(r"第\s?")
_EAST_UNIT = re.compile(rf"\s?{_UNITS}")
_EAST_BEFORE = re.compile(r"(?P<unit>[卷部])(?:\s?[之第])?\s?")
_EAST_PLACE = re.compile(r"(?P<label>(?P<place>[上中下终終])(?P<unit>[卷部册冊篇]))")
_NAMED_LABEL = re.compile(rf"(?P<unit>{'|'.join(_NAMED)})(?!\w)", re.IGNORECASE)
_EAST_LABEL = re.compile(rf"(?P<unit>{'|'.join(_EAST_NAMED)})(?:[之第]?(?=[〇零一二三四五六七八九十百\d]))?")
_SEPARATOR = re.compile(r"\s*[:.．、·・•|｜/]\s*|\s*[—–]+\s*|\s+-+\s*|(?<=\d)-+\s*|-{2,}\s*|\s+|$")
_OPEN = '（(【《[〔〖「『“"«<〈'

_BRACKETS = {"【": "】", "《": "》", "[": "]", "〔": "〕", "〖": "〗", "（": "）", "(": ")", "〈": "〉", "<": ">", "{": "}"}
_HASHES = re.compile(r"(?P<hashes>#{1,6})(?:[ \t\u3000]+|(?=[第卷【楔番]))(?P<text>.*?)[ \t]*#*")
_MARKS = r"[*=~_\-–—☆★◆◇●○■□▲△※•·+|]"
_FRAMED = re.compile(rf"{_MARKS}+\s*(?P<text>.*?[^\s*=~_\-–—☆★◆◇●○■□▲△※•·+|])\s*{_MARKS}+")
_STARRED = re.compile(r"[☆★◆◇●○■□▲△※•]+[\s、]*(?P<text>.+)")
_LEADERS = re.compile(r"(?:\.{3,}|…{2,}|·{3,}|\t|(?: \.){3,})\s*\d{1,4}\s*$")
_SPACED = re.compile(r"(?:[A-Za-zА-Яа-яЁё] ){2,}[A-Za-zА-Яа-яЁё](?= {2,}|$)")
_BEFORE_EAST = re.compile(r"(?:正文|《[^》]{1,30}》)\s*[、:：]?\s*(?=[第卷楔番序尾])")

_WIDE = {0x3000: " ", 0xA0: " ", **{0xFF01 + n: chr(0x21 + n) for n in range(94)}}
"""Full-width signs and blanks → the others, one for one, so that places in the line stay."""
_LONGEST = 120
_LONGEST_EAST = 42
_LONGEST_GLUED = 15
_MOST_WORDS = 14
_IN_SENTENCES = frozenset(
    "里裡中内內的是有就也说說讲講写寫已在和与與还還并並到了时時后後前开開结結读讀看之以让讓把被给給从從对對向合课課团團题題书書电電作片小分，。、；？！"
)
"""Signs with which what follows a label goes on as a sentence, or makes another word of it (第一回合, 第三节课)."""
_QUOTES = "“”\"'‘’«»„「」『』"


def one_line(text: str) -> str:
    """White space collapsed, for titles; prose is never touched."""
    return " ".join(text.replace("\u3000", "\0").split()).replace("\0", "\u3000").strip()


# -- a label at the beginning of a line ----------------------------------------------------------------------------------------


class _Label(NamedTuple):
    end: int
    kind: Kind
    unit: str
    numeral: Numeral | None


def _label_at(line: str, at: int = 0) -> _Label | None:
    """A known label at a place of a line (signs of full width replaced)."""
    for find in (_counted_word, _counted_east, _named):
        found = find(line, at)
        if found is not None:
            return found
    return None


def _counted_word(line: str, at: int) -> _Label | None:
    match = _WORD.match(line, at)
    if match is not None:
        numeral = numeral_at(line, match.end())
        if numeral is None or numeral.style == "chinese" or (match["the"] and not numeral.ordinal):
            return None
        unit = match["unit"].casefold()
        return _Label(numeral.end, "volume" if unit in _VOLUMES else "chapter", unit, numeral)
    numeral = numeral_at(line, at)
    if numeral is None or not numeral.ordinal:
        return None
    after = _AFTER_ORDINAL.match(line, numeral.end)
    if after is None:
        return None
    unit = after["unit"].casefold()
    return _Label(after.end(), "volume" if unit in _VOLUMES else "chapter", unit, numeral)


def _counted_east(line: str, at: int) -> _Label | None:
    match = _EAST.match(line, at)
    numeral = numeral_at(line, match.end()) if match is not None else None
    if numeral is not None and numeral.style in ("chinese", "digits", "roman"):
        unit = _EAST_UNIT.match(line, numeral.end)
        if unit is None:
            return None
        return _Label(unit.end(), "volume" if unit["unit"] in _VOLUME_UNITS else "chapter", unit["unit"], numeral)
    match = _EAST_BEFORE.match(line, at)
    numeral = numeral_at(line, match.end()) if match is not None else None
    if match is not None and numeral is not None and numeral.style in ("chinese", "digits"):
        return _Label(numeral.end, "volume", match["unit"], numeral)
    match = _EAST_PLACE.match(line, at)
    return _Label(match.end(), "volume", match["unit"], None) if match is not None else None


def _named(line: str, at: int) -> _Label | None:
    match = _NAMED_LABEL.match(line, at)
    if match is not None:
        blank = re.compile(r"\s*[#№]?\s*").match(line, match.end())
        numeral = numeral_at(line, blank.end()) if blank is not None else None
        counted = numeral is not None and numeral.style != "chinese" and not (numeral.style == "english" and len(line) > numeral.end)
        end = numeral.end if numeral is not None and counted else match.end()
        return _Label(end, "other", re.sub(r"\s+", " ", match["unit"]).casefold(), numeral if counted else None)
    match = _EAST_LABEL.match(line, at)
    if match is None:
        return None
    numeral = numeral_at(line, match.end())
    if numeral is not None and numeral.style in ("chinese", "digits"):
        return _Label(numeral.end, "other", match["unit"], numeral)
    return _Label(match.start() + len(match["unit"]), "other", match["unit"], None)


# -- headings that are known to be headings --------------------------------------------------------------------------------


def split_heading(heading: str) -> tuple[str, str]:
    """A printed heading as (label, title): ("Chapter 3", "The Lock"); without a known label ("", heading)."""
    line = one_line(heading)
    plain = line.translate(_WIDE)
    label = _label_at(plain)
    separator = _SEPARATOR.match(plain, label.end) if label is not None else None
    if label is None or separator is None:
        return "", line
    title = line[separator.end() :]
    if label.kind == "other" and title[:1].islower():
        return "", line
    return line[: label.end], title


def looks_like_heading(line: str) -> bool:
    """Whether a paragraph of a book without headings is that of a chapter by its words alone."""
    found = find_heading(line)
    return found is not None and not found.glued


def chapter_number(label: str) -> int | None:
    """The number of a chapter by its label: 23 for 第二十三章, "Chapter Twenty-Three" and "XXIII"; None for what is not counted as one."""
    line = one_line(label).translate(_WIDE)
    found = _label_at(line)
    if found is not None:
        return found.numeral.value if found.kind == "chapter" and found.numeral is not None else None
    numeral = bare_numeral(line)
    return numeral.value if numeral is not None else None


def heading_kind(label: str) -> Kind | None:
    """What a label counts, or None where it is not a known one."""
    line = one_line(label).translate(_WIDE)
    found = _label_at(line)
    return found.kind if found is not None else "chapter" if bare_numeral(line) is not None else None


def bare_numeral(line: str) -> Numeral | None:
    """A number that is all of a line, with a point or dashes at most: `IV`, `12.`, `- 3 -`, 三."""
    match = re.fullmatch(r"[-–—\s]*(?P<number>[^\W_].*?)[-–—.、\s]*", line)
    if match is None or len(line) > 40:
        return None
    numeral = numeral_at(match["number"], 0)
    if numeral is None or numeral.end != len(match["number"]) or numeral.ordinal:
        return None
    return numeral._replace(start=match.start("number"), end=match.end("number"))


def renumbered(label: str, number: int) -> str:
    """The label of another chapter, written in the same way: ("第二十三章", 24) → 第二十四章; the label itself where it has no number."""
    line = label.translate(_WIDE)
    found = _label_at(line)
    numeral = found.numeral if found is not None else bare_numeral(line)
    return label if numeral is None else label[: numeral.start] + written_like(label, numeral, number) + label[numeral.end :]


# -- lines of plain text ---------------------------------------------------------------------------------------------------------


def find_heading(line: str) -> Heading | None:
    """The heading that a line of plain text may be; None where it is none, whatever stands around it."""
    if len(line) > 4 * _LONGEST:
        return None
    raw = line.strip().strip("\ufeff").strip()
    if not raw or len(raw) > _LONGEST or _LEADERS.search(raw):
        return None
    level, raw = _without_hashes(raw)
    raw = _without_marks(_despaced(raw))
    found = _in_brackets(raw) or _plain_heading(raw)
    return found._replace(level=level) if found is not None else None


def _without_hashes(raw: str) -> tuple[int, str]:
    match = _HASHES.fullmatch(raw)
    return (len(match["hashes"]), match["text"]) if match is not None and match["text"] else (0, raw)


def hash_heading(line: str) -> tuple[int, str] | None:
    """(level, text) of a line like `## The Harbour`."""
    raw = line.strip()
    match = _HASHES.fullmatch(raw) if raw.startswith("#") and len(raw) <= _LONGEST else None
    return (len(match["hashes"]), one_line(match["text"])) if match is not None and match["text"].strip() else None


def _without_marks(raw: str) -> str:
    match = _FRAMED.fullmatch(raw) or _STARRED.fullmatch(raw)
    return match["text"].strip() if match is not None else raw


def _despaced(raw: str) -> str:
    """C H A P T E R  O N E → CHAPTER ONE."""
    if not _SPACED.match(raw):
        return raw
    words = [re.sub(r"(?<=\S) (?=\S)", "", word) if _SPACED.fullmatch(word) else word for word in re.split(r"(?: {2,}|\u3000+)", raw)]
    joined = " ".join(words)
    match = re.match(rf"({'|'.join((*_VOLUMES, *_CHAPTERS))})(?=\w)", joined, re.IGNORECASE)
    if match is not None and numeral_at(joined, match.end()) is not None:  # nothing told the words apart
        joined = f"{match[0]} {joined[match.end() :]}"
    return joined


def _in_brackets(raw: str) -> Heading | None:
    """【第一章】 序, [Chapter 3] The Lock, 《第三章 锁》."""
    close = _BRACKETS.get(raw[:1])
    end = raw.find(close) if close else -1
    if end < 0:
        return None
    inside = _plain_heading(raw[1:end].strip())
    if inside is None:
        return None
    rest = raw[end + 1 :]
    after = re.sub(r"^[\s:：.、·—–-]+", "", rest)
    if after and (inside.title or not _is_title(after, strong=rest != after or inside.kind != "other")):
        return None
    return inside._replace(title=inside.title or _tidy(after))


def _plain_heading(raw: str) -> Heading | None:
    before = _BEFORE_EAST.match(raw)
    raw = raw[before.end() :] if before is not None else raw
    plain = raw.translate(_WIDE)
    label = _label_at(plain)
    if label is None:
        return None
    if label.kind == "volume":
        both = _volume_and_chapter(raw, plain, label)
        if both is not None:
            return both
    return _with_title(raw, plain, label)


def _with_title(raw: str, plain: str, label: _Label) -> Heading | None:
    separator = _SEPARATOR.match(plain, label.end)
    opened = plain[label.end : label.end + 1] in _OPEN and label.end < len(plain)
    east = bool(re.match(r"[\u3400-\u9fff]", label.unit))
    glued = separator is None and not opened
    if glued and (not east or label.numeral is None):
        return None
    title = raw[separator.end() if separator is not None else label.end :]
    strong = separator is not None and bool(separator[0].strip())
    if not _is_title(title, strong=strong, east=east, glued=glued):
        return None
    if label.kind == "other" and not east and title and not strong and not opened:
        return None  # "Prologue to a war", "Interlude at Sea": too much like a sentence or a title of its own
    number = label.numeral.value if label.numeral is not None else None
    return Heading(label.kind, _clean_label(raw[: label.end], east=east), _tidy(title), number, label.unit, glued)


def _volume_and_chapter(raw: str, plain: str, volume: _Label) -> Heading | None:
    """第一卷 风起 第一章 少年; Часть 1. Глава 2. Замок."""
    for match in re.finditer(r"(?:^|[\s.,:：、·—–-])(?=第|chapter|глава)", plain[volume.end :], re.IGNORECASE):
        at = volume.end + match.end()
        label = _label_at(plain, at)
        if label is None or label.kind != "chapter":
            continue
        first = _with_title(raw[:at].rstrip(" \u3000.,:：、·—–-"), plain[:at].rstrip(" .,:：、·—–-"), volume)
        second = _with_title(raw[at:], plain[at:], _shifted(label, at))
        if first is not None and second is not None and not first.glued:
            return second._replace(volume=first)
    return None


def _shifted(label: _Label, by: int) -> _Label:
    numeral = label.numeral
    moved = numeral._replace(start=numeral.start - by, end=numeral.end - by) if numeral is not None else None
    return label._replace(end=label.end - by, numeral=moved)


def _is_title(title: str, *, strong: bool, east: bool = True, glued: bool = False) -> bool:
    """Whether what follows a label reads as a title, and not as the rest of a sentence."""
    title = title.strip()
    if not title:
        return True
    if re.search(r"[,，;；:：、]$", title) or title[0] in ",，;；。、!！?？」』”’)）]】":
        return False
    if east and re.search(r"[\u3040-\u30ff\u3400-\u9fff]", title):
        if glued and (title[0] in _IN_SENTENCES or len(title) > _LONGEST_GLUED):
            return False
        return len(title) <= _LONGEST_EAST and not re.search(r"[。；]", title) and title.count("，") < 3
    words = title.split()
    if len(words) > _MOST_WORDS or glued:
        return False
    letter = next((sign for sign in title if sign.isalpha()), "")
    ended = title.endswith(".") and not title.endswith("...")
    if letter.islower() and title[0].isalpha() and not (strong and len(words) <= 8 and not ended):
        return False
    inner = re.search(r"[.!?]\s+\S", title)
    if ended and (not strong or len(words) > 8 or re.search(r"[,;:]", title)) and not title.isupper():
        return False
    return inner is None or len(words) <= 8


def _clean_label(label: str, *, east: bool) -> str:
    """第 一 章 → 第一章; Ｃｈａｐｔｅｒ　１ → Chapter 1."""
    label = label.translate(_WIDE)
    return re.sub(r"\s+", "", label) if east else one_line(label)


def _tidy(title: str) -> str:
    """A title on one line; 风 起 → 风起 where all its signs stand apart."""
    title = one_line(title.translate(_WIDE) if re.search("[Ａ-Ｚａ-ｚ]", title) else title)
    return title.replace(" ", "") if re.fullmatch(r"[\u3400-\u9fff](?: [\u3400-\u9fff])+", title) else title
