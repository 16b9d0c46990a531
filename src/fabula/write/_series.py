"""A series: several books that share people, places and canon (SPEC W5).

What they share are library records about the series' entities. A book sees those of the entities that it has bound; binding is a
person's act, never a matter of equal names (DESIGN 4).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from fabula.errors import InputError, NotFound
from fabula.memory import Record, added, fold
from fabula.store import LIBRARY, RecordRow, Store
from fabula.write._novel import Novel
from fabula.write._premise import Character
from fabula.write._telling import LANE


class Series:
    """The entities of a series in a library."""

    def __init__(self, store: Store, name: str):
        if not name.strip() or "/" in name:
            raise InputError(f"A series may not be called {name!r}.", "Give it a name without a slash.")
        self.store, self.name = store, name.strip()

    def entity(self, name: str) -> str:
        """The library id of an entity of this series."""
        return f"{self.name}/{name}"

    def add(self, name: str, about: str) -> str:
        """Add a person, place or thing with what is true of it in every book. Returns the entity's id."""
        if not name.strip() or not about.strip():
            raise InputError("An entity of a series needs a name and what is true of it.")
        return self.tell(name.strip(), about.strip())

    def tell(self, name: str, text: str) -> str:
        """Add something that is true of an entity in every book of the series. Returns the entity's id."""
        entity = self.entity(name)
        with self.store.write(LIBRARY, "series") as tx:
            record = Record(
                id=f"{LIBRARY}/{tx.pos}/{name}",
                kind="observation",
                text=text if text.startswith(name) else f"{name}: {text}",
                owner="",
                recorded=time.time(),
                source="person",
                subject=name,
                entities=(name,),
                episode=self.name,
                run=LIBRARY,
                reach="library",
                about=entity,
                by="person",
            )
            tx.add(added(record))
        return entity

    def records(self) -> list[Record]:
        """Everything told of the series' entities, in order."""
        rows = [r for r in self.store.rows(RecordRow, reach="library") if r.about.startswith(f"{self.name}/")]
        return sorted((r for r in fold(rows).values() if r.status == "active"), key=lambda r: r.pos)

    def cast(self) -> tuple[Character, ...]:
        """Its entities with the first that was told of each, as the cast of a new book."""
        told: dict[str, str] = {}
        for record in self.records():
            told.setdefault(record.subject, record.text.removeprefix(f"{record.subject}: "))
        return tuple(Character(name, about) for name, about in told.items())

    def join(self, novel: Novel, names: Sequence[str] | None = None) -> int:
        """Bind entities (None = all) to a book: from its next step on it recalls what is told of them. Returns the edit's position."""
        known = [c.name for c in self.cast()]
        unknown = sorted(set(names or ()) - set(known))
        if unknown:
            raise NotFound(f"The series {self.name} has no {', '.join(unknown)}.", f"It has: {', '.join(known) or 'nobody yet'}.")
        bound = dict(novel.run.piece("bound", default={}) or {})
        bound.update({name: self.entity(name) for name in (names or known)})
        return novel.run.edit({(LANE, "bound"): bound})
