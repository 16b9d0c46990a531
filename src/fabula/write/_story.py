"""The recurrence of a story (SPEC W1–W6): one lane, `book`; a logical time a step.

Pieces of state, all of which a person may edit:

    title, setting, cast, style, note, length, ending      what the person and the beginning set
    short_term                                              list of sentences
    plans, plan                                             three candidates; the chosen one, or None
    chapters, chapter:ID, text:ID                           the manuscript: order; scenes of a chapter; a passage
    memories:ID                                             of a book that was there already: what is known of a passage of it
    position                                                length, passages, chapter, chapter_length, last, outline; how much of it
                                                            was there already: old, old_passages
    outline_size, outline:N                                 an outline, where one was asked for or given
    task, rederive                                          what a person asked the next step to do
    ended                                                   the last passage is written
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fabula.memory import Record
from fabula.runs import Context, Pieces, Prompts, Recurrence, Run
from fabula.store import FAR, StepRow
from fabula.text import length, split
from fabula.write._manuscript import without_passages
from fabula.write._outline import outline_missing, outline_step
from fabula.write._passage import Plan, keep_books, passage_step, settle
from fabula.write._premise import Premise
from fabula.write._prose import check_language, check_prose, loops, passage_of
from fabula.write._revise import rederive_step, rewrite_step
from fabula.write._telling import LANE, PROMPTS, Place, Telling, amount, plan_text

_BACKGROUND_CHUNK = 220
"""Tokens of a piece of a long background that is kept as a memory of its own."""


class Story(Recurrence):
    """A novel, or interactive fiction."""

    kind = "write"

    def __init__(self, existing: Mapping[str, Any] | None = None) -> None:
        """`existing`: pieces of a book that is to be continued (see `fabula.write._existing`), for the making of its run."""
        self._existing = existing or {}
        self._prompts: dict[str, Prompts] = {}
        self._premises: dict[str, Premise] = {}

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:  # noqa: ARG002
        """One."""
        return {LANE: (0, FAR)}

    def start(self, premise: Mapping[str, Any]) -> Pieces:
        """What the person gave; the rest comes with the first step."""
        p = Premise.from_dict(premise)
        pieces: dict[str, Any] = {
            "title": p.title,
            "setting": p.setting,
            "cast": [{"name": c.name, "about": c.about} for c in p.cast],
            "style": p.style,
            "note": p.note,
            "length": p.length,
            "ending": p.ending,
            "short_term": list(p.short_term),
            "plans": list(p.plans),
            "plan": {"text": p.plan, "by": "person", "reason": ""} if p.plan else None,
            "chapters": [],
            "position": {"length": 0, "passages": 0, "chapter": "", "chapter_length": 0, "last": "", "outline": None},
            "outline_size": len(p.outline) or p.chapters or 0,
            "task": None,
            "rederive": [],
            "ended": False,
        }
        for index, chapter in enumerate(p.outline):
            pieces[f"outline:{index}"] = {"title": chapter.get("title", ""), "plan": chapter.get("plan", "")}
        return {(LANE, name): value for name, value in {**pieces, **self._existing}.items()}

    def finished(self, run: Run) -> bool:
        """The last passage is written and nothing else was asked for."""
        return bool(run.piece("ended")) and not run.piece("task") and not run.piece("rederive")

    def entities(self, run: Run) -> tuple[str, ...]:
        """Entities of the series, and those that a person bound."""
        return tuple(sorted((run.piece("bound", default={}) or {}).values()))

    def timeless(self, name: str) -> bool:
        """A passage's text and the world are true of the past too; a note, a plan, a length are for what comes."""
        return name.startswith(("text:", "setting", "cast", "title"))

    def rebase(self, edited: Pieces, gone: Sequence[StepRow]) -> dict[tuple[str, str], Any]:
        """The manuscript as the person left it, without the passages that the withdrawn steps wrote."""
        return without_passages(edited, {s.output["passage"] for s in gone if isinstance(s.output, dict) and s.output.get("passage")})

    def take_input(self, run: Run, kind: str, payload: Any) -> None:
        """As for every run; and the new text of a passage."""
        if kind == "passage":
            from fabula.write._novel import Novel

            Novel(run).edit_passage(payload["passage"], payload["text"])
        else:
            super().take_input(run, kind, payload)

    def derived(self, name: str) -> bool:
        """Memory and plans."""
        return name in ("short_term", "plans", "plan")

    async def step(self, ctx: Context) -> Any:
        """What comes next: what the person asked for, else the next passage."""
        t = self.telling(ctx)
        if ctx.piece("task"):
            return await rewrite_step(t, ctx.piece("task"))
        if ctx.piece("rederive"):
            return await rederive_step(t, list(ctx.piece("rederive")))
        if self.must_begin(t.premise, ctx.time, ctx.piece):
            return await begin_step(t)
        if ctx.time == 0:
            keep_background(t, ctx.piece("setting") or "")
        missing = outline_missing(t)
        if missing:
            return await outline_step(t, missing)
        return await passage_step(t)

    def telling(self, ctx: Context) -> Telling:
        """The step's premise and prompts."""
        run = ctx.run.id
        if run not in self._premises:
            premise = self._premises[run] = Premise.from_dict(ctx.premise)
            self._prompts[run] = Prompts(PROMPTS, premise.language, premise.prompts)
        return Telling(ctx, self._premises[run], self._prompts[run])

    @staticmethod
    def must_begin(premise: Premise, time: int, piece: Callable[[str], Any]) -> bool:
        """Nothing is written yet, and the person did not give both memory and plan."""
        if time > 0 or piece("position")["passages"]:
            return False
        planned = piece("plan") or piece("plans") or piece("outline_size")
        return bool(premise.opening) or not (piece("short_term") and planned)


async def begin_step(t: Telling) -> dict[str, Any]:
    """Title, setting, cast, short-term memory and the plan of the opening, from the premise; what the person gave stays as it is."""
    ctx, p = t.ctx, t.premise
    given = {name: ctx.piece(name) for name in ("title", "setting", "cast", "short_term")}
    made = await (_begin_small if t.small else _begin_whole)(t, given)
    for name in ("title", "setting", "cast", "short_term"):
        if not given[name]:
            ctx.put(name, made[name])
    keep_background(t, given["setting"] or "")
    if p.opening:
        return await _adopt_opening(t)
    if not (ctx.piece("plan") or ctx.piece("plans") or ctx.piece("outline_size")):
        ctx.put("plan", {"text": made["plan"], "by": "author", "reason": "", "choice": None})
    return {"kind": "beginning", "title": given["title"] or made["title"]}


async def _begin_whole(t: Telling, given: Mapping[str, Any]) -> dict[str, Any]:
    p = t.premise
    told = "\n".join(filter(None, [given["title"], given["setting"], t.cast_lines(), t.notes_lines()]))
    prompt = t.tail(
        "start",
        premise=t.fit(p.premise or p.opening, "setting"),
        genre=p.genre,
        language_name=p.language_name(),
        words=amount(p.length, p.language) if p.length else "",
        ending=t.ending(),
        style=t.fit(p.style, "style"),
        play=t.play,
        plan_sentences=t.plan_sentences(),
        given=t.fit(told, "setting"),
    )
    reply = await t.ctx.ask("beginning", prompt, check=check_language(t.language, "setting", "short_term", "plan"))
    return dict(reply.value)


async def _begin_small(t: Telling, given: Mapping[str, Any]) -> dict[str, Any]:
    """Prose first, so that the person sees words at once; then short structured calls."""
    p, name = t.premise, t.premise.language_name()
    setting = given["setting"]
    told = "\n".join(filter(None, [p.premise or p.opening, t.cast_lines()]))
    if not setting:
        prompt = t.tail("start-setting", premise=t.fit(told, "setting"), genre=p.genre, language_name=name, play=t.play)
        reply = await t.ctx.stream("beginning", prompt, part="setting", check=check_prose(t.language, [], 12), tries=4, watch=loops)
        setting = passage_of(reply.text, t.language)
    prompt = t.tail(
        "start-small",
        premise=t.fit(told, "setting"),
        setting=t.fit(setting, "setting"),
        genre=p.genre,
        language_name=name,
        play=t.play,
    )
    reply = await t.ctx.ask("beginning", prompt, part="cast", check=check_language(t.language, "plan"), tries=4)
    made = dict(reply.value)
    about = [f"{c['name']}: {c['about']}" for c in made["cast"]]
    return {**made, "setting": setting, "short_term": about, "plan": plan_text(made["plan"], t.language)}


def keep_background(t: Telling, setting: str) -> None:
    """A background longer than its share of a prompt is kept whole, and its parts are recalled where they matter."""
    if t.fit(setting, "setting") == setting:
        return
    for number, span in enumerate(split(setting, _BACKGROUND_CHUNK)):
        part = setting[span.start : span.end].strip()
        if part:
            t.ctx.remember(
                f"background-{number}", Record(id="", kind="observation", text=part, source="person", quote=part[:80], episode="background")
            )


async def _adopt_opening(t: Telling) -> dict[str, Any]:
    """The person's own opening becomes the first passage, and the books are kept of it."""
    opening = t.premise.opening.strip()
    place = Place("first", 1, max(1, length(opening, t.language)), f"c{t.ctx.time}", True)
    books = await keep_books(t, place, Plan(t.premise.premise or opening[:200], "person"), t.fit(opening, "last", keep="end"))
    settle(t, place, f"p{t.ctx.time}", opening, books, by="person")
    return {"kind": "beginning", "title": t.ctx.piece("title", default=""), "passage": f"p{t.ctx.time}"}
