"""The commands put together. The modules of the commands load nothing heavy; what a command needs, it imports when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from fabula.cli import _ask, _care, _memory, _model, _play, _read, _runs, _write

app = typer.Typer(
    name="fabula", no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _version(asked: bool) -> None:
    if asked:
        from fabula import __version__

        typer.echo(f"fabula {__version__}")
        raise typer.Exit


@app.callback()
def fabula(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and end.")] = False,
) -> None:
    """Stories that remember: novels of any length, interactive fiction, and reading of any length, on any model, every step kept."""


_write.add_to(app)
_play.add_to(app)
_read.add_to(app)
_ask.add_to(app)
app.add_typer(_runs.app, name="runs")
app.add_typer(_memory.app, name="memory")
app.add_typer(_model.app, name="model")
_care.add_to(app)
