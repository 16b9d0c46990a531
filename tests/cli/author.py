"""A model that reads by copying what it is given, and writes as the scripted model does."""

from __future__ import annotations

from fabula.models import Answer, Request, Scripted
from tests.read.models import Copyist

READS = ("chunk", "digest", "context", "merge", "final", "terms", "follow", "answer", "cast", "style", "state")
"""Purposes of a reading."""


class Author(Copyist):
    """Reads as the copyist does, and writes as the scripted model does."""

    def _answer(self, request: Request) -> Answer:
        return super()._answer(request) if request.purpose in READS else Scripted()._answer(request)

    def of(self, *purposes: str) -> list[Request]:
        """The requests for these purposes."""
        return [r for r in self.requests if r.purpose in purposes]
