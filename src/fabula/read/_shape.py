"""Which steps a reading has: its lanes, and how a tree merges (DESIGN 3: a lane a node, time = height)."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabula.read._chunks import Chunk, groups
from fabula.read._task import Way
from fabula.store import FAR

READING = "reading"
"""The lane of ways that read one chunk after the other."""
QUESTIONS = "questions"
"""The lane of what is asked afterwards."""
STORY = "story"
"""The lane of what is made of a novel in order to go on with it."""
STORY_STEPS = 3
MOST_ROUNDS = 3
"""Of a question-driven reading."""


@dataclass(frozen=True, slots=True)
class Node:
    """A merge of the tree."""

    lane: str
    height: int
    children: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """The lanes of a reading."""

    way: Way
    chunks: int
    nodes: tuple[Node, ...] = ()
    group: int = 0
    """Chunks of a group (two-pass)."""

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """What each merge of the tree merges."""
        return {node.lane: node.children for node in self.nodes}

    @property
    def groups(self) -> int:
        """How many groups (two-pass)."""
        return math.ceil(self.chunks / self.group) if self.group else 0

    @property
    def end(self) -> int:
        """The logical time at which the reading is over."""
        if self.way == "tree":
            return 1 + max((n.height for n in self.nodes), default=0)
        if self.way == "two-pass":
            return self.groups + 2
        return self.chunks + 1 if self.way == "chain" else MOST_ROUNDS + 2

    @property
    def last(self) -> str:
        """The lane that ends it."""
        if self.way == "tree":
            return self.nodes[-1].lane if self.nodes else leaf(0)
        return "final" if self.way == "two-pass" else READING

    def lanes(self) -> dict[str, tuple[int, int]]:
        """Each lane with its birth and its end."""
        n, end = self.chunks, self.end
        out: dict[str, tuple[int, int]] = {}
        if self.way == "tree":
            out |= {leaf(i): (0, 1) for i in range(n)}
            out |= {node.lane: (node.height, node.height + 1) for node in self.nodes}
        elif self.way == "two-pass":
            out |= {digest(i): (0, 1) for i in range(n)}
            out["context"] = (1, self.groups + 1)
            out |= {leaf(i): (1 + i // self.group, 2 + i // self.group) for i in range(n)}
            out["final"] = (self.groups + 1, self.groups + 2)
        else:
            out[READING] = (0, end)
        return {**out, STORY: (end, end + STORY_STEPS), QUESTIONS: (end + STORY_STEPS, FAR)}

    def waits_for(self, lane: str, time: int) -> Sequence[str]:
        """The lanes whose earlier steps a lane's step reads."""
        if lane in (READING, QUESTIONS) or lane.startswith("0."):
            return self._context_of(lane) if self.way == "two-pass" and lane.startswith("0.") else ()
        if lane == STORY:
            return (self.last,)
        if self.way == "tree":
            return self.children[lane]
        if lane == "context":
            return [digest(i) for i in range((time - 1) * self.group, min(time * self.group, self.chunks))]
        if lane == "final":
            return ["context", *(leaf(i) for i in range(self.chunks))]
        return ()

    def as_dict(self) -> dict[str, Any]:
        """As journaled: neighbours are merged, so that it is enough to say how many."""
        return {
            "way": self.way,
            "chunks": self.chunks,
            "group": self.group,
            "nodes": [[n.lane, n.height, len(n.children)] for n in self.nodes],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Shape:
        """As journaled."""
        below: dict[int, list[str]] = {0: [leaf(n) for n in range(value["chunks"])]}
        nodes: list[Node] = []
        for lane, height, count in value["nodes"]:
            taken, below[height - 1] = below[height - 1][:count], below[height - 1][count:]
            nodes.append(Node(lane, height, tuple(taken)))
            below.setdefault(height, []).append(lane)
        return cls(value["way"], value["chunks"], tuple(nodes), value["group"])

    def _context_of(self, lane: str) -> Sequence[str]:
        at = number_of(lane)
        first = at // self.group * self.group
        return ["context", *(digest(i) for i in range(first, at))]


def leaf(number: int) -> str:
    """The lane in which a chunk is read."""
    return f"0.{number}"


def digest(number: int) -> str:
    """The lane in which a chunk is read for the first of two times."""
    return f"d.{number}"


def number_of(lane: str) -> int:
    """The chunk of a lane."""
    return int(lane.split(".")[1])


def shape_of(way: Way, chunks: Sequence[Chunk], fan_in: int) -> Shape:
    """The shape of a reading of these chunks.

    Args:
        way: how it reads.
        chunks: in order.
        fan_in: most parts of a merge.
    """
    if way == "two-pass":
        return Shape(way, len(chunks), group=min(fan_in, max(2, round(math.sqrt(len(chunks))))))
    if way != "tree":
        return Shape(way, len(chunks))
    lanes, marks = [leaf(c.number) for c in chunks], [c.mark for c in chunks]
    nodes: list[Node] = []
    height = 0
    while len(lanes) > 1:
        height += 1
        level = [Node(f"{height}.{n}", height, tuple(lanes[a:b])) for n, (a, b) in enumerate(groups(marks, fan_in))]
        # a group is known by where it ends, so that what changes inside it moves no cut above
        ends = [sum(len(node.children) for node in level[: n + 1]) for n in range(len(level))]
        marks = [zlib.crc32(str(marks[end - 1]).encode()) for end in ends]
        nodes += level
        lanes = [node.lane for node in level]
    return Shape(way, len(chunks), tuple(nodes))
