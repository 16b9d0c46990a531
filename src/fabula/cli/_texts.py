"""Texts that a person gives on the command line: as they are, from a file, or from standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabula.errors import InputError, NotFound


def text_of(value: str | None, what: str) -> str:
    """`-` reads standard input, `@FILE` a file, anything else is the text itself.

    Raises:
        NotFound, InputError: there is no such file, or it holds no text.
    """
    if value is None:
        return ""
    if value == "-":
        return sys.stdin.read().strip()
    if value.startswith("@"):
        return file_text(value[1:], what)
    return value.strip()


def text_or_file(value: str | None, what: str) -> str:
    """As `text_of`; and a value that is the path of a file is read too."""
    if value and len(value) < 1_000 and "\n" not in value and Path(value).expanduser().is_file():
        return file_text(value, what)
    return text_of(value, what)


def file_text(path: str | Path, what: str) -> str:
    """The text of a file: Markdown, EPUB, DOCX or plain text. Raises NotFound, InputError."""
    from fabula.formats import SUFFIXES, read_book

    path = Path(path).expanduser()
    if not path.is_file():
        raise NotFound(f"There is no file {path} (for {what}).", "Check the name and the folder.")
    book = read_book(path, None if path.suffix.lower() in SUFFIXES else "text")
    return "\n\n".join(scene.text.strip() for chapter in book.chapters for scene in chapter.scenes if scene.text.strip())


def lines_of(text: str, language: str) -> tuple[str, ...]:
    """A text as sentences: one a line, or, where it is one paragraph, its sentences."""
    from fabula.text import sentences

    lines = [line.strip().removeprefix("- ").strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        lines = [s.strip() for s in sentences(lines[0], language)]
    return tuple(line for line in lines if line)


def cast_of(entries: Sequence[str]) -> list[tuple[str, str]]:
    """`Name: about` as pairs; `about` may be missing. Raises InputError."""
    out = []
    for entry in entries:
        name, _, about = entry.replace("：", ":").partition(":")
        if not name.strip():
            raise InputError(f"{entry!r} names nobody.", 'Write --cast "Name: who that is".')
        out.append((name.strip(), about.strip()))
    return out


def step_range(value: str | None) -> tuple[int, int] | None:
    """`200-400` as numbers. Raises InputError."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*(?:[-–—:]\s*(\d+))?\s*", value)
    if match is None:
        raise InputError(f"{value!r} is no length of a passage.", "Write it like 200-400.")
    low = int(match[1])
    return low, int(match[2] or low)


def outline_of(text: str) -> tuple[dict[str, str], ...]:
    """An outline: Markdown headings with what happens below each, or a line `Title: what happens` a chapter. Raises InputError."""
    out: list[dict[str, str]] = []
    headed = bool(re.search(r"^#+ ", text, re.MULTILINE))
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        if headed and line.startswith("#"):
            out.append({"title": line.lstrip("#").strip(), "plan": ""})
        elif headed:
            if not out:
                raise InputError(f"The outline begins with {line[:40]!r}, before any heading.", "Begin each chapter with a line `# Title`.")
            out[-1]["plan"] = f"{out[-1]['plan']} {line}".strip()
        else:
            entry = re.sub(r"^(?:[-*]|\d+[.)])\s+", "", line)
            title, colon, plan = entry.replace("：", ":", 1).partition(":")
            out.append({"title": title.strip() if colon else "", "plan": plan.strip() if colon else entry})
    bare = [chapter["title"] for chapter in out if not chapter["plan"]]
    if not out or bare:
        raise InputError(
            f"The outline does not say what happens in {bare[0]!r}." if bare else "The outline is empty.",
            "Write a heading `# Title` and below it what happens, or a line `Title: what happens` for each chapter.",
        )
    return tuple(out)


def opening_of(path: Path, most_tokens: int) -> dict[str, Any]:
    """A manuscript that is short enough to be the opening of a book, with its title and language.

    Raises:
        InputError: it is too long; reading comes with a later version.
    """
    from fabula.formats import SUFFIXES, read_book
    from fabula.text import count_tokens

    book = read_book(path, None if path.suffix.lower() in SUFFIXES else "text")
    text = "\n\n".join(s.text.strip() for c in book.chapters for s in c.scenes if s.text.strip())
    tokens = count_tokens(text)
    if tokens > most_tokens:
        raise InputError(
            f"{path} has about {tokens:,} tokens; this version continues manuscripts of up to {most_tokens:,}.",
            "Reading comes with the next version. Until then give its last chapter with --opening, what went before with --memory.",
            tokens=tokens,
        )
    return {"opening": text, "title": book.title, "language": "" if book.language == "und" else book.language.split("-")[0]}
