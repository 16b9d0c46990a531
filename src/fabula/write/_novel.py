"""A novel as a person handles it: start or open it, let it write, and change anything in it (SPEC W3–W6)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import InputError, NotFound, NotPossible
from fabula.memory import Memory, Record, View
from fabula.models import Model, extract_json
from fabula.runs import Limits, Listener, Run, act, advance, create, facts_of, fork, records_of, silent, view_of
from fabula.store import CallRow, StepRow, Store
from fabula.text import length
from fabula.write import _manuscript as manuscript
from fabula.write._check import check_language_fits
from fabula.write._existing import existing
from fabula.write._forgetting import forgetting
from fabula.write._manuscript import ChapterView, PassageView
from fabula.write._premise import Premise
from fabula.write._story import Story
from fabula.write._telling import LANE

if TYPE_CHECKING:
    from fabula.formats import Book, Kept

How = Literal["rewrite", "expand", "shorten"]

PROSE = ("passage",)
"""Purposes whose samples are raised when a passage is made again."""


class Novel:
    """One book: a run of the kind `write`."""

    def __init__(self, run: Run):
        self.run = run
        self.premise = Premise.from_dict(run.row.premise)

    # -- start, open, fork -------------------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        store: Store,
        premise: Premise,
        *,
        model: Model,
        small_model: Model | None = None,
        memory: Memory | None = None,
        listen: Listener = silent,
        limits: Limits | None = None,
        seed: str | None = None,
        anyway: bool = False,
    ) -> Novel:
        """Begin a book. Nothing is asked yet.

        Raises:
            InputError: the premise is empty or wrong.
            LanguageUnfit: the model is marked unfit for the language, unless `anyway`.
        """
        premise = premise.checked()
        if not anyway:
            check_language_fits(facts_of(store, model), premise.language)
        run = secrets.token_hex(6)
        there = existing(premise, run, LANE)
        create(
            store, Story(there.pieces), premise.as_dict(), title=premise.title, run=run, seed=seed, model=model, small_model=small_model,
            records=there.records,
        )  # fmt: skip
        return cls.open(store, run, model=model, small_model=small_model, memory=memory, listen=listen, limits=limits)

    @classmethod
    def open(
        cls,
        store: Store,
        run: str,
        *,
        model: Model | None = None,
        small_model: Model | None = None,
        memory: Memory | None = None,
        listen: Listener = silent,
        limits: Limits | None = None,
        hold: bool | None = None,
    ) -> Novel:
        """Open a book to go on (with a model), to edit it (`hold=True`), or to read it.

        Raises:
            NotFound, Held; NotPossible: the run is not a book.
        """
        row = store.run(run)
        if row.kind != Story.kind:
            raise NotPossible(f"Run {row.id} is a {row.kind} run, not a book.", f"Open it with `fabula {row.kind}`.")
        memory = memory or (Memory(store) if model is not None else None)
        run_ = Run(store, Story(), row.id, model=model, small_model=small_model, memory=memory, listen=listen, limits=limits, hold=hold)
        novel = cls(run_)
        if run_.holding and len(manuscript.passage_ids(run_)) != run_.piece("position")["passages"]:
            novel._settle()  # a withdrawal was cut short before this
        return novel

    def fork(self, at: int, title: str = "", *, corrected: bool = False) -> str:
        """A new run that shares everything before logical time `at`. Returns its id; open it with `Novel.open`.

        Args:
            at: the first logical time that is not shared.
            title: of the new run; empty = the parent's.
            corrected: a person's later edits of what is shared (texts of passages, setting, cast) hold in the fork too, so that what rested
                on the old text can be written anew. Otherwise the fork begins as it was then.
        """
        child = fork(self.run.store, self.run.id, at, title=title)
        if corrected:
            novel = Novel.open(self.run.store, child, hold=True)
            later = {
                (LANE, name): rows[-1].value
                for name in novel.run.piece_names(LANE)
                if (rows := self.run.versions(name)) and rows[-1].by == "person" and rows[-1].version > at and Story().timeless(name)
            }
            texts = sorted(name.removeprefix("text:") for _, name in later if name.startswith("text:"))
            changes, records = forgetting(novel.run, {p: str(later[LANE, f"text:{p}"]["text"]) for p in texts})
            later.update(changes)
            if later:
                novel.run.edit(manuscript.reckon(novel.run, self.language, later), records=records)
            novel.close()
        return child

    def close(self) -> None:
        """Stop holding the run."""
        self.run.close()

    # -- what is there ---------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.id

    @property
    def language(self) -> str:
        """ISO 639-1."""
        return self.premise.language

    @property
    def title(self) -> str:
        """The book's title, or its premise's first words."""
        return str(self.run.piece("title") or " ".join(self.premise.premise.split()[:8])[:60] or self.run.id)

    @property
    def plans(self) -> list[str]:
        """The candidate plans for the next passage."""
        return list(self.run.piece("plans", default=[]))

    @property
    def plan(self) -> Mapping[str, Any] | None:
        """The chosen plan: text, by, reason; None = not chosen."""
        held: Mapping[str, Any] | None = self.run.piece("plan")
        return held

    @property
    def short_term(self) -> list[str]:
        """The short-term memory, one sentence each."""
        return list(self.run.piece("short_term", default=[]))

    @property
    def finished(self) -> bool:
        """The last passage is written."""
        return bool(self.run.piece("ended"))

    @property
    def length(self) -> int:
        """Length so far, in the language's unit, with a manuscript that was there already."""
        return int(self.run.piece("position")["length"])

    @property
    def length_before(self) -> int:
        """Length of the manuscript that was there already, as it is now; 0 = there was none."""
        return int(self.run.piece("position").get("old", 0))

    @property
    def goal(self) -> int | None:
        """The length of the whole book that it steers to: what was asked for, beyond the manuscript that was there; None = no end."""
        asked: int | None = self.run.piece("length")
        return None if asked is None else asked + self.length_before

    @property
    def must_begin(self) -> bool:
        """The next step invents the beginning; otherwise it writes a passage, and a person can choose its plan first."""
        return Story.must_begin(self.premise, self.run.frontier(), self.run.piece)

    def chapters(self, at: int | None = None) -> list[ChapterView]:
        """The manuscript in order; `at`: as it was before the step of that logical time."""
        return manuscript.chapters(self.run, self.language, at)

    def passages(self, at: int | None = None) -> list[PassageView]:
        """Every passage in order."""
        return [p for c in self.chapters(at) for s in c.scenes for p in s.passages]

    def passage(self, passage: str) -> PassageView:
        """One passage. Raises NotFound."""
        for one in self.passages():
            if one.id == passage:
                return one
        raise NotFound(f"Run {self.id} has no passage {passage}.", "See the passages with `fabula runs show RUN`.")

    def text(self) -> str:
        """The whole text, scenes and passages separated by blank lines; what was there already is as it was."""
        return "\n\n".join(s.text for c in self.chapters() for s in c.scenes)

    def machine_share(self) -> float:
        """Share of the text (0..1, by length) that stands in passages as a model wrote them."""
        sizes = [(length(p.text, self.language), p.by == "model") for p in self.passages()]
        whole = sum(size for size, _ in sizes)
        return sum(size for size, machine in sizes if machine) / whole if whole else 0.0

    def book(self, *, note: bool = False) -> Book:
        """The book as `fabula.formats` takes it. `note`: it carries the models' names and the share of machine text (W10)."""
        from fabula.formats import Book, Chapter, Scene

        said = ""
        if note:
            names = sorted({p.value["name"] for p in self.run.versions("model", "") if p.value})
            said = f"Written with {', '.join(names) or 'no model'}; machine text: {self.machine_share():.0%}. Made with Fabula."
        chapters = tuple(Chapter(c.id, c.title, c.label, tuple(Scene(scene.id, scene.text) for scene in c.scenes)) for c in self.chapters())
        return Book(
            title=self.title, language=self.language, chapters=chapters, identifier=f"fabula:{self.run.line[-1].run}:{self.id}", note=said
        )

    def export(self, path: Path, *, format: str | None = None, note: bool = False) -> Path:
        """Write the book to a file: Markdown, EPUB, DOCX or text, by its suffix."""
        from fabula.formats import write_book

        return write_book(self.book(note=note), path, format)

    def keep(self, path: Path) -> Kept:
        """Keep a Markdown file current, written only when the book changed. Says whether it was, and where a person's edit of it went."""
        from fabula.formats import keep_current

        return keep_current(self.book(), path)

    # -- driving -------------------------------------------------------------------------------------------------------------------

    async def step(self) -> StepRow | None:
        """The next step; None where the book is finished."""
        done = await advance(self.run, steps=1)
        return done[0] if done else None

    async def write(self, *, steps: int | None = None, stop: Callable[[], bool] = lambda: False) -> list[StepRow]:
        """Go on alone: for so many steps, or until the book is finished."""
        return await advance(self.run, steps=steps, stop=stop)

    # -- a person's acts ---------------------------------------------------------------------------------------------------------------

    def choose(self, number: int, text: str | None = None) -> int:
        """Choose a candidate plan (from 1), revised by `text` where given. Returns the edit's position, as all acts do."""
        plans = self.plans
        if not 1 <= number <= len(plans):
            raise InputError(f"There are {len(plans)} plans; {number} is none of them.", "Choose one of them, or write your own plan.")
        return self.set_plan(text or plans[number - 1], choice=number)

    def set_plan(self, text: str, choice: int | None = None) -> int:
        """The person's own plan (or free text, in interactive fiction)."""
        if not text.strip():
            raise InputError("The plan is empty.")
        return self.change(plan={"text": text.strip(), "by": "person", "reason": "", "choice": choice})

    def set_short_term(self, lines: Sequence[str] | str) -> int:
        """Edit the short-term memory: sentences, or a text with one a line."""
        kept = lines.splitlines() if isinstance(lines, str) else lines
        return self.change(short_term=[line.strip().removeprefix("- ").strip() for line in kept if line.strip()])

    def set_note(self, text: str) -> int:
        """Pin an author's note in every prompt; empty = none."""
        return self.change(note=text.strip())

    def change(self, **pieces: Any) -> int:
        """Set pieces of state by name; see `fabula.write._story` for the names. Raises InputError for an unknown one."""
        known = set(self.run.piece_names(LANE)) | {"bound"}
        unknown = sorted(set(pieces) - known)
        if unknown:
            raise InputError(f"There is no piece of state called {', '.join(unknown)}.", f"There are: {', '.join(sorted(known))}.")
        return self.run.edit({(LANE, name): value for name, value in pieces.items()})

    def edit_passage(self, passage: str, text: str) -> int:
        """Change a passage. Its memory is retired at once and derived again by the next step; nothing else changes."""
        held = self.run.piece(f"text:{passage}")
        if held is None:
            raise NotFound(f"Run {self.id} has no passage {passage}.", "See the passages with `fabula runs show RUN`.")
        if not text.strip():
            raise InputError("A passage may not be empty.", "Remove it instead.")
        if text == held["text"]:
            raise InputError(f"The text of passage {passage} is the same as before.", "Nothing was changed.")
        changes, records = forgetting(self.run, {passage: text})
        changes[LANE, f"text:{passage}"] = {**held, "text": text, "by": "person"}
        return self.run.edit(manuscript.reckon(self.run, self.language, changes), records=records)

    def _act(self, changes: manuscript.Changes) -> int:
        """Commit an act on the manuscript, with what follows for the position, as one edit."""
        return self.run.edit(manuscript.reckon(self.run, self.language, changes))

    def memories(self, *, every: bool = False) -> list[Record]:
        """The long-term memory: current records, oldest first; `every`: also those that are retracted, superseded or ended."""
        return records_of(self.run, every=every)

    def view(self) -> View:
        """What the next step could recall, as `Memory` takes it."""
        return view_of(self.run)

    def add_memory(self, text: str) -> int:
        """Remember something; the next recall may find it."""
        return act(self.run, "add", {"text": text})

    def edit_memory(self, record: str, text: str) -> int:
        """Change what a record says. A model never changes it back. Raises NotFound, InputError."""
        return act(self.run, "edit", {"id": record, "text": text})

    def retract_memory(self, record: str, why: str) -> int:
        """Take a record out of recall; `restore_memory` brings it back."""
        return act(self.run, "retract", {"id": record, "why": why})

    def restore_memory(self, record: str, why: str = "") -> int:
        """Bring back a record that is retracted, superseded or ended."""
        return act(self.run, "restore", {"id": record, "why": why})

    def skip_rederive(self) -> int:
        """Do not derive memory again from edited passages."""
        return self.change(rederive=[])

    def rewrite(self, passage: str, selection: str | tuple[int, int], direction: str = "", how: How = "rewrite") -> int:
        """Ask the next step to rewrite, expand or shorten a selection (its text, or its span in characters).

        Raises:
            InputError: the selection does not occur, or occurs more than once.
        """
        text = self.passage(passage).text
        if isinstance(selection, str):
            count = text.count(selection) if selection else 0
            if count != 1:
                raise InputError(f"The selection occurs {count} times in passage {passage}.", "Select a part that occurs exactly once.")
            start = text.index(selection)
            span = (start, start + len(selection))
        else:
            span = selection
        if not 0 <= span[0] < span[1] <= len(text):
            raise InputError(f"Passage {passage} has {len(text)} characters; {span} is no part of it.")
        return self.change(task={"do": "rewrite", "passage": passage, "start": span[0], "end": span[1], "direction": direction, "how": how})

    def insert_passage(self, text: str, *, after: str | None) -> str:
        """Insert a passage of the person's own. Returns its id; its memory is derived by the next step."""
        if not text.strip():
            raise InputError("A passage may not be empty.")
        passage = self._fresh("i")
        changes = manuscript.insert_passage(self.run, passage, after, f"s{passage}", f"c{passage}")
        changes[LANE, f"text:{passage}"] = {"text": text, "by": "person", "record": ""}
        changes[LANE, "rederive"] = sorted({*self.run.piece("rederive", default=[]), passage})
        self._act(changes)
        return passage

    def remove_passage(self, passage: str) -> int:
        """Take a passage out of the book; it stays in the journal, and the act can be undone."""
        self.passage(passage)
        changes = manuscript.remove_passage(self.run, passage)
        more, records = forgetting(self.run, {passage: ""}, gone=True)
        return self.run.edit(manuscript.reckon(self.run, self.language, {**changes, **more}), records=records)

    def move_scene(self, scene: str, chapter: str, index: int) -> int:
        """Move a scene to a place (from 0) in a chapter."""
        return self._arrange(manuscript.move_scene(self.run, scene, chapter, index))

    def split_scene(self, before: str) -> int:
        """Begin a new scene before a passage."""
        return self._arrange(manuscript.split_scene(self.run, before, self._fresh("s")))

    def merge_scenes(self, first: str, second: str) -> int:
        """Join two neighbouring scenes."""
        return self._arrange(manuscript.merge_scenes(self.run, first, second))

    def split_chapter(self, before: str) -> int:
        """Begin a new chapter before a scene."""
        return self._arrange(manuscript.split_chapter(self.run, before, self._fresh("c")))

    def merge_chapters(self, first: str, second: str) -> int:
        """Join two neighbouring chapters."""
        return self._arrange(manuscript.merge_chapters(self.run, first, second))

    def move_chapter(self, chapter: str, index: int) -> int:
        """Move a chapter to a place (from 0) in the order; ids and texts stay."""
        return self._arrange(manuscript.move_chapter(self.run, chapter, index))

    def name_chapter(self, chapter: str, *, title: str | None = None, label: str | None = None) -> int:
        """Set a chapter's title, or the label that is printed over it."""
        held = self.run.piece(f"chapter:{chapter}")
        if held is None:
            raise NotFound(f"There is no chapter {chapter}.")
        named = {**held, "title": held["title"] if title is None else title, "label": held["label"] if label is None else label}
        return self.run.edit({(LANE, f"chapter:{chapter}"): named})

    def _arrange(self, changes: manuscript.Changes) -> int:
        """Commit a new order."""
        if not changes:
            raise InputError("That changes nothing.")
        return self._act(changes)

    def _fresh(self, prefix: str) -> str:
        """A new id: of the run and the position that the act will have, so that it never comes twice."""
        return f"{prefix}{self.run.store.position() + 1}"

    # -- going back ----------------------------------------------------------------------------------------------------------------------

    def undo(self) -> StepRow:
        """Withdraw the last step; what it wrote stays in the journal, and its plan can be chosen anew.

        Raises:
            NotPossible: nothing is written, or the step is the parent's (fork it instead).
        """
        last = self.run.store.steps(self.run.line, newest_first=True, limit=1)
        if not last:
            raise NotPossible("There is nothing to undo yet.")
        return self.back_to(last[0].time)

    def back_to(self, time: int) -> StepRow:
        """Withdraw the step of a logical time and all after it. Returns the step withdrawn first.

        What a person did since stays, as far as it does not concern what these steps wrote: notes, memories, other passages.
        """
        gone = self.run.withdraw(LANE, time, "undone by a person")
        self._settle()
        if self.plan and self.plan.get("by") == "person" and self.plans:
            self.change(plan=None)
        return gone[0]

    def _settle(self) -> None:
        """After a withdrawal: order and position agree with the manuscript again."""
        changes = manuscript.reckon(self.run, self.language)
        if changes:
            self.run.edit(changes, kind="settle")

    def regenerate(self) -> StepRow:
        """Withdraw the last passage so that the next step writes it anew from the same plan."""
        step = self.run.regenerate(PROSE)
        self._settle()
        return step

    def swipe(self, sample: int) -> StepRow:
        """Go back to an earlier text of the last passage (sample from 0); making it again asks nothing."""
        step = self.run.store.steps(self.run.line, newest_first=True, limit=1)
        if not step or not 0 <= sample < self.run.samples(step[0], PROSE[0]):
            raise NotPossible(f"The last passage has no text number {sample}.")
        made = self.run.regenerate(PROSE, base=sample)
        self._settle()
        return made

    def texts(self) -> list[str]:
        """The texts that the last passage was given so far, as the model wrote them, by sample: what `swipe` takes."""
        last = self.run.store.steps(self.run.line, newest_first=True, limit=1)
        if not last or last[0].output.get("kind") != "passage":
            return []
        step, by_sample = last[0], dict[int, list[str]]()
        for row in self.run.store.rows(CallRow, run=step.run, step=step.step, time=step.time, purpose=PROSE[0], status="answered"):
            value = extract_json(row.answer) if row.answer.lstrip().startswith("{") else None
            by_sample.setdefault(row.sample, []).append(str(value["passage"]) if isinstance(value, dict) else row.answer)
        return ["\n\n".join(by_sample.get(sample, [])) for sample in range(max(by_sample, default=-1) + 1)]

    def steps(self) -> list[StepRow]:
        """The live steps in order."""
        return self.run.store.steps(self.run.line)

    def step_of(self, passage: str) -> StepRow:
        """The step that wrote a passage. Raises NotFound."""
        for step in self.steps():
            if isinstance(step.output, dict) and step.output.get("passage") == passage:
                return step
        raise NotFound(f"No step of run {self.id} wrote passage {passage}.", "It may be your own.")
