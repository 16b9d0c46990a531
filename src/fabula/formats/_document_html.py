"""HTML and RTF to text by libraries, small pages in this process and large ones under limits."""

from __future__ import annotations

import contextlib
import re

from fabula.errors import InputError
from fabula.formats._bounded import Converted, convert_bounded
from fabula.formats._converting import convert_html
from fabula.formats._document import Document, Draft, counted, too_long
from fabula.formats._document_text import declared_encoding, decode_document

MOST_HTML = 16 * 2**20
"""Bytes of one page; the tree of a page takes some twenty times its size."""
_SMALL = 128 * 1024
"""Bytes of a page that is converted in this process."""
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_XHTML = re.compile(r"<\?xml|xmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml")
_CLOSED = re.compile(rf"<(?!(?:{_VOID})\b)([A-Za-z][\w:-]*)((?:\s[^<>]*)?)/>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_UNREAD = re.compile(r"<(script|style|head|template|noscript)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_FEWEST, _LEAST_READ = 200, 0.7
"""Letters between tags from which it is said how many were not read, and the share below which it is said."""


def read_html(data: bytes, name: str, encoding: str | None) -> Document:
    """A web page, as Markdown.

    Raises:
        InputError: too large, nested too deep, or no text.
    """
    draft = Draft(name)
    draft.add(html_text(data, name, encoding, draft))
    pictures = len(re.findall(rb"<(?:img|svg)\b", data, re.IGNORECASE))
    if pictures:
        draft.notes.append(f"{counted(pictures, 'picture is', 'pictures are')} not read")
    return draft.done("prose", "html")


def html_text(data: bytes, name: str, encoding: str | None, draft: Draft) -> str:
    """The readable text of an HTML or XHTML page as Markdown; what was guessed goes to the draft's notes.

    Raises:
        InputError: too large, or nested too deep.
    """
    if len(data) > MOST_HTML:
        raise InputError(f"{name} is an HTML page of more than {MOST_HTML // 2**20} MiB.", "Split it, or save it as plain text.")
    html = _decoded(data, name, encoding, draft)
    if _XHTML.search(html[:2000]):
        html = _CLOSED.sub(r"<\1\2></\1>", html)  # HTML does not know `<title/>` and would take the rest of the page for a title
    if len(html) <= _SMALL:
        text = _here(html, name)
    else:
        text = _joined(convert_bounded("html", html.encode("utf_8", "replace")), name)
    there, read = _letters(_TAG.sub("", _UNREAD.sub("", html))), _letters(text)
    if there > _FEWEST and not read:
        raise InputError(f"{name} is nested too deep to be read, or hides all of its text.", "Save it as plain text.")
    if there > _FEWEST and read < _LEAST_READ * there:
        draft.notes.append(f"about {100 - 100 * read // there} % of the page is hidden or nested too deep, and not read")
    return text


def read_rtf(data: bytes, name: str) -> Document:
    """A rich text file.

    Raises:
        InputError: damaged, or no text.
    """
    draft = Draft(name)
    converted = convert_bounded("rtf", data)
    draft.add(_joined(converted, name))
    pictures = sum(part.pictures for part in converted.parts)
    if pictures:
        draft.notes.append(f"{counted(pictures, 'picture is', 'pictures are')} not read")
    return draft.done("prose", "rtf")


def _decoded(data: bytes, name: str, encoding: str | None, draft: Draft) -> str:
    said = encoding or declared_encoding(data)
    if said and not encoding:
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(said)
        text = decode_document(data, name, None, draft.notes.append)
        draft.notes.append(f"the page says that it is {said}, and is not")
        return text
    return decode_document(data, name, encoding, draft.notes.append)


def _letters(text: str) -> int:
    return len(re.findall(r"\w", text))


def _here(html: str, name: str) -> str:
    try:
        return convert_html(html)
    except Exception as error:
        # The converter has errors of its own kind for each cause.
        raise InputError(f"{name} cannot be read as HTML: {error}.", "Save it as plain text.") from error


def _joined(converted: Converted, name: str) -> str:
    if converted.ended == "length":
        raise too_long(name)
    if converted.ended in {"time", "memory", "crash"}:
        why = {"time": "takes too long", "memory": "takes too much memory", "crash": "makes the converter crash"}[converted.ended]
        raise InputError(f"{name} is built so that reading it {why}.", "Save it as plain text.")
    if converted.ended:
        raise InputError(f"{name} is damaged ({converted.ended.removeprefix('damaged: ')}).", "Save it again in the program that made it.")
    return "\n\n".join(part.text for part in converted.parts)
