"""Replaying a run step by step, so that one that cannot be replayed does not keep the others from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabula.cli._output import first_line, show

if TYPE_CHECKING:
    from fabula.runs import Difference
    from fabula.store import StepRow, Store


@dataclass
class Replayed:
    """What came of it, by the numbers of the steps; where a run has several lanes, by `LANE@NUMBER`."""

    run: str
    steps: int = 0
    """How many were replayed."""
    differences: list[Difference] = field(default_factory=list)
    erased: list[int | str] = field(default_factory=list)
    """Steps that lack what a person erased."""
    missing: dict[int | str, str] = field(default_factory=dict)
    """Steps that lack something though nothing was ever erased, and what."""

    single: bool = True
    """The run has one lane."""

    def named(self, one: Difference | StepRow) -> int | str:
        """How a step is named."""
        return one.time if self.single else f"{one.step}@{one.time}"

    def as_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "run": self.run, "steps": self.steps, "identical": not self.differences and not self.missing,
            "differences": [{"step": self.named(one), "what": one.what} for one in self.differences], "erased": self.erased,
            "missing": [{"step": step, "what": what} for step, what in self.missing.items()],
        }  # fmt: skip


def replayed(store: Store, run: str) -> Replayed:
    """Replay every step of a run of any kind.

    Raises:
        NotFound: no such run.
        NotPossible: a run of a kind that this version does not know.
    """
    from fabula.cli._interrupt import run_async
    from fabula.errors import Offline
    from fabula.runs import replay_step
    from fabula.store import FactRow
    from fabula.ways import open_run

    opened = open_run(store, run)
    erased = bool(store.rows(FactRow, name="erased", limit=1))
    opened.clock = _no_clock
    done = Replayed(opened.id, single=len(opened.lanes) == 1)

    async def whole() -> None:
        for step in store.steps(opened.line):
            try:
                found = await replay_step(opened, step)
            except Offline as error:
                if erased:
                    done.erased.append(done.named(step))
                else:
                    done.missing[done.named(step)] = error.message
                continue
            done.steps += 1
            done.differences += found

    run_async(whole)
    return done


def _no_clock() -> float:
    raise AssertionError("a replayed step may not look at the clock")


def finding(done: Replayed) -> str:
    """What is wrong, as a sentence; empty where nothing is."""
    if done.differences:
        return f"{len(done.differences)} differences in {done.steps} replayed steps of run {done.run}."
    return f"{len(done.missing)} steps of run {done.run} cannot be replayed." if done.missing else ""


def print_replayed(done: Replayed) -> None:
    """As a person reads it."""
    for one in done.differences:
        show(f"step {done.named(one)}: {one.what} differ: {first_line(repr(one.expected))} → {first_line(repr(one.got))}")
    for step, what in done.missing.items():
        show(f"step {step}: {what}")
    if not done.differences:
        show(f"{done.steps} steps replayed offline, all identical.")
    if done.erased:
        show(f"Passed over, since what they need was erased: step{'s' if len(done.erased) > 1 else ''} {', '.join(map(str, done.erased))}.")
