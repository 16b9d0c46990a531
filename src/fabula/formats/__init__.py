"""Books as files: Markdown, EPUB 3, DOCX and plain text to plain values, and back.

Knows what a book is made of (chapters, scenes, text) and how each format says it. Does not know runs, memory, models or
the library, and counts no words: what the note says about the model and the share of machine text is handed in.
"""

from __future__ import annotations

__all__: list[str] = []
