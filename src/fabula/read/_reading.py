"""The recurrence of a reading (SPEC R2, R7): a lane a chunk and a merge in a tree, one lane where it goes in order.

Pieces of state, on the lane "" (fixed at the start):

    sources, documents, skipped, findings     what was gathered: see `Gathered`
    shape, chunk:N                            the lanes; which lines of which documents a chunk is, and the hash of each text

and on the lanes:

    result, report, digest, given             what came of a chunk; of a merge; of a first pass; what a chunk was read in the light of
    context, facts, result:N, given:N         of a chain
    terms, read, enough, done                 of a question-driven reading
    wanted, cast, style, state                (lane `story`) what a novel needs to go on
    question, conversation, asked:N           (lane `questions`, on a fork) what is asked afterwards
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabula.errors import NotPossible
from fabula.read._chunks import Gathered
from fabula.read._leaf import Asking, read_chunk, remember
from fabula.read._look import PROMPTS, Reader
from fabula.read._merge import merge, part_of_chunk, part_of_report
from fabula.read._questions import question_step
from fabula.read._rolling import chain_step, context_step, digest_step, final_step, second_step
from fabula.read._seek import seek_step
from fabula.read._shape import QUESTIONS, READING, STORY, Shape, number_of
from fabula.read._story import story_step
from fabula.read._task import Sizes, Task
from fabula.runs import Context, Pieces, Prompts, Recurrence, Run


class Reading(Recurrence):
    """A reading.

    Args:
        gathered: what is to be read; only for a new run.
        shape: its lanes; only for a new run.
    """

    kind = "read"
    single = False

    def __init__(self, gathered: Gathered | None = None, shape: Shape | None = None):
        self._gathered, self._new_shape = gathered, shape
        self._shapes: dict[str, Shape] = {}
        self._tasks: dict[str, tuple[Task, Prompts, Sizes, str, str]] = {}

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:  # noqa: ARG002
        """Those of the shape."""
        assert self._new_shape is not None
        return self._new_shape.lanes()

    def start(self, premise: Mapping[str, Any]) -> Pieces:  # noqa: ARG002
        """What was gathered."""
        assert self._gathered is not None
        assert self._new_shape is not None
        g = self._gathered
        documents = {"names": [d["name"] for d in g.documents], "kinds": [d["kind"] for d in g.documents], "all": g.documents}
        pieces: dict[str, Any] = {
            "sources": g.sources, "documents": documents, "skipped": g.skipped, "findings": g.findings, "shape": self._new_shape.as_dict(),
        }  # fmt: skip
        pieces |= {f"chunk:{c.number}": c.as_dict() for c in g.chunks}
        return {("", name): value for name, value in pieces.items()}

    def shape(self, run: Run) -> Shape:
        """The lanes of a run."""
        if run.id not in self._shapes:
            self._shapes[run.id] = Shape.from_dict(run.piece("shape", lane=""))
        return self._shapes[run.id]

    def waits_for(self, run: Run, lane: str, time: int) -> Sequence[str]:
        """The lanes that a step reads. What is asked on a fork waits for nothing: it goes by what had been read."""
        return self.shape(run).waits_for(lane, time)

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:  # noqa: ARG002
        """Whether a lane is read by another."""
        return source in self.waits_for(run, target, time)

    def finished(self, run: Run) -> bool:
        """The task is answered, and nothing was asked for since."""
        return self.answered(run) and not self._asked(run)

    def _asked(self, run: Run) -> bool:
        """A question waits, or what a novel needs."""
        question = run.piece("question", lane=QUESTIONS)
        if question and question["time"] == run.next[QUESTIONS]:
            return True
        return bool(run.piece("wanted", lane=STORY)) and run.next[STORY] < run.lanes[STORY][1]

    def answered(self, run: Run) -> bool:
        """The task is answered."""
        shape = self.shape(run)
        if shape.way == "ask":
            return bool(run.piece("done", lane=READING))
        return run.next[shape.last] >= run.lanes[shape.last][1]

    def timeless(self, name: str) -> bool:  # noqa: ARG002
        """The texts are as they were read; an edit of what was made of them is for what comes."""
        return False

    def derived(self, name: str) -> bool:
        """Reports rest on results."""
        return name in ("report", "context", "state")

    async def step(self, ctx: Context) -> Any:
        """A chunk, a merge, the answer, a question."""
        r = self.reader(ctx)
        lane = ctx.lanes[0]
        if lane == QUESTIONS:
            return await question_step(r)
        if lane == STORY:
            return await story_step(r)
        if r.shape.way == "chain":
            return await chain_step(r)
        if r.shape.way == "ask":
            return await seek_step(r)
        if lane.startswith("d."):
            return await digest_step(r)
        if lane == "context":
            return await context_step(r)
        if lane == "final":
            return await final_step(r)
        if lane.startswith("0."):
            return await (leaf_step(r) if r.shape.way == "tree" else second_step(r))
        return await node_step(r)

    def reader(self, ctx: Context) -> Reader:
        """The step's task, prompts and sizes."""
        run = ctx.run
        if run.id not in self._tasks:
            self._tasks[run.id] = _fixed(run.row.premise)
        task, prompts, sizes, language, words = self._tasks[run.id]
        return Reader(ctx, task, prompts, sizes, self.shape(run), language, words)


def _fixed(premise: Mapping[str, Any]) -> tuple[Task, Prompts, Sizes, str, str]:
    """What a reading keeps from its start to its end."""
    task = Task(**premise["task"])
    prompts = Prompts(PROMPTS, premise["language"], task.prompts)
    return task, prompts, Sizes(**premise["sizes"]), premise["language"], premise["words_task"]


async def leaf_step(r: Reader) -> dict[str, Any]:
    """A chunk of a tree, on its own."""
    number = number_of(r.ctx.lanes[0])
    outcome = await read_chunk(r, number, Asking())
    r.ctx.put("result", outcome)
    remember(r, number, outcome)
    if r.shape.last == r.ctx.lanes[0]:  # the only one: what it says is the answer
        if "unread" in outcome:
            from fabula.errors import StepFailed

            raise StepFailed(f"Nothing could be read: {outcome['unread']}.", purpose="chunk", reasons=[outcome["unread"]])
        statements = [{"text": outcome["summary"], "claims": [c["id"] for c in outcome["claims"]], "support": "cited"}]
        r.ctx.put("report", {"statements": statements if outcome["summary"] else [], "covers": [number]})
    out = {"kind": "chunk", "chunk": number, "claims": len(outcome["claims"])}
    return {**out, "unread": outcome["unread"]} if "unread" in outcome else out


async def node_step(r: Reader) -> dict[str, Any]:
    """A merge of a tree."""
    lane = r.ctx.lanes[0]
    children = r.shape.children.get(lane)
    if children is None:
        raise NotPossible(f"A reading has no lane {lane}.")
    low = children[0].startswith("0.")
    parts = [
        part_of_chunk(r, number_of(child), r.result(number_of(child))) if low else part_of_report(r.ctx.piece("report", lane=child))
        for child in children
    ]
    last = lane == r.shape.last
    report = await merge(r, parts, last=last)
    r.ctx.put("report", report)
    return {
        "kind": "final" if last else "merge",
        "chunks": [report["covers"][0], report["covers"][-1]],
        "statements": len(report["statements"]),
    }
