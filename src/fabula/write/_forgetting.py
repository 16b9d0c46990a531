"""What a changed text takes out of memory, when a person changes it (DESIGN 3: the text is the truth)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fabula.memory import Record, restored, retracted
from fabula.store import RecordRow
from fabula.write._existing import standing
from fabula.write._telling import LANE

if TYPE_CHECKING:
    from fabula.runs import Run
    from fabula.write._manuscript import Changes

Events = Callable[[int], list[RecordRow]]
"""As `Run.edit` takes them."""


def forgetting(run: Run, texts: Mapping[str, str], *, gone: bool = False) -> tuple[Changes, Events]:
    """What follows for memory from the new texts of passages.

    Args:
        run: as it is before the edit.
        texts: passage → its new text.
        gone: the passages leave the book instead.

    Returns:
        changes of state: what waits to be derived again, and which memories of a book that was there already hold no more; and the
        events that take their records out of recall, and bring back those that an edit before had taken out.
    """
    changes: Changes = {}
    out, back = list[str](), list[str]()
    for passage, text in texts.items():
        out.append((run.piece(f"text:{passage}") or {}).get("record") or "")
        entries = run.piece(f"memories:{passage}", default=[])
        if not entries:
            continue
        kept, lost = ([], list(entries)) if gone else standing(entries, text)
        out += [e["id"] for e in lost if not e.get("gone")]
        back += [e["id"] for e in kept if e.get("gone")]
        changes[LANE, f"memories:{passage}"] = [{**e, "gone": False} for e in kept] + [{**e, "gone": True} for e in lost]
    if texts and not gone:
        changes[LANE, "rederive"] = sorted({*run.piece("rederive", default=[]), *texts})

    def events(time: int) -> list[RecordRow]:
        rows: list[RecordRow] = []
        for ident in dict.fromkeys(filter(None, out)):
            lost = Record(id=ident, kind="summary", text="")
            rows.append(retracted(lost, "its passage was edited", by="person", time=time, run=run.id, lane=LANE))
        for ident in dict.fromkeys(back):
            found = Record(id=ident, kind="summary", text="", status="retracted")
            rows.append(restored(found, by="person", time=time, run=run.id, lane=LANE))
        return rows

    return changes, events
