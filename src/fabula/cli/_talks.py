"""A conversation about a reading, as `fabula runs show|export` gives it: its questions, and their answers with the lines they rest on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fabula.cli._output import shell_word, show

if TYPE_CHECKING:
    from fabula.read import Answer, Study
    from fabula.store import Store

_LANE = "questions"


def answers(study: Study) -> list[Answer]:
    """Every answer of a conversation, the first first."""
    outputs = (step.output for step in study.run.store.steps(study.run.line) if step.step == _LANE)
    return [study._answer(o) for o in outputs if isinstance(o, dict) and o.get("kind") == "answer"]  # noqa: SLF001 (as `ask` gives it)


def waiting(study: Study) -> str:
    """The question that was asked and not answered, since the command was stopped; empty where there is none."""
    asked = study.run.piece("question", lane=_LANE)
    answered = max((step.time for step in study.run.store.steps(study.run.line) if step.step == _LANE), default=-1)
    return str(asked["text"]) if asked and asked["time"] > answered else ""


def talk_dict(store: Store, study: Study) -> dict[str, Any]:
    """A conversation as plain values: run, reading, title, answers as `fabula ask --json` gives them, the question that waits."""
    from fabula.cli._going import usage_of

    return {
        "run": study.id, "kind": "read", "reading": study.run.row.parent, "title": study.title,
        "answers": [asdict(answer) for answer in answers(study)], "waiting": waiting(study), "usage": usage_of(store, study.id),
    }  # fmt: skip


def print_talk(study: Study) -> None:
    """A conversation as a person reads it."""
    from fabula.cli._ask import print_asked

    said = answers(study)
    show(study.title, "bold")
    show(f"run {study.id} · {len(said)} question{'s' if len(said) != 1 else ''} about reading {study.run.row.parent}", "dim")
    show()
    for answer in said:
        print_asked(answer, alone=False)
    left = waiting(study)
    if left:
        show(f"? {left}", "bold")
        show(f"Not answered yet: `fabula ask {study.id} {shell_word(left)}`")
    show(f'Ask on: `fabula ask {study.id} "…"`; what was read: `fabula runs show {study.run.row.parent}`', "dim")
