"""Which steps a reading has: every chunk read once and merged once, nothing waits for what comes later, and all of it can be journaled."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.read._chunks import Chunk
from fabula.read._shape import MOST_ROUNDS, QUESTIONS, READING, STORY, STORY_STEPS, Shape, digest, leaf, number_of, shape_of
from fabula.read._task import WAYS, Way
from fabula.store import FAR

COUNTS = (1, 2, 3, 7, 24, 25, 40, 100, 1_000)


def chunks(count: int, seed: int = 1) -> list[Chunk]:
    rnd = random.Random(seed)
    return [Chunk(n, 100, (), rnd.getrandbits(32)) for n in range(count)]


def shape(way: Way, count: int, fan_in: int = 24, seed: int = 1) -> Shape:
    return shape_of(way, chunks(count, seed), fan_in)


# -- lanes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", COUNTS)
def test_lanes(way: Way, count: int) -> None:
    s = shape(way, count)
    lanes = s.lanes()
    assert all(birth < end for birth, end in lanes.values())
    assert lanes[STORY] == (s.end, s.end + STORY_STEPS)
    assert lanes[QUESTIONS] == (s.end + STORY_STEPS, FAR)
    own = {name: times for name, times in lanes.items() if name not in (STORY, QUESTIONS)}
    assert max(end for _, end in own.values()) == s.end
    assert lanes[s.last][1] == s.end
    steps = {
        "chain": count + 1,
        "ask": MOST_ROUNDS + 2,
        "tree": count + len(s.nodes),
        "two-pass": 2 * count + s.groups + 1,
    }
    assert sum(end - birth for birth, end in own.values()) == steps[way]
    if way in ("tree", "two-pass"):
        assert sum(name.startswith("0.") for name in own) == count
        assert [number_of(leaf(n)) for n in range(count)] == list(range(count))
    else:
        assert set(own) == {READING}


def test_lanes_of_two_passes() -> None:
    s = shape("two-pass", 10)
    assert (s.group, s.groups) == (3, 4)
    assert s.lanes()[digest(9)] == (0, 1)
    assert [s.lanes()[leaf(n)][0] for n in range(10)] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert s.lanes()["context"] == (1, 5)
    assert s.lanes()["final"] == (5, 6)
    assert s.waits_for("context", 4) == [digest(9)]
    assert s.waits_for("context", 1) == [digest(0), digest(1), digest(2)]
    assert s.waits_for(leaf(5), 2) == ["context", digest(3), digest(4)]
    assert s.waits_for(leaf(3), 2) == ["context"]
    assert set(s.waits_for("final", 5)) == {"context", *(leaf(n) for n in range(10))}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_groups_of_two_passes_are_no_larger_than_a_merge(count: int) -> None:
    assert shape("two-pass", 1_000, fan_in=count + 1).group == count + 1


# -- the tree -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "nodes", "height"),
    [(1, (0, 0), 0), (2, (1, 1), 1), (24, (1, 1), 1), (25, (3, 4), 2), (100, (6, 10), 2), (1_000, (47, 90), 3)],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_size_of_a_tree(count: int, nodes: tuple[int, int], height: int, seed: int) -> None:
    s = shape("tree", count, seed=seed)
    assert nodes[0] <= len(s.nodes) <= nodes[1]
    assert max((n.height for n in s.nodes), default=0) == height
    assert s.end == height + 1
    assert s.last == (s.nodes[-1].lane if s.nodes else leaf(0))


@given(st.integers(1, 400), st.integers(2, 24), st.integers(0, 99))
def test_every_chunk_is_merged_once(count: int, fan_in: int, seed: int) -> None:
    s = shape("tree", count, fan_in, seed)
    merged = Counter(child for node in s.nodes for child in node.children)
    everything = {leaf(n) for n in range(count)} | {node.lane for node in s.nodes}
    assert merged == Counter(everything - {s.last})
    assert all(1 <= len(node.children) <= fan_in for node in s.nodes)
    assert len({node.lane for node in s.nodes}) == len(s.nodes)
    assert covered(s, s.last) == list(range(count))
    for node in s.nodes:
        assert all(int(child.split(".")[0]) == node.height - 1 for child in node.children)


def covered(s: Shape, lane: str) -> list[int]:
    """The chunks under a lane, in order."""
    if lane.startswith("0."):
        return [number_of(lane)]
    return [n for child in s.children[lane] for n in covered(s, child)]


@given(st.integers(2, 120), st.integers(0, 119), st.integers(0, 50))
def test_a_changed_chunk_changes_its_path(count: int, at: int, seed: int) -> None:
    """Where its end stays as it was (see `Chunk.mark`), no other node merges anything new."""
    before = chunks(count, seed)
    after = [*before]
    after[at % count] = Chunk(at % count, 55, (), before[at % count].mark)
    assert shape_of("tree", before, 24).as_dict() == shape_of("tree", after, 24).as_dict()


def test_an_inserted_chunk_changes_few_nodes() -> None:
    base = chunks(300)
    names = [str(c.mark) for c in base]

    def below(s: Shape, labels: Sequence[str]) -> set[tuple[str, ...]]:
        return {tuple(labels[n] for n in covered(s, node.lane)) for node in s.nodes}

    known = below(shape_of("tree", base, 24), names)
    counts = []
    for at in range(0, 300, 10):
        more = [*base[:at], Chunk(0, 100, (), 77_777 * at), *base[at:]]
        more = [Chunk(n, c.tokens, c.parts, c.mark) for n, c in enumerate(more)]
        counts.append(len(below(shape_of("tree", more, 24), [*names[:at], "new", *names[at:]]) - known))
    assert sum(counts) / len(counts) <= 3
    assert max(counts) <= 6


# -- kept and taken up again ------------------------------------------------------------------------------------------------


@given(st.sampled_from(WAYS), st.integers(1, 200), st.integers(2, 24), st.integers(0, 99))
def test_round_trip(way: Way, count: int, fan_in: int, seed: int) -> None:
    s = shape(way, count, fan_in, seed)
    again = Shape.from_dict(json.loads(json.dumps(s.as_dict())))
    assert again == s
    assert again.lanes() == s.lanes()
    assert again.children == s.children


# -- who waits for whom -----------------------------------------------------------------------------------------------------


@given(st.sampled_from(WAYS), st.integers(1, 130), st.sampled_from([2, 5, 24]))
def test_waits_only_for_what_is_over(way: Way, count: int, fan_in: int) -> None:
    s = shape(way, count, fan_in)
    lanes = s.lanes()
    for lane, (birth, end) in lanes.items():
        for time in range(birth, min(end, birth + count + 9)):
            waited = s.waits_for(lane, time)
            assert len(set(waited)) == len(waited)
            for other in waited:
                assert other != lane
                if other == "context":  # each of its steps is for one group
                    assert lanes[other][0] <= time
                else:
                    assert lanes[other][1] <= time, (lane, time, other)


@given(st.sampled_from(WAYS), st.integers(1, 60), st.sampled_from([2, 24]), st.integers(0, 9))
def test_everything_comes_to_its_end(way: Way, count: int, fan_in: int, seed: int) -> None:
    """Steps made in any order that the waiting allows."""
    s, rnd = shape(way, count, fan_in), random.Random(seed)
    lanes = {name: times for name, times in s.lanes().items() if name != QUESTIONS}
    at = {name: birth for name, (birth, _) in lanes.items()}
    made: set[tuple[str, int]] = set()
    while True:
        ready = [
            name
            for name, (_, end) in lanes.items()
            if at[name] < end and all(at[w] >= min(at[name], lanes[w][1]) for w in s.waits_for(name, at[name]))
        ]
        if not ready:
            break
        name = rnd.choice(ready)
        if way == "two-pass" and name.startswith("0."):  # the context of the groups before it is there
            assert {("context", time) for time in range(1, at[name])} <= made
        made.add((name, at[name]))
        at[name] += 1
    assert all(at[name] == end for name, (_, end) in lanes.items())


def test_a_node_waits_for_its_children() -> None:
    s = shape("tree", 30)
    for node in s.nodes:
        assert tuple(s.waits_for(node.lane, node.height)) == node.children
    assert list(s.waits_for(STORY, s.end)) == [s.last]
    assert not s.waits_for(QUESTIONS, s.end + STORY_STEPS)
