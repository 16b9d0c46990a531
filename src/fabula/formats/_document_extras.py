"""Pictures and speech as text, by the extras `images` and `speech`; without them an error says which is needed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import os
import re
import warnings
from typing import Any

from fabula.errors import InputError
from fabula.formats._document import Document, Draft

MOST_PIXELS = 60_000_000
LEAST_SURE = 0.5
"""Lines that the reader of pictures is less sure of are left out and counted."""
SPEECH_MODEL = "FABULA_SPEECH_MODEL"
"""Environment variable: a model's name (`tiny`, `small`, …) or the folder that it is in."""
_EVERY_SECONDS = 60
_engines: dict[str, Any] = {}


def has_extra(format: str) -> bool:
    """Whether the extra that reads `image` or `speech` files is installed."""
    return importlib.util.find_spec({"image": "rapidocr", "speech": "faster_whisper"}[format]) is not None


def read_image(data: bytes, name: str) -> Document:
    """The text in a picture.

    Raises:
        InputError: the extra is missing, no picture, too large, or without text.
    """
    if not has_extra("image"):
        raise _missing(name, "a picture", "images")
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as picture:
                pixels = picture.width * picture.height
        except Exception as error:
            # Pillow's readers raise many kinds of errors on damaged pictures.
            raise InputError(f"{name} is not a picture, or it is damaged ({error}).", "Save it again as PNG.") from error
        if pixels > MOST_PIXELS:
            raise InputError(f"{name} has more than {MOST_PIXELS // 1_000_000} million pixels.", "Save it smaller.")
        try:
            found = _image_engine()(data)
        except Exception as error:
            raise InputError(f"{name} cannot be read as a picture ({error}).", "Save it again as PNG.") from error
    draft = Draft(name)
    lines = list(zip(found.txts or (), found.scores or (), strict=True))
    sure = [text for text, score in lines if score >= LEAST_SURE and re.search(r"\w", text)]
    draft.notes.append("read from a picture, in Latin and Chinese letters only: letters may be wrong or missing")
    if len(sure) < len(lines):
        draft.notes.append(f"{len(lines) - len(sure)} of {len(lines)} lines could not be made out")
    draft.add("\n".join(sure))
    return draft.done("prose", "image")


def _image_engine() -> Any:
    if "image" not in _engines:
        from rapidocr import RapidOCR

        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        _engines["image"] = RapidOCR(params={"Global.log_level": "error"})
    return _engines["image"]


def read_speech(data: bytes, name: str) -> Document:
    """What is said in a sound file; each minute is a place.

    Raises:
        InputError: the extra or its model is missing, no sound, or nothing is said.
    """
    if not has_extra("speech"):
        raise _missing(name, "a sound file", "speech")
    model = _speech_engine(name)
    draft = Draft(name)
    try:
        segments, said = model.transcribe(io.BytesIO(data))
        draft.notes.append(f"written down from speech, language guessed: {said.language}")
        minute: list[str] = []
        begun = 0.0
        for segment in segments:
            if segment.start >= begun + _EVERY_SECONDS and minute:
                _add_minute(draft, begun, minute)
                minute, begun = [], segment.start // _EVERY_SECONDS * _EVERY_SECONDS
            minute.append(segment.text.strip())
        _add_minute(draft, begun, minute)
    except InputError:
        raise
    except Exception as error:
        # The decoders raise their own kinds on damaged files.
        raise InputError(f"{name} is not a sound file, or it is damaged ({error}).", "Save it again as WAV or MP3.") from error
    return draft.done("prose", "speech")


def _add_minute(draft: Draft, begun: float, lines: list[str]) -> None:
    draft.place(f"{int(begun // 3600)}:{int(begun // 60 % 60):02d}:{int(begun % 60):02d}")
    draft.add("\n".join(lines))


def _speech_engine(name: str) -> Any:
    wanted = os.environ.get(SPEECH_MODEL) or "small"
    if wanted not in _engines:
        from faster_whisper import WhisperModel

        try:
            with contextlib.redirect_stderr(io.StringIO()):
                _engines[wanted] = WhisperModel(wanted, device="cpu", compute_type="int8")
        except Exception as error:
            # No network, no such model, or a damaged folder: the hub's client has an error for each.
            raise InputError(
                f"{name} is not read: the speech model {wanted!r} is not on this machine and could not be fetched.",
                f"Connect to the network once, or set {SPEECH_MODEL} to the folder of a faster-whisper model.",
            ) from error
    return _engines[wanted]


def _missing(name: str, what: str, extra: str) -> InputError:
    return InputError(
        f"{name} is {what}, and what reads it is not installed (the extra {extra!r}).", f'Install it with `pip install "fabula[{extra}]"`.'
    )
