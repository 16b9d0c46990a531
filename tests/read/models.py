"""A reader that says only what it is given: it copies sentences out of its prompt, has a cap on what it says, and forgets the oldest."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from fabula.models import Event, Request, Scripted
from fabula.text import count_tokens, lexical_terms, sentences

FACT = re.compile(r"[^\n.!?。！？]*\d{3,}[^\n.!?。！？]*[.。]")
"""A sentence with a number of three digits or more: what the reader takes for a fact."""


def said(request: Request) -> str:
    return request.messages[-1].content


def documents(request: Request) -> str:
    """The text between the fences."""
    prompt = said(request)
    found = re.findall(r"^(§§§[0-9a-f]*) ([^\n]*)\n(.*?)\n\1 end$", prompt, re.DOTALL | re.MULTILINE)
    return "\n".join(text for _, _, text in found)


def capped(lines: list[str], tokens: int) -> list[str]:
    """The latest lines that fit: the oldest are dropped first."""
    kept: list[str] = []
    for line in reversed(lines):
        tokens -= count_tokens(line) + 2
        if tokens < 0:
            break
        kept.append(line)
    return kept[::-1]


class Copyist(Scripted):
    """The reader.

    Args:
        cap: tokens of everything that it says in one answer.
        relevant: whether a chunk matters, by its text; None = all do.
    """

    def __init__(self, cap: int = 200, relevant: Callable[[str, str], bool] | None = None, seconds: float = 0.0, **options: Any):
        self.cap, self.relevant, self.seconds = cap, relevant, seconds
        super().__init__(self._say, **options)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """One call takes `seconds`, however much is said."""
        await asyncio.sleep(self.seconds)
        async for event in super().stream(request):
            yield event

    def _say(self, request: Request) -> str:
        """By the schema's name, which a server gets to see too."""
        name = request.schema.name.removesuffix("_small") if request.schema else ""
        return json.dumps(getattr(self, f"say_{name}")(request), ensure_ascii=False)

    def say_chunk(self, request: Request) -> dict[str, Any]:
        prompt, text = said(request), documents(request)
        names = set(request.schema.body["properties"] if request.schema else {})
        system = request.messages[0].content
        task = system.split("\n\n")[1] if "\n\n" in system else ""
        facts = [f.strip() for f in FACT.findall(text)]
        if self.relevant is not None and not self.relevant(task, text):
            empty: dict[str, Any] = {"relevant": False, "summary": "", "claims": [], "entities": [], "relations": [], "open": []}
            return empty
        first = (sentences(text) or [text])[0].strip()[:200]
        out: dict[str, Any] = {
            "relevant": True,
            "summary": " ".join(capped([first, *facts], self.cap)),
            "claims": [{"text": f, "quote": f} for f in capped(facts, self.cap)],
            "entities": [],
            "relations": [],
            "open": [],
        }
        if "context" in names:
            before = (
                prompt.split("What was read before this piece:\n")[1].split("\n\nFacts from before")[0].split("\n\n§§§")[0]
                if "What was read before" in prompt
                else ""
            )
            out["context"] = " ".join(capped([*sentences(before), *(facts or [first])], self.cap)).strip() or first
        if "facts" in names:  # the short form of small models
            told = [
                *dict.fromkeys([*(c["text"] for c in out["claims"]), *(s.strip()[:200] for s in sentences(text) if len(s.strip()) > 9)])
            ]
            short = {
                "names": [],
                "facts": [*told, "Nothing more is said in it.", "It ends there.", "That is all."][: max(3, min(6, len(told)))],
            }
            return short | ({"context": out["context"]} if "context" in names else {})
        return out if "claims" in names else {"summary": out["summary"]}

    say_digest = say_roll = say_chunk

    def say_group(self, request: Request) -> dict[str, Any]:
        lines = [line for line in said(request).splitlines() if FACT.search(line)]
        return {"context": " ".join(capped(lines, self.cap)) or "nothing"}

    def say_merge(self, request: Request) -> dict[str, Any]:
        shown = re.findall(r"^\[(\d+)\] (.*)$", said(request), re.MULTILINE)
        kept = capped([f"{number} {text}" for number, text in shown], self.cap)
        return {
            "statements": [{"text": line.split(" ", 1)[1], "from": [int(line.split(" ", 1)[0])]} for line in kept]
            or [{"text": "nothing", "from": []}]
        }

    def say_terms(self, request: Request) -> dict[str, Any]:
        return {"terms": ["vault"]}

    def say_follow(self, request: Request) -> dict[str, Any]:
        return {"question": re.search(r"(?:The next question|接下来的问题|下一个问题|Следующий вопрос)[:：] ?(.*)", said(request)).group(1)}  # type: ignore[union-attr]

    def say_answer(self, request: Request) -> dict[str, Any]:
        """The lines that hold the question's rarest words."""
        question = re.search(r"(?:The question|问题|Вопрос)[:：] ?(.*)", said(request)).group(1)  # type: ignore[union-attr]
        wanted = set(lexical_terms(question))
        shown = re.findall(r"^\[(\d+)\] (.*)$", said(request), re.MULTILINE)
        good = [(int(number), text) for number, text in shown if wanted and wanted <= set(lexical_terms(text))]
        return {"found": bool(good), "statements": [{"text": text, "from": [number]} for number, text in good[:3]]}

    def say_story_cast(self, request: Request) -> dict[str, Any]:
        return {"setting": "A town with many vaults.", "cast": [{"name": "Mira", "about": "keeps the vaults"}], "places": []}

    def say_story_style(self, request: Request) -> dict[str, Any]:
        return {"person": "third", "tense": "past", "style": "Short sentences, dry humour."}

    def say_story_state(self, request: Request) -> dict[str, Any]:
        plans = [f"Mira opens vault number {n} and finds what she did not look for." for n in (1, 2, 3)]
        return {"short_term": ["Mira is at home.", "She has the keys.", "The letter is unread."], "plans": plans}


def planted(count: int, filler: str = "The wind went over the hills and nobody spoke of it.", words: int = 60) -> list[str]:
    """Pieces of a text, one planted fact in each."""
    out = []
    for n in range(count):
        pad = " ".join([filler] * words)
        out.append(f"Part {n}. {pad}\n\nThe code of vault {NAMES[n % len(NAMES)]} is {4000 + 37 * n}.\n\n{pad}\n\n")
    return out


NAMES = [
    a + b
    for a in ("Amber", "Birch", "Cedar", "Drift", "Ember", "Frost", "Grove", "Haze")
    for b in ("wick", "more", "field", "gate", "holm")
]
"""Forty."""
