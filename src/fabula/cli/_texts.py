"""Texts that a person gives on the command line: as they are, from a file, or from standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError, NotFound

if TYPE_CHECKING:
    from fabula.formats import Book


def text_of(value: str | None, what: str) -> str:
    """`-` reads standard input, `@FILE` a file, anything else is the text itself.

    Raises:
        NotFound, InputError: there is no such file, or it holds no text.
    """
    if value is None:
        return ""
    if value == "-":
        return standard_input().strip()
    if value.startswith("@"):
        return file_text(value[1:], what)
    return value.strip()


def text_or_file(value: str | None, what: str) -> str:
    """As `text_of`; and a value that is the path of a file is read too."""
    if value and len(value) < 1_000 and "\n" not in value and Path(value).expanduser().is_file():
        return file_text(value, what)
    return text_of(value, what)


def only_file(value: str | None, what: str) -> str:
    """The text of a file, or of standard input for `-`. Raises NotFound, InputError."""
    return text_of(value, what) if value in (None, "-") else file_text(str(value).removeprefix("@"), what)


def file_text(path: str | Path, what: str) -> str:
    """The text of a file: Markdown, EPUB, DOCX or plain text. Raises NotFound, InputError."""
    return _whole(_book(Path(path).expanduser(), what))


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


def outline_of(value: str) -> tuple[dict[str, str], ...]:
    """An outline from a file (`-`: standard input): a heading a chapter with what happens below it, or a line `Title: what happens`.

    Raises:
        NotFound, InputError: there is no such file, or it does not say what happens in a chapter.
    """
    if value == "-":
        out = [_entry(line) for line in standard_input().splitlines() if line.strip()]
    else:
        book = _book(Path(value.removeprefix("@")).expanduser(), "--outline")
        headed = [c for c in book.chapters if c.title or c.label]
        out = [{"title": c.title or c.label, "plan": " ".join(" ".join(s.text.split()) for s in c.scenes).strip()} for c in headed]
        if not headed:
            out = [_entry(line) for c in book.chapters for s in c.scenes for line in s.text.splitlines() if line.strip()]
    bare = [chapter["title"] for chapter in out if not chapter["plan"]]
    if not out or bare:
        raise InputError(
            f"The outline does not say what happens in {bare[0]!r}." if bare else "The outline is empty.",
            "Write a heading `# Title` and below it what happens, or a line `Title: what happens` for each chapter.",
        )
    return tuple(out)


def _entry(line: str) -> dict[str, str]:
    entry = re.sub(r"^(?:[-*]|\d+[.)])\s+", "", line.strip())
    title, colon, plan = entry.replace("：", ":", 1).partition(":")
    return {"title": title.strip(), "plan": plan.strip()} if colon else {"title": "", "plan": entry}


def _book(path: Path, what: str) -> Book:
    from fabula.formats import SUFFIXES, read_book

    if not path.is_file():
        raise NotFound(f"There is no file {path} (for {what}).", "Check the name and the folder.")
    return read_book(path, None if path.suffix.lower() in SUFFIXES else "text", guessed=lambda name: _say_guess(str(path), name))


def standard_input() -> str:
    """All of it, decoded as a file is. Raises InputError."""
    from fabula.formats import decode

    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:  # a text stream that somebody put in its place
        return sys.stdin.read()
    return decode(stream.read(), "Standard input", guessed=lambda name: _say_guess("Standard input", name))


def _say_guess(where: str, encoding: str) -> None:
    from fabula.cli._output import say

    say(f"{where} is not UTF-8; it was read as {encoding}. If that is wrong, save it as UTF-8.", "yellow")


def _whole(book: Book) -> str:
    return "\n\n".join(s.text.strip() for c in book.chapters for s in c.scenes if s.text.strip())


def book_of(path: Path) -> Book:
    """A manuscript that is to be continued. Raises InputError."""
    from fabula.ways import book_in

    return book_in(path, lambda name: _say_guess(str(path), name))


def opening_of(book: Book, path: Path) -> dict[str, Any]:
    """A manuscript that is short enough to be the opening of a book, with its title and language."""
    from fabula.ways import title_of

    language = "" if book.language == "und" else book.language.split("-")[0]
    return {"opening": _whole(book), "title": title_of(book, path), "language": language}


def copy_prompts_to(package: Path, language: str, folder: Path) -> None:
    """Copy the prompts of a way in to a folder, and say what was written."""
    from fabula.cli._output import say, show
    from fabula.runs import copy_prompts

    folder = folder.expanduser()
    written = copy_prompts(package, language, folder)
    for path in written:
        show(str(path))
    say(f"{len(written)} prompts copied; files that were there stay. Use them with --prompts {folder}.")
