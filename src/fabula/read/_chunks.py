"""From documents to chunks (SPEC R1): spans of the original that join to it, files packed whole where they are small.

A chunk is read as one; its parts say which lines of which document they are, so that whatever is found in it can be cited. Texts
go to the library by content as they come: of 200 MB of sources no more than one document stands in memory.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fabula.formats import Document
from fabula.text import count_tokens, detect_language, split

if TYPE_CHECKING:
    from fabula.read._sources import Source

Keep = Callable[[str], str]
"""Keeps a text and returns its hash."""

_FENCES = 16
"""Tokens that the lines around a document take in a prompt, besides its name."""
_TAIL = 120
"""Characters before a chunk's end that say where it ends."""
_SAMPLED = 4_000
"""Characters of a document by which its language is told."""
_MOST_FINDINGS = 200

_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\b[^.\n]{0,40}\b(?:"
    r"(?:above|previous|prior|earlier|preceding)\b[^.\n]{0,30}\b(?:instruction|prompt|order|rule|text|message|direction|task|command)s?\b"
    r"|(?:above|preceding)\b(?=\s*(?:[.!,;:\n]|$|and\b)))"
    r"|\byou are now (?:in |an? )?(?:\w+ ){0,2}(?:ai|assistant|chatbot|model|mode|bot|agent)\b|(?:^|(?<=[.!?:;\"“]\s))act as an?\b"
    r"|\bnew instructions?:|\bsystem prompt\b"
    r"|(?:игнорируй|забудь|не обращай внимания|не обращайте внимания)[^.\n]{0,40}(?:предыдущ|выше|прежн|инструкц)\w*"
    r"|(?:忽略|无视|忘记|忘掉)[^。\n]{0,12}(?:以上|上面|上述|之前|前面|先前)[^。\n]{0,12}(?:指令|指示|命令|规则|内容|要求|提示|说明)",
    re.IGNORECASE | re.MULTILINE,
)
"""Text that speaks to a model rather than to a reader. It is data like all the rest; that it is there is worth knowing."""
_ORDERS_BEGIN = (
    "ignore", "disregard", "forget", "you are now", "act as a", "new instruction", "system prompt", "игнорируй", "забудь", "не обращай",
    "忽略", "无视", "忘记", "忘掉",
)  # fmt: skip
"""Looked for first: finding a word is a hundred times faster than a pattern."""


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
    mark: int = field(default=0, compare=False)
    """Depends on what stands at the chunk's end alone: by it neighbours are grouped, so that an edit moves few groups. Not journaled."""

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return {"tokens": self.tokens, "parts": [p.as_list() for p in self.parts]}

    @classmethod
    def from_dict(cls, number: int, value: dict[str, Any]) -> Chunk:
        """As journaled."""
        return cls(number, value["tokens"], tuple(Part.from_list(p) for p in value["parts"]))


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
        return bool(2 * code > sum(d["characters"] for d in self.documents))

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
        around = min(count_tokens(name) + _FENCES, self.budget // 2)
        if tokens + around <= self.budget:
            part = Part(number, 1, lines, self.keep(text), document.places)
            self._pending.append(_Small(name, tokens + around, part))
        else:
            self._flush()
            self._cut(document, number, name, around)

    def _look(self, document: Document, name: str) -> None:
        if document.kind == "prose":
            language = detect_language(document.text[:_SAMPLED])
            if language:
                self._languages[language] += len(document.text)
        line, at = 1, 0
        for match in _orders(document.text):
            if len(self.gathered.findings) >= _MOST_FINDINGS:
                break
            line, at = line + document.text.count("\n", at, match.start()), match.start()
            self.gathered.findings.append({"path": name, "line": line, "text": " ".join(match.group().split())[:120]})

    def _cut(self, document: Document, number: int, name: str, around: int) -> None:
        text, places = document.text, document.places
        offsets = [at for at, _ in places]
        line = 1
        for span in split(text, self.budget - around, kind=document.kind, stable=True):
            piece = text[span.start : span.end]
            first = bisect_left(offsets, span.start)
            inside = [(at - span.start, label) for at, label in places[first : bisect_left(offsets, span.end)]]
            if first and not (inside and inside[0][0] == 0):
                inside.insert(0, (0, places[first - 1][1]))
            newlines = piece.count("\n")
            part = Part(number, line, newlines + (not piece.endswith("\n")), self.keep(piece), tuple(inside))
            self._emit([part], span.tokens + around, f"{name}\n{piece[-_TAIL:]}")
            line += newlines

    def _flush(self) -> None:
        """Pack the files that are pending."""
        marks = [_mark(s.name) for s in self._pending]
        for first, behind in groups(marks, self.budget, [s.tokens for s in self._pending]):
            pack = self._pending[first:behind]
            self._emit([s.part for s in pack], sum(s.tokens for s in pack), pack[-1].name)
        self._pending = []

    def _emit(self, parts: list[Part], tokens: int, end: str) -> None:
        self.gathered.chunks.append(Chunk(len(self.gathered.chunks), tokens, tuple(parts), _mark(end)))

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


def _orders(text: str) -> Iterator[re.Match[str]]:
    """What speaks to a model, in order."""
    low = text.lower()
    if len(low) != len(text):  # a few letters have no small form of one character
        yield from _ORDERS.finditer(text)
        return
    behind = 0
    for at in merge(*(_places_of(word, low) for word in _ORDERS_BEGIN)):
        match = _ORDERS.match(text, at) if at >= behind else None
        if match:
            behind = match.end()
            yield match


def _places_of(word: str, text: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def groups(marks: Sequence[int], most: int, sizes: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
    """Neighbours in groups of at most `most`: (first, behind) of each. Two groups side by side are together always larger than that.

    Neighbours are joined in the order of the marks between them, highest first, as long as they fit. So what is near an edit alone decides
    what it changes: one or two groups of hundreds, where filling them in order would move every later one.

    Args:
        marks: of each; that of what stands before a cut is the cut's.
        most: of the sizes of a group together; one that is larger stays alone.
        sizes: of each; without them each counts 1.
    """
    count = len(marks)
    before = [0, *accumulate(sizes or [1] * count)]
    first, last = list(range(count)), list(range(count))
    for cut in sorted(range(count - 1), key=lambda n: (-marks[n], n)):
        low, high = first[cut], last[cut + 1]
        if before[high + 1] - before[low] <= most:
            last[low], first[high] = high, low
    at = 0
    while at < count:
        yield at, last[at] + 1
        at = last[at] + 1


def _mark(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
