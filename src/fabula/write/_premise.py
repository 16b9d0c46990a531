"""From what a story starts (SPEC W3): checked before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from fabula.errors import InputError
from fabula.text import LANGUAGE_NAMES, detect_language, unit

_ENGLISH_NAMES = {**LANGUAGE_NAMES, "ru": "Russian", "zh": "Chinese"}

_SURE = 60
"""Letters of Latin script from which on a language is told with some certainty."""

Mode = Literal["write", "play"]


@dataclass(frozen=True, slots=True)
class Character:
    """Someone in the cast."""

    name: str
    about: str = ""


@dataclass(frozen=True)
class Premise:
    """What a person gives. Everything but the premise itself may be left to the model.

    Lengths are in the unit of the language: words, or characters for Chinese and Japanese.
    """

    premise: str = ""
    genre: str = ""
    language: str = ""
    """ISO 639-1; empty = that of the premise."""
    mode: Mode = "write"
    title: str = ""
    setting: str = ""
    cast: tuple[Character, ...] = ()
    short_term: tuple[str, ...] = ()
    """The person's own short-term memory, one sentence each."""
    plan: str = ""
    """The person's own plan of the first passage."""
    opening: str = ""
    """Opening passages written by the person."""
    note: str = ""
    """The author's note: pinned in every prompt."""
    style: str = ""
    person: str = ""
    """first, second or third; as the prompt says it."""
    tense: str = ""
    length: int | None = None
    """Steer to this length; None = open end."""
    ending: str = ""
    """Steer to this ending."""
    step_length: tuple[int, int] | None = None
    """From and to of one passage; None = the language's equivalent of 200–400 words, or what the whole length asks for."""
    chapter_length: int | None = None
    chapters: int | None = None
    """Outline the book in so many chapters first."""
    outline: tuple[Mapping[str, str], ...] = ()
    """The person's own outline: title and plan of each chapter."""
    single_call: bool = False
    """Passage and book-keeping in one answer, as the paper has it."""
    small: bool | None = None
    """Small-model mode; None = as the model's profile says."""
    reader: str = ""
    """A sentence to the simulated author: whose taste it has."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Changed prompts by name (SPEC W7)."""
    prompt_tokens: int = 6_000
    """Most tokens of a prompt; less where the model's window is smaller."""
    series: str = ""

    def checked(self) -> Premise:
        """The premise with its language settled.

        Raises:
            InputError: says which part is wrong and what to give instead.
        """
        told = self.premise.strip() or self.opening.strip() or (self.plan.strip() and self.short_term)
        if not told:
            raise InputError(
                "There is nothing to start from: the premise is empty.",
                "Give a premise, or your own short-term memory and plan, or an opening.",
            )
        language = self.language or _language_of(self.premise or self.opening or self.plan)
        if language not in LANGUAGE_NAMES:
            raise InputError(f"{language!r} is not a language code that Fabula knows.", f"Use one of: {', '.join(sorted(LANGUAGE_NAMES))}.")
        if self.mode not in ("write", "play"):
            raise InputError(f"The mode is write or play, not {self.mode!r}.")
        for name, value in (("length", self.length), ("chapter length", self.chapter_length), ("number of chapters", self.chapters)):
            if value is not None and value < 1:
                raise InputError(f"The {name} is {value}; it must be at least 1.")
        if self.step_length is not None and not 0 < self.step_length[0] <= self.step_length[1]:
            raise InputError(
                f"The length of a passage runs from {self.step_length[0]} to {self.step_length[1]} {unit(language)}, which is no range."
            )
        if self.prompt_tokens < 800:
            raise InputError(f"A prompt of {self.prompt_tokens} tokens cannot hold a story's state.", "Give at least 800.")
        if self.chapters is not None and self.outline and self.chapters != len(self.outline):
            raise InputError(f"The outline has {len(self.outline)} chapters, and {self.chapters} are asked for.")
        return replace(self, language=language)

    def as_dict(self) -> dict[str, Any]:
        """As journaled with the run."""
        return dict(_plain(asdict(self)))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Premise:
        """As journaled; fields of later versions are ignored."""
        known = {k: v for k, v in value.items() if k in cls.__dataclass_fields__}
        known["cast"] = tuple(Character(**c) for c in known.get("cast", ()))
        known["short_term"] = tuple(known.get("short_term", ()))
        known["outline"] = tuple(known.get("outline", ()))
        if known.get("step_length"):
            known["step_length"] = tuple(known["step_length"])
        return cls(**known)

    def language_name(self) -> str:
        """The language as the prompts name it: in itself where they are in it, else in English."""
        return (LANGUAGE_NAMES if self.language in ("zh", "ru") else _ENGLISH_NAMES)[self.language]


def _language_of(text: str) -> str:
    """The language that a premise is written in. A few words in Latin script could be many languages: they are taken for English."""
    found = detect_language(text)
    latin = sum("a" <= c <= "z" or "A" <= c <= "Z" for c in text)
    if found is None or (latin > len(text) // 2 and latin < _SURE):
        return "en"
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value
