"""The port of the store (DESIGN 6): what an adapter must offer. Free of any database's words.

One library = one store = one append-only log of positions. One writer at a time; readers never wait for it. Everything that
a `write` adds becomes visible at once or not at all, and is on the disk when `write` returns. A position comes from a
counter that is updated in the same transaction, so positions are in commit order.

Errors: LibraryBusy, LibraryFull, LibraryDamaged, LibraryTooNew, NotFound, Held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fabula.store._rows import (
    FAR,
    Address,
    CallRow,
    Finding,
    Holder,
    PieceRow,
    Reach,
    RecordRow,
    Row,
    RunRow,
    StepRow,
)

R = TypeVar("R", bound=Row)

Fault = Callable[[str], None]
"""Called at every write boundary with `before KIND`, `inside KIND`, `after KIND`, so that a test can kill there."""


@dataclass(frozen=True, slots=True)
class Among:
    """Condition: the column's value is one of these."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """Condition: low <= value <= high."""

    low: int = 0
    high: int = FAR


Condition = str | int | float | None | Among | Between


class Transaction(Protocol):
    """An open write."""

    @property
    def pos(self) -> int:
        """The position of everything that is added."""

    def add(self, row: Row) -> None:
        """Append a row; its own `pos` is ignored, the transaction's is used."""


class Store(Protocol):
    """A library."""

    @property
    def place(self) -> str:
        """What the person calls it: a path, or an address without its password."""

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, run: str, kind: str) -> AbstractContextManager[Transaction]:
        """One transaction = one position = all or nothing. Adds its own log row. An exception inside rolls it back."""

    # -- reading: simple rows ------------------------------------------------------------------------------------------

    def rows(self, kind: type[R], /, *, newest_first: bool = False, limit: int | None = None, **where: Condition) -> list[R]:
        """Rows of one class whose columns meet all conditions, by position. `where` names fields of the class."""

    def greatest(self, kind: type[Row], column: str, /, **where: Condition) -> int | None:
        """The greatest value of a whole-number column over the rows that meet the conditions; None = no such row."""

    def export(self, line: Sequence[Reach]) -> Iterator[Row]:
        """Every row that belongs to these runs, by position, for the journal's export (SPEC M7). Streams; no list is built."""

    def text(self, text_hash: str) -> str:
        """A source text by its `text_hash(…)`, whichever run brought it. Raises NotFound."""

    def position(self) -> int:
        """The latest position that is committed; inside an open write the one before it, so that what may be rolled back is not cached."""

    # -- reading: a line of runs -----------------------------------------------------------------------------------------

    def run(self, run: str) -> RunRow:
        """A run by its id, or by a prefix of it that is unique (>= 3 characters). Raises NotFound."""

    def line(self, run: str) -> list[Reach]:
        """The run and its ancestors, nearest first, each with the cut and pin through which it is seen (DESIGN 3, a fork is a pointer)."""

    def steps(
        self, line: Sequence[Reach], *, start: int = 0, end: int = FAR, newest_first: bool = False, limit: int | None = None
    ) -> list[StepRow]:
        """Live steps (committed, not withdrawn, inside cut and pin) with start <= time < end, in the run's order (time, step)."""

    def step_at(self, line: Sequence[Reach], step: str, time: int) -> StepRow | None:
        """The live step of these lanes at this time."""

    def undone(self, run: str, step: str, time: int) -> int:
        """How many takes of a step of this very run were withdrawn."""

    def reached(self, line: Sequence[Reach]) -> dict[str, tuple[int, int, int]]:
        """Of every step (by its lanes) that has live rows: the greatest time, the greatest end (`until`), how many. Reads no outputs."""

    def pieces(self, line: Sequence[Reach], *, after: int = 0, most: int | None = None) -> list[PieceRow]:
        """Live versions of every piece, sorted so that the last of equal (lane, name, version) counts: an ancestor's before a
        descendant's, an earlier position before a later. Only rows with pos > after. Values that are compressed, or longer than `most`
        characters of JSON, are left where they are and are `UNREAD`.
        """

    def verdict(self, line: Sequence[Reach], address: Address, fingerprint: str) -> CallRow | None:
        """The verdict (answered, refused, fallback, failed; never asked, partial or broken) at an address with a fingerprint: nearest
        run first, up to each pin, whatever the cut.
        """

    def pure(self, fingerprint: str) -> CallRow | None:
        """The earliest `answered` row of any run whose request was declared pure (`request["pure"]` true in the answered row)."""

    def known(self, fingerprints: Sequence[str]) -> set[str]:
        """Those of these fingerprints for which `pure` would find an answer, in one look."""

    def raised(self, line: Sequence[Reach], step: str, time: int, purpose: str) -> int:
        """The sample from which a purpose counts; 0 = never raised. Nearest run first, latest row."""

    def usage(self, run: str) -> Mapping[str, float]:
        """Sums over this very run: prompt_tokens, answer_tokens, cached_tokens, cost, calls (asked), refused. An `asked` row without
        a verdict counts with its worst case.
        """

    # -- reading: memory -----------------------------------------------------------------------------------------------------

    def records(
        self,
        line: Sequence[Reach],
        *,
        lanes: Sequence[str] | None = None,
        before: int = FAR,
        read_at: int = FAR,
        entities: Sequence[str] = (),
        after: int = 0,
    ) -> list[RecordRow]:
        """Live record events that a step sees, by position: of its own line with time < min(before, cut) and pos <= pin (only of
        these lanes; None = all); of the library about these entities with pos <= read_at, except what a model wrote on its own
        line after the cut (a person's word there stays). Only rows with pos > after.
        """

    def vectors(self, hashes: Sequence[str], model: str) -> dict[str, bytes]:
        """The vectors that are there."""

    def search(self, terms: Sequence[str], *, runs: Sequence[str] | None = None, limit: int = 200) -> list[tuple[str, int]]:
        """(record id, position) of events whose terms hold any of these, most terms first; only of these runs (None = all)."""

    # -- care ------------------------------------------------------------------------------------------------------------------

    def hold(self, run: str) -> None:
        """Become the run's holder (an OS file lock, freed by the kernel when the process dies). Idempotent. Raises Held."""

    def release(self, run: str) -> None:
        """Stop being the holder."""

    def holder(self, run: str) -> Holder | None:
        """Who holds the run now, from any process; None = nobody."""

    def erase(self, texts: Iterable[str], why: str) -> Mapping[str, int]:
        """Blank every occurrence of these texts (>= 4 characters) in records, prompts, answers, pieces, outputs, source texts, index, and
        drop their vectors; in their place stands `⟨erased HASH⟩`. Source texts keep their length and their lines, so that every
        span of them stays where it was; and they keep their names. Cannot be undone; leaves no trace in free pages of the file.

        Returns how many rows of each kind were changed, and `replays`: how many steps can no longer be replayed. Which runs were
        touched stands in the latest fact `erased`, `{"why", "marks", "runs": [ids]}`.

        Raises InputError for a text that is too short, Held where someone else holds a run.
        """

    def backup(self, target: Path) -> int:
        """Copy the library while it is in use; returns bytes. Raises InputError if the target exists."""

    def check(self) -> list[Finding]:
        """Look for damage: the file's own check, rows that point to nothing, vectors of the wrong size, index out of step."""

    def repair(self) -> list[Finding]:
        """Mend what can be mended (after a backup beside the file), and say of each finding what was done."""

    def close(self) -> None:
        """Release the file and all holds. May be called twice."""
