"""The zip files that EPUB and DOCX are, opened with care: what comes from outside is data, and may be damaged or hostile."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from fabula.errors import InputError
from fabula.formats._unpacking import METHODS, MOST_PARTS

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_BYTES = 256 * 1024 * 1024
"""Largest sum of all parts, unpacked."""


def open_archive(data: bytes, where: str, what: str) -> zipfile.ZipFile:
    """The archive, checked to be whole and of bearable size.

    Raises:
        InputError: not a zip file, damaged, or too large once unpacked.
    """
    if data.count(b"PK\x01\x02") > MOST_PARTS:
        raise InputError(f"{where} has more than {MOST_PARTS:,} parts.", "Split it into several files.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        size = sum(entry.file_size for entry in archive.infolist())
        if size <= MOST_BYTES and any(entry.compress_type not in METHODS for entry in archive.infolist()):
            raise zipfile.BadZipFile("it is packed in a way that is not allowed")
        damaged = archive.testzip() if size <= MOST_BYTES else None
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, OSError) as error:
        raise _not_whole(where, what, str(error)) from error
    except Exception as error:
        # zlib and its siblings raise their own kinds on damaged data.
        raise _not_whole(where, what, str(error)) from error
    if size > MOST_BYTES:
        raise InputError(f"{where} unpacks to more than {MOST_BYTES // 2**20} MiB.", "Split it into several files.")
    if damaged:
        raise _not_whole(where, what, f"its part {damaged} is damaged")
    return archive


def _not_whole(where: str, what: str, why: str) -> InputError:
    return InputError(f"{where} is not {what}, or it is damaged ({why}).", "Open it in the program that made it and save it again.")


def part(archive: zipfile.ZipFile, name: str, where: str, what: str) -> bytes:
    """One part of the archive.

    Raises:
        InputError: it is not there.
    """
    try:
        return archive.read(name)
    except KeyError as error:
        raise _not_whole(where, what, f"it lacks {name}") from error


def parse_xml(data: bytes, where: str) -> _Element:
    """The root of an XML document; entities are not expanded and nothing is fetched.

    Raises:
        InputError: it is not XML at all.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise InputError(f"{where} is not XML, or it is damaged.", "Open it in the program that made it and save it again.")
    return root
