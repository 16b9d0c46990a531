"""Reading an answer in the OpenAI format, streamed or plain, whatever a server leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabula.models._port import FinishReason

_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "content_filter": "filter",
    "safety": "filter",
    "refusal": "filter",
    "recitation": "filter",
    "prohibited_content": "filter",
}
BROKEN = frozenset({"error", "insufficient_system_resource", "abort", "network_error"})
"""Finish reasons that mean the server gave up."""

_OPEN, _CLOSE = "<think>", "</think>"


def field(value: Any, name: str) -> Any:
    """A field of an object or of a mapping; None where it is absent."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def content_text(content: Any) -> str:
    """The text of a `content`: a string, nothing, or parts of which those of type text count."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(field(part, "text") or "") for part in content if field(part, "type") in (None, "text"))
    return ""


class ThinkingFilter:
    """Holds back a leading `<think>…</think>`, which some servers leave in the content; what follows passes untouched."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"
        self.thought = 0
        """Characters of thinking so far."""

    def feed(self, text: str) -> str:
        """The part of `text` (and of what was held) that belongs to the answer."""
        if self._state == "answer":
            return text
        self._held += text
        if self._state == "start":
            begun = self._held.lstrip()
            if _OPEN.startswith(begun[: len(_OPEN)]) and len(begun) < len(_OPEN):
                return ""
            if not begun.startswith(_OPEN):
                return self._release(self._held)
            self._state, self._held = "thinking", begun[len(_OPEN) :]
        thought, close, rest = self._held.partition(_CLOSE)
        if not close:
            self.thought += max(0, len(self._held) - len(_CLOSE))
            self._held = self._held[-len(_CLOSE) :]
            return ""
        self.thought += len(thought)
        self._held = rest.lstrip()
        if not self._held:
            self._state = "after"
            return ""
        return self._release(self._held)

    def end(self) -> str:
        """What is still held when the stream ends; unfinished thinking is no answer."""
        return self._release(self._held) if self._state == "start" else ""

    def _release(self, text: str) -> str:
        self._state, self._held = "answer", ""
        return text


class Collected:
    """What has come of one answer so far."""

    def __init__(self) -> None:
        self.thinking = ThinkingFilter()
        self.text: list[str] = []
        self.refusal = ""
        self.finish: str | None = None
        self.usage: Any = None

    def take(self, chunk: Any) -> str:
        """Take in one chunk (or one whole plain answer); returns the new text."""
        new = ""
        for choice in field(chunk, "choices") or ():
            if field(choice, "index"):
                continue
            said = field(choice, "delta") or field(choice, "message")
            new += self.thinking.feed(content_text(field(said, "content")) or (field(choice, "text") or ""))
            self.refusal += str(field(said, "refusal") or "")
            if field(choice, "finish_reason"):
                self.finish = str(field(choice, "finish_reason"))
        if field(chunk, "usage"):
            self.usage = field(chunk, "usage")
        return self._kept(new)

    def end(self) -> str:
        """The text held back at the end."""
        return self._kept(self.thinking.end())

    def _kept(self, new: str) -> str:
        if new:
            self.text.append(new)
        return new

    def reason(self) -> FinishReason:
        """The finish reason in our words; a refusal without text counts as filtered."""
        if self.refusal and not self.text:
            return "filter"
        return _FINISHES.get((self.finish or "").lower(), "unknown")

    def tokens(self) -> tuple[int, int, int, float | None] | None:
        """Prompt, answer and cached tokens and the cost as the server tells them; None if it does not."""
        prompt, answer = field(self.usage, "prompt_tokens"), field(self.usage, "completion_tokens")
        if not isinstance(prompt, int) or not isinstance(answer, int):
            return None
        cached = field(field(self.usage, "prompt_tokens_details"), "cached_tokens") or field(self.usage, "prompt_cache_hit_tokens")
        cost = field(self.usage, "cost")
        return prompt, answer, cached if isinstance(cached, int) else 0, float(cost) if isinstance(cost, int | float) else None
