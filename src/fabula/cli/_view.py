"""What a person sees while a book is written: the engine's events as blocks of text and a status."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fabula.cli._draft import Draft
from fabula.cli._fetching import Fetching, about
from fabula.cli._output import number, unit_name

if TYPE_CHECKING:
    from fabula.cli._paper import Paper
    from fabula.runs import Progress
    from fabula.write import Novel

_DOING = {
    "beginning": "inventing the story", "outline": "outlining the chapters", "author": "choosing a plan", "passage": "writing",
    "books": "remembering and planning", "rewrite": "rewriting", "rederive": "remembering the changed text",
}  # fmt: skip


_PAUSE = 0.5
"""Seconds between two states of the status line while text streams."""


class View:
    """Listens to a run. Give it the novel once it is open.

    Args:
        paper: where to show.
        plans: show the plan that the author chose before each passage.
    """

    def __init__(self, paper: Paper, *, plans: bool = True) -> None:
        self.paper, self.plans = paper, plans
        self.fetching = Fetching(paper.status, paper.step)
        self.novel: Novel | None = None
        self.steps_wanted: int | None = None
        self.asks = False
        """A person is asked after each passage, and shown the plans then."""
        self._draft = Draft("")
        self._block = ""
        self._said: set[str] = set()
        self._shown = ""
        """Prose shown of the running step."""
        self._doing = ""
        self._begun = self._told = time.monotonic()
        self._length_then = 0
        self._steps_then = self._steps = 0

    def attach(self, novel: Novel, steps: int | None = None) -> None:
        """The book is open; `steps`: how many are asked for."""
        self.novel, self.steps_wanted = novel, steps
        self._begun, self._length_then = time.monotonic(), novel.length
        self._steps_then = self._steps = len(novel.steps())

    # -- events ------------------------------------------------------------------------------------------------------------

    def __call__(self, event: Progress) -> None:
        """Take an event of the run."""
        kind = type(event).__name__
        handler = getattr(self, f"_on_{kind.lower()}")
        handler(event)

    def _on_stepbegun(self, _event: Any) -> None:
        self._said, self._shown = set(), ""

    def _on_asked(self, event: Any) -> None:
        self._draft = Draft(event.purpose, event.part)
        self._doing = _DOING.get(event.purpose, event.purpose)
        if event.purpose == "passage" and self._block == "passage":
            self._start("passage", again=True)
        self._tell()

    def _on_wrote(self, event: Any) -> None:
        if (event.purpose, event.part) != (self._draft.purpose, self._draft.part):
            self._draft = Draft(event.purpose, event.part)
        for name, text in self._draft.add(event.text):
            if (name == "plan" and not self.plans) or (name == "title" and not self.paper.takes_back):
                continue
            self._start(name)
            self._said.add(name)
            if name == "passage":
                self._shown += text
            self.paper.add(text)
        if time.monotonic() - self._told > _PAUSE:
            self._tell()

    def _on_answered(self, event: Any) -> None:
        if event.reason:
            if self._draft.shown:
                self._remark(f"(Not kept: {event.reason}.)")
                self._shown = ""
            return
        if event.purpose == "author" and self.plans and "plan" not in self._said:
            self._chosen()
        elif event.purpose != "passage":
            self._stop()
        self._tell()

    def _on_noted(self, event: Any) -> None:
        self._remark(event.text)

    def _on_stepdone(self, event: Any) -> None:
        output = event.output if isinstance(event.output, dict) else {}
        kind = output.get("kind")
        if kind == "beginning":
            self._beginning()
        elif kind == "outline":
            self._outline(output)
        elif kind in ("passage", "rewrite"):
            self._whole(output)
        elif kind == "rederive":
            self._remark(f"Memory was made anew from {', '.join(output['passages'])}.")
        self._stop()
        self._steps += 1
        self._doing = self._shown = ""
        self.paper.step(self.status())

    # -- blocks --------------------------------------------------------------------------------------------------------------

    def _start(self, name: str, *, again: bool = False) -> None:
        if self._block != name or again:
            self.paper.begin(name)
            self._block = name

    def _stop(self) -> None:
        self.paper.end()
        self._block = ""

    def _say(self, name: str, text: str) -> None:
        if text:
            self._start(name, again=True)
            self.paper.add(text)
            self._stop()

    def _remark(self, text: str) -> None:
        self._stop()
        self._say("note", text)

    def _chosen(self) -> None:
        from fabula.models import extract_json

        value = extract_json(self._draft.raw)
        if self.novel is None or not isinstance(value, dict):
            return
        plans, choice = self.novel.plans, value.get("choice")
        if isinstance(choice, int) and 0 < choice <= len(plans):
            self._say("plan", plans[choice - 1])

    def _beginning(self) -> None:
        if self.novel is None:
            return
        piece = self.novel.run.piece
        if "title" not in self._said:
            self._say("title", self.novel.title)
        if "setting" not in self._said:
            self._say("setting", piece("setting", default=""))
        self._say("cast", ", ".join(c["name"] for c in piece("cast", default=[])))
        plan = self.novel.plan
        if plan and self.plans and not self.asks:
            self._say("plan", plan["text"])

    def _outline(self, output: dict[str, Any]) -> None:
        if self.novel is not None:
            chapters = [(n, self.novel.run.piece(f"outline:{n - 1}")) for n in output["chapters"]]
            self._say("note", "\n".join(f"{n}. {held['title']}" for n, held in chapters if held))

    def _whole(self, output: dict[str, Any]) -> None:
        """The passage as it was kept, where it was not seen coming or was cut at its last finished sentence."""
        if self.novel is None:
            return
        text = self.novel.passage(output["passage"]).text if output["kind"] == "passage" else output["after"]
        if not self._shown:
            self._stop()
            self._say("passage", text)
        elif not _same_end(text, self._shown):
            self._remark(f"(Kept up to: “…{text[-40:].lstrip()}”)")

    # -- status ----------------------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        self._told = time.monotonic()
        self.paper.status(self.status())

    def status(self) -> str:
        """Steps, length, tokens, cost, time left, and what is being done."""
        if self.novel is None:
            return self._doing
        novel, parts = self.novel, [f"step {self._steps}"]
        length, target = novel.length + self._coming(), novel.goal
        parts.append(length_words(length, target, novel.length_before, novel.language))
        usage = novel.run.store.usage(novel.id)
        parts.append(f"{number(usage['prompt_tokens'] + usage['answer_tokens'])} tokens")
        if usage["cost"]:
            parts.append(f"{usage['cost']:.4f} {self._currency()}")
        left = self._left(length, target)
        if left:
            parts.append(left)
        if self._doing:
            parts.append(self._doing)
        return " · ".join(parts)

    def _coming(self) -> int:
        """Length of the passage that is being written."""
        from fabula.text import length

        return length(self._shown, self.novel.language) if self.novel is not None and self._shown else 0

    def _currency(self) -> str:
        model = self.novel.run.model if self.novel is not None else None
        return model.profile.currency if model is not None else ""

    def _left(self, length: int, target: int | None) -> str:
        seconds = time.monotonic() - self._begun
        if target and length > self._length_then and target > length:
            return f"{about(seconds / (length - self._length_then) * (target - length))} left"
        done = self._steps - self._steps_then
        if self.steps_wanted and 0 < done < self.steps_wanted:
            return f"{about(seconds / done * (self.steps_wanted - done))} left"
        return ""


def length_words(length: int, goal: int | None, before: int, language: str) -> str:
    """`475 of 3,000 words`; after a manuscript only what was written anew counts: `475 of 3,000 words anew`."""
    target = f" of {number(goal - before)}" if goal else ""
    return f"{number(length - before)}{target} {unit_name(language)}{' anew' if before else ''}"


def _same_end(kept: str, shown: str) -> bool:
    a, b = "".join(kept.split()), "".join(shown.split())
    return a[-30:] == b[-30:] or b[-30:] in a
