"""The program's entry: whatever happens ends with a sentence, a next action and an exit code (DESIGN 8).

0 done · 1 failed, and says how to resume · 2 bad input · 3 stopped by a limit · 4 findings · 130 interrupted
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from fabula.cli._going import going
from fabula.cli._interrupt import STOPPED, Interrupted, OutputClosed, catching
from fabula.errors import FabulaError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: without the program's name; None = those of the process.
    """
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream that a test put in its place
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    going.__init__()  # type: ignore[misc]
    try:
        with catching():
            code = _run(given)
        sys.stdout.flush()
    except FabulaError as error:
        return _failed(error.as_dict(), error.exit_code, as_json)
    except (Interrupted, KeyboardInterrupt):
        return _interrupted(as_json)
    except (OutputClosed, BrokenPipeError):
        return _broken_pipe()
    except Exception as error:  # noqa: BLE001 (the last stop before the person)
        return _usage(error, as_json) if hasattr(error, "format_message") else _unexpected(error, as_json)
    return code


def _run(arguments: list[str]) -> int:
    import typer.main

    from fabula.cli._app import app

    code = typer.main.get_command(app).main(arguments, prog_name="fabula", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _failed(error: dict[str, Any], code: int, as_json: bool) -> int:
    if as_json:
        from fabula.cli._output import print_json

        there = {"run": going.run, "usage": going.usage} if going.run else {}
        print_json({**going.known, **there, "error": error})
    _tell(f"Error: {error['message']}", "red")
    for line in (error["next_action"], going.advice() if code != 2 else ""):
        if line:
            _tell(f"  → {line}")
    return code


def _interrupted(as_json: bool) -> int:
    if as_json:
        from fabula.cli._output import print_json

        error = {"code": "interrupted", "message": "Stopped by a person.", "next_action": going.advice(), "details": {}}
        print_json({**({"run": going.run, "usage": going.usage} if going.run else {}), "error": error})
    _tell(f"\nStopped. {going.advice()}".rstrip())
    return STOPPED


def _broken_pipe() -> int:
    """Whoever read our output is gone. Python would complain once more when it closes stdout, so that goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if going.run:
        with contextlib.suppress(OSError):
            _tell(f"The output was closed. {going.advice()}")
    return 1


def _usage(error: Any, as_json: bool) -> int:
    """A mistake in the command itself, as Typer found it."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "fabula"
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(error.format_message() + "\n")
        return 2
    said = {"code": "usage", "message": error.format_message(), "next_action": f"See `{path} --help`.", "details": {}}
    return _failed(said, 2, as_json)


def _unexpected(error: Exception, as_json: bool) -> int:
    where = _keep_traceback(error)
    said = {
        "code": "unexpected",
        "message": f"Something unexpected happened ({type(error).__name__}); the details are in {where}.",
        "next_action": "Please report it with that file. `fabula doctor` checks the library.",
        "details": {"traceback": str(where)},
    }
    return _failed(said, 1, as_json)


def _keep_traceback(error: Exception) -> Path | str:
    from fabula.settings import state_folder

    text = "".join(traceback.format_exception(error))
    try:
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"failure-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.write_text(text, "utf-8", "backslashreplace")
    except OSError:
        sys.stderr.write(text)
        return "the lines above"
    return path


def _tell(text: str, style: str = "") -> None:
    from fabula.cli._output import say

    first, colon, rest = text.partition(": ") if style else (text, "", "")
    if style and colon and sys.stderr.isatty():
        from fabula.cli._output import console, is_plain, printable

        if not is_plain(sys.stderr):
            from rich.text import Text

            console(sys.stderr).print(Text.assemble((first + colon, f"bold {style}"), printable(rest)), soft_wrap=True)
            return
    say(text)
