"""An opened run: versioned pieces in memory, and what a person does to them (DESIGN 3)."""

from __future__ import annotations

import asyncio
import time as wall_clock
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.errors import FabulaError, InputError, NotPossible
from fabula.memory import Memory
from fabula.models import Model, Usage
from fabula.runs._context import Context
from fabula.runs._create import facts_of
from fabula.runs._facts import MODEL_PIECE, SMALL_MODEL_PIECE, Limits, ModelFacts
from fabula.runs._progress import Listener, Noted, Progress, silent
from fabula.runs._prompts import Prompts
from fabula.runs._recurrence import Recurrence
from fabula.runs._schedule import hit, reached
from fabula.runs._state import State
from fabula.store import (
    FAR,
    Between,
    FactRow,
    InboxRow,
    IntakeRow,
    LaneRow,
    PieceRow,
    RaisedRow,
    RecordRow,
    StepRow,
    Store,
    TakenRow,
    WithdrawnRow,
)
from fabula.text import TokenRatio, count_tokens

_PROMPTS = Path(__file__).parent / "prompts"
_COUNTED = 1_000_000
"""Characters of texts whose tokens are known."""
_TEXTS_KEPT = 8_000_000
"""Characters of source texts that stay in memory."""


class Run:
    """An opened run.

    Args:
        model: None = only to read and to replay; nothing can be asked and the run is not held.
        memory: None = as for the model.
        listen: told of progress.
        limits: what the run may spend in all.
        partial_seconds: deltas of a stream are journaled at least this often (seconds).

    Raises:
        NotFound, Held.
    """

    def __init__(
        self,
        store: Store,
        recurrence: Recurrence,
        run: str,
        *,
        model: Model | None = None,
        small_model: Model | None = None,
        memory: Memory | None = None,
        listen: Listener = silent,
        limits: Limits | None = None,
        clock: Callable[[], float] = wall_clock.time,
        partial_seconds: float = 1.0,
        hold: bool | None = None,
    ):
        self.store, self.recurrence, self.memory = store, recurrence, memory
        self.row = store.run(run)
        self.id = self.row.id
        self.holding = (model is not None) if hold is None else hold
        if self.holding:
            store.hold(self.id)
        self.model, self.small_model = model, small_model
        self.listen, self.limits, self.clock, self.partial_seconds = listen, limits or Limits(), clock, partial_seconds
        self.line = store.line(self.id)
        self.lanes: dict[str, tuple[int, int]] = {}
        for reach in reversed(self.line):
            self.lanes.update({row.lane: (row.born, row.ends) for row in store.rows(LaneRow, run=reach.run)})
        self.running: dict[asyncio.Task[StepRow], tuple[tuple[str, ...], int]] = {}
        self.changes = 0
        """How often something else than a step's commit has changed the state; what was concluded before may not hold."""
        self._taking = 0
        self.engine_prompts = Prompts(_PROMPTS, str(self.row.premise.get("language", "en")))
        self._counts: dict[str, int] = {}
        self._counted = 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._ratios: dict[str, TokenRatio] = {}
        self.load()
        if self.holding:
            self._note_models()
            self.take_inbox()  # before anything newer can be done
            if not recurrence.single:
                self.take_in()

    def load(self) -> None:
        """Read the state from the store."""
        self.changes += 1
        self.next = {lane: born for lane, (born, _) in self.lanes.items()}
        self._latest = -1 if len(self.line) == 1 else self.line[1].cut - 1
        for step, (time, until, _) in self.store.reached(self.line).items():
            self._latest = max(self._latest, time)
            for lane in step.split("+"):
                self.next[lane] = max(self.next[lane], until)
        self._state = State(self.store, self.line)

    def version(self, lane: str, name: str, version: int) -> tuple[Any, int, int]:
        """(value, version, position) of a piece as of a version; (None, -1, 0) where there is none."""
        row = self._state.row(lane, name, version)
        return (None, -1, 0) if row is None else (self._state.value(row), row.version, row.pos)

    def written(self, lane: str, name: str, version: int = FAR) -> int:
        """The position of a piece as of a version, without reading its value; 0 where there is none."""
        row = self._state.row(lane, name, version)
        return 0 if row is None else row.pos

    def piece(self, name: str, default: Any = None, *, lane: str | None = None, version: int = FAR) -> Any:
        """A piece's value, by default the latest."""
        value, found, _ = self.version(next(iter(self.lanes)) if lane is None else lane, name, version)
        return value if found >= 0 else default

    def piece_names(self, lane: str | None = None, version: int = FAR) -> list[str]:
        """Names of the lane's pieces that have a value as of a version, sorted."""
        lane = next(iter(self.lanes)) if lane is None else lane
        return self._state.names(lane, version)

    def versions(self, name: str, lane: str | None = None) -> list[PieceRow]:
        """Every live version of a piece, oldest first."""
        rows = self._state.versions(next(iter(self.lanes)) if lane is None else lane, name)
        return [replace(row, value=self._state.value(row)) for row in rows]

    def edited(self) -> list[tuple[str, str]]:
        """(lane, name) of the pieces of which a person wrote a version, sorted."""
        return sorted({(row.lane, row.name) for row in self._state.rows() if row.by == "person"})

    def text(self, text_hash: str) -> str:
        """A source text of the library by its hash (`store.text_hash`). Those read last stay in memory. Raises NotFound."""
        found = self._texts.get(text_hash)
        if found is None:
            found = self._texts[text_hash] = self.store.text(text_hash)
            kept = sum(map(len, self._texts.values()))
            while kept > _TEXTS_KEPT and len(self._texts) > 1:
                kept -= len(self._texts.popitem(last=False)[1])
        else:
            self._texts.move_to_end(text_hash)
        return found

    # -- models, counts ------------------------------------------------------------------------------------------------

    def model_for(self, small: bool) -> Model | None:
        """The model that a question goes to."""
        return self.small_model if small and self.small_model is not None else self.model

    def _note_models(self) -> None:
        """A run opened with another model than before: its facts are state, and change at the frontier."""
        changed: dict[tuple[str, str], Any] = {}
        for (lane, name), used in ((MODEL_PIECE, self.model), (SMALL_MODEL_PIECE, self.small_model)):
            held = self.version(lane, name, FAR)[0]
            if used is None and (self.model is None or not held):
                continue
            # the ratio is fixed at the run's start; what is learnt serves later runs
            if used is None or not held or held.get("name") != used.name:
                changed[lane, name] = facts_of(self.store, used).as_dict() if used is not None else None
        if changed:
            self.edit(changed, kind="model")

    def count(self, text: str, ratio: float) -> int:
        """Tokens of a text: as `text.count_tokens` counts, times the ratio, rounded up."""
        known = self._counts.get(text)
        if known is None:
            self._counted += len(text)
            if self._counted > _COUNTED:
                self._counts.clear()
                self._counted = len(text)
            known = self._counts[text] = count_tokens(text)
        return int(-(-known * ratio // 1))

    def learn_ratio(self, facts: ModelFacts, estimated: int, usage: Usage) -> None:
        """Compare our count of a prompt with the server's."""
        if usage.estimated or usage.prompt_tokens <= 0:
            return
        ratio = self._ratios.get(facts.name) or TokenRatio(facts.token_ratio)
        self._ratios[facts.name] = ratio.learn(round(estimated / facts.token_ratio), usage.prompt_tokens)

    def tell(self, event: Progress) -> None:
        """Pass an event to the listener."""
        self.listen(event)

    # -- what a person does ------------------------------------------------------------------------------------------------

    def frontier(self) -> int:
        """The first logical time that no committed or running step has read."""
        return max([self._latest, *(time for _, time in self.running.values())]) + 1

    def edit(
        self, pieces: Mapping[tuple[str, str], Any], *, records: Callable[[int], Sequence[RecordRow]] | None = None, kind: str = "edit"
    ) -> int:
        """A person's change: committed on arrival, in force from the frontier on.

        Args:
            pieces: (lane, name) → new value.
            records: called with the logical time that record events of this edit carry; returns them.
            kind: how the journal names it.

        Returns:
            the position of the edit, for `undo_edit`.
        """
        self.writable()
        version = self.frontier()
        rows = [PieceRow(self.id, lane, name, version, version - 1, value, "person") for (lane, name), value in sorted(pieces.items())]
        with self.store.write(self.id, kind) as tx:
            for row in rows:
                tx.add(row)
            for event in records(version - 1) if records is not None else ():
                tx.add(event)
            if self._taking:
                tx.add(TakenRow(self._taking, self.id))
            pos = tx.pos
        self._taking = 0
        self.changes += 1
        for row in rows:
            self._state.put(replace(row, pos=pos))
        return pos

    def undo_edit(self, pos: int) -> int:
        """Undo a person's edit: withdrawn where no step has read it yet, else its pieces get their former values by a new edit."""
        self.writable()
        rows = [r for r in self._state.rows() if r.pos == pos and r.by == "person"]
        events = self.store.rows(RecordRow, run=self.id, pos=pos)
        if not rows and not events:
            raise NotPossible(f"There is no edit at position {pos} of run {self.id}.", "Look at the edits with `fabula runs show`.")
        version = min([*(r.version for r in rows), *(e.time + 1 for e in events)])
        if version >= self.frontier():
            with self.store.write(self.id, "undo") as tx:
                tx.add(WithdrawnRow(pos, self.id, "undone by a person"))
                at = tx.pos
            self.load()
            self._forget()
            return at
        former = {}
        for row in rows:
            before = [r for r in self._state.versions(row.lane, row.name) if (r.version, r.pos) < (row.version, row.pos)]
            former[row.lane, row.name] = self._state.value(before[-1]) if before else None
        if not former:
            raise NotPossible("A step has read this change of a memory already.", "Edit the memory again with `fabula memory edit`.")
        return self.edit(former, kind="undo")

    def withdraw(
        self, step: str, time: int, why: str, *, carry: bool = True, raise_samples: Mapping[str, int] | None = None
    ) -> list[StepRow]:
        """Undo a step by appending, and with it every step that it reaches.

        Args:
            step: the lanes of the step, as its key.
            time: its logical time.
            why: for the journal.
            carry: a person's later edits stay in force: of what the withdrawn steps did not write (a note, a plan) as they are, of what
                they wrote as `Recurrence.rebase` makes of it.
            raise_samples: purpose → sample from which it counts when this step is made again.

        Raises:
            NotPossible: the step is an ancestor's (fork instead), or is not there.
        """
        self.writable()
        live = self.store.steps(self.line)
        gone, since = reached(self, live, step, time)
        if not gone:
            raise NotPossible(f"Run {self.id} has no live step {step} at {time}.")
        if any(s.run != self.id for s in gone):
            raise NotPossible(
                "A step of the run that this one was forked from is undone by a fork, not here.", "Use `fabula runs fork RUN --at STEP`."
            )
        for task, (lanes, at) in list(self.running.items()):
            if any(hit(self, since, lane, at) for lane in lanes):
                task.cancel()
        first = min(s.time for s in gone)
        places = {s.pos for s in gone}
        wrote = {(r.lane, r.name) for r in self._state.rows() if r.by == "step" and r.pos in places}
        late = [r for r in self._state.rows() if r.run == self.id and r.by == "person" and r.version > first]
        events = [e for e in self.store.records(self.line) if e.run == self.id and e.by == "person" and e.time >= first]
        latest = {(r.lane, r.name): r for r in sorted(late, key=lambda r: (r.version, r.pos))} if carry else {}
        values = {key: self._state.value(row) for key, row in latest.items()}
        carried = {key: value for key, value in values.items() if key not in wrote}
        carried |= self.recurrence.rebase({key: value for key, value in values.items() if key in wrote}, gone)
        targets = sorted(places | ({r.pos for r in late} | {e.pos for e in events} if len(self.lanes) == 1 else set()))
        with self.store.write(self.id, "withdraw") as tx:
            for target in targets:
                tx.add(WithdrawnRow(target, self.id, why))
            if carry and len(self.lanes) == 1:
                for (lane, name), value in sorted(carried.items()):
                    tx.add(PieceRow(self.id, lane, name, first, first - 1, value, "person"))
                for event in events:
                    tx.add(replace(event, time=first - 1))
            for purpose, base in (raise_samples or {}).items():
                tx.add(RaisedRow(self.id, step, time, purpose, base))
        self.load()
        self._forget()
        return gone

    def regenerate(self, purposes: Sequence[str], base: int | None = None) -> StepRow:
        """Withdraw the last step and raise the sample of these purposes above all that were journaled (or set it to `base`: swiping
        back asks nothing). Of an inherited step it is a fork at its time.

        Raises:
            NotPossible: there is no step, or it is inherited.
        """
        last = self.store.steps(self.line, newest_first=True, limit=1)
        if not last:
            raise NotPossible("There is no step to make again yet.")
        step = last[0]
        raised = {p: self.samples(step, p) if base is None else base for p in purposes}
        self.withdraw(step.step, step.time, "regenerate", raise_samples=raised)
        return step

    def samples(self, step: StepRow, purpose: str) -> int:
        """How many samples of a purpose were journaled at a step of this run."""
        from fabula.store import CallRow

        top = self.store.greatest(CallRow, "sample", run=step.run, step=step.step, time=step.time, purpose=purpose)
        return 0 if top is None else top + 1

    def _forget(self) -> None:
        if self.memory is not None:
            self.memory.forget()

    # -- what comes from outside ---------------------------------------------------------------------------------------------

    def take_inbox(self) -> int:
        """Take in what other processes left, at the first logical time beyond everything begun. Returns how many inputs there were."""
        taken = {row.target for row in self.store.rows(TakenRow, run=self.id)}
        waiting = [row for row in self.store.rows(InboxRow, run=self.id) if row.pos not in taken]
        for row in waiting:
            self._taking = row.pos  # the edit itself marks it as taken, in its own transaction
            try:
                self.recurrence.take_input(self, row.kind, row.payload)
            except (InputError, NotPossible, KeyError, TypeError, ValueError) as error:
                why = error.message if isinstance(error, FabulaError) else f"it cannot be understood ({error!r})"
                self.tell(Noted(f"What another process left for this run could not be done: {why}"))
            finally:
                left, self._taking = self._taking, 0
            if left:
                with self.store.write(self.id, "taken") as tx:
                    tx.add(TakenRow(left, self.id))
        return len(waiting)

    def take_in(self) -> None:
        """Several lanes: news from the library enters at one journaled logical time for all (intake)."""
        latest = self.store.rows(IntakeRow, run=self.id, newest_first=True, limit=1)[0]
        news = self.store.rows(RecordRow, reach="library", pos=Between(latest.read_at + 1, FAR))
        if any(row.run != self.id for row in news):
            with self.store.write(self.id, "intake") as tx:
                tx.add(IntakeRow(self.id, max(latest.time, self.frontier()), tx.pos))

    def read_at(self, time: int) -> int:
        """Up to which position a step at `time` sees the library."""
        if self.recurrence.single:
            return self.store.position()
        for reach in self.line:
            rows = self.store.rows(IntakeRow, run=reach.run, time=Between(-1, time), pos=Between(0, reach.pin))
            if rows:
                return max(rows, key=lambda r: (r.time, r.pos)).read_at
        return self.row.pos

    # -- the engine's own --------------------------------------------------------------------------------------------------------

    def committed(self, ctx: Context, changed: Mapping[tuple[str, str, int], Any], pos: int) -> None:
        """A step of this run was committed."""
        for (lane, name, version), value in changed.items():
            self._state.put(PieceRow(self.id, lane, name, version, ctx.time, value, pos=pos))
        for lane in ctx.lanes:
            self.next[lane] = ctx.until
        self._latest = max(self._latest, ctx.time)

    def writable(self) -> None:
        """Raises NotPossible where the run was opened only to read."""
        if not self.holding:
            raise NotPossible(f"Run {self.id} was opened to read only.")

    def close(self) -> None:
        """Keep what was learnt and stop being the holder."""
        if self._ratios:
            with self.store.write(self.id, "learnt") as tx:
                for name, ratio in sorted(self._ratios.items()):
                    tx.add(FactRow(f"token_ratio:{name}", ratio.to_dict()))
            self._ratios.clear()
        if self.holding:
            self.store.release(self.id)
            self.holding = False
