"""The rows of a library: plain values, one class a table. Rows are only appended (DESIGN 3, 4).

A transaction is one row of the log; its position `pos` stamps everything that it wrote. Undoing is a `Withdrawn` row
that names the position of a commit and so takes the step, its pieces and its records out together.
Logical times are integers; `FAR` stands for "no bound". JSON columns hold plain values (dict, list, str, int, float,
bool, None). Wall times are seconds since 1970 (UTC); story times are hours since the story's beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

FAR = 2**60
LIBRARY = "library"
"""The run under which a person's acts on library records outside any run are logged. It has no steps and no lock."""


class Unread(Enum):
    """Stands for the value of a piece that was left in the library (`Store.pieces`)."""

    UNREAD = "unread"


UNREAD = Unread.UNREAD

Status = Literal["asked", "answered", "refused", "fallback", "failed", "partial", "broken"]
By = Literal["step", "person", "import"]


@dataclass(frozen=True, slots=True)
class LogRow:
    """The spine: one transaction."""

    run: str
    kind: str
    wall: float
    pos: int = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """One novel, reading, town or chat. A fork pins (parent, cut, pin); a root has parent None."""

    id: str
    kind: str
    title: str
    seed: str
    """Of the root run, inherited by forks: `ctx.random`."""
    model_seed: str
    """Drawn anew by each fork: the seeds sent to the model."""
    premise: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What is fixed at the run's start, e.g. `token_ratio`."""
    parent: str | None = None
    cut: int = FAR
    pin: int = FAR
    pos: int = 0


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane: its first logical time and the time at which it ends."""

    run: str
    lane: str
    born: int
    ends: int = FAR
    pos: int = 0


@dataclass(frozen=True, slots=True)
class BegunRow:
    """What is fixed for one take of a step, written with the first thing that the step journals."""

    run: str
    step: str
    time: int
    take: int
    read_at: int
    story: float
    wall: float
    pos: int = 0


@dataclass(frozen=True, slots=True)
class StepRow:
    """A committed step: its lanes (sorted, joined by +), an interval [time, until), what came out and what it was made from."""

    run: str
    step: str
    time: int
    take: int
    until: int
    output: Any
    uses: Mapping[str, Any]
    """`{"calls": [pos], "recalls": [part], "pieces": {"lane/name": pos}, "seen": [[lane, name, version]], "rests": ["lane/name"]}`; without
    `rests` the step rests on all pieces that it read."""
    pos: int = 0


@dataclass(frozen=True, slots=True)
class WithdrawnRow:
    """The transaction at `target` is undone: its step, pieces and records are out."""

    target: int
    run: str
    why: str
    pos: int = 0


@dataclass(frozen=True, slots=True)
class RaisedRow:
    """From which sample on a purpose counts at one step (regenerate; a swipe back sets it back)."""

    run: str
    step: str
    time: int
    purpose: str
    base: int
    pos: int = 0


@dataclass(frozen=True, slots=True)
class CallRow:
    """Something about one call of a model, at an address (run, step, time, purpose, part, sample, attempt).

    `asked` is written before the request is sent (so that limits count what was asked), `partial` at least once a second
    of a stream, then exactly one verdict: answered, refused, fallback or failed; or `broken` when the transport failed (no
    verdict: the same address is asked again; its usage counts in place of the worst case). A partial is never an answer.
    """

    run: str
    step: str
    time: int
    purpose: str
    part: str
    sample: int
    attempt: int
    fingerprint: str
    status: Status
    answer: str = ""
    """The whole text (partial: the text so far since the last partial, i.e. the delta)."""
    reason: str = ""
    """Why it was refused, or why it fell back or failed."""
    finish: str = ""
    prompt: tuple[tuple[str, str], ...] = ()
    """(role, text) of each message; kept once by content; empty in partials and verdicts that follow an `asked` row."""
    model: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    """`{"schema": …, "sampling": …, "seed": …}` as asked; in `asked` rows."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """prompt_tokens, answer_tokens, cached_tokens, cost, estimated. In `asked` rows: the worst case."""
    notes: tuple[str, ...] = ()
    sequence: int = 0
    """Number of the partial, from 0."""
    asked: int = 0
    """Position of the `asked` row that this row belongs to; 0 = none."""
    wall: float = 0.0
    pos: int = 0


@dataclass(frozen=True, slots=True)
class RecallRow:
    """What a recall found (ids, positions, order, scores, what the budget cut), at an address."""

    run: str
    step: str
    time: int
    take: int
    part: str
    query: str
    """Hash of the query and all that shapes its answer."""
    found: Any
    pos: int = 0


@dataclass(frozen=True, slots=True)
class PieceRow:
    """A version of a named piece of state. A step at t reads version t and writes t + 1; an edit counts like the step before it."""

    run: str
    lane: str
    name: str
    version: int
    time: int
    value: Any
    by: By = "step"
    pos: int = 0


@dataclass(frozen=True, slots=True)
class IntakeRow:
    """News from the library enters a run with several lanes at one logical time."""

    run: str
    time: int
    read_at: int
    pos: int = 0


@dataclass(frozen=True, slots=True)
class RecordRow:
    """An event of a memory record; `fabula.memory` folds the events of an id into the current record.

    `reach` run: visible along the line of ancestors, by logical time. `reach` library: visible to every run that has bound
    the entity `about`, by position.
    """

    id: str
    run: str
    lane: str
    time: int
    event: str
    """add, edit, status, erase …: what `fabula.memory` makes of it."""
    data: Mapping[str, Any]
    reach: Literal["run", "library"] = "run"
    about: str = ""
    by: str = "model"
    terms: str = ""
    """Search terms, separated by blanks; kept in the full-text index together with the run."""
    hash: str = ""
    """Names the embedded text in `VectorRow`; empty = no vector."""
    pos: int = 0


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A text's vector, float16, little-endian; key (hash, model). Writing one that is there changes nothing."""

    hash: str
    model: str
    vector: bytes
    pos: int = 0


@dataclass(frozen=True, slots=True)
class TextRow:
    """A source text that a run reads. The text itself is kept once by content, however many rows name it, and never changes.

    Reading a part of it takes the whole into memory, so a text of many megabytes is better kept as several.
    """

    run: str
    hash: str
    """`text_hash(text)`; writing another one is refused."""
    text: str
    pos: int = 0


@dataclass(frozen=True, slots=True)
class InboxRow:
    """What a second process left for the holder of a run."""

    run: str
    kind: str
    payload: Any
    wall: float
    pos: int = 0


@dataclass(frozen=True, slots=True)
class TakenRow:
    """The inbox row at `target` was taken in."""

    target: int
    run: str
    pos: int = 0


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact about the library or the machine, the latest counts: learnt byte limits, token ratios, the embedder in use."""

    name: str
    value: Any
    pos: int = 0


Row = (
    LogRow
    | RunRow
    | LaneRow
    | BegunRow
    | StepRow
    | WithdrawnRow
    | RaisedRow
    | CallRow
    | RecallRow
    | PieceRow
    | IntakeRow
    | RecordRow
    | VectorRow
    | TextRow
    | InboxRow
    | TakenRow
    | FactRow
)


@dataclass(frozen=True, slots=True)
class Reach:
    """One run of a line, and how much of it is seen: steps with time < cut, rows with pos <= pin."""

    run: str
    cut: int = FAR
    pin: int = FAR


@dataclass(frozen=True, slots=True)
class Address:
    """Where a call stands in a run's logic."""

    step: str
    time: int
    purpose: str
    part: str
    sample: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a run."""

    process: int
    since: float
    """Wall time, seconds."""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `check` found in a library."""

    code: str
    """Stable, e.g. `half_written_vector`."""
    message: str
    repaired: str = ""
    """What `repair` did about it; empty = nothing yet."""
    serious: bool = True
