"""Where prose may be cut, and how good each place is: before headings, after paragraphs, sentences, lines, clauses, words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fabula.text._chars import HAN, KANA, inside_character, inside_word, lazily
from fabula.text._sentences import sentence_ends

SECTION, PARAGRAPH, SENTENCE, LINE, CLAUSE, WORD, CHARACTER, NEVER = 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -6.0, -9.0
BEFORE = -1.0
"""Before a blank line, a closing bracket and the like, and behind a heading: what follows belongs to what precedes."""

_LABEL = 3.3
"""Behind a short paragraph without a full stop: it may be a title."""

_SCENE = 4.5
_SHORT = 90
_FENCED = 20_000
"""Characters of a fenced block at most; a fence that is not closed by then is none."""

_NUMBER = r"(?:\d{1,4}|[ivxlcdm]{1,8}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|the\s\w+|[а-яё]+(?:ая|ое|ый|ий|ья))"
_CHAPTER = lazily(
    r"\s*[【《〈（\[(]?\s*(?:"
    r"第\s?[\d０-９零〇一二三四五六七八九十百千两兩]{1,7}\s?[章节節回卷部集篇幕话話](?!\S{40})|"
    rf"(?:chapter|part|book|volume|act|scene|section|глава|часть|книга|том|раздел|действие)\s+{_NUMBER}(?!\w)|"
    r"(?:prologue|epilogue|preface|foreword|introduction|appendix|afterword|interlude|contents"
    r"|пролог|эпилог|предисловие|послесловие|введение|заключение|оглавление)(?!\w)(?!,)|"
    r"(?:序章|序言|前言|楔子|引子|尾声|尾聲|后记|後記|终章|終章|番外|目录|目錄)(?!\S{12}))",
    re.IGNORECASE,
)
_HASHES = lazily(r"#{1,6}\s+\S|-{3,} ?FILE")
_SETEXT = lazily(r"(?:=+|-{3,})\s*$")
_BREAK = lazily(r"[^\w\s。，、；：！？.,;:!?\"'“”«»|]{1,3}(?:\s*[^\w\s。，、；：！？.,;:!?\"'“”«»|]){2,40}$")
_CLAUSE_END = lazily(rf"[，、：；,;:—–]+[\s\"'”’»」』）)]*|\s+|(?<=[{HAN}{KANA}])(?=[{HAN}{KANA}])")
_STOPS = frozenset('。！？；.!?…"”’」』»')


@dataclass(slots=True)
class Cuts:
    """Where cuts are allowed: offsets in ascending order, and how good each is."""

    ends: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def add(self, end: int, score: float) -> None:
        """One more, behind those that are there."""
        self.ends.append(end)
        self.scores.append(score)


class Prose:
    """Cuts of one text, block by block from its beginning.

    A line of more than `most` bytes has cuts inside, `big` characters apart at most.
    """

    def __init__(self, text: str, most: int, big: int) -> None:
        self.text, self.most, self.big = text, most, big
        self.blank = True  # whether the line before is blank
        self.above = ""  # the last line with something on it: "" at the start
        self.above_kind = ""
        self.fence_end = 0

    def block(self, start: int, stop: int) -> Cuts:
        """Cuts before and inside the lines from `start` to `stop`, which end at line breaks."""
        cuts = Cuts()
        lines = self.text[start:stop].splitlines(keepends=True)
        lines.append(self.text[stop : stop + _SHORT].split("\n", 1)[0])  # one more, for the underlines of headings
        at = start
        for i in range(len(lines) - 1):
            line = lines[i]
            body = line.strip()
            cuts.add(at, self._score(at, body, line, lines[i + 1]))
            if len(line) > self.big and weighs(line, self.most):
                inside_line(self.text, at, at + len(line), self.big, cuts)
            at += len(line)
        return cuts

    def _score(self, at: int, body: str, line: str, following: str) -> float:
        """How good the place before a line is; remembers the line."""
        if not body:
            self.blank = True
            return BEFORE  # a blank line stays with what precedes it
        if at < self.fence_end:
            score = LINE if self.blank else CLAUSE
            self.blank = False
            return score
        kind = self._kind(at, body, line, following)
        if self.above_kind == "heading":
            score = BEFORE if kind != "heading" or not self.blank else LINE
        elif kind == "heading":
            score = SECTION
        elif kind == "break":
            score = BEFORE
        elif self.blank:
            score = _SCENE if self.above_kind == "break" else self._paragraph()
        else:
            score = SENTENCE if self.above[-1:] in _STOPS else LINE
        self.above, self.above_kind, self.blank = body, kind, False
        return score

    def _paragraph(self) -> float:
        above = self.above
        return _LABEL if len(above) < 60 and above[-1:].isalnum() and self.above_kind == "first" else PARAGRAPH

    def _kind(self, at: int, body: str, line: str, following: str) -> str:
        """`heading`, `break`, `first` line of a paragraph, or ``."""
        first = body[0]
        if first in "`~" and body[:3] in ("```", "~~~"):
            close = self.text.find("\n" + body[:3], at, at + _FENCED)
            self.fence_end = close + 2 if close >= 0 else 0
            return ""
        if len(body) <= _SHORT:
            if first in "#-" and _HASHES().match(line.lstrip()):
                return "heading"
            if (self.blank or first in "第【《〈（[" or not following.strip()) and _CHAPTER().match(body):
                return "heading"
            if self.blank and _SETEXT().match(following) and not _SETEXT().match(body):
                return "heading"
            if self.above_kind == "heading" and not self.blank and _SETEXT().match(body):
                return "heading"
            if self.blank and not first.isalnum() and _BREAK().match(body):
                return "break"
        return "first" if self.blank else ""


def weighs(line: str, most: int) -> bool:
    """Whether `line` has more than `most` bytes, so that it may have more tokens."""
    return len(line) > most or (4 * len(line) > most and len(line.encode("utf-8", "surrogatepass")) > most)


def inside_line(text: str, start: int, end: int, big: int, cuts: Cuts) -> None:
    """Cuts inside a long line: after sentences, and inside long sentences."""
    line = text[start:end]
    begun = 0
    for stop in sentence_ends(line):
        if stop - begun > big:
            inside_sentence(text, start + begun, start + stop, big, cuts)
        if stop < len(line):
            cuts.add(start + stop, SENTENCE)
        begun = stop


def inside_sentence(text: str, start: int, end: int, big: int, cuts: Cuts) -> None:
    """Cuts between clauses, words and characters without spaces; a word of more than `big` characters is cut too, reluctantly."""
    last = start
    for match in _CLAUSE_END().finditer(text, start, end):
        at = match.end()
        if at >= end or (at == match.start() and at - last < 8):
            continue
        blank = not match.group().strip()
        if inside_word(text, at):
            continue
        inside_long_word(text, last, at, big, cuts)
        cuts.add(at, WORD if blank else CLAUSE)
        last = at
    inside_long_word(text, last, end, big, cuts)


def inside_long_word(text: str, start: int, end: int, big: int, cuts: Cuts) -> None:
    """Cuts at least every `big` characters, at the least bad places."""
    last, at = start, start + big
    while at < end:
        back, score = at, WORD
        while back > last and inside_word(text, back):
            back -= 1
        if back == last:
            back, score = at, CHARACTER
            while back > last and inside_character(text, back):
                back -= 1
        if back == last:
            back, score = at, NEVER
        cuts.add(back, score)
        last, at = back, back + big
