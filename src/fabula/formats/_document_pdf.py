"""PDF page by page, by PDFium in a process of its own."""

from __future__ import annotations

from fabula.errors import InputError
from fabula.formats._bounded import MOST_SECONDS, convert_bounded
from fabula.formats._document import Document, Draft, counted, too_long

_STOPPED = {
    "time": f"reading it took more than {MOST_SECONDS} seconds",
    "memory": "it takes too much memory",
    "crash": "it makes the reader crash",
    "pages": "it has more pages than are read",
}


def read_pdf(data: bytes, name: str) -> Document:
    """A PDF file; each page is a place.

    Raises:
        InputError: damaged, protected by a password, or without text.
    """
    converted = convert_bounded("pdf", data)
    if converted.ended == "password":
        raise InputError(f"{name} is protected by a password.", "Save a copy without the password, and read that.")
    if converted.ended == "length":
        raise too_long(name)
    if converted.ended.startswith("damaged") or (converted.ended and not converted.parts):
        why = _STOPPED.get(converted.ended, "no PDF can be found in it")
        raise InputError(f"{name} is damaged or no PDF file ({why}).", "Open it in the program that made it and save it again.")
    draft = Draft(name)
    empty, pictures, damaged = [], 0, []
    for number, part in enumerate(converted.parts, 1):
        if part.damaged:
            damaged.append(number)
        elif part.text.strip():
            draft.place(f"page {number}")
            draft.add(part.text)
            pictures += part.pictures
        else:
            empty.append(number)
    scanned = sum(part.pictures > 0 for part in converted.parts if not part.text.strip())
    if empty:
        what = f"; {'it is a picture' if len(empty) == 1 else f'{scanned} of them are pictures'}" if scanned else ""
        draft.notes.append(f"{_pages(empty)} {'holds' if len(empty) == 1 else 'hold'} no text{what}")
    if damaged:
        draft.notes.append(f"{_pages(damaged)} {'is' if len(damaged) == 1 else 'are'} damaged and not read")
    if pictures:
        draft.notes.append(f"{counted(pictures, 'picture is', 'pictures are')} not read")
    if converted.ended:
        last = len(converted.parts)
        draft.notes.append(f"the pages after page {last} of {converted.pages} are not read: {_STOPPED[converted.ended]}")
    return draft.done("prose", "pdf")


def _pages(numbers: list[int]) -> str:
    """`page 3`, `pages 1, 4-9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    shown = ", ".join("-".join(map(str, run)) for run in runs[:20]) + (" …" if len(runs) > 20 else "")
    return f"page {shown}" if len(numbers) == 1 else f"pages {shown}"
