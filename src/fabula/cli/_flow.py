"""Text that is wrapped while it is still being written, Chinese and Japanese included."""

from __future__ import annotations

from rich.cells import cell_len, get_character_cell_size

_NOT_FIRST = frozenset("，。、；：！？…—）》」』】〉〕”’·～％,.;:!?)]}»%")
"""Signs that no line begins with."""
_NOT_LAST = frozenset("（《「『【〈〔“‘([{«")
"""Signs that no line ends with."""


class Flow:
    """Finished lines come out as soon as they are full; the last one is still growing.

    Args:
        width: cells of a line.
    """

    def __init__(self, width: int) -> None:
        self.width = max(20, width)
        self.rest = ""
        """The line that is still growing."""

    def add(self, text: str) -> list[str]:
        """Take more text; returns the lines that are finished by it."""
        self.rest += text
        out = []
        while True:
            head, newline, tail = self.rest.partition("\n")
            cut = place_to_break(head, self.width)
            if cut:
                out.append(head[:cut].rstrip())
                self.rest = self.rest[cut:].lstrip(" ")
            elif newline:
                out.append(head.rstrip())
                self.rest = tail
            else:
                return out

    def end(self) -> list[str]:
        """The last line, if there is one; then it begins anew."""
        rest, self.rest = self.rest.rstrip(), ""
        return [rest] if rest else []


def wrap(text: str, width: int) -> list[str]:
    """A whole text as lines of at most `width` cells."""
    flow = Flow(width)
    return [*flow.add(text), *flow.end()]


def place_to_break(line: str, width: int) -> int:
    """Where a line that is too long is broken (index of the next line's first character); 0 = it is short enough."""
    if cell_len(line) <= width:
        return 0
    used, at, end = 0, 0, len(line)
    for index, char in enumerate(line):
        used += get_character_cell_size(char)
        if used > width and char != " ":
            end = index
            break
    else:
        return 0
    for index in range(end, 0, -1):
        if _may_break(line, index):
            at = index
            break
    return at or max(1, end)


def _may_break(line: str, index: int) -> bool:
    before, after = line[index - 1], line[index]
    if before == " ":
        return after != " "
    wide = get_character_cell_size(before) > 1 or get_character_cell_size(after) > 1
    return wide and after not in _NOT_FIRST and before not in _NOT_LAST and after != " "
