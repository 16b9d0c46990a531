"""Driving a run: whatever lane is not blocked makes its next step (DESIGN 3, Lanes and cuts)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from fabula.errors import InputError, LimitReached
from fabula.runs._context import Context
from fabula.runs._progress import Noted, StepBegun, StepDone
from fabula.runs._run import Run
from fabula.runs._schedule import Schedule
from fabula.store import FAR, StepRow


async def advance(
    run: Run,
    *,
    until: int = FAR,
    steps: int | None = None,
    lock_step: bool = False,
    stop: Callable[[], bool] = lambda: False,
    at_once: int | None = None,
    lanes: Collection[str] | None = None,
) -> list[StepRow]:
    """Drive every lane to logical time `until`, or for so many steps, or until the way in is finished or `stop` says so.

    Out of order: a lane waits only while someone behind reaches it. In lock-step all lanes of the smallest time go first, then
    a barrier. Cancelling it cancels the steps in flight; what is journaled stays.

    Args:
        run: opened with a model.
        until: logical time at which every lane stops.
        steps: most steps to begin.
        lock_step: as said above.
        stop: asked before each step; True = begin no more.
        at_once: most steps in flight; None = all that may begin. Where many lanes are ready, this bounds memory and what is asked.
        lanes: drive only these; others stay where they are (and whoever waits for them waits on).

    Returns:
        the steps committed, in order of commit.

    Raises:
        InputError: `at_once` below 1, or a lane that the run does not have.
        FabulaError: what a step raises (StepFailed, ModelError …); the other steps in flight are cancelled first.
        LimitReached: no more steps are begun, and those in flight go on until they are done or reach a limit themselves, so that
            no answer that is paid for is thrown away.
    """
    run.writable()
    if at_once is not None and at_once < 1:
        raise InputError(f"At least one step must be made at once, not {at_once}.")
    schedule, running, landed = Schedule(run, until, lanes, lock_step), run.running, _Landed()
    begun = 0
    done: list[StepRow] = []
    limit: LimitReached | None = None
    try:
        while True:
            if not running and limit is None:
                run.take_inbox()
                if run.recurrence.finished(run):
                    return done
            while limit is None and (at_once is None or len(running) < at_once) and not stop() and (steps is None or begun < steps):
                step = schedule.ready()
                if step is None:
                    break
                task = asyncio.ensure_future(one_step(run, *step))
                task.add_done_callback(landed.land)
                running[task] = step
                begun += 1
            if not running:
                if limit is not None:
                    raise limit
                return done
            for task in await landed.some():
                came, _ = running.pop(task)
                schedule.came_on(came)
                if task.cancelled():
                    continue
                error = task.exception()
                if isinstance(error, LimitReached):
                    limit = limit or error
                elif error is not None and limit is not None:
                    run.tell(Noted(f"Step {'+'.join(came)} failed while the limit was waited out: {error}"))
                else:
                    done.append(task.result())
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        running.clear()


class _Landed:
    """Tasks that are done, in that order: `asyncio.wait` would look at every task in flight each time."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[StepRow]] = []
        self._any = asyncio.Event()

    def land(self, task: asyncio.Task[StepRow]) -> None:
        self._tasks.append(task)
        self._any.set()

    async def some(self) -> list[asyncio.Task[StepRow]]:
        """Those that have come since; at least one."""
        await self._any.wait()
        self._any.clear()
        tasks, self._tasks = self._tasks, []
        return tasks


async def one_step(run: Run, lanes: tuple[str, ...], time: int) -> StepRow:
    """Make one step and commit it."""
    ctx = Context(run, lanes, time)
    run.tell(StepBegun(run.id, ctx.key, time))
    output = await run.recurrence.step(ctx)
    row = await ctx.commit(output)
    run.tell(StepDone(run.id, ctx.key, time, output))
    return row
