"""What the steps of a story share: its state as a step reads it, the budget of a prompt, and the place in the book.

`Telling.context` builds the beginning of every prompt of a novel's step; the prompt files are in `prompts/<language>/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from fabula.models import Message
from fabula.runs import Context, Memo, Prompts, Rendered
from fabula.text import ends_finished, sentences, step_length, to_tokens, truncate_tokens, unit
from fabula.write._existing import named
from fabula.write._premise import Premise

PROMPTS = Path(__file__).parent / "prompts"
LANE = "book"

Kind = Literal["first", "middle", "chapter", "landing", "last"]

_SHARES = {"setting": 0.20, "cast": 0.12, "style": 0.04, "note": 0.06, "short_term": 0.20, "last": 0.22, "memories": 0.16, "plan": 0.10}
"""How the tokens of a prompt's context are shared out. Sums to more than 1 less what is left over for the prompt's own words: a
part is rarely full, and `Telling.budget` leaves room for that."""

_WORDS_OF_PROMPT = 700
"""Tokens that the prompt files' own words take at most (checked by a test for every language)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the book the next passage stands."""

    kind: Kind
    low: int
    high: int
    """From and to of the passage, in the language's unit."""
    chapter: str
    new_chapter: bool
    outline: int | None = None
    """Index of the outline's chapter."""


class Telling:
    """One step of a story: its context, its premise and its prompts."""

    def __init__(self, ctx: Context, premise: Premise, prompts: Prompts):
        self.ctx, self.premise, self.prompts = ctx, premise, prompts
        self.language = premise.language
        facts = ctx.facts()
        self.facts = facts
        self.small = facts.small if premise.small is None else premise.small
        self.play = premise.mode == "play"
        self.passage_tokens = min(1_400, facts.window // 5, facts.max_answer)
        self.book_tokens = min(2_000, facts.window // 4, facts.max_answer)
        prompt = min(premise.prompt_tokens, facts.window - self.passage_tokens - self.book_tokens - 100)
        self.budget = max(400, prompt - self.passage_tokens - _WORDS_OF_PROMPT)
        """Tokens of state in a prompt: passage and book-keeping fit beside them, by count."""

    # -- state -----------------------------------------------------------------------------------------------------------

    def text(self, passage: str, *, rests: bool = True) -> str:
        """A passage as it is now."""
        held = self.ctx.piece(f"text:{passage}", rests=rests)
        return str(held["text"]) if held else ""

    @property
    def position(self) -> dict[str, Any]:
        """length, passages, chapter, chapter_length, last; old and old_passages, where a book was there already."""
        return dict(self.ctx.piece("position"))

    def last_text(self) -> str:
        """The passage before the next one, as it is now."""
        last = self.position["last"]
        return self.text(last) if last else ""

    def recent_texts(self, most: int = 3) -> list[str]:
        """The latest passages of the current chapter, as they are now, oldest first; of the last one where a new one begins."""
        order = self.ctx.piece("chapters", default=[], rests=False)
        chapter = self.ctx.piece(f"chapter:{self.position['chapter'] or (order[-1] if order else '')}", rests=False)
        ids = [p for scene in chapter["scenes"] for p in scene["passages"]] if chapter else []
        return [self.text(p, rests=False) for p in ids[-most:]]  # only compared with, never shown

    def short_term(self) -> list[str]:
        """The short-term memory, one sentence each."""
        return list(self.ctx.piece("short_term", default=[]))

    def cast(self) -> list[dict[str, str]]:
        """The cast: name and about."""
        return list(self.ctx.piece("cast", default=[]))

    def named_in(self, text: str) -> tuple[str, ...]:
        """Names of the cast that occur in a text, also inflected."""
        return named([c["name"] for c in self.cast()], text)

    # -- prompts ----------------------------------------------------------------------------------------------------------

    def fit(self, text: str, part: str, keep: Literal["start", "end"] = "start") -> str:
        """A text cut to its share of the prompt's budget."""
        limit = int(self.budget * _SHARES[part])
        return text if self.ctx.count(text) <= limit else truncate_tokens(text, max(1, int(limit / self.facts.token_ratio)), keep=keep)

    def fit_lines(self, lines: Sequence[str], part: str) -> list[str]:
        """The latest lines that fit into their share."""
        limit, kept = int(self.budget * _SHARES[part]), []
        for line in reversed(lines):
            limit -= self.ctx.count(line) + 2
            if limit < 0:
                break
            kept.append(line)
        return kept[::-1]

    def memories_budget(self) -> int:
        """Tokens that recalled memories may take."""
        return int(self.budget * _SHARES["memories"])

    def cast_lines(self) -> str:
        """The cast as a prompt shows it."""
        return "\n".join(
            self.fit_lines([f"- {c['name']}: {c['about']}" if c.get("about") else f"- {c['name']}" for c in self.cast()], "cast")
        )

    def notes_lines(self) -> str:
        """The short-term memory as a prompt shows it."""
        return "\n".join(f"- {line}" for line in self.fit_lines(self.short_term(), "short_term"))

    def context(self) -> Rendered:
        """The beginning of every prompt, the part that changes least first (so that a server's prefix cache hits)."""
        p = self.premise
        return self.prompts.render(
            "context",
            title=self.ctx.piece("title", default=""),
            genre=p.genre,
            setting=self.fit(self.ctx.piece("setting", default=""), "setting"),
            cast=self.cast_lines(),
            style=self.fit(self.ctx.piece("style", default=""), "style"),
            person=p.person or ("second" if self.play else ""),
            tense=p.tense,
            language_name=p.language_name(),
            play=self.play,
            short_term=self.notes_lines(),
            last=self.fit(self.last_text(), "last", keep="end"),
            label="",
        )

    def tail(self, name: str, **slots: Any) -> Rendered:
        """A prompt that is added after the context."""
        return self.prompts.render(name, **slots)

    def note(self) -> str:
        """The author's note, pinned in every prompt."""
        return self.fit(self.ctx.piece("note", default=""), "note")

    def ending(self) -> str:
        """The ending that the person steers to."""
        return self.fit(self.ctx.piece("ending", default=""), "note")

    def memories(self, memos: Sequence[Memo]) -> list[str]:
        """Recalled memories as a prompt shows them, in the order of the story."""
        return [m.text for m in sorted(memos, key=lambda m: (m.time, m.id))]

    def plan_sentences(self) -> str:
        """How many sentences a plan has (SPEC W1)."""
        return "3–5" if self.language in ("zh", "ja") else "3 to 5" if self.language != "ru" else "3–5"

    # -- the place in the book ----------------------------------------------------------------------------------------------

    def place(self) -> Place:
        """Where the next passage stands: the last tenth of a book with a length is told to land. After a book that was there already the
        length is that of what is written anew.
        """
        position, length = self.position, self.ctx.piece("length")
        anew, passages = position["length"] - position.get("old", 0), position["passages"] - position.get("old_passages", 0)
        low, high = self._step_length(length)
        chapter, fresh, index = self._chapter(position, low)
        kind: Kind = "first" if position["passages"] == 0 else "chapter" if fresh else "middle"
        if length is not None and position["passages"]:
            left, usual = length - anew, anew / passages if passages else 0
            if left <= max(high, usual) and self._last_chapter(index):
                kind = "last"
                low, high = max(1, min(low, left)), max(high, min(left, 2 * high))
            elif anew + high > 0.9 * length:
                kind = "landing"
        elif length is None and self._outline_done(index, position, low):
            kind = "last"
        return Place(kind, low, high, chapter, fresh, index)

    def _step_length(self, length: int | None) -> tuple[int, int]:
        if self.premise.step_length is not None:
            return self.premise.step_length
        low, high = step_length(self.language)
        if self.play:
            low, high = low // 2, high // 2
        if length is None:
            return low, high
        whole = min((low + high) // 2, max(1, length // 5))  # a story has at least five steps
        return max(1, int(whole * 0.8)), max(2, int(whole * 1.2))

    def chapter_length(self) -> int | None:
        """Length of a chapter, or None where the book has but one."""
        p = self.premise
        length: int | None = self.ctx.piece("length")
        outline = int(self.ctx.piece("outline_size", default=0))
        if p.chapter_length is not None:
            return p.chapter_length
        if outline and length:
            return max(1, length // outline)
        high = step_length(self.language)[1]
        if length is not None and length <= 12 * high:
            return None
        return 8 * high

    def _chapter(self, position: Mapping[str, Any], low: int) -> tuple[str, bool, int | None]:
        """(chapter id, is new, index in the outline). The next chapter of an outline is the first that is not written, in the order of
        the outline, never the one after the highest number seen.
        """
        size, outline = self.chapter_length(), self.ctx.piece("outline_size", default=0)
        current = position["chapter"]
        full = size is not None and position["chapter_length"] + low // 2 >= size
        index = position.get("outline")
        fresh_id = f"c{self.ctx.time}"
        if not outline:
            return (current, False, None) if current and not full else (fresh_id, True, None)
        if current and (not full or index is None or index + 1 >= outline):
            return current, False, index
        return fresh_id, True, 0 if index is None else index + 1

    def _last_chapter(self, index: int | None) -> bool:
        outline = self.ctx.piece("outline_size", default=0)
        return not outline or index is None or index + 1 >= outline

    def _outline_done(self, index: int | None, position: Mapping[str, Any], low: int) -> bool:
        outline, size = self.ctx.piece("outline_size", default=0), self.chapter_length()
        return (
            bool(outline) and index is not None and index + 1 >= outline and size is not None and position["chapter_length"] + low >= size
        )


def joined(*parts: Rendered, middle: Sequence[Message] = ()) -> Rendered:
    """One prompt of several, in order: neighbours of one role become one message; schema and sampling are the last part's."""
    messages: list[Message] = []
    for message in [m for part in parts[:-1] for m in part.messages] + list(middle) + list(parts[-1].messages):
        if messages and messages[-1].role == message.role:
            joint = f"{messages[-1].content}\n\n{message.content}" if messages[-1].content else message.content
            messages[-1] = Message(message.role, joint)
        else:
            messages.append(message)
    return Rendered(parts[-1].name, tuple(m for m in messages if m.content), parts[-1].schema, parts[-1].sampling)


def limited(prompt: Rendered, max_tokens: int, **changes: Any) -> Rendered:
    """The same prompt with another limit for its answer (tokens)."""
    return replace(prompt, sampling=replace(prompt.sampling, max_tokens=max(16, max_tokens), **changes))


def answer_tokens(amount: int, language: str, ratio: float) -> int:
    """Tokens that a text of so many units may take, with room to finish a sentence."""
    return int(to_tokens(amount, language) * ratio * 1.35) + 60


def amount(number: int, language: str) -> str:
    """A length in words, e.g. `1000 words`."""
    names = {"zh": "字", "ja": "文字", "ru": "слов"}
    return f"{number} {names.get(language, unit(language))}"


def unit_name(language: str) -> str:
    """The unit of length as the prompts of that language name it."""
    return {"zh": "字", "ru": "слов"}.get(language, unit(language))


def plan_text(parts: Sequence[str], language: str) -> str:
    """A plan of several sentences as one text; a full stop is added where a model left it out."""
    wide = language in ("zh", "ja")
    whole = [
        p if ends_finished(p, language) else p.rstrip(" ,;:，；：、") + ("。" if wide else ".") for p in (p.strip() for p in parts) if p
    ]
    return ("" if wide else " ").join(whole)


def plan_beats(plan: str, language: str, most: int) -> list[str]:
    """The sentences of a plan, neighbours taken together so that there are at most so many."""
    parts = [s.strip() for s in sentences(plan, language) if s.strip()] or [plan]
    count, gap = min(len(parts), most), "" if language in ("zh", "ja") else " "
    ends = [round(len(parts) * n / count) for n in range(count + 1)]
    return [gap.join(parts[a:b]) for a, b in pairwise(ends)]
