"""How values are kept in columns: text that may be long, and JSON.

A column for long values holds either plain text or bytes; the first byte of the bytes says which kind: `z` is deflated
UTF-8, `s` is UTF-8 that holds lone surrogates (half of a character, which SQLite's text cannot hold). Reading gives back
exactly what was written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

COMPRESS_FROM = 1024
"""Characters. Deflating costs about 70 us at least, and prose below this length saves less than 400 bytes."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept in a library: only dict, list, str, int, float, bool and None")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def pack(text: str) -> str | bytes:
    """A text as its column holds it."""
    if len(text) >= COMPRESS_FROM:
        raw = text.encode("utf-8", "surrogatepass")
        small = zlib.compress(raw, 1)
        if len(small) < 0.9 * len(raw):
            return b"z" + small
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return b"s" + text.encode("utf-8", "surrogatepass")
    return text


def unpack(value: str | bytes) -> str:
    """The text that `pack` was given. Raises ValueError where the bytes are damaged."""
    if isinstance(value, str):
        return value
    if value[:1] == b"z":
        try:
            return zlib.decompress(value[1:]).decode("utf-8", "surrogatepass")
        except zlib.error as error:
            raise ValueError(f"a compressed text is damaged: {error}") from None
    if value[:1] == b"s":
        return value[1:].decode("utf-8", "surrogatepass")
    raise ValueError("a text of unknown kind")


def pack_json(value: Any) -> str | bytes:
    """A plain value as compact JSON in UTF-8. Raises TypeError for anything but plain values."""
    return pack(_encode(value))


def unpack_json(value: str | bytes) -> Any:
    """The value that `pack_json` was given; tuples come back as lists."""
    return json.loads(unpack(value))


def listed(values: Any) -> str:
    """Values as a JSON array in ASCII, for `json_each`."""
    return _ascii(list(values))


def digest(text: str) -> bytes:
    """16 bytes that name a text by its content."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def text_hash(text: str) -> str:
    """The name of a source text by its content (`TextRow.hash`): 32 hex digits. Writes nothing."""
    return digest(text).hex()
