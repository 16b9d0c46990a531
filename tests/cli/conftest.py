"""Running the command line inside the test's process, as a person would: arguments and standard input in, output and exit code out."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabula.cli import main
from fabula.models import Request, Scripted


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        lines = self.out.strip().splitlines()
        assert len(lines) == 1, f"stdout holds more than one JSON object: {self.out!r}"
        return json.loads(lines[0])


Fabula = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a library, settings and models of its own."""
    monkeypatch.chdir(tmp_path)
    for name, folder in {"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FABULA_MODEL", "scripted")
    monkeypatch.setenv("FABULA_LIBRARY", str(tmp_path / "novels.db"))
    return tmp_path


@pytest.fixture
def fabula(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fabula:
    """`fabula("runs", "list", stdin="")`."""

    def run(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = main(list(arguments))
        seen = capsys.readouterr()
        return Done(code, seen.out, seen.err)

    return run


_written: dict[str, bytes] = {}
"""The story of the fixture: its run and its library, written once."""


@pytest.fixture
def story(fabula: Fabula, home: Path) -> str:
    """A story of a beginning and two passages in the library; its run."""
    library = home / "novels.db"
    if not _written:
        done = fabula("write", "A lighthouse keeper finds a letter.", "--steps", "3", "--json", "--seed", "7")
        assert done.code == 0, done.err
        _written[str(done.json["run"])] = library.read_bytes()
    run, content = next(iter(_written.items()))
    library.write_bytes(content)
    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that reaches the model from now on."""
    requests: list[Request] = []

    class Heard(Scripted):
        def stream(self, request: Request) -> Any:
            requests.append(request)
            return super().stream(request)

    monkeypatch.setattr("fabula.models.open_model", lambda *_, **__: Heard())
    return requests


def prompts(requests: list[Request]) -> str:
    """All that the model was told, as one text."""
    return "\n".join(message.content for request in requests for message in request.messages)
