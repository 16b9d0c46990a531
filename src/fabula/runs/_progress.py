"""The event stream of a run: what the command line shows as progress and the server sends as events. Never journaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fabula.models import Usage


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A step starts (again, if it was interrupted)."""

    run: str
    step: str
    time: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step is committed; `output` is what it returned."""

    run: str
    step: str
    time: int
    output: Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request is sent; `prompt_tokens` is our estimate."""

    purpose: str
    part: str
    attempt: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """A delta of an answer."""

    purpose: str
    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A verdict: `reason` is empty when the answer was accepted."""

    purpose: str
    part: str
    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that the person should know, e.g. that a knob was dropped or that recall is lexical only."""

    text: str


Progress = StepBegun | StepDone | Asked | Wrote | Answered | Noted
Listener = Callable[[Progress], None]


def silent(event: Progress) -> None:
    """A listener that ignores everything."""
