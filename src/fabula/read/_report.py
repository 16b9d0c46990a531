"""The result as a Markdown report (SPEC R3): the answer with its sources, context summaries, chunks, coverage, what was not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MOST_ROWS = 400
_MOST_SKIPPED = 100


def report_of(result: Mapping[str, Any]) -> str:
    """A report of what `result_of` gives, in Markdown; of a conversation (`answers`: each an `Answer` as plain values), those."""
    if "answers" in result:
        return _conversation(result)
    by_id = {c["id"]: c for c in result["claims"]}
    blocks = [
        f"# {_plain(result['title'])}",
        _facts(result),
        "## Final summary",
        _prose(result["final_summary"]) or _nothing(result),
        *_cited(result),
        "## Context summaries",
        *_contexts(result["individual_context_summaries"]),
        "## Individual results",
        *(_chunk(one, by_id) for one in result["individual_results"]),
        "## Coverage",
        *_coverage(result),
        *_not_read(result),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _conversation(result: Mapping[str, Any]) -> str:
    count = _many(len(result["answers"]), "question")
    blocks = [f"# {_plain(result['title'])}", f"- Run {result['run']}: {count} about reading {result['reading']}"]
    for answer in result["answers"]:
        blocks.append(f"## {_plain(answer['question'])}")
        if answer["found"]:
            blocks.append(_prose(answer["text"]))
            blocks.append("\n".join(f"{c['number']}. {_place(c)}{_quoted(c)}{_mark(c)}" for c in answer["claims"]))
        else:
            looked = ", ".join(_code(place) for place in answer["looked"])
            blocks.append("*The text does not say.*" + (f" Looked at: {looked}" if looked else ""))
    if result.get("waiting"):
        blocks += [f"## {_plain(result['waiting'])}", "*Not answered yet.*"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def place_of(claim: Mapping[str, Any]) -> str:
    """`src/app.py:12-15`, with page or chapter where there is one."""
    return lines_of(claim["path"], claim["lines"]) + (f", {claim['place']}" if claim["place"] else "")


def lines_of(path: str, lines: Sequence[int]) -> str:
    """`src/app.py:12-15`, or `src/app.py:12` where it is one line."""
    first, last = lines
    return f"{path}:{first}" + (f"-{last}" if last != first else "")


def _facts(result: Mapping[str, Any]) -> str:
    c, u = result["coverage"], result["usage"]
    source = ", ".join(_code(s["where"]) + (f" at {s['commit'][:12]}" if s["commit"] else "") for s in result["sources"])
    tokens = f"{int(u.get('prompt_tokens', 0)):,} prompt and {int(u.get('answer_tokens', 0)):,} answer tokens"
    lines = [
        f"- Wanted: {_plain(result['task'])}",
        f"- Read: {source}",
        f"- Way: {result['way']}, {c['read']:,} of {_many(c['chunks'], 'chunk')} of {_many(c['documents'], 'document')} read",
        f"- In the summary: {c['share']:.0%} of the chunks that had something to say",
        f"- Run {result['run']}: {_many(int(u.get('calls', 0)), 'call')}, {tokens}",
    ]
    if not result["finished"]:
        lines.append("- **Not finished:** this is what is known so far")
    return "\n".join(lines)


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' if count != 1 else ''}"


def _nothing(result: Mapping[str, Any]) -> str:
    if not result["finished"]:
        return "*The answer is not there yet.*"
    return "*Nothing on this was found in what was read.*"


def _cited(result: Mapping[str, Any]) -> list[str]:
    cited = [c for c in result["claims"] if c["number"]]
    if not cited:
        return []
    lines = [f"{c['number']}. {_plain(c['text'])} — {_place(c)}{_quoted(c)}{_mark(c)}" for c in cited]
    return ["### Sources of the summary", "\n".join(lines)]


def _quoted(claim: Mapping[str, Any]) -> str:
    return f": “{_plain(claim['quote'])}”" if claim["quote"] else ""


def _mark(claim: Mapping[str, Any]) -> str:
    return {
        "none": " **(not found in the text)**", "found": " *(place found by the program)*",
        "named": " *(only what it names was found)*", "chunk": " *(the whole chunk)*",
    }.get(claim["support"], "")  # fmt: skip


def _place(claim: Mapping[str, Any]) -> str:
    """The place as `path:lines`, which editors and terminals open. No link: nobody knows where the report will lie."""
    return _code(place_of(claim))


def _contexts(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Neighbours with the same context share an entry."""
    out: list[tuple[list[int], Mapping[str, Any]]] = []
    for entry in entries:
        if out and out[-1][1]["summary"] == entry["summary"] and out[-1][1]["covers"] == entry["covers"]:
            out[-1][0].append(entry["chunk"])
        else:
            out.append(([entry["chunk"]], entry))
    return [
        f"**After {_chunks(numbers)}** (covers {_chunks(one['covers'])})\n\n{_prose(one['summary'])}"
        for numbers, one in out
        if one["summary"]
    ]


def _chunks(numbers: Sequence[int]) -> str:
    if not numbers:
        return "nothing"
    if len(numbers) == 1:
        return f"chunk {numbers[0]}"
    return (
        f"chunks {numbers[0]}–{numbers[-1]}"
        if numbers[-1] - numbers[0] + 1 == len(numbers)
        else "chunks " + ", ".join(map(str, numbers[:20]))
    )


def _chunk(one: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str:
    where = ", ".join(_code(lines_of(s["path"], s["lines"])) for s in one["sources"][:6])
    more = f" and {len(one['sources']) - 6} more" if len(one["sources"]) > 6 else ""
    head = f"### Chunk {one['chunk']}: {where}{more}"
    if not one["read"]:
        return f"{head}\n\n*Not read: {_plain(one['why'])}.*"
    if not one["relevant"]:
        return f"{head}\n\n*Nothing in it matters for what was wanted.*"
    claims = [by_id[ident] for ident in one["claims"] if ident in by_id]
    lines = "\n".join(f"- {_plain(c['text'])} ({_place(c)})" + (_mark(c) if c["support"] == "none" else "") for c in claims)
    return "\n\n".join(filter(None, [head, _prose(one["result"]), lines]))


def _coverage(result: Mapping[str, Any]) -> list[str]:
    c = result["coverage"]
    rows = ["| document | lines | chunks read | claims | in the summary |", "|---|---:|---:|---:|---:|"]
    rows += [
        f"| {_cell(d['path'])} | {d['lines']:,} | {d['read']} of {d['chunks']} | {d['claims']} | {d['cited']} |"
        for d in c["by_document"][:_MOST_ROWS]
    ]
    if len(c["by_document"]) > _MOST_ROWS:
        rows.append(f"| … and {len(c['by_document']) - _MOST_ROWS} more | | | | |")
    out = ["\n".join(rows)]
    if c["not_in_summary"]:
        out.append(f"Read, and not in the summary: {_chunks(c['not_in_summary'])}. What they say stands under *Individual results*.")
    notes = [f"- {_code(d['path'])}: {_plain(note)}" for d in c["by_document"] for note in d["notes"]]
    if notes:
        out.append("Notes on the documents:\n\n" + "\n".join(notes[:_MOST_ROWS]))
    return out


def _not_read(result: Mapping[str, Any]) -> list[str]:
    out = []
    if result["lost"]:
        out += ["## What went wrong", "\n".join(f"- {_plain(text)}" for text in result["lost"])]
    if result["skipped"]:
        shown = result["skipped"][:_MOST_SKIPPED]
        lines = [f"- {_code(s['path'])}: {_plain(s['why'])}" for s in shown]
        if len(result["skipped"]) > len(shown):
            lines.append(f"- … and {len(result['skipped']) - len(shown)} more (`--json` lists all)")
        out += ["## Not read", "\n".join(lines)]
    if result["findings"]:
        lines = [
            f"- {_code(lines_of(f['path'], (f['line'], f['line'])))}: “{_plain(f['text'])}”" for f in result["findings"][:_MOST_SKIPPED]
        ]
        out += ["## Text that gives orders to a reader", "It was read as text like the rest, and obeyed by nobody.", "\n".join(lines)]
    return out


_SPANS = re.compile(r"(```.*?```|``[^\n]*?``|`[^`\n]*`)", re.DOTALL)
"""Code in Markdown, where no sign means anything."""
_SIGNS = re.compile(r"[\\`*<~]|(?<![^\W_])_|_(?![^\W_])|(?<=\])\(")


def _prose(text: str) -> str:
    """What a model wrote, with its own emphasis and lists, but without HTML, links and pictures: it may come from what was read."""
    return _outside_code(text, lambda part: part.replace("<", "\\<").replace("](", "]\\("))


def _plain(text: str) -> str:
    """A text on one line in which no sign means anything in Markdown; code stays code."""
    line = " ".join(str(text).split())
    return _outside_code(line, lambda part: _SIGNS.sub(r"\\\g<0>", part))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if n % 2 else change(part) for n, part in enumerate(_SPANS.split(text)))


def _code(text: str) -> str:
    """A path as code, so that no sign of it means anything."""
    line = " ".join(str(text).split())
    return f"`` {line} ``" if "`" in line else f"`{line}`"


def _cell(text: str) -> str:
    """A path as code in a table, where a bar ends a cell also inside code."""
    return _code(text).replace("|", "\\|")
