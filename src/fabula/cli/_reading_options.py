"""The options that say what is read, for what, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabula.errors import InputError

if TYPE_CHECKING:
    from fabula.read import SourceOptions, Task

SOURCE = "Source"
READING = "Reading"

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SIZE = re.compile(r"([\d.]+)\s*([kmg]?)(?:i?b|ytes)?", re.IGNORECASE)


@dataclass(frozen=True)
class SourceFlags:
    """What of a source is read."""

    branch: Annotated[
        str, typer.Option(help="Branch or tag of a repository.", metavar="NAME", rich_help_panel=SOURCE, show_default=False)
    ] = ""
    no_readme: Annotated[bool, typer.Option("--no-readme", help="Leave out files called README.", rich_help_panel=SOURCE)] = False
    no_docs: Annotated[
        bool, typer.Option("--no-docs", help="Leave out documentation: folders like docs, Markdown, changelogs.", rich_help_panel=SOURCE)
    ] = False
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="Read only files that match, as in a .gitignore. Repeatable.", metavar="GLOB", rich_help_panel=SOURCE, show_default=False
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave out what matches, as in a .gitignore. Repeatable.", metavar="GLOB", rich_help_panel=SOURCE, show_default=False
        ),
    ] = None
    ignored: Annotated[
        bool,
        typer.Option(
            "--ignored", help="Read also what .gitignore, .fabulaignore and the usual rules leave out (no secrets).", rich_help_panel=SOURCE
        ),
    ] = False
    max_file_size: Annotated[
        str, typer.Option("--max-file-size", help="Leave out larger files.", metavar="SIZE", rich_help_panel=SOURCE)
    ] = "64MiB"
    max_size: Annotated[
        str, typer.Option("--max-size", help="Read no more than this of a source.", metavar="SIZE", rich_help_panel=SOURCE)
    ] = "2GiB"
    max_files: Annotated[
        int, typer.Option("--max-files", min=1, help="Read no more files of a source than this.", rich_help_panel=SOURCE)
    ] = 100_000
    encoding: Annotated[
        str,
        typer.Option(
            help="Encoding of text files, e.g. gb18030 or cp1251; else found out.",
            metavar="NAME",
            rich_help_panel=SOURCE,
            show_default=False,
        ),
    ] = ""

    def options(self) -> SourceOptions:
        """As `fabula.read` takes them.

        Raises:
            InputError: a size or an encoding that is none.
        """
        from fabula.read import SourceOptions

        return SourceOptions(
            branch=self.branch, include=tuple(self.include or ()), exclude=tuple(self.exclude or ()), readme=not self.no_readme,
            docs=not self.no_docs, max_file_bytes=size_of(self.max_file_size, "--max-file-size"),
            max_bytes=size_of(self.max_size, "--max-size"), max_files=self.max_files, encoding=_encoding(self.encoding),
            ignored=self.ignored,
        )  # fmt: skip


@dataclass(frozen=True)
class TaskFlags:
    """For what it is read, and how."""

    task: Annotated[
        str,
        typer.Option(
            "--task", "-t", help="What to read for, in any language; @FILE reads it from a file.", metavar="TEXT", show_default=False
        ),
    ] = ""
    way: Annotated[
        str,
        typer.Option(
            help="`tree` reads all at once and merges; `chain` in order, with a rolling context; `two-pass` both; `ask` reads only "
            "what may matter for a question. Else chosen by task and length.",
            metavar="chain|tree|two-pass|ask",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = ""
    language: Annotated[
        str,
        typer.Option(
            help="ISO code of the answers' language; else that of the task, or of the text.", rich_help_panel=READING, show_default=False
        ),
    ] = ""
    chunk_tokens: Annotated[
        int | None,
        typer.Option(
            help="Most tokens of a chunk; else a quarter of the model's window.", metavar="N", rich_help_panel=READING, show_default=False
        ),
    ] = None
    as_article: Annotated[
        bool, typer.Option("--as-article", help="As the article has it: 2,000 tokens a chunk, read in order.", rich_help_panel=READING)
    ] = False
    small: Annotated[
        bool | None,
        typer.Option(
            "--small/--no-small",
            help="Short answers, for small models; else as the model's profile says.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None
    prompts: Annotated[
        str | None, typer.Option(help="A folder with your own prompts.", metavar="FOLDER", rich_help_panel=READING, show_default=False)
    ] = None
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Answer in a language that the model is marked unfit for.", rich_help_panel=READING)
    ] = False
    seed: Annotated[str | None, typer.Option(help="Seed of all that is drawn by lot.", rich_help_panel=READING, show_default=False)] = None

    def wanted(self) -> Task:
        """The task, checked.

        Raises:
            InputError, NotFound: says which part is wrong.
        """
        from fabula.cli._texts import text_of
        from fabula.read import Task
        from fabula.runs import own_prompts

        words = text_of(self.task, "--task")
        own = own_prompts(Path(self.prompts).expanduser(), self.language or _language_of(words)) if self.prompts else {}
        return Task(words, self.way.strip(), self.language, self.chunk_tokens, self.as_article, self.small, prompts=own).checked()


def _language_of(task: str) -> str:
    from fabula.text import detect_language

    return (detect_language(task) if task else None) or "en"


def size_of(value: str, option: str) -> int:
    """Bytes of a size like `500kB`, `64MiB` or `2G` (powers of 1,024). Raises InputError."""
    match = _SIZE.fullmatch(value.strip())
    try:
        size = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    except ValueError:
        size = 0
    if size < 1:
        raise InputError(f"{value!r} is no size (for {option}).", "Write it like 500k, 64MiB or 2GiB.")
    return size


def _encoding(name: str) -> str:
    import codecs

    try:
        return codecs.lookup(name).name if name else ""
    except LookupError:
        raise InputError(f"There is no encoding called {name!r}.", "Use a name like utf-8, gb18030, big5 or cp1251.") from None
