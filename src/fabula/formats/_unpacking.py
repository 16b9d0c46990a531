"""Zip files from outside, unpacked part by part: what comes out is counted, not believed.

A zip file says how large its parts are, and a bomb lies. So only what is asked for is unpacked, in pieces, and the pieces are
counted against one limit for the whole file. Zip files inside are data like any other: they are never opened.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from fabula.errors import InputError

MOST_BYTES = 256 * 2**20
"""All that is unpacked from one file."""
MOST_PARTS = 20_000
_PIECE = 2**18
_DEEPEST = 2000
_MOST_ELEMENTS = 5_000_000
"""Elements of one part; a book of a thousand pages has about one million."""
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""EPUB and OOXML allow no others; those unpack without bound in one piece."""


class Archive:
    """The parts of an EPUB or DOCX file."""

    def __init__(self, data: bytes, name: str, what: str) -> None:
        """Open it.

        Args:
            data: the file.
            name: for errors.
            what: `an EPUB book`, for errors.

        Raises:
            InputError: not a zip file, or one with too many parts.
        """
        self.name, self._what, self._left = name, what, MOST_BYTES
        # Counted before Python makes an object of each.
        if data.count(b"PK\x01\x02") > MOST_PARTS:
            raise InputError(f"{name} has more than {MOST_PARTS:,} parts.", "Split it into several files.")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as error:
            raise self.damaged(str(error)) from error
        self._names = set(self._zip.namelist())

    def __contains__(self, part: str) -> bool:
        return part in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._zip.namelist())

    def damaged(self, why: str) -> InputError:
        """The error for a file that is not what it should be."""
        return InputError(
            f"{self.name} is not {self._what}, or it is damaged ({why}).", "Open it in the program that made it and save it again."
        )

    def pieces(self, part: str) -> Iterator[bytes]:
        """A part, unpacked in pieces.

        Raises:
            InputError: no such part, damaged, protected by a password, or more than may be unpacked.
        """
        try:
            entry = self._zip.getinfo(part)
        except KeyError as error:
            raise self.damaged(f"it lacks {part[:100]}") from error
        if entry.flag_bits & 1:
            raise InputError(f"{self.name} is protected by a password.", "Save a copy without the password, and read that.")
        if entry.compress_type not in METHODS:
            raise self.damaged(f"{part[:100]} is packed in a way that {self._what} does not allow")
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise InputError(f"{self.name} unpacks to more than {MOST_BYTES // 2**20} MiB.", "Split it into several files.")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError, NotImplementedError) as error:
            raise self.damaged(f"its part {part[:100]} is damaged") from error

    def read(self, part: str, most: int = MOST_BYTES) -> bytes:
        """A part as a whole.

        Args:
            part: its name.
            most: bytes that it may have.

        Raises:
            InputError: as `pieces`, or larger than `most`.
        """
        data = bytearray()
        for piece in self.pieces(part):
            data += piece
            if len(data) > most:
                raise InputError(f"{self.name} has a part of more than {most // 2**20} MiB ({part[:100]}).", "Split it into several files.")
        return bytes(data)


def parse(archive: Archive, part: str, start: Any, end: Any, text: Any = None) -> None:
    """Feed a part of the archive to a streaming parser; a declared entity is refused, nothing is fetched.

    Raises:
        InputError: not XML, nested too deep, too many elements, or it declares entities.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = elements = 0

    def refuse(*_: Any) -> None:
        raise archive.damaged(f"{part[:100]} declares entities, which it may not")

    def opened(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, elements
        depth += 1
        elements += 1
        if depth > _DEEPEST or elements > _MOST_ELEMENTS:
            why = "nested too deep" if depth > _DEEPEST else "made of too many elements"
            raise archive.damaged(f"{part[:100]} is {why}")
        start(tag.rpartition(" ")[2], attributes)

    def closed(tag: str) -> None:
        nonlocal depth
        depth -= 1
        end(tag.rpartition(" ")[2])

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    if text is not None:
        parser.buffer_text = True
        parser.CharacterDataHandler = text
    try:
        for piece in archive.pieces(part):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise archive.damaged(f"{part[:100]}: {error}") from error
