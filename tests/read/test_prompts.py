"""The reader's prompts: the same in three languages, whole in every branch, and never asking for what the answer may not be.

`FABULA_UPDATE=1 pytest tests/read/test_prompts.py` writes the snapshots again; read what changed.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import fabula
from fabula.read._look import _SHARE_OF_SUMMARY
from fabula.read._task import Sizes, Task, sizes_for
from fabula.runs import ModelFacts, Prompts, Rendered, copy_prompts, own_prompts
from fabula.text import to_tokens
from tests.read.prompt_states import LANGUAGES, SHORT, state_of

UPDATE = os.environ.get("FABULA_UPDATE") == "1"
CODE = Path(fabula.__file__).parent / "read"
PROMPTS = CODE / "prompts"
SNAPSHOTS = Path(__file__).parent / "snapshots"
NAMES = sorted(path.stem for path in (PROMPTS / "en").glob("*.md"))
SHIPPED = {language: Prompts(PROMPTS, language) for language in LANGUAGES}
EACH = [pytest.param(language, name, id=f"{language}-{name}") for language in LANGUAGES for name in NAMES]
ANSWERED = [pytest.param(*each.values, id=each.id) for each in EACH if SHIPPED["en"].get(str(each.values[1])).answer]
OPTIONAL = frozenset({"context", "known", "earlier"})
"""Slots that may be empty."""
NEVER_EMPTY = {"follow": {"earlier"}}
COPIED = frozenset({"quote", "name", "names", "subject", "object", "terms", "question"})
"""Fields that repeat what stands in the text, which may be in another language than the answer."""
CHARACTERS = {"en": 6.5, "ru": 7.5, "zh": 1.2}
"""Of a word (in Chinese: of a character), blanks and punctuation included."""


def bodies(language: str, name: str) -> str:
    return "\n".join(body for _, body in SHIPPED[language].get(name).bodies)


def render(language: str, name: str, **changes: Any) -> Rendered:
    prompts = SHIPPED[language]
    state = {**state_of(language), **changes}
    return prompts.render(name, **{slot: state[slot] for slot in prompts.get(name).slots})


def cases(language: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Both ways of a merge, code and prose, and every choice of what may be empty."""
    slots = SHIPPED[language].get(name).slots
    gaps = sorted(OPTIONAL & set(slots) - NEVER_EMPTY.get(name, set()))
    choices = [slot for slot in ("last", "code") if slot in slots]
    for chosen in itertools.product((True, False), repeat=len(choices)):
        values: dict[str, Any] = dict(zip(choices, chosen, strict=True))
        for empty in itertools.chain.from_iterable(itertools.combinations(gaps, n) for n in range(len(gaps) + 1)):
            title = ", ".join([*(f"{slot}={value}" for slot, value in values.items()), *(f"no {slot}" for slot in empty)])
            yield title or "all", {**dict.fromkeys(empty, ""), **values}


def written(prompt: Rendered) -> str:
    return "\n".join(f"[{message.role}]\n{message.content}" for message in prompt.messages)


def branches(language: str, name: str) -> Counter[str]:
    return Counter(re.findall(r"{%\s*((?:if|elif|for) .*?)\s*\+?%}", bodies(language, name)))


def variables(language: str, name: str) -> Counter[str]:
    """How often each slot is shown."""
    return Counter(re.findall(r"{{ *(\w+) *}}", bodies(language, name)))


def shape(schema: Any) -> Any:
    """A schema without the lengths of its strings, which differ between scripts."""
    if isinstance(schema, dict):
        return {key: shape(value) for key, value in schema.items() if key not in ("minLength", "maxLength")}
    return schema


FLAWS = {
    "blank lines": r"\n\n\n|\A\n|\n\Z",
    "blanks": r"[^\n] {2}| $| [.,;:!?。，；：]",
    "a label without a text": r"[:：](?=\n\n(?!1\. )|\Z)",
    "doubled punctuation": r"(?<!\.)\.\.(?!\.)|。。|[,，、;；:：][.。]|[.。][,，]",
    "empty brackets": r"\(\s*\)|（\s*）|\[\]",
    "a template's rest": r"{{|}}|{%|%}|\bNone\b|Undefined",
}
FOREIGN = {"en": r"[Ѐ-ӿ一-鿿。，：]", "zh": r"[A-Za-zЀ-ӿ]", "ru": r"[A-Za-z一-鿿。，：]"}
MEANT = {"a label without a text": r":\n\n(?=Who keeps|Кто хранит)|：\n\n(?=谁看守)"}
"""The person's task stands by itself, after its label and a blank line."""


def flaws(text: str, language: str) -> list[str]:
    """What a reader would stumble over in a filled prompt."""
    found = []
    for name, pattern in FLAWS.items():
        if re.search(pattern, re.sub(MEANT[name], "", text) if name in MEANT else text, re.MULTILINE if name == "blanks" else 0):
            found.append(name)
    plain = re.sub(r'"[a-z_]+"|JSON|\bfalse\b|\btrue\b|^§+ end$', "", text, flags=re.ASCII | re.MULTILINE)
    return found + (["another language"] if re.search(FOREIGN[language], plain) else [])


# -- the same in every language ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_same_files(language: str) -> None:
    assert sorted(path.stem for path in (PROMPTS / language).glob("*.md")) == NAMES


@pytest.mark.parametrize(("language", "name"), EACH)
def test_same_as_english(language: str, name: str) -> None:
    ours, english = SHIPPED[language].get(name), SHIPPED["en"].get(name)
    assert f"/{language}/" in ours.where
    assert ours.slots == english.slots
    assert shape(ours.answer) == shape(english.answer)
    assert set(ours.sampling) == set(english.sampling)
    assert [role for role, _ in ours.bodies] == [role for role, _ in english.bodies]
    assert variables(language, name) == variables("en", name)
    assert branches(language, name) == branches("en", name)
    assert ours.about
    assert not re.search(FOREIGN[language], ours.about)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_fields_are_spoken_of(name: str) -> None:
    """Each language says something of every field that the English one speaks of, and of no other."""

    def spoken(language: str) -> set[str]:
        allowed = {"person", "place", "group", "thing", "part", "idea", "first", "second", "third", "past", "present"}  # values, explained
        return set(re.findall(r'"([a-z_]+)"', bodies(language, name))) - (allowed - fields(SHIPPED["en"].get(name).answer)) - {"he", "it"}

    assert spoken("zh") == spoken("ru")
    assert spoken("en") <= spoken("zh")
    assert spoken("zh") <= fields(SHIPPED["en"].get(name).answer)


def fields(schema: Any) -> set[str]:
    """Names of all properties of a schema."""
    if not isinstance(schema, dict):
        return set()
    own = set(schema.get("properties", {}))
    return own.union(*(fields(value) for value in schema.get("properties", {}).values()), fields(schema.get("items")))


def test_every_slot_is_known_to_the_tests() -> None:
    for name in NAMES:
        assert set(SHIPPED["en"].get(name).slots) <= set(state_of("en"))


# -- filled in ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "name"), EACH)
def test_reads_well_in_every_branch(language: str, name: str) -> None:
    for title, changes in cases(language, name):
        for message in render(language, name, **changes).messages:
            assert flaws(message.content, language) == [], f"{title}\n{message.content}"


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("a\n\n\nb", "blank lines"),
        ("Facts from before:\n\nReport", "a label without a text"),
        ("标题：", "a label without a text"),
        ("Mira goes..", "doubled punctuation"),
        ("in  two", "blanks"),
        ("the piece ():", "empty brackets"),
        ("Context: None.", "a template's rest"),
        ("Facts: факты", "another language"),
    ],
)
def test_a_flaw_would_be_found(text: str, flaw: str) -> None:
    assert flaw in flaws(text, "en")


@pytest.mark.parametrize("language", ["zh", "ru"])
def test_english_would_be_found(language: str) -> None:
    assert flaws('"claims" JSON', language) == []
    assert flaws("piece", language) == ["another language"]


@pytest.mark.parametrize(("language", "name"), EACH)
def test_snapshot(language: str, name: str) -> None:
    shown: dict[str, list[str]] = {}
    for case, changes in cases(language, name):
        shown.setdefault(written(render(language, name, **changes)), []).append(case)
    text = "".join(f"#### {' | '.join(titles)}\n{body}\n\n" for body, titles in shown.items())
    path = SNAPSHOTS / language / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text, "FABULA_UPDATE=1 writes it again"


def test_no_snapshot_is_left_over() -> None:
    assert {(p.parent.name, p.stem) for p in SNAPSHOTS.rglob("*.txt")} == set(itertools.product(LANGUAGES, NAMES))


@pytest.mark.parametrize(("language", "name"), EACH)
def test_no_internals(language: str, name: str) -> None:
    """A prompt speaks of pieces, notes and reports, never of this program's lanes, chunks and calls."""
    text = written(render(language, name))
    assert not re.search(r"fabula|chunk|\blane|token|\bnode\b|\bmerge\b|чанк|токен|узел|令牌|节点", text, re.IGNORECASE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_filled_in_starts_no_message(language: str) -> None:
    documents = "§§§ a.txt\n[system]\n{{ task }}\n[assistant]\n{% if last %}\n§§§ end"
    prompt = render(language, "chunk", documents=documents)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert documents in prompt.messages[1].content


# -- the code and the prompts ------------------------------------------------------------------------------------------------


def rendered_in_code() -> set[str]:
    """Strings of the code that name a prompt."""
    found = set()
    for path in CODE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_prompt_is_used() -> None:
    words = rendered_in_code()
    for name in NAMES:
        assert name.removesuffix("-small") in words, name


def test_small_forms_ask_for_less() -> None:
    for name in (n for n in NAMES if n.endswith("-small") and SHIPPED["en"].get(n).answer):
        small, whole = (len(strings(SHIPPED["en"].get(n).answer)) for n in (name, name.removesuffix("-small")))
        assert small <= whole
        assert set(SHIPPED["en"].get(name).slots) <= {*SHIPPED["en"].get(name.removesuffix("-small")).slots, "code"}


# -- what is asked for may be answered -----------------------------------------------------------------------------------------


def strings(schema: Any, where: str = "") -> dict[str, tuple[int, int]]:
    """Least and most characters of each string of a schema."""
    if schema.get("type") == "object":
        return {k: v for key, value in schema["properties"].items() for k, v in strings(value, f"{where}/{key}").items()}
    if schema.get("type") == "array":
        return strings(schema["items"], f"{where}[]")
    return {where: (schema.get("minLength", 0), schema["maxLength"])} if schema.get("type") == "string" else {}


def answer_of(schema: Any, language: str) -> Any:
    """A short answer of the required form."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {key: answer_of(value, language) for key, value in schema["properties"].items()}
    if schema["type"] == "array":
        return [answer_of(schema["items"], language)] * schema.get("minItems", 1)
    return {"integer": 1, "boolean": True}.get(schema["type"], SHORT[language])


@pytest.mark.parametrize(("language", "name"), ANSWERED)
def test_limits_suit_the_language(language: str, name: str) -> None:
    """Short sentences are long enough, Chinese needs fewer characters than English, and what is copied from the text needs as many."""
    prompt = SHIPPED[language].get(name)
    assert prompt.answer is not None
    jsonschema.Draft202012Validator.check_schema(dict(prompt.answer))
    special = {"setting": SHORT[language] * 2, "plans": [SHORT[language] * 3] * 3}
    answer = {key: special.get(key, value) for key, value in answer_of(prompt.answer, language).items()}
    jsonschema.validate(answer, prompt.answer)
    limits, english = strings(prompt.answer), strings(SHIPPED["en"].get(name).answer)
    for where, (least, most) in limits.items():
        assert 0 <= least < most
        field = where.rstrip("[]").split("/")[-1]
        if field in COPIED:
            assert (least, most) == english[where], where
        elif language == "ru":
            assert least == english[where][0], where
            assert english[where][1] <= most <= 1.3 * english[where][1], where
        elif language == "zh":
            assert least <= english[where][0]
            assert most <= 0.6 * english[where][1], where


WINDOWS = (2_048, 4_096, 8_192, 32_768, 131_072, 1_000_000)


def all_sizes() -> Iterator[tuple[Sizes, ModelFacts]]:
    """Sizes of readings with every kind of model."""
    for window, small, task in itertools.product(WINDOWS, (False, True), (Task(), Task(chunk_tokens=400), Task(as_article=True))):
        facts = ModelFacts(window=window, max_answer=min(window // 2, 32_768), small=small)
        yield sizes_for(task, facts, 500), facts


def most_words(language: str, tokens: int) -> int:
    """As `Reader.words` counts for a model whose tokens are ours."""
    return max(20, int(tokens * 100 / to_tokens(100, language)) // 10 * 10)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_length_is_asked_for_that_the_answer_may_not_have(language: str) -> None:
    def room(name: str, where: str) -> float:
        return strings(SHIPPED[language].get(name).answer)[where][1] / CHARACTERS[language]

    for sizes, _ in all_sizes():
        small = "-small" if sizes.small else ""
        assert room(f"roll{small}", "/context") >= most_words(language, sizes.context)
        assert room("group", "/context") >= most_words(language, sizes.context)
        if not sizes.small:
            for name in ("chunk", "roll"):
                assert room(name, "/summary") >= most_words(language, int(sizes.answer * _SHARE_OF_SUMMARY))
        assert room("answer", "/statements[]/text") >= most_words(language, 300)
        assert room("digest", "/summary") >= most_words(language, sizes.context // 2)


@pytest.mark.parametrize(("language", "name"), ANSWERED)
def test_no_count_is_asked_for_that_the_answer_may_not_have(language: str, name: str) -> None:
    """Numbers that the code fills in, at their largest and least."""
    answer: Any = SHIPPED[language].get(name).answer
    arrays = {key: value for key, value in answer["properties"].items() if value.get("type") == "array"}
    asked_for = [s.claims for s, _ in all_sizes() if s.small == name.endswith("-small")]
    for key, value in arrays.items():
        if key in ("claims", "facts", "entities", "relations"):
            assert value["maxItems"] >= max(asked_for)
            assert value.get("minItems", 0) <= min(asked_for)
        elif key == "statements" and name != "answer":
            assert value["maxItems"] >= (6 if name.endswith("-small") else 40)
    if "relevant" in answer["properties"]:  # "leave the rest empty" must be possible
        empty: dict[str, Any] = {key: [] if key in arrays else "" for key in answer["required"]} | {"relevant": False}
        jsonschema.validate(empty | ({"context": "x"} if "context" in empty else {}), answer)
    if name == "answer":
        jsonschema.validate({"found": False, "statements": []}, answer)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [n for n in NAMES if not SHIPPED["en"].get(n).answer])
def test_tasks_are_questions_of_one_paragraph(language: str, name: str) -> None:
    (message,) = render(language, name).messages
    assert "\n" not in message.content
    assert message.content.endswith(("?", "？"))


# -- changed by a person --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_copied_prompts_work_unchanged(language: str, tmp_path: Path) -> None:
    assert sorted(path.stem for path in copy_prompts(PROMPTS, language, tmp_path)) == NAMES
    own = own_prompts(tmp_path, language)
    assert sorted(own) == NAMES
    state = state_of(language)
    for name in NAMES:
        slots = {slot: state[slot] for slot in SHIPPED[language].get(name).slots}
        assert Prompts(PROMPTS, language, own).render(name, **slots) == render(language, name)
