"""The port's rules once more, as simply as they can be said: lists and loops over every row ever written."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.store import FAR, Address, CallRow, PieceRow, RaisedRow, Reach, RecordRow, Row, RunRow, StepRow, WithdrawnRow


class Naive:
    def __init__(self) -> None:
        self.all: list[Row] = []  # in the order of writing, with positions

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [row for row in self.all if isinstance(row, kind)]

    def gone(self, pos: int, until: int) -> bool:
        return any(w.target == pos and w.pos <= until for w in self.of(WithdrawnRow))

    def line(self, run: str) -> list[Reach]:
        rows = {row.id: row for row in self.of(RunRow)}
        reach, out = Reach(run), []
        while True:
            out.append(reach)
            row = rows[reach.run]
            if row.parent is None:
                return out
            reach = Reach(row.parent, min(row.cut, reach.cut), min(row.pin, reach.pin))

    def steps(self, line: Sequence[Reach], start: int = 0, end: int = FAR) -> list[StepRow]:
        seen = [
            (s.time, s.step, at, s)
            for reach in line
            for at, s in enumerate(self.of(StepRow))
            if s.run == reach.run and start <= s.time < min(end, reach.cut) and s.pos <= reach.pin and not self.gone(s.pos, reach.pin)
        ]
        return [item[3] for item in sorted(seen, key=lambda item: item[:3])]

    def step_at(self, line: Sequence[Reach], step: str, time: int) -> StepRow | None:
        for reach in line:
            found = [s for s in self.steps([reach]) if (s.step, s.time) == (step, time)]
            if found:
                return found[-1]
        return None

    def undone(self, run: str, step: str, time: int) -> int:
        return sum((s.run, s.step, s.time) == (run, step, time) and self.gone(s.pos, FAR) for s in self.of(StepRow))

    def pieces(self, line: Sequence[Reach], after: int = 0) -> dict[tuple[str, str, int], PieceRow]:
        """Of each (lane, name, version) the one that counts."""
        out = {}
        for reach in reversed(line):
            for p in self.of(PieceRow):
                if p.run == reach.run and p.time < reach.cut and after < p.pos <= reach.pin and not self.gone(p.pos, reach.pin):
                    out[p.lane, p.name, p.version] = p
        return out

    def verdict(self, line: Sequence[Reach], address: Address, fingerprint: str) -> CallRow | None:
        for reach in line:
            found = [
                c
                for c in self.of(CallRow)
                if c.run == reach.run
                and Address(c.step, c.time, c.purpose, c.part, c.sample, c.attempt) == address
                and c.fingerprint == fingerprint
                and c.status in ("answered", "refused", "fallback", "failed")
                and c.pos <= reach.pin
            ]
            if found:
                return found[-1]  # type: ignore[no-any-return]
        return None

    def pure(self, fingerprint: str) -> CallRow | None:
        found = [c for c in self.of(CallRow) if c.fingerprint == fingerprint and c.status == "answered" and c.request.get("pure") is True]
        return found[0] if found else None

    def raised(self, line: Sequence[Reach], step: str, time: int, purpose: str) -> int:
        for reach in line:
            found = [
                r
                for r in self.of(RaisedRow)
                if (r.run, r.step, r.time, r.purpose) == (reach.run, step, time, purpose) and r.pos <= reach.pin
            ]
            if found:
                return int(found[-1].base)
        return 0

    def usage(self, run: str) -> dict[str, float]:
        names = ("prompt_tokens", "answer_tokens", "cached_tokens", "cost")
        calls = [c for c in self.of(CallRow) if c.run == run and c.status != "partial"]
        settled = {c.asked for c in calls if c.status != "asked"}
        counted = [c for c in calls if not (c.status == "asked" and c.pos in settled)]
        out = {name: float(sum(c.usage.get(name, 0) for c in counted)) for name in names}
        return {**out, "calls": float(sum(c.status == "asked" for c in calls)), "refused": float(sum(c.status == "refused" for c in calls))}

    def records(
        self,
        line: Sequence[Reach],
        lanes: Sequence[str] | None = None,
        before: int = FAR,
        read_at: int = FAR,
        entities: Sequence[str] = (),
        after: int = 0,
    ) -> list[RecordRow]:
        own = {reach.run: reach for reach in line}
        out = []
        for r in self.of(RecordRow):
            reach = own.get(r.run)
            inside = reach is not None and r.time < min(before, reach.cut) and r.pos <= reach.pin
            seen = reach is not None and inside and not self.gone(r.pos, reach.pin) and (lanes is None or r.lane in lanes)
            shared = r.reach == "library" and r.about in entities and r.pos <= read_at and not self.gone(r.pos, read_at)
            if r.pos > after and (seen or (shared and (r.by != "model" or reach is None or inside))):
                out.append(r)
        return out

    def search(self, terms: Sequence[str], runs: Sequence[str] | None) -> dict[tuple[str, int], int]:
        """How many of the terms each event holds."""
        hits = [
            (r.id, r.pos, len(set(terms) & set(r.terms.split()))) for r in self.of(RecordRow) if r.terms and (runs is None or r.run in runs)
        ]
        return {(name, pos): count for name, pos, count in hits if count}
