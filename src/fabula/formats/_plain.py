"""Plain text that others wrote: its chapters found by their headings, its text kept line by line.

Which lines are headings is decided with the whole file in view: a line must read as one (`_headings`), stand free of running text, and not
belong to a table of contents; a heading that stands close on its title (第一章风起) must fit the numbers of the others; bare numbers
count only where they count from one; and a short line below the headings is their title where it is so for nearly all of them.

Nothing is lost: what is no heading, scene break or underline is text, line by line as it was, blank lines at the edges of a scene apart.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fabula.formats._book import Book
from fabula.formats._headings import Heading, bare_numeral, find_heading, hash_heading, one_line
from fabula.formats._outline import BREAK, Block, chapter_levels, number_chapters

_ENDED = re.compile(r"[.!?…。！？”’\"'»」』）)\]】:：;；~～—*=_-]\s*$")
_UNFINISHED = {"wide": 20, "narrow": 40}
"""Characters from which on a line without an end is taken for running text that goes on in the next one."""
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_UNDERLINE = re.compile(r"\s*(?:={3,}|-{3,})\s*")
_FEWEST_IN_CONTENTS = 3
_MOST_TITLE = 60
_MOST_WIDE_TITLE = 20
_HEADED = 0.8
"""Share of the headings without a title that must have one in the next line, for these lines to be titles."""
_FIELDS = re.compile(
    r"\s*(?:(?P<kind>title|书名|書名|название|author|by|作者|автор)\s*[:：]\s*(?P<value>\S.*?)|《(?P<book>[^《》]{1,60})》|by\s+(?P<by>[A-Z].{1,60}))\s*",
    re.IGNORECASE,
)
_AUTHORS = frozenset({"author", "by", "作者", "автор"})


@dataclass
class _Found:
    """What is made of one line, or of a few."""

    first: int
    behind: int
    heading: Heading
    taken: list[int] = field(default_factory=list)
    """Further lines that belong to it: an underline, its title."""


def read_plain(text: str, name: str) -> Book:
    """A book from the plain text of others; `name` is its title where the text gives none."""
    lines = text.split("\n")
    found = _headings(lines)
    first = found[0].first if found else len(lines)
    title, authors, front = _front(lines[:first])
    chapters: list[tuple[str, str, Sequence[str]]] = []
    if front is not None and (scenes := _scenes(front)):
        chapters.append(("", "", scenes))
    volume: Heading | None = None
    for one, after in itertools.zip_longest(found, found[1:]):
        heading = one.heading
        if heading.volume is not None and (volume is None or volume.key != heading.volume.key):
            chapters.append((heading.volume.label, heading.volume.title, []))
        volume = heading.volume or (heading if heading.kind == "volume" else volume)
        body = [line for n, line in enumerate(lines[one.behind : after.first if after else len(lines)], one.behind) if n not in one.taken]
        chapters.append((heading.label, heading.title, _scenes(body)))
    if not title and found and _is_book_title(found, chapters):
        title, chapters = chapters[0][1], chapters[1:]
    return Book(title or name, "und", authors, number_chapters(chapters))


def _is_book_title(found: Sequence[_Found], chapters: Sequence[tuple[str, str, Sequence[str]]]) -> bool:
    """A single `# heading` above all others, with nothing of its own below it."""
    top = found[0].heading
    label, _, scenes = chapters[0]
    return bool(top.level and not label and not scenes and len(found) > 1 and all(f.heading.level != top.level for f in found[1:]))


def _scenes(lines: Sequence[str]) -> list[str]:
    """The stretches between scene breaks, as they are, without the blank lines around each."""
    scenes: list[list[str]] = [[]]
    for line in lines:
        if line.strip() and len(line) < 200 and BREAK.fullmatch(line):
            scenes.append([])
        else:
            scenes[-1].append(line)
    return [text for scene in scenes if (text := _trimmed(scene))]


def _trimmed(lines: Sequence[str]) -> str:
    filled = [n for n, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def _front(lines: Sequence[str]) -> tuple[str, tuple[str, ...], Sequence[str] | None]:
    """(title, authors, the lines left) of what stands before the first heading; None = it says nothing but title and author."""
    title, authors, rest = "", list[str](), 0
    for line in lines:
        match = _FIELDS.fullmatch(line) if len(line) < 120 else None
        if match is None:
            rest += bool(line.strip()) and not BREAK.fullmatch(line)
        elif match["by"] or (match["kind"] or "").casefold() in _AUTHORS:
            authors.append(match["by"] or match["value"])
        elif not title:
            title = match["book"] or match["value"].strip("《》")
    return title, tuple(dict.fromkeys(authors)), lines if rest or not (title or authors) else None


# -- which lines are headings ------------------------------------------------------------------------------------------------


def _headings(lines: Sequence[str]) -> list[_Found]:
    candidates = {n: heading for n, line in enumerate(lines) if (heading := find_heading(line)) is not None}
    candidates = {n: heading for n, heading in candidates.items() if _is_free(lines, n, candidates)}
    candidates = _without_contents(lines, candidates)
    candidates = _fitting(candidates)
    found = {n: _Found(n, n + 1, heading) for n, heading in candidates.items()}
    _add_marked(lines, found)
    if not any(one.heading.number is not None and one.heading.kind == "chapter" for one in found.values()):
        for n, label in _bare_numbers(lines, found).items():
            found[n] = _Found(n, n + 1, Heading("chapter", label, "", bare_numeral(label).value))  # type: ignore[union-attr]
    out = [found[n] for n in sorted(found)]
    _take_underlines(lines, out)
    out = _without_repeats(lines, out)
    _take_titles(lines, out)
    return out


def _is_free(lines: Sequence[str], at: int, candidates: dict[int, Heading]) -> bool:
    """The line before it is whole, and the line after it does not go on with it."""
    before = lines[at - 1].rstrip() if at else ""
    if before and at - 1 not in candidates and not _ENDED.search(before):
        least = _UNFINISHED["wide" if _WIDE.search(before) else "narrow"]
        if len(before.strip()) >= least:
            return False
    after = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return not (after[:1].islower() or after.startswith((",", "，", ";", "；", "、")))


def _blank_between(lines: Sequence[str], first: int, behind: int) -> bool:
    """Nothing but blank lines, page numbers and marks of scenes stands there."""
    return all(not line.strip() or re.fullmatch(r"[\s\d.…·-]{1,12}", line) or _UNDERLINE.fullmatch(line) for line in lines[first:behind])


def _runs(lines: Sequence[str], places: Sequence[int]) -> Iterator[list[int]]:
    """Headings that follow each other with no text between them."""
    run: list[int] = []
    for n in places:
        if run and not _blank_between(lines, run[-1] + 1, n):
            yield run
            run = []
        run.append(n)
    if run:
        yield run


def _without_contents(lines: Sequence[str], candidates: dict[int, Heading]) -> dict[int, Heading]:
    """Leave out a table of contents: at least three headings with no text between them that come again, most of them, later on."""
    places = sorted(candidates)
    last = {candidates[n].key: n for n in places}
    out = dict(candidates)
    for run in _runs(lines, places):
        listed: list[int] = []
        seen: set[object] = set()
        for n in run:
            if candidates[n].key in seen:  # the first heading of the text follows at once
                break
            seen.add(candidates[n].key)
            listed.append(n)
        while listed and last[candidates[listed[-1]].key] <= run[-1]:  # it does not come again: the text begins with it
            listed.pop()
        if len(listed) < _FEWEST_IN_CONTENTS:
            continue
        repeated = sum(last[candidates[n].key] > listed[-1] for n in listed)
        if repeated * 5 >= len(listed) * 3:
            for n in listed:
                del out[n]
    return out


def _fitting(candidates: dict[int, Heading]) -> dict[int, Heading]:
    """Leave out glued headings whose number has no neighbour among the others of its kind."""
    numbers = {(heading.unit, heading.number) for heading in candidates.values()}
    return {
        n: heading
        for n, heading in candidates.items()
        if not heading.glued
        or (heading.number is not None and {(heading.unit, heading.number - 1), (heading.unit, heading.number + 1)} & numbers)
    }


def _add_marked(lines: Sequence[str], found: dict[int, _Found]) -> None:
    """Headings that only their marks show: `## The Harbour`, and lines underlined with `===` or `---`."""
    marked: dict[int, tuple[int, str]] = {}
    for n, line in enumerate(lines):
        if line.lstrip().startswith("#") and n not in found and (hashed := hash_heading(line)) is not None and _is_alone(lines, n):
            marked[n] = hashed
    hashes = len(marked) + sum(one.heading.level > 0 for one in found.values())
    if hashes < 2:
        marked = {}
    underlined = {n: (1, one_line(lines[n])) for n in range(len(lines) - 1) if n not in found and _is_underlined(lines, n)}
    marked |= underlined if len(underlined) > 1 or found else {}
    if not marked:
        return
    everything = {n: one.heading.level or 0 for n, one in found.items()} | {n: level for n, (level, _) in marked.items()}
    blocks = [Block(everything[n] or 1, "") for n in sorted(everything)]
    levels = sorted({level for level in everything.values() if level})
    top = levels[0]
    single = sum(level == top for level in everything.values()) == 1 and everything[min(everything)] == top and len(levels) > 1
    kept = chapter_levels(blocks[1:], levels[1:]) | {top} if single else chapter_levels(blocks, levels)
    for n, (level, text) in marked.items():
        if level in kept:
            found[n] = _Found(n, n + 1, Heading("chapter", "", text, level=level))


def _is_alone(lines: Sequence[str], at: int) -> bool:
    """Not one of several lines that all begin with `#`, as remarks in a program do; and free of running text."""
    beside = [lines[n].lstrip() for n in (at - 1, at + 1) if 0 <= n < len(lines)]
    return not any(line.startswith("#") for line in beside) and _is_free(lines, at, {}) and not re.search(r"[,;，；]\s*$", lines[at])


def _is_underlined(lines: Sequence[str], at: int) -> bool:
    line, under = lines[at].strip(), lines[at + 1].strip()
    if not line or len(line) > _MOST_TITLE or not re.fullmatch(r"={3,}|-{3,}", under) or BREAK.fullmatch(line):
        return False
    free = at == 0 or not lines[at - 1].strip()
    width = sum(2 if _WIDE.match(sign) else 1 for sign in line)
    return free and abs(len(under) - width) <= max(2, width // 4) and not re.search(r"[,;，；]$", line)


def _bare_numbers(lines: Sequence[str], found: dict[int, _Found]) -> dict[int, str]:
    """Lines that are a number and nothing else, blank lines around them, counting from one (again after a volume)."""
    out: dict[int, str] = {}
    series: list[int] = []
    wanted, style, last = 1, "", -1
    for n, line in enumerate(lines):
        if n in found:
            wanted, style = (1, "") if found[n].heading.kind == "volume" else (wanted, style)
            continue
        bare = line.strip()
        if not bare or len(bare) > 30 or (n and lines[n - 1].strip() and n - 1 not in found):
            continue
        numeral = bare_numeral(bare)
        if (
            numeral is None
            or numeral.value != wanted
            or (style and numeral.style != style)
            or (n + 1 < len(lines) and lines[n + 1].strip())
        ):
            continue
        if last >= 0 and wanted > 1 and _blank_between(lines, last + 1, n):
            continue
        out[n] = bare[numeral.start : numeral.end]
        series.append(n)
        wanted, style, last = wanted + 1, numeral.style, n
    return out if len(series) > 1 else {}


def _take_underlines(lines: Sequence[str], found: Sequence[_Found]) -> None:
    for one in found:
        if one.behind < len(lines) and _UNDERLINE.fullmatch(lines[one.behind]):
            one.behind += 1


def _without_repeats(lines: Sequence[str], found: Sequence[_Found]) -> list[_Found]:
    """A heading that stands twice in a row, once as the file's and once as the book's, is one."""
    out: list[_Found] = []
    for one in found:
        before = out[-1] if out else None
        if (
            before is not None
            and one.heading.key == before.heading.key
            and not any(line.strip() for line in lines[before.behind : one.first])
        ):
            if one.heading.title in ("", before.heading.title) or not before.heading.title:
                before.heading = before.heading if before.heading.title else one.heading
                before.behind = one.behind
                continue
        out.append(one)
    return out


def _take_titles(lines: Sequence[str], found: Sequence[_Found]) -> None:
    """The line below a heading is its title where this is so for nearly all headings without one."""
    starts = {one.first for one in found}
    below: list[tuple[_Found, int]] = []
    asked = [one for one in found if one.heading.kind == "chapter" and not one.heading.title and one.heading.label]
    for one in asked:
        place = next((n for n in range(one.behind, min(one.behind + 3, len(lines))) if lines[n].strip()), None)
        if place is not None and place not in starts and _may_be_title(lines, place):
            below.append((one, place))
    if len(below) < _FEWEST_IN_CONTENTS or len(below) < _HEADED * len(asked):
        return
    for one, place in below:
        one.heading = one.heading._replace(title=one_line(lines[place]))
        one.taken.append(place)


def _may_be_title(lines: Sequence[str], at: int) -> bool:
    line = lines[at].strip()
    most = _MOST_WIDE_TITLE if _WIDE.search(line) else _MOST_TITLE
    alone = at + 1 >= len(lines) or not lines[at + 1].strip()
    return (
        alone
        and len(line) <= most
        and not BREAK.fullmatch(line)
        and not line[0].islower()
        and line[0] not in "“”\"'‘«„「『—–-(（["
        and not re.search(r"[.。,，;；:：…”\"»」]$", line)
    )
