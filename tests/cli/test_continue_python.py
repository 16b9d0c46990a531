"""A whole book is continued from Python in one call."""

from __future__ import annotations

from pathlib import Path

import pytest

import fabula
from fabula.errors import InputError, NotFound
from fabula.write import Remembered

DRAFT = "《码头》\n\n第一章 港口\n\n米拉数了数船，一共有四条。昨天还有五条。\n\n第二章 锁\n\n最后一把锁还在门上。钥匙在第七块石头下面。\n"


def test_a_manuscript_from_a_file(home: Path) -> None:
    Path("draft.txt").write_text(DRAFT, "utf-8")
    with fabula.write("米拉去取钥匙。", manuscript="draft.txt", words=900, steps=2, out="book.txt") as book:
        assert (book.title, book.language) == ("码头", "zh")
        assert [(c.label, c.title) for c in book.chapters()] == [("第一章", "港口"), ("第二章", "锁"), ("第三章", "")]
        assert book.goal == book.length_before + 900
        assert [s.output["kind"] for s in book.steps()] == ["passage"] * 2
        assert book.steps()[0].output["plan"]["text"] == "米拉去取钥匙。"
    assert "第二章　锁\n----------\n\n最后一把锁还在门上。钥匙在第七块石头下面。\n" in Path("book.txt").read_text("utf-8")
    with pytest.raises(NotFound):
        fabula.write("x", manuscript="nowhere.txt", steps=0)
    with pytest.raises(InputError, match="goes on"):
        fabula.write(manuscript="draft.txt", steps=0)


def test_what_is_known_is_recalled_from_the_first_step(home: Path) -> None:
    Path("draft.txt").write_text(DRAFT, "utf-8")
    known = [Remembered("钥匙藏在第七块石头下面。", "fact", quote="钥匙在第七块石头下面")]
    with fabula.write(manuscript="draft.txt", memories=known, plans=["米拉去第七块石头那里取钥匙。"], steps=0) as book:
        assert not book.must_begin
        assert [m.text for m in book.memories()] == ["钥匙藏在第七块石头下面。"]
        book.choose(1)
        book.step()
        assert book.length > book.length_before
