"""What the steps of a reading share: the task, the prompts, the sizes, and a chunk as a prompt shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fabula.read._chunks import Chunk
from fabula.read._shape import READING, Shape, leaf
from fabula.read._task import Sizes, Task
from fabula.runs import Context, Prompts, Rendered
from fabula.store import text_hash
from fabula.text import LANGUAGE_NAMES, to_tokens, truncate_tokens

T = TypeVar("T")

PROMPTS = Path(__file__).parent / "prompts"
_FENCE = "§§§"
_SHARE_OF_SUMMARY = 0.3
"""Share of an answer's tokens that its prose may take."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One step of a reading: where every prompt of it is begun."""

    ctx: Context
    task: Task
    prompts: Prompts
    sizes: Sizes
    shape: Shape
    language: str
    words_task: str
    """The task in words, the default one where the person gave none."""

    # -- state -----------------------------------------------------------------------------------------------------------------

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number."""
        return Chunk.from_dict(number, self.ctx.piece(f"chunk:{number}", lane=""))

    def texts(self, chunk: Chunk) -> list[str]:
        """The texts of a chunk's parts."""
        return [self.ctx.text(part.hash) for part in chunk.parts]

    def documents(self) -> list[str]:
        """Names of all documents."""
        return list(self.ctx.piece("documents", lane="")["names"])

    def names(self, chunk: Chunk) -> list[str]:
        """Names of a chunk's documents, each once."""
        known = self.documents()
        return list(dict.fromkeys(known[part.document] for part in chunk.parts))

    def result(self, number: int) -> dict[str, Any] | None:
        """What came of reading a chunk; None = it was not read."""
        lane, name = result_place(self.shape, number)
        held: dict[str, Any] | None = self.ctx.piece(name, lane=lane)
        return held

    # -- prompts ---------------------------------------------------------------------------------------------------------------

    @property
    def language_name(self) -> str:
        """The language of the answers, as the prompt names it."""
        return LANGUAGE_NAMES.get(self.language, self.language)

    def in_language(self, language: str) -> Reader:
        """The same step with the prompts and the answers of another language: a question is answered in its own."""
        if language == self.language or language not in LANGUAGE_NAMES:
            return self
        return replace(self, language=language, prompts=Prompts(PROMPTS, language, self.task.prompts))

    def render(self, name: str, *, max_tokens: int, **slots: Any) -> Rendered:
        """A prompt whose answer has at most so many tokens; slots that it does not have are left out."""
        declared = self.prompts.get(name).slots
        prompt = self.prompts.render(name, **{key: value for key, value in slots.items() if key in declared})
        return replace(prompt, sampling=replace(prompt.sampling, max_tokens=max(32, max_tokens)))

    def words(self, tokens: int) -> int:
        """How many words (characters in Chinese) a prose of so many tokens may have, rounded down so that it fits."""
        return max(20, int(tokens * 100 / max(1, to_tokens(100, self.language)) / self.sizes.ratio) // 10 * 10)

    def summary_words(self) -> int:
        """Length of a chunk's summary."""
        return self.words(int(self.sizes.answer * _SHARE_OF_SUMMARY))

    def digest_words(self) -> int:
        """Length of a summary of the first of two readings: what it is for is a context."""
        return self.words(self.sizes.context // 2)

    def count(self, text: str) -> int:
        """Tokens of the model, as estimated when the reading began."""
        return self.ctx.run.count(text, self.sizes.ratio)

    def cut(self, text: str, tokens: int) -> str:
        """A text cut to so many tokens of the model."""
        if self.count(text) <= tokens:
            return text
        return truncate_tokens(text, max(1, int(tokens / self.sizes.ratio)))

    def fill(self, lines: Iterable[str], tokens: int) -> list[str]:
        """The first lines that fit into so many tokens."""
        out: list[str] = []
        for line in lines:
            tokens -= self.count(line) + 1
            if tokens < 0:
                break
            out.append(line)
        return out


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What these calls give, in order. One that fails lets the others arrive first, so that nothing that is paid for is thrown away."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    out: list[T] = []
    for one in done:
        if isinstance(one, BaseException):
            raise one
        out.append(one)
    return out


def result_place(shape: Shape, number: int) -> tuple[str, str]:
    """(lane, piece) of what came of reading a chunk."""
    return (leaf(number), "result") if shape.way in ("tree", "two-pass") else (READING, f"result:{number}")


def fence_for(texts: Sequence[str]) -> str:
    """Signs that do not occur in these texts, so that no document can end itself: with a hash of them where the usual ones do."""
    return _FENCE + text_hash("\0".join(texts))[:8] if any(_FENCE in text for text in texts) else _FENCE


def fenced(names: Sequence[str], texts: Sequence[str], fence: str) -> str:
    """Documents as a prompt shows them. No line numbers: so an edit above a chunk does not change its prompt."""
    return "\n\n".join(f"{fence} {' '.join(name.split())}\n{text.rstrip()}\n{fence} end" for name, text in zip(names, texts, strict=True))
