"""`fabula runs show|trace|diff` of a reading: its chunks and merges, where a claim came from, and how two readings differ."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fabula.cli._output import first_line, number, show
from fabula.errors import InputError, NotFound

if TYPE_CHECKING:
    from fabula.read import Study
    from fabula.runs import Trace
    from fabula.store import Store

_MOST_CHUNKS = 60
_ENDS = 20
"""Chunks shown at either end where there are more."""


# -- show ----------------------------------------------------------------------------------------------------------------------------


def reading_dict(store: Store, study: Study) -> dict[str, Any]:
    """Everything that is known of a reading, as plain values: its result, its merges, what was asked about it."""
    from fabula.cli._going import usage_of

    result = study.result()
    return {
        **result, "kind": "read", "merges": merges(study), "conversations": conversations(store, study.id),
        "model": models(study)[-1] if models(study) else "", "usage": usage_of(store, study.id),
    }  # fmt: skip


def merges(study: Study) -> list[dict[str, Any]]:
    """Each merge of a tree, from the chunks upwards: name, chunks (numbers), statements (texts; none where it is not made yet)."""
    out = []
    for node in study.shape.nodes:
        report = study.run.piece("report", lane=node.lane)
        covers = [n + 1 for n in report["covers"]] if report else []
        said = [s["text"] for s in report["statements"]] if report else []
        out.append({"merge": node.lane, "done": report is not None, "chunks": covers, "statements": said})
    return out


def conversations(store: Store, run: str) -> list[dict[str, Any]]:
    """What was asked about a reading: run, and the questions of each conversation, the latest first."""
    from fabula.store import RunRow

    out = []
    for row in store.rows(RunRow, parent=run, newest_first=True):
        asked = [
            s.output["question"] for s in store.steps(store.line(row.id)) if isinstance(s.output, dict) and s.output.get("kind") == "answer"
        ]
        if asked:
            out.append({"run": row.id, "questions": asked})
    return out


def models(study: Study) -> list[str]:
    """Names of the models that read, each once."""
    return list(dict.fromkeys(row.value["name"] for row in study.run.versions("model", "") if row.value))


def print_reading(store: Store, study: Study) -> None:
    """A reading as a person looks at it."""
    from fabula.cli._going import usage_of
    from fabula.cli._reading_words import end_lines

    result = study.result()
    c = result["coverage"]
    state = "finished" if result["finished"] else "open"
    show(study.title, "bold")
    show(
        f"run {study.id} · read · {result['way']} · {result['language']} · {number(c['read'])} of {number(c['chunks'])} chunks · {state}",
        "dim",
    )
    _section("Wanted", result["task"])
    _section("Sources", "\n".join(_source(s) for s in result["sources"]))
    _section("Answer", result["final_summary"])
    _heading(f"Chunks ({number(c['chunks'])})")
    _print_chunks(result["individual_results"])
    _print_merges(merges(study))
    talks = conversations(store, study.id)
    _section("Asked about it", "\n".join(f"{t['run']}  {len(t['questions'])} × {first_line(t['questions'][-1], 80)}" for t in talks))
    _heading("Coverage")
    for line, style in end_lines(result, f"`fabula runs export {study.id} --out report.md`"):
        show(f"  {line}", style)
    usage = usage_of(store, study.id)
    spent = f"{number(usage['prompt_tokens'])} prompt and {number(usage['answer_tokens'])} answer tokens in {usage['calls']} calls"
    cost = f", {usage['cost']:.4f}" if usage["cost"] else ""
    _section("Model", f"{', '.join(models(study)) or 'none'}: {spent}{cost} ({usage['refused']} refused)")


def _source(source: Mapping[str, Any]) -> str:
    commit = source["commit"][:12]
    return f"{source['where']} at {commit}" if commit else str(source["where"])


def _print_chunks(entries: list[dict[str, Any]]) -> None:
    hidden = range(_ENDS, len(entries) - _ENDS) if len(entries) > _MOST_CHUNKS else range(0)
    width = len(str(len(entries)))
    for index, one in enumerate(entries):
        if index in hidden:
            if index == hidden.start:
                show(f"  {'…':>{width}}  {len(hidden)} more (--json lists all)", "dim")
            continue
        show(f"  {one['chunk']:>{width}}  {place_of_chunk(one)}: {_said(one)}", "" if one["read"] and one["relevant"] else "dim")


def _said(one: Mapping[str, Any]) -> str:
    if not one["read"]:
        return f"not read: {one['why']}"
    if not one["relevant"]:
        return "nothing that matters"
    claims = len(one["claims"])
    return f"{first_line(one['result'], 100)} ({claims} claim{'s' if claims != 1 else ''})"


def place_of_chunk(one: Mapping[str, Any]) -> str:
    """`a.py:1-80`, `a.py:1-80 and 3 more`."""
    from fabula.read import lines_of

    first = one["sources"][0]
    more = f" and {len(one['sources']) - 1} more" if len(one["sources"]) > 1 else ""
    return f"{lines_of(first['path'], first['lines'])}{more}"


def _print_merges(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    _heading(f"Merges ({number(len(found))})")
    for one in found[:_MOST_CHUNKS]:
        if not one["done"]:
            show(f"  {one['merge']}  not made yet", "dim")
            continue
        covers = f"chunks {one['chunks'][0]}–{one['chunks'][-1]}" if len(one["chunks"]) > 1 else f"chunk {one['chunks'][0]}"
        said = first_line(one["statements"][0], 80) if one["statements"] else "nothing"
        show(f"  {one['merge']}  {covers}: {len(one['statements'])} statements; {said}")
    if len(found) > _MOST_CHUNKS:
        show(f"  … and {len(found) - _MOST_CHUNKS} more (--json lists all)", "dim")


def _section(title: str, text: str) -> None:
    if text:
        _heading(title)
        for line in text.split("\n"):
            show(f"  {line}" if line else "")


def _heading(text: str) -> None:
    show()
    show(text, "bold")


# -- trace ---------------------------------------------------------------------------------------------------------------------------


def traced(store: Store, study: Study, chunk: int | None, merge: str | None) -> tuple[str, Trace, dict[str, Any]]:
    """What led to a chunk's result, to a merge, to the answer, or to the last answer of a conversation.

    Args:
        store: the library.
        study: opened to look.
        chunk: its number, from 1.
        merge: its name, e.g. `1.0`.

    Returns:
        what it is; its trace; and what came of it: chunk, sources, result, claims; or statements.

    Raises:
        NotFound: no such chunk or merge, or it was not made yet.
    """
    from fabula.runs import trace

    if chunk is not None:
        lane, time = _place(study, chunk)
        found = trace(store, study.id, time, lane)
        entry = study.outcome().individual_results()[chunk - 1]
        claims = [c for c in study.outcome().claims() if c["chunk"] == chunk]
        return f"Chunk {chunk} ({place_of_chunk(entry)})", _only(found, study, chunk), {**entry, "claims": claims}
    steps = store.steps(study.run.line)
    if merge is not None:
        step = next((s for s in steps if s.step == merge and s.step in study.shape.children), None)
        if step is None:
            raise NotFound(f"Reading {study.id} has no merge {merge!r} yet.", f"See its merges with `fabula runs show {study.id}`.")
        return f"Merge {merge}", trace(store, study.id, step.time, step.step), {"statements": _statements(study, merge)}
    wanted = [s for s in steps if isinstance(s.output, dict) and s.output.get("kind") in ("answer", "final")] or steps[-1:]
    if not wanted:
        raise NotFound(f"Reading {study.id} has no step yet.", f"Begin with `fabula runs resume {study.id}`.")
    last = wanted[-1]
    output = last.output if isinstance(last.output, dict) else {}
    said = output["statements"] if output.get("kind") == "answer" else _statements(study, study.shape.last)
    what = f"Question: {output['question']}" if output.get("kind") == "answer" else "The answer to the task"
    return what, trace(store, study.id, last.time, last.step), {"statements": said}


def _statements(study: Study, lane: str) -> list[dict[str, Any]]:
    report = study.run.piece("report", lane=lane) or {"statements": []}
    return list(report["statements"])


def _place(study: Study, chunk: int) -> tuple[str, int]:
    """Lane and logical time of the step that read a chunk. Raises NotFound."""
    shape, index = study.shape, chunk - 1
    if not 0 <= index < shape.chunks:
        raise NotFound(f"Reading {study.id} has chunks 1 to {shape.chunks}, no {chunk}.", f"See them with `fabula runs show {study.id}`.")
    for step in study.run.store.steps(study.run.line):
        output = step.output if isinstance(step.output, dict) else {}
        if output.get("kind") == "chunk" and output["chunk"] == index:
            return step.step, step.time
        if output.get("kind") == "round" and index in output["chunks"]:
            return step.step, step.time
    raise NotFound(f"Chunk {chunk} was not read.", f'Read on with `fabula runs resume {study.id}`, or ask: `fabula ask {study.id} "…"`.')


def _only(found: Trace, study: Study, chunk: int) -> Trace:
    """The calls of one chunk, where a step reads several."""
    from dataclasses import replace

    if study.shape.way != "ask":
        return found
    own = [c for c in found.calls if c.verdict.purpose != "chunk" or c.verdict.part.rstrip("ab") == str(chunk - 1)]
    return replace(found, calls=own)


def print_traced(what: str, found: Trace, came: Mapping[str, Any], *, full: bool) -> None:
    """As a person reads it: what was said, with its claims; the memories; the requests."""
    from fabula.cli._tracing import print_memories, print_requests

    show(what, "bold")
    if "claims" in came:
        _print_claims(came)
    else:
        for one in came["statements"]:
            ids = ", ".join(c["id"] if isinstance(c, Mapping) else c for c in one["claims"])
            show(f"  - {one['text']} [{ids or 'no source'}]")
    print_memories(found)
    print_requests(found, full=full, answers=True)


def _print_claims(came: Mapping[str, Any]) -> None:
    from fabula.read import place_of

    show(f"  {came['result']}" if came.get("result") else f"  {_said(came)}")
    if came.get("context"):
        _section("Context that it was read in", came["context"])
    if came["claims"]:
        _heading(f"Claims ({len(came['claims'])})")
    for claim in came["claims"]:
        cited = f"[{claim['number']}] " if claim["number"] else ""
        support = {
            "none": "not found in the text",
            "found": "place found by the program",
            "named": "only what it names",
            "quoted": "quoted",
        }.get(claim["support"], "")
        show(f"  - {cited}{claim['text']}")
        show(f"    {place_of(claim)}, {support}" + (f": “{first_line(claim['quote'], 160)}”" if claim["quote"] else ""), "dim")


# -- diff ------------------------------------------------------------------------------------------------------------------------------


def compare_readings(left: Study, right: Study) -> dict[str, Any]:
    """What two readings differ in: the answer statement by statement, and what was said of the same text. Raises InputError."""
    if left.id == right.id:
        raise InputError("That is the same reading twice.", "Name two readings.")
    a, b = ({_key(study, n): n for n in range(study.shape.chunks)} for study in (left, right))
    ours, theirs = left.outcome(), right.outcome()
    changed = []
    for key in (k for k in a if k in b):
        one, other = ((o.outcome(n) or {}).get("summary", "") for o, n in ((ours, a[key]), (theirs, b[key])))
        if one != other:
            place = place_of_chunk({"sources": ours.sources(a[key])})
            changed.append({"place": place, "a": one, "b": other})
    return {
        "a": left.id, "b": right.id,
        "answer": _diff([s["text"] for s in ours.statements()], [s["text"] for s in theirs.statements()]),
        "only_a": [place_of_chunk({"sources": ours.sources(n)}) for k, n in a.items() if k not in b],
        "only_b": [place_of_chunk({"sources": theirs.sources(n)}) for k, n in b.items() if k not in a],
        "chunks": changed,
    }  # fmt: skip


def _key(study: Study, number: int) -> tuple[str, ...]:
    return tuple(part.hash for part in study.outcome().chunk(number).parts)


def _diff(left: list[str], right: list[str]) -> list[str]:
    return [line.rstrip("\n") for line in difflib.unified_diff(left, right, n=1, lineterm="")][2:]


def print_compared(found: Mapping[str, Any]) -> None:
    """As a person reads a diff."""
    if not any(found[name] for name in ("answer", "only_a", "only_b", "chunks")):
        show(f"{found['a']} and {found['b']} say the same.")
        return
    show(f"--- {found['a']}", "bold")
    show(f"+++ {found['b']}", "bold")
    for line in found["answer"]:
        show(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))
    for name, sign, style in (("only_a", "-", "red"), ("only_b", "+", "green")):
        for place in found[name]:
            show(f"{sign} chunk {place}", style)
    for one in found["chunks"]:
        show(f"@ {one['place']}", "cyan")
        show(f"- {first_line(one['a'], 300) or '(nothing)'}", "red")
        show(f"+ {first_line(one['b'], 300) or '(nothing)'}", "green")
