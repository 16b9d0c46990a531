"""Driving a run: whatever lane is not blocked makes its next step (DESIGN 3, Lanes and cuts)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fabula.runs._context import Context
from fabula.runs._progress import StepBegun, StepDone
from fabula.runs._run import Run
from fabula.store import FAR, StepRow


async def advance(
    run: Run, *, until: int = FAR, steps: int | None = None, lock_step: bool = False, stop: Callable[[], bool] = lambda: False
) -> list[StepRow]:
    """Drive every lane to logical time `until`, or for so many steps, or until the way in is finished or `stop` says so.

    Out of order: a lane waits only while someone behind reaches it. In lock-step all lanes of the smallest time go first, then
    a barrier. Cancelling it cancels the steps in flight; what is journaled stays.

    Returns:
        the steps committed, in order of commit.

    Raises:
        what a step raises (StepFailed, LimitReached, ModelError …); the other steps in flight are cancelled first.
    """
    run.writable()
    running, begun, barrier = run.running, 0, -1
    done_steps: list[StepRow] = []
    try:
        while True:
            if not running:
                run.take_inbox()
                if run.recurrence.finished(run):
                    return done_steps
            busy = {lane for lanes, _ in running.values() for lane in lanes}
            open_lanes = [lane for lane in run.lanes if not _over(run, lane, until)]
            low = min((run.next[lane] for lane in open_lanes), default=until)
            for lane in sorted(open_lanes, key=lambda name: (run.next[name], name)):
                time = run.next[lane]
                if stop() or (steps is not None and begun >= steps):
                    break
                if lane in busy or (lock_step and (time > low or (running and barrier != low))) or _blocked(run, lane):
                    continue
                lanes = run.recurrence.joins(run, lane, time)
                if any(other in busy or run.next[other] != time or _blocked(run, other) for other in lanes):
                    continue
                barrier = low
                running[asyncio.ensure_future(one_step(run, lanes, time))] = lanes, time
                busy |= set(lanes)
                begun += 1
            if not running:
                return done_steps
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                running.pop(task)
                if not task.cancelled():
                    done_steps.append(task.result())
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        running.clear()


async def one_step(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
    """Make one step and commit it."""
    ctx = Context(run, lanes, time)
    run.tell(StepBegun(run.id, ctx.key, time))
    output = await run.recurrence.step(ctx)
    row = await ctx.commit(output)
    run.tell(StepDone(run.id, ctx.key, time, output))
    return row


def _over(run: Run, lane: str, until: int) -> bool:
    return run.next[lane] >= min(until, run.lanes[lane][1])


def _blocked(run: Run, lane: str) -> bool:
    """Someone who is behind, and has not ended, could still matter to this lane's next step."""
    time = run.next[lane]
    return any(
        behind < min(time, run.lanes[other][1]) and run.recurrence.reaches(run, other, behind, lane, time)
        for other, behind in run.next.items()
        if other != lane
    )
