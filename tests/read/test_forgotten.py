"""Nothing is forgotten: 40 facts, one in each of 40 chunks, are in the result or can be asked for; the article's rule keeps the last."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from fabula.memory import Memory
from fabula.read import WAYS, Study
from fabula.store import Store, open_store
from tests.read.article import ArticleModel, by_article
from tests.read.models import NAMES, Copyist
from tests.read.reading import long_text, piece, read

CAP = 60
"""Tokens that the reader may say in one answer: less than the facts of eight chunks."""
CODES = {NAMES[n]: str(4000 + 37 * n) for n in range(40)}


def missing_in(text: str) -> dict[str, str]:
    return {name: code for name, code in CODES.items() if f"vault {name} is {code}" not in text}


async def asked_for(store: Store, run: str, missing: dict[str, str]) -> list[str]:
    """Names whose code a question brings back, with a citation that holds it."""
    model = Copyist(CAP)
    talk = Study.conversation(store, run, model=model, memory=Memory(store))
    found = []
    for name, code in missing.items():
        answer = await talk.ask(f"code vault {name}?")
        if answer.found and code in answer.text and any(code in claim["quote"] for claim in answer.claims):
            found.append(name)
    talk.close()
    return found


@pytest.mark.parametrize("way", [w for w in WAYS if w != "ask"])
async def test_forty_facts(tmp_path: Path, way: str) -> None:
    path = tmp_path / "streets.md"
    path.write_text(long_text(40), "utf-8")
    with closing(open_store(tmp_path / "library.db")) as store:
        result = await read(store, [path], Copyist(CAP), way=way)
        assert result["coverage"]["read"] == result["coverage"]["chunks"] >= 40
        missing = missing_in(result["final_summary"])
        assert missing, "the reader's cap must not hold all forty, else nothing is tested"
        assert await asked_for(store, result["run"], missing) == list(missing)


async def test_a_question_reads_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "streets.md"
    path.write_text(long_text(40), "utf-8")
    model = Copyist(CAP, relevant=lambda task, text: "Birchfield" in text if "Birchfield" in task else True)
    with closing(open_store(":memory:")) as store:
        result = await read(store, [path], model, "Which code does vault Birchfield have?", way="ask")
    assert f"vault Birchfield is {CODES['Birchfield']}" in result["final_summary"]
    assert result["coverage"]["read"] < result["coverage"]["chunks"], "it read only what may matter"
    assert len(result["coverage"]["not_read"]) == result["coverage"]["chunks"] - result["coverage"]["read"]
    assert all(one["why"] for one in result["individual_results"] if not one["read"])


def test_the_articles_rule_keeps_only_the_last() -> None:
    model = ArticleModel(CAP)
    last = by_article(model, [piece(n) for n in range(40)])
    kept = set(CODES) - set(missing_in(last))
    assert model.calls == 80
    assert NAMES[39] in kept
    assert len(kept) <= 6
    assert not kept & set(NAMES[:30]), "of the first thirty chunks nothing is left"


async def test_not_in_the_text(tmp_path: Path) -> None:
    path = tmp_path / "streets.md"
    path.write_text(long_text(12), "utf-8")
    with closing(open_store(":memory:")) as store:
        result = await read(store, [path], Copyist(CAP))
        talk = Study.conversation(store, result["run"], model=Copyist(CAP), memory=Memory(store))
        answer = await talk.ask("Who painted the golden emperor?")
        assert not answer.found
        assert answer.text == ""
        assert answer.looked, "it says where it looked"
        follow = await talk.ask(f"code vault {NAMES[3]}?")
        assert follow.found
        talk.close()


@pytest.mark.parametrize(("text", "question", "wanted"), [
    ("Мира хранит ключ от склада 4821 в старом маяке.", "ключ склада 4821?", "4821"),
    ("米拉把仓库的钥匙4821藏在旧灯塔里。", "钥匙4821", "4821"),
])  # fmt: skip
async def test_other_languages(tmp_path: Path, text: str, question: str, wanted: str) -> None:
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join([text] * 3), "utf-8")
    with closing(open_store(":memory:")) as store:
        result = await read(store, [path], Copyist(CAP), "")
        assert wanted in result["final_summary"]
        assert result["language"] in ("ru", "zh")
        talk = Study.conversation(store, result["run"], model=Copyist(CAP), memory=Memory(store))
        answer = await talk.ask(question)
        assert answer.found
        assert any(wanted in claim["quote"] for claim in answer.claims)
        talk.close()
