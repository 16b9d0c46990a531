"""Finding by words, for a person: without an embedder, in each language, as a view sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabula.errors import InputError
from fabula.memory import Record, View, added, edited, fold, retracted, search
from fabula.store import RecordRow, RunRow, WithdrawnRow
from tests.memory.conftest import VIEW, Shelf


def rec(ident: str, text: str, time: int = 1, run: str = "run") -> Record:
    return Record(ident, "fact", text, run=run, lane="main", time=time)


def ids(records: list[Record]) -> list[str]:
    return [record.id for record in records]


@pytest.fixture
def full(shelf: Shelf) -> Shelf:
    shelf.add(
        rec("ru", "Анна отдала ключи Мире."), rec("ru2", "Мирный договор подписан."), rec("zh", "旧灯塔里住着米拉和她的猫。"),
        rec("zh2", "狗睡在拉面店门口。"), rec("en", "Mira's keys were stolen."), rec("en2", "Stolen goods: a key and a lamp."),
    )  # fmt: skip
    return shelf


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Мирой", ["ru"]), ("Анны", ["ru"]), ("АННЕ", ["ru"]), ("米拉", ["zh"]), ("灯塔", ["zh"]), ("灯塔的猫", ["zh"]), ("猫", ["zh"]),
        ("key", ["en", "en2"]), ("stolen lamp", ["en2", "en"]), ("lamp stolen keys", ["en2", "en"]),
        ("unicorn", []), ("塔楼", []), ("狼", []),
    ],
)  # fmt: skip
def test_finds(full: Shelf, text: str, expected: list[str]) -> None:
    assert ids(search(full.store, text, view=VIEW)) == expected
    assert ids(search(full.store, text)) == expected


def test_limit_and_order(shelf: Shelf) -> None:
    for i in range(30):
        shelf.add(rec(f"r{i}", "key" if i % 3 else "key and lamp", i))
    found = ids(search(shelf.store, "lamp key", limit=12))
    assert found == [f"r{i}" for i in range(27, -1, -3)] + ["r29", "r28"]


def test_nothing_to_look_for(shelf: Shelf) -> None:
    with pytest.raises(InputError):
        search(shelf.store, " ")


def test_current_text_counts(full: Shelf) -> None:
    was = fold(full.store.rows(RecordRow, id="en"))["en"]
    full.write([edited(was, by="person", time=3, text="Mira's purse was stolen.")])
    assert ids(search(full.store, "keys", view=VIEW)) == ["en2"]
    assert ids(search(full.store, "purse", view=VIEW)) == ["en"]
    assert ids(search(full.store, "purse", view=replace(VIEW, time=3))) == []
    assert ids(search(full.store, "keys", view=replace(VIEW, time=3))) == ["en", "en2"]


def test_retracted_on_request(full: Shelf) -> None:
    was = fold(full.store.rows(RecordRow, id="en"))["en"]
    full.write([retracted(was, "wrong", by="person", time=3)])
    assert ids(search(full.store, "keys")) == ["en2"]
    assert [r.status for r in search(full.store, "keys", every=True)] == ["retracted", "active"]


def test_as_the_view_sees(full: Shelf) -> None:
    pos = full.add(rec("late", "a key of glass", 9))
    full.write([added(rec("other", "a key of brass", 1, "chat"))], "chat")
    full.write([added(replace(rec("bound", "a key of tin", 1, "chat"), reach="library", about="Mira", by="person"))], "chat")
    with full.store.write("fork", "fork") as tx:
        tx.add(RunRow("fork", "novel", "", "s", "s", {}, parent="run", cut=5, pin=tx.pos - 1))
    child = View(tuple(full.store.line("fork")), entities=("Mira",))
    assert ids(search(full.store, "key", view=VIEW)) == ["late", "en", "en2"]
    assert ids(search(full.store, "key", view=child)) == ["bound", "en", "en2"]
    assert ids(search(full.store, "key")) == ["bound", "other", "late", "en", "en2"]
    with full.store.write("run", "withdraw") as tx:
        tx.add(WithdrawnRow(pos, "run", "undone"))
    assert ids(search(full.store, "key", view=VIEW)) == ["en", "en2"]
    assert ids(search(full.store, "glass")) == []
