"""Bytes to text for documents: any encoding, and where it can only be guessed, what was guessed.

A book that is to be continued must not be guessed wrongly (`decode` refuses a doubtful guess), while a comment with one broken
letter in it must not keep a file from being read. So what `decode` refuses is looked at once more here, and a note says so.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Callable

from fabula.errors import InputError
from fabula.formats._document import clean, counted
from fabula.formats._files import decode

_SAMPLE = 4096
_MOST_BROKEN = 0.05
"""Broken bytes for each whole letter outside ASCII; more, and the file was never UTF-8."""
_FEWEST_ASCII = 0.9
"""Share of ASCII from which a text of unknown encoding is still readable, whatever the rest is."""
_CONTROL = re.compile(rb"[\x01-\x07\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROL = 0.05
"""Share of control characters that no text has; more, and the file is binary."""
_LABELS = {
    "ascii": "cp1252", "us-ascii": "cp1252", "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252",
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "shift-jis": "cp932",
    "x-sjis": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "utf-16": "utf-8", "utf-16le": "utf-8", "utf-16be": "utf-8",
    "iso-8859-9": "cp1254", "tis-620": "cp874", "windows-31j": "cp932", "unicode": "utf-8",
}  # fmt: skip
"""What browsers take for the names that stand in web pages (WHATWG Encoding, section 4.2), where Python takes something narrower."""
_DECLARED = re.compile(
    rb"""<meta[^<>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})|<\?xml[^<>]{0,100}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE
)


def decode_document(data: bytes, name: str, encoding: str | None, note: Callable[[str], None]) -> str:
    """The text of a text file, lines ending with a newline character.

    Args:
        data: the file.
        name: for errors.
        encoding: None = found out.
        note: is told what was guessed or lost.

    Raises:
        InputError: it is binary, not in the encoding named, or in none that could be found out.
    """
    if encoding:
        return clean(decode(data, name, encoding))
    wide = _wide(data)
    if wide:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(wide).removeprefix("\ufeff")
            if "\0" not in text:
                return clean(text)
    broken = _broken_utf8(data)
    if broken is not None:
        return clean(_noted(broken, note))
    try:
        return clean(decode(data, name, None, lambda guess: note(f"encoding guessed: {guess}")))
    except InputError as error:
        plain = _mostly_ascii(data)
        if plain is None and "encoding" in error.message:
            raise InputError(error.message, "Name its encoding (`--encoding NAME`, e.g. cp1251), or save it as UTF-8.") from error
        if plain is None:
            raise
        note("encoding unknown, windows-1252 taken: letters outside ASCII may be wrong")
        return clean(plain)


def declared_encoding(head: bytes) -> str | None:
    """The encoding that a web page says it is in, as Python names it; None = it says none, or one that nobody knows."""
    if head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    match = _DECLARED.search(head[:_SAMPLE])
    if not match:
        return None
    label = (match[1] or match[2]).decode().lower()
    with contextlib.suppress(LookupError):
        return codecs.lookup(_LABELS.get(label, label)).name
    return None


def is_text(head: bytes) -> bool:
    """Whether the beginning of a file is text in some encoding, as opposed to a binary file."""
    if head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _wide(head):
        return True
    if b"\0" not in head:
        return len(_CONTROL.findall(head)) <= _MOST_CONTROL * len(head)
    with contextlib.suppress(InputError):
        decode(head[: len(head) // 2 * 2], "", None)
        return True
    return False


def _wide(data: bytes) -> str:
    """`utf_32` in one of its orders, if that is what it is; else empty."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf_32"
    sample = data[: min(len(data), _SAMPLE) // 4 * 4]
    if len(sample) >= 8:
        for name, high, second in (("utf_32_le", 3, 2), ("utf_32_be", 0, 1)):
            if not any(sample[high::4]) and max(sample[second::4]) <= 0x10:
                return name
    return ""


def _broken_utf8(data: bytes) -> str | None:
    """UTF-8 with a few broken bytes, those as U+FFFD; None = it is whole, or is something else."""
    if b"\0" in data:
        return None
    with contextlib.suppress(UnicodeDecodeError):
        data.decode()
        return None
    text = data.decode("utf_8", "replace")
    lost = text.count("\ufffd")
    letters = len(text) - sum(map(len, re.findall(r"[\x00-\x7f]+", text))) - lost
    return text if letters and lost <= max(1, _MOST_BROKEN * letters) else None


def _noted(text: str, note: Callable[[str], None]) -> str:
    note(f"{counted(text.count(chr(0xFFFD)), 'place is', 'places are')} not UTF-8 and shown as \ufffd")
    return text.removeprefix("\ufeff")


def _mostly_ascii(data: bytes) -> str | None:
    """A text of which nearly all is ASCII, the rest as Windows-1252 has it; None = it is binary, or too much is not ASCII."""
    plain = len(data.decode("ascii", "ignore"))
    if b"\0" in data or plain < _FEWEST_ASCII * len(data) or _CONTROL.search(data):
        return None
    return data.decode("cp1252", "replace")
