"""Options that several commands share, as dataclasses: each field of such a parameter is an option of its own.

    @dataclass(frozen=True)
    class Where:
        library: Annotated[str | None, typer.Option(help="…")] = None

    @command(app)
    def show(run: …, where: Where) -> None: …

Help is laid out here without rich, whose help pages alone take longer to load than everything else together.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from fabula.cli._interrupt import OutputClosed


class Sectioned(TyperCommand):
    """A command whose help shows its options under the headings of their panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options without a heading, then each heading in order of first use."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                panel = "Arguments" if argument else getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to a program as a command; its dataclass parameters are groups of options."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, cls=Sectioned)(grouped(function))
        return function

    return add


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer sees it: every field of its dataclass parameters is a parameter."""
    hints = get_type_hints(command, include_extras=True)
    flat: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if not is_dataclass(hint) or not isinstance(hint, type):
            flat.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[name] = hint
        inner = get_type_hints(hint, include_extras=True)
        for one in fields(hint):
            default = one.default if one.default is not MISSING else inspect.Parameter.empty
            flat.append(inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=inner[one.name]))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        values = {name: group(**{one.name: given.pop(one.name) for one in fields(group)}) for name, group in groups.items()}
        try:
            command(**given, **values)
        except BrokenPipeError:  # Typer would end the process here, without a word
            raise OutputClosed from None

    del run.__wrapped__
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in flat}
    return run
