"""`fabula model`: what there is, what is chosen and whether it works."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Fabula


def test_list(fabula: Fabula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FABULA_MODEL")
    models = fabula("model", "list", "--json").json["models"]
    assert [m["name"] for m in models if m["chosen"] and m["kind"] == "chat"] == [
        m["name"] for m in models if m["default"] and m["kind"] == "chat"
    ]
    assert all(m["licence"] for m in models)
    plain = fabula("model", "list").out
    assert "Apache-2.0" in plain
    assert "memory" in plain


def test_use_writes_the_person_s_file(fabula: Fabula, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FABULA_MODEL")
    path = home / "config" / "fabula" / "fabula.toml"
    assert fabula("model", "use", "http://127.0.0.1:11434/v1", "--name", "llama3.2:3b", "--small-model", "tiny").code == 0
    assert tomllib.loads(path.read_text()) == {"model": "llama3.2:3b", "base_url": "http://127.0.0.1:11434/v1", "small_model": "tiny"}
    done = fabula("model", "use", "embedded", "--json")
    assert done.json["in_use"] == "embedded"
    assert tomllib.loads(path.read_text()) == {"model": "embedded"}
    assert fabula("model", "use", "gpt-4.1-mini").code == 0
    assert "api.openai.com" in fabula("model", "use", "gpt-4.1-mini").out


def test_use_says_where_something_else_wins(fabula: Fabula) -> None:
    assert "FABULA_MODEL says otherwise" in fabula("model", "use", "embedded").out


def test_use_of_an_own_file(fabula: Fabula, home: Path) -> None:
    assert fabula("model", "use", "missing.gguf").code == 2
    Path("bad.gguf").write_bytes(b"nothing")
    assert fabula("model", "use", "bad.gguf").code == 2
    Path("own.gguf").write_bytes(b"GGUF" + b"\0" * 64)
    done = fabula("model", "use", "own.gguf", "--json")
    assert done.json["model"] == str(home / "own.gguf")
    assert fabula("model", "use", "http://127.0.0.1:1/v1").code == 2, "an address alone names no model"


def test_a_key_goes_to_the_keyring_or_nowhere(fabula: Fabula, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, str] = {}
    monkeypatch.setattr("fabula.models.store_key", lambda url, key: kept.update({url: key}))
    done = fabula("model", "use", "big", "--base-url", "https://models.example.com/v1", "--ask-key", stdin="sk-very-secret\n")
    assert done.code == 0, done.err
    assert kept == {"https://models.example.com/v1": "sk-very-secret"}
    assert "sk-very-secret" not in done.out + done.err
    assert not [path for path in home.rglob("*") if path.is_file() and b"sk-very-secret" in path.read_bytes()]


def test_check(fabula: Fabula) -> None:
    done = fabula("model", "check")
    assert done.code in (0, 4), done.err
    assert "scripted" in done.out
    report = fabula("model", "check", "--json").json
    assert [trial["kind"] for trial in report["trials"]] == ["plain", "structured", "streamed"]


def test_check_of_what_is_not_there_ends_with_4(fabula: Fabula) -> None:
    done = fabula("model", "check", "--base-url", "http://127.0.0.1:9/v1", "--model", "x")
    assert done.code == 4
    assert "→" in done.out
