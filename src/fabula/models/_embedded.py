"""The embedded model: weights that are fetched, a server in a child process that starts at the first request, and the common adapter to it.

Grammars: the server checks `response_format` by an engine that silently ignores a `maxLength` above 2,000, so a schema is sent as a grammar
for its other engine. That grammar is two lines around the schema (a test compares them with what `xllamacpp` makes), so it is written here:
asking the child costs a protocol, and importing `xllamacpp` here would load a second copy of llama.cpp and its threads into this process.

Prefix cache: a request goes to the slot that shares the longest beginning with it, so a passage's book-keeping finds the passage's prompt
where it was read, also when other prompts went between; a test holds that by `cached_tokens`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.errors import EmbeddedFailed, ModelError, NotFound, ServerFailed, TimedOut, Unreachable
from fabula.models._embedded_server import EmbeddedServer, ServerSettings, borrow_server, default_threads, return_server
from fabula.models._manifest import Weights, cache_folder, find_weights
from fabula.models._openai import OpenAIModel
from fabula.models._port import Event, Message, Note, Profile, Request, TextDelta
from fabula.models._profiles import find_profile, override_profile
from fabula.models._weights import Progress, ProgressCallback, fetch_in_thread

_KNOBS = frozenset({"temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "dry_multiplier", "stop", "seed"})
_TIMEOUT_SECONDS = 1800.0
"""Reading a full window takes minutes on a small machine, and nothing is heard meanwhile."""


def embedded_grammar(schema: Mapping[str, Any]) -> str:
    """The grammar (for LLGuidance) whose sentences are the JSON values of the schema."""
    return "%llguidance {}\nstart: %json " + json.dumps(schema, separators=(",", ":"))


def embedded_profile(weights: Weights, *, window: int, slots: int, override: Mapping[str, Any] | None = None) -> Profile:
    """What is known of these weights behind the embedded server: the family's profile, the server's abilities, the person's own word.

    Raises:
        InputError: see `find_profile`.
    """
    profile = replace(
        find_profile(weights.name), window=window, structured="grammar", knobs=_KNOBS, concurrency=slots, timeout_seconds=_TIMEOUT_SECONDS,
        price_known=True,
    )  # fmt: skip
    return override_profile(replace(profile, max_answer=min(profile.max_answer, window // 2)), override or {})


class EmbeddedModel:
    """A model in a child process of this one. It starts at the first request, or at `ready`; users of the same settings share it.

    A child that died is replaced (at most 3 times in 10 minutes) and the request is made again if nothing of its answer was given yet.
    """

    def __init__(
        self, weights: Weights, profile: Profile, *, threads: int, cache_dir: Path | str | None, progress: ProgressCallback | None
    ) -> None:
        self._weights, self._threads = weights, threads
        self._cache_dir, self._progress = cache_dir, progress
        self._profile = profile
        self._server: EmbeddedServer | None = None
        self._adapter: OpenAIModel | None = None
        self._address = ""

    def __repr__(self) -> str:
        return f"EmbeddedModel({self._weights.name!r})"

    @property
    def name(self) -> str:
        """The weights' name."""
        return self._weights.name

    @property
    def profile(self) -> Profile:
        """What is known of it, refined by what was learnt."""
        return self._profile if self._adapter is None else self._adapter.profile

    @property
    def server(self) -> EmbeddedServer | None:
        """The child process, once it was needed."""
        return self._server

    async def ready(self) -> None:
        """Fetch the weights, start the server and load the model, if that was not done.

        Raises:
            WeightsMissing: the weights could not be fetched.
            EmbeddedFailed: the server does not start, or died too often.
        """
        await self._connect()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask once.

        Raises:
            WeightsMissing: as `ready`.
            EmbeddedFailed: as `ready`, and when the server dies in mid-answer; then the next request starts it again.
            ModelError: as `OpenAIModel` raises it.
        """
        began = False
        for last in (False, True):
            adapter = await self._connect()
            try:
                async for event in adapter.stream(request):
                    began = began or isinstance(event, TextDelta)
                    yield event
                return
            except (Unreachable, ServerFailed, TimedOut) as error:
                if not await self._died():
                    raise
                if began or last:
                    raise self._broken(began) from error
            yield Note(f"The embedded server had died; {self.name} is started again.")

    async def count_tokens(self, text: str) -> int:
        """Exact tokens of a text, without chat template."""
        return len((await self._post("/tokenize", {"content": text}))["tokens"])

    async def count_prompt_tokens(self, messages: tuple[Message, ...]) -> int:
        """Exact tokens of a prompt as the server builds it, chat template included."""
        body = {"messages": [{"role": message.role, "content": message.content} for message in messages]}
        prompt = (await self._post("/apply-template", body))["prompt"]
        return len((await self._post("/tokenize", {"content": prompt, "parse_special": True}))["tokens"])

    async def close(self) -> None:
        """Close the connections, and end the server if nobody else in this process uses it."""
        adapter, server, self._adapter, self._server = self._adapter, self._server, None, None
        if adapter is not None:
            await adapter.close()
        if server is not None:
            await return_server(server)

    async def _connect(self) -> OpenAIModel:
        if self._server is None:
            path = await fetch_in_thread(self._weights, cache_dir=self._cache_dir, progress=self._progress)
            if self._server is None:  # nobody else got here meanwhile
                self._server = borrow_server(self._settings(path))
        server = self._server
        if not server.alive() and self._progress is not None:
            self._progress(Progress(self.name, 0, self._weights.bytes or 0, "embedded server", "loading"))
        address = await server.start()
        if self._adapter is None or address != self._address:
            old, self._address = self._adapter, address
            self._adapter = OpenAIModel(self.name, address + "/v1", server.key, self.profile, grammar=embedded_grammar)
            if old is not None:
                await old.close()
        return self._adapter

    def _settings(self, path: Path) -> ServerSettings:
        log = cache_folder(self._cache_dir) / "logs" / f"{self.name}.log"
        return ServerSettings(
            path, self.name, window=self._profile.window, slots=self._profile.concurrency, threads=self._threads,
            template=self._weights.template, log=log,
        )  # fmt: skip

    async def _died(self) -> bool:
        """Whether the child is dead. A broken connection may be noticed before the process is gone."""
        server = self._server
        for _ in range(10):
            if server is None or not server.alive():
                return True
            if await server.healthy():
                return False
            await asyncio.sleep(0.1)
        return False

    def _broken(self, began: bool) -> EmbeddedFailed:
        where = "in the middle of an answer" if began else "twice before it answered"
        said = "" if self._server is None else self._server.last_words()
        return EmbeddedFailed(
            f"The embedded server of {self.name} died {where}." + (f" Its last words: {said}" if said else ""),
            "Resume the run: the server is started again. If this repeats, choose a smaller model with `fabula model use`.",
            broken_off=True,
        )

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        await self._connect()
        assert self._server is not None
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=60.0) as client:
                answer = await client.post(self._address + path, json=dict(body), headers={"Authorization": f"Bearer {self._server.key}"})
                answer.raise_for_status()
                return dict(answer.json())
        except httpx2.HTTPError as error:
            raise ModelError(f"The embedded server of {self.name} did not answer {path}: {type(error).__name__}.") from None


def open_embedded(
    choice: str | Path = "embedded",
    *,
    window: int | None = None,
    slots: int = 2,
    threads: int | None = None,
    cache_dir: Path | str | None = None,
    progress: ProgressCallback | None = None,
    profile: Mapping[str, Any] | None = None,
) -> EmbeddedModel:
    """A model that runs in a child process of this one. Nothing is fetched or started before the first request, or `ready`.

    Args:
        choice: see `find_weights`.
        window: tokens of prompt and answer together, for each slot; default: the manifest's (8,192).
        slots: requests in flight at once. Two make four requests together about a third faster; each takes memory for a window of its own.
        threads: default: the cores of this machine, at most 8.
        cache_dir: see `fetch`.
        progress: see `fetch`; also told when the model is loaded into memory.
        profile: the person's own word on the model, see `find_profile`.

    Raises:
        NotFound, InputError: the choice names nothing that can be used.
    """
    weights = find_weights(str(choice))
    if weights.kind != "chat":
        raise NotFound(f"{weights.name} embeds text; it cannot write.", "Choose a model of the kind `chat` from `fabula model list`.")
    known = embedded_profile(weights, window=window or weights.window, slots=slots, override=profile)
    return EmbeddedModel(weights, known, threads=threads or default_threads(), cache_dir=cache_dir, progress=progress)
