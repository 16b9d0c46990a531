"""Where what is read comes from: a file, a folder, standard input, or a repository that git can reach.

A source gives its documents one after the other, sorted by path, one in memory at a time, and keeps a list of all that it did not
read, with the reason. Nothing is left out without a word.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fabula.errors import InputError, NotFound
from fabula.formats import Document, document_format, read_document
from fabula.read._git import Address, is_repository, open_repository, parse_address
from fabula.read._ignore import Rules
from fabula.read._source_entry import Entry, Skipped, Tree, Unreadable, files_word, printable
from fabula.read._source_folder import Folder, file_entry

STDIN = "standard input"
_HEAD = 8192
_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What of a source is read.

    Attributes:
        branch: or tag of a repository; empty = its own choice.
        include: patterns as in a `.gitignore`; only files that one matches are read.
        exclude: patterns of files and folders that are not read.
        readme: whether files called README are read.
        docs: whether documentation is read: folders like doc, files like CHANGELOG, and all Markdown and reStructuredText.
        max_file_bytes: of one file.
        max_bytes: of all files of a source together.
        max_files: of a source.
        encoding: of text files, as Python names it; empty = found out file by file.
        ignored: read what ignore files and the list of the usual leave out (secrets stay unread).
    """

    branch: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    readme: bool = True
    docs: bool = True
    max_file_bytes: int = 64 * 2**20
    max_bytes: int = 2 * 2**30
    max_files: int = 100_000
    encoding: str = ""
    ignored: bool = False


class Source:
    """One place that is read.

    Attributes:
        name: its title: the folder's, repository's or file's name, or `standard input`.
        where: as it was given, without user name, password or token.
        commit: of a repository, the one that is read; else empty.
        skipped: what was not read, filled while `documents` is consumed.
    """

    def __init__(self, name: str, where: str, commit: str, tree: Tree, options: SourceOptions) -> None:
        self.name, self.where, self.commit = name, where, commit
        self.skipped: list[Skipped] = []
        self._tree, self._options = tree, options

    def documents(self) -> Iterator[Document]:
        """The documents, sorted by the parts of their paths.

        Raises:
            InputError: there is none; it says what was skipped most. For a single file, why that one is not read.
        """
        self.skipped.clear()
        count = total = 0
        for entry in self._tree.entries(self._skip):
            why = self._over(entry, count, total)
            document = None if why else self._document(entry)
            if why:
                self._skip(entry.path, why, entry.size)
            if document is not None:
                count += 1
                total += entry.size
                yield document
                del document
        if not count:
            raise self._nothing()

    def _skip(self, path: str, why: str, size: int) -> None:
        self.skipped.append(Skipped(printable(path), why, size))

    def _over(self, entry: Entry, count: int, total: int) -> str:
        """Which limit a file exceeds, and which option raises it; empty where none."""
        options = self._options
        if entry.size > options.max_file_bytes:
            return f"It is larger than {_size(options.max_file_bytes)}; --max-file-size raises that limit."
        if count >= options.max_files:
            return f"The limit of {files_word(options.max_files)} is reached; --max-files raises it."
        if total + entry.size > options.max_bytes:
            return f"With it more than {_size(options.max_bytes)} would be read; --max-size raises that limit."
        return ""

    def _document(self, entry: Entry) -> Document | None:
        try:
            return read_entry(entry, self._options)
        except Unreadable as error:
            self._skip(entry.path, str(error), entry.size)
        except InputError as error:
            self._skip(entry.path, _sentence(error, printable(entry.path)), entry.size)
        return None

    def _nothing(self) -> InputError:
        if not self.skipped:
            return InputError(f"There is no file in {self.name}.", "Name a folder with files to read.")
        reasons = Counter(skipped.why for skipped in self.skipped)
        why, times = reasons.most_common(1)[0]
        what = "entry is" if len(self.skipped) == 1 else "entries are"
        return InputError(
            f"Nothing in {self.name} can be read: {len(self.skipped):,} {what} skipped, {times:,} of them for this reason: {why}",
            "Name another folder, or change --include, --exclude or --ignored.",
            skipped=len(self.skipped),
            reasons=dict(reasons.most_common(5)),
        )


class _OneFile(Source):
    """A file that the person named, or standard input: no rule leaves it out, and what is wrong with it is an error."""

    def __init__(self, name: str, where: str, entry: Entry, options: SourceOptions) -> None:
        super().__init__(name, where, "", _Nothing(), options)
        self._entry = entry

    def documents(self) -> Iterator[Document]:
        """The one document.

        Raises:
            InputError: why it cannot be read.
        """
        if self._entry.size > self._options.max_file_bytes:
            raise InputError(f"{self.name} is larger than {_size(self._options.max_file_bytes)}.", "Raise the limit with --max-file-size.")
        try:
            document = read_entry(self._entry, self._options)
        except Unreadable as error:
            raise InputError(f"{self.name}: {error}", "Check the file and its permissions.") from error
        yield document


class _Nothing:
    """A tree without files."""

    def entries(self, skip: object) -> Iterator[Entry]:
        """None."""
        del skip
        yield from ()


@contextmanager
def open_source(where: str, options: SourceOptions | None = None, *, stdin: BinaryIO | None = None) -> Iterator[Source]:
    """Open a place to be read; a copied repository is removed at the end, whatever the end is.

    Args:
        where: a file, a folder, `-` for standard input, or a git address: https://, ssh://, user@host:path, file://, or the folder of
            a repository without a work tree. A work tree is read as the folder that it is, unless a branch is named.
        options: what of it is read.
        stdin: standard input; None = this process's.

    Raises:
        NotFound: there is nothing at that path or address.
        InputError: it cannot be read, or an option is not possible.
    """
    options = options or SourceOptions()
    if where == "-":
        _refuse_branch(where, options)
        yield _standard_input(options, stdin)
        return
    path = Path(where)
    address = None if _exists(path) else parse_address(where)
    if address is None:
        address = _local_repository(path, options)
    rules = Rules(
        include=options.include, exclude=options.exclude, readme=options.readme, docs=options.docs, ignored=options.ignored
    )  # fmt: skip
    if address is not None:
        with open_repository(address, options.branch, rules) as repository:
            yield Source(printable(address.name), printable(address.shown), repository.commit, repository, options)
        return
    _refuse_branch(where, options)
    yield _local(path, where, options, rules)


def _refuse_branch(where: str, options: SourceOptions) -> None:
    """Refuse a branch where there can be none.

    Raises:
        InputError: a branch is named.
    """
    if options.branch:
        raise InputError(f"{printable(where)} is not a git repository, so it has no branch {options.branch!r}.", "Leave --branch out.")


def read_entry(entry: Entry, options: SourceOptions) -> Document:
    """The document of a file.

    Raises:
        Unreadable: vanished, changed, not permitted, or a pointer to a file that is elsewhere.
        InputError: no text can be read from it.
    """
    name = printable(entry.path)
    head = entry.head(_HEAD)
    if why := entry.refuse(head):
        raise Unreadable(why)
    if head.startswith(_POINTER):
        raise Unreadable("It is a Git LFS pointer: the file itself is kept elsewhere.")
    # The reason is in the first bytes; a film need not be read to find that it is none of ours.
    whole = document_format(name, head) is not None
    return read_document(entry.read() if whole else head, name, encoding=options.encoding or None)


def _exists(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _local_repository(path: Path, options: SourceOptions) -> Address | None:
    """The address of a repository on this machine; None = it is none, or a work tree that is read as a folder."""
    if not path.is_dir():
        return None
    if is_repository(path) or (options.branch and (path / ".git").exists()):
        full = Path(os.path.realpath(path))
        name = full.parent.name if full.name == ".git" else full.name.removesuffix(".git")
        return Address(str(path), name or "repository", full.as_uri(), "")
    return None


def _local(path: Path, where: str, options: SourceOptions, rules: Rules) -> Source:
    shown = printable(where)
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise NotFound(f"{shown} is a link that leads nowhere.", "Check the name.") from error
        hint = " For a repository, begin the address with https://." if re.match(r"[\w-]+(\.[\w-]+)+/", where) else ""
        raise NotFound(f"There is no file or folder {shown}.", f"Check the name and the folder.{hint}") from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}.", "Check the name and its permissions."
        ) from error
    name = printable(Path(os.path.realpath(path)).name or shown)
    if path.is_dir():
        if not os.access(path, os.R_OK | os.X_OK):
            raise InputError(f"{shown} cannot be read: Permission denied.", "Check its permissions.")
        return Source(name, shown, "", Folder(path, rules), options)
    if not path.is_file():
        raise InputError(f"{shown} is neither a file nor a folder.", "To read a pipe, give it as standard input and name it -.")
    return _OneFile(printable(path.name), shown, file_entry(Path(os.path.realpath(path)), path.name, about.st_size, _never), options)


def _standard_input(options: SourceOptions, stdin: BinaryIO | None) -> Source:
    data = (stdin or sys.stdin.buffer).read(options.max_file_bytes + 1)
    return _OneFile(STDIN, "-", Entry(STDIN, len(data), lambda most: data[:most], lambda: data, _never), options)


def _never(head: bytes) -> str:
    """What a person named is read."""
    del head
    return ""


def _sentence(error: InputError, name: str) -> str:
    """The reason that an error gives, as a sentence that does not repeat the file's name."""
    said = error.message.removeprefix(name)
    said = f"It{said}" if said != error.message else said
    needs = " " + error.next_action if "not installed" in said or "speech model" in said else ""
    return said + needs


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:,.0f} {unit}" if count % size == 0 else f"{count / size:,.1f} {unit}"
    return f"{count:,} bytes"
