"""How often a server is asked (SPEC R7): over HTTP, 100 chunks; and again after one edit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from fabula.models import Model, ModelChoice, open_model
from fabula.models.test_server import ScriptedServer
from fabula.store import open_store
from tests.read.models import Copyist
from tests.read.reading import long_text, piece, read


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(Copyist(300), keep_bodies=False) as running:
        yield running


def model_at(server: ScriptedServer, concurrency: int = 8) -> Model:
    profile = {"window": 32_768, "max_answer": 4_096, "concurrency": concurrency}
    return open_model(ModelChoice(model="reader", base_url=server.address, api_key="none", profile=profile))


async def test_calls_of_each_way(tmp_path: Path, server: ScriptedServer) -> None:
    path = tmp_path / "hundred.md"
    path.write_text(long_text(100), "utf-8")
    model = model_at(server)
    asked = {}
    for way in ("chain", "tree"):
        before = len(server.log)
        with closing(open_store(":memory:")) as store:
            result = await read(store, [path], model, way=way)
        chunks = result["coverage"]["chunks"]
        asked[way] = len(server.log) - before
        assert result["usage"]["calls"] == asked[way]
        assert result["coverage"]["read"] == chunks
    await model.close()
    assert 95 <= chunks <= 105
    assert asked["chain"] <= chunks + 1
    assert asked["tree"] <= chunks + 10


@pytest.mark.parametrize("edit", ["change", "insert", "delete"])
async def test_after_one_edit(tmp_path: Path, server: ScriptedServer, edit: str) -> None:
    """A changed sentence, a sentence more, a sentence less: the chunk, and the path above it."""
    path, text = tmp_path / "hundred.md", long_text(100)
    path.write_text(text, "utf-8")
    model = model_at(server)
    with closing(open_store(":memory:")) as store:
        first = await read(store, [path], model, way="tree")
        before = len(server.log)
        again = await read(store, [path], model, way="tree")
        assert len(server.log) == before, "nothing changed, and nothing was asked"
        assert again["final_summary"] == first["final_summary"]
        fact = piece(31).split("vault ")[1].split(".")[0]
        assert text.count(fact) == 1
        new = {"change": "Nowhere is 9999", "insert": f"{fact}. Someone else came by", "delete": ""}[edit]
        path.write_text(text.replace(f"vault {fact}", f"vault {new}"), "utf-8")
        result = await read(store, [path], model, way="tree")
    await model.close()
    assert 0 < len(server.log) - before <= 4
    assert result["usage"]["calls"] == len(server.log) - before


async def test_a_file_of_a_folder(tmp_path: Path, server: ScriptedServer) -> None:
    """One edited file of many reads its chunk and the path above it; the answer counts only what this run asked."""
    folder = tmp_path / "streets"
    folder.mkdir()
    for n in range(60):
        (folder / f"street-{n:02}.md").write_text(piece(n), "utf-8")
    model = model_at(server)
    with closing(open_store(":memory:")) as store:
        await read(store, [folder], model, way="tree")
        before = len(server.log)
        (folder / "street-17.md").write_text(piece(17, code=8888), "utf-8")
        result = await read(store, [folder], model, way="tree")
    await model.close()
    assert 0 < len(server.log) - before <= 4
    assert "8888" in str(result["claims"])
