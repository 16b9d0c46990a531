"""Turn text into vectors: the port, and what stands behind it.

Vectors are float32 rows of unit length. `id` names the model and the precision of computing; the store keeps it with each vector, so that a
library that is opened with another embedder notices. Texts to be embedded name their people ("Mira: …", never "I"): that alone doubled what
was found (retrieval measurements, section 2).
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import unicodedata
import zlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import urldefrag, urlsplit

from fabula.errors import InputError, ServerFailed, Unsupported, WeightsMissing
from fabula.models._e5 import E5File
from fabula.models._embedded_server import child_environment
from fabula.models._manifest import manifest, weights_folder
from fabula.models._openai_errors import clean_address, map_error
from fabula.models._weights import ProgressCallback, fetch, fetch_in_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI

    Vectors = NDArray[np.float32]

_SLICE = 32
"""Texts per turn of the worker: between two turns a query may slip in, and a cancelled call ends."""


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. Errors are those of the ModelError branch."""

    @property
    def id(self) -> str:
        """Model and precision, e.g. `multilingual-e5-small/fp32`. Vectors of different ids cannot be compared."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    async def ready(self) -> None:
        """Do now what the first use would do (fetch, load, ask the address), so that `id` and `dim` are known."""

    async def passages(self, texts: Sequence[str], /) -> Vectors:
        """Vectors of texts that are to be found: (len(texts), dim), float32, unit length."""

    async def queries(self, texts: Sequence[str], /) -> Vectors:
        """Vectors of what is looked for: (len(texts), dim), float32, unit length."""

    async def close(self) -> None:
        """Release threads and connections. May be called twice."""


class E5:
    """multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672) through onnxruntime, on the CPU, in a thread of its own.

    The weights (72 MB) are fetched at the first use, and two files are made of them once. A text of more than 512 tokens is split; its
    vector is the average of the pieces' vectors; the pieces are equally long.
    """

    id = "multilingual-e5-small/fp32"
    dim = 384

    def __init__(
        self, *, cache_dir: Path | str | None = None, threads: int | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self._cache_dir, self._progress = cache_dir, progress
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._pool: ThreadPoolExecutor | None = None
        self._engine: _Engine | None = None

    async def ready(self) -> None:
        """Fetch and load.

        Raises:
            WeightsMissing: the weights could not be fetched, or nothing could be made of them.
        """
        await self._in_thread("query: ", ["ready"])

    async def passages(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`.

        Raises:
            WeightsMissing: the weights could not be fetched, or nothing could be made of them.
        """
        return await self._embed("passage: ", texts)

    async def queries(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`.

        Raises:
            WeightsMissing: the weights could not be fetched, or nothing could be made of them.
        """
        return await self._embed("query: ", texts)

    async def close(self) -> None:
        """Forget the model. The next use loads it again."""
        pool, self._pool, self._engine = self._pool, None, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)

    async def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        import numpy as np

        parts = [await self._in_thread(prefix, list(texts[start : start + _SLICE])) for start in range(0, len(texts), _SLICE)]
        return np.concatenate(parts) if parts else np.empty((0, self.dim), np.float32)

    async def _in_thread(self, prefix: str, texts: list[str]) -> Vectors:
        if self._engine is None:
            await fetch_in_thread(manifest().embedder, cache_dir=self._cache_dir, progress=self._progress)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "fabula-e5")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, prefix, texts)

    def _work(self, prefix: str, texts: list[str]) -> Vectors:
        if self._engine is None:
            weights = fetch(manifest().embedder, cache_dir=self._cache_dir)
            self._engine = _Engine(weights, _made_files(weights, weights_folder(self._cache_dir)), self._threads)
        return self._engine.embed(prefix, texts)


def _made_files(weights: Path, folder: Path) -> Path:
    """The folder with the files that are made of the weights, made first if need be."""
    target = folder / "multilingual-e5-small-1"  # the number rises when `_e5` writes other files
    if all((target / name).is_file() for name in ("graph.onnx", "pieces.model")):
        return target
    command = [sys.executable, "-P", "-m", "fabula.models._e5", str(weights), str(target)]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise WeightsMissing(
            f"The embedder's files could not be made in {target}: {lines[-1]}", "Free some disk space or set FABULA_CACHE."
        )
    return target


class _Engine:
    """Tokens, embeddings, graph, average. Blocking; one thread at a time."""

    _tokens_at_once = 512
    _window = 512

    def __init__(self, weights: Path, made: Path, threads: int) -> None:
        import onnxruntime  # type: ignore[import-untyped]
        import sentencepiece

        self._file = E5File(weights)
        self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(made / "pieces.model"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # they keep the largest batch's memory for good
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the language model needs the cores
        options.log_severity_level = 3
        self._graph = onnxruntime.InferenceSession(str(made / "graph.onnx"), options, providers=["CPUExecutionProvider"])
        self._positions = self._file.floats("emb.pos").reshape(-1, self._file.hidden)
        self._type = self._file.floats("emb.type").reshape(-1, self._file.hidden)[0]

    def embed(self, prefix: str, texts: list[str]) -> Vectors:
        import numpy as np

        rows: list[list[int]] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            for row in self._windows(prefix, text):
                rows.append(row)
                owners.append(owner)
        sums = np.zeros((len(texts), self._file.hidden), np.float32)
        for batch in self._batches(rows):
            vectors = self._run([rows[i] for i in batch])
            np.add.at(sums, [owners[i] for i in batch], vectors)
        unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return unit

    def _windows(self, prefix: str, text: str) -> list[list[int]]:
        """Token ids of the text in rows of at most 512, each with the prefix and the marks of begin and end."""
        head = self._encode(prefix)
        whole = self._encode(prefix + text)
        body = whole[len(head) :] if whole[: len(head)] == head else self._encode(text)
        room = self._window - 2 - len(head)
        if len(body) <= room:
            return [[self._file.bos, *whole, self._file.eos]]
        count = -(-len(body) // room)
        size = -(-len(body) // count)
        return [[self._file.bos, *head, *body[at : at + size], self._file.eos] for at in range(0, len(body), size)]

    def _encode(self, text: str) -> list[int]:
        clean = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip().encode("utf-8", "replace").decode("utf-8")
        return list(self._pieces.encode(clean))

    def _batches(self, rows: list[list[int]]) -> list[list[int]]:
        """Indices of rows of like length, so that little is padded; at most 512 tokens a batch."""
        batches: list[list[int]] = []
        for index in sorted(range(len(rows)), key=lambda i: len(rows[i])):
            if batches and (len(batches[-1]) + 1) * len(rows[index]) <= self._tokens_at_once:
                batches[-1].append(index)
            else:
                batches.append([index])
        return batches

    def _run(self, rows: list[list[int]]) -> Vectors:
        import numpy as np

        length = max(map(len, rows))
        ids = np.full((len(rows), length), self._file.pad, np.int64)
        mask = np.zeros((len(rows), length), np.float32)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
            mask[i, : len(row)] = 1
        unique, places = np.unique(ids, return_inverse=True)
        words = self._file.rows("emb.word", self._file.words, self._file.hidden, unique)[places.reshape(ids.shape)]
        embedded = words + self._positions[:length] + self._type
        states = self._graph.run(None, {"emb": embedded, "bias": ((mask - 1) * 1e9)[:, None, None, :]})[0]
        vectors = (states * mask[:, :, None]).sum(1)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class HttpEmbedder:
    """Any address that speaks the OpenAI embeddings API, e.g. `http://127.0.0.1:8080/v1#bge-m3`.

    Args:
        address: the address, mostly ending with `/v1`; after `#` the model's name. Without a name the address is asked which models it has.
        api_key: the key for this address, or None. The key of the language model is not sent here.
        prefixes: put before passages and before queries, as some models want it (`("passage: ", "query: ")`).
    """

    _batch = 64
    _retries = 2
    _timeout_seconds = 120.0

    def __init__(self, address: str, *, api_key: str | None = None, prefixes: tuple[str, str] = ("", "")) -> None:
        self._base_url, self._name = urldefrag(address)
        self._key, self._prefixes = (api_key or "").strip() or None, prefixes
        self._dim = 0
        self._sdk: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"HttpEmbedder({clean_address(self._base_url)!r}, {self._name!r})"

    @property
    def id(self) -> str:
        """The model's name and `remote`: a server does not tell its precision. Known after `ready` where the address has no `#name`."""
        if not self._name:
            raise Unsupported("The embedder's model is not known yet.", "Write the address as http://…/v1#model-name.")
        return f"{self._name}/remote"

    @property
    def dim(self) -> int:
        """Length of a vector. Known after `ready` or the first texts."""
        if not self._dim:
            raise Unsupported(f"How long the vectors of {self!r} are is not known yet.", "Ask it to be ready first.")
        return self._dim

    async def ready(self) -> None:
        """Ask the address for its model, if none was named, and for one vector.

        Raises:
            ModelError: as `map_error` says.
            InputError: the address has several models, and none was named.
        """
        if not self._name:
            self._name = await self._only_model()
        if not self._dim:
            await self._embed("", ["ready"])

    async def passages(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`. Raises ModelError as `map_error` says."""
        return await self._embed(self._prefixes[0], texts)

    async def queries(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`. Raises ModelError as `map_error` says."""
        return await self._embed(self._prefixes[1], texts)

    async def close(self) -> None:
        """Close the connections."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None and self._loop is asyncio.get_running_loop():
            await sdk.close()

    async def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        import numpy as np

        if not self._name:
            self._name = await self._only_model()
        rows: list[Any] = []
        for start in range(0, len(texts), self._batch):
            # No empty text: some servers refuse a whole batch for one.
            batch = [(prefix + text).strip() or "-" for text in texts[start : start + self._batch]]
            answer = await self._ask(self._creation(batch))
            found = sorted(answer.data or [], key=lambda each: each.index)
            if [each.index for each in found] != list(range(len(batch))):
                raise ServerFailed(f"{self!r} gave {len(found)} vectors for {len(batch)} texts.")
            rows += [each.embedding for each in found]
        if not rows:
            return np.empty((0, self._dim), np.float32)
        return self._unit(rows)

    def _creation(self, batch: list[str]) -> Callable[[AsyncOpenAI], Awaitable[Any]]:
        return lambda sdk: sdk.embeddings.create(model=self._name, input=batch, encoding_format="float", extra_headers=self._headers())

    def _unit(self, rows: list[Any]) -> Vectors:
        import numpy as np

        lengths = {len(row) for row in rows}
        if len(lengths) != 1 or (self._dim and lengths != {self._dim}):
            raise ServerFailed(f"{self!r} gave vectors of {sorted(lengths)} numbers, expected {self._dim or 'one length'}.")
        vectors = np.array(rows, np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            raise ServerFailed(f"{self!r} gave a vector that has no direction.")
        self._dim = vectors.shape[1]
        unit: Vectors = vectors / norms
        return unit

    async def _only_model(self) -> str:
        listed = await self._ask(lambda sdk: sdk.models.list(extra_headers=self._headers()))
        names = [each.id for each in listed.data]
        if len(names) != 1:
            shown = ", ".join(names[:8]) or "none"
            raise InputError(
                f"{clean_address(self._base_url)} has several models or none: {shown}.", "Write the address as http://…/v1#model-name."
            )
        return str(names[0])

    async def _ask(self, call: Callable[[AsyncOpenAI], Awaitable[Any]]) -> Any:
        import openai

        try:
            return await call(self._client())
        except openai.OpenAIError as error:
            address = clean_address(self._base_url)
            raise map_error(error, model=self._name or "the embedder", address=address, secrets=(self._key, self._base_url)) from None

    def _headers(self) -> dict[str, Any]:
        """No `Authorization` where there is no key; the SDK looks for that word in each request."""
        from openai import Omit

        return {} if self._key else {"Authorization": Omit()}

    def _client(self) -> AsyncOpenAI:
        import httpx2
        from openai import AsyncOpenAI

        loop = asyncio.get_running_loop()
        if self._sdk is None or self._loop is not loop:
            loopback = urlsplit(self._base_url).hostname in ("localhost", "127.0.0.1", "::1")
            client = httpx2.AsyncClient(trust_env=False, timeout=self._timeout_seconds) if loopback else None
            self._sdk = AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._base_url,
                timeout=self._timeout_seconds,
                max_retries=self._retries,
                http_client=client,
            )
            self._loop = loop
        return self._sdk


class HashEmbedder:
    """For tests: hashed pieces of three characters. Deterministic, the same on every machine, and without any understanding.

    Never chosen in place of another embedder.
    """

    def __init__(self, dim: int = 256) -> None:
        self._dim = dim

    @property
    def id(self) -> str:
        """`hashed-trigrams-for-tests/DIM`."""
        return f"hashed-trigrams-for-tests/{self._dim}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    async def ready(self) -> None:
        """Nothing to do."""

    async def passages(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`."""
        import numpy as np

        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in enumerate(texts):
            padded = f"  {unicodedata.normalize('NFKC', text).casefold()}  "
            for at in range(len(padded) - 2):
                hashed = zlib.crc32(padded[at : at + 3].encode("utf-8", "surrogatepass"))
                vectors[row, hashed % self._dim] += 1 if hashed & 0x8000_0000 else -1
            if not vectors[row].any():
                vectors[row, 0] = 1
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    async def queries(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder`."""
        return await self.passages(texts)

    async def close(self) -> None:
        """Nothing to do."""


def open_embedder(
    choice: str, *, cache_dir: Path | str | None = None, api_key: str | None = None, progress: ProgressCallback | None = None
) -> Embedder | None:
    """The embedder of FABULA_EMBEDDER. Nothing is fetched or asked before the first use, or `ready`.

    Args:
        choice: `e5`, `none` (then search is by words alone, and None is returned), or an address `http://…/v1#model-name`.
        cache_dir: see `fetch`.
        api_key: the key for an address.
        progress: see `fetch`.

    Raises:
        InputError: none of these.
    """
    name = choice.strip()
    if name.lower() in ("none", ""):
        return None
    if name.lower() in ("e5", manifest().embedder, E5.id):
        return E5(cache_dir=cache_dir, progress=progress)
    if name.startswith(("http://", "https://")):
        return HttpEmbedder(name, api_key=api_key)
    raise InputError(
        f"There is no embedder named {choice!r}.", "Choose `e5`, `none`, or an address like http://127.0.0.1:8080/v1#model-name."
    )
