"""Settings: flags over environment over `fabula.toml` over defaults (DESIGN 8).

    setting        environment          default
    library        FABULA_LIBRARY       fabula.db in the user's data folder
    model          FABULA_MODEL         embedded
    small_model    FABULA_SMALL_MODEL   the model itself
    base_url       FABULA_BASE_URL      none: the embedded model
    embedder       FABULA_EMBEDDER      e5
    (key)          FABULA_API_KEY       the system's keyring; never a file
    profile        (table in the file)  what `profiles.yaml` says of the model
    concurrency    (file and flag)      what the profile says

Two files are read, the working folder's and then the one in the user's config folder; what the first says wins. A relative path in
a file is meant from that file's folder. Nothing here opens a library or asks a model.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fabula.errors import InputError

FILE = "fabula.toml"
_VARIABLES = {
    "library": "FABULA_LIBRARY",
    "model": "FABULA_MODEL",
    "small_model": "FABULA_SMALL_MODEL",
    "base_url": "FABULA_BASE_URL",
    "embedder": "FABULA_EMBEDDER",
}
_KNOWN = (*_VARIABLES, "concurrency", "profile")
_KEYS = ("api_key", "key", "token", "password")


@dataclass(frozen=True)
class Settings:
    """What to use. Holds no key: the key is found when a model is opened, and is never printed."""

    library: str
    """Path of the library's file, or `:memory:`."""
    model: str = "embedded"
    """`embedded`, `scripted`, the name or path of local weights, or a name at `base_url`."""
    small_model: str = ""
    """For small decisions, by the same names; empty = the model itself."""
    base_url: str = ""
    """Address that speaks the OpenAI API; empty = the embedded model."""
    embedder: str = "e5"
    """`e5`, `none`, or an address."""
    concurrency: int | None = None
    """Most requests in flight; None = what the profile says."""
    profile: Mapping[str, Any] = field(default_factory=dict)
    """The person's own word on the model: fields of `fabula.models.Profile`."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Setting → where it came from, for `fabula doctor`."""
    files: tuple[str, ...] = ()
    """The files that were read."""


def config_folder() -> Path:
    """The user's config folder for Fabula. Not created here."""
    import platformdirs

    return Path(platformdirs.user_config_dir("fabula", appauthor=False))


def data_folder() -> Path:
    """The user's data folder for Fabula. Not created here."""
    import platformdirs

    return Path(platformdirs.user_data_dir("fabula", appauthor=False))


def state_folder() -> Path:
    """Where logs of failures go. Not created here."""
    import platformdirs

    return Path(platformdirs.user_state_dir("fabula", appauthor=False))


def find_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    config: Path | None = None,
) -> Settings:
    """The settings in force.

    Args:
        flags: settings from the command line; None and "" count as not given.
        environment: default `os.environ`.
        folder: the working folder.
        config: the user's config folder.

    Raises:
        InputError: a file is not TOML, or has an unknown key, a bad value or a secret; it names file and key.
    """
    environment = os.environ if environment is None else environment
    folder, config = folder or Path.cwd(), config or config_folder()
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    files: list[str] = []
    for path in (config / FILE, folder / FILE):
        told = read_file(path)
        if told is not None and str(path) not in files:
            files.insert(0, str(path))
            values |= told
            sources |= dict.fromkeys(told, str(path))
    for name, variable in _VARIABLES.items():
        if environment.get(variable):
            values[name], sources[name] = environment[variable].strip(), variable
    for name, value in (flags or {}).items():
        if value is not None and value != "":
            values[name], sources[name] = value, f"--{name.replace('_', '-')}"
    for name, value in values.items():
        _check(name, value, sources[name])
    values.setdefault("library", str(data_folder() / "fabula.db"))
    if values["library"] != ":memory:":
        values["library"] = str(Path(values["library"]).expanduser())
    _guard_key(values, sources, environment, str(folder / FILE))
    return Settings(**values, sources=sources, files=tuple(files))


def read_file(path: Path) -> dict[str, Any] | None:
    """What a settings file says, checked; None = there is no such file.

    Raises:
        InputError: it cannot be read, is not TOML, or has an unknown key, a bad value or a secret.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError(f"{path} cannot be read: {reason}.", "Correct the file or move it away.") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.", 'Write one setting a line, e.g. model = "embedded".') from error
    for name, value in values.items():
        if name in _KEYS:
            raise InputError(
                f"{path} holds a secret ({name}); Fabula reads none from a file.",
                "Take it out; set FABULA_API_KEY, or keep it in the keyring with `fabula model use NAME --base-url URL --ask-key`.",
            )
        _check(name, value, str(path))
    library = values.get("library")
    if library and library != ":memory:":
        values["library"] = str(path.parent / Path(library).expanduser())
    return values


def _check(name: str, value: Any, where: str) -> None:
    if name not in _KNOWN:
        raise InputError(f"{where} has an unknown setting {name!r}.", f"The settings are: {', '.join(_KNOWN)}.")
    if name == "profile":
        from fabula.models import find_profile

        if not isinstance(value, dict):
            raise InputError(f"{where}: `profile` is a table, not {value!r}.", "Write [profile] and its fields below it.")
        try:
            find_profile("any", None, value)
        except InputError as error:
            raise InputError(f"{where}: {error.message}", error.next_action) from None
    elif name == "concurrency":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{where}: `concurrency` is {value!r}; it is a number of requests, at least 1.")
    elif not isinstance(value, str):
        raise InputError(f"{where}: `{name}` is {value!r}; it must be a text in quotes.")
    elif name == "base_url" and value and urlsplit(value).scheme not in ("http", "https"):
        raise InputError(f"{where}: `base_url` is {value!r}, which is no http address.", "Write it like http://127.0.0.1:8080/v1.")
    elif name == "library" and "://" in value:
        raise InputError(f"{where}: `library` is {value!r}; this version keeps libraries in files.", "Give the path of a file.")


def _guard_key(values: Mapping[str, Any], sources: Mapping[str, str], environment: Mapping[str, str], own: str) -> None:
    """A folder that came from elsewhere must not be able to send the person's key to an address of its choice."""
    address = values.get("base_url", "")
    if address and environment.get("FABULA_API_KEY") and sources.get("base_url") == own and not is_loopback(address):
        raise InputError(
            f"{own} names the address {address}, and FABULA_API_KEY is set: a key is not sent where a working folder says.",
            f"If you trust the address, set FABULA_BASE_URL={address} or pass --base-url.",
        )


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(address).hostname or ""
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def change_file(path: Path, changes: Mapping[str, str | None]) -> None:
    """Set or remove (None) settings in a file; what else it holds stays, comments too.

    Raises:
        InputError: the file cannot be read or written, or is written in a way that cannot be changed line by line.
    """
    read_file(path)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    end = next((n for n, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    top, tables = lines[:end], lines[end:]
    for name, value in changes.items():
        own = re.compile(rf"\s*(?:{name}|\"{name}\")\s*=")
        top = [line for line in top if not own.match(line)]
        if value is not None:
            top.append(f"{name} = {_quoted(value)}")
    if tables and top and top[-1].strip():
        top.append("")
    text = "\n".join([*top, *tables]) + "\n"
    try:
        wanted = {**(tomllib.loads(path.read_text("utf-8")) if path.exists() else {}), **changes}
        if tomllib.loads(text) != {name: value for name, value in wanted.items() if value is not None}:
            raise ValueError
    except ValueError:
        raise InputError(f"{path} is written in a way that cannot be changed here.", "Change it with an editor.") from None
    _write(path, text)


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, "utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.", "Check the folder's permissions and the disk.") from error


def _quoted(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
