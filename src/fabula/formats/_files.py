"""Books as files: which format, which encoding, and writing so that a file is never half written."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, cast

from fabula.errors import InputError, NotFound
from fabula.formats._book import Book, check_book

Format = Literal["markdown", "text", "epub", "docx"]

SUFFIXES: dict[str, Format] = {
    ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text", ".epub": "epub", ".docx": "docx",
}  # fmt: skip
"""File name ending → format."""
MOST_BYTES = 256 * 1024 * 1024
"""Largest file that is read, and largest part of an EPUB or DOCX once unpacked."""
_ENCODINGS = ["utf_8", "gb18030", "big5", "cp1251", "koi8_r", "cp866", "cp1252", "shift_jis", "euc_kr"]

_FEWEST = 12
"""Bytes outside ASCII; with fewer a guess of the encoding is a toss-up."""
_NO_TEXT = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
_OTHER_SCRIPT = "[\u0370-\u03ff\u0400-\u052f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
_STUCK = re.compile(rf"[a-z\xdf-\xff]{_OTHER_SCRIPT}|{_OTHER_SCRIPT}[a-z\xdf-\xff]")
_MOST_STUCK = 0.25
"""Places where a word changes from Latin to another script, a letter of that script; more, and the text is likely a Latin one."""


class Kept(NamedTuple):
    """What `keep_current` did."""

    changed: bool
    """Whether the file was written."""
    aside: Path | None
    """Where a version went that a person had edited; None = there was none."""


def format_of(path: str | os.PathLike[str], format: str | None = None) -> Format:
    """The format named, or the one that the file name's ending says.

    Raises:
        InputError: no such format.
    """
    if format is not None:
        if format in SUFFIXES.values():
            return cast("Format", format)
        if f".{format}" in SUFFIXES:
            return SUFFIXES[f".{format}"]
        raise InputError(f"There is no format {format!r}.", f"Choose one of {', '.join(sorted(set(SUFFIXES.values())))}.")
    suffix = Path(path).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    hint = "Save it as .docx first." if suffix in {".doc", ".rtf", ".odt"} else f"Name it with one of {', '.join(SUFFIXES)}."
    raise InputError(f"{path}: the ending {suffix or '(none)'} is not that of a format Fabula knows.", hint)


def write_book(book: Book, path: str | os.PathLike[str], format: str | None = None) -> Path:
    """Write the book, whole or not at all, in the format named or the one that the file name's ending says.

    Returns:
        The path written.

    Raises:
        InputError: unknown format; a title is missing; a character that the format cannot hold; the file cannot be written.
    """
    target = Path(path)
    kind = format_of(target, format)
    _replace(target, render_book(book, kind))
    return target


def render_book(book: Book, format: Format) -> bytes:
    """The bytes of the file, nothing written.

    Raises:
        InputError: a title is missing, an id is used twice, or a character that the format cannot hold.
    """
    check_book(book, {"markdown": "Markdown", "text": "plain text", "epub": "EPUB", "docx": "DOCX"}[format], xml=format in {"epub", "docx"})
    write: Callable[[Book], bytes]
    if format == "markdown":
        from fabula.formats._markdown import write_markdown as write
    elif format == "text":
        from fabula.formats._text import write_text as write
    elif format == "epub":
        from fabula.formats._epub import write_epub as write
    else:
        from fabula.formats._docx import write_docx as write
    return write(book)


def read_book(
    path: str | os.PathLike[str], format: str | None = None, encoding: str | None = None, guessed: Callable[[str], None] | None = None
) -> Book:
    """Read a book that Fabula or others wrote. Where the file does not say its language, that is `und`.

    Args:
        path: the file.
        format: `markdown`, `text`, `epub` or `docx`; None = by the file name's ending.
        encoding: of Markdown and text; None = found out (UTF-8, UTF-16, GB18030, Windows-1251 and others).
        guessed: is told the name of an encoding that the file does not say and that is not UTF-8.

    Raises:
        NotFound: no such file.
        InputError: it cannot be read, its encoding is doubtful, it is damaged, is protected, or holds no text. Never an empty book instead.
    """
    source = Path(path)
    kind = format_of(source, format)
    data = _read(source)
    if kind == "epub":
        from fabula.formats._epub_reading import read_epub

        try:
            book = read_epub(data, str(source))
        except RecursionError as error:
            raise InputError(f"{source} is nested too deep to be read.", "Save it again in the program that made it.") from error
    elif kind == "docx":
        from fabula.formats._docx_reading import read_docx

        book = read_docx(data, str(source))
    else:
        text = decode(data, str(source), encoding, guessed)
        if kind == "markdown":
            from fabula.formats._markdown import read_markdown as read
        else:
            from fabula.formats._text import read_text as read
        book = read(text, source.stem)
    if not any(scene.text.strip() for scene in book.scenes()) and not any(c.title or c.label for c in book.chapters):
        raise InputError(f"{source} holds no text.", "Check that it is the right file.")
    return book


def keep_current(book: Book, path: str | os.PathLike[str]) -> Kept:
    """Keep a Markdown file equal to the book: written only when the book has changed since.

    What a person edited in the file is never lost: it is moved aside first (`novel.edited-1.md`), from where it can be imported.

    Raises:
        InputError: a file is there that Fabula did not write, or it cannot be written.
    """
    from fabula.formats._markdown import was_edited

    target = Path(path)
    data = render_book(book, "markdown")
    aside = None
    if target.exists():
        there = _read(target)
        if there == data:
            return Kept(False, None)
        text = _own_text(there, target)
        if text and was_edited(text):
            numbers = (number for number in range(1, 1_000_000) if not target.with_suffix(f".edited-{number}.md").exists())
            aside = target.with_suffix(f".edited-{next(numbers)}.md")
            target.rename(aside)
    _replace(target, data)
    return Kept(True, aside)


def check_keep(path: str | os.PathLike[str]) -> None:
    """Whether `keep_current` may write there, asked before there is a book.

    Raises:
        InputError: a file is there that Fabula did not write.
    """
    target = Path(path)
    if format_of(target) != "markdown":
        raise InputError(f"{target} is to be kept current, and that is done in Markdown only.", "Name it with .md.")
    if target.exists():
        _own_text(_read(target), target)


def _own_text(data: bytes, target: Path) -> str:
    """What Fabula wrote, whatever was changed in it since; empty for an empty file. Raises InputError for any other file."""
    from fabula.formats._markdown import is_own

    if not data.strip():
        return ""
    with contextlib.suppress(InputError):
        text = decode(data, str(target))
        if is_own(text):
            return text
    raise InputError(f"{target} is there already, and Fabula did not write it.", "Choose another name, or move that file.")


def decode(data: bytes, where: str, encoding: str | None = None, guessed: Callable[[str], None] | None = None) -> str:
    r"""Text from bytes, line ends as `\n` where the file consistently has others.

    Args:
        data: of the file.
        where: the file, for errors.
        encoding: None = found out.
        guessed: is told the name of an encoding that the bytes do not say and that is not UTF-8.

    Raises:
        InputError: it is not text, not in the encoding named, or nobody can say which encoding it is in.
    """
    text = _decode(data, where, encoding, guessed)
    if "\0" in text:
        raise InputError(f"{where} is not a text file.", "Check that it is the right file.")
    text = text.removeprefix("\ufeff")
    newlines = text.count("\n")
    if newlines and newlines == text.count("\r\n"):
        return text.replace("\r\n", "\n")
    return text if newlines else text.replace("\r", "\n")


def _decode(data: bytes, where: str, encoding: str | None, guessed: Callable[[str], None] | None) -> str:
    if encoding:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not in the encoding {encoding}.", "Leave the encoding out, and it is found out.") from error
        except LookupError as error:
            raise InputError(f"There is no encoding {encoding!r}.", "Name one that Python knows, e.g. utf-8, gb18030 or cp1251.") from error
    name = "utf_16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf_8"
    with contextlib.suppress(UnicodeDecodeError):
        if name == "utf_16" or b"\0" not in data:
            return data.decode(name)
    name, text = _guess(data, where)
    if guessed is not None:
        guessed(name.replace("_", "-"))
    return text


def _guess(data: bytes, where: str) -> tuple[str, str]:
    """An encoding and the text, where both are likely. Raises InputError."""
    if b"\0" in data:
        for name in _unmarked_utf16(data):
            with contextlib.suppress(UnicodeDecodeError):
                return name, data.decode(name)
        raise InputError(f"{where} is not a text file.", "Check that it is the right file.")
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=_ENCODINGS).best()
    if best is None:
        raise InputError(f"{where} is not text in any encoding that could be found out.", "Save it as UTF-8.")
    text = data.decode(best.encoding)
    why = _doubt(data, text)
    if why:
        name = best.encoding.replace("_", "-")
        raise InputError(f"{where} is not UTF-8, and which encoding it is in is doubtful ({name}? {why}).", "Save it as UTF-8.")
    return best.encoding, text


def _doubt(data: bytes, text: str) -> str:
    """Why a guessed encoding is doubtful; empty where it is not."""
    odd = _NO_TEXT.search(text)
    if odd:
        return f"then it holds the character U+{ord(odd[0]):04X}, which no text has"
    foreign = len(re.findall(_OTHER_SCRIPT, text))
    if len(_STUCK.findall(text)) > _MOST_STUCK * foreign:
        return "then its words mix letters of two scripts"
    if len(data) - len(data.decode("ascii", "ignore")) < _FEWEST:
        return "it has too few letters that would tell"
    return ""


def _unmarked_utf16(data: bytes) -> list[str]:
    """Which UTF-16 without a byte order mark it is, if it is one: the one that gives spaces and points, and no control characters."""
    scores = {}
    for name in ("utf_16_le", "utf_16_be"):
        sample = data[: 4096 if len(data) > 4096 else len(data) - len(data) % 2].decode(name, "ignore")
        if not re.search("[\0-\x08\x0e-\x1f\x7f]", sample):
            scores[name] = len(re.findall(r"[ \n.,，。、“”«»—\u3000]", sample))
    return sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])[:1]


def _read(source: Path) -> bytes:
    try:
        if source.stat().st_size > MOST_BYTES:
            raise InputError(f"{source} is larger than {MOST_BYTES // 2**20} MiB.", "Split it into several files.")
        return source.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {source}.", "Check the name and the folder.") from error
    except IsADirectoryError as error:
        raise InputError(f"{source} is a folder, not a file.", "Name the file.") from error
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}.", "Check its permissions and the disk.") from error


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target and rename: whoever reads sees the old file or the new one, never a part."""
    target = target.resolve()
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(
            f"{target} cannot be written: {error.strerror}.", "Check that the folder is there and has room, or choose another name."
        ) from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
