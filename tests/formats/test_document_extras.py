"""Pictures and speech: without the extra an error that names it; with it, by stand-ins, what is read and what is said about it."""

from __future__ import annotations

import sys
import types
from typing import Any, Self

import pytest

from fabula.errors import InputError
from fabula.formats import Document, _document_extras, read_document

PNG = b"\x89PNG\r\n\x1a\nrest"
WAV = b"RIFF\0\0\0\0WAVEfmt "


@pytest.mark.parametrize(
    ("name", "data", "extra"), [("a.png", PNG, "images"), ("a.wav", WAV, "speech"), ("a.jpg", b"\xff\xd8\xff\xe0", "images")]
)
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, extra: str) -> None:
    monkeypatch.setattr(_document_extras, "has_extra", lambda format: False)
    with pytest.raises(InputError, match=f"the extra '{extra}'") as caught:
        read_document(data, name)
    assert f'pip install "fabula[{extra}]"' in caught.value.next_action


class _Picture:
    def __init__(self, width: int) -> None:
        self.width = self.height = width

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def read_image(monkeypatch: pytest.MonkeyPatch, lines: list[tuple[str, float]], width: int = 100, fault: str = "") -> Document:
    def opened(_: Any) -> _Picture:
        if fault:
            raise OSError(fault)
        return _Picture(width)

    pillow = types.ModuleType("PIL")
    pillow.Image = types.SimpleNamespace(open=opened)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "PIL", pillow)
    monkeypatch.setattr(_document_extras, "has_extra", lambda format: True)
    found = types.SimpleNamespace(txts=tuple(text for text, _ in lines) or None, scores=tuple(score for _, score in lines) or None)
    monkeypatch.setattr(_document_extras, "_engines", {"image": lambda data: found})
    return read_document(PNG, "a.png")


def test_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_image(monkeypatch, [("第四把锁", 0.99), ("The harbour", 0.9), ("~~", 0.2), (" .", 0.95)])
    assert document.text == "第四把锁\nThe harbour\n"
    assert (document.format, document.kind) == ("image", "prose")
    assert document.notes[1] == "2 of 4 lines could not be made out"


def test_pictures_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="holds no text"):
        read_image(monkeypatch, [])
    with pytest.raises(InputError, match="million pixels"):
        read_image(monkeypatch, [], width=100_000)
    with pytest.raises(InputError, match="not a picture, or it is damaged"):
        read_image(monkeypatch, [], fault="truncated")


class _Model:
    def __init__(self, segments: list[tuple[float, str]], fault: str = "") -> None:
        self.segments, self.fault = segments, fault

    def transcribe(self, _: Any) -> Any:
        if self.fault:
            raise ValueError(self.fault)
        return (types.SimpleNamespace(start=at, text=f" {text}") for at, text in self.segments), types.SimpleNamespace(language="ru")


def read_speech(monkeypatch: pytest.MonkeyPatch, model: _Model) -> Document:
    monkeypatch.setattr(_document_extras, "has_extra", lambda format: True)
    monkeypatch.setattr(_document_extras, "_engines", {"small": model})
    monkeypatch.delenv(_document_extras.SPEECH_MODEL, raising=False)
    return read_document(WAV, "a.wav")


def test_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_speech(monkeypatch, _Model([(0, "Четыре лодки."), (20, "Вчера пять."), (75, "Тихо."), (3700, "Конец.")]))
    assert document.text == "Четыре лодки.\nВчера пять.\n\nТихо.\n\nКонец.\n"
    assert document.places == ((0, "0:00:00"), (27, "0:01:00"), (34, "1:01:00"))
    assert document.notes == ("written down from speech, language guessed: ru",)
    with pytest.raises(InputError, match="not a sound file, or it is damaged"):
        read_speech(monkeypatch, _Model([], fault="no stream"))
    with pytest.raises(InputError, match="holds no text"):
        read_speech(monkeypatch, _Model([]))


def test_speech_without_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub cannot be reached and nothing is on this machine: said in words, with what to do."""

    def absent(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("cannot find an appropriate cached snapshot folder")

    whisper = types.ModuleType("faster_whisper")
    whisper.WhisperModel = absent  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", whisper)
    monkeypatch.setattr(_document_extras, "has_extra", lambda format: True)
    monkeypatch.setattr(_document_extras, "_engines", {})
    monkeypatch.setenv(_document_extras.SPEECH_MODEL, "tiny")
    with pytest.raises(InputError, match="the speech model 'tiny' is not on this machine") as caught:
        read_document(WAV, "a.wav")
    assert _document_extras.SPEECH_MODEL in caught.value.next_action
