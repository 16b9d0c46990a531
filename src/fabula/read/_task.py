"""What a person wants from a reading (SPEC R1, R5), and what is fixed at its start: sizes in tokens, by count (R6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fabula.errors import InputError
from fabula.runs import ModelFacts

Way = Literal["chain", "tree", "two-pass", "ask"]
WAYS: tuple[Way, ...] = ("chain", "tree", "two-pass", "ask")

ARTICLE_TOKENS = 2_000
LEAST_CHUNK = 100
"""Tokens."""
MOST_FAN_IN = 24
_SMALL_FAN_IN = 10
"""A small model says one sentence on each part."""
_QUESTION_ENDS = ("?", "？")
_SLACK = 1.15
"""How much higher the true ratio of tokens may be: prompts stay that far below the window."""
_FEW_CHUNKS = 8
"""A question on a text of no more chunks reads them all."""


@dataclass(frozen=True)
class Task:
    """What to read for, and how. Everything may be left to the program."""

    task: str = ""
    """In any language; empty = for code what the program does and how its parts connect, for prose what it says."""
    way: str = ""
    """chain, tree, two-pass or ask; empty = by task and length."""
    language: str = ""
    """ISO 639-1, of the answers; empty = that of the task, else of the text."""
    chunk_tokens: int | None = None
    """Most tokens of a chunk; None = 2,000 or a quarter of the model's window, whichever is larger."""
    as_article: bool = False
    """2,000 tokens a chunk, read in order."""
    small: bool | None = None
    """Short answers for a small model; None = as the model's profile says."""
    for_story: bool = False
    """Read a novel in order to go on with it."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Changed prompts by name (SPEC W7)."""

    def checked(self) -> Task:
        """The same task.

        Raises:
            InputError: says which part is wrong and what to give instead.
        """
        from fabula.text import LANGUAGE_NAMES

        if self.way and self.way not in WAYS:
            raise InputError(f"There is no way of reading called {self.way!r}.", f"The ways are: {', '.join(WAYS)}.")
        if self.chunk_tokens is not None and self.chunk_tokens < LEAST_CHUNK:
            raise InputError(f"A chunk of {self.chunk_tokens} tokens is too small to be read.", f"Give at least {LEAST_CHUNK}.")
        if self.language and self.language not in LANGUAGE_NAMES:
            raise InputError(
                f"{self.language!r} is not a language code that Fabula knows.", f"Use one of: {', '.join(sorted(LANGUAGE_NAMES))}."
            )
        if self.way == "ask" and not self.task.strip():
            raise InputError("The way `ask` reads for a question, and there is none.", "Give it with --task.")
        return self

    def is_question(self) -> bool:
        """Whether the task asks something."""
        return self.task.rstrip().rstrip("\"'”»」』").endswith(_QUESTION_ENDS)

    def way_for(self, chunks: int) -> Way:
        """The way chosen, else by task and length: `ask` for a question on a long text, the tree for everything else."""
        if self.way:
            return next(way for way in WAYS if way == self.way)
        if self.as_article:
            return "chain"
        return "ask" if self.is_question() and not self.for_story and chunks > _FEW_CHUNKS else "tree"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of the model in use; prompt and answer of every call fit into its window (SPEC R6)."""

    chunk: int
    """Most tokens of a chunk, as `text.count_tokens` counts."""
    claims: int
    """Most claims of a chunk."""
    answer: int
    """Of a chunk's answer."""
    merge_answer: int
    final_answer: int
    shown: int
    """Of the parts that a merge sees, all together."""
    fan_in: int
    """Most parts of a merge."""
    context: int
    """Of the rolling context."""
    known: int
    """Of the facts that are carried beside it, word for word."""
    ratio: float = 1.0
    """Tokens of the model for a token as `text.count_tokens` counts, as known when the reading began. All prompts go by it, so that a later
    reading of the same sources asks with the same words."""
    small: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As journaled."""
        return asdict(self)

    def fits(self, facts: ModelFacts) -> bool:
        """Whether they are still right for a model: what was learnt of it since is within what a prompt leaves room for."""
        return self.small == facts.small and facts.token_ratio <= self.ratio * _SLACK and facts.max_answer >= self.final_answer


def sizes_for(task: Task, facts: ModelFacts, words_of_prompt: int) -> Sizes:
    """Sizes for a task and a model.

    Args:
        task: what the person wants.
        facts: of the model; its window bounds everything.
        words_of_prompt: tokens that the longest prompt takes without its chunk.

    Raises:
        InputError: the window cannot hold a chunk of the size asked for.
    """
    window, small = facts.window, facts.small if task.small is None else task.small
    asked = ARTICLE_TOKENS if task.as_article else max(ARTICLE_TOKENS, window // 4)
    want = task.chunk_tokens or asked
    context = max(120, min(window // 16, 500 if small else 1_200))
    known = max(120, min(window // 12, 2_000))
    spare = 64
    claims = max(3, min(6 if small else 40, want // (400 if small else 250)))
    answer = min(facts.max_answer, window // 4, (180 + 60 * claims) if small else (500 + 110 * claims))
    room = int((window - answer - spare) / _SLACK) - words_of_prompt - context - known
    chunk = int(min(want, room) / max(0.1, facts.token_ratio))
    if chunk < LEAST_CHUNK or (task.chunk_tokens is not None and want > room):
        raise InputError(
            f"A chunk of {want} tokens does not fit: the window of {facts.name} has {window} tokens, of which prompt, context and answer "
            f"take {window - room}.",
            f"Give at most {room} (--chunk-tokens)." if room >= LEAST_CHUNK else "Choose a model with a larger window.",
        )
    merge_answer = min(facts.max_answer, window // 5, 600 if small else 1_600)
    final_answer = min(facts.max_answer, window // 4, 900 if small else 3_000)
    shown = max(400, int(((window - final_answer - spare) / _SLACK - words_of_prompt) * 0.8))
    each = 220 if small else 120 + 60 * claims
    fan_in = max(2, min(_SMALL_FAN_IN if small else MOST_FAN_IN, shown // each))
    return Sizes(chunk, claims, answer, merge_answer, final_answer, shown, fan_in, context, known, round(facts.token_ratio, 3), small)
