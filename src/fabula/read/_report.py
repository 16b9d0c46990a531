"""The result as a Markdown report (SPEC R3): the answer with its sources, context summaries, chunks, coverage, what was not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

_MOST_ROWS = 400
_MOST_SKIPPED = 100


def report_of(result: Mapping[str, Any]) -> str:
    """A report of what `result_of` gives, in Markdown."""
    by_id = {c["id"]: c for c in result["claims"]}
    blocks = [
        f"# {_line(result['title'])}",
        _facts(result),
        "## Final summary",
        result["final_summary"] or _nothing(result),
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


def place_of(claim: Mapping[str, Any]) -> str:
    """`src/app.py:12-15`, with page or chapter where there is one."""
    first, last = claim["lines"]
    return f"{claim['path']}:{first}" + (f"-{last}" if last != first else "") + (f", {claim['place']}" if claim["place"] else "")


def _facts(result: Mapping[str, Any]) -> str:
    c, u = result["coverage"], result["usage"]
    source = ", ".join(s["where"] + (f" at {s['commit'][:12]}" if s["commit"] else "") for s in result["sources"])
    lines = [
        f"- Wanted: {_line(result['task'])}",
        f"- Read: {_line(source)}",
        f"- Way: {result['way']}, {c['read']} of {c['chunks']} chunks of {c['documents']} documents read",
        f"- In the summary: {c['share']:.0%} of the chunks that had something to say",
        (
            f"- Run {result['run']}: {int(u.get('calls', 0))} calls, "
            f"{int(u.get('prompt_tokens', 0))} + {int(u.get('answer_tokens', 0))} tokens"
        ),
    ]
    if not result["finished"]:
        lines.append("- **Not finished:** this is what is known so far")
    return "\n".join(lines)


def _nothing(result: Mapping[str, Any]) -> str:
    if not result["finished"]:
        return "*The answer is not there yet.*"
    return "*Nothing on this was found in what was read.*"


def _cited(result: Mapping[str, Any]) -> list[str]:
    cited = [c for c in result["claims"] if c["number"]]
    if not cited:
        return []
    lines = [
        f"{c['number']}. {_line(c['text'])} — {_link(c)}" + (f": “{_line(c['quote'])}”" if c["quote"] else "") + _mark(c) for c in cited
    ]
    return ["### Sources of the summary", "\n".join(lines)]


def _mark(claim: Mapping[str, Any]) -> str:
    return {
        "none": " **(not found in the text)**", "found": " *(place found by the program)*", "chunk": " *(the whole chunk)*",
    }.get(claim["support"], "")  # fmt: skip


def _link(claim: Mapping[str, Any]) -> str:
    first, last = claim["lines"]
    target = quote(claim["path"]) + f"#L{first}" + (f"-L{last}" if last != first else "")
    return f"[{_line(place_of(claim))}]({target})"


def _contexts(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Neighbours with the same context share an entry."""
    out: list[tuple[list[int], Mapping[str, Any]]] = []
    for entry in entries:
        if out and out[-1][1]["summary"] == entry["summary"] and out[-1][1]["covers"] == entry["covers"]:
            out[-1][0].append(entry["chunk"])
        else:
            out.append(([entry["chunk"]], entry))
    return [f"**After {_chunks(numbers)}** (covers {_chunks(one['covers'])})\n\n{one['summary']}" for numbers, one in out if one["summary"]]


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
    where = ", ".join(f"{s['path']}:{s['lines'][0]}–{s['lines'][1]}" for s in one["sources"][:6])
    more = f" and {len(one['sources']) - 6} more" if len(one["sources"]) > 6 else ""
    head = f"### Chunk {one['chunk']}: {_line(where)}{more}"
    if not one["read"]:
        return f"{head}\n\n*Not read: {one['why']}.*"
    if not one["relevant"]:
        return f"{head}\n\n*Nothing in it matters for what was wanted.*"
    claims = [by_id[ident] for ident in one["claims"] if ident in by_id]
    lines = "\n".join(f"- {_line(c['text'])} ({_link(c)})" + (_mark(c) if c["support"] == "none" else "") for c in claims)
    return "\n\n".join(filter(None, [head, one["result"], lines]))


def _coverage(result: Mapping[str, Any]) -> list[str]:
    c = result["coverage"]
    rows = ["| document | lines | chunks read | claims | in the summary |", "|---|---:|---:|---:|---:|"]
    rows += [
        f"| {_line(d['path'])} | {d['lines']} | {d['read']} of {d['chunks']} | {d['claims']} | {d['cited']} |"
        for d in c["by_document"][:_MOST_ROWS]
    ]
    if len(c["by_document"]) > _MOST_ROWS:
        rows.append(f"| … and {len(c['by_document']) - _MOST_ROWS} more | | | | |")
    out = ["\n".join(rows)]
    if c["not_in_summary"]:
        out.append(f"Read, and not in the summary: {_chunks(c['not_in_summary'])}. What they say stands under *Individual results*.")
    notes = [f"- {_line(d['path'])}: {_line(note)}" for d in c["by_document"] for note in d["notes"]]
    if notes:
        out.append("Notes on the documents:\n\n" + "\n".join(notes[:_MOST_ROWS]))
    return out


def _not_read(result: Mapping[str, Any]) -> list[str]:
    out = []
    if result["lost"]:
        out += ["## What went wrong", "\n".join(f"- {_line(text)}" for text in result["lost"])]
    if result["skipped"]:
        shown = result["skipped"][:_MOST_SKIPPED]
        lines = [f"- {_line(s['path'])}: {_line(s['why'])}" for s in shown]
        if len(result["skipped"]) > len(shown):
            lines.append(f"- … and {len(result['skipped']) - len(shown)} more (`--json` lists all)")
        out += ["## Not read", "\n".join(lines)]
    if result["findings"]:
        lines = [f"- {_line(f['path'])}:{f['line']}: “{_line(f['text'])}”" for f in result["findings"][:_MOST_SKIPPED]]
        out += ["## Text that gives orders to a reader", "It was read as text like the rest, and obeyed by nobody.", "\n".join(lines)]
    return out


def _line(text: str) -> str:
    """A text on one line that means nothing in Markdown's tables."""
    return " ".join(str(text).split()).replace("|", "\\|")
