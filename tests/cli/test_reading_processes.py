"""Reading as a real process: signals, kill -9, a model behind HTTP, a terminal with a person at it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Fabula
from tests.cli.reading import fact, reader, reading, vaults
from tests.cli.test_processes import LONG, PROGRAM, environment, read_until
from tests.read.models import NAMES, Copyist

__all__ = ["reader", "reading"]

READ = ["read", "vaults", "--task", "List the codes.", "--chunk-tokens", "300"]


def reading_environment(home: Path, delay: float) -> dict[str, str]:
    return {**environment(home, delay), "FABULA_TEST_READER": "1", "FABULA_MODEL": "scripted"}


def begin(home: Path, *arguments: str, delay: float = 0.03) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *arguments], cwd=home, env=reading_environment(home, delay), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    )  # fmt: skip


def test_stopped_and_read_on(fabula: Fabula, home: Path, reader: Copyist) -> None:
    vaults(home, 16)
    with begin(home, *READ, "--way", "chain") as process:
        said = read_until(process.stderr, "4 of 16 chunks")
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=LONG)
    run = re.findall(r"Run (\w+)", said)[0]
    assert process.returncode == 130, rest
    assert f"fabula runs resume {run}" in rest
    assert "Traceback" not in rest
    before = fabula("runs", "list", "--json").json["runs"][0]
    assert (before["state"], before["chunks"]) == ("open", 16)
    assert 4 <= before["chunks_read"] < 16
    done = fabula("runs", "resume", run, "--json")
    assert done.code == 0, done.err
    assert done.json["finished"] is True
    assert len(reader.requests) <= 17 - before["chunks_read"], "nothing that was kept is asked again"
    assert fact(15) in done.json["final_summary"]
    assert fabula("runs", "replay", run).code == 0


@contextmanager
def server(home: Path) -> Iterator[tuple[str, Any]]:
    """A model behind HTTP in a process of its own: its address, and how often it was asked."""
    command = [sys.executable, "-m", "fabula.models.test_server", "--seedless"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(home)) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = json.loads(process.stdout.readline())["address"]

        def count() -> int:
            with urllib.request.urlopen(address.removesuffix("/v1") + "/requests") as answer:
                return int(json.load(answer)["count"])

        try:
            yield address, count
        finally:
            process.stdin.close()


def test_a_model_behind_http(fabula: Fabula, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vaults(home)
    arguments = [*READ, "--way", "tree", "--json"]
    with server(home) as (address, asked):
        for name, value in {"FABULA_BASE_URL": address, "FABULA_MODEL": "anything", "FABULA_EMBEDDER": "none"}.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-c", "import sys; from fabula.cli import main; sys.exit(main())", *arguments]
        done = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, timeout=LONG)
        assert done.returncode == 0, done.stderr
        first = json.loads(done.stdout)
        before = asked()
        assert first["usage"]["calls"] == before
        assert first["coverage"]["read"] == first["coverage"]["chunks"] == 8
        assert fabula(*arguments).json["usage"]["calls"] == 0, "another process asks nothing that this one has asked"
        assert asked() == before
        part = folder / "part-05.md"
        part.write_text(part.read_text("utf-8").replace(fact(5), "The vault is open."), "utf-8")
        assert fabula(*arguments).code == 0
        assert before < asked() <= before + 4


# -- a person at a terminal -----------------------------------------------------------------------------------------------------------


def at_terminal(home: Path, arguments: list[str], *talk: tuple[str, str], delay: float = 0.0) -> tuple[int, str]:
    """Run at a terminal of 80 columns; wait for words and type an answer, in turn. Returns the exit code and the screen's bytes."""
    import fcntl
    import pty
    import struct
    import termios

    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    env = {**reading_environment(home, delay), "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=home, env=env, stdin=other, stdout=other, stderr=other, start_new_session=True
    ) as process:
        os.close(other)
        seen = b""
        for words, answer in talk:
            while words.encode() not in seen:
                seen += os.read(main, 65_536)
            os.write(main, answer.encode())
        while True:
            try:
                more = os.read(main, 65_536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
        process.wait(LONG)
    os.close(main)
    return process.returncode, seen.decode("utf-8", "replace")


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")


def test_a_map_of_chunks_at_a_terminal(home: Path) -> None:
    vaults(home, 20)
    code, screen = at_terminal(home, [*READ, "--way", "tree"], delay=0.004)
    assert code == 0, screen
    assert "Go on?" not in screen, "it costs nothing"
    assert "\x1b[1;36m▓" in screen, "chunks light up"
    assert re.search(r"\x1b\[32m█{3,}", screen)
    assert "of 20 chunks" in screen
    assert "calls · " in screen
    assert f"“{fact(19)}”" in screen
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h"), "the cursor is given back"


def test_a_person_is_asked_before_it_costs_money(fabula: Fabula, home: Path, reader: Copyist) -> None:
    (home / "fabula.toml").write_text("[profile]\nprompt_price = 500.0\nanswer_price = 500.0\n")
    vaults(home)
    code, screen = at_terminal(home, [*READ, "--way", "tree"], ("Go on? [Y/n]", "n\n"))
    assert code == 0
    assert re.search(r"Cost.*about \d+\.\d{4}", screen)
    run = re.findall(r"fabula runs resume (\w+)", screen)[0]
    assert fabula("runs", "list", "--json").json["runs"][0]["chunks_read"] == 0
    assert fabula("runs", "resume", run).code == 0, "nobody is there to be asked"


def test_a_conversation_at_a_terminal(home: Path, reading: str) -> None:
    talk = (("An empty line ends.", f"code of {NAMES[1]}\n"), (fact(1), "who painted the wind red\n"), ("does not say", "\n"))
    code, screen = at_terminal(home, ["ask"], *talk)
    assert code == 0, screen
    assert "part-01.md:3" in screen
    assert "Looked at:" in screen
    assert "Ask on:" in screen


def test_a_book_goes_on_at_a_terminal(home: Path) -> None:
    text = "\n\n".join(f"Chapter {n}\n\n{'The wind went over the hills and nobody spoke of it. ' * 60}" for n in range(1, 9))
    (home / "book.txt").write_text(text)
    command = ["write", "--continue", "book.txt", "--words", "100"]
    code, screen = at_terminal(home, command, ("Are these the chapters? [Y/n]", "\n"), ("fabula> ", "q\n"))
    assert code == 0, screen
    assert "Chapter 8" in screen
    assert "Mira opens vault number 2" in screen, "the plans of the next passage"
