"""What a reading will cost, before it starts (SPEC R6, R7): calls, tokens, money, time, and how much is known from earlier readings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabula.read._leaf import Asking, chunk_prompt
from fabula.read._seek import A_ROUND
from fabula.read._shape import MOST_ROUNDS, READING, STORY_STEPS, Shape, digest, leaf
from fabula.runs import Context, ModelFacts, Run, fingerprint, known
from fabula.store import LIBRARY, FactRow, Store

if TYPE_CHECKING:
    from fabula.read._reading import Reading
    from fabula.read._task import Sizes

_MOST_LOOKED_UP = 3_000
"""Chunks; of more it is not found out beforehand which are known."""
_USUAL = 0.6
"""Share of the most that an answer may take that it usually takes."""
_ANSWERING = 20.0
"""How many prompt tokens take as long as one token of the answer."""
_LOCAL = (110.0, 13.0)
"""Tokens a second of prompt and answer of the embedded model on two cores (measured, see docs/log.md)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A reading, before it starts."""

    way: str
    documents: int
    skipped: int
    chunks: int
    tokens: int
    """Of all chunks, as the model counts (estimated)."""
    calls: int
    """Most, if every answer is usable."""
    known_calls: int | None
    """Chunks of which the library has the answer already; None = not looked up."""
    prompt_tokens: int
    """Of the calls that are not known."""
    answer_tokens: int
    cost: float | None
    """None = the price is not known."""
    seconds: float | None
    """None = this model was not used for reading yet."""
    depth: int
    """Calls that must follow one another: with enough at once this is what is waited for."""
    chunk_tokens: int
    fan_in: int

    def as_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)


def plan_of(run: Run, reading: Reading, library: Store, *, local: bool = False, at_once: int = 1) -> Plan:
    """The plan of a reading that was prepared.

    Args:
        run: opened, to read only.
        reading: its recurrence.
        library: where earlier answers are.
        local: the model runs on this machine's processor.
        at_once: calls in flight.
    """
    shape, facts = reading.shape(run), facts_in(run)
    first = _first_reader(run, reading)
    sizes = first.sizes
    chunks = [run.piece(f"chunk:{n}", lane="")["tokens"] for n in range(shape.chunks)]
    ratio = facts.token_ratio
    overhead = 450
    leaf_calls, merge_calls, depth = _calls(shape)
    reading_tokens = int(sum(chunks) * ratio)
    if shape.way == "ask":
        share = min(1.0, leaf_calls / max(1, shape.chunks))
        reading_tokens = int(reading_tokens * share)
    known_calls = _known(run, reading, library, facts)
    new = max(0, leaf_calls - (known_calls or 0))
    times = 2 if shape.way == "two-pass" else 1
    rolling = sizes.context + sizes.known if shape.way in ("chain", "two-pass") else 0
    prompt = int(reading_tokens * times * (new / leaf_calls if leaf_calls else 0)) + new * (overhead + rolling)
    merged = min(sizes.shown, int(sizes.fan_in * sizes.answer * _USUAL))
    prompt += merge_calls * (overhead + merged)
    answer = int(new * sizes.answer * _USUAL + merge_calls * sizes.merge_answer * _USUAL + sizes.final_answer * 0.3)
    return Plan(
        way=shape.way,
        documents=len(run.piece("documents", lane="")["names"]),
        skipped=len(run.piece("skipped", lane="")),
        chunks=shape.chunks,
        tokens=int(sum(chunks) * ratio),
        calls=leaf_calls + merge_calls,
        known_calls=known_calls,
        prompt_tokens=prompt,
        answer_tokens=answer,
        cost=facts.cost(prompt, answer) if facts.price_known else None,
        seconds=_seconds(library, facts, prompt, answer, local, at_once),
        depth=depth,
        chunk_tokens=_at_most(sizes, ratio),
        fan_in=sizes.fan_in,
    )


def facts_in(run: Run) -> ModelFacts:
    """The model's facts as the run holds them."""
    return ModelFacts.from_dict(run.piece("model", lane=""))


def _at_most(sizes: Sizes, ratio: float) -> int:
    return int(sizes.chunk * ratio)


def _first_reader(run: Run, reading: Reading) -> Any:
    lane = READING if reading.shape(run).way in ("chain", "ask") else next(iter(run.lanes))
    return reading.reader(Context(run, (lane,), 0))


def _calls(shape: Shape) -> tuple[int, int, int]:
    """(calls that read chunks, other calls, calls that must follow one another)."""
    n = shape.chunks
    if shape.way == "tree":
        return n, len(shape.nodes), 1 + max((node.height for node in shape.nodes), default=0)
    if shape.way == "two-pass":
        return 2 * n, shape.groups + 1, shape.groups + 3
    if shape.way == "chain":
        return n, 1, n + 1
    read = min(n, A_ROUND * MOST_ROUNDS)
    return read, 2, 2 + MOST_ROUNDS


def _known(run: Run, reading: Reading, library: Store, facts: ModelFacts) -> int | None:
    """How many chunks were read before with the same words, for the same task, by the same model."""
    shape = reading.shape(run)
    if shape.chunks > _MOST_LOOKED_UP or shape.way in ("chain", "ask"):
        return None
    prints: list[str] = []
    for number in range(shape.chunks):
        lane = digest(number) if shape.way == "two-pass" else leaf(number)
        r = reading.reader(Context(run, (lane,), 0))
        chunk = r.chunk(number)
        asking = Asking("digest", "digest") if shape.way == "two-pass" else Asking()
        prints.append(fingerprint(chunk_prompt(r, chunk, r.texts(chunk), asking), facts, asking.purpose))
    have = known(library, prints)
    return sum(one in have for one in prints)


def _seconds(library: Store, facts: ModelFacts, prompt: int, answer: int, local: bool, at_once: int) -> float | None:
    measured = speed_of(library, facts.name)
    if measured is not None:
        return round(measured * (prompt + _ANSWERING * answer) / max(1, at_once), 1)
    return round(prompt / _LOCAL[0] + answer / _LOCAL[1], 1) if local else None


def speed_of(library: Store, model: str) -> float | None:
    """Seconds for a prompt token of one call, as measured in earlier readings."""
    rows = library.rows(FactRow, name=f"speed:{model}", newest_first=True, limit=1)
    return float(rows[0].value["seconds"]) if rows else None


def keep_speed(library: Store, model: str, prompt: float, answer: float, seconds: float, at_once: int) -> None:
    """Keep what a reading took, for the next plan."""
    weight = prompt + _ANSWERING * answer
    if weight > 2_000 and seconds > 1.0:
        with library.write(LIBRARY, "learnt") as tx:
            tx.add(FactRow(f"speed:{model}", {"seconds": seconds * at_once / weight}))


STORY_CALLS = STORY_STEPS
