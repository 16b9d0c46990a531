"""A loopback server in the OpenAI format around a scripted model. For tests and benchmarks, in this process or another.

Its answer is a function of the request; what a misbehaving model raises becomes real HTTP: 429 with Retry-After, 500, 413, a connection
cut in mid-stream, silence. It counts what it was asked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from fabula.errors import FabulaError, Filtered, RateLimited, ServerFailed, TimedOut, TooLarge, TooLong, Unreachable
from fabula.models._http import Asked, ClientGone, Exchange, HttpServer
from fabula.models._misbehaving import Fault, Misbehaving
from fabula.models._openai_read import content_text
from fabula.models._port import Event, Finish, Message, Model, Request, Sampling, Schema, TextDelta, Usage
from fabula.models._scripted import Scripted, crude_tokens, prompt_hash

_FINISHES = {"filter": "content_filter"}
_IN_PROMPT = "JSON schema:\n"


class ScriptedServer:
    """Serves a model on 127.0.0.1 as `/v1/models`, `/v1/chat/completions` (streamed or plain) and `/v1/embeddings`.

    `GET /requests` tells how often each prompt was asked, `?bodies=1` with the bodies; `POST /faults` with a list of fault names (null for
    none) makes the next askings go wrong; `GET /health` answers at once.

    Args:
        model: what answers; `Scripted()` if None.
        key: demanded as bearer token, if given.
        limit_bytes: larger requests get 413; `tell_limit`: whether the answer says so.
        window: prompts of more tokens (crudely counted) get 400 in llama.cpp's words.
        rungs: kinds of structured answers that are taken; others get 400.
        refuse: fields that get 400 when sent.
        ignore_schema: take a schema and answer prose.
        usage: whether usage is told.
        streaming: False answers plain JSON to a request for a stream.
        hang_seconds: how long a fault of silence lasts at most.
        dim: length of embeddings.
        keep_bodies: keep the bodies of requests in `log`.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        key: str | None = None,
        limit_bytes: int | None = None,
        tell_limit: bool = False,
        window: int | None = None,
        rungs: Collection[str] = ("json_schema", "json_object"),
        refuse: Collection[str] = (),
        ignore_schema: bool = False,
        usage: bool = True,
        streaming: bool = True,
        hang_seconds: float = 60.0,
        dim: int = 64,
        keep_bodies: bool = True,
    ) -> None:
        self.model: Model = model if model is not None else Scripted()
        self.key, self.limit_bytes, self.tell_limit, self.window = key, limit_bytes, tell_limit, window
        self.rungs, self.refuse, self.ignore_schema = frozenset(rungs), frozenset(refuse), ignore_schema
        self.usage, self.streaming, self.hang_seconds, self.dim, self.keep_bodies = usage, streaming, hang_seconds, dim, keep_bodies
        self.faults: deque[Fault | None] = deque()
        """What goes wrong at the next askings, in order."""
        self.log: list[dict[str, Any]] = []
        """One entry an asking: n, prompt (its hash), seed, model, bytes, status, state (asked, answered, refused, cut, left), body."""
        self._http = HttpServer(self._handle)

    @property
    def address(self) -> str:
        """The base URL, ending with `/v1`."""
        return f"http://127.0.0.1:{self._http.port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one."""
        await self._http.start(port)

    async def stop(self) -> None:
        """Close everything."""
        await self._http.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    def asked(self) -> Counter[str]:
        """`prompt hash:seed` → how often it was asked."""
        return Counter(f"{entry['prompt']}:{entry['seed']}" for entry in self.log)

    # -- routes

    async def _handle(self, asked: Asked, exchange: Exchange) -> None:
        route = (asked.method, asked.path.rstrip("/"))
        if route == ("GET", "/health"):
            return await exchange.send_json(200, {"status": "ok"})
        if route == ("GET", "/requests"):
            entries = self.log if "bodies=1" in asked.query else [{k: v for k, v in entry.items() if k != "body"} for entry in self.log]
            return await exchange.send_json(200, {"count": len(self.log), "asked": self.asked(), "requests": entries})
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            return await _refuse(exchange, 401, f"Incorrect API key provided: {asked.headers.get('authorization', '')}", "invalid_api_key")
        if self.limit_bytes is not None and len(asked.body) > self.limit_bytes:
            told = f"limit: {self.limit_bytes} bytes" if self.tell_limit else "Payload Too Large"
            self._enter({}, None, asked, 413)
            return await _refuse(exchange, 413, told, "request_too_large")
        if route == ("GET", "/v1/models"):
            return await exchange.send_json(
                200, {"object": "list", "data": [{"id": self.model.name, "object": "model", "owned_by": "fabula"}]}
            )
        try:
            body = json.loads(asked.body or b"{}")
        except ValueError:
            return await _refuse(exchange, 400, "The body is not JSON.", "invalid_request_error")
        if route == ("POST", "/faults"):
            self.faults.extend(body)
            return await exchange.send_json(200, {"faults": list(self.faults)})
        if route == ("POST", "/v1/embeddings"):
            return await self._embed(body, exchange)
        if route == ("POST", "/v1/chat/completions"):
            return await self._chat(body, asked, exchange)
        return await _refuse(exchange, 404, f"There is no {asked.method} {asked.path}.", "not_found")

    def _enter(self, body: Mapping[str, Any], request: Request | None, asked: Asked, status: int) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "n": len(self.log),
            "prompt": prompt_hash(request) if request is not None else "",
            "seed": request.seed if request is not None else None,
            "model": body.get("model"),
            "bytes": len(asked.body),
            "status": status,
            "state": "asked" if status == 200 else "refused",
        }
        if self.keep_bodies:
            entry["body"] = body
        self.log.append(entry)
        return entry

    async def _chat(self, body: dict[str, Any], asked: Asked, exchange: Exchange) -> None:
        request = _read_request(body, self.ignore_schema)
        problem = self._problem(body, request)
        entry = self._enter(body, request, asked, 400 if problem else 200)
        if problem:
            return await exchange.send_json(400, {"error": problem})
        model: Model = Misbehaving(self.model, script=[self.faults.popleft()]) if self.faults else self.model
        events = model.stream(request)
        streamed = bool(body.get("stream")) and self.streaming
        try:
            if streamed:
                await self._stream(events, body, exchange)
            else:
                await self._plain(events, body, exchange)
            entry["state"] = "answered"
        except ClientGone:
            entry["state"] = "left"
            raise
        except FabulaError as error:
            entry["state"] = "refused" if not exchange.begun and not isinstance(error, Unreachable | TimedOut) else "cut"
            entry["status"] = await self._fail(error, exchange)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def _problem(self, body: Mapping[str, Any], request: Request) -> dict[str, Any] | None:
        kind = (body.get("response_format") or {}).get("type", "text")
        if kind != "text" and kind not in self.rungs:
            return {
                "message": f"response_format of type {kind!r} is not supported",
                "type": "invalid_request_error",
                "param": "response_format",
            }
        if "grammar" in body and "grammar" not in self.rungs:
            return {"message": "Unrecognized request argument supplied: grammar", "type": "invalid_request_error"}
        for name in sorted(self.refuse & set(body)):
            return {
                "message": f"Unsupported parameter: '{name}' is not supported with this model.",
                "code": "unsupported_parameter",
                "param": name,
            }
        tokens = sum(crude_tokens(m.content) for m in request.messages)
        if self.window is not None and tokens > self.window:
            said = f"the request ({tokens} tokens) exceeds the available context size ({self.window} tokens), try increasing it"
            return {"code": 400, "message": said, "type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": self.window}
        return None

    # -- answers

    async def _stream(self, events: AsyncIterator[Event], body: Mapping[str, Any], exchange: Exchange) -> None:
        usage: Usage | None = None
        wanted = self.usage and bool((body.get("stream_options") or {}).get("include_usage"))

        async def chunk(**fields: Any) -> None:
            if not exchange.begun:
                await exchange.begin_events()
            await exchange.send_event(json.dumps(_envelope(body, "chat.completion.chunk") | fields, ensure_ascii=False))

        first = True
        while True:
            try:
                event = await exchange.wait_for(anext(events))
            except StopAsyncIteration:
                break
            if isinstance(event, TextDelta):
                delta = {"role": "assistant", "content": event.text} if first else {"content": event.text}
                first = False
                await chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
            elif isinstance(event, Usage):
                usage = event
            elif isinstance(event, Finish):
                await chunk(choices=[{"index": 0, "delta": {}, "finish_reason": _FINISHES.get(event.reason, event.reason)}])
        if wanted and usage is not None:
            await chunk(choices=[], usage=_usage(usage))
        await exchange.send_event("[DONE]")
        await exchange.end_events()

    async def _plain(self, events: AsyncIterator[Event], body: Mapping[str, Any], exchange: Exchange) -> None:
        text: list[str] = []
        usage, finish = Usage(), "stop"
        while True:
            try:
                event = await exchange.wait_for(anext(events))
            except StopAsyncIteration:
                break
            if isinstance(event, TextDelta):
                text.append(event.text)
            elif isinstance(event, Usage):
                usage = event
            elif isinstance(event, Finish):
                finish = _FINISHES.get(event.reason, event.reason)
        choice = {"index": 0, "message": {"role": "assistant", "content": "".join(text)}, "finish_reason": finish}
        answer = _envelope(body, "chat.completion") | {"choices": [choice]}
        await exchange.send_json(200, answer | ({"usage": _usage(usage)} if self.usage else {}))

    async def _fail(self, error: FabulaError, exchange: Exchange) -> int:
        """Make an error real: as a status, as silence, or as a broken connection. Returns the status, 0 for none."""
        if isinstance(error, TimedOut):
            with suppress(TimeoutError):
                await exchange.wait_for(_silence(self.hang_seconds))
        if exchange.begun or isinstance(error, Unreachable | TimedOut) or error.details.get("broken_off"):
            exchange.cut()
            return 0
        status, code = 500, "server_error"
        headers: dict[str, str] = {}
        if isinstance(error, RateLimited):
            status, code = 429, "rate_limit_exceeded"
            if "seconds" in error.details:
                seconds = float(error.details["seconds"])
                headers = {"retry-after": str(math.ceil(seconds)), "retry-after-ms": f"{seconds * 1000:.0f}"}
        elif isinstance(error, TooLarge):
            status, code = 413, "request_too_large"
        elif isinstance(error, TooLong):
            status, code = 400, "context_length_exceeded"
        elif isinstance(error, Filtered):
            status, code = 400, "content_filter"
        elif not isinstance(error, ServerFailed):
            status, code = 400, error.code
        await _refuse(exchange, status, error.message, code, headers)
        return status

    async def _embed(self, body: Mapping[str, Any], exchange: Exchange) -> None:
        texts = [body["input"]] if isinstance(body.get("input"), str) else list(body.get("input") or ())
        vectors = [embed_text(str(text), self.dim) for text in texts]
        encoded: list[Any] = list(vectors)
        if body.get("encoding_format") == "base64":
            encoded = [base64.b64encode(struct.pack(f"<{self.dim}f", *vector)).decode() for vector in vectors]
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(encoded)]
        tokens = sum(crude_tokens(str(text)) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        await exchange.send_json(200, {"object": "list", "model": body.get("model"), "data": data, "usage": usage})


async def _silence(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


async def _refuse(exchange: Exchange, status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> None:
    await exchange.send_json(status, {"error": {"message": message, "type": code, "param": None, "code": code}}, headers)


def _envelope(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-0", "object": kind, "created": 0, "model": body.get("model")}


def _usage(usage: Usage) -> dict[str, Any]:
    total = usage.prompt_tokens + usage.answer_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.answer_tokens,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _read_request(body: Mapping[str, Any], ignore_schema: bool) -> Request:
    """The request value behind an HTTP body; a schema may also stand in the prompt, as the lower rungs send it."""
    messages = tuple(Message(m.get("role", "user"), content_text(m.get("content"))) for m in body.get("messages", ()))
    schema = None
    wrapped = (body.get("response_format") or {}).get("json_schema")
    if wrapped:
        schema = Schema(wrapped.get("name", "answer"), wrapped.get("schema", {}))
    elif messages and _IN_PROMPT in messages[-1].content:
        with suppress(ValueError):
            found, _ = json.JSONDecoder().raw_decode(messages[-1].content.rsplit(_IN_PROMPT, 1)[1])
            schema = Schema("answer", found)
    stop = body.get("stop") or ()
    sampling = Sampling(
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or 1024,
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        min_p=body.get("min_p"),
        frequency_penalty=body.get("frequency_penalty"),
        presence_penalty=body.get("presence_penalty"),
        dry_multiplier=body.get("dry_multiplier"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
    )
    return Request(messages, "", None if ignore_schema else schema, sampling, int(body.get("seed") or 0))


def embed_text(text: str, dim: int = 64) -> list[float]:
    """A deterministic vector of unit length: texts that share words (for CJK: characters) are near each other."""
    vector = [0.0] * dim
    for term in _terms(text.lower()):
        digest = hashlib.sha256(term.encode("utf-8", "surrogatepass")).digest()
        for i in range(0, 16, 2):
            vector[digest[i] % dim] += 1.0 if digest[i + 1] & 1 else -1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else [1.0] + [0.0] * (dim - 1)


def _terms(text: str) -> Iterable[str]:
    for word in text.split():
        if any("\u3400" <= char <= "\u9fff" for char in word):
            yield from word
        else:
            yield word.strip(".,;:!?\"'()«»—")
