"""The writer end to end on the scripted model: steps, steering, a person's acts, and that each act is in the next request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, LanguageUnfit, NotFound, NotPossible, PromptError, StepFailed
from fabula.memory import Memory, View, edited
from fabula.models import Profile, Request, Scripted
from fabula.runs import advance, drafts, replay, stale, stale_pieces, trace
from fabula.store import CallRow, RecordRow, Store, open_store
from fabula.text import count_tokens, find_quote, length, sentences
from fabula.write import Character, Novel, Premise, Series, Story

PREMISES = {
    "en": "A lighthouse keeper vanishes on a stormy night, and Inspector Vale finds his broken watch.",
    "zh": "暴风雨之夜，灯塔看守人失踪了，探长林岚只找到一块停走的怀表。",
    "ru": "В бурную ночь исчезает смотритель маяка, и следователь Мира находит его сломанные часы.",
}
WORDS = {"en": 250, "zh": 420, "ru": 220}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = open_store(tmp_path / "a.db")
    yield held
    held.close()


def scripted(language: str = "en", answers: Any = None, **options: Any) -> Scripted:
    return Scripted(answers, words=WORDS[language], language=language, count_tokens=count_tokens, **options)  # type: ignore[arg-type]


def start(store: Store, language: str = "en", model: Scripted | None = None, **premise: Any) -> Novel:
    given = {"premise": PREMISES[language], "genre": "mystery", **premise}
    return Novel.start(store, Premise(**given), model=model or scripted(language), memory=Memory(store), seed="seed")


def go(novel: Novel, steps: int | None = None) -> list[Any]:
    return asyncio.run(novel.write(steps=steps))


def asked(novel: Novel) -> list[Request]:
    model = novel.run.model
    assert isinstance(model, Scripted)
    return model.requests


def sent(request: Request) -> str:
    return "\n".join(m.content for m in request.messages)


# -- the step --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh", "ru"])
@pytest.mark.parametrize("small", [False, True])
def test_a_story_from_premise_to_end(store: Store, language: str, small: bool) -> None:
    target = {"en": 1500, "zh": 2600, "ru": 1400}[language]
    novel = start(store, language, length=target, small=small, ending="The keeper is found alive.")
    go(novel)
    assert novel.finished
    assert novel.language == language
    assert 0.7 * target < novel.length < 1.35 * target
    assert novel.length == sum(length(p.text, language) for p in novel.passages())
    assert len([s for s in novel.steps() if s.output["kind"] == "passage"]) >= 4
    places = [s.output["place"] for s in novel.steps() if s.output["kind"] == "passage"]
    assert places[0] == "first"
    assert places[-1] == "last"
    assert any("keeper is found alive" in sent(r) for r in asked(novel))
    assert asyncio.run(replay(store, Story(), novel.id)) == (len(novel.steps()), [])


def test_the_step_sees_content_plan_short_and_long_term_memory(store: Store) -> None:
    novel = start(store)
    go(novel, 5)
    request = [r for r in asked(novel) if r.purpose == "passage"][-1]
    before = novel.passages()[-2].text
    assert before[-200:] in sent(request)
    plan = novel.steps()[-1].output["plan"]["text"]
    assert plan in sent(request)
    step = novel.steps()[-1]
    memos = trace(store, novel.id, step.time).recalls["plan"]
    assert memos
    assert all(m.text in sent(request) for m in memos)
    assert all(line in sent(request) for line in novel.run.piece("short_term", version=step.time))


def test_every_summary_carries_a_quote_and_every_sentence_was_answered(store: Store) -> None:
    novel = start(store)
    go(novel, 5)
    texts = {p.id: p.text for p in novel.passages()}
    rows = [r for r in store.rows(RecordRow) if r.event == "add"]
    assert len(rows) == len(texts)
    for row in rows:
        (passage,) = row.data["evidence"]
        assert find_quote(row.data["quote"], texts[passage]) is not None
    answers = "\n".join(c.answer for c in store.rows(CallRow, status="answered"))
    for text in texts.values():
        assert all(s.strip() in answers for s in sentences(text, "en"))


def test_two_stories_from_one_premise_differ(store: Store) -> None:
    texts = []
    for _ in range(2):
        novel = Novel.start(store, Premise(premise=PREMISES["en"]), model=scripted(), memory=Memory(store))
        go(novel, 2)
        texts.append(novel.text())
    assert texts[0] != texts[1]


def test_prompt_tokens_never_exceed_the_budget(store: Store) -> None:
    novel = start(
        store,
        prompt_tokens=2_500,
        setting="A cold coast. " * 400,
        short_term=tuple(f"Mira knows thing {n} of the many." for n in range(200)),
    )
    go(novel, 6)
    most = max(novel.run.count(sent(r), 1.0) + 8 * len(r.messages) + 8 for r in asked(novel))
    assert most <= 2_500


def test_a_long_background_is_kept_whole_and_recalled(store: Store) -> None:
    lines = " ".join(f"In the year {n} the harbour master of Port {n} kept a ledger of stone number {n}." for n in range(1200, 1500))
    novel = start(
        store, setting=lines, plan="Inspector Vale asks about stone number 1477 of Port 1477.", short_term=("Inspector Vale is here.",)
    )
    go(novel, 1)
    novel = start(store, setting=lines)
    go(novel, 1)
    novel.set_plan("Inspector Vale asks about stone number 1477 of Port 1477.")
    go(novel, 1)
    request = [r for r in asked(novel) if r.purpose == "passage"][-1]
    assert "stone number 1477" in sent(request).replace("asks about stone number 1477", "")
    assert novel.run.piece("setting") == lines


def test_single_call_as_the_paper_has_it(store: Store) -> None:
    novel = start(store, single_call=True, length=900)
    go(novel, 5)
    passages = [s for s in novel.steps() if s.output["kind"] == "passage"]
    assert len([r for r in asked(novel) if r.purpose == "passage"]) >= len(passages) == 4
    assert not [r for r in asked(novel) if r.purpose == "books"]


def test_chapters_have_stable_ids_and_an_order_of_their_own(store: Store) -> None:
    novel = start(store, chapter_length=500)
    go(novel, 7)
    before = novel.chapters()
    assert len(before) >= 3
    assert [c.label for c in before[:2]] == ["Chapter 1", "Chapter 2"]
    novel.move_chapter(before[1].id, 0)
    novel.name_chapter(before[1].id, title="The Watch", label="Prologue")
    after = novel.chapters()
    assert [c.id for c in after[:2]] == [before[1].id, before[0].id]
    assert (after[0].label, after[0].title, after[1].label) == ("Prologue", "The Watch", "Chapter 2")
    novel.merge_chapters(after[0].id, after[1].id)
    assert len(novel.chapters()) == len(before) - 1
    novel.split_chapter(novel.chapters()[0].scenes[1].id)
    assert [p.id for p in novel.passages()] == [p.id for c in [before[1], before[0], *before[2:]] for s in c.scenes for p in s.passages]


# -- steering, languages, models ----------------------------------------------------------------------------------------------------


def test_a_model_unfit_for_the_language_is_refused_before_the_first_call(store: Store) -> None:
    model = scripted("ru", profile=Profile("poor", languages={"en": "good", "ru": "unfit"}))
    with pytest.raises(LanguageUnfit, match="not fit"):
        start(store, "ru", model=model)
    assert model.requests == []
    assert Novel.start(store, Premise(premise=PREMISES["ru"]), model=model, anyway=True).language == "ru"


@pytest.mark.parametrize(
    ("premise", "words"),
    [
        ({"premise": ""}, "empty"),
        ({"premise": "x", "language": "xx"}, "language"),
        ({"premise": "x", "length": 0}, "length"),
        ({"premise": "x", "step_length": (9, 3)}, "no range"),
        ({"premise": "x", "prompt_tokens": 10}, "cannot hold"),
        ({"premise": "x", "chapters": 3, "outline": ({"title": "a", "plan": "b"},)}, "outline"),
    ],
)
def test_a_wrong_premise_is_refused(store: Store, premise: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Novel.start(store, Premise(**premise), model=scripted())
    assert store.position() == 0


def test_a_gap_in_an_outline_is_found_and_filled(store: Store) -> None:
    """YILING0013/AI_NovelGenerator #157: the model skips from chapter 30 to 71."""

    def outline(request: Request) -> dict[str, Any]:
        numbers = [int(n) for n in re.search(r"exactly the chapters with these numbers: ([\d, ]+\d)", sent(request)).group(1).split(", ")]  # type: ignore[union-attr]
        skipped = [n for n in numbers if not 30 < n < 71] or numbers[:1]
        extra = [] if len(skipped) == len(numbers) else [71]
        return {"chapters": [{"number": n, "title": f"T{n}", "plan": f"Mira does thing number {n}."} for n in [*skipped, *extra]]}

    novel = start(store, chapters=90, model=scripted(answers={"outline": outline}))
    asyncio.run(advance(novel.run, stop=lambda: novel.run.piece("outline:89") is not None))
    held = [novel.run.piece(f"outline:{n}") for n in range(90)]
    assert [h["title"] for h in held] == [f"T{n}" for n in range(1, 91)]


def test_chapters_follow_the_outline_in_order(store: Store) -> None:
    outline = tuple({"title": f"T{n}", "plan": f"Mira does thing number {n} at the harbour."} for n in range(3))
    novel = start(store, outline=outline, chapter_length=400)
    go(novel)
    assert novel.finished
    assert [c.title for c in novel.chapters()] == ["T0", "T1", "T2"]
    plans = [s.output["plan"]["text"] for s in novel.steps() if s.output["kind"] == "passage"]
    assert [o["plan"] for o in outline] == [p for p in plans if p.startswith("Mira does thing number")]


def test_own_memory_and_plan_begin_without_a_premise(store: Store) -> None:
    novel = start(
        store,
        premise="",
        plan="Vale opens the door of the tower.",
        short_term=("Vale is at the tower.", "Vale has the key."),
        language="en",
    )
    go(novel, 1)
    request = asked(novel)[0]
    assert request.purpose == "passage"
    assert "Vale opens the door of the tower." in sent(request)
    assert "Vale has the key." in sent(request)


def test_an_opening_of_the_persons_own_is_kept_byte_for_byte(store: Store) -> None:
    opening = "The lamp went out at nine.\n\n  Nobody saw who did it — and nobody asked."
    novel = start(store, opening=opening)
    go(novel, 2)
    assert novel.passages()[0].text == opening
    assert novel.passages()[0].by == "person"
    assert "nobody asked" in sent(next(r for r in asked(novel) if r.purpose == "passage"))
    assert 0 < novel.machine_share() < 1


# -- a person's acts ------------------------------------------------------------------------------------------------------------------


def test_each_edit_is_in_the_next_request(store: Store) -> None:
    novel = start(store)
    go(novel, 3)
    novel.set_short_term(["Mira holds the blue lantern.", "The ferry is gone."])
    novel.set_note("No phones, ever.")
    novel.change(cast=[{"name": "Ottoline", "about": "a diver who lies"}])
    novel.set_plan("Ottoline dives for the bell.")
    go(novel, 1)
    request = next(r for r in reversed(asked(novel)) if r.purpose == "passage")
    for words in ("Mira holds the blue lantern.", "No phones, ever.", "a diver who lies", "Ottoline dives for the bell."):
        assert words in sent(request)
    go(novel, 2)
    assert "No phones, ever." in sent([r for r in asked(novel) if r.purpose == "passage"][-1])


def test_an_edited_passage_is_what_the_next_step_reads(store: Store) -> None:
    novel = start(store)
    go(novel, 3)
    last = novel.passages()[-1]
    novel.edit_passage(last.id, "Mira burnt the map and threw the ashes into the sea.")
    old = [r for r in novel.run.memory.records(View(tuple(novel.run.line))) if last.id in r.evidence]  # type: ignore[union-attr]
    assert old == []
    (step,) = go(novel, 1)
    assert step.output["kind"] == "rederive"
    assert "burnt the map" in sent(asked(novel)[-1])
    (step,) = go(novel, 1)
    assert "burnt the map" in sent([r for r in asked(novel) if r.purpose == "passage"][-1])
    assert asyncio.run(replay(store, Story(), novel.id)) == (5, [])


def test_an_edit_of_an_earlier_passage_marks_what_rests_on_it_and_changes_no_other_text(store: Store) -> None:
    novel = start(store)
    go(novel, 5)
    texts = {p.id: p.text for p in novel.passages()}
    first = novel.passages()[0].id
    novel.edit_passage(first, "It began otherwise: Mira had never seen the sea.")
    found = stale(novel.run)
    assert novel.passages()[1].id in {s.step.output["passage"] for s in found if s.direct}
    assert {s.step.output["passage"] for s in found} == set(texts) - {first}
    assert set(stale_pieces(novel.run)) >= {"book/short_term", "book/plans"}
    assert {p.id: p.text for p in novel.passages()} == {**texts, first: "It began otherwise: Mira had never seen the sea."}
    go(novel, 1)
    assert "book/short_term" not in stale_pieces(novel.run)


def test_an_edited_memory_is_in_the_next_request(store: Store) -> None:
    novel = start(store)
    go(novel, 4)
    record = next(iter(novel.run.memory.records(View(tuple(novel.run.line)))))  # type: ignore[union-attr]
    novel.run.edit(
        {}, records=lambda time: [edited(record, by="person", time=time, run=novel.id, text="Mira: the well holds a brass crown.")]
    )
    novel.set_plan("Mira looks for the brass crown in the well.")
    go(novel, 1)
    assert "the well holds a brass crown." in sent([r for r in asked(novel) if r.purpose == "passage"][-1])


def test_regenerate_gives_a_new_text_from_the_same_plan_and_swiping_back_the_old(store: Store) -> None:
    novel = start(store)
    go(novel, 3)
    plan, text = novel.steps()[-1].output["plan"], novel.passages()[-1].text
    novel.regenerate()
    go(novel, 1)
    assert novel.steps()[-1].output["plan"] == plan
    assert novel.passages()[-1].text != text
    count = len(asked(novel))
    novel.swipe(0)
    go(novel, 1)
    assert novel.passages()[-1].text == text
    assert len(asked(novel)) == count


def test_undo_back_and_fork(store: Store) -> None:
    novel = start(store)
    go(novel, 4)
    texts = [p.text for p in novel.passages()]
    other = Novel.open(store, novel.fork(2), model=scripted(), memory=Memory(store))
    assert [p.text for p in other.passages()] == texts[:1]
    other.set_plan("Mira leaves by the north door.")
    go(other, 1)
    assert other.passages()[-1].text != texts[1]
    assert [p.text for p in novel.passages()] == texts
    novel.undo()
    assert [p.text for p in novel.passages()] == texts[:-1]
    novel.back_to(1)
    assert novel.passages() == []
    novel.choose(1) if novel.plans else novel.set_plan("Mira waits.")
    go(novel, 1)
    assert len(novel.passages()) == 1


@pytest.mark.parametrize("how", ["rewrite", "expand", "shorten"])
def test_rewriting_a_selection_leaves_the_rest_byte_for_byte(store: Store, how: Any) -> None:
    novel = start(store, model=scripted(answers={"rewrite": "The gulls had all gone inland. Nobody said why."}))
    go(novel, 3)
    passage = novel.passages()[0]
    parts = sentences(passage.text, "en")
    novel.rewrite(passage.id, parts[1].strip(), "make it colder", how)
    (step,) = go(novel, 1)
    assert step.output["kind"] == "rewrite"
    assert "make it colder" in sent(asked(novel)[-1])
    expected = passage.text.replace(parts[1].strip(), "The gulls had all gone inland. Nobody said why.")
    assert novel.passage(passage.id).text == expected
    (step,) = go(novel, 1)
    assert step.output["kind"] == "rederive"
    with pytest.raises(InputError, match="0 times"):
        novel.rewrite(passage.id, "words that are nowhere", "x")
    with pytest.raises(NotFound):
        novel.rewrite("p99", "x", "y")


def test_scenes_and_passages_can_be_inserted_moved_split_merged_and_removed(store: Store) -> None:
    novel = start(store)
    go(novel, 4)
    first, second, third = (p.id for p in novel.passages())
    mine = novel.insert_passage("A letter lay on the sill, unread.", after=first)
    assert [p.id for p in novel.passages()] == [first, mine, second, third]
    novel.split_scene(second)
    a, b = novel.chapters()[0].scenes
    novel.move_scene(b.id, novel.chapters()[0].id, 0)
    assert [p.id for p in novel.passages()] == [second, third, first, mine]
    novel.merge_scenes(b.id, a.id)
    assert len(novel.chapters()[0].scenes) == 1
    novel.remove_passage(third)
    assert [p.id for p in novel.passages()] == [second, first, mine]
    assert novel.length == sum(length(p.text, "en") for p in novel.passages())
    go(novel, 2)
    assert "A letter lay on the sill" in sent([r for r in asked(novel) if r.purpose == "passage"][-1])
    with pytest.raises(NotFound):
        novel.move_scene("nowhere", novel.chapters()[0].id, 0)


def test_a_series_shares_its_people(store: Store) -> None:
    series = Series(store, "The Coast")
    series.add("Ottoline", "a diver with green eyes")
    series.tell("Ottoline", "Ottoline lost the brass bell in the first book.")
    novel = start(store, cast=series.cast())
    series.join(novel)
    go(novel, 1)
    novel.set_plan("Ottoline searches for the brass bell.")
    go(novel, 1)
    request = [r for r in asked(novel) if r.purpose == "passage"][-1]
    assert "lost the brass bell in the first book" in sent(request)
    with pytest.raises(NotFound):
        series.join(novel, ["Nobody"])


def test_interactive_fiction_takes_choices_and_free_text(store: Store) -> None:
    novel = start(store, mode="play")
    go(novel, 2)
    assert len(novel.plans) == 3
    novel.set_plan("I open the hatch.")
    go(novel, 1)
    request = [r for r in asked(novel) if r.purpose == "passage"][-1]
    assert "I open the hatch." in sent(request)
    assert "second person" in sent(request)
    assert "reader is the protagonist" in sent(request)


def test_own_prompts_are_journaled_with_the_run(store: Store) -> None:
    from fabula.runs import copy_prompts, own_prompts
    from fabula.write import PROMPTS

    folder = Path(store.place).parent / "prompts"
    copy_prompts(PROMPTS, "en", folder)
    text = (folder / "passage.md").read_text("utf-8")
    (folder / "passage.md").write_text(text.replace("[user]", "[user]\nWrite like a telegram.", 1), "utf-8")
    novel = start(store, prompts={"passage": own_prompts(folder, "en")["passage"]})
    for path in folder.iterdir():
        path.unlink()
    go(novel, 2)
    assert "Write like a telegram." in sent(next(r for r in asked(novel) if r.purpose == "passage"))
    bad = start(store, prompts={"passage": text.replace("slots: [", "slots: [invented, ")})
    with pytest.raises(PromptError, match="invented"):
        go(bad, 2)


def test_a_book_is_not_opened_as_something_else(store: Store) -> None:
    novel = start(store)
    with pytest.raises(InputError, match="piece of state"):
        novel.change(colour="blue")
    with pytest.raises(NotPossible, match="nothing to undo"):
        novel.undo()
    with pytest.raises(InputError, match="plans"):
        novel.choose(4)


def test_reopening_shows_the_text_byte_for_byte(store: Store, tmp_path: Path) -> None:
    novel = start(store)
    go(novel, 3)
    novel.edit_passage(novel.passages()[0].id, "  Odd   spaces,\ttabs, 混合 и кириллица — 😀\n\n\n* * *\n# not a heading \n")
    text = novel.text()
    novel.close()
    other = open_store(tmp_path / "a.db")
    assert Novel.open(other, novel.id).text() == text
    other.close()


def test_nothing_is_committed_until_all_parts_are_valid(store: Store) -> None:
    novel = start(store, model=scripted(answers={"books": "This is not JSON."}))
    go(novel, 1)
    with pytest.raises(StepFailed, match="books was refused 3 times"):
        go(novel, 1)
    assert novel.passages() == []
    assert novel.run.piece("position")["passages"] == 0
    kept = store.rows(CallRow, purpose="passage", status="answered")
    assert len(kept) == 1
    novel.run.model = scripted()
    go(novel, 1)
    assert novel.passages()[0].text in kept[0].answer
    assert not [r for r in asked(novel) if r.purpose == "passage"]
    assert drafts(store, novel.id) == []


def test_characters_are_found_in_inflected_form(store: Store) -> None:
    novel = start(store, "ru", cast=(Character("Мира", "следователь"), Character("Игнат", "смотритель")))
    go(novel, 1)
    novel.set_plan("Мира говорит с Игнатом у маяка.")
    go(novel, 1)
    found = [r for r in store.rows(RecordRow) if r.event == "add"]
    assert found


# -- acts and going back -----------------------------------------------------------------------------------------------------------------


def whole(novel: Novel) -> None:
    """Length, passages and last passage are those of the manuscript."""
    position = novel.run.piece("position")
    passages = novel.passages()
    assert position["length"] == sum(length(p.text, novel.language) for p in passages)
    assert position["passages"] == len(passages)
    assert position["last"] == (passages[-1].id if passages else "")


def test_acts_on_the_manuscript_survive_regenerate_and_undo(store: Store) -> None:
    novel = start(store)
    go(novel, 5)
    first = novel.passages()[0].id
    mine = novel.insert_passage("A letter lay on the sill, unread.", after=first)
    novel.remove_passage("p2")
    novel.name_chapter(novel.chapters()[0].id, title="The Sill")
    novel.edit_passage("p3", "Mira burnt the map, and nobody saw it.")
    novel.set_note("No phones.")
    novel.regenerate()
    assert [p.id for p in novel.passages()] == [first, mine, "p3"]
    whole(novel)
    go(novel, 3)
    ids = [p.id for p in novel.passages()]
    assert ids[:3] == [first, mine, "p3"]
    assert novel.chapters()[0].title == "The Sill"
    assert novel.passage("p3").text == "Mira burnt the map, and nobody saw it."
    whole(novel)
    novel.undo()
    whole(novel)
    assert novel.passages()[1].id == mine
    assert novel.run.piece("note") == "No phones."
    assert "unread" in sent(next(r for r in asked(novel) if r.purpose == "rederive"))
    assert asyncio.run(replay(store, Story(), novel.id))[1] == []


def test_the_length_is_right_after_an_edit_and_regenerate(store: Store) -> None:
    novel = start(store)
    go(novel, 4)
    novel.edit_passage("p1", "Short now.")
    novel.regenerate()
    go(novel, 3)
    whole(novel)


def test_a_fork_beyond_the_end_is_refused(store: Store) -> None:
    novel = start(store)
    go(novel, 3)
    with pytest.raises(InputError, match="from 0 to 3"):
        novel.fork(999)
    child = Novel.open(store, novel.fork(3), model=scripted(), memory=Memory(store))
    child.set_note("It rains.")
    go(child, 1)
    assert any("It rains." in sent(r) for r in asked(child))


def test_a_corrected_fork_holds_the_correction(store: Store) -> None:
    novel = start(store)
    go(novel, 4)
    novel.edit_passage("p1", "Mira had never owned a boat.")
    plain = Novel.open(store, novel.fork(2))
    assert plain.passage("p1").text != "Mira had never owned a boat."
    fixed = Novel.open(store, novel.fork(2, corrected=True), model=scripted(), memory=Memory(store))
    assert fixed.passage("p1").text == "Mira had never owned a boat."
    go(fixed, 2)
    assert "never owned a boat" in sent(next(r for r in asked(fixed) if r.purpose == "passage"))
    whole(fixed)


def test_what_waits_in_the_inbox_comes_before_what_is_done_now(store: Store) -> None:
    from fabula.runs import leave_input

    novel = start(store)
    go(novel, 2)
    novel.close()
    leave_input(store, novel.id, "edit", {"lane": "book", "name": "note", "value": "OLD"})
    leave_input(store, novel.id, "edit", {"nonsense": True})
    again = Novel.open(store, novel.id, hold=True)
    assert again.run.piece("note") == "OLD"
    again.set_note("NEW")
    again.close()
    third = Novel.open(store, novel.id, model=scripted(), memory=Memory(store))
    go(third, 1)
    assert third.run.piece("note") == "NEW"
