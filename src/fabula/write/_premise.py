"""From what a story starts (SPEC W3): checked before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from fabula.errors import InputError
from fabula.text import LANGUAGE_NAMES, detect_language, unit
from fabula.write._existing import ManuscriptChapter, Remembered, check_existing, sample

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
    plans: tuple[str, ...] = ()
    """Candidate plans of the first passage: a person chooses among them, else the simulated author."""
    opening: str = ""
    """Opening passages written by the person."""
    manuscript: tuple[ManuscriptChapter, ...] = ()
    """A whole book, of any length, that is to be continued: it stands unchanged before what is written, in chapters of its own."""
    memories: tuple[Remembered, ...] = ()
    """What is known of the manuscript, by a reading of it: the long-term memory of the first step."""
    reading: str = ""
    """The run of that reading."""
    note: str = ""
    """The author's note: pinned in every prompt."""
    style: str = ""
    person: str = ""
    """first, second or third; as the prompt says it."""
    tense: str = ""
    length: int | None = None
    """Steer to this length; None = open end. After a manuscript: so much anew, beyond it."""
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
        self._check_start()
        language = self.language or _language_of(
            sample(self.manuscript) or self.premise or self.opening or self.plan or " ".join(self.plans)
        )
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
        plans = tuple(plan.strip() for plan in self.plans if plan.strip())
        return replace(self, language=language, plans=plans, manuscript=tuple(self.manuscript), memories=tuple(self.memories))

    def _check_start(self) -> None:
        """Raises InputError where there is nothing to start from, or two beginnings."""
        check_existing(self.manuscript, self.memories)
        planned = self.plan.strip() or any(plan.strip() for plan in self.plans)
        known = bool(self.short_term or self.manuscript)
        if not (self.premise.strip() or self.opening.strip() or (planned and known) or (self.manuscript and self.outline)):
            if self.manuscript:
                raise InputError(
                    "Nothing says how the manuscript goes on.", "Give plans of the next passage, a plan, an outline, or a premise."
                )
            raise InputError(
                "There is nothing to start from: the premise is empty.",
                "Give a premise, or your own short-term memory and plan, or an opening.",
            )
        if self.manuscript and self.opening.strip():
            raise InputError("A manuscript and an opening are both given.", "Make the opening the manuscript's last chapter.")

    def as_dict(self) -> dict[str, Any]:
        """As journaled with the run. Manuscript and memories are left out: they are state and records of the run, and stand there once."""
        value = dict(_plain(asdict(replace(self, manuscript=(), memories=()))))
        return {name: held for name, held in value.items() if name not in ("manuscript", "memories")}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Premise:
        """As journaled; fields of later versions are ignored."""
        known = {k: v for k, v in value.items() if k in cls.__dataclass_fields__}
        known["cast"] = tuple(Character(**c) for c in known.get("cast", ()))
        known["short_term"] = tuple(known.get("short_term", ()))
        known["plans"] = tuple(known.get("plans", ()))
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
