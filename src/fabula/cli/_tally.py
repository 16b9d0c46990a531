"""How far a reading is, from the engine's events: which chunks are being read, what was merged, what was spent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from fabula.cli._fetching import about
from fabula.cli._output import number

if TYPE_CHECKING:
    from fabula.read import Plan, Study
    from fabula.runs import Progress

State = Literal["waiting", "reading", "glanced", "read", "failed"]
"""Of a chunk; glanced: read for the first of two times."""

_ENOUGH = 3
"""Answers after which the time that is left can be told."""
DOING = {
    "merge": "putting together", "final": "writing the answer", "context": "taking the context on",
    "terms": "thinking of words to look for", "cast": "taking stock of the cast", "style": "listening to how it is told",
    "state": "making plans", "follow": "understanding the question", "answer": "answering", "chunk": "reading", "digest": "reading",
}  # fmt: skip
"""Purpose of a request → what is being done."""


class Tally:
    """Counts a reading's progress.

    Args:
        study: the reading, opened.
        plan: of it.
    """

    def __init__(self, study: Study, plan: Plan) -> None:
        shape, outcome = study.shape, study.outcome()
        self.chunks, self.way, self.plan = shape.chunks, shape.way, plan
        self._names = [_name(outcome.sources(n)) for n in range(shape.chunks)]
        self.states: list[State] = ["waiting"] * shape.chunks
        for n in range(shape.chunks):
            held = outcome.outcome(n)
            if held is not None:
                self.states[n] = "failed" if "unread" in held else "read"
        self.merges = len(shape.nodes) if shape.way == "tree" else 0
        self.merged = sum(study.run.next[node.lane] > node.height for node in shape.nodes)
        self.failures: list[tuple[int, str]] = []
        self.doing = ""
        model = study.run.model
        self.currency = model.profile.currency if model is not None else ""
        usage = study.usage()
        self.calls, self.cost = int(usage["calls"]), float(usage["cost"])
        self.tokens = int(usage["prompt_tokens"] + usage["answer_tokens"])
        self.asking = 0
        """Requests in flight."""
        self._answered, self._begun = 0, time.monotonic()
        self._before = max(plan.known_calls or 0, self.count("read") + self.count("failed")) + self.merged

    def name(self, number: int) -> str:
        """Which lines of what a chunk is."""
        return self._names[number]

    def count(self, state: State) -> int:
        """How many chunks are in a state."""
        return self.states.count(state)

    @property
    def read(self) -> int:
        """Chunks that are done, whatever came of it."""
        return self.count("read") + self.count("failed")

    # -- events ------------------------------------------------------------------------------------------------------------------

    def __call__(self, event: Progress) -> None:
        """Take an event of the run."""
        handler = getattr(self, f"_on_{type(event).__name__.lower()}", None)
        if handler is not None:
            handler(event)

    def _on_stepbegun(self, event: Any) -> None:
        lane, _, place = event.step.partition(".")
        if lane in ("0", "d") and place.isdigit():
            self._light(int(place))
        elif self.way == "chain" and event.step == "reading" and event.time < self.chunks:
            self._light(event.time)

    def _light(self, chunk: int) -> None:
        if self.states[chunk] in ("waiting", "glanced"):
            self.states[chunk] = "reading"

    def _on_asked(self, event: Any) -> None:
        self.calls += 1
        self.asking += 1
        self.doing = DOING.get(event.purpose, event.purpose)
        if self.way == "ask" and event.purpose == "chunk":
            place = event.part.rstrip("ab")
            if place.isdigit():
                self._light(int(place))

    def _on_answered(self, event: Any) -> None:
        self.asking = max(0, self.asking - 1)
        self.tokens += event.usage.prompt_tokens + event.usage.answer_tokens
        self.cost += event.usage.cost
        self._answered += not event.reason

    def _on_stepdone(self, event: Any) -> None:
        output = event.output if isinstance(event.output, dict) else {}
        kind = output.get("kind")
        if kind == "chunk":
            self._done(output["chunk"], output.get("unread", ""))
        elif kind == "digest":
            self.states[output["chunk"]] = "glanced"
        elif kind == "round":
            for chunk in output["chunks"]:
                self._done(chunk, "")
        elif kind in ("merge", "final"):
            self.merged += 1

    def _done(self, chunk: int, unread: str) -> None:
        self.states[chunk] = "failed" if unread else "read"
        if unread:
            self.failures.append((chunk, unread))

    # -- in words ------------------------------------------------------------------------------------------------------------------

    def where(self) -> str:
        """How many chunks are read, and what was merged."""
        parts = [f"{number(self.read)} of {number(self.chunks)} chunks"]
        glanced = self.count("glanced")
        if glanced:
            parts.append(f"{number(glanced)} looked through")
        if self.merges and self.merged:
            parts.append(f"{number(self.merged)} of {number(self.merges)} merges")
        failed = self.count("failed")
        if failed:
            parts.append(f"{number(failed)} could not be read")
        return " · ".join(parts)

    def spent(self) -> str:
        """Calls, tokens, cost, and the time that is left."""
        parts = [f"{number(self.calls)} call{'s' if self.calls != 1 else ''}", f"{number(self.tokens)} tokens"]
        if self.cost:
            parts.append(f"{self.cost:.4f} {self.currency}".rstrip())
        left = self.left()
        return " · ".join([*parts, f"{about(left)} left"] if left else parts)

    def left(self) -> float:
        """Seconds that are left, by what the answers took so far; 0 = not known yet."""
        remaining = self.plan.calls - self._before - self._answered
        if self._answered < _ENOUGH or remaining < 1:
            return 0.0
        return (time.monotonic() - self._begun) / self._answered * remaining

    def now(self) -> str:
        """What is being read, or done."""
        reading = [n for n, state in enumerate(self.states) if state == "reading"]
        if not reading:
            return self.doing
        names = list(dict.fromkeys(self._names[n] for n in reading))
        return f"reading {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _name(sources: list[dict[str, Any]]) -> str:
    """`a.py`, `a.py:120-240`, `a.py and 3 more`."""
    first = sources[0]
    if len(sources) > 1:
        return f"{first['path']} and {len(sources) - 1} more"
    begin, end = first["lines"]
    return f"{first['path']}:{begin}-{end}" if begin > 1 else str(first["path"])
