"""A person's act on a run from outside: done at once, or left in the inbox of the process that holds the run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fabula.errors import Held, InputError

if TYPE_CHECKING:
    from fabula.cli._options import Where
    from fabula.store import Store


def do(where: Where, run: str, kind: str, payload: Mapping[str, Any], said: str, *, as_json: bool) -> None:
    """Do an act on a run, or leave it for the run's holder, and say which.

    Args:
        where: the library.
        run: whose.
        kind: as `Recurrence.take_input` knows it: edit, memory, passage.
        payload: what that kind takes.
        said: what to tell the person when it is done.
        as_json: print JSON instead.
    """
    from fabula.opening import open_library

    with closing(open_library(where.settings())) as store:
        row = store.run(run)
        _tell(row.id, act_or_leave(store, row.id, kind, payload), said, as_json)


def do_to_record(where: Where, ident: str, run: str | None, act: str, payload: Mapping[str, Any], said: str, *, as_json: bool) -> None:
    """Do an act on a record: of a run, or of the library."""
    from fabula.cli._records import found
    from fabula.opening import open_library
    from fabula.runs import act_on_library

    with closing(open_library(where.settings())) as store:
        seen, record = found(store, ident, run)
        if seen is None or record.reach == "library":
            act_on_library(store, act, record, payload)
            _tell("library", "", said, as_json)
            return
        holder = act_or_leave(store, seen.id, "memory", {"do": act, "with": {"id": record.id, **payload}})
        _tell(seen.id, holder, said, as_json)


def act_or_leave(store: Store, run: str, kind: str, payload: Mapping[str, Any]) -> str:
    """Returns "" where the act was done, else who holds the run and will take it in."""
    from fabula.runs import leave_input
    from fabula.ways import is_reading, open_run
    from fabula.write import Novel

    try:
        # opening a novel settles what a crash left half done
        held = open_run(store, run, hold=True) if is_reading(store.run(run)) else Novel.open(store, run, hold=True).run
    except Held as error:
        leave_input(store, run, kind, payload)
        return error.message
    try:
        held.recurrence.take_input(held, kind, payload)
    finally:
        held.close()
    return ""


def _tell(run: str, holder: str, said: str, as_json: bool) -> None:
    from fabula.cli._output import print_json, show

    if as_json:
        print_json({"run": run, "done": not holder, "left_for_holder": bool(holder)})
    elif holder:
        show(f"{holder} The change is left for it, and comes into force before its next step.")
    else:
        show(said)


def edit_state(where: Where, run: str, name: str, passage: str | None, text: str | None, *, as_json: bool) -> None:
    """Edit a piece of a run's state: short_term, note, plan, setting, or a passage."""
    from fabula.cli._memory import new_text
    from fabula.opening import open_library
    from fabula.write import Novel

    with closing(open_library(where.settings())) as store:
        novel = Novel.open(store, run)
        before = _before(novel, name, passage)
    after = new_text(before, text, name.replace("_", "-"))
    if after.strip() == before.strip():
        raise InputError("The text is the same as before.", "Nothing was changed.")
    if name == "passage":
        refuse_empty(str(passage), after)
        do(
            where,
            run,
            "passage",
            {"passage": passage, "text": after},
            "Changed. Its memory is made anew by the next step.",
            as_json=as_json,
        )
        return
    value: Any = after.strip()
    if name == "short_term":
        value = [line.strip().removeprefix("- ").strip() for line in after.splitlines() if line.strip()]
    elif name == "plan":
        value = {"text": after.strip(), "by": "person", "reason": "", "choice": None}
    payload = {"lane": "book", "name": name, "value": value}
    do(where, run, "edit", payload, "Changed: the next prompt holds it.", as_json=as_json)


def refuse_empty(passage: str, text: str) -> None:
    """Raises InputError for the empty text of a passage, with the way to take the passage out."""
    if not text.strip():
        raise InputError(
            f"Passage {passage} may not be empty.",
            f'To take it out of the book, use Python: `fabula.open_library().open(RUN, edit=True).remove_passage("{passage}")`.',
        )


def _before(novel: Any, name: str, passage: str | None) -> str:
    if name == "passage":
        return str(novel.passage(passage).text)
    if name == "short_term":
        return "\n".join(novel.short_term)
    if name == "plan":
        return str((novel.plan or {"text": ""})["text"])
    return str(novel.run.piece(name, default=""))
