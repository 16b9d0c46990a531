"""Reading a stream into lists, so that what came before an error can be looked at."""

from __future__ import annotations

from fabula.models import Event, Model, Note, Request, TextDelta


class Read:
    """What has come of a stream so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]

    @property
    def ended(self) -> bool:
        """Whether more than text and notes came."""
        return not all(isinstance(event, TextDelta | Note) for event in self.events)

    async def take(self, model: Model, request: Request) -> None:
        async for event in model.stream(request):
            self.events.append(event)
