"""Notice a log (`-wal`) that does not belong to the library beside which it lies.

SQLite takes the pages of any well-formed log into the file: a backup put in the place of a library whose log was left behind
by a kill would come out as a mixture of both. Every transaction writes the page of the `counter`, which holds the library's
own number and the position. So a log belongs to a file if it names the same library and goes on from where the file stands.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path

from fabula.errors import StoreError
from fabula.store._carve import Pages, cells, frames
from fabula.store._database import Database
from fabula.store._schema import APPLICATION

_TRIES, _PAUSE = 5, 0.05
"""Another process may be writing while we look, so only what is seen twice counts."""


def foreign_log(path: Path) -> bool:
    """Whether the log beside a library was written for another one, or for another state of it. Touches neither."""
    log = path.with_name(path.name + "-wal")
    if not log.exists() or log.stat().st_size <= 32:
        return False
    before = None
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        seen = _look(path)
        if _fit(seen):
            return False
        if seen == before:
            return True
        before = seen
    return False


Seen = tuple[dict[str, int], list[dict[str, int]]]
"""The counter's rows in the file, and in the log from its first transaction to its last."""


def _look(path: Path) -> Seen:
    held, page = _in_file(path)
    with ExitStack() as stack:
        pages = Pages(path, stack)
        if not page:
            return held, []
        found = [start for number, start in frames(pages.log) if number == page]
        return held, [_rows(pages, pages.log[start : start + pages.size]) for start in (*found[:1], *found[-1:])]


def _in_file(path: Path) -> tuple[dict[str, int], int]:
    try:
        with closing(Database(f"{path.resolve().as_uri()}?immutable=1", str(path), 1.0, uri=True)) as database:
            if database.one("PRAGMA application_id") != (APPLICATION,):
                return {}, 0
            found = database.one("SELECT rootpage FROM sqlite_master WHERE name = 'counter'")
            return dict(database.all("SELECT name, value FROM counter")), int(found[0]) if found else 0
    except StoreError:  # what is damaged is found when the library is opened
        return {}, 0


def _rows(pages: Pages, page: bytes) -> dict[str, int]:
    rows = [values for _, values in cells(pages, page) if len(values) == 2]
    return {name: value for name, value in rows if isinstance(name, str) and isinstance(value, int)}


def _fit(seen: Seen) -> bool:
    held, logged = seen
    if not held or not logged:
        return True
    first, last = logged
    if not first.keys() >= {"library", "position"} or not last.keys() >= {"library", "position"}:
        return True  # erasing builds the file anew, and pages change their places
    if {first["library"], last["library"]} != {held.get("library")}:
        return False
    return first["position"] - 1 <= held.get("position", 0) <= last["position"]
