"""Download one wheel with whichever of pip and uv is here, in a child process. Their settings (index, proxy, certificates) hold.

What comes is data: nothing of it is imported, and no code of it runs (`--only-binary` rules out build scripts, `--no-deps` other packages).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

_SILENCE_SECONDS = 120.0
"""A download that brings nothing for so long is given up."""


def download_wheel(name: str, version: str, platform: str | None, folder: Path, told: Callable[[int], None]) -> str:
    """Put the wheel `name==version` into `folder`: as a `.whl` file (pip) or unpacked (uv).

    Args:
        name: package.
        version: exact version.
        platform: platform tag of the wheel (`manylinux2014_x86_64`), or None where it is for any. It is only read, so any machine will do.
        folder: an empty folder; also takes the tool's temporary files.
        told: called about five times a second with the bytes on the disk so far; what it raises ends the download.

    Returns:
        An empty string, or what went wrong with each tool.
    """
    failures = []
    for tool, command in _commands(name, version, platform, folder):
        failure = _run(command, folder, told)
        if not failure:
            return ""
        failures.append(f"{tool}: {failure}")
    return "; ".join(failures) or "neither pip nor uv is here to download it"


def _commands(name: str, version: str, platform: str | None, folder: Path) -> list[tuple[str, list[str]]]:
    requirement = f"{name}=={version}"
    commands: list[tuple[str, list[str]]] = []
    if find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
        pip += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
        commands.append(("pip", [*pip, *(["--platform", platform] if platform else []), requirement]))
    uv = _uv()
    if uv is not None:
        install = [*uv, "pip", "install", "--quiet", "--no-cache", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"]
        install += ["--python", sys.executable, "--target", str(folder)]
        tag = f"{platform.rpartition('_x86_64')[0]}" if platform else ""
        commands.append(("uv", [*install, *(["--python-platform", f"x86_64-{tag}"] if tag else []), requirement]))
    return commands


def _uv() -> list[str] | None:
    if find_spec("uv") is not None:
        return [sys.executable, "-P", "-m", "uv"]
    found = shutil.which("uv")
    return None if found is None else [found]


def _run(command: list[str], folder: Path, told: Callable[[int], None]) -> str:
    """Run until it ends; the last line it complains, or an empty string."""
    log = folder / "stderr"
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with log.open("wb") as errors:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        try:
            size, since = 0, time.monotonic()
            while child.poll() is None:
                time.sleep(0.2)
                now = _bytes_in(folder)
                if now != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > _SILENCE_SECONDS:
                    return f"nothing came for {_SILENCE_SECONDS:.0f} s"
                told(size)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    if child.returncode == 0:
        return ""
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else f"ended with {child.returncode}"


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_size
            except FileNotFoundError:  # moved or removed while we look
                continue
    return total
