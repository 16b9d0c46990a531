"""`fabula backup` and `fabula doctor`: keeping a library safe and sound."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Models, Where


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(backup)
    command(app)(doctor)


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file.")],
    where: Where,
    as_json: Json = False,
) -> None:
    """Copy the library to a file, also while it is in use."""
    from fabula.cli._output import print_json, show, size
    from fabula.opening import open_library

    target = Path(file).expanduser()
    settings = where.settings()
    must_exist(settings.library)
    with closing(open_library(settings)) as store:
        count = store.backup(target)
        place = store.place
    if as_json:
        print_json({"file": str(target), "bytes": count, "library": place})
        return
    show(f"{place} was copied to {target} ({size(count)}). Use it with --library {target}.")


def must_exist(library: str) -> None:
    """Raises NotFound where there is no library yet, instead of making one."""
    from fabula.errors import NotFound

    if library != ":memory:" and not Path(library).exists():
        raise NotFound(f"There is no library at {library} yet.", "Name another with --library, or begin one with `fabula write`.")


def doctor(
    models: Models,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired, after a copy was made.")] = False,
    as_json: Json = False,
) -> None:
    """Check settings, library, model, embedder and disk; say what is wrong and what to do."""
    from fabula.cli._examination import examine
    from fabula.cli._output import print_json, show
    from fabula.errors import FindingsFound

    found = examine(models, repair=repair)
    left = [one for one in found if one.is_left]
    if as_json:
        print_json({"findings": [one.as_dict() for one in found], "left": len(left)})
    else:
        for one in found:
            show(f"{one.sign} {one.what}", one.style)
            for line in (one.repaired, one.action):
                if line:
                    show(f"    → {line}")
    if left and as_json:
        raise typer.Exit(FindingsFound.exit_code)
    if left:
        raise FindingsFound(
            f"{len(left)} finding{'s' if len(left) != 1 else ''} left.",
            "Follow the arrows above." if repair else "Follow the arrows above; `fabula doctor --repair` mends what can be mended.",
        )
    if not as_json:
        show("Everything is in order.", "green")
