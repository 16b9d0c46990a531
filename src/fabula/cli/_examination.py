"""What `fabula doctor` looks at, one function a part. Each yields what it saw; nothing is asked of a model and nothing is fetched."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import FabulaError, LibraryDamaged

if TYPE_CHECKING:
    from fabula.cli._options import Models
    from fabula.settings import Settings

_LITTLE = 1_000_000_000
"""Bytes of free disk below which a person is warned."""


@dataclass(frozen=True)
class Seen:
    """One thing that was looked at."""

    part: str
    what: str
    """A sentence."""
    bad: bool = False
    """It keeps something from working."""
    action: str = ""
    repaired: str = ""
    """What was done about it."""
    code: str = ""

    @property
    def is_left(self) -> bool:
        """A finding that remains."""
        return self.bad and not self.repaired

    @property
    def sign(self) -> str:
        """At the beginning of the line."""
        return "✗" if self.is_left else "✓" if not self.action or self.repaired else "!"

    @property
    def style(self) -> str:
        """On a terminal."""
        return {"✗": "red", "✓": "", "!": "yellow"}[self.sign]

    def as_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**asdict(self), "left": self.is_left}


def examine(models: Models, *, repair: bool) -> list[Seen]:
    """Everything, in order; a part that cannot go on is a finding, never the end."""
    found = [Seen("fabula", f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}.")]
    try:
        settings = models.settings()
    except FabulaError as error:
        return [*found, _failed("settings", error)]
    for part, look in (("settings", _settings), ("library", _library), ("model", _model), ("embedder", _embedder), ("disk", _disk)):
        try:
            found += look(settings, repair)
        except FabulaError as error:
            found.append(_failed(part, error))
    return found


def _failed(part: str, error: FabulaError) -> Seen:
    return Seen(part, error.message, bad=True, action=error.next_action, code=error.code)


def _settings(settings: Settings, _repair: bool) -> Iterator[Seen]:
    files = ", ".join(settings.files) or "no fabula.toml, so defaults"
    yield Seen("settings", f"Settings: {files}.")
    for name, source in sorted(settings.sources.items()):
        if source not in settings.files:
            yield Seen("settings", f"{name} = {getattr(settings, name)} (from {source}).")


def _library(settings: Settings, repair: bool) -> Iterator[Seen]:
    from fabula.cli._output import number, size
    from fabula.store import RunRow, open_store, salvage

    path = Path(settings.library)
    if settings.library == ":memory:" or not path.exists():
        yield Seen("library", f"Library: {settings.library} is not there yet; the first run makes it.")
        return
    try:
        store = open_store(settings.library)
    except LibraryDamaged as error:
        if not repair:
            yield Seen("library", error.message, bad=True, action="`fabula doctor --repair` saves what can be read.", code=error.code)
            return
        for finding in salvage(path):
            yield Seen("library", finding.message, bad=finding.serious, repaired=finding.repaired, code=finding.code)
        store = open_store(settings.library)
    with closing(store):
        findings = store.repair() if repair else store.check()
        for one in findings:
            yield Seen(
                "library", one.message, bad=one.serious, repaired=one.repaired, code=one.code, action=_mend(one.serious, one.repaired)
            )
        runs = store.rows(RunRow)
        held = [(row.id, holder) for row in runs if (holder := store.holder(row.id)) is not None]
        words = "sound" if not findings else "mended" if repair else "not sound"
        yield Seen("library", f"Library: {path}, {size(path.stat().st_size)}, {number(len(runs))} runs, {words}.")
        for run, holder in held:
            yield Seen("library", f"Run {run} is being worked on by process {holder.process}.")


def _mend(serious: bool, repaired: str) -> str:
    return "" if repaired else "`fabula doctor --repair` mends it." if serious else "Harmless; `fabula doctor --repair` tidies it."


def _model(settings: Settings, _repair: bool) -> Iterator[Seen]:
    from fabula.cli._output import size
    from fabula.models import find_key, find_weights, is_fetched, open_model
    from fabula.opening import model_choice

    if settings.model == "rules":
        yield Seen("model", "Model: `rules`, which writes no prose.", action="Choose another with `fabula model use` to write.")
        return
    model = open_model(model_choice(settings))
    if settings.base_url:
        key = "with a key" if find_key(settings.base_url) else "without a key"
        yield Seen("model", f"Model: {model.name} at {settings.base_url}, {key}. `fabula model check` asks it.")
    elif model.name in ("scripted", "misbehaving"):
        yield Seen("model", f"Model: {model.name}, for tests: it writes no story.")
    elif model.profile.structured != "grammar":
        yield Seen("model", f"Model: {model.name} at OpenAI's address. `fabula model check` asks it.")
    else:
        weights = find_weights(settings.model)
        if is_fetched(weights):
            yield Seen("model", f"Model: {weights.name}, on this machine.")
        else:
            yield Seen("model", f"Model: {weights.name}; its {size(weights.bytes or 0)} are fetched at the first use.")
        yield from _memory(weights.name)


def _memory(name: str) -> Iterator[Seen]:
    from fabula.cli._output import size
    from fabula.models import available

    info = next((info for info in available() if info.name == name), None)
    if info is not None and not info.fits:
        yield Seen(
            "model",
            f"{name} needs {size(info.memory)} of memory, more than this machine has.",
            bad=True,
            action="Choose a smaller one: `fabula model list`.",
        )


def _embedder(settings: Settings, _repair: bool) -> Iterator[Seen]:
    from fabula.models import find_weights, is_fetched, open_embedder
    from fabula.opening import embedder_choice

    embedder = open_embedder(embedder_choice(settings))
    if embedder is None:
        yield Seen("embedder", "Embedder: none; memory is searched by words.")
    elif settings.embedder in ("e5", "multilingual-e5-small"):
        here = is_fetched(find_weights("multilingual-e5-small"))
        yield Seen("embedder", f"Embedder: {embedder.id}{'' if here else '; 72 MB are fetched at the first use'}.")
    else:
        yield Seen("embedder", f"Embedder: at {settings.embedder}.")


def _disk(settings: Settings, _repair: bool) -> Iterator[Seen]:
    from fabula.cli._output import size
    from fabula.models import cache_folder

    places = {"library": Path(settings.library).parent, "models": cache_folder()}
    for name, place in places.items():
        there = next((folder for folder in (place, *place.parents) if folder.exists()), Path())
        free = shutil.disk_usage(there).free
        little = free < _LITTLE
        yield Seen("disk", f"Disk ({name}): {size(free)} free.", bad=little, action="Free some disk space." if little else "")
