"""The options that commands share, in groups (see `_group.grouped`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fabula.runs import Limits
    from fabula.settings import Settings

MODEL = "Model"
LIMITS = "Limits"
OUTPUT = "Output"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object at the end, and nothing else on stdout.", rich_help_panel=OUTPUT)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or the beginning of it (3 characters or more).")]


@dataclass(frozen=True)
class Where:
    """Which library."""

    library: Annotated[str | None, typer.Option(help="The library's file.", metavar="FILE", show_default=False)] = None

    def settings(self) -> Settings:
        """The settings in force."""
        from fabula.settings import find_settings

        return find_settings({"library": self.library})


@dataclass(frozen=True)
class Models:
    """Which library and models."""

    model: Annotated[
        str | None,
        typer.Option(
            help="`embedded`, a name from `fabula model list`, a GGUF file, or a name at --base-url.",
            rich_help_panel=MODEL, show_default=False,
        ),
    ] = None  # fmt: skip
    small_model: Annotated[
        str | None, typer.Option(help="Another model for small decisions.", rich_help_panel=MODEL, show_default=False)
    ] = None
    base_url: Annotated[
        str | None, typer.Option(help="Address that speaks the OpenAI API.", metavar="URL", rich_help_panel=MODEL, show_default=False)
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(help="`e5`, `none`, or an address like http://127.0.0.1:8080/v1#NAME.", rich_help_panel=MODEL, show_default=False),
    ] = None
    concurrency: Annotated[int | None, typer.Option(min=1, help="Most requests in flight.", rich_help_panel=MODEL, show_default=False)] = (
        None
    )
    library: Annotated[str | None, typer.Option(help="The library's file.", metavar="FILE", rich_help_panel=MODEL, show_default=False)] = (
        None
    )

    def settings(self) -> Settings:
        """The settings in force."""
        from fabula.settings import find_settings

        names = ("model", "small_model", "base_url", "embedder", "concurrency", "library")
        return find_settings({name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class Spending:
    """What a run may spend in all, over every opening."""

    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of the whole run.", rich_help_panel=LIMITS, show_default=False)
    ] = None
    max_money: Annotated[
        float | None,
        typer.Option(min=0, help="Most money of the whole run, in the currency of the price.", rich_help_panel=LIMITS, show_default=False),
    ] = None
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Most requests of the whole run.", rich_help_panel=LIMITS, show_default=False)
    ] = None

    def limits(self) -> Limits:
        """As the engine takes them."""
        from fabula.runs import Limits

        return Limits(self.max_tokens, self.max_money, self.max_calls)


@dataclass(frozen=True)
class Result:
    """Where the book goes."""

    out: Annotated[
        list[str] | None,
        typer.Option(
            help="Write the book to a file: .md, .epub, .docx or .txt. Repeatable.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None
    keep: Annotated[
        str | None, typer.Option(help="Keep a Markdown file always current.", metavar="FILE.md", rich_help_panel=OUTPUT, show_default=False)
    ] = None
    credit: Annotated[
        bool, typer.Option("--credit", help="Exports say which model wrote and the share of machine text.", rich_help_panel=OUTPUT)
    ] = False
