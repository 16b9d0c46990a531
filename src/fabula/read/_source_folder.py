"""A folder as a tree of files: links are never followed, only plain files are opened, and order does not depend on the system."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fabula.read._ignore import GIT_RULES, MOST_RULE_BYTES, Rules
from fabula.read._source_entry import Entry, Unreadable, files_word, os_reason

_MOST_COUNTED = 2000
"""Files of a folder that is skipped whole that are counted."""
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_KINDS = [(stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device")]

Skip = Callable[[str, str, int], None]


class _Open(NamedTuple):
    """A folder that is being walked."""

    path: str
    entries: Iterator[os.DirEntry[str]]
    names: frozenset[str]
    identity: tuple[int, int]


class Folder:
    """A folder on this machine."""

    def __init__(self, root: Path, rules: Rules) -> None:
        self._root, self._rules = root, rules
        self._base = f"{str(root).rstrip('/')}/"

    def entries(self, skip: Skip) -> Iterator[Entry]:
        """The files that the rules let through, in the order of their paths' parts; `skip` is told of the others."""
        self._rules.begin()
        self._above()
        root = self._open("", skip)
        stack = [root] if root else []
        while stack:
            here = stack[-1]
            entry = next(here.entries, None)
            if entry is None:
                stack.pop()
                continue
            path = here.path + entry.name
            try:
                if entry.is_symlink():
                    skip(path, self._link(path), 0)
                elif entry.is_dir(follow_symlinks=False):
                    inner = self._enter(path, stack, skip)
                    if inner:
                        stack.append(inner)
                else:
                    found = self._file(path, entry, skip)
                    if found:
                        yield found
            except OSError as error:
                skip(path, os_reason(error), 0)

    def _open(self, path: str, skip: Skip, listed: list[os.DirEntry[str]] | None = None) -> _Open | None:
        """Begin to walk a folder; `path` ends with a slash, or is empty for the root."""
        try:
            entries = listed if listed is not None else self._listed(path)
            about = os.stat(self._full(path))  # noqa: PTH116
        except OSError as error:
            skip(path or "./", os_reason(error), 0)
            return None
        names = frozenset(entry.name for entry in entries)
        for file, why in self._rules.enter(path, lambda name: self._rule_text(path + name) if name in names else "", git=True):
            skip(file, why, 0)
        return _Open(path, iter(entries), names, (about.st_dev, about.st_ino))

    def _listed(self, path: str) -> list[os.DirEntry[str]]:
        with os.scandir(self._full(path)) as found:
            return sorted(found, key=lambda entry: entry.name)

    def _enter(self, path: str, stack: list[_Open], skip: Skip) -> _Open | None:
        try:
            listed = self._listed(path)
        except OSError as error:
            skip(f"{path}/", os_reason(error), 0)
            return None
        why = self._rules.folder(path, stack[-1].names, {entry.name for entry in listed})
        if why:
            count, more = self._count(path)
            skip(f"{path}/", f"{why[:-1]} ({files_word(count, more)}).", 0)
            return None
        inner = self._open(f"{path}/", skip, listed)
        if inner and inner.identity != (0, 0) and any(above.identity == inner.identity for above in stack):
            skip(f"{path}/", "It is a loop: the folder is one of those that hold it.", 0)
            return None
        return inner

    def _file(self, path: str, entry: os.DirEntry[str], skip: Skip) -> Entry | None:
        about = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(about.st_mode):
            what = next((name for test, name in _KINDS if test(about.st_mode)), "no plain file")
            skip(path, f"It is {what}.", 0)
            return None
        why = self._rules.file(path)
        if why:
            skip(path, why, about.st_size)
            return None
        return file_entry(self._full(path), path, about.st_size, lambda head: self._rules.content(path, head))

    def _link(self, path: str) -> str:
        """Why a link is not followed."""
        full = self._full(path)
        try:
            real = Path(os.path.realpath(full, strict=True))
        except (OSError, RuntimeError):
            return "It is a link that leads nowhere."
        root = Path(os.path.realpath(self._root))
        return (
            "It is a link to what has its own place in the folder."
            if real.is_relative_to(root)
            else "It is a link that leads out of the folder."
        )

    def _count(self, path: str) -> tuple[int, bool]:
        """Files below a folder, up to a number, and whether there are more."""
        count = 0
        folders = [self._full(path)]
        while folders:
            try:
                with os.scandir(folders.pop()) as found:
                    for entry in found:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            count += 1
                        if count + len(folders) > _MOST_COUNTED:
                            return _MOST_COUNTED, True
            except OSError:
                continue  # what cannot be listed cannot be counted; the folder is skipped whole either way
        return count, False

    def _full(self, path: str) -> str:
        """The path for the system, joined as text: a thousand folders deep a Path takes a millisecond."""
        return self._base + path

    def _rule_text(self, path: str) -> str:
        """The text of an ignore file; empty where there is none that can be read."""
        try:
            data = read_file(self._full(path), MOST_RULE_BYTES)
        except Unreadable:
            return ""
        return data.decode("utf_8", "replace")

    def _above(self) -> None:
        """Take up the `.gitignore` files above the root, where it lies in a git work tree."""
        here = Path(os.path.realpath(self._root))
        top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
        if top is None:
            return
        chain = [top, *reversed([folder for folder in here.parents if folder.is_relative_to(top) and folder != top])]
        for folder in chain:
            lead = "" if folder == here else f"{here.relative_to(folder).as_posix()}/"
            rules = [folder / ".git" / "info" / "exclude"] if folder == top else []
            for file in [*rules, folder / GIT_RULES] if lead else rules:
                try:
                    text = read_file(file, MOST_RULE_BYTES).decode("utf_8", "replace")
                except Unreadable:
                    continue
                self._rules.above(lead, text, file.relative_to(top).as_posix())


def file_entry(full: str | Path, path: str, size: int, refuse: Callable[[bytes], str]) -> Entry:
    """A file of this machine as an entry."""
    return Entry(path, size, lambda most: read_file(full, most), lambda: read_file(full, None), refuse)


def read_file(path: str | Path, most: int | None) -> bytes:
    """The first bytes of a plain file, or, with `most` None, all of it, which must not change meanwhile.

    Raises:
        Unreadable: vanished, no plain file, not permitted, or changed while it was read.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise Unreadable(os_reason(error)) from error
    try:
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise Unreadable("It is no plain file any more.")
            if most is not None:
                return file.read(most)
            data = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise Unreadable(os_reason(error)) from error
    if len(data) != before.st_size or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise Unreadable("It changed while it was read; read again when it is at rest.")
    return data
