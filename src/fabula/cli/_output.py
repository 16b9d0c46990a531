"""What commands print: results on stdout, everything else on stderr; plain where no person looks on or colours are unwanted."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_COMMAND = re.compile(r"`[^`]{1,60}`")
_FIXED = "\u2007"
"""A blank at which no line is broken: a command is to be copied whole."""
_MARK = re.compile(r"\s*(?:(?:\d+\.?|[-✓✗↳!→·])\s+)?")
_WIDEST = 92
"""Cells of a line of text; longer ones tire the eye."""
_CONTROLS = dict.fromkeys((*range(32), 127, *range(128, 160), *range(8234, 8239), *range(8294, 8298)), "�")
_CONTROLS |= {ord("\n"): "\n", ord("\t"): "    ", ord("\r"): ""}


def is_plain(stream: IO[str]) -> bool:
    """No colours, no moving cursor: not a terminal, a dumb one, or NO_COLOR is set."""
    return not stream.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "") in ("dumb", "")


def console(stream: IO[str] | None = None) -> Console:
    """A console on a stream (default stdout) as it is now."""
    from rich.console import Console

    stream = stream or sys.stdout
    plain = is_plain(stream)
    width = None if stream.isatty() else 100_000
    return Console(
        file=stream,
        force_terminal=not plain,
        no_color=plain,
        color_system=None if plain else "auto",
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
    )


def printable(text: str) -> str:
    """A text that came from a model or a file, so that it cannot steer the terminal."""
    return text.translate(_CONTROLS)


def show(text: str = "", style: str = "") -> None:
    """Print to stdout. A style counts only on a terminal that has colours."""
    _print(sys.stdout, text, style)


def say(text: str = "", style: str = "") -> None:
    """Tell the person something on stderr."""
    _print(sys.stderr, text, style)


def _print(stream: IO[str], text: str, style: str) -> None:
    if stream.isatty():
        text = "\n".join(line for whole in printable(text).split("\n") for line in _fitted(whole))
    if style and not is_plain(stream):
        console(stream).print(text, style=style, soft_wrap=True)
    else:
        stream.write(text + "\n")
    stream.flush()


def _fitted(line: str) -> list[str]:
    """A line as the terminal holds it, broken between words; what goes on is indented like its beginning."""
    from shutil import get_terminal_size

    width = get_terminal_size().columns
    if len(line) * 2 < width:
        return [line]
    from fabula.cli._flow import wrap

    mark = _MARK.match(line)
    indent = mark.end() if mark is not None and mark.end() < width // 3 else 0
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _FIXED), line[indent:])
    first, *rest = wrap(whole, min(_WIDEST, width - 1) - indent) or [""]
    return [(line[:indent] + first).replace(_FIXED, " "), *(" " * indent + more.replace(_FIXED, " ") for more in rest)]


def shell_word(text: str) -> str:
    """A text as one word of a command that a person can copy: in double quotes where that is enough."""
    import re
    import shlex

    if re.fullmatch(r"[\w@%+=:,./-]+", text):
        return text
    return shlex.quote(text) if re.search(r'["$`\\!]', text) else f'"{text}"'


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: int = -1) -> None:
    """A table on stdout. On a terminal the flexible column wraps; elsewhere nothing is cut, columns are padded with blanks.

    Args:
        headings: of the columns.
        rows: cells, as many as headings.
        flexible: index of the column that may be narrowed.
    """
    if not is_plain(sys.stdout):
        from rich.table import Table

        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for number, heading in enumerate(headings):
            soft = number == flexible % len(headings)
            shown.add_column(heading, no_wrap=not soft, overflow="fold" if soft else "ellipsis", ratio=1 if soft else None)
        for row in rows:
            shown.add_row(*map(printable, row))
        console().print(shown)
        return
    from rich.cells import cell_len

    whole = [list(headings), *[[" ".join(cell.split()) for cell in row] for row in rows]]
    widths = [max(cell_len(row[n]) for row in whole) for n in range(len(headings))]
    for row in whole:
        show("  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip())


def moment(wall: float) -> str:
    """A wall time in the local zone, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(wall)) if wall else "-"


def number(value: float) -> str:
    """A number with thousands separated."""
    return f"{value:,.0f}"


def size(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def unit_name(language: str) -> str:
    """The unit of length as the status line names it."""
    return {"zh": "字", "ja": "文字"}.get(language, "words")


def first_line(text: str, most: int = 60) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
