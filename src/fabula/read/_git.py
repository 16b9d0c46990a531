"""Git addresses, read through the `git` program itself: a shallow copy without a work tree, and the files of one commit.

There is no check-out: no file of the repository is written under its own name, no filter or hook runs, and a link is only a
line of text. The person's own set-up of git applies (credentials, keys, proxies, rewritten addresses); git never asks anything.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

from fabula.errors import InputError, NotFound
from fabula.read._ignore import MOST_RULE_BYTES, OWN_RULES, Rules
from fabula.read._source_entry import Entry, Unreadable, files_word

_SCHEMES = "https", "http", "ssh", "git", "file"
_SCP = re.compile(r"(?P<user>[\w.+~-]+@)?(?P<host>[A-Za-z0-9][\w.-]+|\[[0-9A-Fa-f:.]+\]):(?!:)(?P<path>[^\s:][^\s]*)")
_STALLED = ["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60"]
_LOCAL = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
    "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE", "SSH_ASKPASS",
)  # fmt: skip
"""Set while git runs a hook, or to watch it, or to ask in a window; none may reach the git that reads."""
_NO_ACCESS = (
    r"Authentication failed|could not read (?:Username|Password)|Permission denied|terminal prompts disabled|Host key verification"
    r"|error: 40[13]|access denied|Invalid username or (?:password|token)"
)
_NO_NETWORK = (
    r"Could not resolve|Failed to connect|Couldn't connect|Connection (?:timed out|refused|reset)|Network is unreachable|too slow"
    r"|timed out|No route to host|early EOF|RPC failed|hung up unexpectedly"
)
_NO_REPOSITORY = r"not found|does not exist|does not appear to be a git repository|error: 404|not a git repository"
_FAULTS = [
    (r"Remote branch .* not found", "it has no branch or tag {branch!r}", "Name one that it has with --branch."),
    (r"dubious ownership", "it belongs to another user, and git refuses it", "Allow it with `git config --global --add safe.directory`."),
    (_NO_ACCESS, "git has no access to it", "Check that `git clone` of the same address works in a terminal without asking anything."),
    (_NO_NETWORK, "it cannot be reached over the network", "Check the address and the network, and run the command again."),
    (_NO_REPOSITORY, "there is no repository, or it is private", "Check the address, and that `git clone` of it works in a terminal."),
    (r"No space left", "the disk is full", "Free some disk space, and run the command again."),
]


class _File(NamedTuple):
    """A line of `git ls-tree`."""

    path: str
    mode: str
    id: str
    size: int


class Address(NamedTuple):
    """Where a repository is."""

    shown: str
    """Without user name, password or token."""
    name: str
    plain: str
    """What git is given; the secrets come by another way."""
    secret: str
    """The whole address, where it holds a password or token; else empty."""


def parse_address(where: str) -> Address | None:
    """A git address taken apart; None = it is none.

    Raises:
        InputError: an address that git is not asked to read.
    """
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", where)
    if match:
        if match[1].lower() not in _SCHEMES:
            raise InputError(f"{match[1]}:// is no address that git reads.", f"Use one of {', '.join(f'{name}://' for name in _SCHEMES)}.")
        return _url(where)
    if re.match(r"[A-Za-z0-9+.-]+::", where):
        raise InputError(f"{where[:40]!r} names a program of its own to git, which is not allowed.", "Use https:// or ssh://.")
    found = _SCP.fullmatch(where)
    if found and (found["user"] or "." in found["host"]):
        return Address(f"{found['host']}:{found['path']}", _name(found["path"]), where, "")
    return None


def _url(where: str) -> Address:
    try:
        parts = urllib.parse.urlsplit(where)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InputError(f"The address is not one that can be read: {error}.", "Write it as https://host/path.") from error
    if parts.scheme != "file" and (not host or host.startswith("-")):
        raise InputError("The address has no host.", "Write it as https://host/path.")
    at = f"[{host}]" if ":" in host else host
    at = f"{at}:{port}" if port else at
    shown = urllib.parse.urlunsplit((parts.scheme, at, parts.path, "", ""))
    if parts.scheme in {"http", "https"} and parts.username is not None:
        return Address(shown, _name(parts.path), urllib.parse.urlunsplit((parts.scheme, at, parts.path, parts.query, "")), where)
    return Address(shown, _name(parts.path), where, "")


def _name(path: str) -> str:
    last = urllib.parse.unquote(path).rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return last.removesuffix(".git") or "repository"


def is_repository(path: Path) -> bool:
    """Whether a folder is a repository without a work tree."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


class Repository:
    """One commit of a repository, copied to a temporary folder."""

    def __init__(self, folder: Path, environment: dict[str, str], commit: str, rules: Rules) -> None:
        self.commit = commit
        self._folder, self._environment, self._rules = folder, environment, rules

    def entries(self, skip: Callable[[str, str, int], None]) -> Iterator[Entry]:
        """The files that the rules let through, in the order of their paths' parts; `skip` is told of the others."""
        done = _git(f"--git-dir={self._folder}", "ls-tree", "-r", "-z", "--long", self.commit, environment=self._environment)
        if done.returncode:
            raise InputError("The copy of the repository is damaged.", "Run the command again.", git=done.stderr.decode("utf_8", "replace"))
        listed = _listed(done.stdout)
        self._rules.begin()
        with self._blobs() as blob:
            folders = _Folders(self._rules, listed, blob, skip)
            for path, mode, id, size in listed:
                if folders.shut(path):
                    continue
                if mode == "160000":
                    skip(f"{path}/", "It is a submodule, which is a repository of its own.", 0)
                elif mode == "120000":
                    skip(path, "It is a link.", 0)
                elif why := self._rules.file(path):
                    skip(path, why, size)
                else:
                    yield Entry(
                        path,
                        size,
                        lambda most, id=id: blob(id)[:most],  # type: ignore[misc]
                        lambda id=id: blob(id),  # type: ignore[misc]
                        lambda head, path=path: self._rules.content(path, head),  # type: ignore[misc]
                    )
            folders.done()

    @contextlib.contextmanager
    def _blobs(self) -> Iterator[Callable[[str], bytes]]:
        """Gives the content of an object; one git process serves all. The last one is kept, since a head is read before the whole."""
        process = _started(
            ["git", f"--git-dir={self._folder}", "cat-file", "--batch"],
            env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        given, said = process.stdin, process.stdout
        assert given is not None
        assert said is not None
        kept = ("", b"")

        def blob(id: str) -> bytes:
            nonlocal kept
            if kept[0] != id:
                kept = (id, _ask(given, said, id))
            return kept[1]

        try:
            yield blob
        finally:
            _end(process)


class _Folders:
    """The folders of a repository as its files are gone through: which are shut, why, and how many files they hold."""

    def __init__(self, rules: Rules, listed: list[_File], blob: Callable[[str], bytes], skip: Callable[[str, str, int], None]) -> None:
        self._rules, self._blob, self._skip = rules, blob, skip
        self._names: dict[str, set[str]] = {}
        self._own: dict[str, str] = {}
        self._shut: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._entered: set[str] = set()
        for path, _, id, size in listed:
            parts = path.split("/")
            for depth, part in enumerate(parts):
                self._names.setdefault("".join(f"{above}/" for above in parts[:depth]), set()).add(part)
            if parts[-1] == OWN_RULES and size <= MOST_RULE_BYTES:
                self._own[path] = id

    def shut(self, path: str) -> bool:
        """Whether a folder keeps a file from being read. Folders are entered on the way."""
        here = ""
        for part in path.split("/"):
            self._enter(here)
            inner = here + part
            if inner == path:
                return False
            if inner not in self._shut and f"{inner}/" not in self._entered:
                why = self._rules.folder(inner, self._names[here], self._names.get(f"{inner}/", set()))
                if why:
                    self._shut[inner] = why
            if inner in self._shut:
                self._counts[inner] += 1
                return True
            here = f"{inner}/"
        return False

    def done(self) -> None:
        """Tell which folders were shut."""
        for folder, why in self._shut.items():
            self._skip(f"{folder}/", f"{why[:-1]} ({files_word(self._counts[folder])}).", 0)

    def _enter(self, folder: str) -> None:
        if folder not in self._entered:
            self._entered.add(folder)
            for file, why in self._rules.enter(folder, lambda name: self._text(folder + name), git=False):
                self._skip(file, why, 0)

    def _text(self, path: str) -> str:
        return self._blob(self._own[path]).decode("utf_8", "replace") if path in self._own else ""


def _ask(given: IO[bytes], said: IO[bytes], id: str) -> bytes:
    try:
        given.write(f"{id}\n".encode())
        given.flush()
        header = said.readline().split()
        if len(header) != 3:
            raise Unreadable("It is missing from the copy of the repository.")
        data = said.read(int(header[2]))
        said.read(1)
    except OSError as error:
        raise Unreadable("Git stopped while it was read.") from error
    return data


def _listed(output: bytes) -> list[_File]:
    """The files, in the order of their paths' parts."""
    found = []
    for line in output.split(b"\0"):
        about, tab, path = line.partition(b"\t")
        if tab:
            mode, _, id, size = about.split()
            found.append(_File(path.decode("utf_8", "surrogateescape"), mode.decode(), id.decode(), 0 if size == b"-" else int(size)))
    return sorted(found, key=lambda file: file.path.split("/"))


@contextlib.contextmanager
def open_repository(address: Address, branch: str, rules: Rules) -> Iterator[Repository]:
    """Copy the last commit of a branch to a temporary folder, which is removed at the end.

    Args:
        address: of the repository.
        branch: or tag; empty = the repository's own choice.
        rules: which files are read.

    Raises:
        NotFound: no such repository.
        InputError: no git, no access, no network, no such branch, or nothing in it.
    """
    if branch.startswith("-") or any(sign in branch for sign in " ~^:?*[\\\n\0"):
        raise InputError(f"{branch!r} is no name of a branch or tag.", "Name a branch or a tag with --branch.")
    with tempfile.TemporaryDirectory(prefix="fabula-git-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "copy"
        environment = _environment(address)
        _clone(address, branch, target, environment)
        done = _git(f"--git-dir={target}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}", environment=environment)
        if done.returncode:
            raise InputError(f"{address.shown} has no commit yet.", "Name a branch that has one with --branch.")
        yield Repository(target, environment, done.stdout.decode().strip(), rules)


def _clone(address: Address, branch: str, target: Path, environment: dict[str, str]) -> None:
    chosen = [f"--branch={branch}"] if branch else []
    shallow = ["--depth=1", "--single-branch"]
    for depth in (shallow, ["--single-branch"]):
        command = [
            "git",
            *_STALLED,
            "clone",
            "--quiet",
            "--bare",
            "--no-tags",
            "--template=",
            *depth,
            *chosen,
            "--",
            address.plain,
            str(target),
        ]
        code, said = _watched(command, environment)
        if not code:
            return
        if "dumb http" not in said:
            break  # only the plainest servers cannot give a part of a history
    said = _redacted(said, address)
    for pattern, what, action in _FAULTS:
        if re.search(pattern, said, re.IGNORECASE):
            kind = NotFound if "no repository" in what else InputError
            raise kind(f"{address.shown} cannot be read: {what.format(branch=branch)}.", action, git=said[-500:])
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "git said nothing").removeprefix("fatal: ").strip()
    raise InputError(f"{address.shown} cannot be read: {last}", "Check that `git clone` of the same address works in a terminal.")


def _watched(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run git to its end: (exit status, what it said). Whatever ends the waiting ends git and all that it started."""
    try:
        process = _started(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise InputError("The program git is not installed, and the address is one that git reads.", "Install git.") from error
    except OSError as error:
        raise InputError(f"The program git cannot be started: {error.strerror}.", "Install git.") from error
    try:
        _, said = process.communicate()
        return process.returncode, said.decode("utf_8", "replace")
    finally:
        _end(process)


def _git(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run git on what is here already."""
    return subprocess.run(["git", *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process with a group of its own.

    Ctrl-C reaches only the main thread. In another one a process is never half started, known to the system but not to us.
    """
    with ThreadPoolExecutor(1) as starter:
        starting: Future[subprocess.Popen[bytes]] = starter.submit(lambda: subprocess.Popen(command, start_new_session=True, **options))
        try:
            return starting.result()
        except KeyboardInterrupt:
            _end(starting.result())
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with its children, if it has not ended."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    process.wait()


def _environment(address: Address) -> dict[str, str]:
    """The person's environment, in which git asks nothing, speaks English and runs nothing that an address could name."""
    environment = {key: value for key, value in os.environ.items() if key not in _LOCAL}
    environment |= {
        "GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C", "LANGUAGE": "C",
        "GIT_ALLOW_PROTOCOL": ":".join(_SCHEMES), "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1",
    }  # fmt: skip
    if (address.plain.startswith("ssh://") or "://" not in address.plain) and not environment.get("GIT_SSH"):
        environment["GIT_SSH_COMMAND"] = _ssh(environment)
    if address.secret:
        # In the arguments of a process every user of the machine could read it; the environment is private.
        number = int(environment.get("GIT_CONFIG_COUNT") or 0)
        environment |= {
            "GIT_CONFIG_COUNT": str(number + 1),
            f"GIT_CONFIG_KEY_{number}": f"url.{address.secret}.insteadOf",
            f"GIT_CONFIG_VALUE_{number}": address.plain,
        }
    return environment


def _ssh(environment: dict[str, str]) -> str:
    """The person's own ssh command, in batch mode."""
    own = environment.get("GIT_SSH_COMMAND", "")
    if not own:
        with contextlib.suppress(OSError):
            own = _git("config", "--get", "core.sshCommand", environment=environment).stdout.decode("utf_8", "replace").strip()
    return f"{own or 'ssh'} -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=30"


def _redacted(said: str, address: Address) -> str:
    """What git said, without the secrets of the address."""
    if address.secret:
        parts = urllib.parse.urlsplit(address.secret)
        said = said.replace(address.secret, address.shown)
        for secret in sorted({parts.password or "", parts.username or ""} - {""}, key=len, reverse=True):
            for form in {secret, urllib.parse.unquote(secret)}:
                said = said.replace(form, "***") if len(form) > 3 else said
    return said
