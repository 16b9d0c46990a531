"""Git addresses: real repositories on this machine, read through git itself; what goes wrong is said, and no secret is kept."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, NotFound
from fabula.read import _git
from fabula.read._git import Address, open_repository, parse_address
from fabula.read._ignore import Rules
from fabula.read._sources import SourceOptions, open_source
from tests.read.test_sources import names, read, write


@pytest.fixture(autouse=True)
def _own_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set-up of git that knows nobody, and a folder for copies that can be looked into."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[user]\n name = M\n email = m@example.org\n[init]\n defaultBranch = main\n[protocol "file"]\n allow = always\n'
    )
    for key, value in {"HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(key, value)
    for key in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(key, raising=False)
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout.strip()


def repository(root: Path, files: dict[str, str | bytes]) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "--quiet")
    return commit(root, files)


def commit(root: Path, files: dict[str, str | bytes]) -> Path:
    write(root, files)
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--message", "x")
    return root


def copies(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "copies").iterdir()]


def test_a_repository_by_its_address(tmp_path: Path) -> None:
    root = repository(tmp_path / "книга", {"b.md": "# Глава", "a/第一章.txt": "米拉", "old.txt": "old", "a b.py": "x = 1\r\n"})
    commit(root, {"old.txt": "new"})
    documents, skipped, source = read(root.as_uri())
    assert {name: document.text for name, document in documents.items()} == {
        "a b.py": "x = 1\n", "a/第一章.txt": "米拉", "b.md": "# Глава", "old.txt": "new",
    }  # fmt: skip
    assert (source.name, source.commit, skipped) == ("книга", git(root, "rev-parse", "HEAD"), {})
    assert copies(tmp_path) == []


def test_branches_and_tags(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "main"})
    git(root, "checkout", "--quiet", "-b", "feature/x")
    commit(root, {"a.txt": "branch"})
    git(root, "tag", "v1")
    git(root, "checkout", "--quiet", "main")
    commit(root, {"b.txt": "x"})
    for branch, text in (("", "main"), ("main", "main"), ("feature/x", "branch"), ("v1", "branch")):
        documents, _, source = read(root.as_uri(), branch=branch)
        assert documents["a.txt"].text == text
        assert source.commit == git(root, "rev-parse", f"{branch or 'HEAD'}^{{commit}}")
    assert read(root, branch="feature/x")[0]["a.txt"].text == "branch"
    with pytest.raises(InputError, match=r"it has no branch or tag 'nothing'") as caught:
        read(root.as_uri(), branch="nothing")
    assert "--branch" in caught.value.next_action
    for bad in ("-x", "--upload-pack=touch x", "a b", "x^", "a:b"):
        with pytest.raises(InputError, match="no name of a branch"):
            read(root.as_uri(), branch=bad)
    assert copies(tmp_path) == []


def test_a_repository_without_a_work_tree(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x"})
    bare = tmp_path / "bare repo.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(root), str(bare))
    documents, _, source = read(bare)
    assert (list(documents), source.name, source.where) == (["a.txt"], "bare repo", str(bare))
    assert source.commit == git(root, "rev-parse", "HEAD")
    assert read(root / ".git")[2].name == "r"


def test_a_work_tree_is_read_as_a_folder(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x", ".gitignore": "*.log\n"})
    write(root, {"new.txt": "x", "b.log": "x"})
    documents, skipped, source = read(root)
    assert (list(documents), source.commit) == (["a.txt", "new.txt"], "")
    assert {"b.log", ".git/"} <= set(skipped)


def test_what_a_repository_holds_besides_files(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"x.txt": "x"})
    root = repository(tmp_path / "r", {"a.txt": "x"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "lib/inner")
    (root / "link").symlink_to("/etc/passwd")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    commit(
        root,
        {
            "film.txt": pointer,
            "b.bin": b"\0" * 9,
            "node_modules/a/b.js": "x",
            "node_modules/c.js": "x",
            ".env": "x",
            "x/.gitignore": "*.txt",
            "x/kept.txt": "x",
        },
    )
    documents, skipped, _ = read(root.as_uri())
    assert list(documents) == ["a.txt", "x/kept.txt"]
    assert skipped["lib/inner/"] == "It is a submodule, which is a repository of its own."
    assert skipped["link"] == "It is a link."
    assert skipped["film.txt"].startswith("It is a Git LFS pointer")
    assert skipped["node_modules/"] == "It is packages that were installed (2 files)."
    assert "secret" in skipped[".env"]
    assert skipped["b.bin"] == "It is not a text file."


def test_rules_in_a_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {
        ".fabulaignore": "drafts/\n", "drafts/a.txt": "x", "b/.fabulaignore": "*.tmp\n", "b/x.tmp": "x", "b/c.txt": "x", "d.tmp": "x",
        "docs/e.txt": "x", "README.md": "x",
    })  # fmt: skip
    documents, skipped, _ = read(root.as_uri(), exclude=("d.*",), docs=False, readme=False)
    assert list(documents) == ["b/c.txt"]
    assert skipped["drafts/"] == "It is ignored by .fabulaignore (drafts/) (1 file)."
    assert skipped["b/x.tmp"] == "It is ignored by b/.fabulaignore (*.tmp)."
    assert skipped["docs/"] == "It is documentation (--no-docs) (1 file)."
    _, skipped, _ = read(root.as_uri(), max_file_bytes=3, max_files=2)
    assert len([why for why in skipped.values() if "--max-files" in why]) == 2


def test_no_check_out_runs_nothing(tmp_path: Path) -> None:
    """A repository may ask for filters, and names of files may be hostile: nothing of it is ever written or run."""
    root = repository(tmp_path / "r", {"a.txt": "x", ".gitattributes": "* filter=evil\n"})
    mark = tmp_path / "ran"
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write(f'[filter "evil"]\n smudge = "touch {mark}; cat"\n[core]\n hooksPath = {tmp_path}/hooks\n')
    hook = write(tmp_path, {"hooks/post-checkout": f"#!/bin/sh\ntouch {mark}\n"}) / "hooks" / "post-checkout"
    hook.chmod(stat.S_IRWXU)
    assert names(root.as_uri()) == ["a.txt"]
    assert not mark.exists()


@pytest.mark.parametrize(
    ("where", "shown", "name", "plain"),
    [
        ("https://example.org/a/b.git", "https://example.org/a/b.git", "b", "https://example.org/a/b.git"),
        ("https://me:s3cret@example.org:8443/a/b/", "https://example.org:8443/a/b/", "b", "https://example.org:8443/a/b/"),
        ("https://t0ken@example.org/a/b?x=y#z", "https://example.org/a/b", "b", "https://example.org/a/b?x=y"),
        ("ssh://git@example.org:22/a/b.git", "ssh://example.org:22/a/b.git", "b", "ssh://git@example.org:22/a/b.git"),
        ("git@example.org:a/b.git", "example.org:a/b.git", "b", "git@example.org:a/b.git"),
        ("example.org:b", "example.org:b", "b", "example.org:b"),
        ("https://[::1]:8080/a", "https://[::1]:8080/a", "a", "https://[::1]:8080/a"),
        ("file:///srv/%D0%BA.git", "file:///srv/%D0%BA.git", "к", "file:///srv/%D0%BA.git"),
    ],
)  # fmt: skip
def test_addresses(where: str, shown: str, name: str, plain: str) -> None:
    found = parse_address(where)
    assert found is not None
    assert (found.shown, found.name, found.plain) == (shown, name, plain)
    assert bool(found.secret) == ("s3cret" in where or "t0ken" in where)


@pytest.mark.parametrize("where", ["a.txt", "folder/a:b", "C:\\book", "C:/book", "a:b", "book", "./x.y:z/a"])
def test_what_is_no_address(where: str) -> None:
    assert parse_address(where) is None


@pytest.mark.parametrize(
    "where",
    [
        "ext::sh -c touch% x",
        "ftp://example.org/x",
        "https:///x",
        "https://-oProxyCommand=x/y",
        "fd::17",
        "https://[::1/x",
        "javascript://x/y",
    ],
)
def test_addresses_that_are_refused(where: str) -> None:
    with pytest.raises(InputError) as caught:
        read(where)
    assert "://" in caught.value.next_action


@pytest.mark.parametrize("where", ["-oProxyCommand=touch", "--upload-pack=touch"])
def test_options_are_no_addresses(where: str) -> None:
    with pytest.raises(NotFound, match="There is no file or folder"):
        read(where)


def test_no_repository_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no repository, or it is private") as caught:
        read((tmp_path / "nothing").as_uri())
    assert "git clone" in caught.value.next_action
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    with pytest.raises(InputError, match="has no commit yet"):
        read((tmp_path / "empty").as_uri())
    nothing = repository(tmp_path / "bin", {"a.bin": b"\0"})
    with pytest.raises(InputError, match="Nothing in bin can be read: 1 entry is skipped"):
        read(nothing.as_uri())
    assert copies(tmp_path) == []


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("fatal: Authentication failed for 'https://h/x'", "git has no access to it"),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "git has no access to it"),
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "git has no access to it"),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", "it cannot be reached over the network"),
        ("ssh: connect to host h port 22: Connection refused", "it cannot be reached over the network"),
        ("remote: Repository not found.\nfatal: repository 'https://h/' not found", "there is no repository, or it is private"),
        ("fatal: detected dubious ownership in repository at '/x'", "it belongs to another user"),
        ("fatal: something new", "something new"),
    ],
)  # fmt: skip
def test_what_git_says_is_told_in_words(monkeypatch: pytest.MonkeyPatch, said: str, message: str) -> None:
    monkeypatch.setattr(_git, "_watched", lambda command, environment: (128, said))
    with pytest.raises(InputError, match="h/x cannot be read") as caught:
        read("https://h/x")
    assert message in caught.value.message
    assert caught.value.next_action


def test_a_secret_reaches_neither_arguments_nor_errors_nor_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address with the token goes through git's environment, which rewrites the plain one that is in the arguments."""
    seen: list[Any] = []
    root = repository(tmp_path / "r", {"a.txt": "x"})
    real = _git._watched

    def watched(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        seen.append((command, environment))
        if len(seen) > 1:
            return 128, "fatal: unable to access 'https://me:p%40ssw0rd@h.org/r/': error 500; p@ssw0rd"
        plain = command[command.index("--") + 1]
        assert plain == "https://h.org/r"
        environment = {**environment, "GIT_CONFIG_VALUE_1": "", "GIT_CONFIG_KEY_1": f"url.{root.as_uri()}.insteadOf"}
        return real(command, {**environment, "GIT_CONFIG_VALUE_1": plain})

    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.abbrev")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "12")
    monkeypatch.setattr(_git, "_watched", watched)
    documents, _, source = read("https://me:p%40ssw0rd@h.org/r")
    assert (list(documents), source.where, source.name) == (["a.txt"], "https://h.org/r", "r")
    command, environment = seen[0]
    assert "p%40ssw0rd" not in " ".join(command)
    assert environment["GIT_CONFIG_COUNT"] == "2"
    assert environment["GIT_CONFIG_KEY_0"] == "core.abbrev"
    assert environment["GIT_CONFIG_KEY_1"] == "url.https://me:p%40ssw0rd@h.org/r.insteadOf"
    with pytest.raises(InputError) as caught:
        read("https://me:p%40ssw0rd@h.org/r")
    assert "ssw0rd" not in repr((caught.value.as_dict(), caught.value.args))


def test_the_persons_own_rewriting_holds(tmp_path: Path) -> None:
    """`insteadOf` of the person's own set-up, as for private servers."""
    repository(tmp_path / "srv" / "r", {"a.txt": "x"})
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write(f'[url "{(tmp_path / "srv").as_uri()}/"]\n insteadOf = https://private.example/\n')
    documents, _, source = read("https://private.example/r")
    assert (list(documents), source.where) == (["a.txt"], "https://private.example/r")


def test_git_asks_nothing_and_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/somewhere")
    monkeypatch.setenv("SSH_ASKPASS", "/bin/window")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    environment = _git._environment(Address("h:x", "x", "git@h.org:x", ""))
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["GIT_SSH_COMMAND"].startswith("ssh -i key -o BatchMode=yes")
    assert not {"GIT_DIR", "SSH_ASKPASS"} & set(environment)
    assert "ext" not in environment["GIT_ALLOW_PROTOCOL"].split(":")


def test_ssh_set_up_in_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh that is a script: it is asked in batch mode, and what it says is told."""
    script = tmp_path / "myssh"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho "Permission denied (publickey)." >&2\nexit 255\n')
    script.chmod(stat.S_IRWXU)
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    monkeypatch.delenv("GIT_SSH", raising=False)
    git(tmp_path, "config", "--global", "core.sshCommand", str(script))
    with pytest.raises(InputError, match="git has no access to it"):
        read("git@private.example:a/b.git")
    assert "BatchMode=yes" in (tmp_path / "asked").read_text()


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="git is not installed"):
        read("https://example.org/x")
    assert copies(tmp_path) == []


def test_the_copy_goes_whatever_the_end_is(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x", "b.txt": "y"})

    def begin_and_raise(end: type[BaseException]) -> None:
        with open_source(root.as_uri()) as source:
            next(source.documents())
            assert copies(tmp_path)
            raise end("x")

    for end in (KeyboardInterrupt, RuntimeError, InputError):
        with pytest.raises(end):
            begin_and_raise(end)
        assert copies(tmp_path) == []


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be fetched does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_interruption_while_git_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during a copy that would take for ever ends git and its children, and leaves nothing."""
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 60 & echo $! >> {tmp_path}/pid\nwait\n")
    tool.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")

    def interrupt() -> None:
        for _ in range(1000):
            if (tmp_path / "pid").exists() and len((tmp_path / "pid").read_text().split()) == 2:
                break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        read("https://example.org/x")
    thread.join()
    for pid in map(int, (tmp_path / "pid").read_text().split()):
        waits = iter(range(500))
        while alive(pid) and next(waits, None) is not None:
            time.sleep(0.01)
        assert not alive(pid)
    assert copies(tmp_path) == []


def test_a_damaged_object(tmp_path: Path) -> None:
    """An object that git cannot give is a reason, not a crash."""
    root = repository(tmp_path / "r", {"a.txt": "x", "b.txt": "y" * 99})
    address = Address("x", "r", root.as_uri(), "")
    with open_repository(address, "", Rules()) as opened:
        entries = {entry.path: entry for entry in opened.entries(lambda *_: None)}
        assert set(entries) == {"a.txt", "b.txt"}
    with open_repository(address, "", Rules()) as opened:
        shutil.rmtree(opened._folder / "objects")
        with pytest.raises(InputError, match="is damaged"):
            list(opened.entries(lambda *_: None))


def test_a_loop_over_documents_may_end_early(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {f"{number}.txt": "x" * 9999 for number in range(50)})
    with open_source(root.as_uri(), SourceOptions()) as source:
        for document in source.documents():
            assert document.name == "0.txt"
            break
    assert copies(tmp_path) == []
