"""`fabula write` without a person: stories, files, limits, beginnings of every kind, and mistakes."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.cli._texts import text_of
from fabula.errors import InputError
from fabula.models import SCRIPTED_PROFILE, ModelChoice, Request, Scripted
from tests.cli.conftest import Fabula, prompts

PREMISES = {
    "en": "A lighthouse keeper finds a letter.",
    "zh": "灯塔看守人收到一封没有署名的信。",
    "ru": "Смотритель маяка находит письмо без подписи.",
}


@pytest.mark.parametrize("language", PREMISES)
def test_a_story_to_its_end(fabula: Fabula, home: Path, language: str) -> None:
    done = fabula("write", PREMISES[language], "--words", "220", "--out", "book.md", "--out", "book.txt", "--keep", "kept.md")
    assert done.code == 0, done.err
    run = fabula("runs", "list", "--json").json["runs"][0]
    assert (run["language"], run["state"], run["kind"]) == (language, "finished", "write")
    assert 150 <= run["length"] <= 330
    text = fabula("runs", "show", run["run"], "--text").out.strip()
    assert text.split("\n\n")[0] in done.out, "the story is on stdout as it was written"
    assert "Plan:" not in done.out
    assert "Plan:" in done.err
    for file in ("book.md", "book.txt", "kept.md"):
        assert text.split("\n\n")[-1] in Path(file).read_text("utf-8")
    assert "fabula runs trace" in done.err
    assert ("字" if language == "zh" else "words") in done.err


def test_json_is_one_object(fabula: Fabula) -> None:
    done = fabula("write", PREMISES["en"], "--words", "150", "--json", "--out", "book.epub")
    assert done.code == 0
    assert set(done.json) >= {"run", "title", "language", "length", "unit", "steps", "passages", "finished", "files", "usage"}
    assert done.json["finished"] is True
    assert done.json["usage"]["calls"] > 5
    assert Path(done.json["files"][0]).read_bytes()[:2] == b"PK"


def test_premise_from_stdin_and_file(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    assert fabula("write", "-", "--steps", "1", stdin="A whale in the harbour.\n").code == 0
    Path("premise.txt").write_text(PREMISES["ru"] + "\n", "utf-8")
    assert fabula("write", "@premise.txt", "--steps", "1").code == 0
    assert "A whale in the harbour." in prompts(asked)
    assert PREMISES["ru"] in prompts(asked)
    assert {run["language"] for run in fabula("runs", "list", "--json").json["runs"]} == {"en", "ru"}


def test_a_premise_that_is_not_utf8_is_read_and_that_is_said(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    Path("premise.txt").write_bytes(PREMISES["ru"].encode("cp1251"))
    done = fabula("write", "@premise.txt", "--steps", "1")
    assert done.code == 0, done.err
    assert "premise.txt is not UTF-8; it was read as cp1251." in done.err
    assert PREMISES["ru"] in prompts(asked)


def test_a_premise_in_a_doubtful_encoding_is_refused(fabula: Fabula, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("premise.txt").write_bytes(b"caf\xe9 \x80\x81")
    for arguments in (["@premise.txt"], ["A keeper.", "--memory", "premise.txt"], ["A keeper.", "--outline", "premise.txt"]):
        done = fabula("write", *arguments, "--steps", "1")
        assert done.code == 2, arguments
        assert "Save it as UTF-8" in done.err
    assert not (home / "novels.db").exists()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9 \x80\x81"), "utf-8"))
    with pytest.raises(InputError, match="Standard input is not UTF-8"):
        text_of("-", "the premise")


def test_everything_a_person_gives_reaches_the_model(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    Path("memory.md").write_text("- Mira has the key.\n- The lamp is out.\n")
    Path("setting.md").write_text("An island with one road.\n")
    done = fabula(
        "write", "A keeper.", "--genre", "ghost story", "--title", "Salt", "--style", "dry and short", "--note", "No ghosts are seen.",
        "--cast", "Mira: keeper, 61", "--cast", "Odd", "--setting", "setting.md", "--memory", "memory.md", "--plan",
        "Mira lights the lamp.", "--ending", "The lamp stays out.", "--words", "900", "--step-length", "60-120", "--person", "first",
        "--tense", "present", "--steps", "2", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = prompts(asked)
    for words in (
        "ghost story", "Salt", "dry and short", "No ghosts are seen.", "Mira: keeper, 61", "An island with one road.", "Mira has the key.",
        "Mira lights the lamp.", "present", "60",
    ):  # fmt: skip
        assert words in told, words


def test_limit_stops_with_3_and_says_how_to_go_on(fabula: Fabula) -> None:
    done = fabula("write", PREMISES["en"], "--words", "300", "--max-calls", "4", "--json")
    assert done.code == 3
    assert done.json["error"]["code"] == "limit_reached"
    assert done.json["usage"]["calls"] == 4
    assert "fabula runs resume" in done.err
    run = done.json["run"]
    more = fabula("runs", "resume", run, "--json")
    assert more.code == 0
    assert more.json["finished"] is True


def test_steps_and_resume(fabula: Fabula, story: str) -> None:
    before = fabula("runs", "show", story, "--text").out
    done = fabula("runs", "resume", story, "--steps", "1", "--json")
    assert done.json["steps"] == 4
    assert fabula("write", "--continue", story[:6], "--steps", "1", "--json").json["steps"] == 5
    assert fabula("runs", "show", story, "--text").out.startswith(before.rstrip("\n"))


def test_resume_keeps_the_model_that_wrote(fabula: Fabula, story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FABULA_MODEL")
    done = fabula("runs", "resume", story, "--steps", "1", "--json")
    assert done.code == 0, done.err
    assert fabula("runs", "show", story, "--json").json["model"] == "scripted"


def test_manuscript_is_continued_where_it_fits(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    Path("draft.md").write_text("# Salt\n\nThe lamp had been out for three nights when Mira found the letter under the door.\n")
    done = fabula("write", "--continue", "draft.md", "--steps", "2", "--json")
    assert done.code == 0, done.err
    assert done.json["title"] == "Salt"
    assert "three nights when Mira" in prompts(asked)
    assert fabula("runs", "show", done.json["run"], "--text").out.startswith("The lamp had been out")


def test_own_outline(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    Path("outline.md").write_text("# The lamp\nMira finds the letter.\n\n# The boat\nShe rows out at night.\n")
    done = fabula(
        "write", "A keeper.", "--outline", "outline.md", "--chapter-length", "60", "--step-length", "40-60", "--steps", "4", "--json"
    )
    assert done.code == 0, done.err
    shown = fabula("runs", "show", done.json["run"], "--json").json
    assert [c["title"] for c in shown["chapters"]][:1] == ["The lamp"]
    assert "Mira finds the letter." in prompts(asked)


def test_own_prompts(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    assert fabula("write", "--copy-prompts", "mine").code == 0
    assert "passage.md" in {path.name for path in Path("mine").iterdir()}
    path = Path("mine/passage.md")
    path.write_text(path.read_text("utf-8") + "\nNobody ever says the word sea.\n", "utf-8")
    assert fabula("write", "A keeper.", "--prompts", "mine", "--steps", "2").code == 0
    assert "Nobody ever says the word sea." in prompts(asked)
    assert fabula("write", "A keeper.", "--prompts", "nowhere").code == 2


def test_series_shares_what_a_person_says(fabula: Fabula, home: Path, asked: list[Request]) -> None:
    assert fabula("write", "A keeper.", "--series", "Lamps", "--cast", "Mira: keeper, blind in one eye", "--steps", "1").code == 0
    asked.clear()
    assert fabula("write", "A thief.", "--series", "Lamps", "--steps", "1").code == 0
    assert "blind in one eye" in prompts(asked)


def test_keep_moves_what_a_person_edited_aside(fabula: Fabula, home: Path) -> None:
    done = fabula("write", PREMISES["en"], "--steps", "2", "--keep", "kept.md", "--json")
    Path("kept.md").write_text(Path("kept.md").read_text("utf-8") + "\nMy own last line.\n", "utf-8")
    more = fabula("runs", "resume", done.json["run"], "--steps", "1", "--keep", "kept.md")
    assert more.code == 0, more.err
    assert "edited" in more.err
    assert [path for path in home.glob("kept*.md") if "My own last line." in path.read_text("utf-8") and path.name != "kept.md"]


@pytest.mark.parametrize(
    "option",
    [["--out", "no/such/b.md"], ["--out", "/proc/b.epub"], ["--keep", "no/k.md"], ["--keep", "mine.md"], ["--keep", "kept.txt"]],
)
def test_a_file_that_cannot_be_is_refused_before_anything_is_asked(
    fabula: Fabula, home: Path, asked: list[Request], option: list[str]
) -> None:
    Path("mine.md").write_text("My diary.\n")
    done = fabula("write", "A keeper.", "--series", "Lamps", "--steps", "3", *option)
    assert done.code == 2
    assert option[1] in done.err
    assert asked == []
    assert not (home / "novels.db").exists()
    assert Path("mine.md").read_text() == "My diary.\n"


def test_a_file_that_cannot_be_written_at_the_end_does_not_look_like_bad_input(fabula: Fabula, home: Path) -> None:
    folder = Path("folder")
    folder.mkdir()
    arguments = ["--out", "folder/a.md", "--out", "b.md", "--steps", "2"]
    replace_file = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "a.md":
            raise OSError(28, "No space left on device")
        return replace_file(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", full)
        done = fabula("write", "A keeper.", *arguments)
    assert done.code == 1
    run = fabula("runs", "list", "--json").json["runs"][0]["run"]
    assert f"fabula runs export {run} --out" in done.err
    assert Path("b.md").exists(), "the other file is written all the same"
    assert not Path("folder/a.md").exists()


def test_a_new_library_is_said_once(fabula: Fabula) -> None:
    assert fabula("write", "A keeper.", "--series", "Lamps", "--steps", "1").err.count("New library: ") == 1
    assert "New library" not in fabula("write", "A keeper.", "--steps", "1").err


@pytest.mark.parametrize("setting", ["--model", "--small-model"])
def test_a_limit_of_money_needs_the_price_of_each_model(fabula: Fabula, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    def opens(choice: ModelChoice, **_: object) -> Scripted:
        return Scripted(profile=replace(SCRIPTED_PROFILE, price_known=choice.model != "dear"))

    monkeypatch.setattr("fabula.models.open_model", opens)
    address = ["--base-url", "https://models.example.com/v1", "--embedder", "none"]
    done = fabula("write", "A keeper.", "--model", "cheap", setting, "dear", *address, "--max-money", "1", "--steps", "1")
    assert done.code == 2
    assert "price" in done.err
    assert "--max-tokens" in done.err or "limit tokens" in done.err
    assert fabula("runs", "list", "--json").json["runs"] == []
    assert fabula("write", "A keeper.", "--model", "cheap", *address, "--max-money", "1", "--steps", "1").code == 0


def test_misbehaving_answers_are_refused_and_said(fabula: Fabula) -> None:
    done = fabula("write", PREMISES["en"], "--model", "misbehaving:refusal@0.4", "--words", "200", "--steps", "4")
    assert done.code == 0, done.err
    assert "Not kept" in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["write", ""], "premise is empty"),
        (["write", "x", "--language", "xx"], "language"),
        (["write", "x", "--step-length", "ten"], "200-400"),
        (["write", "x", "--out", "book.pdf"], ".pdf"),
        (["write", "x", "--opening", "missing.md"], "missing.md"),
        (["write", "x", "--cast", ": nobody"], "nobody"),
        (["write", "x", "--model", "rules"], "language model"),
        (["write", "x", "--max-money", "1", "--base-url", "https://models.example.com/v1", "--model", "nobody-knows-it"], "price"),
        (["write", "--continue", "abcdef"], "novels.db"),
        (["write", "x", "--max-calls", "0"], "--max-calls"),
        (["write", "x", "--nonsense"], "--nonsense"),
        (["runs", "show", "abcdef"], "novels.db"),
        (["runs", "trace"], "RUN"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input_ends_with_2_and_a_next_action(fabula: Fabula, arguments: list[str], said: str) -> None:
    done = fabula(*arguments, *(["--auto", "--steps", "1"] if arguments[0] == "write" else []))
    assert done.code == 2, done.err
    assert said in done.err
    assert "→" in done.err
    assert "Traceback" not in done.err
    as_json = fabula(*arguments, "--json")
    assert as_json.code == 2
    assert set(as_json.json["error"]) == {"code", "message", "next_action", "details"}


def test_an_address_without_a_model_is_not_passed_over(fabula: Fabula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FABULA_MODEL")
    done = fabula("write", "x", "--base-url", "http://127.0.0.1:9/v1", "--steps", "1")
    assert done.code == 2
    assert "no model is named" in done.err


def test_unreachable_model_ends_with_1_and_resumes(fabula: Fabula, monkeypatch: pytest.MonkeyPatch) -> None:
    from fabula.errors import Unreachable
    from fabula.models import Scripted

    answers = Scripted({"passage": Unreachable("Nothing answers at 127.0.0.1:9.", retry=False)})
    monkeypatch.setattr("fabula.models.open_model", lambda *_, **__: answers)
    done = fabula("write", PREMISES["en"], "--steps", "3", "--json")
    assert done.code == 1
    assert done.json["error"]["code"] == "unreachable"
    assert done.json["run"]
    monkeypatch.setattr("fabula.models.open_model", lambda *_, **__: Scripted())
    assert fabula("runs", "resume", done.json["run"], "--steps", "1", "--json").json["passages"] == 1


def test_the_unexpected_leaves_its_traceback_in_a_file(fabula: Fabula, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("fabula.opening.open_library", broken)
    done = fabula("runs", "list", "--json")
    assert done.code == 1
    path = Path(done.json["error"]["details"]["traceback"])
    assert "ZeroDivisionError: a secret detail" in path.read_text()
    assert "secret detail" not in done.err
    assert str(path) in done.err
