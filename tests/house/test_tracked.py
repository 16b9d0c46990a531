"""No tracked file names a host of a package registry, or a folder of the machine it was written on.

A host would break for everyone behind a mirror, a folder for everyone. The patterns are built from pieces, so that this
file does not hold what it forbids.
"""

from __future__ import annotations

import re

import pytest

from tests.house.source import ROOT, tracked

HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "debian" + ".org",
    "py" + "pi.python.org",
    "yarn" + "pkg.com",
]
HOST = re.compile("|".join(re.escape(host) for host in HOSTS), re.IGNORECASE)
FOLDER = re.compile(
    r"(?<![\w.}~-])/(?:"
    + "|".join(["ro" + "ot/", "ho" + "me/", "Us" + "ers/", "t" + "mp/", "var/t" + "mp", "wo" + "rk/", "private/va" + "r/"])
    + r")|[A-Z]:\\\\?Us"
    + "ers"
)


def lines_with(pattern: re.Pattern[str], text: str) -> list[str]:
    return [line.strip()[:120] for line in text.splitlines() if pattern.search(line)]


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        data = (ROOT / path).read_bytes()
        if b"\0" not in data[:8192]:
            found.append((str(path), data.decode("utf-8")))
    assert len(found) > 20
    return found


@pytest.mark.parametrize("pattern", [HOST, FOLDER], ids=["registry", "folder"])
def test_none(pattern: re.Pattern[str]) -> None:
    assert {path: lines for path, text in texts() if (lines := lines_with(pattern, text))} == {}


def test_no_such_name() -> None:
    assert [
        str(path)
        for path in tracked()
        if path.name in {"uv.lock", "pylock.toml", ".DS_Store"} or path.suffix in {".db", ".gguf", ".onnx", ".whl"}
    ] == []


@pytest.mark.parametrize(
    "slip", ["index https://" + HOSTS[0] + "/simple", "cd /" + "home/mira/novel", "see /" + "tmp/x.md", 'open("/' + 'root/a")']
)
def test_would_be_found(slip: str) -> None:
    assert lines_with(HOST, slip) or lines_with(FOLDER, slip)


@pytest.mark.parametrize("fine", ["src/" + "work/x", "./t" + "mp/x", "https://example.org/home/index.html", "a framework/ of"])
def test_would_pass(fine: str) -> None:
    assert not lines_with(HOST, fine)
    assert not lines_with(FOLDER, fine)
