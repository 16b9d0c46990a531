"""Asking a person: a line, a yes or no, a text in the editor. Works through pipes too: then a line is read for every question."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from fabula.cli._interrupt import signals
from fabula.errors import InputError, NotPossible


class NoMoreInput(Exception):
    """Standard input has ended."""


def ask_line(prompt: str) -> str:
    """One line, without its end.

    Raises:
        NoMoreInput: there is none.
        Interrupted: Ctrl-C.
    """
    with signals.awaiting_input():
        if sys.stdin.isatty() and sys.stdout.isatty():
            import readline  # noqa: F401 (gives `input` its editing)

            try:
                return input(prompt)
            except EOFError:
                raise NoMoreInput from None
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        sys.stdout.write("\n")
        if not line:
            raise NoMoreInput
        return line.rstrip("\r\n")


def ask_yes(question: str, *, default: bool) -> bool:
    """Yes or no; the default counts for an empty line."""
    answer = ask_line(f"{question} [{'Y/n' if default else 'y/N'}] ").strip().lower()
    return default if not answer else answer.startswith(("y", "j", "д", "是"))


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if the person agrees. Raises NotPossible where nobody can be asked, or the person does not agree."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotPossible("This asks for consent, and nobody is there to give it.", "Give --yes if you mean it.")
    if not ask_yes(question, default=False):
        raise NotPossible("Nothing was changed, as you wished.", "Run the command again to do it after all.")


def edit_text(text: str, *, name: str = "text", hint: str = "") -> str:
    """The text as a person leaves it: in $VISUAL or $EDITOR, or typed line by line where there is none.

    Args:
        text: what is there.
        name: for the temporary file, so that an editor shows what it is.
        hint: said before lines are typed.

    Raises:
        InputError: the editor cannot be started or failed; the text stays as it was.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return type_text(text, hint)
    with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
        path = Path(folder) / f"{name}.md"
        path.write_text(text + "\n" if text and not text.endswith("\n") else text, "utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise InputError(f"The editor {editor!r} cannot be started: {error}.", "Set EDITOR to an editor that is there.") from error
        if done.returncode != 0:
            raise InputError(f"The editor ended with status {done.returncode}; nothing was changed.", "Try again.")
        from fabula.formats import decode

        return decode(path.read_bytes(), "What the editor saved").rstrip("\n")


def type_text(text: str, hint: str = "") -> str:
    """A text typed line by line, ended by a line with a single dot; an empty first line keeps what is there."""
    from fabula.cli._output import show

    if text:
        show(text, "dim")
    show(
        f"{hint}Type the new text; end with a line that holds only a dot." + (" An empty first line keeps it as it is." if text else ""),
        "dim",
    )
    lines: list[str] = []
    while True:
        try:
            line = ask_line("")
        except NoMoreInput:
            break
        if line.strip() == ".":
            break
        if not lines and not line.strip() and text:
            return text
        lines.append(line)
    return "\n".join(lines).strip()
