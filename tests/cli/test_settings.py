"""Flags over environment over files over defaults; a mistake is named with its file and key; no secret is read or shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.settings import change_file, find_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "config"


def find(config: Path, flags: dict[str, object] | None = None, **environment: str):
    return find_settings(flags, environment=environment, folder=config.parent / "work", config=config)


def test_defaults(config: Path) -> None:
    found = find(config)
    assert (found.model, found.embedder, found.base_url, found.small_model) == ("embedded", "e5", "", "")
    assert found.library.endswith("fabula.db")
    assert found.sources == {}


def test_order(config: Path) -> None:
    (config / "fabula.toml").write_text('model = "from-config"\nembedder = "none"\nsmall_model = "small"\n')
    (config.parent / "work" / "fabula.toml").write_text('model = "from-folder"\n')
    assert find(config).model == "from-folder"
    assert find(config).embedder == "none"
    assert find(config, FABULA_MODEL="from-env").model == "from-env"
    assert find(config, {"model": "from-flag"}, FABULA_MODEL="from-env").model == "from-flag"
    assert find(config, {"model": None}, FABULA_MODEL="from-env").model == "from-env"
    assert find(config, {"model": "from-flag"}).sources["model"] == "--model"
    assert find(config).sources["small_model"] == str(config / "fabula.toml")


def test_library_is_meant_from_the_file(config: Path) -> None:
    (config / "fabula.toml").write_text('library = "books/mine.db"\n')
    assert find(config).library == str(config / "books" / "mine.db")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modell = 'x'", "modell"),
        ("model = 3", "model"),
        ("model = ", "not TOML"),
        ("concurrency = 0", "concurrency"),
        ("concurrency = true", "concurrency"),
        ("base_url = 'localhost:8080'", "base_url"),
        ("library = 'postgresql://host/db'", "library"),
        ("profile = 'x'", "profile"),
        ("[profile]\nwindowe = 3", "windowe"),
        ("[profile]\nwindow = -1", "window"),
    ],
)
def test_a_mistake_is_named(config: Path, text: str, said: str) -> None:
    (config / "fabula.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        find(config)
    assert str(config / "fabula.toml") in caught.value.message
    assert said in caught.value.message
    assert caught.value.next_action


def test_bad_flag_is_named(config: Path) -> None:
    with pytest.raises(InputError, match="--base-url"):
        find(config, {"base_url": "ftp://x"})


def test_no_secret_from_a_file(config: Path) -> None:
    (config / "fabula.toml").write_text('api_key = "sk-very-secret"\n')
    with pytest.raises(InputError) as caught:
        find(config)
    assert "sk-very-secret" not in str(caught.value.as_dict())


def test_key_is_not_sent_where_a_working_folder_says(config: Path) -> None:
    (config.parent / "work" / "fabula.toml").write_text('base_url = "https://models.example.com/v1"\n')
    with pytest.raises(InputError, match="FABULA_API_KEY"):
        find(config, FABULA_API_KEY="sk-1")
    assert find(config).base_url
    assert find(config, FABULA_API_KEY="sk-1", FABULA_BASE_URL="https://models.example.com/v1").base_url
    (config.parent / "work" / "fabula.toml").write_text('base_url = "http://127.0.0.1:8080/v1"\n')
    assert find(config, FABULA_API_KEY="sk-1").base_url


def test_settings_hold_no_key(config: Path) -> None:
    assert "sk-1" not in repr(find(config, FABULA_API_KEY="sk-1"))


def test_change_keeps_the_rest(config: Path) -> None:
    path = config / "fabula.toml"
    path.write_text('# mine\nmodel = "a"  # old\nembedder = "none"\n\n[profile]\nwindow = 4096\n')
    change_file(path, {"model": 'b "quoted" 模型', "base_url": "http://127.0.0.1:1/v1", "small_model": None})
    text = path.read_text("utf-8")
    assert text.startswith("# mine\n")
    assert "window = 4096" in text
    found = find(config)
    assert (found.model, found.base_url, found.embedder) == ('b "quoted" 模型', "http://127.0.0.1:1/v1", "none")
    change_file(path, {"base_url": None})
    assert find(config).base_url == ""


def test_change_that_would_break_the_file(config: Path) -> None:
    path = config / "fabula.toml"
    path.write_text('model = """\na\n"""\n')
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot be changed"):
        change_file(path, {"model": "b"})
    assert path.read_bytes() == before
