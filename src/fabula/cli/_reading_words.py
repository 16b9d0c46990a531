"""A reading in words: its plan before it starts, and at its end the answer with its sources, and what was not read."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fabula.cli._fetching import about
from fabula.cli._output import first_line, is_plain, number, say, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabula.read import Plan, Task

_MOST_SOURCES = 30
"""Of an answer, on the screen; the report has all."""
_MOST_LINES = 5
"""Of what was lost or skipped, on the screen."""
_QUOTE = 160
"""Characters of the quoted words that are shown."""
NOT_SAID = "The text does not say."
"""Where a question is not answered by what was read."""


# -- the plan ----------------------------------------------------------------------------------------------------------------------


def print_plan(
    plan: Plan,
    *,
    title: str,
    task: Task,
    words: str,
    skipped: Sequence[Mapping[str, Any]],
    free: bool,
    currency: str,
    out: bool,
) -> None:
    """What will be read, how, and what it will take.

    Args:
        plan: of the reading.
        title: names what is read.
        task: as the person gave it.
        words: the task in words.
        skipped: what is not read.
        free: it costs no money.
        currency: of the price.
        out: print to stdout, since the plan is what was asked for; else to stderr.
    """
    tell = show if out else say
    tell(f"Reading {title}", "bold")
    lines = [("For", first_line(words, 200)), ("Text", _text(plan)), *_skipped_line(skipped)]
    lines += [("Way", _way(plan, task)), ("Calls", _calls(plan)), ("Cost", _cost(plan, free, currency)), ("Time", _time(plan))]
    for name, text in lines:
        _labelled(tell, name, text)


def _labelled(tell: Callable[..., None], name: str, text: str) -> None:
    """`  Name   text`, whose further lines stand below its first."""
    if is_plain(sys.stdout if tell is show else sys.stderr):
        tell(f"  {name + ':':<8} {text}")
        return
    from shutil import get_terminal_size

    from fabula.cli._flow import wrap
    from fabula.cli._output import console, printable

    width = min(92, get_terminal_size().columns - 1) - 11
    first, *rest = wrap(printable(text), width) or [""]
    from rich.text import Text

    out = console(sys.stdout if tell is show else sys.stderr)
    out.print(Text.assemble((f"  {name:<9}", "dim"), first))
    for line in rest:
        out.print(Text(f"{' ' * 11}{line}"))


def _text(plan: Plan) -> str:
    chunks = f"{_many(plan.chunks, 'chunk')} of at most {number(plan.chunk_tokens)}" if plan.chunks != 1 else "one chunk"
    return f"{_many(plan.documents, 'document')}, about {number(plan.tokens)} tokens, {chunks}"


def _skipped_line(skipped: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    if not skipped:
        return []
    reasons = reasons_of(skipped)
    if len(reasons) == 1:
        return [("Skipped", f"{number(len(skipped))} ({reasons[0][0]})")]
    shown = "; ".join(f"{count} × {why}" for why, count in reasons[:3])
    more = f"; {number(sum(count for _, count in reasons[3:]))} for other reasons" if len(reasons) > 3 else ""
    return [("Skipped", f"{number(len(skipped))}: {shown}{more}")]


def reasons_of(skipped: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Why something was skipped, in short, and how often; the most frequent first."""
    return Counter(_short(one["why"]) for one in skipped).most_common()


def _short(why: str) -> str:
    """A reason without what differs from file to file."""
    text = why.split(" (")[0].split("; a line !")[0].rstrip(".").removeprefix("It is ").removeprefix("It ")
    return first_line(text, 60)


def _way(plan: Plan, task: Task) -> str:
    says = {
        "tree": "all chunks at once, merged upwards",
        "chain": "one chunk after another, with a rolling context",
        "two-pass": "all chunks twice: first what each is about, then each in the light of what came before",
        "ask": "only what may matter for the question",
    }[plan.way]
    if plan.chunks == 1 and plan.way == "tree":
        says = "one call reads all of it"
    why = (
        "as you chose" if task.way
        else "as the article has it" if task.as_article
        else "the task is a question on a long text" if plan.way == "ask"
        else ""
    )  # fmt: skip
    return f"{plan.way}: {says}{f' ({why})' if why else ''}"


def _calls(plan: Plan) -> str:
    most = "at most " if plan.way == "ask" else ""
    known = f", {number(plan.known_calls)} of them known already" if plan.known_calls else ""
    tokens = f"about {number(plan.prompt_tokens)} tokens of prompts, {number(plan.answer_tokens)} of answers"
    return f"{most}{number(plan.calls)}{known}; {tokens}"


def _cost(plan: Plan, free: bool, currency: str) -> str:
    if free:
        return "none, the model runs on this machine"
    return "price not known" if plan.cost is None else f"about {plan.cost:.4f} {currency}".rstrip() if plan.cost else "none"


def _time(plan: Plan) -> str:
    return "not known yet" if plan.seconds is None else about(plan.seconds)


def print_skipped(skipped: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]], most: int = 40) -> None:
    """Each thing that is not read, and why; and each passage that gives orders to a reader."""
    if skipped:
        show()
        show(f"Not read ({number(len(skipped))})", "bold")
        for one in skipped[:most]:
            show(f"  {one['path']}: {one['why']}")
        if len(skipped) > most:
            show(f"  … and {number(len(skipped) - most)} more (--json lists all)")
    if findings:
        show()
        show("Passages that give orders to a reader; they are read as text, and not obeyed", "bold")
        for one in findings[:most]:
            show(f"  {one['path']}:{one['line']}: “{one['text']}”")


# -- the end ------------------------------------------------------------------------------------------------------------------------


def print_answer(text: str, claims: Sequence[Mapping[str, Any]], *, where: str = "") -> None:
    """An answer and the sources that its numbers name, on stdout.

    Args:
        text: with numbers in brackets.
        claims: number, path, lines, place, quote, support of each.
        where: how to see the sources that are not shown.
    """
    show(text)
    if not claims:
        return
    show()
    width = len(str(min(len(claims), _MOST_SOURCES)))
    for claim in claims[:_MOST_SOURCES]:
        _source(claim, width)
    if len(claims) > _MOST_SOURCES:
        show(f" … and {len(claims) - _MOST_SOURCES} more sources{f': {where}' if where else ''}", "dim")


def _source(claim: Mapping[str, Any], width: int) -> None:
    from fabula.read import place_of

    place = place_of(claim)
    quote = f"“{first_line(claim['quote'], _QUOTE)}”" if claim["quote"] else ""
    note = {
        "none": "(not found in the text)",
        "found": "(place found by the program)",
        "named": "(only what it names)",
        "chunk": "(the whole of it)",
    }.get(claim["support"], "")
    if is_plain(sys.stdout):
        show("  ".join(filter(None, [f"{claim['number']:>{width + 1}}", place, quote, note])))
        return
    from shutil import get_terminal_size

    from rich.cells import cell_len
    from rich.text import Text

    from fabula.cli._flow import wrap
    from fabula.cli._output import console, printable

    widest, indent = min(92, get_terminal_size().columns - 1), width + 3
    out, head = console(), Text.assemble((f"{claim['number']:>{width + 1}}  ", "dim"), (printable(place), "cyan"))
    head.append(f"  {note}" if note else "", "yellow" if claim["support"] == "none" else "dim")
    if head.cell_len + 2 + cell_len(quote) <= widest:
        out.print(Text.assemble(head, "  ", (printable(quote), "italic dim")), soft_wrap=True)
        return
    out.print(head, soft_wrap=True)
    for line in wrap(printable(quote), widest - indent):
        out.print(Text(f"{' ' * indent}{line}", "italic dim"), soft_wrap=True)


def print_end(result: Mapping[str, Any], *, where: str) -> None:
    """On stderr: coverage in one line, and what was lost, skipped or found, in one line each.

    Args:
        result: of the reading.
        where: how to see the rest.
    """
    for line, style in end_lines(result, where):
        say(line, style)


def end_lines(result: Mapping[str, Any], where: str) -> list[tuple[str, str]]:
    """(line, style) of what is said at the end."""
    c = result["coverage"]
    of = _many(c["chunks"], "chunk")
    count = f"all {of}" if c["read"] == c["chunks"] > 1 else of if c["read"] == c["chunks"] else f"{number(c['read'])} of {of}"
    covered = f"Read {count} of {_many(c['documents'], 'document')}"
    there = c["relevant"] - len(c["not_in_summary"])
    if result["finished"] and there <= 0 < c["relevant"]:
        covered += "; the answer cites nothing of it"
    elif result["finished"] and there < c["relevant"]:
        covered += f"; the answer rests on {number(there)} of the {number(c['relevant'])} that had something to say"
    elif result["finished"] and c["relevant"] > 1:
        covered += f"; the answer rests on all {number(c['relevant'])} that had something to say"
    out = [(f"{covered}.", "")]
    guesses = [f"{d['path']}: {note}" for d in c["by_document"] for note in d["notes"] if "encoding" in note]
    out += _few([(f"{text}. If that is wrong: --encoding NAME.", "yellow") for text in guesses], where)
    out += _few([(text, "yellow") for text in result["lost"]], where)
    reasons = [(f"Not read: {number(count)} × {why}.", "dim") for why, count in reasons_of(result["skipped"])]
    out += _few(reasons, where)
    findings = result["findings"]
    if findings:
        first = findings[0]
        count = f"{number(len(findings))} passages give" if len(findings) > 1 else "A passage gives"
        out.append(
            (f"{count} orders to a reader ({first['path']}:{first['line']}: “{first['text']}”): read as text, not obeyed.", "yellow")
        )
    return out


def _few(lines: list[tuple[str, str]], where: str) -> list[tuple[str, str]]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], (f"… and {number(len(lines) - _MOST_LINES + 1)} more, see {where}.", lines[-1][1])]


def _many(count: int, word: str) -> str:
    return f"{number(count)} {word}{'s' if count != 1 else ''}"
