"""A program of its own that turns one PDF, HTML or RTF file into text, under limits of time and memory.

    python -P _converting.py pdf|html|rtf SECONDS BYTES CHARACTERS   < file   > records

It imports nothing of Fabula, so that it starts fast. Each record is a line of JSON: `{"pages": 3}` first for a PDF, then one
`{"text", "pictures"}` for each page or file, and at the end `{"ended": ""}` or why it ended before its end.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

MOST_PAGES = 20_000
_ERROR_OF = {4: "password", 5: "password"}
"""PDFium's error numbers for a wrong password and for a kind of protection it does not know."""
_PICTURE = 3
"""PDFium's number for a page's object that is a picture."""
_DEEPEST = 8
"""Pictures are counted in groups nested as deep."""


def limit(seconds: int, most_bytes: int) -> None:
    """Let the system end this process when it takes more than that; only the waiting parent's limit of time holds on Windows."""
    with contextlib.suppress(ImportError):
        import resource

        for what, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(what, (value, value))


def read_pdf(data: bytes) -> Iterator[dict[str, Any]]:
    """The text of each page, in order."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        document = pypdfium2.PdfDocument(data)
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        yield {"ended": _ERROR_OF.get(getattr(error, "err_code", 0) or 0, "damaged")}
        return
    yield {"pages": pages}
    for number in range(min(pages, MOST_PAGES)):
        try:
            page = document[number]
            text_page = page.get_textpage()
            text = _clean(text_page.get_text_bounded())
            pictures = sum(1 for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=_DEEPEST))
            text_page.close()
            page.close()
        except pypdfium2.PdfiumError:
            yield {"text": "", "pictures": 0, "damaged": True}
            continue
        yield {"text": text, "pictures": pictures}
    yield {"ended": "" if pages <= MOST_PAGES else "pages"}


def _clean(text: str) -> str:
    """Lines as they are; words that were hyphenated at a line's end are joined (PDFium marks those hyphens)."""
    text = re.sub("[\ufffe\x02\u00ad]\r?\n?", "", text).replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub("[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]", "", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def read_html(data: bytes) -> Iterator[dict[str, Any]]:
    """The readable text of a page, as Markdown. `data` is UTF-8."""
    yield {"text": convert_html(data.decode()), "pictures": 0}
    yield {"ended": ""}


def convert_html(html: str) -> str:
    """HTML as Markdown: headings, lists, tables, emphasis; no addresses, pictures, scripts, styles or hidden text."""
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        heading_style="atx", bullets="-", newline_style="spaces", compact_tables=True, autolinks=False, skip_images=True,
        extract_metadata=False, hidden_content="drop", preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
    )  # fmt: skip
    # Addresses of links would be half of the text of many a page. `[^<>]` keeps the search linear whatever stands there.
    html = re.sub(r"</?a(?=[\s>/])[^<>]*>", "", html.replace("\0", ""), flags=re.IGNORECASE)
    text = html_to_markdown.convert(html, options).content or ""
    # A dash that begins a speech, or a year that begins a sentence: the marks that keep Markdown from seeing a list there go.
    text = re.sub(r"^( *)(?:\\(?=[-+*] )|(\d{1,9})\\(?=[.)]))", r"\1\2", text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def read_rtf(data: bytes) -> Iterator[dict[str, Any]]:
    """The text of a rich text file."""
    from striprtf.striprtf import rtf_to_text

    text: str = rtf_to_text(data.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
    yield {"text": text, "pictures": data.count(b"\\pict")}
    yield {"ended": ""}


def main() -> None:
    """Convert standard input to records on standard output."""
    task, seconds, most_bytes, characters = sys.argv[1], *map(int, sys.argv[2:5])
    limit(seconds, most_bytes)
    left = characters
    for record in _records(task, sys.stdin.buffer.read()):
        left -= len(record.get("text", ""))
        if left < 0:
            record = {"ended": "length"}
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()
        if left < 0:
            return


def _records(task: str, data: bytes) -> Iterator[dict[str, Any]]:
    read = {"pdf": read_pdf, "html": read_html, "rtf": read_rtf}[task]
    try:
        yield from read(data)
    except MemoryError:
        yield {"ended": "memory"}
    except Exception as error:  # noqa: BLE001
        # Libraries raise whatever they like on damaged files, and the parent turns it into a sentence.
        yield {"ended": f"damaged: {error}"[:300]}


if __name__ == "__main__":
    main()
