"""What was erased is in no row, no index, no vector and no byte of the files."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import Held, InputError
from fabula.store import (
    CallRow,
    FactRow,
    InboxRow,
    LogRow,
    PieceRow,
    RecallRow,
    RecordRow,
    RunRow,
    StepRow,
    Store,
    VectorRow,
    WithdrawnRow,
    open_store,
)
from fabula.store._erase import mark
from fabula.store._sqlite import SQLiteStore

SECRETS = {
    "en": "Mira's real name is Anna Berg",
    "zh": "米拉住在青石街七号",
    "ru": "Мира живёт на Садовой, 7",
    "quote": 'she said "burn\n\tit" \\ now 🙂',
}
FILLER = "The harbour was quiet that night. " * 60


def bytes_of(path: Path) -> bytes:
    return b"".join(found.read_bytes() for found in path.parent.glob(path.name + "*") if found.is_file())


def spread(store: Store, secret: str) -> dict[str, int]:
    """The text in every place where a library keeps content; plain, long enough to be compressed, and escaped in JSON."""
    said = f"Once. {secret}. Then {FILLER}"
    escaped = json.dumps({"passage": secret, "nested": json.dumps({"t": secret})})
    at = {}
    with store.write("run-a", "create") as tx:
        tx.add(RunRow("run-a", "write", f"Of {secret}", "s", "m", {"premise": said, secret: [secret]}))
    with store.write("run-a", "ask") as tx:
        tx.add(
            CallRow(
                "run-a",
                "main",
                0,
                "p",
                "",
                0,
                0,
                "f",
                "asked",
                prompt=(("system", FILLER), ("user", said), ("user", escaped)),
                request={"schema": {"description": secret}},
            )
        )
        at["asked"] = tx.pos
    for number, part in enumerate((secret[:5], secret[5:9], secret[9:] + " and more")):
        with store.write("run-a", "partial") as tx:
            tx.add(CallRow("run-a", "main", 0, "p", "", 0, 0, "f", "partial", part, sequence=number, asked=at["asked"]))
    with store.write("run-a", "answer") as tx:
        tx.add(
            CallRow(
                "run-a",
                "main",
                0,
                "p",
                "",
                0,
                0,
                "f",
                "answered",
                escaped,
                secret,
                asked=at["asked"],
                notes=(secret,),
                request={"pure": True},
            )
        )
        tx.add(RecallRow("run-a", "main", 0, 0, "m", "q", {"texts": [said]}))
        at["answer"] = tx.pos
    with store.write("run-a", "commit") as tx:
        tx.add(StepRow("run-a", "main", 0, 0, 1, {"passage": said}, {"calls": [at["answer"]], "seen": [[secret, "x", 1]]}))
        tx.add(PieceRow("run-a", "main", "memory", 1, 0, {"text": said}))
        tx.add(RecordRow("r1", "run-a", "main", 0, "add", {"text": said}, terms="mira anna berg", hash="h1"))
        tx.add(RecordRow("r2", "run-a", "main", 0, "add", {"text": "Nothing of it."}, terms="mira boat", hash="h2"))
        tx.add(VectorRow("h1", "e5", b"\x01\x02"))
        tx.add(VectorRow("h1", "other", b"\x01\x02"))
        tx.add(VectorRow("h2", "e5", b"\x03\x04"))
        at["commit"] = tx.pos
    with store.write("run-a", "more") as tx:
        tx.add(StepRow("run-a", "main", 1, 0, 2, "clean", {"calls": [], "pieces": {"memory": at["commit"]}}))
        tx.add(StepRow("run-a", "main", 2, 0, 3, "clean", {"calls": []}))
        tx.add(InboxRow("run-a", "set", {"note": secret}, 0.0))
        tx.add(FactRow("note", [secret]))
        tx.add(WithdrawnRow(999, "run-a", secret))
    return at


def forms(secret: str) -> list[bytes]:
    once = json.dumps(secret)[1:-1]
    return [form.encode() for form in {secret, json.dumps(secret, ensure_ascii=False)[1:-1], once, json.dumps(once)[1:-1], once.upper()}]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_byte_is_left(path: Path, secret: str) -> None:
    store = open_store(path)
    spread(store, secret)
    assert any(form in bytes_of(path) for form in forms(secret))
    counts = store.erase([secret], f"asked for by {secret}")
    assert counts == {
        "records": 1,
        "calls": 5,
        "outputs": 1,
        "pieces": 1,
        "prompts": 2,
        "sources": 0,
        "vectors": 2,
        "other": 5,
        "names": 0,
        "replays": 2,
        "copies": 0,
    }
    for row in everything(store):
        assert not any(form.decode() in row for form in forms(secret)), row
    raw = bytes_of(path)
    for form in forms(secret):
        assert form not in raw
    assert mark(secret).encode() in raw
    assert b"berg" not in raw, "a term of the record, which the index held"
    store.close()
    for form in forms(secret):
        assert form not in bytes_of(path)
    again = open_store(path)
    assert [finding.code for finding in again.check()] == ["withdrawn_nothing"]
    again.close()


def everything(store: Store) -> list[str]:
    assert isinstance(store, SQLiteStore)
    out = []
    for kind in (RunRow, CallRow, RecallRow, StepRow, PieceRow, RecordRow, InboxRow, FactRow, WithdrawnRow, LogRow):
        out += [json.dumps(str(row), ensure_ascii=False) + str(row) for row in store.rows(kind)]
    return out


def test_what_stands_in_its_place(path: Path) -> None:
    store = open_store(path)
    secret = SECRETS["quote"]
    spread(store, secret)
    store.erase([secret], "a wish")
    sign = mark(secret)
    assert sign.startswith("⟨erased ")
    assert store.run("run-a").title == f"Of {sign}"
    assert store.run("run-a").premise[sign] == [sign]
    asked, *partials, answered = store.rows(CallRow)
    assert [role for role, _ in asked.prompt] == ["system", "user", "user"]
    assert asked.prompt[0][1] == FILLER
    assert asked.prompt[1][1] == f"Once. {sign}. Then {FILLER}"
    assert json.loads(asked.prompt[2][1])["passage"] == sign, "JSON stays JSON"
    assert json.loads(json.loads(answered.answer)["nested"]) == {"t": sign}
    assert [row.answer for row in partials] == [f"{sign} and more", "", ""]
    assert store.search(["anna"]) == []
    assert store.search(["mira"]) == [("r2", store.rows(RecordRow)[1].pos)]
    assert store.vectors(["h1", "h2"], "e5") == {"h2": b"\x03\x04"}
    assert [row.hash for row in store.rows(RecordRow)] == ["", "h2"]
    assert store.pure("f") is None, "a text with holes serves no other run"
    (fact,) = store.rows(FactRow, name="erased")
    assert fact.value == {"why": "a wish", "marks": [sign], "runs": ["run-a"]}
    assert store.rows(LogRow, kind="erase")
    store.close()


def test_the_same_text_can_be_written_again(path: Path) -> None:
    store = open_store(path)
    secret = SECRETS["en"]
    spread(store, secret)
    store.erase([secret], "")
    prompt = (("user", f"Once. {secret}. Then {FILLER}"),)
    with store.write("run-a", "ask") as tx:
        tx.add(CallRow("run-a", "main", 9, "p", "", 0, 0, "f", "asked", prompt=prompt))
    assert store.rows(CallRow, time=9)[0].prompt == prompt
    assert store.erase([secret], "")["prompts"] == 1
    store.close()


def test_the_longest_text_goes_first(path: Path) -> None:
    store = open_store(path)
    with store.write("a", "x") as tx:
        tx.add(FactRow("x", "Anna Berg met Anna and Anna Bergmann"))
    store.erase(["Anna", "Anna Berg"], "")
    assert store.rows(FactRow, name="x")[0].value == f"{mark('Anna Berg')} met {mark('Anna')} and {mark('Anna Berg')}mann"
    store.close()


@pytest.mark.parametrize("text", ["", "abc", "米拉了", "  ab  \n"])
def test_short_texts_are_refused(path: Path, text: str) -> None:
    store = open_store(path)
    with pytest.raises(InputError) as caught:
        store.erase(["long enough", text], "")
    assert caught.value.next_action
    assert store.position() == 0
    store.close()


def test_names_and_numbers(path: Path) -> None:
    """Names stay (rows are found by them) and are counted; a number that is the text goes, positions and counts of tokens stay."""
    store = open_store(path)
    with store.write("a", "x") as tx:
        tx.add(PieceRow("a", "Anna Berg", "phone", 0, 0, {"phone": 5551234, "other": 15551234, "yes": True}))
        tx.add(CallRow("a", "m", 0, "p", "", 0, 0, "f", "answered", usage={"prompt_tokens": 5551234}))
        tx.add(StepRow("a", "m", 0, 0, 1, "", {"calls": [5551234]}))
    counts = store.erase(["Anna Berg", "5551234"], "")
    assert (counts["names"], counts["pieces"], counts["calls"], counts["outputs"]) == (1, 1, 0, 0)
    assert store.rows(PieceRow)[0].value == {"phone": mark("5551234"), "other": 15551234, "yes": True}
    assert store.usage("a")["prompt_tokens"] == 5551234
    store.close()


def test_nothing_to_erase_still_cleans_the_file(path: Path) -> None:
    store = open_store(path)
    assert set(store.erase([], "").values()) == {0}
    assert set(store.erase(["nowhere"], "").values()) == {0}
    store.close()


def test_a_held_run_is_not_erased_from(path: Path) -> None:
    store, other = open_store(path), open_store(path)
    spread(store, SECRETS["en"])
    store.hold("run-a")
    with pytest.raises(Held):
        other.erase([SECRETS["en"]], "")
    assert store.erase([SECRETS["en"]], "")["records"] == 1
    store.close()
    other.close()


def test_erase_in_memory() -> None:
    store = open_store(":memory:")
    spread(store, SECRETS["ru"])
    assert store.erase([SECRETS["ru"]], "")["records"] == 1
    assert not any(SECRETS["ru"] in row for row in everything(store))
    store.close()


def test_copies_that_still_hold_it_are_counted(path: Path) -> None:
    store = open_store(path)
    spread(store, SECRETS["ru"])
    path.with_name(path.name + ".before-repair-20260101-000000").write_bytes(b"")
    assert store.erase([SECRETS["ru"]], "")["copies"] == 1
    store.close()


def test_compressed_texts_are_what_is_compressed(path: Path) -> None:
    """The search of the raw bytes above would be worth nothing if the texts were only hidden by compression before."""
    store = SQLiteStore(path)
    spread(store, SECRETS["zh"])
    store.erase([SECRETS["zh"]], "")
    opened: list[Any] = [
        row[0] for row in store._db.all("SELECT body FROM texts UNION ALL SELECT answer FROM calls UNION ALL SELECT data FROM records")
    ]
    packed = [zlib.decompress(body[1:]) for body in opened if isinstance(body, bytes)]
    assert packed
    assert not any(SECRETS["zh"].encode() in body for body in packed)
    store.close()
