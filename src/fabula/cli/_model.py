"""`fabula model`: which models there are, which one to use, and whether it works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, Models

if TYPE_CHECKING:
    from fabula.models import ModelInfo

app = typer.Typer(
    name="model", no_args_is_help=True, rich_markup_mode=None, help="Models: which fit this machine, which to use, whether they work."
)


@command(app, "list")
def list_models(as_json: Json = False) -> None:
    """List the models that come with Fabula: what fits this machine, what is here already, and their licences."""
    from dataclasses import asdict

    from fabula.cli._output import print_json, say, show, size, table
    from fabula.models import available
    from fabula.settings import find_settings

    settings, infos = find_settings(), available()
    if as_json:
        print_json({"models": [{**asdict(info), "chosen": is_chosen(info, settings.model, settings.embedder)} for info in infos]})
        return
    rows = [
        [
            "*" if is_chosen(info, settings.model, settings.embedder) else "", info.name, info.kind, size(info.bytes), size(info.memory),
            "yes" if info.fits else "no", "yes" if info.here else "no", info.licence,
        ]
        for info in infos
    ]  # fmt: skip
    table(["", "name", "kind", "download", "memory", "fits", "here", "licence"], rows, flexible=1)
    for info in infos:
        if info.note:
            show(f"{info.name}: {info.note}", "dim")
    if settings.base_url or not any(is_chosen(info, settings.model, settings.embedder) for info in infos if info.kind == "chat"):
        say(f"In use: {settings.model}{f' at {settings.base_url}' if settings.base_url else ''}.")


def is_chosen(info: ModelInfo, model: str, embedder: str) -> bool:
    """Whether the settings mean this entry."""
    if info.kind == "embedder":
        return embedder == info.name or (embedder == "e5" and info.default)
    return model == info.name or (model == "embedded" and info.default)


@command(app)
def use(
    choice: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.gguf|URL",
            help="A model of the list, an own file, hub:owner/repository/file.gguf, a name at --base-url, or an address with --name.",
        ),
    ],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The model's name at the address.", show_default=False)] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Address that speaks the OpenAI API.", show_default=False)
    ] = None,
    small_model: Annotated[
        str | None, typer.Option("--small-model", metavar="NAME", help="Another model for small decisions.", show_default=False)
    ] = None,
    embedder: Annotated[
        str | None, typer.Option("--embedder", metavar="NAME", help="`e5`, `none`, or an address.", show_default=False)
    ] = None,
    ask_key: Annotated[bool, typer.Option("--ask-key", help="Ask for the key and keep it in the system's keyring.")] = False,
    as_json: Json = False,
) -> None:
    """Use a model from now on: writes `fabula.toml` in your config folder, never a key."""
    from fabula.cli._output import print_json, show
    from fabula.errors import InputError
    from fabula.settings import FILE, change_file, config_folder, find_settings

    if choice.startswith(("http://", "https://")):
        if name is None:
            raise InputError("An address alone names no model.", f"Say which one: fabula model use {choice} --name NAME.")
        choice, base_url = name, choice
    changes: dict[str, str | None] = {"model": settled(choice, base_url), "base_url": base_url, "small_model": small_model}
    if embedder is not None:
        changes["embedder"] = embedder
    if ask_key:
        _keep_key(base_url)
    path = config_folder() / FILE
    change_file(path, changes)
    settings = find_settings()
    if as_json:
        print_json({"file": str(path), "model": changes["model"], "base_url": base_url, "in_use": settings.model})
        return
    where = base_url or ("https://api.openai.com/v1" if _is_remote(choice) else "")
    show(f"From now on: {changes['model']}{f' at {where}' if where else ', on this machine'}. Written to {path}.")
    for setting in ("model", "base_url"):
        source = settings.sources.get(setting, str(path))
        if source != str(path):
            show(f"Here {source} says otherwise: {setting} = {getattr(settings, setting)}.", "yellow")
    show("See whether it works: `fabula model check`.", "dim")


def settled(choice: str, base_url: str | None) -> str:
    """The model's name as a settings file keeps it: a file by its whole path. Raises NotFound, InputError."""
    from fabula.models import find_weights

    if base_url is not None or _is_remote(choice):
        return choice
    weights = find_weights(choice)
    return str(weights.path) if weights.path is not None else choice


def _is_remote(choice: str) -> bool:
    """A name that means nothing on this machine is one at an address."""
    from fabula.models import available

    known = {info.name for info in available()} | {"embedded", "default"}
    local = choice.lower() in known or choice.startswith(("hub:", "~", ".", "/")) or choice.lower().endswith(".gguf")
    return not local and choice.split(":")[0] not in ("scripted", "misbehaving")


def _keep_key(base_url: str | None) -> None:
    import getpass

    from fabula.cli._output import say
    from fabula.errors import InputError
    from fabula.models import store_key

    key = getpass.getpass("Key (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise InputError("No key was given.", "Run the command again, or set FABULA_API_KEY.")
    store_key(base_url or "https://api.openai.com/v1", key.strip())
    say("The key is in the system's keyring.")


@command(app)
def check(models: Models, as_json: Json = False) -> None:
    """Send the model one plain, one structured and one streamed request, and say in plain words what works."""
    from fabula.cli._interrupt import run_async, signals
    from fabula.cli._output import print_json, show
    from fabula.cli._paper import sheet
    from fabula.cli._view import View
    from fabula.errors import FindingsFound
    from fabula.models import check_model, open_model
    from fabula.opening import model_choice

    view = View(sheet(story=not as_json))
    signals.before_exit = view.paper.close

    async def ask() -> Any:
        model = open_model(model_choice(models.settings()), progress=view.fetching)
        try:
            view.paper.status(f"asking {model.name}")
            return await check_model(model)
        finally:
            view.paper.close()
            await model.close()

    report = run_async(ask)
    if as_json:
        print_json(report.as_dict())
        raise typer.Exit(0 if report.works else FindingsFound.exit_code)
    for line in report.lines():
        show(line)
    if not report.works:
        raise FindingsFound(f"The model {report.model} does not work as it should.", "Follow the arrows above, or choose another model.")
