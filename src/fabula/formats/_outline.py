"""Chapters and scenes out of the blocks of a book that others wrote."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fabula.formats._book import Chapter, Scene
from fabula.formats._headings import looks_like_heading, one_line, split_heading

BREAK = re.compile(r"\s*(?:([*_~=#•◆◇○●※＊⁂+—–-])(?:[\s\u3000]*\1){2,}|[#＃⁂❦◇◆※＊*])\s*")
"""A paragraph that is nothing but a sign between scenes: `* * *`, `***`, `---`, ◇◇◇, ⁂, #."""


class Block(NamedTuple):
    """A heading (level 1 to 6), a scene break (level -1) or a paragraph (level 0) of a foreign book."""

    level: int
    text: str


def outline(blocks: Iterable[Block]) -> tuple[str, tuple[Chapter, ...]]:
    """The book's title ("" where no heading is one) and its chapters.

    A single heading above all others and before all text is the title. The highest level left makes chapters; where its
    headings stand over further headings and not over text (parts of a book), the next level makes chapters too. Deeper
    headings stay in the text as lines of their own: nothing is dropped. Without any heading, short lines like "Chapter 3"
    or 第三章 are headings.
    """
    found = [Block(-1, "") if block.level == 0 and BREAK.fullmatch(block.text) else block for block in blocks]
    if not any(block.level > 0 for block in found):
        found = [Block(1, block.text) if block.level == 0 and looks_like_heading(block.text) else block for block in found]
    title = ""
    tops = sorted({block.level for block in found if block.level > 0})
    if len(tops) > 1 and found[0].level == tops[0] and sum(block.level == tops[0] for block in found) == 1:
        title, found, tops = one_line(found[0].text), found[1:], tops[1:]
    return title, _chapters(found, chapter_levels(found, tops))


def chapter_levels(blocks: Sequence[Block], levels: Sequence[int]) -> frozenset[int]:
    """Which levels make chapters: the highest, and the next one where the highest stands over it and not over text."""
    if len(levels) < 2:
        return frozenset(levels)
    followers = [after.level for before, after in itertools.pairwise(blocks) if before.level == levels[0]]
    return frozenset(levels[:2] if 2 * sum(level == levels[1] for level in followers) > len(followers) else levels[:1])


def _chapters(blocks: Iterable[Block], levels: frozenset[int]) -> tuple[Chapter, ...]:
    headings: list[str] = []
    bodies: list[list[list[str]]] = []
    for level, text in blocks:
        if level in levels:
            headings.append(text)
            bodies.append([[]])
            continue
        if not bodies:
            headings.append("")
            bodies.append([[]])
        if level == -1:
            bodies[-1].append([])
        elif text.strip():
            bodies[-1][-1].append(text)
    return number_chapters(
        (*split_heading(heading), ["\n\n".join(scene) for scene in body if scene])
        for heading, body in zip(headings, bodies, strict=True)
        if heading or any(body)
    )


def number_chapters(chapters: Iterable[tuple[str, str, Sequence[str]]]) -> tuple[Chapter, ...]:
    """Chapters from (label, title, texts of scenes), with ids by position: `c1`, `c1s1`."""
    return tuple(
        Chapter(f"c{number}", title, label, tuple(Scene(f"c{number}s{place}", text) for place, text in enumerate(texts, 1)))
        for number, (label, title, texts) in enumerate(chapters, 1)
    )
