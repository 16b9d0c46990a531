"""All that a step may touch: models, memory, state, clocks and randomness, each through the journal (DESIGN 3)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fabula.errors import NotPossible, Offline
from fabula.memory import Kind, Policy, Query, Record, View, added, edited, retracted
from fabula.models import Message
from fabula.runs._asking import Ask, Check, Fallback, Reply, Watch, ask, twice
from fabula.runs._facts import MODEL_PIECE, SMALL_MODEL_PIECE, ModelFacts
from fabula.runs._progress import Noted
from fabula.runs._prompts import Rendered
from fabula.store import BegunRow, CallRow, PieceRow, RecallRow, RecordRow, StepRow

if TYPE_CHECKING:
    from fabula.runs._run import Run


@dataclass(frozen=True, slots=True)
class Memo:
    """A record as a recall found it. (id, pos) is a reference to this very state of it."""

    id: str
    pos: int
    kind: str
    text: str
    time: int
    score: float
    parts: Mapping[str, float]


class Context:
    """One execution of one step. Made by the run, not by a way in."""

    def __init__(self, run: Run, lanes: tuple[str, ...], time: int, *, replayed: StepRow | None = None):
        self.run, self.lanes, self.time = run, lanes, time
        self.key, self.until = "+".join(lanes), time + 1
        self.used_calls: list[int] = []
        self.puts: dict[tuple[str, str, int], Any] = {}
        self.kept: dict[str, RecordRow] = {}
        self.records: dict[str, Record] = {}
        self._pieces_read: dict[str, int] = {}
        self._rests: list[str] | None = None
        self._seen: set[tuple[str, str, int]] = set()
        self._parts: list[str] = []
        self._addresses: set[object] = set()
        self._recalled: list[RecallRow] = []
        store = run.store
        self._replayed = replayed
        self._owner = replayed.run if replayed else run.id
        self.take = replayed.take if replayed else store.undone(run.id, self.key, time) + 1
        begun = store.rows(BegunRow, run=self._owner, step=self.key, time=time, take=self.take, limit=1)
        self._begun = bool(begun)
        if begun:
            self.read_at, self.story_now, self.wall_now = begun[0].read_at, begun[0].story, begun[0].wall
        else:
            self.read_at, self.story_now, self.wall_now = run.read_at(time), run.recurrence.story(run, time), self._first_wall()

    def _first_wall(self) -> float:
        """The wall time is served along the line as an answer is, so that a fork's prompts equal its parent's."""
        for reach in self.run.line[1:]:
            for row in self.run.store.rows(BegunRow, run=reach.run, step=self.key, time=self.time, limit=1):
                if row.pos <= reach.pin:
                    return row.wall
        return self.run.clock()

    # -- state ---------------------------------------------------------------------------------------------------------

    def piece(self, name: str, default: Any = None, *, lane: str | None = None, rests: bool = True) -> Any:
        """A named piece as of this step's time. Another lane's may be read only if that version is final.

        `rests`: the step's outputs rest on it (for `stale`); False for what is only replaced, and for a look at lanes
        that may be out of sight: who happens to be ahead then is no content.
        """
        lane = self.lanes[0] if lane is None else lane
        value, version, pos = self.run.version(lane, name, self.time)
        if lane and lane not in self.lanes:
            if not self.closed(lane):
                raise NotPossible(f"Step {self.key}@{self.time} reads lane {lane}, which is at {self.run.next[lane]}.")
            if rests:
                self._seen.add((lane, name, version))
        if rests and pos:
            self._pieces_read[f"{lane}/{name}"] = pos
        return default if version < 0 else value

    def rests_only_on(self, names: Sequence[str]) -> None:
        """What the step derives anew rests on these pieces of its first lane alone, though it read others (for `stale`)."""
        self._rests = sorted(f"{self.lanes[0]}/{name}" for name in names)

    def closed(self, lane: str) -> bool:
        """This step's time of another lane is final: it may be read. A lane that has ended is final for good."""
        return self._replayed is not None or self.run.next[lane] >= min(self.time, self.run.lanes[lane][1])

    def put(self, name: str, value: Any, *, lane: str | None = None, at: int | None = None) -> None:
        """Set a piece for the next version (or for version `at` inside the step's interval). Plain JSON values only."""
        self.puts[self.lanes[0] if lane is None else lane, name, self.time + 1 if at is None else at] = value

    def text(self, text_hash: str) -> str:
        """A source text by its hash (`store.text_hash`), as `runs.create` was given it. It never changes, so a step may read any at any
        time, and a replay reads it too. Raises NotFound.
        """
        return self.run.text(text_hash)

    @property
    def premise(self) -> Mapping[str, Any]:
        """What the run was started from; never changes."""
        return self.run.row.premise

    def random(self, name: str) -> random.Random:
        """A random stream of the root run's seed, named so that it does not depend on the order in which branches come by."""
        self.once(("random", name))
        text = "\x1f".join([self.run.row.seed, self.key, str(self.time), name])
        return random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())

    # -- the model -------------------------------------------------------------------------------------------------------

    def facts(self, small: bool = False) -> ModelFacts:
        """What may be known of the model in use (of the small one, where the run has one)."""
        if small:
            value, version, _ = self.run.version(*SMALL_MODEL_PIECE, self.time)
            if version >= 0 and value:
                return ModelFacts.from_dict(value)
        return ModelFacts.from_dict(self.run.version(*MODEL_PIECE, self.time)[0])

    def count(self, text: str) -> int:
        """Tokens of the model in use, as estimated with the ratio that the run was started with."""
        return self.run.count(text, self.facts().token_ratio)

    def count_messages(self, messages: Sequence[Message]) -> int:
        """Tokens of a whole prompt: its texts and what a chat template puts around each message (estimated as 8)."""
        return sum(self.count(m.content) + 8 for m in messages) + 8

    async def ask(
        self,
        purpose: str,
        prompt: Rendered,
        *,
        part: str = "",
        sample: int = 0,
        check: Check | None = None,
        tries: int = 3,
        fallback: Fallback | None = None,
        pure: bool = False,
        small: bool = False,
    ) -> Reply:
        """Ask, and return an answer that passed the schema and `check`. See `runs._asking`.

        `purpose` and `part` name the call; one step may use a pair (with a sample) once. `pure`: the answer is a function of the prompt
        alone and may be shared by all runs (chunk reading, ratings at temperature 0). `small`: a small decision, for the small model.
        """
        return await ask(self, Ask(purpose, prompt, part, sample, check, tries, fallback, pure, False, small))

    async def stream(
        self,
        purpose: str,
        prompt: Rendered,
        *,
        part: str = "",
        sample: int = 0,
        check: Check | None = None,
        tries: int = 3,
        fallback: Fallback | None = None,
        watch: Watch | None = None,
    ) -> Reply:
        """Ask for prose: as `ask`, shown while it comes, its draft journaled at least once a second; `watch` may end it early."""
        return await ask(self, Ask(purpose, prompt, part, sample, check, tries, fallback, stream=True, watch=watch))

    # -- memory ------------------------------------------------------------------------------------------------------------

    async def recall(
        self,
        text: str,
        *,
        part: str = "",
        limit: int = 10,
        budget: int = 1_000,
        kinds: tuple[Kind, ...] = (),
        named: tuple[str, ...] = (),
        exclude: frozenset[str] = frozenset(),
        policy: Policy = "fact",
        lanes: tuple[str, ...] | None = None,
        everywhere: bool = False,
    ) -> list[Memo]:
        """What the memory has on `text`, best first, within `budget` tokens. Journaled at an address and served from there on a rerun.

        Args:
            text: the question.
            part: names the recall in its step.
            limit: most records.
            budget: most tokens of their texts.
            kinds: only these; empty = all.
            named: whom the question names.
            exclude: ids that the prompt has already.
            policy: how records are ranked.
            lanes: whose run records; None = the step's own. Other lanes must be at this step's time or have ended, as for `piece`.
            everywhere: whatever the line holds before this step's time, of every lane, however far that one has come. For a question
                asked on a fork: only while no other step of the run is made.

        Raises:
            NotPossible: a lane that is not so far yet, or other steps are in flight (`everywhere`).
            Offline: a replay, and the journal lacks the recall.
        """
        run = self.run
        self.once(("recall", part))
        among = self._among(lanes, everywhere)
        words = [text, str(limit), str(budget), ",".join(kinds), ",".join(named), ",".join(sorted(exclude)), policy]
        if among != self.lanes:  # journals of before know no other
            words.append("everywhere" if among is None else "lanes " + "+".join(among))
        shape = "\x1f".join(words)
        query_hash = hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._parts.append(part)
        rows = run.store.rows(
            RecallRow, run=self._owner, step=self.key, time=self.time, take=self.take, part=part, query=query_hash, limit=1
        )
        if rows:
            return [Memo(**memo) for memo in rows[0].found["found"]]
        if run.memory is None:
            raise Offline(f"The journal has no recall {part!r} of step {self.time}.")
        view = View(tuple(run.line), among, self.time, self.read_at, run.recurrence.entities(run))
        ratio = self.facts().token_ratio
        query = Query(
            text,
            policy=policy,
            limit=limit,
            budget=budget,
            count=lambda t: run.count(t, ratio),
            now=self.story_now,
            named=named,
            kinds=kinds,
            exclude=exclude,
        )
        recalled = await run.memory.recall(view, query)
        for note in recalled.notes:
            run.tell(Noted(note))
        memos = [
            Memo(
                f.record.id,
                f.record.pos,
                f.record.kind,
                f.record.text,
                f.record.time,
                round(f.score, 4),
                {k: round(v, 4) for k, v in f.parts.items()},
            )
            for f in recalled.found
        ]
        found = {
            "found": [asdict(m) for m in memos],
            "cut": [list(c) for c in recalled.cut],
            "policy": recalled.policy,
            "embedder": recalled.embedder,
        }
        self._recalled.append(RecallRow(run.id, self.key, self.time, self.take, part, query_hash, found))
        return memos

    def _among(self, lanes: tuple[str, ...] | None, everywhere: bool) -> tuple[str, ...] | None:
        """The lanes whose records a recall may find; None = all of the line."""
        if everywhere:
            if lanes is not None:
                raise NotPossible("A recall is of some lanes or of everywhere, not both.")
            if self._replayed is None and any(other != self.lanes for other, _ in self.run.running.values()):
                raise NotPossible(f"Step {self.key}@{self.time} recalls everywhere while other steps of run {self.run.id} are made.")
            return None
        if lanes is None or set(lanes) == set(self.lanes):
            return self.lanes
        for lane in lanes:
            if lane not in self.run.lanes:
                raise NotPossible(f"Step {self.key}@{self.time} recalls from lane {lane!r}, which run {self.run.id} does not have.")
            if lane not in self.lanes and not self.closed(lane):
                raise NotPossible(f"Step {self.key}@{self.time} recalls from lane {lane}, which is at {self.run.next[lane]}.")
        return tuple(sorted(set(lanes)))

    def remember(self, name: str, record: Record) -> str:
        """Keep a new memory at the commit. Its id derives from (run, lane, time, name); the engine fills in where it stands."""
        lane = record.owner if record.owner in self.lanes else self.lanes[0]
        if record.reach == "library" and not self.run.recurrence.single:
            raise NotPossible("Lanes that run out of order write run records only; a person's act brings them to the library.")
        ident = f"{self.run.id}/{lane}/{self.time}/{name}"
        if ident in self.kept:
            raise twice(ident)
        whole = replace(
            record, id=ident, run=self.run.id, lane=lane, time=self.time, happened=record.happened or self.story_now, recorded=self.wall_now
        )
        self.records[ident] = whole
        self.kept[ident] = added(whole)
        return ident

    def revise(self, record: Record, **changes: Any) -> None:
        """Change a record at the commit (a step may not overrule a person; `memory.fold` sees to it)."""
        self.records[f"{record.id}#edit"] = replace(record, **changes)  # its vector, too, is made before the commit
        self._event(
            record,
            "edit",
            edited(record, by="model", time=self.time, run=self.run.id, lane=self.lanes[0], recorded=self.wall_now, **changes),
        )

    def retract(self, record: Record, why: str) -> None:
        """Take a record out of recall at the commit, e.g. because its passage was edited."""
        self._event(
            record,
            "retract",
            retracted(record, why, by="model", time=self.time, run=self.run.id, lane=self.lanes[0], recorded=self.wall_now),
        )

    def _event(self, record: Record, name: str, row: RecordRow) -> None:
        key = f"{record.id}#{name}"
        if key in self.kept:
            raise twice(key)
        self.kept[key] = row

    # -- the journal -------------------------------------------------------------------------------------------------------------

    def once(self, address: object) -> None:
        """Names are given by the code, never by order of arrival; using one twice is an error."""
        if address in self._addresses:
            raise twice(address)
        self._addresses.add(address)

    def journal(self, kind: str, row: CallRow, *, settle: bool = True) -> int:
        """Write a row of a call; with it (unless it is only asked, and nothing is paid for yet) what this step read."""
        with self.run.store.write(self.run.id, kind) as tx:
            if settle:
                for other in self._unsettled():
                    tx.add(other)
            tx.add(row)
            pos = tx.pos
        if settle:
            self._settled()
        return pos

    def _unsettled(self) -> list[BegunRow | RecallRow]:
        rows: list[BegunRow | RecallRow] = list(self._recalled)
        if not self._begun:
            rows.append(BegunRow(self.run.id, self.key, self.time, self.take, self.read_at, self.story_now, self.wall_now))
        return rows

    def _settled(self) -> None:
        self._begun = True
        self._recalled.clear()

    def uses(self) -> dict[str, Any]:
        """Made-from, as journaled with the step."""
        rests = {} if self._rests is None else {"rests": self._rests}
        return {
            **rests,
            "calls": sorted(set(self.used_calls)),
            "recalls": sorted(self._parts),
            "pieces": dict(sorted(self._pieces_read.items())),
            "seen": sorted(list(s) for s in self._seen),
        }

    def changed(self) -> dict[tuple[str, str, int], Any]:
        """Only the puts that differ from the version before them (the put before it in the same step counts first)."""
        out: dict[tuple[str, str, int], Any] = {}
        last: dict[tuple[str, str], Any] = {}
        missing = object()
        for (lane, name, version), value in sorted(self.puts.items(), key=lambda item: item[0]):
            before, known, _ = self.run.version(lane, name, self.time)
            if last.get((lane, name), before if known >= 0 else missing) != value:
                out[lane, name, version] = value
            last[lane, name] = value
        return out

    async def commit(self, output: Any) -> StepRow:
        """One commit: output, changed state and memory events in one transaction; a record's vector is made before it."""
        run = self.run
        vectors = await run.memory.vectors_for(list(self.records.values())) if run.memory is not None and self.records else []
        changed = self.changed()
        row = StepRow(run.id, self.key, self.time, self.take, self.until, output, self.uses())
        with run.store.write(run.id, "commit") as tx:
            for other in self._unsettled():
                tx.add(other)
            tx.add(row)
            for (lane, name, version), value in changed.items():
                tx.add(PieceRow(run.id, lane, name, version, self.time, value))
            for _, event in sorted(self.kept.items()):
                tx.add(event)
            for vector in vectors:
                tx.add(vector)
            pos = tx.pos
        self._settled()
        run.committed(self, changed, pos)
        return replace(row, pos=pos)
