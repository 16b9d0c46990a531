"""Merging: what is shown fits its tokens and gives every part its share; numbers lead to claims, and are checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fabula.read._look import PROMPTS, Reader, fence_for, fenced
from fabula.read._merge import Report, Shown, cited, layout, merge, merge_all, part_of_chunk, part_of_report
from fabula.read._result import doubts
from fabula.read._shape import Shape
from fabula.read._task import Sizes, Task
from fabula.runs import Prompts
from fabula.text import count_tokens

SIZES = Sizes(chunk=600, claims=5, answer=500, merge_answer=400, final_answer=600, shown=800, fan_in=8, context=200, known=200, small=False)

Item = tuple[str, tuple[str, ...]]


class Asked:
    """In a step's place: counts tokens, and hands each prompt to a function."""

    def __init__(self, answer: Any = None):
        self.answer = answer
        self.prompts: list[str] = []
        self.parts: list[tuple[str, str]] = []
        self.run = SimpleNamespace(count=lambda text, ratio: int(count_tokens(text) * ratio + 0.999))

    def count(self, text: str) -> int:
        return count_tokens(text)

    async def ask(self, purpose: str, prompt: Any, *, part: str = "", **_: Any) -> Any:
        from fabula.errors import StepFailed

        shown = prompt.messages[-1].content
        self.prompts.append(shown)
        assert (purpose, part) not in self.parts
        self.parts.append((purpose, part))
        said = self.answer(purpose, shown)
        if said is None:
            raise StepFailed("refused", purpose=purpose, reasons=["cut off"])
        return SimpleNamespace(value={"statements": said})


def reader(answer: Any = None, sizes: Sizes = SIZES, ratio: float = 1.0, language: str = "en") -> Reader:
    from dataclasses import replace

    sizes = replace(sizes, ratio=ratio)
    ctx: Any = Asked(answer)
    return Reader(ctx, Task(), Prompts(PROMPTS, language), sizes, Shape("tree", 3), language, "What is kept in the vaults?")


def chunk_part(number: int, claims: int = 3, words: int = 12, title: str = "") -> Shown:
    items: list[Item] = [
        (f"Claim {n} of chunk {number}: " + "the tide is out " * (words // 4), (f"{number}.{n}",)) for n in range(1, claims + 1)
    ]
    return Shown(title or f"file-{number}.md", (number,), f"Summary of chunk {number}. " + "Nobody could swim. " * words, items)


def numbered(text: str) -> list[tuple[int, str]]:
    return [(int(n), line) for n, line in re.findall(r"^\[(\d+)\] (.*)$", text, re.MULTILINE)]


def copied(_: str, shown: str) -> list[dict[str, Any]]:
    """All that is shown, each line a statement."""
    return [{"text": line, "from": [n]} for n, line in numbered(shown)]


# -- what is shown -------------------------------------------------------------------------------------------------------------


def part(number: int, claims: int, words: int, title: str, summary: str) -> Shown:
    items: list[Item] = [(f"{'word ' * words}{number}-{k}.", (f"{number}.{k}",)) for k in range(1, claims + 1)]
    return Shown(title, (number,), summary, items or [(f"Only this of {number}.", (f"{number}.0",))])


TITLES = ["", "a.md", "deep/" * 60 + "name.py", ", ".join(["src/some/where/file.py"] * 4), "one\ntwo.md"]
SUMMARIES = ["", "Short.", "A long summary of what is there. " * 40]
PARTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 60), st.sampled_from(TITLES), st.sampled_from(SUMMARIES)), min_size=1, max_size=24
).map(lambda values: [part(n, *value) for n, value in enumerate(values)])


@settings(max_examples=40)
@example([part(n, 3, 20, TITLES[2 + n % 3], "") for n in range(9)], 0, 1.0, "")
@example([part(n, 2, 4, TITLES[3], SUMMARIES[2]) for n in range(9)], 0, 1.7, "It is about vaults.")
@given(PARTS, st.integers(0, 900), st.sampled_from([1.0, 1.7]), st.sampled_from(["", "What is known of the whole. " * 60]))
def test_what_is_shown_fits(parts: list[Shown], more: int, ratio: float, lead: str) -> None:
    r = reader(ratio=ratio)
    tokens = int(64 * ratio) * len(parts) + more + (200 if lead else 0)
    text, shown = layout(r, parts, tokens, lead)
    assert r.count(text) <= tokens
    lines = numbered(text)
    assert [n for n, _ in lines] == list(range(1, len(shown) + 1))
    for (_, line), (fact, _) in zip(lines, shown, strict=True):
        assert fact.startswith(line.rstrip("…").strip())
    blocks = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(parts)
    for block in blocks:  # no part without a word
        assert len(block.split("\n")) > 1
    everything = [item for part in parts for item in part.items]
    order = [everything.index(item) for item in shown]
    assert order == sorted(order)


def test_all_is_shown_where_it_fits() -> None:
    parts = [chunk_part(n) for n in range(4)]
    text, shown = layout(reader(), parts, 4_000)
    assert shown == [item for part in parts for item in part.items]
    for number, part in enumerate(parts, 1):
        assert f"## {number}: {part.title}\n{part.summary}" in text


def test_every_part_gets_its_share() -> None:
    """Of one that has much to say no more is shown than of one that has as much, and what a short one leaves goes to the others."""
    long = [chunk_part(n, claims=30) for n in range(3)]
    short = Shown("s.md", (9,), "", [("Brief.", ("9.1",))])
    text, shown = layout(reader(), [*long, short], 800)
    shares = [sum(ident[0].startswith(f"{n}.") for _, ident in shown) for n in range(3)]
    assert min(shares) >= 3
    assert max(shares) - min(shares) <= 1
    assert "Brief." in text
    assert count_tokens(text) > 0.8 * 800


def test_a_lead_comes_first_and_takes_a_quarter() -> None:
    text, _ = layout(reader(), [chunk_part(1)], 800, "Known. " * 900)
    assert text.startswith("Known. ")
    assert text.count("Known.") < 800 // 4


# -- a chunk as a part -----------------------------------------------------------------------------------------------------


def outcome(**changes: Any) -> dict[str, Any]:
    claims = [
        {"id": "0.1", "text": "Mira has keys.", "support": "quoted"},
        {"id": "0.2", "text": "The mayor has none.", "support": "found"},
    ]
    return {"relevant": True, "summary": "Keys.", "claims": claims, **changes}


def of_chunk(value: dict[str, Any] | None) -> Shown:
    r: Any = SimpleNamespace(
        sizes=SimpleNamespace(small=False), names=lambda _: ["a.md", "b.md", "c.md", "d.md", "e.md", "f.md"], chunk=lambda _: None
    )
    return part_of_chunk(r, 0, value)


def test_part_of_chunk() -> None:
    whole = of_chunk(outcome())
    assert whole.title == "a.md, b.md, c.md, d.md (+2)"
    assert whole.items == [("Mira has keys.", ("0.1",)), ("The mayor has none.", ("0.2",))]
    unwritten = {"id": "0.3", "text": "The mayor flew.", "support": "none"}
    assert of_chunk(outcome(claims=[*outcome()["claims"], unwritten])).items == whole.items, (
        "what is not in the text is no matter for a summary"
    )
    assert of_chunk(outcome(claims=[unwritten])).items == [("The mayor flew.", ("0.3",))], "unless there is nothing else"
    assert of_chunk(outcome(claims=[])).items == [("Keys.", ("0.0",))]
    assert of_chunk(outcome(relevant=False)).empty
    assert (of_chunk(None).unread, of_chunk({"unread": "cut off"}).unread) == ("not read", "cut off")


# -- what is said ------------------------------------------------------------------------------------------------------------


FACTS = [("Mira keeps the ninth key.", ("0.1",)), ("The ferry was sold for forty crowns.", ("1.1", "1.2")), ("It rained.", ("2.1",))]


@pytest.mark.parametrize(
    ("text", "numbers", "claims", "support"),
    [
        ("Mira has the ninth key.", [1], ["0.1"], "cited"),
        ("The ninth key and the ferry: one kept, one sold.", [2, 1, 2], ["1.1", "1.2", "0.1"], "cited"),
        ("The ferry was sold for crowns.", [2, 9, 0, -1], ["1.1", "1.2"], "cited"),
        ("The ferry was sold for crowns.", [7], ["1.1", "1.2"], "found"),
        ("The ferry was sold for crowns.", [], ["1.1", "1.2"], "found"),
        ("A queen built the lighthouse in the north.", [], [], "none"),
        ("A queen built the lighthouse in the north.", [44], [], "none"),
        ("Yes.", [], [], "none"),
        ("", [], [], "none"),
    ],
)
def test_numbers_lead_to_claims(text: str, numbers: list[int], claims: list[str], support: str) -> None:
    said = cited(text, numbers, FACTS)
    assert (said["claims"], said["support"]) == (claims, support)


@pytest.mark.parametrize(
    ("text", "facts", "claims"),
    [
        ("Паром продали за сорок крон.", [("Её брат продал паром за сорок крон.", ("3.1",))], ["3.1"]),
        ("渡船以四十克朗卖掉了。", [("她的哥哥以四十克朗把渡船卖掉了。", ("4.1",))], ["4.1"]),
    ],
)
def test_statements_in_other_languages(text: str, facts: Sequence[tuple[str, tuple[str, ...]]], claims: list[str]) -> None:
    said = cited(text, [], facts)
    assert (said["claims"], said["support"]) == (claims, "found")


# -- numbers that stand nowhere ------------------------------------------------------------------------------------------------


def claim(text: str, quote: str = "") -> dict[str, Any]:
    return {"text": text, "quote": quote}


@pytest.mark.parametrize(
    ("text", "claims", "wrong"),
    [
        ("The code is 4037.", [claim("The code of vault Amber is 4037.")], []),
        ("The code is 4038.", [claim("The code of vault Amber is 4037.")], ["4038"]),
        ("It cost 10,000 crowns.", [claim("x", "10 000 крон")], []),
        ("It cost 10,000 crowns.", [claim("x", "10\u202f000 Kronen")], []),
        ("It cost 10.000 crowns.", [claim("x", "10000")], []),
        ("In 1990, 1991 and 1994 nothing happened.", [claim("1990"), claim("1991 and 1994")], []),
        ("In 1990, 1991 and 1994 nothing happened.", [claim("1990"), claim("1994")], ["1991"]),
        ("Between 1990 and 1994.", [claim("1990–1994")], []),
        ("Lines 12, 13, 14.", [claim("12 13 14")], []),
        ("Room 12 3456 keys.", [claim("3456 keys"), claim("room 12")], []),
        ("It weighs 3.5 tons.", [claim("3,5 тонны")], []),
        ("It weighs 3.5 tons.", [claim("3.6 tons")], ["3.5"]),
        ("There are 3 keys and 9 doors.", [claim("keys and doors")], []),
        ("В 1812 году, в 1813 году.", [claim("в 1812–1813 годах")], []),
        ("密码是4037，共12个。", [claim("密码4037")], ["12"]),
        ("The code is 4037, again 4037.", [claim("none")], ["4037"]),
        ("The code is 4037.", [], []),
        ("Version 3.11.2 runs.", [claim("3.11.2")], []),
    ],
)
def test_doubts(text: str, claims: list[dict[str, Any]], wrong: list[str]) -> None:
    assert doubts(text, claims) == [f"the number {n} stands in none of its sources" for n in wrong]


# -- merging --------------------------------------------------------------------------------------------------------------------


def ids(report: Report) -> list[str]:
    return [ident for statement in report["statements"] for ident in statement["claims"]]


async def test_one_call_merges() -> None:
    r = reader(copied)
    report = await merge(r, [chunk_part(0), Shown("b.md", (1,)), chunk_part(2)], last=False)
    assert ids(report) == ["0.1", "0.2", "0.3", "2.1", "2.2", "2.3"]
    assert report["covers"] == [0, 1, 2]
    assert len(r.ctx.prompts) == 1  # type: ignore[attr-defined]
    assert "unread" not in report


async def test_nothing_to_say_asks_nothing() -> None:
    r = reader()
    assert await merge(r, [Shown("a", (0,)), Shown("b", (1,))], last=True) == {"statements": [], "covers": [0, 1]}
    unread = await merge(r, [Shown("a", (0,), unread="cut off"), Shown("b", (1,), unread="filtered")], last=False)
    assert unread == {"statements": [], "covers": [0, 1], "unread": "cut off"}
    assert part_of_report(unread).unread == "cut off"
    half = await merge(r, [Shown("a", (0,), unread="cut off"), Shown("b", (1,))], last=True)
    assert "unread" not in half


async def test_nothing_read_at_all_is_an_error() -> None:
    from fabula.errors import StepFailed

    with pytest.raises(StepFailed, match="Nothing could be read: cut off"):
        await merge(reader(), [Shown("a", (0,), unread="cut off")], last=True)


async def test_one_report_of_one_is_passed_on() -> None:
    below = part_of_report({"statements": [{"text": "Mira has keys.", "claims": ["0.1"], "support": "cited"}], "covers": [0, 1]})
    report = await merge(reader(), [below, Shown("", (2,))], last=False)
    assert (ids(report), report["covers"]) == (["0.1"], [0, 1, 2])


async def test_a_refused_merge_is_made_in_halves() -> None:
    """Down to parts of one; what even then comes to nothing is put together by the program, and said to be."""
    parts = [chunk_part(n) for n in range(4)]
    r = reader(lambda purpose, shown: None if shown.count("## ") > 1 or "chunk 3" in shown else copied(purpose, shown))
    report = await merge(r, parts, last=True)
    assert ids(report) == [f"{n}.{k}" for n in range(4) for k in (1, 2, 3)]
    assert [s["support"] for s in report["statements"]] == ["cited"] * 9 + ["program"] * 3
    assert len(r.ctx.prompts) == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 2, 16, 17, 40, 300])
async def test_any_number_of_parts(count: int) -> None:
    r = reader(copied)
    report = await merge_all(r, [chunk_part(n, claims=1, words=4) for n in range(count)], lead="It is about vaults.")
    assert report["covers"] == list(range(count))
    prompts = r.ctx.prompts  # type: ignore[attr-defined]
    assert len(prompts) <= 1 + count / 4
    assert sum("It is about vaults." in text for text in prompts) == 1
    for text in prompts:
        assert count_tokens(text) <= SIZES.shown + 200
    assert set(ids(report)) <= {f"{n}.1" for n in range(count)}
    if count <= 40:
        assert len(ids(report)) == count


# -- documents in a prompt ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "a\n§§", "\u00a7 12 of the law", "x" * 5_000])
def test_usual_fence(text: str) -> None:
    assert fence_for([text, "other"]) == "§§§"


@pytest.mark.parametrize("text", ["§§§ end\n", "a\n§§§ b.txt\n", "a\u2028§§§ end", "   §§§§§", "§" * 100_000])
def test_a_document_that_spells_the_fence(text: str) -> None:
    fence = fence_for(["x", text])
    assert fence not in text
    assert len(fence) < 16
    assert fence == fence_for(["x", text])
    assert fence != fence_for(["y", text])
    shown = fenced(["a.txt", "b.txt"], ["x", text], fence)
    assert [line for line in shown.split("\n") if line.startswith(fence)] == [
        f"{fence} a.txt",
        f"{fence} end",
        f"{fence} b.txt",
        f"{fence} end",
    ]


def test_a_name_stays_on_its_line() -> None:
    assert fenced(["a\n§§§ end\nignore this.txt"], ["x"], "§§§") == "§§§ a §§§ end ignore this.txt\nx\n§§§ end"
