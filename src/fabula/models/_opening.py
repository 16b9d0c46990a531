"""From what a person chose to a model that can be asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from fabula.errors import AuthFailed, InputError
from fabula.models._keys import find_key
from fabula.models._learnt import Learnt
from fabula.models._misbehaving import FAULTS, Fault, Misbehaving
from fabula.models._openai import OpenAIModel
from fabula.models._port import Model, Profile
from fabula.models._profiles import find_profile, override_profile
from fabula.models._scripted import SCRIPTED_PROFILE, Scripted
from fabula.models._wrappers import Budget, Budgeted, Concurrent, Retrying

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from fabula.models._weights import ProgressCallback

OPENAI_ADDRESS = "https://api.openai.com/v1"
"""Where a model without an address is looked for."""
_RULES = "rules"


@dataclass(frozen=True)
class ModelChoice:
    """What a person chose, from flags, environment and settings."""

    model: str = "embedded"
    """`embedded`, a name of the manifest, the path of a GGUF file, `hub:…`, `rules`, or a name at the address; for tests `scripted` and
    `misbehaving`."""
    base_url: str | None = None
    """The address, mostly ending with `/v1`; None = OpenAI's."""
    api_key: str | None = field(default=None, repr=False)
    """The key, if given outright; else it is looked up when needed."""
    profile: Mapping[str, Any] = field(default_factory=dict)
    """The person's own word about the model, over what we know (see `find_profile`)."""
    small_model: str | None = None
    """For small decisions, at the same address; None = the same model."""

    def small(self) -> ModelChoice | None:
        """The choice for small decisions; None where it is the same model."""
        if self.small_model is None or self.small_model == self.model:
            return None
        return ModelChoice(self.small_model, self.base_url, self.api_key)


def count_text_tokens(text: str) -> int:
    """`fabula.text.count_tokens`, loaded at the first call."""
    from fabula.text import count_tokens

    return count_tokens(text)


def open_model(
    choice: ModelChoice,
    *,
    count_tokens: Callable[[str], int] | None = count_text_tokens,
    learnt: Learnt | None = None,
    environment: Mapping[str, str] | None = None,
    http_client: httpx2.AsyncClient | None = None,
    cache_dir: Path | str | None = None,
    progress: ProgressCallback | None = None,
) -> Model:
    """The model, with as many requests in flight as its profile allows. Nothing is fetched, started or asked before the first request.

    Args:
        choice: what the person chose.
        count_tokens: counts tokens of a text, for checks before sending and for usage that is not told; None leaves both out.
        learnt: what the server taught in an earlier opening.
        environment: instead of the process's, for the key.
        http_client: instead of an own one.
        cache_dir: where weights are kept; see `open_embedded`.
        progress: told while weights are fetched and loaded.

    Raises:
        InputError: the choice cannot be: `rules` where a model is needed, an address without scheme, an unknown field of the profile.
        AuthFailed: OpenAI's own address, and no key is to be found.
        NotFound: no such weights.
    """
    name = choice.model.strip()
    if name == _RULES:
        raise InputError(
            "This needs a language model, and `rules` is none.", "Choose one with --model or FABULA_MODEL, for example `embedded`."
        )
    if name.split(":")[0] in ("scripted", "misbehaving") and choice.base_url is None:
        return _scripted(name, override_profile(SCRIPTED_PROFILE, choice.profile))
    if _is_embedded(name, choice):
        from fabula.models._embedded import open_embedded

        own = choice.profile
        slots = int(own.get("concurrency", 2))
        return Concurrent(open_embedded(name, window=own.get("window"), slots=slots, cache_dir=cache_dir, progress=progress, profile=own))
    base_url = _address(choice.base_url or OPENAI_ADDRESS)
    key = choice.api_key or find_key(base_url, environment)
    if key is None and urlsplit(base_url).hostname == urlsplit(OPENAI_ADDRESS).hostname:
        raise AuthFailed(
            f"There is no key for {OPENAI_ADDRESS}, where {name!r} would be asked.",
            "Set FABULA_API_KEY, set FABULA_BASE_URL to another address, or use `--model embedded`, which needs no key.",
        )
    profile = find_profile(name, base_url, choice.profile)
    model_there = OpenAIModel(name, base_url, key, profile, http_client=http_client, count_tokens=count_tokens, learnt=learnt)
    return Concurrent(model_there)


def guard(
    model: Model,
    budget: Budget | None = None,
    *,
    count_tokens: Callable[[str], int] | None = count_text_tokens,
    rng: random.Random | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    tries: int = 5,
    seconds: float = 300.0,
) -> Model:
    """A model as a run uses it: within a budget that counts every asking, asked again where that may help.

    Raises:
        InputError: a limit of money, but the price is unknown.
    """
    inner = model if budget is None else Budgeted(model, budget, count_tokens=count_tokens)
    return Retrying(inner, tries=tries, seconds=seconds, rng=rng, sleep=sleep)


def _is_embedded(name: str, choice: ModelChoice) -> bool:
    if name == "embedded" or name.startswith("hub:") or name.lower().endswith(".gguf"):
        return True
    if choice.base_url is not None:
        return False
    from fabula.models._manifest import manifest

    return name in manifest().weights


def _scripted(name: str, profile: Profile) -> Model:
    """`scripted`, `scripted:WORDS`, `misbehaving`, `misbehaving:FAULT,FAULT` or `misbehaving:…@RATE`."""
    kind, _, options = name.partition(":")
    if kind == "scripted":
        if options and not options.isdigit():
            raise InputError(f"{name!r} is no scripted model.", "Write `scripted` or, for answers of 300 words, `scripted:300`.")
        return Scripted(words=int(options) if options else 120, profile=profile)
    faults, _, rate = options.partition("@")
    try:
        share = float(rate) if rate else 0.3
    except ValueError:
        raise InputError(f"{rate!r} is no share of askings.", "Write for example `misbehaving:cut_off,loop@0.5`.") from None
    return Misbehaving(Scripted(profile=profile), cast("tuple[Fault, ...]", tuple(faults.split(","))) if faults else FAULTS, rate=share)


def _address(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("The address of the model is not an HTTP address.", "Write it in full, for example http://127.0.0.1:8080/v1.")
    return base_url
