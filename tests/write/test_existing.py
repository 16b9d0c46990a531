"""A novel that goes on from a whole book: its text stays, its end is shown, what a reading knows of it is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.formats import read_book, render_book
from fabula.memory import Memory
from fabula.models import Request, Scripted
from fabula.runs import replay, stale
from fabula.store import PieceRow, RecordRow, RunRow, Store, open_store
from fabula.text import count_tokens, length
from fabula.write import Character, ManuscriptChapter, Novel, Premise, Remembered, Series, Story, manuscript_of
from fabula.write._existing import PASSAGE, bare, cut

WORDS = {"en": 250, "zh": 420, "ru": 220}
PLANS = {
    "en": ("Mira rows to the seventh buoy.", "Mira asks the ferryman about the brass key.", "Mira sleeps through the storm."),
    "zh": ("米拉划船去第七个浮标。", "米拉向船夫打听铜钥匙。", "米拉在风暴中睡着了。"),
    "ru": ("Мира плывёт к седьмому бую.", "Мира спрашивает паромщика о медном ключе.", "Мира спит всю бурю."),
}
KEY = {
    "en": "Mira hid the brass key under the seventh stone of the quay.",
    "zh": "米拉把铜钥匙藏在码头的第七块石头下面。",
    "ru": "Мира спрятала медный ключ под седьмым камнем набережной.",
}
FILL = {
    "en": "The tide came in over the flats of day {n}, and nobody on the pier spoke of it to the others.",
    "zh": "第{n}天的潮水漫过滩涂，码头上没有人向别人提起这件事。",
    "ru": "Прилив дня {n} залил отмели, и никто на пирсе не сказал об этом другим ни слова.",
}
LABELS = {"en": "Chapter {n}", "zh": "第{n}章", "ru": "Глава {n}"}


def text(language: str, first: int, sentences: int, gap: str = "\n\n") -> str:
    lines = [FILL[language].format(n=first + n) for n in range(sentences)]
    glue = "" if language == "zh" else " "
    return gap.join(glue.join(lines[n : n + 4]) for n in range(0, len(lines), 4))


def book(language: str = "en", chapters: int = 4, sentences: int = 60) -> tuple[ManuscriptChapter, ...]:
    numbers = ["一", "二", "三", "四", "五", "六", "七", "八", "九"] if language == "zh" else [str(n) for n in range(1, 1000)]
    out = [ManuscriptChapter("The Harbour Book", "", ())]
    for n in range(chapters):
        scenes = (text(language, n * 1000, sentences), f"  {KEY[language]}\n" if n == 1 else text(language, n * 1000 + 500, 8, "\n"))
        out.append(ManuscriptChapter(f"Title {n}", LABELS[language].format(n=numbers[n]), scenes))
    return tuple(out)


def known(language: str = "en") -> tuple[Remembered, ...]:
    return (
        Remembered(KEY[language], "fact", quote=KEY[language].rstrip(".。"), entities=("Mira",), evidence=("book.epub:12-13",)),
        Remembered(FILL[language].format(n=2), "summary", quote=FILL[language].format(n=2), order=-1),
        Remembered("Nobody of the harbour can swim." if language == "en" else FILL[language].format(n=7)),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = open_store(tmp_path / "a.db")
    yield held
    held.close()


def scripted(language: str = "en", answers: Any = None) -> Scripted:
    return Scripted(answers, words=WORDS[language], language=language, count_tokens=count_tokens)  # type: ignore[arg-type]


def start(store: Store, language: str = "en", model: Scripted | None = None, **premise: Any) -> Novel:
    given = {"manuscript": book(language), "memories": known(language), "plans": PLANS[language], "title": "The Quay", **premise}
    return Novel.start(store, Premise(**given), model=model or scripted(language), memory=Memory(store), seed="seed")


def go(novel: Novel, steps: int | None = None) -> list[Any]:
    return asyncio.run(novel.write(steps=steps))


def sent(request: Request) -> str:
    return "\n".join(m.content for m in request.messages)


def asked(novel: Novel, purpose: str = "") -> list[Request]:
    model = novel.run.model
    assert isinstance(model, Scripted)
    return [r for r in model.requests if not purpose or r.purpose == purpose]


# -- the text --------------------------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [FILL["en"].format(n=4), FILL["zh"].format(n=4), "\n", "\n\n", " \n \n", "　　", "  ", "a" * 3000, "。", "\t", "——"]
)


@settings(max_examples=30, deadline=None)
@given(st.lists(_PIECES, max_size=120).map("".join))
def test_a_scene_is_its_passages_and_what_stands_between_them(scene: str) -> None:
    parts = cut(scene)
    assert "".join(before + passage for before, passage in parts) == scene
    assert parts[0][0] == ""
    assert all(not before.strip() and passage == passage.rstrip() for before, passage in parts[1:-1])


@pytest.mark.parametrize("language", ["en", "zh", "ru"])
@pytest.mark.parametrize("gap", ["\n\n", "\n", "\n　　", " "])
def test_passages_are_of_the_size_of_a_step(language: str, gap: str) -> None:
    parts = cut(text(language, 0, 600, gap))
    sizes = [count_tokens(passage) for _, passage in parts]
    assert len(parts) > 10
    assert min(sizes) > PASSAGE / 4
    assert max(sizes) < PASSAGE * 1.6
    assert len(cut("x " * 100)) == 1


@pytest.mark.parametrize(
    "blanks", [" " * 100_000 + "x", "x" + "\n" * 100_000, "x" + " " * 100_000 + "y"], ids=["before", "after", "between"]
)
def test_long_blanks_are_cut_in_linear_work(blanks: str) -> None:
    """With a look at all of them for each cut it would not end."""
    assert "".join(before + passage for before, passage in cut(blanks)) == blanks


@pytest.mark.parametrize("language", ["en", "zh", "ru"])
def test_a_book_is_continued_in_a_chapter_of_its_own(store: Store, tmp_path: Path, language: str) -> None:
    manuscript = book(language)
    novel = start(store, language)
    assert not novel.must_begin
    assert novel.language == language
    assert novel.plans == list(PLANS[language])
    steps = go(novel, 3)
    assert [s.output["kind"] for s in steps] == ["passage"] * 3
    assert steps[0].output["place"] == "chapter"
    assert not asked(novel, "beginning")
    chapters = novel.chapters()
    assert [(c.label, c.title, tuple(s.text for s in c.scenes)) for c in chapters[:5]] == [(m.label, m.title, m.scenes) for m in manuscript]
    assert [c.label for c in chapters[5:]] == [LABELS[language].format(n="五" if language == "zh" else 5)]
    assert novel.length == sum(length(p.text, language) for p in novel.passages())
    assert asyncio.run(replay(store, Story(), novel.id)) == (3, [])
    for suffix in ("md", "txt", "epub", "docx"):
        path = novel.export(tmp_path / f"x.{suffix}")
        read = read_book(path).chapters
        assert [tuple(s.text for s in c.scenes) for c in read[:5]] == [m.scenes for m in manuscript]
        assert [c.heading(language) for c in read] == [c.heading(language) for c in novel.book().chapters]


@pytest.mark.parametrize("language", ["en", "zh", "ru"])
def test_the_prompt_holds_the_end_and_what_is_remembered_and_nothing_else_of_the_book(store: Store, language: str) -> None:
    novel = start(store, language)
    novel.choose(2)
    go(novel, 1)
    request = asked(novel)[0]
    assert request.purpose == "passage"
    assert PLANS[language][1] in sent(request)
    assert FILL[language].format(n=3507) in sent(request)
    assert KEY[language] in sent(request)
    whole = "\n".join(sent(r) for r in asked(novel))
    there = [n for c in range(4) for n in (*range(c * 1000, c * 1000 + 60), *range(c * 1000 + 500, c * 1000 + 508))]
    shown = {n for n in there if FILL[language].format(n=n) in whole}
    assert set(range(3500, 3508)) <= shown <= {2, 7, *range(3500, 3508)}


@pytest.mark.parametrize("gap", ["\n", "\n　　", "\n\n\n", " "])
def test_a_long_scene_is_exported_as_it_was(store: Store, tmp_path: Path, gap: str) -> None:
    scene = text("zh", 0, 200, gap)
    novel = start(store, "zh", manuscript=(ManuscriptChapter("", "第一章", (scene, scene)),), memories=())
    assert len(novel.passages()) > 6
    assert [s.text for s in novel.chapters()[0].scenes] == [scene, scene]
    assert [s.text for s in read_book(novel.export(tmp_path / "x.epub")).chapters[0].scenes] == [scene, scene]
    assert novel.text() == f"{scene}\n\n{scene}"


def test_what_is_in_the_prompt_is_not_recalled_beside_it(store: Store) -> None:
    last = FILL["en"].format(n=3506)
    novel = start(store, memories=(*known(), Remembered("Everybody knew why day 3506 was quiet.", "fact", quote=last)), plans=(last,))
    novel.choose(1)
    (step,) = go(novel, 1)
    assert not any(r.id in step.output["memories"] for r in novel.memories() if "3506" in r.text)
    assert step.output["memories"]


def test_the_step_costs_no_more_with_a_longer_book(store: Store) -> None:
    prompts = []
    for chapters in (2, 40):
        novel = start(store, manuscript=book("en", chapters, 200), memories=())
        go(novel, 2)
        prompts.append(max(novel.run.count(sent(r), 1.0) for r in asked(novel)))
    assert abs(prompts[1] - prompts[0]) < 100


def test_the_journaled_premise_does_not_hold_the_book_again(store: Store) -> None:
    novel = start(store)
    assert "tide came in" not in str(store.rows(RunRow, id=novel.id)[0].premise)
    assert novel.premise.plans == PLANS["en"]
    child = novel.fork(0)
    assert "tide came in" not in str(store.rows(RunRow, id=child)[0].premise)


def test_memories_are_imported_in_the_order_of_the_book(store: Store) -> None:
    novel = start(store)
    rows = [r for r in store.rows(RecordRow) if r.event == "add"]
    assert {(r.by, r.time, r.run) for r in rows} == {("import", -1, novel.id)}
    found = novel.memories()
    assert [r.kind for r in found] == ["summary", "fact", "observation"]
    assert found[1].evidence == ("book.epub:12-13",)
    assert (found[0].episode, found[1].episode) == ("m2", "m3")
    assert found[0].happened < found[1].happened < found[2].happened < 0


def test_length_means_what_is_written_anew(store: Store) -> None:
    novel = start(store, length=1500, ending="Mira finds the ferry.")
    before = novel.length
    assert novel.length_before == before > 3000
    assert novel.goal == before + 1500
    steps = go(novel)
    assert novel.finished
    assert 0.7 * 1500 < novel.length - before < 1.35 * 1500
    assert next(s.output["place"] for s in steps) == "chapter"
    assert "landing" in [s.output["place"] for s in steps]
    assert steps[-1].output["place"] == "last"
    assert len(novel.chapters()) == 6


def test_an_outline_is_for_what_is_new(store: Store) -> None:
    outline = tuple({"title": f"T{n}", "plan": f"Mira does thing number {n} at the harbour."} for n in range(2))
    novel = start(store, outline=outline, chapter_length=400, plans=())
    go(novel)
    assert novel.finished
    assert [(c.label, c.title) for c in novel.chapters()[5:]] == [("Chapter 5", "T0"), ("Chapter 6", "T1")]


@pytest.mark.parametrize(
    ("labels", "new"),
    [
        (["Prologue", "Chapter One", "Chapter Two", "Epilogue"], "Chapter Three"),
        (["第十九章", "第二十章"], "第二十一章"),
        (["I", "II"], "III"),
        (["", ""], "Chapter 3"),
        (["Part 1", "Chapter 7", "Part 2", "Chapter 8"], "Chapter 9"),
        (["ГЛАВА ПЕРВАЯ", "ГЛАВА ВТОРАЯ"], "ГЛАВА ТРЕТЬЯ"),
    ],
)
def test_a_new_chapter_is_numbered_as_the_old_ones(store: Store, labels: list[str], new: str) -> None:
    manuscript = tuple(ManuscriptChapter("", label, (text("en", n * 100, 8),)) for n, label in enumerate(labels))
    novel = start(store, manuscript=manuscript, memories=())
    go(novel, 1)
    assert [c.label for c in novel.chapters()] == [*labels, new]


# -- a person's acts -----------------------------------------------------------------------------------------------------------------


def key_passage(novel: Novel) -> str:
    return next(p.id for p in novel.passages() if KEY["en"] in p.text)


def test_an_edit_of_an_old_passage_retires_what_rested_on_it_and_tells_it_anew(store: Store) -> None:
    corrected = KEY["en"].replace("brass", "iron")
    model = scripted(answers={"restate": {"held": [{"number": 1, "text": corrected}]}})
    novel = start(store, model=model)
    go(novel, 1)
    passage = key_passage(novel)
    novel.edit_passage(passage, f"{corrected} Nobody saw it.")
    assert KEY["en"] not in [r.text for r in novel.memories()]
    (step,) = go(novel, 1)
    assert step.output["kind"] == "rederive"
    assert len(step.output["told_anew"]) == 1
    assert step.output["forgotten"] == []
    assert KEY["en"] in sent(asked(novel, "restate")[0])
    assert corrected in sent(asked(novel, "restate")[0])
    (made,) = [r for r in novel.memories() if r.text == corrected]
    assert made.kind == "fact"
    assert made.quote in novel.passage(passage).text
    novel.choose(1)
    novel.set_plan("Mira asks the ferryman about the key under the seventh stone of the quay.")
    go(novel, 1)
    request = asked(novel, "passage")[-1]
    assert corrected in sent(request)
    assert KEY["en"] not in sent(request)
    novel.edit_passage(passage, "Nothing happened there.")
    assert corrected not in [r.text for r in novel.memories()]
    assert asyncio.run(replay(store, Story(), novel.id)) == (3, [])


def test_what_an_edit_leaves_standing_stays(store: Store) -> None:
    novel = start(store)
    passage = key_passage(novel)
    novel.edit_passage(passage, f"It rained. {KEY['en']} It rained.")
    assert KEY["en"] in [r.text for r in novel.memories()]
    go(novel, 1)
    assert not asked(novel, "restate")
    first = novel.passages()[0].id
    novel.edit_passage(first, novel.passage(first).text + " It rained.")
    assert [r.kind for r in novel.memories() if r.by == "import"] == ["fact", "observation"]


def test_an_edit_taken_back_brings_the_memory_back(store: Store) -> None:
    novel = start(store)
    go(novel, 1)
    passage = key_passage(novel)
    before = novel.passage(passage).text
    novel.edit_passage(passage, "Nothing happened there.")
    assert KEY["en"] not in [r.text for r in novel.memories()]
    novel.edit_passage(passage, before)
    assert KEY["en"] in [r.text for r in novel.memories()]
    at = novel.edit_passage(passage, "Nothing happened there.")
    novel.run.undo_edit(at)
    assert KEY["en"] in [r.text for r in novel.memories()]
    assert novel.passage(passage).text == before


def test_a_quote_that_ends_in_the_next_passage(store: Store) -> None:
    """It holds as long as each part of it stands where it stood."""
    scene = text("en", 0, 300)
    first, second = (passage for _, passage in cut(scene)[:2])
    quote = f"{first[-60:]} {second[:60]}"
    memory = Remembered("The tide was not spoken of.", "fact", quote=quote)
    novel = start(
        store, manuscript=(ManuscriptChapter("", "", (scene,)),), memories=(memory,), model=scripted(answers={"restate": {"held": []}})
    )
    a, b, *_ = (p.id for p in novel.passages())
    assert novel.run.piece(f"memories:{a}")[0]["at"] == [a, b]
    novel.edit_passage(b, f"{second} It rained.")
    novel.edit_passage(a, f"It rained. {first}")
    assert novel.memories()
    novel.edit_passage(b, "It rained.")
    assert not novel.memories()
    (step,) = go(novel, 1)
    assert step.output["forgotten"] == [novel.memories(every=True)[0].id]
    assert not novel.run.piece(f"memories:{a}")


def test_a_summary_of_several_places_is_told_anew_for_all_of_them(store: Store) -> None:
    scene, other = text("en", 0, 8), text("en", 100, 8)
    quotes = (FILL["en"].format(n=1), FILL["en"].format(n=101))
    memory = Remembered("Nobody spoke of the tide, on either pier.", "summary", quote=quotes[0], quotes=quotes[1:])
    model = scripted(answers={"restate": {"held": [{"number": 1, "text": "Nobody spoke of the rain, on either pier."}]}})
    novel = start(store, manuscript=(ManuscriptChapter("", "", (scene, other)),), memories=(memory,), model=model)
    a, b = (p.id for p in novel.passages())
    novel.edit_passage(b, "It rained, and nobody spoke of it.")
    assert not novel.memories()
    go(novel, 1)
    anew = next(r for r in novel.memories() if "either pier" in r.text)
    assert [e["id"] for p in (a, b) for e in novel.run.piece(f"memories:{p}")] == [anew.id] * 2
    novel.edit_passage(a, "The pier was empty.")
    assert not any("either pier" in r.text for r in novel.memories())


def test_what_is_erased_is_nowhere(store: Store, tmp_path: Path) -> None:
    novel = start(store)
    novel.close()
    store.erase([KEY["en"], KEY["en"].rstrip(".")], "private")
    store.close()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file()).decode("utf-8", "ignore")
    again = open_store(tmp_path / "a.db")
    pieces = str([row.value for row in again.rows(PieceRow)]) + str([row.data for row in again.rows(RecordRow)])
    again.close()
    for form in (KEY["en"].rstrip("."), bare(KEY["en"])):
        assert form not in pieces
        assert form not in written


def test_a_memory_that_cannot_be_told_anew_is_forgotten(store: Store) -> None:
    novel = start(store, model=scripted(answers={"restate": "no JSON"}))
    passage = key_passage(novel)
    novel.edit_passage(passage, "Nothing happened there.")
    (step,) = go(novel, 1)
    assert len(step.output["forgotten"]) == 1
    assert KEY["en"] not in [r.text for r in novel.memories()]


def test_rewriting_an_old_passage_and_removing_one(store: Store) -> None:
    novel = start(store, model=scripted(answers={"rewrite": "Mira threw the key into the sea.", "restate": {"held": []}}))
    passage = key_passage(novel)
    old, position = novel.length_before, novel.run.piece("position")
    novel.rewrite(passage, KEY["en"], "she throws it away")
    go(novel, 2)
    assert KEY["en"] not in [r.text for r in novel.memories()]
    assert novel.length_before == old - length(KEY["en"], "en") + 7
    novel.remove_passage(passage)
    assert novel.length_before == old - length(KEY["en"], "en")
    now = novel.run.piece("position")
    assert (now["chapter"], now["last"], now["old_passages"]) == ("", position["last"], position["old_passages"] - 1)
    go(novel, 1)
    assert novel.chapters()[-1].label == "Chapter 5"


def test_undo_regenerate_fork_and_stale(store: Store) -> None:
    novel = start(store)
    first = novel.run.piece("position")
    go(novel, 2)
    texts = [p.text for p in novel.passages()]
    novel.regenerate()
    go(novel, 1)
    assert novel.passages()[-1].text != texts[-1]
    assert [p.text for p in novel.passages()][:-1] == texts[:-1]
    novel.edit_passage(novel.passages()[-3].id, "The pier was empty.")
    assert [s.step.time for s in stale(novel.run)][:1] == [0]
    fixed = Novel.open(store, novel.fork(0, corrected=True), model=scripted(), memory=Memory(store))
    go(fixed, 2)
    assert "The pier was empty." in sent(next(r for r in asked(fixed, "passage")))
    novel.back_to(0)
    assert {**novel.run.piece("position"), "length": 0, "old": 0} == {**first, "length": 0, "old": 0}
    plain = Novel.open(store, novel.fork(0), model=scripted(), memory=Memory(store))
    assert len(plain.passages()) == first["passages"]
    assert [r.by for r in plain.memories()] == ["import"] * 3
    assert [s.output["kind"] for s in go(plain, 2)] == ["rederive", "passage"]  # the edit holds in it, and is derived first
    assert plain.chapters()[-1].label == "Chapter 5"


def test_a_corrected_fork_retires_the_memory_too(store: Store) -> None:
    novel = start(store, model=scripted(answers={"restate": {"held": []}}))
    go(novel, 2)
    novel.edit_passage(key_passage(novel), "Nothing happened there.")
    fixed = Novel.open(store, novel.fork(1, corrected=True), model=scripted(), memory=Memory(store))
    assert KEY["en"] not in [r.text for r in fixed.memories()]
    plain = Novel.open(store, novel.fork(1))
    assert KEY["en"] in [r.text for r in plain.memories()]


def test_a_heading_of_a_volume_survives_acts_on_the_manuscript(store: Store) -> None:
    manuscript = (ManuscriptChapter("Winter", "Part One"), *book()[1:3], ManuscriptChapter("Summer", "Part Two"), *book()[3:])
    novel = start(store, manuscript=manuscript)
    labels = [c.label for c in novel.chapters()]
    novel.insert_passage("At the very beginning.", after=None)
    novel.edit_passage(key_passage(novel), "Nothing happened there.")
    novel.move_chapter("m1", 1)
    assert sorted(c.label for c in novel.chapters()) == sorted(labels)
    assert novel.chapters()[0].scenes[0].passages[0].text == "At the very beginning."


def test_a_series_and_a_cast(store: Store) -> None:
    series = Series(store, "The Coast")
    series.add("Ottoline", "a diver with green eyes")
    novel = start(store, cast=(*series.cast(), Character("Mira", "a girl")), plans=("Ottoline dives.",))
    series.join(novel)
    assert [r.entities for r in novel.memories() if r.kind == "fact"] == [("Mira",)]
    go(novel, 1)
    assert "green eyes" in sent(asked(novel)[0])


def test_a_long_setting_is_remembered_whole(store: Store) -> None:
    lines = " ".join(f"In the year {n} the harbour master of Port {n} kept a ledger of stone number {n}." for n in range(1200, 1500))
    novel = start(store, setting=lines)
    go(novel, 1)
    novel.set_plan("Mira asks about stone number 1477 of Port 1477.")
    go(novel, 1)
    assert "stone number 1477" in sent(asked(novel, "passage")[-1]).replace("asks about stone number 1477", "")


# -- what is refused ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("premise", "words"),
    [
        ({"plans": ()}, "goes on"),
        ({"manuscript": (ManuscriptChapter("x"),)}, "no text"),
        ({"opening": "It began."}, "both"),
        ({"memories": (Remembered("x", "rumour"),)}, "Memory 1"),  # type: ignore[arg-type]
        ({"memories": (Remembered(" "),)}, "says nothing"),
    ],
)
def test_a_wrong_manuscript_is_refused(store: Store, premise: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        start(store, **premise)
    assert store.position() == 0


def test_memories_without_a_manuscript_and_plans_of_ones_own(store: Store) -> None:
    novel = start(store, manuscript=(), short_term=("Mira is on the quay.",))
    assert not novel.must_begin
    novel.choose(2)
    go(novel, 1)
    assert KEY["en"] in sent(asked(novel)[0])
    assert novel.goal is None


def test_a_book_from_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("Part One\n\nChapter 1\n\nIt rained.\n\n***\n\nIt rained on.\n", "utf-8")
    assert manuscript_of(read_book(path)) == (
        ManuscriptChapter("", "Part One"),
        ManuscriptChapter("", "Chapter 1", ("It rained.", "It rained on.")),
    )
    assert render_book(read_book(path), "text")
