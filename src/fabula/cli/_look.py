"""`fabula runs show|trace|stale|diff`: looking inside a run. Nothing here changes anything or asks a model."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabula.cli._group import command
from fabula.cli._options import Json, RunArgument, Where

if TYPE_CHECKING:
    from fabula.runs import Edit
    from fabula.store import Store
    from fabula.write import ChapterView, Novel

_MOST_OLD = 12
"""Chapters of a manuscript that are listed."""


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for function in (show, trace, stale, diff):
        command(app)(function)


def show(
    run: RunArgument,
    where: Where,
    text: Annotated[bool, typer.Option("--text", help="Print the whole text, and nothing else.")] = False,
    as_json: Json = False,
) -> None:
    """Show a book: its chapters and passages, plans, memory, what was edited, models and usage.

    Of a reading it shows chunks and merges; of a conversation the questions and answers.
    """
    import sys

    from fabula.cli._going import usage_of
    from fabula.cli._going_on import facts
    from fabula.cli._output import print_json
    from fabula.opening import open_library
    from fabula.runs import edits
    from fabula.ways import is_reading
    from fabula.write import Novel

    with closing(open_library(where.settings())) as store:
        if is_reading(store.run(run)):
            _show_reading(store, run, text=text, as_json=as_json)
            return
        novel = Novel.open(store, run)
        if text and not as_json:
            sys.stdout.write(novel.text() + "\n")
            return
        if as_json:
            print_json({**facts(novel), **state(novel, edits(store, novel.id)), "text": novel.text(), "usage": usage_of(store, novel.id)})
            return
        _print(novel, edits(store, novel.id), usage_of(store, novel.id))


def _show_reading(store: Store, run: str, *, text: bool, as_json: bool) -> None:
    import sys

    from fabula.cli._output import print_json
    from fabula.cli._reading_look import print_reading, reading_dict
    from fabula.cli._talks import print_talk, talk_dict
    from fabula.read import Study, report_of
    from fabula.ways import is_conversation

    study = Study.open(store, run)
    if is_conversation(store, study.run.row):
        if as_json:
            print_json(talk_dict(store, study))
        elif text:
            sys.stdout.write(report_of(talk_dict(store, study)))
        else:
            print_talk(study)
    elif as_json:
        print_json(reading_dict(store, study))
    elif text:
        sys.stdout.write(study.report())
    else:
        print_reading(store, study)


def state(novel: Novel, made: list[Edit]) -> dict[str, Any]:
    """Everything that a person may read and edit, as plain values."""
    piece = novel.run.piece
    chapters = [
        {
            "id": c.id, "label": c.label, "title": c.title,
            "scenes": [{"id": s.id, "passages": [{"id": p.id, "by": p.by, "text": p.text} for p in s.passages]} for s in c.scenes],
        }
        for c in novel.chapters()
    ]  # fmt: skip
    return {
        "premise": novel.premise.premise, "setting": piece("setting", default=""), "cast": piece("cast", default=[]),
        "note": piece("note", default=""), "chapters": chapters, "plan": novel.plan, "plans": novel.plans,
        "short_term": novel.short_term,
        "memories": [{"id": r.id, "kind": r.kind, "text": r.text, "by": r.by} for r in novel.memories()],
        "edits": [{"position": e.pos, "kind": e.kind, "from_step": e.version, "changed": what_changed(e)} for e in made],
        "model": str((novel.run.piece("model", lane="") or {}).get("name", "")),
    }  # fmt: skip


def what_changed(edit: Edit) -> list[str]:
    """Names of what an edit changed."""
    pieces = [key.partition("/")[2] for key in edit.pieces]
    return [*pieces, *(f"memory {row.id} ({row.event})" for row in edit.records)]


def _print(novel: Novel, made: list[Edit], usage: dict[str, Any]) -> None:
    from fabula.cli._output import first_line, moment, number, show
    from fabula.cli._view import length_words

    premise, before = novel.premise, novel.length_before
    show(novel.title, "bold")
    length = length_words(novel.length, novel.goal, before, novel.language)
    length += f" after {number(before)}" if before else ""
    show(f"run {novel.id} · {premise.mode} · {premise.language} · {length} · {'finished' if novel.finished else 'open'}", "dim")
    _section("Premise", premise.premise)
    _section("Goes on from", f"reading {premise.reading}: `fabula runs show {premise.reading}`" if premise.reading else "")
    _section("Setting", novel.run.piece("setting", default=""))
    _section("Cast", "\n".join(f"{c['name']}: {c.get('about', '')}".rstrip(": ") for c in novel.run.piece("cast", default=[])))
    _section("Author's note", novel.run.piece("note", default=""))
    _print_chapters(novel)
    plan = novel.plan
    _section("Plan of the next passage", plan["text"] if plan else "")
    _section("Plans", "\n".join(f"{n}. {plan}" for n, plan in enumerate(novel.plans, 1)))
    _section("Short-term memory", "\n".join(f"- {line}" for line in novel.short_term))
    memories = novel.memories()
    _section(
        f"Long-term memory ({len(memories)})", "\n".join(f"{r.id.partition('/')[2]}  {first_line(r.text, 100)}" for r in memories[-20:])
    )
    _section("Edits", "\n".join(f"@{e.pos}  {moment(e.wall)}  {e.kind}: {', '.join(what_changed(e))}" for e in made if e.kind != "model"))
    names = [row.value["name"] for row in novel.run.versions("model", "") if row.value]
    spent = f"{number(usage['prompt_tokens'])} prompt and {number(usage['answer_tokens'])} answer tokens in {usage['calls']} calls"
    cost = f", {usage['cost']:.4f}" if usage["cost"] else ""
    _section("Model", f"{', '.join(dict.fromkeys(names)) or 'none'}: {spent}{cost} ({usage['refused']} refused)")


def _print_chapters(novel: Novel) -> None:
    """Passages under the headings of their chapters; of a manuscript that was there before only the headings, and of a long one a few."""
    from fabula.cli._output import first_line, show

    chapters = novel.chapters()
    old = [c for c in chapters if c.id.startswith("m") and novel.length_before]
    if old:
        show()
        show(f"Manuscript ({len(old)} chapters)", "bold")
        shown = old if len(old) <= _MOST_OLD else [*old[: _MOST_OLD // 2], *old[-_MOST_OLD // 2 :]]
        for number, chapter in enumerate(shown):
            if len(old) > len(shown) and number == _MOST_OLD // 2:
                show(f"  … {len(old) - len(shown)} more …", "dim")
            count = sum(len(scene.passages) for scene in chapter.scenes)
            show(f"  {chapter.id:<6} {_heading(chapter) or '(no heading)'}, {count} passage{'s' if count != 1 else ''}")
    for chapter in (c for c in chapters if c not in old):
        show()
        show(f"{_heading(chapter)}  [{chapter.id}]" if len(chapters) > 1 or chapter.title else "Passages", "bold")
        for scene in chapter.scenes:
            for passage in scene.passages:
                show(f"  {passage.id:<6} {'yours  ' if passage.by == 'person' else ''}{first_line(passage.text, 90)}")


def _heading(chapter: ChapterView) -> str:
    return ": ".join(filter(None, [chapter.label, chapter.title]))


def _section(title: str, text: str) -> None:
    from fabula.cli._output import show

    if text:
        show()
        show(title, "bold")
        show("\n".join(f"  {line}" for line in text.splitlines()))


def trace(
    run: RunArgument,
    where: Where,
    step: Annotated[
        int | None, typer.Option("--step", min=0, metavar="N", help="This step; default: the last passage.", show_default=False)
    ] = None,
    passage: Annotated[
        str | None, typer.Option("--passage", metavar="ID", help="The step that wrote this passage.", show_default=False)
    ] = None,
    chunk: Annotated[
        int | None, typer.Option("--chunk", min=1, metavar="N", help="Of a reading: how this chunk was read.", show_default=False)
    ] = None,
    merge: Annotated[
        str | None, typer.Option("--merge", metavar="NAME", help="Of a reading: how this merge was made, e.g. 1.0.", show_default=False)
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the prompts in full.")] = False,
    as_json: Json = False,
) -> None:
    """Where a passage, or what a reading says, came from: the memories, plan and prompt behind it, the model, and what was refused."""
    from fabula.cli._output import print_json
    from fabula.cli._tracing import print_trace, trace_dict
    from fabula.errors import InputError
    from fabula.opening import open_library
    from fabula.runs import trace as trace_step
    from fabula.ways import is_reading
    from fabula.write import Novel

    with closing(open_library(where.settings())) as store:
        reading = is_reading(store.run(run))
        wrong = ("--step or --passage", "--chunk N or --merge NAME") if reading else ("--chunk or --merge", "--step N or --passage ID")
        if any(one is not None for one in ((step, passage) if reading else (chunk, merge))):
            raise InputError(f"A {'reading' if reading else 'book'} has no {wrong[0]}.", f"Give {wrong[1]}.")
        if reading:
            _trace_reading(store, run, chunk, merge, full=prompt, as_json=as_json)
            return
        novel = Novel.open(store, run)
        if step is None:
            step = _step_of(novel, passage)
        found = trace_step(store, novel.id, step)
        if as_json:
            print_json({"run": novel.id, **trace_dict(found)})
        else:
            print_trace(novel, found, full=prompt)


def _trace_reading(store: Store, run: str, chunk: int | None, merge: str | None, *, full: bool, as_json: bool) -> None:
    from fabula.cli._output import print_json
    from fabula.cli._reading_look import print_traced, traced
    from fabula.cli._tracing import trace_dict
    from fabula.read import Study

    study = Study.open(store, run)
    what, found, came = traced(store, study, chunk, merge)
    if as_json:
        print_json({"run": study.id, "what": what, **came, **trace_dict(found), "lane": found.step.step})
    else:
        print_traced(what, found, came, full=full)


def _step_of(novel: Novel, passage: str | None) -> int:
    from fabula.errors import NotFound

    if passage is not None:
        return novel.step_of(passage).time
    written = [s for s in novel.steps() if isinstance(s.output, dict) and s.output.get("kind") == "passage"]
    steps = written or novel.steps()
    if not steps:
        raise NotFound(f"Run {novel.id} has no step yet.", f"Make one with `fabula runs resume {novel.id} --steps 1`.")
    return steps[-1].time


def stale(run: RunArgument, where: Where, as_json: Json = False) -> None:
    """What rests on things that were changed since: nothing of it is rewritten by itself."""
    from fabula.cli._output import print_json, show
    from fabula.opening import open_library
    from fabula.runs import stale as stale_steps
    from fabula.runs import stale_pieces
    from fabula.ways import is_reading, open_run

    with closing(open_library(where.settings())) as store:
        seen = open_run(store, run)
        reading = is_reading(seen.row)
        found = [
            {
                "step": one.step.time, "lane": one.step.step, "passage": (one.step.output or {}).get("passage"), "direct": one.direct,
                "why": one.why,
            }
            for one in stale_steps(seen)
        ]  # fmt: skip
        pieces = {key.partition("/")[2]: time for key, time in stale_pieces(seen).items()}
    if as_json:
        print_json({"run": seen.id, "stale": found, "state": pieces})
        return
    if not found:
        show("Nothing rests on anything that was changed.")
        return
    for one in found:
        passage = f", passage {one['passage']}" if one["passage"] else ""
        show(f"step {one['lane']}@{one['step']}: {one['why']}" if reading else f"step {one['step']}{passage}: {one['why']}")
    if pieces and not reading:
        show(f"What comes next still rests on them by: {', '.join(sorted(pieces))}.")
    if not reading:
        show(f"Write them anew with `fabula runs fork {seen.id} --at {found[0]['step']} --corrected`, then resume that branch.")


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run, mostly a fork of it.")],
    where: Where,
    as_json: Json = False,
) -> None:
    """Compare two books passage by passage, sentence by sentence, as a unified diff; or two readings by what they say."""
    from fabula.cli._comparing import compare, print_comparison
    from fabula.cli._output import print_json
    from fabula.cli._reading_look import compare_readings, print_compared
    from fabula.errors import InputError
    from fabula.opening import open_library
    from fabula.read import Study
    from fabula.ways import is_reading
    from fabula.write import Novel

    with closing(open_library(where.settings())) as store:
        kinds = [is_reading(store.run(one)) for one in (first, second)]
        if any(kinds):
            if not all(kinds):
                raise InputError("A reading and a book cannot be compared.", "Name two of a kind.")
            said = compare_readings(Study.open(store, first), Study.open(store, second))
            (print_json if as_json else print_compared)(said)
            return
        found = compare(Novel.open(store, first), Novel.open(store, second))
        if as_json:
            print_json(found)
        else:
            print_comparison(found)
