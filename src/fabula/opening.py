"""From settings to things that work: the library, the models, the embedder, the memory (DESIGN 8). For every face.

Nothing is fetched or asked before it is needed; what was learnt of a server is kept in the library and given back at the next opening.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError, LibraryDamaged, ModelError
from fabula.settings import Settings

if TYPE_CHECKING:
    from fabula.memory import Memory, View
    from fabula.models import Embedder, Model, ModelChoice, ProgressCallback
    from fabula.runs import Limits
    from fabula.store import Store

_BESIDE = 256
"""Missing vectors that are made before the work begins; more are made beside it, and until then recall goes by words."""


def open_library(settings: Settings, *, create: bool = False, begin: str = "fabula write") -> Store:
    """The library of the settings. Only what begins something makes one where there is none, so that a mistyped path is noticed.

    Args:
        settings: name it.
        create: make it where there is none.
        begin: the command to name that makes one.

    Raises:
        NotFound: there is none, and `create` is not set.
        InputError: the file is something else.
        StoreError.
    """
    from fabula.errors import NotFound
    from fabula.store import open_store

    place = str(settings.library)
    named = "library" in settings.sources  # before the first story, the default place is simply empty
    if not create and named and place != ":memory:" and not Path(place).expanduser().exists():
        where = settings.sources.get("library", "default")
        raise NotFound(f"There is no library {place} ({where}).", f"Begin with `{begin}`, or correct --library or FABULA_LIBRARY.")
    try:
        return open_store(settings.library)
    except LibraryDamaged as error:
        if place != ":memory:" and _is_something_else(place):
            raise InputError(error.message, error.next_action) from error
        raise


def _is_something_else(place: str) -> bool:
    """Whether a file does not begin as a SQLite database, or not as one of ours: a wrong path rather than damage."""
    with Path(place).expanduser().open("rb") as file:
        header = file.read(100)
    return not header.startswith(b"SQLite format 3\0") or header[68:72] != b"FABU"


def model_choice(settings: Settings) -> ModelChoice:
    """What the settings choose, as `fabula.models` takes it.

    Raises:
        InputError: an address is set, and nothing says which model to ask there.
    """
    from fabula.models import ModelChoice

    if settings.base_url and "model" not in settings.sources:
        raise InputError(
            f"The address {settings.base_url} is set ({settings.sources.get('base_url', 'base_url')}), and no model is named.",
            "Say which model to ask there: --model NAME or FABULA_MODEL.",
        )
    profile: dict[str, Any] = dict(settings.profile)
    if settings.concurrency is not None:
        profile["concurrency"] = settings.concurrency
    return ModelChoice(settings.model, settings.base_url or None, profile=profile, small_model=settings.small_model or None)


def embedder_choice(settings: Settings) -> str:
    """The embedder to use. Models for tests go without one unless a person says otherwise."""
    if settings.model.split(":")[0] in ("scripted", "misbehaving") and "embedder" not in settings.sources:
        return "none"
    return settings.embedder


@dataclass
class Opened:
    """What a run needs, opened. `note` tells the person what is otherwise than chosen."""

    store: Store
    model: Model
    small_model: Model | None
    memory: Memory
    embedder: Embedder | None
    note: Callable[[str], None]
    _beside: list[asyncio.Task[int]] = field(default_factory=list)

    async def catch_up(self, view: View, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the vectors that a run's memory lacks (of another embedder, or of what a person edited): few now, many beside the work."""
        missing = self.memory.missing(view)
        if not missing:
            return
        work = asyncio.create_task(self.memory.rebuild(view, progress))
        if missing <= _BESIDE:
            await work
        else:
            self.note(f"{missing:,} memories have no vector of this embedder yet; they are made beside the work.")
            self._beside.append(work)

    async def close(self) -> None:
        """Close models, embedder and library."""
        for work in self._beside:
            work.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        self.memory.close()
        for one in (self.model, self.small_model, self.embedder):
            if one is not None:
                await one.close()
        self.store.close()


@asynccontextmanager
async def opened(
    settings: Settings,
    *,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Opened]:
    """Library, models, embedder and memory of the settings, closed at the end.

    Raises:
        InputError: a choice that cannot be; a limit of money, and the price of a model is not known.
        StoreError, ModelError.
    """
    from fabula.memory import Memory
    from fabula.models import guard, open_model

    choice = model_choice(settings)
    store = open_library(settings, create=True)
    with contextlib.closing(store):
        known = _learnt_name(settings)
        model = open_model(choice, progress=progress, learnt=_learnt(store, known))
        small = choice.small()
        small_model = open_model(small, progress=progress) if small is not None else None
        _check_prices(limits, model, small_model)
        embedder = await _embedder(settings, progress, note)
        whole = Opened(store, guard(model), guard(small_model) if small_model else None, Memory(store, embedder), embedder, note)
        try:
            yield whole
        finally:
            _keep_learnt(store, known, model)
            await whole.close()


def _check_prices(limits: Limits | None, model: Model, small_model: Model | None) -> None:
    """Raises InputError for a limit of money where a model has no known price: now, not after some steps."""
    from fabula.models import Usage
    from fabula.runs import ModelFacts

    if limits is None or limits.money is None:
        return
    limits.check({}, Usage(), ModelFacts.of(model))
    if small_model is not None and not small_model.profile.price_known:
        raise InputError(
            f"There is a limit of money, but the price of the small model {small_model.name} is not known.",
            "Leave out --small-model, or limit tokens instead (--max-tokens).",
        )


async def _embedder(settings: Settings, progress: ProgressCallback | None, note: Callable[[str], None]) -> Embedder | None:
    """The embedder, ready. One that nobody chose and that cannot be had is done without, and that is said."""
    from fabula.models import open_embedder

    embedder = open_embedder(embedder_choice(settings), progress=progress)
    if embedder is None:
        return None
    try:
        await embedder.ready()
    except ModelError as error:
        await embedder.close()
        if "embedder" in settings.sources:
            raise
        note(f"The memory is searched by words only, since there is no embedder: {error.message} (`--embedder none` says so for good.)")
        return None
    return embedder


def _learnt_name(settings: Settings) -> str:
    """The fact under which a library keeps what a server taught; the address itself is not kept."""
    address = hashlib.sha256(settings.base_url.encode()).hexdigest()[:12]
    return f"learnt:{settings.model}@{address}"


def _learnt(store: Store, name: str) -> Any:
    from fabula.models import Learnt
    from fabula.store import FactRow

    rows = store.rows(FactRow, name=name, newest_first=True, limit=1)
    return Learnt.from_dict(rows[0].value) if rows else None


def _keep_learnt(store: Store, name: str, model: Model) -> None:
    from fabula.models import Learnt
    from fabula.store import LIBRARY, FactRow

    learnt = getattr(model, "learnt", None)
    if not isinstance(learnt, Learnt) or learnt == Learnt():
        return
    rows = store.rows(FactRow, name=name, newest_first=True, limit=1)
    if not rows or rows[0].value != learnt.as_dict():
        with store.write(LIBRARY, "learnt") as tx:
            tx.add(FactRow(name, learnt.as_dict()))
