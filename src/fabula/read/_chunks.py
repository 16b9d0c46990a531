"""From documents to chunks (SPEC R1): spans of the original that join to it, files packed whole where they are small.

A chunk is read as one; its parts say which lines of which document they are, so that whatever is found in it can be cited. Texts
go to the library by content as they come: of 200 MB of sources no more than one document stands in memory.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabula.formats import Document
from fabula.text import count_tokens, detect_language, split

if TYPE_CHECKING:
    from fabula.read._sources import Source

Keep = Callable[[str], str]
"""Keeps a text and returns its hash."""

_HEADER = 24
"""Tokens that the line around a document takes in a prompt."""
_WINDOW = 0.7
"""Files are packed to at least this share of the budget, so that there is a choice of where to cut."""
_SAMPLED = 4_000
"""Characters of a document by which its language is told."""
_MOST_FINDINGS = 200

_ORDERS = re.compile(
    r"(?:ignore|disregard|forget)\b[^.\n]{0,40}\b(?:above|previous|prior|earlier|preceding)\b[^.\n]{0,30}"
    r"\b(?:instruction|prompt|order|rule|text|message|direction|task)?"
    r"|\b(?:you are now|act as an?|new instructions?:|system prompt)\b"
    r"|(?:игнорируй|забудь|не обращай внимания на)[^.\n]{0,40}(?:предыдущ|выше|прежн|инструкц)"
    r"|(?:忽略|无视|忘记)[^。\n]{0,12}(?:以上|上面|之前|前面|先前)[^。\n]{0,12}(?:指令|指示|内容|要求|提示|说明)?",
    re.IGNORECASE,
)
"""Text that speaks to a model rather than to a reader. It is data like all the rest; that it is there is worth knowing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of one document."""

    document: int
    """Number of the document, from 0."""
    line: int
    """Number of its first line, from 1."""
    lines: int
    hash: str
    """Names the text in the library."""
    places: tuple[tuple[int, str], ...] = ()
    """(offset in characters from the part's beginning, label): page, chapter."""

    def as_list(self) -> list[Any]:
        """As journaled."""
        return [self.document, self.line, self.lines, self.hash, [list(p) for p in self.places]]

    @classmethod
    def from_list(cls, value: list[Any]) -> Part:
        """As journaled."""
        document, line, lines, name, places = value
        return cls(document, line, lines, name, tuple((int(at), str(label)) for at, label in places))


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one call reads."""

    number: int
    """From 0, in the order of the sources."""
    tokens: int
    """As `text.count_tokens` counts."""
    parts: tuple[Part, ...]

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return {"tokens": self.tokens, "parts": [p.as_list() for p in self.parts]}

    @classmethod
    def from_dict(cls, number: int, value: dict[str, Any]) -> Chunk:
        """As journaled."""
        return cls(number, value["tokens"], tuple(Part.from_list(p) for p in value["parts"]))

    def mark(self) -> int:
        """A number that depends on the chunk's content alone: where to cut, so that an edit elsewhere moves no cut."""
        return zlib.crc32("".join(p.hash for p in self.parts).encode())


@dataclass(slots=True)
class Gathered:
    """All that is to be read, cut into chunks."""

    sources: list[dict[str, Any]] = field(default_factory=list)
    """where, name, commit of each source."""
    documents: list[dict[str, Any]] = field(default_factory=list)
    """name, source, kind, format, characters, lines, tokens, notes of each document."""
    skipped: list[dict[str, Any]] = field(default_factory=list)
    """path, why, size (bytes) of what was not read."""
    chunks: list[Chunk] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    """path, line, text: passages that speak to a model."""
    language: str = ""
    """ISO 639-1; of most of the prose."""

    @property
    def tokens(self) -> int:
        """Of all chunks."""
        return sum(c.tokens for c in self.chunks)

    @property
    def is_code(self) -> bool:
        """Whether most of it is code."""
        code = sum(d["characters"] for d in self.documents if d["kind"] == "code")
        return 2 * code > sum(d["characters"] for d in self.documents)

    @property
    def title(self) -> str:
        """Names what is read."""
        return ", ".join(s["name"] for s in self.sources)


@dataclass(slots=True)
class _Small:
    """A document that goes into a chunk whole."""

    name: str
    tokens: int
    part: Part


class Chunker:
    """Cuts documents into chunks as they come.

    Args:
        budget_tokens: most tokens of a chunk, what stands around its documents included.
        keep: keeps a text.
    """

    def __init__(self, budget_tokens: int, keep: Keep):
        self.budget, self.keep = budget_tokens, keep
        self.gathered = Gathered()
        self._pending: list[_Small] = []
        self._languages: Counter[str] = Counter()

    def add(self, document: Document, source: int, name: str) -> None:
        """Take a document; `name` is how it is cited."""
        number = len(self.gathered.documents)
        text = document.text
        tokens = count_tokens(text)
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        self.gathered.documents.append({
            "name": name, "source": source, "kind": document.kind, "format": document.format, "characters": len(text), "lines": lines,
            "tokens": tokens, "notes": list(document.notes),
        })  # fmt: skip
        self._look(document, name)
        if tokens + _HEADER <= self.budget:
            part = Part(number, 1, lines, self.keep(text), document.places)
            self._pending.append(_Small(name, tokens + _HEADER, part))
            self._pack()
        else:
            self._flush()
            self._cut(document, number)

    def _look(self, document: Document, name: str) -> None:
        if document.kind == "prose":
            language = detect_language(document.text[:_SAMPLED])
            if language:
                self._languages[language] += len(document.text)
        for match in _ORDERS.finditer(document.text):
            if len(self.gathered.findings) >= _MOST_FINDINGS:
                break
            line = document.text.count("\n", 0, match.start()) + 1
            self.gathered.findings.append({"path": name, "line": line, "text": " ".join(match.group().split())[:120]})

    def _cut(self, document: Document, number: int) -> None:
        text, places = document.text, list(document.places)
        line, label = 1, ""
        for span in split(text, self.budget - _HEADER, kind=document.kind, stable=True):
            piece = text[span.start : span.end]
            while places and places[0][0] < span.start:
                label = places.pop(0)[1]
            inside = [(at - span.start, name) for at, name in places if at < span.end]
            if label and not (inside and inside[0][0] == 0):
                inside.insert(0, (0, label))
            newlines = piece.count("\n")
            part = Part(number, line, newlines + (not piece.endswith("\n")), self.keep(piece), tuple(inside))
            self._emit([part], span.tokens + _HEADER)
            line += newlines

    def _pack(self) -> None:
        """Emit the pending files up to the best place as soon as they no longer fit."""
        while sum(s.tokens for s in self._pending) > self.budget:
            total, best, lowest = 0, 0, 1 << 40
            for index, one in enumerate(self._pending[:-1]):
                total += one.tokens
                mark = zlib.crc32(one.name.encode("utf-8", "surrogatepass"))
                if total <= self.budget and (best == 0 or (total >= _WINDOW * self.budget and mark < lowest)):
                    best = index + 1
                    lowest = mark if total >= _WINDOW * self.budget else lowest
                elif total <= self.budget and total < _WINDOW * self.budget:
                    best = index + 1
            self._emit_pending(best)

    def _emit_pending(self, count: int) -> None:
        first, self._pending = self._pending[:count], self._pending[count:]
        self._emit([s.part for s in first], sum(s.tokens for s in first))

    def _flush(self) -> None:
        if self._pending:
            self._emit_pending(len(self._pending))

    def _emit(self, parts: list[Part], tokens: int) -> None:
        self.gathered.chunks.append(Chunk(len(self.gathered.chunks), tokens, tuple(parts)))

    def end(self) -> Gathered:
        """What came of it."""
        self._flush()
        if self._languages:
            self.gathered.language = self._languages.most_common(1)[0][0]
        return self.gathered


def gather(sources: Iterable[Source], budget_tokens: int, keep: Keep, tell: Callable[[str], None] = lambda _: None) -> Gathered:
    """Read every source and cut it into chunks.

    Args:
        sources: opened one after the other.
        budget_tokens: most tokens of a chunk.
        keep: keeps a text (in the library, say) and returns its hash.
        tell: is told the name of each document.

    Raises:
        InputError: a source cannot be read, or nothing in it can.
    """
    chunker = Chunker(budget_tokens, keep)
    for index, source in enumerate(sources):
        chunker.gathered.sources.append({"where": source.where, "name": source.name, "commit": source.commit})
        for document in source.documents():
            name = document.name if index == 0 else f"{source.name}/{document.name}"
            tell(name)
            chunker.add(document, index, name)
        chunker.gathered.skipped += [{"path": s.path, "why": s.why, "size": s.size} for s in source.skipped]
        chunker.gathered.sources[-1]["commit"] = source.commit
    return chunker.end()


def groups(marks: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Groups of at most `most` neighbours: (first, behind). The cuts depend on what is near them alone, so that an insertion changes the
    group that it falls into and seldom another.
    """
    at = 0
    while len(marks) - at > most:
        least = max(1, int(_WINDOW * most))
        if len(marks) - at - most < least:  # the rest would be a small group
            least = max(1, len(marks) - at - most)
        ends = range(at + least, at + most + 1)
        end = min(ends, key=lambda n: (marks[n - 1], n))
        yield at, end
        at = end
    if at < len(marks):
        yield at, len(marks)
