"""One way in for every format: bytes and a name to a document."""

from __future__ import annotations

from fabula.errors import InputError
from fabula.formats._document import MOST_CHARACTERS as _MOST
from fabula.formats._document import Document, too_long
from fabula.formats._document_kinds import HEAD, document_format, kind_of, why_not
from fabula.formats._document_text import decode_document


def read_document(data: bytes, name: str, *, encoding: str | None = None) -> Document:
    """The text of a file in any format that `document_format` knows.

    Args:
        data: the file's bytes.
        name: its name, or its path within a source; only its ending is looked at.
        encoding: of text files and web pages, as Python names it; None = found out.

    Raises:
        InputError: binary, damaged, protected, too large once unpacked, without text, in an encoding that cannot be found out,
            or in a format whose extra is not installed. Never an empty document instead.
    """
    format = document_format(name, data[:HEAD])
    if format is None:
        what, action = why_not(name, data[:HEAD])
        raise InputError(f"{name} is {what}.", action)
    if format == "pdf":
        from fabula.formats._document_pdf import read_pdf

        return read_pdf(data, name)
    if format == "docx":
        from fabula.formats._document_docx import read_docx

        return read_docx(data, name)
    if format == "epub":
        from fabula.formats._document_epub import read_epub

        return read_epub(data, name)
    if format in {"html", "rtf"}:
        from fabula.formats._document_html import read_html, read_rtf

        return read_html(data, name, encoding) if format == "html" else read_rtf(data, name)
    if format == "notebook":
        from fabula.formats._document_notebook import read_notebook

        return read_notebook(data, name)
    if format in {"image", "speech"}:
        from fabula.formats._document_extras import read_image, read_speech

        return read_image(data, name) if format == "image" else read_speech(data, name)
    return _read_text(data, name, format, encoding)


def _read_text(data: bytes, name: str, format: str, encoding: str | None) -> Document:
    notes: list[str] = []
    text = decode_document(data, name, encoding, notes.append)
    if not text.strip():
        raise InputError(f"{name} {'holds no text' if data else 'is empty'}.", "Check that it is the right file.")
    if len(text) > _MOST:
        raise too_long(name)
    return Document(name, text, kind_of(name, format), format, (), tuple(notes))
