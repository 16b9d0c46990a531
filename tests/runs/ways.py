"""Four toy ways in on the engine's public names: a novel, a tree reading, a town, and a chat that writes to the library."""

from __future__ import annotations

import asyncio
import hashlib
import json
import selectors
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fabula.memory import Memory, Record
from fabula.models import Message, Sampling, Schema, Scripted
from fabula.runs import Context, Limits, Recurrence, Rendered, Run, always, create
from fabula.store import FAR, CallRow, PieceRow, RecallRow, RecordRow, StepRow, Store, WithdrawnRow, open_store

T = TypeVar("T")
MARK = Schema("mark", {"type": "object", "required": ["mark"], "properties": {"mark": {"type": "string"}}})


class Killed(BaseException):
    """The process is dead from here on. Not an Exception, so that no code can go on after it."""


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([str(p) for p in parts]).encode()).hexdigest()[:16]


def share(*parts: object) -> float:
    return int(digest(*parts), 16) / 16**16


def said(text: str, schema: Schema | None = None, max_tokens: int = 200) -> Rendered:
    return Rendered("toy", (Message("user", text),), schema, Sampling(max_tokens=max_tokens))


def mark_of(request: Any) -> str:
    """What the toy model answers: a hash of all that it saw and of its seed."""
    mark = digest([(m.role, m.content) for m in request.messages], request.seed)
    return json.dumps({"mark": mark}) if request.schema is not None else f"Mira saw {mark[:8]}. She went on to {mark[8:]}. END"


class Toy(Scripted):
    """The toy model: now and then wrong on purpose, by its seed alone; optionally slow by a virtual clock."""

    def __init__(self, *, invalid: float = 0.0, delay: tuple[float, float] | None = None, delay_seed: str = "", on_ask: Any = None):
        self.invalid, self.on_ask = invalid, on_ask
        super().__init__(self._say)
        self.delay_range, self.delay_seed = delay, delay_seed

    def _say(self, request: Any) -> str:
        answer = mark_of(request)
        return "Sure! Here it comes: " + answer[: len(answer) // 2] if share("invalid", request.seed) < self.invalid else answer

    async def stream(self, request: Any) -> Any:
        if self.on_ask is not None:
            self.on_ask(request)
        if self.delay_range is not None:
            low, high = self.delay_range
            await asyncio.sleep(low + (high - low) * share(self.delay_seed, request.messages[0].content, len(self.requests)))
        async for event in super().stream(request):
            yield event


def whole(text: str, _finish: str) -> str | None:
    return None if text.startswith("Mira") and text.endswith("END") else "cut off"


class Novel(Recurrence):
    kind = "toy-novel"

    def __init__(self, fallback: str | None = '{"mark": "none"}'):
        self.fallback = fallback

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        return {"book": (0, FAR)}

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        return {("book", "memory"): "", ("book", "plan"): premise["premise"], ("book", "length"): 0}

    def entities(self, run: Run) -> tuple[str, ...]:
        return ("Mira",)

    async def step(self, ctx: Context) -> Any:
        old = await ctx.recall(str(ctx.piece("plan")), part="passages", limit=3)
        mood = ctx.random("mood").choice(["wry", "dark"])
        lines = ["write " + mood, ctx.piece("memory"), *(m.text for m in old), ctx.piece("plan"), ctx.piece("direction", default="")]
        prompt = "\n".join(map(str, lines))
        passage = await ctx.stream(
            "prose", said(prompt), check=whole, fallback=None if self.fallback is None else always("Mira waited. END")
        )
        book = await ctx.ask(
            "book", said(prompt + "\n" + passage.text, MARK), fallback=None if self.fallback is None else always(self.fallback)
        )
        ctx.put("memory", f"so far {digest(ctx.piece('memory'), book.value['mark'])}")
        ctx.put("plan", f"Mira goes on from {book.value['mark'][:6]}")
        ctx.put("length", ctx.piece("length") + 1)
        ctx.put(f"text:{ctx.time}", passage.text)
        ctx.remember(
            "summary", Record(id="", kind="summary", text=f"Mira, passage {ctx.time}: {passage.text[:18]}", quote=passage.text[:18])
        )
        return passage.text


class Tree(Recurrence):
    kind, single = "toy-tree", False

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        count, out, height = len(premise["chunks"]), {}, 0
        while count:
            out.update({f"{height}.{n}": (height, height + 1) for n in range(count)})
            count, height = count // 2 if count > 1 else 0, height + 1
        return out

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        return {(f"0.{n}", "chunk"): chunk for n, chunk in enumerate(premise["chunks"])}

    def children(self, lane: str) -> list[str]:
        height, n = map(int, lane.split("."))
        return [] if height == 0 else [f"{height - 1}.{2 * n}", f"{height - 1}.{2 * n + 1}"]

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        return source in self.children(target)

    async def step(self, ctx: Context) -> Any:
        lane = ctx.lanes[0]
        below = [str(ctx.piece("text", lane=child)) for child in self.children(lane)]
        prompt = "\n".join(below) or str(ctx.piece("chunk"))
        reply = await ctx.ask("merge" if below else "chunk", said(prompt, MARK), pure=not below, fallback=always('{"mark": "none"}'))
        ctx.put("text", reply.value["mark"])
        return reply.value["mark"]


class Town(Recurrence):
    """A lane per agent on a line of tiles. Only a conversation joins lanes, and it is known before the step."""

    kind, single = "toy-town", False
    sight = 2

    def lanes(self, premise: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        return dict.fromkeys(sorted(premise["agents"]), (0, FAR))

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        blank = {"wants": None, "accepts": None, "waited": False, "talks": None, "busy": 0, "mind": "", "going": 0}
        return {(who, name): value for who, at in premise["agents"].items() for name, value in {"at": at, **blank}.items()}

    def reaches(self, run: Run, source: str, since: int, target: str, time: int) -> bool:
        here, there = run.piece("at", lane=target, version=time), run.piece("at", lane=source, version=since)
        return int(abs(here - there)) <= self.sight + time - since

    def joins(self, run: Run, lane: str, time: int) -> tuple[str, ...]:
        other = run.piece("wants", lane=lane, version=time) or run.piece("accepts", lane=lane, version=time)
        if other is None:
            return (lane,)
        mine = {name: run.piece(name, lane=lane, version=time) for name in ("wants", "accepts")}
        theirs = {name: run.piece(name, lane=other, version=time) for name in ("wants", "accepts")}
        agreed = (mine["wants"] == other and lane in theirs.values()) or (mine["accepts"] == other and theirs["wants"] == lane)
        return tuple(sorted((lane, other))) if agreed else (lane,)

    def story(self, run: Run, time: int) -> float:
        return time / 6

    async def step(self, ctx: Context) -> Any:
        return await (self.talk(ctx) if len(ctx.lanes) == 2 else self.act(ctx))

    async def act(self, ctx: Context) -> Any:
        me, here = ctx.lanes[0], ctx.piece("at")
        others = [o for o in ctx.run.lanes if o != me]
        seen = [o for o in others if ctx.closed(o) and abs(ctx.piece("at", lane=o, rests=False) - here) <= self.sight]
        if ctx.piece("wants") and not ctx.piece("waited"):
            ctx.put("waited", True)
            return "waits"
        for name, value in {"wants": None, "accepts": None, "waited": False}.items():
            ctx.put(name, value)
        wanting = sorted((share(ctx.run.row.seed, ctx.time, other), other) for other in seen if ctx.piece("wants", lane=other) == me)
        if wanting:
            ctx.put("accepts", wanting[0][1])
            return f"accepts {wanting[0][1]}"
        if ctx.piece("busy") > 0 and not seen:
            ctx.put("busy", ctx.piece("busy") - 1)
            ctx.put("at", min(1000, max(0, here + ctx.piece("going"))))
            return "goes on"
        old = await ctx.recall("saw", limit=2)
        sight = [f"{o} at {ctx.piece('at', lane=o)} talks {ctx.piece('talks', lane=o)} {ctx.piece('mind', lane=o)}" for o in seen]
        prompt = "\n".join([me, str(here), str(ctx.piece("mind")), *sight, *(m.text for m in old)])
        mark = (await ctx.ask("act", said(prompt, MARK), fallback=always('{"mark": "0"}'))).value["mark"]
        going = [-1, 0, 1][int(mark, 16) % 3]
        ctx.put("going", going)
        ctx.put("busy", int(mark, 16) // 3 % 4)
        ctx.put("mind", mark[:6])
        free = [o for o in seen if not ctx.piece("talks", lane=o)]
        if free and share(mark) < 0.5:
            ctx.put("wants", free[int(mark, 16) % len(free)])
        else:
            ctx.put("at", min(1000, max(0, here + going)))
        ctx.remember("saw", Record(id="", kind="observation", owner=me, text=f"{me} saw {mark[:8]}"))
        return mark

    async def talk(self, ctx: Context) -> Any:
        spoken: list[str] = []
        for turn in range(2):
            me, other = ctx.lanes[turn % 2], ctx.lanes[1 - turn % 2]
            old = await ctx.recall(other, part=f"turn-{turn}", limit=2)
            prompt = "\n".join([me, other, *(m.text for m in old), *spoken])
            spoken.append((await ctx.ask("say", said(prompt, MARK), part=f"turn-{turn}", fallback=always('{"mark": "0"}'))).value["mark"])
        for me, other in (ctx.lanes, ctx.lanes[::-1]):
            ctx.remember(f"talk-{me}", Record(id="", kind="utterance", owner=me, text=f"{other} said {digest(*spoken)[:8]}"))
            ctx.put("talks", other, lane=me, at=ctx.time + 1)
            ctx.put("talks", None, lane=me, at=ctx.time + 2)
            for name, value in {"wants": None, "accepts": None, "waited": False, "busy": 0, "mind": digest(me, *spoken)[:6]}.items():
                ctx.put(name, value, lane=me)
        ctx.until = ctx.time + 2
        return spoken


class Chat(Recurrence):
    """What the person says about Mira goes to the library with the step's commit."""

    kind = "toy-chat"

    def start(self, premise: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        return {("main", "said"): ""}

    async def step(self, ctx: Context) -> Any:
        message = ctx.piece("said")
        reply = await ctx.ask("reply", said(f"reply to {message}"))
        ctx.remember(
            "fact",
            Record(id="", kind="observation", text=f"Mira: {message}", subject="Mira", reach="library", about="Mira", source="person"),
        )
        return reply.text


WAYS: dict[str, type[Recurrence]] = {w.kind: w for w in (Novel, Tree, Town, Chat)}
PREMISES: dict[str, dict[str, Any]] = {
    "toy-novel": {"premise": "Mira finds a map", "language": "en"},
    "toy-tree": {"chunks": [f"chunk {n}" for n in range(8)]},
    "toy-town": {"agents": {"ann": 0, "bob": 2, "cid": 9, "dee": 11}},
    "toy-chat": {},
}
UNTIL = {"toy-novel": 4, "toy-tree": FAR, "toy-town": 6, "toy-chat": 1}


def library(path: Path | str, fault: Any = None) -> Store:
    return open_store(path, **({"fault": fault} if fault is not None else {}))


def new(store: Store, way: Recurrence, model: Any = None, run: str = "run0", **premise: Any) -> str:
    return create(store, way, {**PREMISES[way.kind], **premise}, run=run, seed="seed", model=model or Toy())


def opened(store: Store, way: Recurrence, run: str, model: Any, *, limits: Limits | None = None, **options: Any) -> Run:
    return Run(store, way, run, model=model, memory=Memory(store), limits=limits, partial_seconds=0.0, **options)


def log(store: Store, run: str) -> dict[str, Any]:
    """All that must be equal between an unbroken run and a resumed one: by address, without wall times, positions, partials."""
    gone = {row.target for row in store.rows(WithdrawnRow)}
    verdicts = ("answered", "refused", "fallback", "failed")
    calls = {
        (c.step, c.time, c.purpose, c.part, c.sample, c.attempt, c.fingerprint): (c.status, c.reason, c.answer)
        for c in store.rows(CallRow, run=run)
        if c.status in verdicts
    }
    return {
        "steps": sorted((s.step, s.time, s.take, s.until, json.dumps(s.output), s.pos in gone) for s in store.rows(StepRow, run=run)),
        "pieces": sorted(
            (p.lane, p.name, p.version, p.time, json.dumps(p.value), p.by, p.pos in gone) for p in store.rows(PieceRow, run=run)
        ),
        "records": sorted((r.id, r.lane, r.time, r.event, str(r.data.get("text")), r.pos in gone) for r in store.rows(RecordRow, run=run)),
        "recalls": sorted(
            (r.step, r.time, r.take, r.part, r.query, json.dumps([m["text"] for m in r.found["found"]]))
            for r in store.rows(RecallRow, run=run)
        ),
        "calls": calls,
    }


class Stuck(Exception):
    """Nothing is ready and no timer runs: a deadlock."""


class JumpLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Jump(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                if timeout is None:
                    raise Stuck
                loop.now += max(0.0, timeout)
                return super().select(0)

        super().__init__(Jump())

    def time(self) -> float:
        return self.now


def run_virtual(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """The result, and how much virtual time it took."""
    loop = JumpLoop()
    try:
        return loop.run_until_complete(main), loop.now
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
