"""Real processes: signals, kill -9, two at once, closed pipes, a terminal.

The model answers slowly, so that there is something to interrupt."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Fabula

PROGRAM = [sys.executable, "-m", "tests.cli.program"]
ROOT = Path(__file__).parents[2]
PREMISE = "A lighthouse keeper finds a letter."
LONG = 300.0
"""Seconds after which something hangs, also on a machine with other work."""


def environment(home: Path, delay: float = 0.004) -> dict[str, str]:
    settings = {"FABULA_LIBRARY": str(home / "novels.db"), "FABULA_TEST_DELAY": str(delay)}
    return {**os.environ, **settings, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}


def start(home: Path, *arguments: str, reads: bool = False) -> subprocess.Popen[str]:
    """`reads`: the test reads stdout; else nobody does, and the process must not wait for that."""
    out = subprocess.PIPE if reads else subprocess.DEVNULL
    return subprocess.Popen(
        [*PROGRAM, *arguments], cwd=home, env=environment(home), stdout=out, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def read_until(stream: object, wanted: str) -> str:
    """Lines of a stream up to the one that holds the words."""
    seen = ""
    for line in stream:  # type: ignore[attr-defined]
        seen += str(line)
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} never came: {seen}")


def test_the_first_signal_stops_cleanly_and_the_run_goes_on(fabula: Fabula, home: Path) -> None:
    with start(home, "write", PREMISE, "--auto", "--words", "20000") as process:
        said = read_until(process.stderr, "step 2")
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=LONG)
    assert process.returncode == 130, rest
    run = re.findall(r"Run (\w+)", said)[0]
    assert f"fabula runs resume {run}" in rest
    assert "Traceback" not in rest
    before = fabula("runs", "show", run, "--json").json
    assert before["passages"] >= 1
    done = fabula("runs", "resume", run, "--steps", "1", "--json")
    assert done.code == 0, done.err
    assert fabula("runs", "show", run, "--text").out.startswith(before["text"])
    assert fabula("runs", "replay", run).code == 0


def test_sigterm_likewise_and_with_json_one_object(home: Path) -> None:
    with start(home, "write", PREMISE, "--json", "--words", "20000", reads=True) as process:
        read_until(process.stderr, "step 1")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LONG)
    assert process.returncode == 130
    told = json.loads(out)
    assert told["error"]["code"] == "interrupted"
    assert told["usage"]["calls"] >= 1


def test_the_second_signal_ends_at_once(home: Path) -> None:
    with start(home, "write", PREMISE, "--auto", "--words", "20000") as process:
        read_until(process.stderr, "Run ")
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG)
    assert process.returncode == 130


def test_killed_and_resumed(fabula: Fabula, home: Path) -> None:
    with start(home, "write", PREMISE, "--auto", "--words", "20000") as process:
        said = read_until(process.stderr, "step 2")
        time.sleep(0.2)
        process.kill()
        process.communicate(timeout=LONG)
    run = re.findall(r"Run (\w+)", said)[0]
    before = fabula("runs", "show", run, "--json").json
    assert before["passages"] >= 1
    done = fabula("runs", "resume", run, "--steps", "1", "--json")
    assert done.code == 0, done.err
    assert done.json["passages"] == before["passages"] + 1
    assert fabula("runs", "replay", run).code == 0
    assert fabula("doctor").code == 0


def test_two_processes_on_one_run(fabula: Fabula, home: Path) -> None:
    with start(home, "write", PREMISE, "--auto", "--words", "20000") as process:
        said = read_until(process.stderr, "step 2")
        run = re.findall(r"Run (\w+)", said)[0]
        refused = fabula("runs", "resume", run, "--steps", "1")
        assert refused.code == 1
        assert f"held by process {process.pid}" in refused.err
        assert f"held by process {process.pid}" in fabula("runs", "list").out
        left = fabula("memory", "edit", run, "It never stops raining.", "--note", "--json")
        assert left.json == {"run": run, "done": False, "left_for_holder": True}
        assert f"process {process.pid}" in fabula("memory", "add", run, "Mira owns the third key.").out
        for _ in range(200):  # lines; after two more steps it was taken in
            if fabula("runs", "show", run, "--json").json["note"]:
                break
        read_until(process.stderr, "step ")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG)
    shown = fabula("runs", "show", run, "--json").json
    assert shown["note"] == "It never stops raining."
    assert "Mira owns the third key." in [memory["text"] for memory in shown["memories"]]
    assert fabula("runs", "resume", run, "--steps", "1").code == 0
    prompts = json.dumps(fabula("runs", "trace", run, "--json").json["calls"])
    assert "It never stops raining." in prompts


def test_a_closed_pipe_is_no_drama(fabula: Fabula, home: Path, story: str) -> None:
    for _ in range(6):
        fabula("runs", "resume", story, "--steps", "1")
    export = f"{sys.executable} -m tests.cli.program runs export {story} --jsonl - | {sys.executable} -c 'input()'"
    command = ["bash", "-c", f"set -o pipefail; {export}"]
    done = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, timeout=LONG)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == 1


def test_a_story_whose_reader_leaves_can_be_resumed(fabula: Fabula, home: Path) -> None:
    with start(home, "write", PREMISE, "--auto", "--words", "20000", reads=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        process.wait(LONG)
    assert process.returncode == 1
    assert "Traceback" not in said
    run = re.findall(r"fabula runs resume (\w+)", said)[-1]
    assert fabula("runs", "resume", run, "--steps", "1").code == 0


@pytest.mark.skipif(os.name == "nt", reason="terminals of this kind are not on Windows")
def test_at_a_terminal(home: Path) -> None:
    """A status line that moves, Chinese, the prompt with its echo; Ctrl-C there ends with 130."""
    import pty
    import select
    import termios

    parent, child = pty.openpty()
    settings = {**environment(home, 0.0), "TERM": "xterm-256color", "COLUMNS": "60", "LINES": "24"}
    settings.pop("NO_COLOR", None)
    command = [*PROGRAM, "write", "灯塔看守人收到一封没有署名的信。"]
    seen, until = b"", time.monotonic() + LONG
    with subprocess.Popen(command, cwd=home, env=settings, stdin=child, stdout=child, stderr=child, start_new_session=True) as process:

        def more() -> bytes:
            return os.read(parent, 4096) if select.select([parent], [], [], 0.2)[0] else b""

        while b"fabula> " not in seen and time.monotonic() < until:
            seen += more()
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        while process.poll() is None and time.monotonic() < until:
            seen += more()
            if time.monotonic() - sent > 1:  # a signal between the prompt and the waiting for a key is seen with the next key
                sent = time.monotonic()
                os.write(parent, b"\r")
        seen += more()
    echo = termios.tcgetattr(parent)[3] & termios.ECHO
    os.close(parent)
    os.close(child)
    text = seen.decode("utf-8", "replace")
    assert process.returncode == 130, text
    assert echo, "what is typed is shown again"
    assert re.search(r"`fabula runs resume \w+`", text), "a command is not broken over two lines"
    assert "\x1b[2m" in text
    assert "字" in text
