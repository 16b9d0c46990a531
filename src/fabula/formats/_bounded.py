"""Converting a file in a process of its own, so that a hostile one can take neither the memory nor the time of this one.

Libraries in C read PDF and HTML fast, and a file made for it can send one of them into a crash, an endless loop or gigabytes.
The child ends with 60 seconds of processor time, or with a gigabyte and a half of memory; what it had read by then is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from fabula.errors import InputError

MOST_SECONDS = 60
"""Processor time of one file."""
MOST_WAITING = 300
"""Seconds on the clock, for a busy machine."""
MOST_BYTES = 1536 * 2**20
"""Memory of the child."""
MOST_CHARACTERS = 50_000_000
"""Text of one document."""
_CHILD = Path(__file__).with_name("_converting.py")


class Part(NamedTuple):
    """A page of a PDF, or the whole of another file."""

    text: str
    pictures: int
    damaged: bool


class Converted(NamedTuple):
    """What the child read."""

    parts: list[Part]
    pages: int
    """Pages that there are, read or not; 0 = the format has none."""
    ended: str
    """Empty: it came to the end. Else why not: `time`, `memory`, `length`, `pages`, `crash`, `password`, `damaged`."""


def convert_bounded(task: str, data: bytes) -> Converted:
    """The text of a file.

    Args:
        task: `pdf`, `html` (UTF-8) or `rtf`.
        data: the file's bytes.

    Raises:
        InputError: no process can be started.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(data)
        given.seek(0)
        command = [sys.executable, "-P", str(_CHILD), task, *map(str, (MOST_SECONDS, MOST_BYTES, MOST_CHARACTERS))]
        try:
            child = subprocess.Popen(command, stdin=given, stdout=said, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONUTF8": "1"})
        except OSError as error:
            raise InputError(f"No process can be started to read the file: {error.strerror}.", "Free some memory.") from error
        late = False
        try:
            child.wait(MOST_WAITING)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            child.kill()
            child.wait()
        said.seek(0)
        return _gather(said, "time" if late else _why(child.returncode))


def _why(code: int) -> str:
    """Why the child ended, where it did not say."""
    if os.name == "posix":
        import signal

        if -code in {signal.SIGXCPU, signal.SIGKILL}:
            return "time"
        if -code == signal.SIGABRT:
            return "memory"
    return "crash"


def _gather(lines: Any, otherwise: str) -> Converted:
    parts: list[Part] = []
    pages = 0
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            break  # the child ended while it wrote
        if "ended" in record:
            return Converted(parts, pages, record["ended"])
        if "pages" in record:
            pages = record["pages"]
        else:
            parts.append(Part(record["text"], record["pictures"], record.get("damaged", False)))
    return Converted(parts, pages, otherwise)
