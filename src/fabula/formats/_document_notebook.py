"""Jupyter notebooks: the cells in order, code fenced, what they printed shortened."""

from __future__ import annotations

import json
import re
from typing import Any

from fabula.errors import InputError
from fabula.formats._document import Document, Draft, counted

MOST_MARKS = 5_000_000
"""Brackets, braces and commas; a file made of nothing else would take thirty times its size once parsed."""
MOST_LINES, MOST_WIDTH = 20, 2000
"""Lines, and characters, of what one cell printed."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read_notebook(data: bytes, name: str) -> Document:
    """A notebook of format 3 or 4; each cell is a place.

    Raises:
        InputError: damaged, or without text.
    """
    if sum(data.count(mark) for mark in (b"[", b"{", b",")) > MOST_MARKS:
        raise InputError(f"{name} is too large for a notebook.", "Clear its outputs, or save it as a script.")
    try:
        book = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(name) from error
    if not isinstance(book, dict):
        raise _damaged(name)
    sheets = book.get("worksheets")
    cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in _list(sheet.get("cells"))] if isinstance(sheets, list) else []
    cells = cells or _list(book.get("cells"))
    language = _language(book)
    draft = Draft(name)
    pictures = shortened = 0
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            continue
        source = _joined(cell.get("source", cell.get("input")))
        outputs = [output for output in _list(cell.get("outputs")) if isinstance(output, dict)]
        pictures += sum(_is_picture(output) for output in outputs)
        printed, cut = _shortened("\n".join(filter(None, map(_printed, outputs))))
        shortened += cut
        if not source.strip() and not printed:
            continue
        draft.place(f"cell {number}")
        draft.add(_fenced(source, language) if cell.get("cell_type") == "code" and source.strip() else source)
        draft.add(f"Output:\n\n{_fenced(printed, '')}" if printed else "")
    if shortened:
        draft.notes.append(f"the output of {counted(shortened, 'cell')} is shortened to {MOST_LINES} lines")
    if pictures:
        draft.notes.append(f"{counted(pictures, 'picture is', 'pictures are')} not read")
    return draft.done("code", "notebook")


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not a notebook, or it is damaged.", "Open it in the program that made it and save it again.")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _language(book: dict[str, Any]) -> str:
    meta = book.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        said = meta.get(key) if isinstance(meta, dict) else None
        if isinstance(said, dict) and isinstance(said.get(field), str):
            return re.sub(r"[^\w+#.-]", "", said[field])[:20]
    return "python"


def _joined(value: Any) -> str:
    """A text that may be a list of lines."""
    return "".join(part for part in value if isinstance(part, str)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _bundle(output: dict[str, Any]) -> dict[str, Any]:
    data = output.get("data", output)
    return data if isinstance(data, dict) else {}


def _is_picture(output: dict[str, Any]) -> bool:
    return any(str(kind).startswith("image/") or kind in {"png", "jpeg", "svg"} for kind in _bundle(output))


def _printed(output: dict[str, Any]) -> str:
    """What an output shows as text; an error is its last lines."""
    if output.get("output_type") in {"error", "pyerr"}:
        return f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    text = _joined(output.get("text")) or _joined(_bundle(output).get("text/plain")) or _joined(_bundle(output).get("text/markdown"))
    return _COLOURS.sub("", text).strip("\n")


def _shortened(text: str) -> tuple[str, bool]:
    lines = text[:MOST_WIDTH].split("\n")
    kept = "\n".join(lines[:MOST_LINES])
    return (kept, False) if len(kept) == len(text) else (kept + "\n…", True)


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"
