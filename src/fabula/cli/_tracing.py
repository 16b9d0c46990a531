"""What led to a step's output, for a person and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabula.cli._output import first_line, number, printable, show

if TYPE_CHECKING:
    from fabula.runs import Memo, Trace, TracedCall
    from fabula.store import CallRow
    from fabula.write import Novel


def trace_dict(found: Trace) -> dict[str, Any]:
    """The trace as plain values, prompts included."""
    return {
        "step": found.step.time,
        "output": found.step.output,
        "memories": [
            {"part": part, "id": m.id, "text": m.text, "score": m.score, "why": dict(m.parts)}
            for part, memos in found.recalls.items()
            for m in memos
        ],
        "state": dict(found.pieces),
        "calls": [_call_dict(call) for call in found.calls],
    }


def _call_dict(call: TracedCall) -> dict[str, Any]:
    verdict, asked = call.verdict, call.asked
    request = dict(asked.request) if asked is not None else {}
    return {
        "purpose": verdict.purpose, "part": verdict.part, "attempt": verdict.attempt, "sample": verdict.sample, "status": verdict.status,
        "reason": verdict.reason, "model": model_of(call), "seed": request.get("seed"), "sampling": request.get("sampling"),
        "usage": dict(verdict.usage), "prompt": [list(m) for m in prompt_of(call)], "answer": verdict.answer, "notes": list(verdict.notes),
    }  # fmt: skip


def model_of(call: TracedCall) -> str:
    """The model that answered."""
    return call.verdict.model or (call.asked.model if call.asked is not None else "")


def prompt_of(call: TracedCall) -> tuple[tuple[str, str], ...]:
    """The messages that were sent."""
    return call.verdict.prompt or (call.asked.prompt if call.asked is not None else ())


def print_trace(novel: Novel, found: Trace, *, full: bool) -> None:
    """The trace in plain words."""
    output = found.step.output if isinstance(found.step.output, dict) else {}
    passage = output.get("passage")
    show(f"Step {found.step.time} of {novel.title}{f': passage {passage}' if passage else ''}", "bold")
    if passage:
        text = found_text(novel, passage)
        show(f"  “{first_line(text, 160)}”" if text else "  (the passage is no longer in the book)")
    plan = output.get("plan")
    if isinstance(plan, dict):
        _heading(f"Plan ({_whose(plan)})")
        show(f"  {plan['text']}")
        if plan.get("reason"):
            show(f"  Why: {plan['reason']}", "dim")
    _memories([memo for memos in found.recalls.values() for memo in memos])
    _state(found)
    if output.get("memory_reason"):
        _heading("Why the short-term memory was changed")
        show(f"  {output['memory_reason']}")
    print_requests(found, full=full)


def print_requests(found: Trace, *, full: bool, answers: bool = False) -> None:
    """The requests that a step went by; `answers`: with what was answered, whole where the prompts are."""
    _heading("Requests")
    for call in found.calls:
        _call(call, full=full, answers=answers)
    if not full and found.calls:
        show("The prompts in full: --prompt. Everything as JSON: --json.", "dim")


def print_memories(found: Trace) -> None:
    """The memories that a step recalled, if it did."""
    memos = [memo for memos in found.recalls.values() for memo in memos]
    if memos:
        _memories(memos)


def found_text(novel: Novel, passage: str) -> str:
    """A passage as it is now; empty where it was taken out."""
    held = novel.run.piece(f"text:{passage}")
    return str(held["text"]) if held else ""


def _whose(plan: dict[str, Any]) -> str:
    who = {"person": "yours", "author": "the simulated author's", "outline": "the outline's", "premise": "the premise"}.get(
        plan.get("by", ""), ""
    )
    return f"{who}, from candidate {plan['choice']}" if plan.get("choice") else who


def _memories(memos: list[Memo]) -> None:
    _heading(f"Memories that were recalled ({len(memos)})")
    if not memos:
        show("  none: there was nothing to remember yet, or nothing fitted the plan", "dim")
    for memo in memos:
        why = ", ".join(f"{name} {value:.2f}" for name, value in sorted(memo.parts.items(), key=lambda part: -part[1]))
        show(f"  {memo.id}  score {memo.score:.2f} ({why})")
        show(f"      {first_line(memo.text, 300)}")


def _state(found: Trace) -> None:
    lines = found.pieces.get("book/short_term")
    if isinstance(lines, list) and lines:
        _heading("Short-term memory that was in the prompt")
        for line in lines:
            show(f"  - {line}")
    names = sorted(key.partition("/")[2] for key in found.pieces if key.partition("/")[2] not in ("short_term", "position"))
    if names:
        _heading("Other state that was read")
        show(f"  {', '.join(names)}")


def _call(call: TracedCall, *, full: bool, answers: bool) -> None:
    verdict = call.verdict
    usage = dict(verdict.usage)
    request = call.asked.request if call.asked is not None else {}
    name = f"{verdict.purpose}{f' ({verdict.part})' if verdict.part else ''}"
    tokens = f"{number(usage.get('prompt_tokens', 0))} + {number(usage.get('answer_tokens', 0))} tokens"
    seed = f", seed {request['seed']}" if "seed" in request else ""
    if verdict.status == "refused":
        show(f"  ✗ {name}: refused, {verdict.reason} ({model_of(call)}, {tokens}{seed})", "yellow")
        show(f"      “{first_line(verdict.answer, 120)}”", "dim")
    elif verdict.status == "fallback":
        show(f"  ↳ {name}: {verdict.reason}; a value known before served instead", "yellow")
    else:
        show(f"  ✓ {name}: {model_of(call)}, {tokens}{seed}")
    for note in verdict.notes:
        show(f"      {note}", "dim")
    if full:
        for role, text in prompt_of(call):
            show(f"      [{role}]", "bold")
            show("\n".join(f"      {line}" for line in printable(text).splitlines()))
    if answers and verdict.status == "answered":
        show("      [answer]", "bold")
        show("\n".join(f"      {line}" for line in (verdict.answer if full else first_line(verdict.answer, 300)).splitlines()))


def _heading(text: str) -> None:
    show()
    show(text, "bold")


def refused(found: Trace) -> list[CallRow]:
    """The answers that were not accepted."""
    return [call.verdict for call in found.calls if call.verdict.status == "refused"]
