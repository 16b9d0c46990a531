"""Books as files: Markdown, EPUB 3, DOCX and plain text to plain values, and back.

Knows what a book is made of (chapters, scenes, text) and how each format says it: what was written reads back byte for
byte, scene by scene, and with its ids (but from plain text, which has no place for them). Does not know runs, memory,
models or the library, and counts no words: what the note says about the model and the share of machine text is handed in.

A scene's text is prose with light emphasis (`*so*`, `_so_`, `**so**`), which EPUB and DOCX show as such.
"""

from __future__ import annotations

from fabula.formats._book import Book, Chapter, Scene, split_heading
from fabula.formats._files import SUFFIXES, Format, Kept, check_keep, decode, format_of, keep_current, read_book, render_book, write_book

__all__ = [
    "SUFFIXES",
    "Book",
    "Chapter",
    "Format",
    "Kept",
    "Scene",
    "check_keep",
    "decode",
    "format_of",
    "keep_current",
    "read_book",
    "render_book",
    "split_heading",
    "write_book",
]
