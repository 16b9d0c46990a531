"""As much of an HTTP/1.1 server on a loopback port as a model's server needs, on asyncio streams. For tests and benchmarks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed", 413: "Content Too Large"}
_REASONS |= {429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable"}
_MOST_HEAD = 65_536
_POLL_SECONDS = 0.02


class ClientGone(Exception):
    """The client closed the connection in the middle of an exchange."""


@dataclass
class Asked:
    """One HTTP request."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Exchange:
    """The way back to the client of one request."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep_alive: bool = True
    begun: bool = field(default=False, init=False)
    """Whether the head has gone out."""

    def gone(self) -> bool:
        """Whether the client has left."""
        return self.reader.at_eof() or self.writer.is_closing()

    async def wait_for(self, work: Awaitable[Any]) -> Any:
        """The result of `work`, unless the client leaves first: then it is cancelled.

        Raises:
            ClientGone: it left.
        """
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_POLL_SECONDS)
                if not task.done() and self.gone():
                    raise ClientGone
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await task
        return task.result()

    async def send_json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer."""
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._head(status, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})})
        self.writer.write(body)
        await self._drain()

    async def begin_events(self) -> None:
        """The head of a stream of server-sent events."""
        self._head(200, {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"})
        await self._drain()

    async def send_event(self, data: str) -> None:
        """One server-sent event.

        Raises:
            ClientGone: the client has left.
        """
        if self.gone():
            raise ClientGone
        raw = f"data: {data}\n\n".encode("utf-8", "surrogatepass")
        self.writer.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        await self._drain()

    async def end_events(self) -> None:
        """The end of the stream."""
        self.writer.write(b"0\r\n\r\n")
        await self._drain()

    def cut(self) -> None:
        """Break the connection off, without an end."""
        self.keep_alive = False
        self.writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.begun = True
        connection = {"connection": "keep-alive" if self.keep_alive else "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **connection}.items())
        self.writer.write(f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\n{lines}\r\n".encode("latin-1"))

    async def _drain(self) -> None:
        try:
            await self.writer.drain()
        except ConnectionError:
            raise ClientGone from None


Handler = Callable[[Asked, Exchange], Awaitable[None]]


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length") or 0))
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while (await reader.readline()).strip():
        continue
    return b"".join(parts)


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked | None:
    """The next request; None at the end of the connection or where it is not HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None
    path, _, query = target.partition("?")
    return Asked(method, path, query, headers, body)


class HttpServer:
    """Serves a handler on 127.0.0.1; each connection is kept alive until either side closes it."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=_MOST_HEAD, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            while (asked := await _read_request(reader, writer)) is not None:
                exchange = Exchange(reader, writer, asked.headers.get("connection", "").lower() != "close")
                await self._handler(asked, exchange)
                if not exchange.keep_alive:
                    break
        except (ClientGone, ConnectionError):
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            with suppress(ConnectionError):
                writer.close()
