"""Events and what they add up to: order, whose word stands, undoing, history in plain words."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.memory import EVERYTHING, Record, Scope, added, edited, embedded_text, fold, history, restored, retracted, terms_of, text_hash
from fabula.store import RecordRow

EYES = Record(
    "mira/eyes", "fact", "Mira's eyes are grey.", "Mira", happened=3.5, recorded=100.0, importance=4, evidence=("p1",),
    source="narrator", audience=("Anton",), scope=Scope("character", "mira"), realm="story fact", subject="Mira", attribute="eyes",
    value="grey", quote="grey eyes", presupposes=("mira/birth",), episode="chapter 1", entities=("Mira", "Anton"), run="r", lane="main",
    time=4,
)  # fmt: skip


def at(row: RecordRow, pos: int) -> RecordRow:
    return replace(row, pos=pos)


def test_add_keeps_every_field() -> None:
    row = at(added(EYES), 7)
    assert fold([row]) == {"mira/eyes": replace(EYES, pos=7, added=7)}
    assert (row.terms.split(), row.hash) == (terms_of(EYES), text_hash("Mira's eyes are grey."))


@pytest.mark.parametrize(
    ("record", "about"),
    [
        (EYES, ""),
        (replace(EYES, reach="library"), "mira"),
        (replace(EYES, reach="library", about="entity-9"), "entity-9"),
        (replace(EYES, reach="library", scope=Scope("everything"), subject=""), EVERYTHING),
        (replace(EYES, reach="library", scope=Scope("everything")), "Mira"),
    ],
)
def test_about(record: Record, about: str) -> None:
    assert added(record).about == about


def test_edit_of_library_record_stays_with_its_entity() -> None:
    was = fold([at(added(replace(EYES, reach="library")), 1)])["mira/eyes"]
    assert edited(was, by="person", time=9, subject="Mira of the Lamp").about == "mira"


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": " "}, {"id": " a"}, {"text": " \n"}, {"kind": "fancy"}, {"status": "gone"}, {"realm": "real"}, {"scope": Scope("world")},  # type: ignore[arg-type]
        {"importance": 0.5}, {"importance": 11}, {"by": "model 7"}, {"reach": "everywhere"},
        {"reach": "library", "scope": Scope("character"), "subject": "", "owner": ""},
    ],
)  # fmt: skip
def test_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        added(replace(EYES, **wrong))
    assert caught.value.next_action


@pytest.mark.parametrize("wrong", [{}, {"id": "b"}, {"time": 8, "colour": "red"}, {"status": "ended"}, {"text": ""}, {"kind": "plan"}])
def test_refuses_edit(wrong: dict[str, Any]) -> None:
    with pytest.raises((InputError, TypeError)):
        edited(EYES, by="person", **({"time": 5} | wrong))


def test_refuses_retraction_without_a_reason_and_restoring_what_is_active() -> None:
    with pytest.raises(InputError):
        retracted(EYES, " ", by="person", time=5)
    with pytest.raises(InputError):
        restored(EYES, by="person", time=5)


def test_edit_changes_what_it_names() -> None:
    add = at(added(EYES), 1)
    was = fold([add])["mira/eyes"]
    edit = at(edited(was, by="model", time=6, run="fork", text="Её глаза зелёные.", entities=("Мира",), scope=Scope("scene", "ball")), 2)
    assert (edit.run, edit.lane, edit.time) == ("fork", "main", 6)
    now = fold([add, edit])["mira/eyes"]
    assert now == replace(was, text="Её глаза зелёные.", entities=("Мира",), scope=Scope("scene", "ball"), by="model", pos=2)
    assert edit.hash == text_hash(embedded_text(now))
    assert edit.terms.split() == terms_of(now)


def test_retract_and_restore() -> None:
    rows = [at(added(EYES), 1)]
    rows.append(at(retracted(fold(rows)["mira/eyes"], "invented", by="person", time=5), 2))
    assert fold(rows)["mira/eyes"].status == "retracted"
    rows.append(at(restored(fold(rows)["mira/eyes"], by="person", time=6), 3))
    assert fold(rows)["mira/eyes"].status == "active"


@pytest.mark.parametrize(("event", "status"), [("supersede", "superseded"), ("end", "ended")])
def test_events_that_come_later_fold(event: str, status: str) -> None:
    add = at(added(EYES), 1)
    end = RecordRow("mira/eyes", "r", "main", 9, event, {"of": 1, "to": "mira/eyes2", "until": "scene 3"}, pos=2)
    now = fold([add, end])["mira/eyes"]
    assert now.status == status
    assert now.valid_until == ("scene 3" if event == "end" else None)
    assert history([add, end], "mira/eyes")[1].what.startswith(("Superseded by mira/eyes2", "Ended with scene 3"))


def test_unknown_event_of_a_later_version_changes_nothing_and_is_told() -> None:
    rows = [at(added(EYES), 1), RecordRow("mira/eyes", "r", "main", 9, "fade", {}, pos=2)]
    assert fold(rows)["mira/eyes"].text == EYES.text
    assert not history(rows, "mira/eyes")[1].applied


def test_logical_time_counts_not_position() -> None:
    add = at(added(EYES), 1)
    was = fold([add])["mira/eyes"]
    late = at(edited(was, by="model", time=9, text="Late."), 2)
    early = at(edited(was, by="model", time=5, text="Early."), 3)
    assert fold([add, late, early])["mira/eyes"].text == "Late."
    assert fold([add, late, early])["mira/eyes"].pos == 2


def test_position_counts_in_the_library() -> None:
    add = at(added(replace(EYES, reach="library")), 1)
    was = fold([add])["mira/eyes"]
    novel = at(edited(was, by="import", time=900, run="novel", text="Of the novel."), 2)
    chat = at(edited(was, by="import", time=3, run="chat", text="Of the chat."), 3)
    assert fold([add, novel, chat])["mira/eyes"].text == "Of the chat."


def test_edit_does_not_spill_over_to_a_record_made_anew() -> None:
    was = fold([at(added(EYES), 1)])["mira/eyes"]
    edit = at(edited(was, by="person", time=4, text="Corrected."), 2)
    again = at(added(replace(EYES, text="Made anew.")), 5)  # the step at position 1 was withdrawn and run again
    assert fold([edit, again])["mira/eyes"].text == "Made anew."
    assert "made anew" in history([edit, again], "mira/eyes")[1].what


def test_history_in_plain_words() -> None:
    rows = [at(added(EYES), 1)]
    was = fold(rows)["mira/eyes"]
    rows.append(at(edited(was, by="person", time=6, recorded=200.0, text="Mira's eyes are green.", importance=7.0), 2))
    rows.append(at(edited(was, by="model", time=8, text="Mira's eyes are brown."), 3))
    rows.append(at(retracted(was, "no longer needed", by="person", time=9), 4))
    told = history(rows, "mira/eyes")
    assert [(c.who, c.recorded, c.time, c.applied) for c in told] == [
        ("a model", 100.0, 4, True),
        ("a person", 200.0, 6, True),
        ("a model", 0.0, 8, False),
        ("a person", 0.0, 9, True),
    ]
    assert [c.what for c in told] == [
        "Remembered, from narrator: “Mira's eyes are grey.”",
        "Importance changed from 4 to 7; text changed from “Mira's eyes are grey.” to “Mira's eyes are green.”.",
        "Text changed from “Mira's eyes are green.” to “Mira's eyes are brown.”. Not applied: a person's word stands.",
        "Retracted: no longer needed.",
    ]


def test_embedded_text_names_its_people() -> None:
    assert embedded_text(Record("a", "fact", "prefers tea.", "Мира")) == "Мира: prefers tea."
    assert embedded_text(Record("a", "fact", "Мира любит чай.", "Мира")) == "Мира любит чай."
    assert embedded_text(Record("a", "fact", "It rains.")) == "It rains."


def test_terms_hold_entities_once() -> None:
    terms = terms_of(Record("a", "fact", "She met Orlov.", entities=("Orlov", "米拉"), subject="Мира"))
    assert sorted(terms) == sorted(["met", "orlov", "мир", "米拉"])


# -- properties ------------------------------------------------------------------------------------------------------------------------

act = st.tuples(
    st.sampled_from(["edit", "edit", "retract", "restore"]),
    st.sampled_from(["model", "model", "person", "import"]),
    st.integers(4, 8),
    st.sampled_from(["a", "b"]),
)


def rows_of(acts: list[tuple[str, str, int, str]], library: bool) -> list[RecordRow]:
    rows = [at(added(replace(EYES, reach="library" if library else "run")), 1)]
    was = fold(rows)["mira/eyes"]
    for pos, (event, by, time, lane) in enumerate(acts, 2):
        if event == "edit":
            row = edited(was, by=by, time=time, lane=lane, text=f"Text {pos}.")
        elif event == "retract":
            row = retracted(was, "a test", by=by, time=time, lane=lane)
        else:
            row = restored(replace(was, status="retracted"), by=by, time=time, lane=lane)
        rows.append(at(row, pos))
    return rows


@given(st.lists(act, max_size=8), st.booleans())
def test_a_persons_word_stands(acts: list[tuple[str, str, int, str]], library: bool) -> None:
    """What a person did last in the order that counts is what holds, whatever models and imports do (SPEC M8)."""
    rows = rows_of(acts, library)
    now = fold(rows)["mira/eyes"]
    mine = [row for row in rows if row.by == "person"]
    last = max(mine, key=lambda row: row.pos if library else (row.time, row.pos), default=None)
    if last is None:
        return
    assert (now.by, now.pos) == ("person", last.pos)
    assert now.status == {"edit": now.status, "retract": "retracted", "restore": "active"}[last.event]
    if last.event == "edit":
        assert now.text == last.data["changes"]["text"]


@given(st.lists(act, max_size=8), st.booleans(), st.randoms(use_true_random=False))
def test_commits_out_of_order_fold_alike(acts: list[tuple[str, str, int, str]], library: bool, chance: random.Random) -> None:
    """Run records do not depend on the order in which lanes commit, but for what one lane or one person did at one time."""
    rows = rows_of(acts, library)
    keys = [(row.time, row.by == "person", row.lane if row.by != "person" else "") for row in rows[1:]]
    if library or len(set(keys)) < len(keys):
        return
    mixed = rows[1:]
    chance.shuffle(mixed)
    again = [rows[0], *(at(row, pos) for pos, row in enumerate(mixed, 2))]
    assert replace(fold(again)["mira/eyes"], pos=0) == replace(fold(rows)["mira/eyes"], pos=0)


@given(st.lists(act, max_size=8), st.integers(4, 9))
def test_fold_of_the_past_is_a_prefix(acts: list[tuple[str, str, int, str]], time: int) -> None:
    """The history up to a time tells the record as of that time."""
    rows = [row for row in rows_of(acts, library=False) if row.time < time or row.pos == 1]
    changes = [change for change in history(rows, "mira/eyes") if change.applied]
    assert fold(rows)["mira/eyes"].pos == changes[-1].pos
