"""The result of a reading (SPEC R3, R8): the three keys, claims with their places, coverage, and what was lost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from fabula.read._chunks import Chunk
from fabula.read._leaf import citation
from fabula.read._look import result_place
from fabula.read._shape import READING, Shape, leaf
from fabula.runs import Run

_NUMBER = re.compile(
    "(?<![A-Za-z\u0400-\u04ff\\d_])\\d{1,3}(?:[., \u00a0\u202f'’]\\d{3})+(?!\\d)|(?<![A-Za-z\u0400-\u04ff\\d_])\\d+(?:[.,]\\d+)*"
)
"""With its thousands apart or with decimals; two years side by side are two numbers."""
_FEWEST_DIGITS = 2
"""A single digit is often a count that the statement makes itself."""
_NO_SOURCE = "[no source]"


class Outcome:
    """All that a reading knows, by chunk and by claim."""

    def __init__(self, run: Run, shape: Shape):
        self.run, self.shape = run, shape
        self.names: list[str] = run.piece("documents", lane="")["names"]
        self.documents: list[dict[str, Any]] = run.piece("documents", lane="")["all"]
        self.report: dict[str, Any] = run.piece("report", lane=shape.last) or {"statements": [], "covers": []}
        self.done = bool(run.piece("done", lane=READING)) if shape.way == "ask" else run.next[shape.last] >= run.lanes[shape.last][1]
        self.numbers: dict[str, int] = {}
        """Claim id → its number in the report, for the claims that the answer cites."""
        for statement in self.report["statements"]:
            for ident in statement["claims"]:
                self.numbers.setdefault(ident, len(self.numbers) + 1)

    def chunk(self, number: int) -> Chunk:
        """A chunk."""
        return Chunk.from_dict(number, self.run.piece(f"chunk:{number}", lane=""))

    def outcome(self, number: int) -> dict[str, Any] | None:
        """What came of it; None = not read."""
        lane, name = result_place(self.shape, number)
        held: dict[str, Any] | None = self.run.piece(name, lane=lane)
        return held

    def claim(self, ident: str) -> dict[str, Any]:
        """A claim by its id; that of a whole chunk ends in `.0`."""
        number, index = ident.split(".")
        outcome = self.outcome(int(number)) or {}
        if index == "0":
            return self._placed({**outcome["where"], "id": ident, "text": outcome["summary"], "quote": "", "support": "chunk"})
        return self._placed(outcome["claims"][int(index) - 1])

    def _placed(self, claim: Mapping[str, Any]) -> dict[str, Any]:
        ident = claim["id"]
        return {
            "id": ident, "number": self.numbers.get(ident), "text": claim["text"], "path": self.names[claim["document"]],
            "lines": claim["lines"], "place": claim["place"], "quote": claim["quote"], "support": claim["support"],
            "chunk": int(ident.split(".")[0]) + 1,
        }  # fmt: skip

    def claims(self) -> list[dict[str, Any]]:
        """Every claim: those that the answer cites first, in its order, then the others in the order of the text."""
        cited = [self.claim(ident) for ident in self.numbers]
        others = [
            self._placed(c)
            for n in range(self.shape.chunks)
            for c in (self.outcome(n) or {}).get("claims", ())
            if c["id"] not in self.numbers
        ]
        return [*cited, *others]

    def statements(self) -> list[dict[str, Any]]:
        """The answer, statement by statement, each with the claims that it rests on and what is doubtful about it."""
        out = []
        for statement in self.report["statements"]:
            claims = [self.claim(ident) for ident in statement["claims"]]
            out.append({
                "text": statement["text"], "claims": statement["claims"], "numbers": [self.numbers[i] for i in statement["claims"]],
                "support": _support(statement["support"], claims), "doubts": doubts(statement["text"], claims),
            })  # fmt: skip
        return out

    def final_summary(self) -> str:
        """The answer as text, with the numbers of its claims; a statement without a source says so."""
        return "\n\n".join(f"{s['text']} {_marked(s)}" for s in self.statements())

    # -- the other keys ------------------------------------------------------------------------------------------------------

    def sources(self, number: int) -> list[dict[str, Any]]:
        """Which lines of which documents a chunk is."""
        return [{"path": self.names[p.document], "lines": [p.line, p.line + max(0, p.lines - 1)]} for p in self.chunk(number).parts]

    def individual_results(self) -> list[dict[str, Any]]:
        """One entry a chunk, with the context that it was given."""
        return [self._individual(n) for n in range(self.shape.chunks)]

    def _individual(self, number: int) -> dict[str, Any]:
        outcome = self.outcome(number)
        out: dict[str, Any] = {
            "chunk": number + 1,
            "sources": self.sources(number),
            "read": outcome is not None and "unread" not in outcome,
        }
        if outcome is None:
            return {**out, "result": "", "claims": [], "context": "", "why": "chosen not to be read" if self.done else "not read yet"}
        given = self._given(number)
        out |= {
            "relevant": outcome["relevant"], "result": outcome["summary"], "claims": [c["id"] for c in outcome["claims"]],
            "open": outcome["open"], "context": given["context"], "context_facts": given["facts"],
        }  # fmt: skip
        return {**out, "why": outcome["unread"]} if "unread" in outcome else out

    def _given(self, number: int) -> dict[str, Any]:
        lane, name = (READING, f"given:{number}") if self.shape.way in ("chain", "ask") else (leaf(number), "given")
        return self.run.piece(name, lane=lane) or {"context": "", "facts": []}

    def context_summaries(self) -> list[dict[str, Any]]:
        """One entry a chunk: what was known after it. In a tree that is the report of the node that merged it."""
        return [{"chunk": n + 1, **self._context(n)} for n in range(self.shape.chunks)]

    def _context(self, number: int) -> dict[str, Any]:
        if self.shape.way == "chain":
            text = self.run.piece("context", lane=READING, version=number + 1) if self.outcome(number) else ""
            return {"summary": text or "", "covers": list(range(1, number + 2))}
        if self.shape.way == "two-pass":
            group = number // self.shape.group
            behind = min((group + 1) * self.shape.group, self.shape.chunks)
            return {"summary": self.run.piece("context", lane="context", version=group + 2) or "", "covers": list(range(1, behind + 1))}
        if self.shape.way == "tree" and self.shape.nodes:
            node = self._parents[leaf(number)]
            report = self.run.piece("report", lane=node) or {"statements": [], "covers": []}
            return {"summary": " ".join(s["text"] for s in report["statements"]), "covers": [c + 1 for c in report["covers"]]}
        outcome = self.outcome(number)
        return {"summary": outcome["summary"] if outcome else "", "covers": [number + 1] if outcome else []}

    @cached_property
    def _parents(self) -> dict[str, str]:
        return {child: node.lane for node in self.shape.nodes for child in node.children}

    # -- coverage and losses ---------------------------------------------------------------------------------------------------

    def coverage(self) -> dict[str, Any]:
        """What was read, what of it stands in the answer, and what does not."""
        read, unread, relevant = [], [], []
        for n in range(self.shape.chunks):
            outcome = self.outcome(n)
            if outcome is None or "unread" in outcome:
                unread.append(n)
                continue
            read.append(n)
            if outcome["relevant"]:
                relevant.append(n)
        cited = {int(ident.split(".")[0]) for ident in self.numbers}
        left_out = [n for n in relevant if n not in cited]
        return {
            "documents": len(self.names), "chunks": self.shape.chunks, "read": len(read), "relevant": len(relevant),
            "in_summary": len(cited), "share": round(len(cited & set(relevant)) / len(relevant), 3) if relevant else 0.0,
            "not_in_summary": [n + 1 for n in left_out], "not_read": [n + 1 for n in unread], "by_document": self._by_document(set(read)),
        }  # fmt: skip

    def _by_document(self, read: set[int]) -> list[dict[str, Any]]:
        rows = [
            {"path": d["name"], "lines": d["lines"], "chunks": 0, "read": 0, "claims": 0, "cited": 0, "notes": d["notes"]}
            for d in self.documents
        ]
        for n in range(self.shape.chunks):
            chunk = self.chunk(n)
            for document in {p.document for p in chunk.parts}:
                rows[document]["chunks"] += 1
                rows[document]["read"] += n in read
            for claim in (self.outcome(n) or {}).get("claims", ()):
                rows[claim["document"]]["claims"] += 1
                rows[claim["document"]]["cited"] += claim["id"] in self.numbers
        return rows

    def lost(self) -> list[str]:
        """What did not go as it should, in sentences; empty = nothing was lost."""
        out = []
        for number in range(self.shape.chunks):
            outcome = self.outcome(number)
            where = ", ".join(f"{s['path']}:{s['lines'][0]}-{s['lines'][1]}" for s in self.sources(number)[:3])
            if outcome is not None and "unread" in outcome:
                out.append(f"Chunk {number + 1} ({where}) could not be read: {outcome['unread']}.")
            parts = (outcome or {}).get("unread_parts", ())
            out += [f"A part of chunk {number + 1} ({citation(self.names, p)}) could not be read: {p['why']}." for p in parts]
        if self.shape.way == "chain" and self.run.piece("dropped", lane=READING):
            out.append(
                f"{self.run.piece('dropped', lane=READING)} facts no longer fitted beside the rolling context; "
                "they are in the claims and in memory."
            )
        for statement in self.report["statements"]:
            if statement["support"] == "program":
                out.append("A part of the answer was put together by the program, since the model's answers were refused.")
                break
        return out


def _support(own: str, claims: Sequence[Mapping[str, Any]]) -> str:
    """cited, or found by the program; none where no claim under it has a place in the text."""
    if not claims or all(c["support"] == "none" for c in claims):
        return "none"
    return own


def doubts(text: str, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Numbers of a statement that stand in none of its claims."""
    if not claims:
        return []
    told = " ".join(f"{c['text']} {c['quote']}" for c in claims)
    known = {_plain(n) for n in _NUMBER.findall(told)}
    numbers = [n for n in dict.fromkeys(_NUMBER.findall(text)) if len(_plain(n)) >= _FEWEST_DIGITS]
    return [f"the number {n} stands in none of its sources" for n in numbers if _plain(n) not in known]


def _plain(number: str) -> str:
    return re.sub(r"\D", "", number)


def marks(statement: Mapping[str, Any], text: str, claims: Sequence[Mapping[str, Any]]) -> str:
    """What stands behind a statement: the numbers of its claims, or that it has no source; and what is doubtful about it."""
    return _marked({**statement, "support": _support(statement["support"], claims), "doubts": doubts(text, claims)})


def _marked(statement: Mapping[str, Any]) -> str:
    if statement["support"] == "none":
        return _NO_SOURCE
    numbers = statement["numbers"]
    shown = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
    return f"[{shown}]" + (" [doubtful: " + "; ".join(statement["doubts"]) + "]" if statement["doubts"] else "")


def result_of(run: Run, shape: Shape, task: str, usage: Mapping[str, Any]) -> dict[str, Any]:
    """The result as plain values: the three keys of R3, and what they rest on."""
    o = Outcome(run, shape)
    return {
        "run": run.id, "title": run.row.title, "task": task, "way": shape.way, "finished": o.done, "language": run.row.premise["language"],
        "final_summary": o.final_summary(), "statements": o.statements(), "individual_context_summaries": o.context_summaries(),
        "individual_results": o.individual_results(), "claims": o.claims(), "coverage": o.coverage(), "lost": o.lost(),
        "sources": run.piece("sources", lane=""), "skipped": run.piece("skipped", lane=""), "findings": run.piece("findings", lane=""),
        "usage": dict(usage),
    }  # fmt: skip
