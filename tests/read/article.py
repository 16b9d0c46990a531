"""The rule of the source article, for comparison: two calls a chunk in order, the second sums up the last answer only."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.models import Message, Model, Request, Sampling, complete
from fabula.text import sentences
from tests.read.models import FACT, capped


class ArticleModel:
    """What the capped copyist answers to the article's two prompts, and how often it was asked."""

    def __init__(self, cap: int):
        self.cap, self.calls = cap, 0

    def analyse(self, context: str, chunk: str) -> str:
        """The first call: an answer on the chunk in light of the context, capped, the oldest dropped first."""
        self.calls += 1
        return " ".join(capped([*sentences(context), *(f.strip() for f in FACT.findall(chunk))], self.cap))

    def summarise(self, answer: str) -> str:
        """The second: a summary of that answer."""
        self.calls += 1
        return " ".join(capped([s.strip() for s in sentences(answer)], self.cap))


def by_article(model: ArticleModel, chunks: Sequence[str]) -> str:
    """The final context, which is the article's result."""
    context = ""
    for chunk in chunks:
        context = model.summarise(model.analyse(context, chunk))
    return context


async def article_calls(model: Model, chunks: Sequence[str]) -> str:
    """The same rule over a model's port, to measure its waiting."""
    context = ""
    for chunk in chunks:
        said = await complete(model, _request(f"Context:\n{context}\n\nAnalyse:\n{chunk}"))
        context = (await complete(model, _request(f"Summarise:\n{said.text}"))).text
    return context


def _request(text: str) -> Request:
    return Request((Message("user", text),), "article", None, Sampling(max_tokens=1_000))
