"""Books as files: Markdown, EPUB 3, DOCX and plain text to plain values, and back.

Knows what a book is made of (chapters, scenes, text) and how each format says it: what was written reads back byte for
byte, scene by scene, and with its ids (but from plain text, which has no place for them). Does not know runs, memory,
models or the library, and counts no words: what the note says about the model and the share of machine text is handed in.

Documents too: what any file says (text in any encoding, Markdown, HTML, PDF, DOCX, EPUB, RTF, notebooks, code; pictures and
speech by extras) as one text with places and with notes on what was guessed or lost. Hostile files are bounded in time and memory.

A scene's text is prose with light emphasis (`*so*`, `_so_`, `**so**`), which EPUB and DOCX show as such.
"""

from __future__ import annotations

from fabula.formats._book import Book, Chapter, Scene
from fabula.formats._document import Document
from fabula.formats._document_kinds import document_format
from fabula.formats._files import SUFFIXES, Format, Kept, check_keep, decode, format_of, keep_current, read_book, render_book, write_book
from fabula.formats._headings import chapter_number, heading_kind, renumbered, split_heading
from fabula.formats._reading import read_document

__all__ = [
    "SUFFIXES",
    "Book",
    "Chapter",
    "Document",
    "Format",
    "Kept",
    "Scene",
    "chapter_number",
    "check_keep",
    "decode",
    "document_format",
    "format_of",
    "heading_kind",
    "keep_current",
    "read_book",
    "read_document",
    "render_book",
    "renumbered",
    "split_heading",
    "write_book",
]
