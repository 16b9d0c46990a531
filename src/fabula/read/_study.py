"""The verbs of a reading, for the faces: prepare, plan, read, result, ask, story (SPEC R1–R9)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fabula.errors import InputError, LanguageUnfit, NotPossible, RunError
from fabula.memory import Memory, View
from fabula.models import Model
from fabula.read._chunks import Gathered, gather
from fabula.read._knowledge import Entity, entities_of
from fabula.read._look import PROMPTS
from fabula.read._plan import Plan, facts_in, keep_speed, plan_of
from fabula.read._reading import Reading
from fabula.read._report import report_of
from fabula.read._result import Outcome, marks, result_of
from fabula.read._shape import QUESTIONS, STORY, STORY_STEPS, Shape, shape_of
from fabula.read._sources import SourceOptions, open_source
from fabula.read._task import Sizes, Task, sizes_for
from fabula.runs import Limits, Listener, ModelFacts, Progress, Prompts, Run, StepDone, advance, create, facts_of, fork, silent
from fabula.store import FAR, PieceRow, RunRow, Store, TextRow, open_store, text_hash
from fabula.text import LANGUAGE_NAMES, count_tokens, detect_language

_BATCH = 2_000_000
"""Characters of texts in one transaction."""
_HELD = 32_000_000
"""Characters that wait in memory until all is gathered, so that a source that cannot be read leaves nothing in the library."""
_MOST_EARLIER = 200
"""Readings among which one of the same sources is looked for."""
_FIRST = 3
"""If so many chunks are read and not one of them could be, the model is not fit for it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question that was asked after a reading."""

    run: str
    """The fork that holds the conversation."""
    question: str
    found: bool
    text: str
    """With the numbers of its citations; empty where the text does not say it."""
    claims: Sequence[Mapping[str, Any]]
    """number, text, path, lines, place, quote of each citation."""
    looked: Sequence[str]
    """Places of the text that were read for this question."""


class Study:
    """A reading, opened. Close it.

    Args:
        run: opened by `start`, `open` or `ask`.
        reading: its recurrence.
    """

    def __init__(self, run: Run, reading: Reading):
        self.run, self.reading = run, reading
        self.shape: Shape = reading.shape(run)
        self._failed: list[str] = []
        self._good = 0

    # -- opening ---------------------------------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        store: Store,
        sources: Sequence[str],
        task: Task,
        *,
        model: Model,
        small_model: Model | None = None,
        memory: Memory | None = None,
        options: SourceOptions | None = None,
        listen: Listener = silent,
        limits: Limits | None = None,
        stdin: BinaryIO | None = None,
        tell: Callable[[str], None] = lambda _: None,
        seed: str | None = None,
        run: str | None = None,
        anyway: bool = False,
        hold: bool = True,
    ) -> Study:
        """Gather the sources, cut them into chunks, keep their texts, and make the run. Nothing is asked yet.

        Args:
            store: the library.
            sources: files, folders, addresses of git repositories, or `-` for standard input.
            task: what to read for.
            model: reads.
            small_model: kept with the run; readings ask the main one.
            memory: where facts go; None = only to look.
            options: what of the sources to read.
            listen: told of progress.
            limits: what the run may spend.
            stdin: what `-` reads.
            tell: is told the name of each document as it is read.
            seed: of the run.
            run: its id; None = drawn.
            anyway: also in a language that the model is marked unfit for.
            hold: become the run's holder.

        Raises:
            InputError: a source cannot be read, or a part of the task is wrong.
            LanguageUnfit.
        """
        task = task.checked()
        facts = facts_of(store, model)
        given = _given(sources)
        sizes = _earlier_sizes(store, given, task, facts) or sizes_for(task, facts, _words_of_prompt(task, facts.token_ratio))
        ident = run or os.urandom(6).hex()
        keep = _Keep(store, ident)
        with ExitStack() as stack:
            # all are opened before any is read: a mistyped one is noticed before a text is kept
            opened = [stack.enter_context(open_source(where, options or SourceOptions(), stdin=stdin)) for where in sources]
            gathered = gather(opened, sizes.chunk, keep, tell)
        keep.flush()
        if not gathered.chunks or not any(d["characters"] for d in gathered.documents):
            raise InputError(f"There is nothing to read in {', '.join(sources)}.", "Name a file or folder that holds text.")
        language = task.language or (detect_language(task.task) if task.task else None) or _language_of(gathered)
        _check_fit(model, language, anyway)
        shape = shape_of(task.way_for(len(gathered.chunks)), gathered.chunks, sizes.fan_in)
        premise = {
            "task": asdict(task), "language": language, "sizes": sizes.as_dict(), "premise": task.task, "given": given,
            "words_task": _words_task(task, gathered, language, sizes.small),
        }  # fmt: skip
        reading = Reading(gathered, shape)
        create(store, reading, premise, title=gathered.title, run=ident, seed=seed, model=model, small_model=small_model)
        opened_run = Run(
            store, reading, ident, model=model, small_model=small_model, memory=memory, listen=listen, limits=limits, hold=hold
        )
        return cls(opened_run, reading)

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
    ) -> Study:
        """Open a reading: to go on with it, or without a model to look at it.

        Raises:
            NotFound, Held, NotPossible: it is a run of another kind.
        """
        row = store.run(run)
        if row.kind != Reading.kind:
            raise NotPossible(f"Run {row.id} is no reading, but a run of the kind {row.kind!r}.", "See the runs with `fabula runs list`.")
        reading = Reading()
        return cls(
            Run(store, reading, row.id, model=model, small_model=small_model, memory=memory, listen=listen, limits=limits, hold=hold),
            reading,
        )

    @property
    def id(self) -> str:
        """Of the run."""
        return self.run.id

    @property
    def title(self) -> str:
        """Names what is read."""
        return self.run.row.title

    @property
    def task(self) -> str:
        """What it is read for."""
        return str(self.run.row.premise["words_task"])

    @property
    def language(self) -> str:
        """Of the answers."""
        return str(self.run.row.premise["language"])

    @property
    def finished(self) -> bool:
        """The task is answered."""
        return self.reading.answered(self.run)

    def view(self) -> View:
        """What the reading remembers."""
        return View(tuple(self.run.line), None, FAR, FAR, ())

    def close(self) -> None:
        """Let the run go."""
        self.run.close()

    # -- reading ---------------------------------------------------------------------------------------------------------------

    def plan(self, *, local: bool = False) -> Plan:
        """What it will cost."""
        return plan_of(self.run, self.reading, self.run.store, local=local, at_once=self.at_once())

    async def read(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Read to the end. What is journaled is not asked again.

        Raises:
            LimitReached, ModelError: nothing is lost; read on later.
            StepFailed, RunError: nothing could be read.
        """
        began, before = time.monotonic(), self.usage()
        outer = self.run.listen
        self.run.listen = self._watching(outer)
        lanes = [lane for lane in self.run.lanes if lane not in (STORY, QUESTIONS)]
        try:
            await advance(self.run, lanes=lanes, at_once=2 * self.at_once(), stop=lambda: stop() or self._hopeless())
        finally:
            self.run.listen = outer
            self._learn(before, time.monotonic() - began)
        if self._hopeless():
            raise RunError(
                f"None of the first {_FIRST} chunks could be read: {self._failed[0]}.",
                "Try another model, or smaller chunks (--chunk-tokens). What was asked is kept.",
            )

    def _watching(self, outer: Listener) -> Listener:
        def listen(event: Progress) -> None:
            if isinstance(event, StepDone) and isinstance(event.output, dict) and event.output.get("kind") in ("chunk", "digest"):
                if "unread" in event.output:
                    self._failed.append(str(event.output["unread"]))
                else:
                    self._good += 1
            outer(event)

        return listen

    def _hopeless(self) -> bool:
        return not self._good and len(self._failed) >= min(_FIRST, self.shape.chunks) and self.shape.chunks > 1

    def _learn(self, before: Mapping[str, float], seconds: float) -> None:
        after = self.usage()
        prompt, answer = (after.get(n, 0) - before.get(n, 0) for n in ("prompt_tokens", "answer_tokens"))
        keep_speed(self.run.store, facts_in(self.run).name, prompt, answer, seconds, self.at_once())

    def at_once(self) -> int:
        """Calls in flight."""
        return self.run.model.profile.concurrency if self.run.model is not None else 1

    def usage(self) -> dict[str, float]:
        """Of this run: prompt_tokens, answer_tokens, cached_tokens, cost, calls, refused."""
        return dict(self.run.store.usage(self.run.id))

    # -- what came of it ---------------------------------------------------------------------------------------------------------

    def result(self) -> dict[str, Any]:
        """The result as plain values (SPEC R3)."""
        return result_of(self.run, self.shape, self.task, self.usage())

    def report(self) -> str:
        """The result as a Markdown report."""
        return report_of(self.result())

    def outcome(self) -> Outcome:
        """The parts of the result, each when it is asked for."""
        return Outcome(self.run, self.shape)

    def entities(self) -> list[Entity]:
        """Who and what occurs, the most frequent first."""
        o = self.outcome()
        return entities_of((n, o.outcome(n) or {}) for n in range(self.shape.chunks))

    # -- afterwards ----------------------------------------------------------------------------------------------------------------

    async def ask(self, question: str) -> Answer:
        """Ask this conversation a question; follow-ups see the earlier ones. Open it with `conversation`.

        Raises:
            InputError: an empty question.
            NotPossible: this is the reading itself.
        """
        if not question.strip():
            raise InputError("The question is empty.", 'Ask with `fabula ask RUN "…"`.')
        if self.run.row.parent is None:
            raise NotPossible("Questions are asked on a fork of a reading.", "Use Study.conversation(...).")
        self.run.edit({(QUESTIONS, "question"): {"text": question.strip(), "time": self.run.next[QUESTIONS]}}, kind="question")
        [step] = await advance(self.run, lanes=[QUESTIONS], steps=1)
        return self._answer(step.output)

    def _answer(self, output: Mapping[str, Any]) -> Answer:
        names = self.outcome().names
        numbers: dict[str, int] = {}
        claims: list[dict[str, Any]] = []
        parts = []
        for statement in output["statements"]:
            for claim in statement["claims"]:
                if claim["id"] not in numbers:
                    numbers[claim["id"]] = len(numbers) + 1
                    whole = {k: claim[k] for k in ("text", "lines", "place", "quote", "support")}
                    claims.append({"number": numbers[claim["id"]], "path": names[claim["document"]], **whole})
            said = {"support": statement["support"], "numbers": [numbers[c["id"]] for c in statement["claims"]]}
            parts.append(f"{statement['text']} {marks(said, statement['text'], statement['claims'])}")
        return Answer(self.run.id, output["question"], output["found"], "\n\n".join(parts), claims, output["looked"])

    @classmethod
    def conversation(cls, store: Store, run: str, *, new: bool = False, **opening: Any) -> Study:
        """The conversation about a reading: a fork of it, made at the first question, or the latest one that saw as much of the reading.

        Args:
            store: the library.
            run: the reading, or a conversation.
            new: begin another one.
            opening: as for `open`.
        """
        row = store.run(run)
        if row.kind != Reading.kind:
            raise NotPossible(f"Run {row.id} is no reading, but a run of the kind {row.kind!r}.", "See the runs with `fabula runs list`.")
        if row.parent is not None and _holds_questions(store, row.id):
            if not new:
                return cls.open(store, row.id, **opening)
            row = store.run(row.parent)  # another conversation is about the reading, not about this one
        held = None if new else _latest_conversation(store, row.id)
        if held is None:
            last = store.steps(store.line(row.id), newest_first=True, limit=1)
            held = fork(store, row.id, last[0].time + 1 if last else 0, title=f"Questions: {row.title}")
        return cls.open(store, held, **opening)

    # -- a novel goes on -----------------------------------------------------------------------------------------------------------

    async def story(self) -> dict[str, Any]:
        """What a novel needs to go on from here: cast, places, setting, style, short-term memory, three plans, and memories.

        Raises:
            NotPossible: the reading is not finished.
        """
        if not self.finished:
            raise NotPossible(f"Reading {self.id} is not finished.", f"Go on with `fabula runs resume {self.id}`.")
        if self.shape.way == "ask":
            raise NotPossible("A novel goes on from a reading of all of it.", "Read it with --way tree or chain.")
        if not self.run.piece("wanted", lane=STORY):
            self.run.edit({(STORY, "wanted"): True}, kind="story")
        await advance(self.run, lanes=[STORY], steps=STORY_STEPS)
        cast, style, state = (self.run.piece(name, lane=STORY) for name in ("cast", "style", "state"))
        return {
            "title": self.title, "language": self.language, "setting": cast["setting"], "cast": cast["cast"], "places": cast["places"],
            "style": style["style"], "person": style["person"], "tense": style["tense"], "short_term": state["short_term"],
            "plans": state["plans"], "memories": self._memories(),
        }  # fmt: skip

    def _memories(self) -> list[dict[str, Any]]:
        """What every chunk says, in the order of the book: summaries and facts, each with its place."""
        o = self.outcome()
        out: list[dict[str, Any]] = []
        for number in range(self.shape.chunks):
            outcome = o.outcome(number) or {}
            where = o.sources(number)[0]
            if outcome.get("summary"):
                cite = f"{where['path']}:{where['lines'][0]}-{where['lines'][1]}"
                quotes = [c["quote"] for c in outcome["claims"] if c["quote"]]
                out.append({
                    "kind": "summary", "text": outcome["summary"], "quote": "", "quotes": quotes, "entities": [], "evidence": cite,
                    "order": number,
                })  # fmt: skip
            for claim in outcome.get("claims", ()):
                if claim["support"] != "none":
                    cite = f"{o.names[claim['document']]}:{claim['lines'][0]}-{claim['lines'][1]}"
                    fact = {"kind": "fact", "text": claim["text"], "quote": claim["quote"], "entities": claim["about"]}
                    out.append({**fact, "evidence": cite, "order": number})
        return out


class _Keep:
    """Keeps texts in the library, in transactions of some megabytes; those of no more than `_HELD` only at the end."""

    def __init__(self, store: Store, run: str):
        self.store, self.run = store, run
        self._rows: list[TextRow] = []
        self._size = 0

    def __call__(self, text: str) -> str:
        name = text_hash(text)
        self._rows.append(TextRow(self.run, name, text))
        self._size += len(text)
        if self._size >= _HELD:
            self.flush()
        return name

    def flush(self) -> None:
        while self._rows:
            size, count = 0, 0
            while count < len(self._rows) and (size < _BATCH or not count):
                size, count = size + len(self._rows[count].text), count + 1
            with self.store.write(self.run, "texts") as tx:
                for row in self._rows[:count]:
                    tx.add(row)
            del self._rows[:count]
        self._size = 0


def plan_only(
    library: Store, sources: Sequence[str], task: Task, *, model: Model, local: bool = False, **options: Any
) -> tuple[Plan, Gathered]:
    """The plan of a reading, without keeping anything: it is made in memory.

    Args:
        library: where earlier answers are.
        sources: as for `Study.start`.
        task: what to read for.
        model: would read.
        local: the model runs on this machine's processor.
        options: as for `Study.start`.
    """
    with closing(open_store(":memory:")) as store:
        study = Study.start(store, sources, task, model=model, **options)
        try:
            gathered = Gathered(
                study.run.piece("sources", lane=""), study.run.piece("documents", lane="")["all"], study.run.piece("skipped", lane=""),
                [], study.run.piece("findings", lane=""), study.language,
            )  # fmt: skip
            return plan_of(study.run, study.reading, library, local=local, at_once=study.at_once()), gathered
        finally:
            study.close()


def _latest_conversation(store: Store, run: str) -> str | None:
    """The latest fork of a reading that holds questions and saw all that is there of it now."""
    steps = store.steps(store.line(run))
    latest = max((s.pos for s in steps), default=0)
    forks = [row for row in store.rows(RunRow, parent=run, newest_first=True) if row.pin >= latest]
    return next((row.id for row in forks if _holds_questions(store, row.id)), None)


def _holds_questions(store: Store, run: str) -> bool:
    """Whether a fork was asked anything, answered or not."""
    return bool(store.rows(PieceRow, run=run, lane=QUESTIONS, name="question", limit=1))


def _given(sources: Sequence[str]) -> str:
    """Names the sources as they were given, without keeping an address that may hold a secret."""
    whole = [str(Path(s).expanduser().resolve()) if s != "-" and Path(s).expanduser().exists() else s for s in sources]
    return hashlib.sha256("\n".join(whole).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _earlier_sizes(store: Store, given: str, task: Task, facts: ModelFacts) -> Sizes | None:
    """Those of the latest reading of the same sources in the same way by the same model: so its answers serve again."""
    told = {**asdict(task), "task": ""}
    for row in store.rows(RunRow, kind=Reading.kind, newest_first=True, limit=_MOST_EARLIER):
        if row.premise.get("given") != given or {**row.premise["task"], "task": ""} != told:
            continue
        held = store.rows(PieceRow, run=row.id, lane="", name="model", limit=1)
        sizes = Sizes(**row.premise["sizes"])
        if held and held[0].value["name"] == facts.name and held[0].value["window"] == facts.window and sizes.fits(facts):
            return sizes
    return None


def _words_of_prompt(task: Task, ratio: float) -> int:
    """Tokens of the longest prompt without its chunk and context, with the task in it."""
    most = 0
    slots = {"documents": "", "context": "", "known": "", "claims": 40, "words": 1000, "context_words": 1000, "fence": "§§§"}
    for language in ("en", "zh", "ru"):
        prompts = Prompts(PROMPTS, language, task.prompts)
        for name in ("roll", "merge"):
            declared = prompts.get(name).slots
            words = task.task or prompts.render("task-story").messages[0].content
            given = {**slots, "task": words, "language_name": "English", "parts": "", "statements": 40, "last": True}
            prompt = prompts.render(name, **{k: v for k, v in given.items() if k in declared})
            most = max(most, sum(count_tokens(m.content) + 8 for m in prompt.messages) + 8)
    return int(most * ratio) + 16


def _language_of(gathered: Gathered) -> str:
    return "en" if gathered.is_code or gathered.language not in LANGUAGE_NAMES else gathered.language


def _check_fit(model: Model, language: str, anyway: bool) -> None:
    if model.profile.fitness(language) == "unfit" and not anyway:
        raise LanguageUnfit(
            f"{model.name} is marked unfit for {LANGUAGE_NAMES.get(language, language)} ({language}).",
            "Choose another model (`fabula model list`), answers in another language (--language en), or --anyway.",
        )


def _words_task(task: Task, gathered: Gathered, language: str, small: bool) -> str:
    """The task in words: the person's, else the default one for what is read."""
    if task.task.strip():
        return task.task.strip()
    name = ("task-code" if gathered.is_code else "task-prose") + ("-small" if small else "")
    if task.for_story:
        name = "task-story"
    return Prompts(PROMPTS, language, task.prompts).render(name).messages[0].content
