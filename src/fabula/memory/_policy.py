"""Policies: by which rule a recall ranks (SPEC M2). `fact` is here; a way in registers others.

This module loads no numpy; the arrays' arithmetic of `fact` is in `_fact`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fabula.errors import InputError, NotPossible
from fabula.memory._record import Query, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sight(Protocol):
    """What a policy is given: the m records that the query may find, in the order (episode, logical time, lane, id).

    All arrays have shape (m,) and must not be written to.
    """

    @property
    def query(self) -> Query:
        """The question."""

    @property
    def size(self) -> int:
        """How many records: m."""

    def record(self, place: int) -> Record:
        """The record at a place, 0 <= place < m."""

    def cosine(self) -> NDArray[np.float64] | None:
        """Cosine of the question and each record; nan where a record has no vector. None = no embedder takes part."""

    def coverage(self) -> NDArray[np.float64]:
        """How much of the question's words a record covers, alone and with its neighbour before it: BM25 over its upper bound, 0 .. 1."""

    def importance(self) -> NDArray[np.float64]:
        """1 .. 10; nan = not rated."""

    def accessed(self) -> NDArray[np.float64]:
        """Story hours of the last access: `query.accessed`, else when it happened."""

    def named(self) -> NDArray[np.bool_]:
        """Is the record by or about somebody whom the question names?"""

    def fact(self) -> Ranking:
        """The ranking of the policy `fact`, for policies that begin with it."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a policy returns. The score of a record is the sum of its parts; ties go by (logical time, lane, id)."""

    parts: Mapping[str, NDArray[np.float64]]
    """(m,) each; shown with each found record."""
    eligible: NDArray[np.bool_] | None = None
    """(m,) which records may be found at all; None = all."""
    always: Sequence[int] = field(default=())
    """Places that come before all others, in this order (open commitments, say)."""


PolicyFunction = Callable[[Sight], Ranking]
"""Called once a recall, synchronously; no clock, no randomness, no input but the sight."""

_LATER = ("mind", "paper", "released")
_registered: dict[str, PolicyFunction] = {"fact": lambda sight: sight.fact()}


def register_policy(name: str, function: PolicyFunction) -> None:
    """Make a policy known under a name, for this process.

    Raises:
        InputError: an empty name, or one that another function has.
    """
    if not name.strip() or _registered.get(name, function) is not function:
        raise InputError(f"{name!r} cannot name a policy: it is empty or taken.", "Choose another name.")
    _registered[name] = function


def policy(name: str) -> PolicyFunction:
    """The function of a policy.

    Raises:
        NotPossible: a policy that comes with the town, and nobody has registered it.
        InputError: no such policy.
    """
    found = _registered.get(name)
    if found is not None:
        return found
    if name in _LATER:
        raise NotPossible(f"The policy {name!r} comes with the town.", "Use the policy `fact`.")
    raise InputError(f"There is no policy {name!r}.", f"Use one of: {', '.join(sorted(_registered))}.")
