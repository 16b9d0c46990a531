"""Text as paragraphs and runs for the formats that have no plain lines (EPUB, DOCX), and back without loss.

Between two paragraphs a writer leaves a blank line (two newlines) or none (one newline). The first is the plain case; the
second is said on the paragraph (`tight`), and every further blank line is a paragraph of its own (`blank`). Emphasis in
the text (`*so*`, `_so_`, `**so**`) becomes runs; the mark that was used is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

Kind = Literal["plain", "tight", "blank"]
Mark = Literal["", "*", "_", "**"]

_EMPHASIS = re.compile(
    r"(?<![*\\])(?P<star>\*{1,2})(?=[^\s*])(?P<in_star>[^*\n]*?[^\s*\\])(?P=star)(?!\*)|(?<![\w\\])_(?=[^\s_])(?P<in_line>[^_\n]*?[^\s_\\])_(?!\w)"
)


class Paragraph(NamedTuple):
    """One paragraph without its newline."""

    kind: Kind
    text: str


class Run(NamedTuple):
    """A stretch of text under one mark of emphasis, the mark itself left out."""

    mark: Mark
    text: str


def split_paragraphs(text: str) -> list[Paragraph]:
    """The paragraphs of a scene; `join_paragraphs` gives the same text again."""
    found: list[Paragraph] = []
    newlines = 0
    for number, line in enumerate(text.split("\n")):
        newlines += number > 0
        if line:
            first = not any(paragraph.kind != "blank" for paragraph in found)
            found += [Paragraph("blank", "")] * (newlines if first else max(newlines - 2, 0))
            found.append(Paragraph("tight" if newlines == 1 and not first else "plain", line))
            newlines = 0
    return found + [Paragraph("blank", "")] * newlines


def join_paragraphs(paragraphs: Iterable[Paragraph]) -> str:
    """The text of a scene from its paragraphs."""
    text, blanks, started = [], 0, False
    for kind, line in paragraphs:
        if kind == "blank":
            blanks += 1
            continue
        text.append("\n" * (blanks + (0 if not started else 1 if kind == "tight" else 2)))
        text.append(line)
        blanks, started = 0, True
    return "".join(text) + "\n" * blanks


def split_runs(text: str) -> list[Run]:
    """The runs of one paragraph; `join_runs` gives the same text again."""
    runs: list[Run] = []
    end = 0
    for match in _EMPHASIS.finditer(text):
        if match.start() > end:
            runs.append(Run("", text[end : match.start()]))
        if match["star"]:
            runs.append(Run("*" if match["star"] == "*" else "**", match["in_star"]))
        else:
            runs.append(Run("_", match["in_line"]))
        end = match.end()
    return [*runs, Run("", text[end:])] if end < len(text) else runs


def join_runs(runs: Iterable[Run], *, foreign: bool = False) -> str:
    """The text of one paragraph from its runs. `foreign`: white space at the edges of a run goes outside its marks."""
    text: list[str] = []
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1].mark == run.mark:
            merged[-1] = Run(run.mark, merged[-1].text + run.text)
        elif run.text:
            merged.append(run)
    for mark, inner in merged:
        core = inner.strip() if foreign and mark else inner
        if not mark or not core:
            text.append(inner)
        else:
            start = inner.index(core)
            text += [inner[:start], mark, core, mark, inner[start + len(core) :]]
    return "".join(text)
