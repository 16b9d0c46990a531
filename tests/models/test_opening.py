from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fabula.errors import AuthFailed, InputError
from fabula.models import (
    Concurrent,
    Message,
    Misbehaving,
    ModelChoice,
    OpenAIModel,
    Request,
    Scripted,
    complete,
    find_key,
    forget_key,
    open_model,
    store_key,
)
from fabula.models.test_server import ScriptedServer

ASKED = Request((Message("user", "Write about the sea."),))


class Keyring:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch, locked: bool = False) -> Keyring:
        import keyring
        from keyring.errors import KeyringLocked, PasswordDeleteError

        def guarded(act: Any) -> Any:
            def call(*arguments: str) -> Any:
                if locked:
                    raise KeyringLocked("locked")
                return act(*arguments)

            return call

        def delete(service: str, user: str) -> None:
            if (service, user) not in self.kept:
                raise PasswordDeleteError("none")
            del self.kept[service, user]

        monkeypatch.setattr(keyring, "get_password", guarded(lambda s, u: self.kept.get((s, u))))
        monkeypatch.setattr(keyring, "set_password", guarded(lambda s, u, p: self.kept.update({(s, u): p})))
        monkeypatch.setattr(keyring, "delete_password", guarded(delete))
        return self


def test_where_keys_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Keyring().install(monkeypatch)
    own, other = "https://api.openai.com/v1", "https://example.org:8443/v1"
    assert find_key(other, {}) is None
    store_key(other, "sk-ring")
    assert ring.kept == {("fabula", "example.org:8443"): "sk-ring"}
    assert find_key(other, {}) == "sk-ring"
    assert find_key(other, {"FABULA_API_KEY": "sk-env"}) == "sk-env"
    assert find_key(own, {"OPENAI_API_KEY": "sk-openai"}) == "sk-openai"
    assert find_key(own, {"OPENAI_API_KEY": "sk-openai", "FABULA_API_KEY": "sk-env"}) == "sk-env"
    forget_key(other)
    forget_key(other)
    assert find_key(other, {}) is None


def test_a_key_for_openai_goes_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    Keyring().install(monkeypatch)
    environment = {"OPENAI_API_KEY": "sk-openai"}
    for address in ("https://example.org/v1", "https://api.openai.com.example.org/v1", "http://127.0.0.1:8080/v1"):
        assert find_key(address, environment) is None
    assert find_key("http://127.0.0.1:8080/v1", environment | {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}) == "sk-openai"


def test_a_locked_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    Keyring().install(monkeypatch, locked=True)
    assert find_key("https://example.org/v1", {}) is None
    forget_key("https://example.org/v1")
    with pytest.raises(InputError) as caught:
        store_key("https://example.org/v1", "sk-secret")
    assert "FABULA_API_KEY" in caught.value.next_action
    assert "sk-secret" not in repr(caught.value.as_dict())


def test_keys_are_in_no_repr() -> None:
    choice = ModelChoice("m", "https://example.org/v1", "sk-secret")
    model = open_model(choice)
    assert "sk-secret" not in repr(choice) + repr(model) + repr(choice.small())
    assert "sk-secret" not in repr(ModelChoice("m", "https://example.org/v1", "sk-secret", small_model="s").small())


async def test_an_address() -> None:
    async with ScriptedServer(key="sk-right") as server:
        choice = ModelChoice("scripted", server.address, "sk-right", {"window": 5000, "concurrency": 2}, small_model="tiny")
        model = open_model(choice)
        assert isinstance(model, Concurrent)
        assert isinstance(model.inner, OpenAIModel)
        assert model.profile.window == 5000
        answer = await complete(model, ASKED)
        assert answer.text == (await complete(Scripted(), ASKED)).text
        await model.close()
        small = choice.small()
        assert small == ModelChoice("tiny", server.address, "sk-right")
        assert small.small() is None
        wrong = open_model(ModelChoice("scripted", server.address), environment={"FABULA_API_KEY": "sk-wrong"})
        with pytest.raises(AuthFailed):
            await complete(wrong, ASKED)
        await wrong.close()


def test_choices_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    Keyring().install(monkeypatch)
    for choice in (
        ModelChoice("rules"),
        ModelChoice("m", "127.0.0.1:8080/v1"),
        ModelChoice("m", "ftp://example.org"),
        ModelChoice("m", "http://"),
        ModelChoice("m", "https://example.org/v1", profile={"windw": 1}),
        ModelChoice("scripted", profile={"windw": 1}),
        ModelChoice("scripted:many"),
        ModelChoice("misbehaving:lopp"),
        ModelChoice("misbehaving:loop@often"),
    ):
        with pytest.raises(InputError) as caught:
            open_model(choice)
        assert caught.value.next_action
    with pytest.raises(AuthFailed, match="no key") as auth:
        open_model(ModelChoice("gpt-4o"), environment={})
    assert "embedded" in auth.value.next_action


async def test_scripted_choices() -> None:
    model = open_model(ModelChoice("scripted:300", profile={"window": 9000}))
    assert model.profile.window == 9000
    assert len((await complete(model, ASKED)).text.split()) > 290
    spoilt = open_model(ModelChoice("misbehaving:empty@1"))
    assert isinstance(spoilt, Misbehaving)
    assert (await complete(spoilt, ASKED)).text == ""
    assert isinstance(open_model(ModelChoice("misbehaving")), Misbehaving)


@pytest.mark.parametrize("name", ["embedded", "qwen2.5-coder-0.5b-instruct-q4_k_m"])
def test_embedded_choices_start_nothing(name: str, tmp_path: Any) -> None:
    model = open_model(ModelChoice(name, profile={"window": 4096, "concurrency": 1}), cache_dir=tmp_path)
    assert model.name.startswith("qwen2.5-coder")
    assert (model.profile.window, model.profile.concurrency, model.profile.structured) == (4096, 1, "grammar")
    assert model.profile.price_known
    assert list(tmp_path.iterdir()) == []


def test_importing_loads_no_sdk() -> None:
    heavy = ["openai", "httpx2", "jsonschema", "yaml", "jiter", "pydantic", "keyring", "numpy", "xllamacpp", "tiktoken"]
    code = f"import sys, fabula.models; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
