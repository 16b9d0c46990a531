"""What the tests of reading share: a reader that says only what it is given, and texts with facts planted in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Fabula
from tests.read.models import NAMES, Copyist, planted

PARTS = 8


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Copyist:
    """The model of the commands, and what it was asked."""
    model = Copyist()
    monkeypatch.setattr("fabula.models.open_model", lambda *_, **__: model)
    return model


_read: dict[str, bytes] = {}
"""The reading of the fixture: its run and its library, read once."""


@pytest.fixture
def reading(fabula: Fabula, home: Path, reader: Copyist) -> str:
    """A reading of the vaults in the library; its run."""
    vaults(home)
    library = home / "novels.db"
    if not _read:
        run = str(read(fabula, "vaults", "--task", "List the codes.")["run"])
        _read[run] = library.read_bytes()
    run, content = next(iter(_read.items()))
    library.write_bytes(content)
    reader.requests.clear()
    return run


def vaults(folder: Path, count: int = PARTS) -> Path:
    """A folder of texts with a fact in each, a picture that is no text, and a file that gives orders."""
    where = folder / "vaults"
    where.mkdir()
    for number, text in enumerate(planted(count, words=8)):
        (where / f"part-{number:02}.md").write_text(text, "utf-8")
    (where / "photo.bin").write_bytes(bytes(range(256)) * 8)
    return where


def read(fabula: Fabula, *arguments: str, code: int = 0) -> dict[str, object]:
    """Read in chunks of 300 tokens, and return what `--json` printed."""
    done = fabula("read", *arguments, "--chunk-tokens", "300", "--json")
    assert done.code == code, done.err
    found: dict[str, object] = done.json
    return found


def fact(number: int) -> str:
    """What stands in a part."""
    return f"The code of vault {NAMES[number]} is {4000 + 37 * number}."
