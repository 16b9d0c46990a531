"""Which files of a folder or repository are not read, and why: secrets, a list of the usual, ignore files, the person's options.

The order, from the strongest: `--exclude` and `--include`; what a line `!name` in a `.fabulaignore` brings back; secrets; the list
of the usual; `.gitignore`; `.fabulaignore`; `--no-readme` and `--no-docs`. Patterns are those of gitignore, matched by pathspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from fabula.errors import InputError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

GIT_RULES, OWN_RULES = ".gitignore", ".fabulaignore"
MOST_RULE_BYTES = 2**20
"""Of an ignore file."""
_MOST_STARS = 3
"""Wild cards in one part of a pattern; more take time that grows with that power of a name's length."""

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", "CVS", ".jj"})
_FOLDERS = {
    **dict.fromkeys(("node_modules", "bower_components", "jspm_packages", "site-packages"), "packages that were installed"),
    **dict.fromkeys(
        (
            "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", ".cache", ".parcel-cache",
            ".gradle", ".terraform", ".sass-cache", ".import_linter_cache", ".nyc_output", "htmlcov", ".eggs", ".tox", ".nox",
        ),
        "a cache of a tool",
    ),
    **dict.fromkeys((".next", ".nuxt", ".svelte-kit", ".output", ".turbo"), "built by a tool"),
    **dict.fromkeys((".idea", ".vscode", ".vs", ".fleet"), "settings of an editor"),
    **dict.fromkeys((".venv", ".virtualenv"), "packages that were installed"),
    "__MACOSX": "data of an archive program",
}  # fmt: skip
_FOLDERS_BESIDE = {
    "vendor": ({"go.mod", "composer.json", "Gemfile"}, "packages that were installed"),
    "target": ({"Cargo.toml", "pom.xml", "build.sbt"}, "built by a tool"),
    "build": ({"setup.py", "pyproject.toml", "package.json", "build.gradle", "build.gradle.kts"}, "built by a tool"),
    "dist": ({"setup.py", "pyproject.toml", "package.json"}, "built by a tool"),
    "out": ({"package.json", "build.gradle", "build.gradle.kts"}, "built by a tool"),
}
"""Folder → what stands beside it where it is what its name says."""
_INSTALLED = "pyvenv.cfg"
"""A folder that holds this is a virtual environment."""
_LOCKS = frozenset({
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "Cargo.lock",
    "poetry.lock", "Pipfile.lock", "uv.lock", "pdm.lock", "pixi.lock", "requirements.lock", "composer.lock", "Gemfile.lock", "go.sum",
    "go.work.sum", "flake.lock", "mix.lock", "pubspec.lock", "Podfile.lock", "Package.resolved", "gradle.lockfile",
    "packages.lock.json", "conda-lock.yml", "MODULE.bazel.lock", "Cartfile.resolved",
})  # fmt: skip
_SMALL_FILES = frozenset({
    GIT_RULES, OWN_RULES, ".gitattributes", ".gitmodules", ".gitkeep", ".keep", ".dockerignore", ".npmignore", ".eslintignore",
    ".prettierignore", ".hgignore", ".mailmap", ".DS_Store", "Thumbs.db", "desktop.ini",
})  # fmt: skip
_MADE = re.compile(
    r"(?i).*(?:[.-]min\.(?:js|mjs|cjs|css|html)|\.(?:js|mjs|cjs|css|ts)\.map|\.bundle\.js|\.chunk\.(?:js|css))"
    r"|.*(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|swift|dart)|\.g\.dart|\.designer\.cs|\.snap)"
)
_SECRET = re.compile(
    r"(?i)\.env(?:\.(?!(?:example|sample|template|dist|defaults?)$).+)?|.+\.env|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.(?:pem|key|p8|p12|pfx|jks"
    r"|keystore|kdbx?|ppk|ovpn)|[._]netrc|\.pgpass|\.pypirc|\.git-credentials|\.htpasswd|\.vault[-_]pass\w*|credentials(?:\.(?:json|csv|ini|toml|ya?ml|xml))?"
    r"|client_secrets?.*\.json|service[-_]account.*\.json|secrets?\.(?:ya?ml|json|toml|ini|env|properties)|\.boto|\.s3cfg|.*\.tfstate(?:\.backup)?"
)
_SECRET_TEXT = re.compile(rb"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----")
_README = re.compile(r"(?i)(?:read[-_]?me)(?:[._-].*)?")
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation", "javadoc", "apidoc", "apidocs", "man", "manual", "wiki"})
_DOC_FILES = re.compile(
    r"(?i)(?:change[-_]?log|changes|history|news|release[-_]?notes|contributing|contributors|code[-_]of[-_]conduct|security|support"
    r"|governance|maintainers|authors|credits|thanks|todo|roadmap|faq|install|upgrading|copying|licen[cs]e|notice)"
    r"(?:(?:[._-][\w-]+)*\.(?:txt|html?|pdf|rtf|docx))?"
    r"|.*\.(?:md|markdown|mdown|mkd|mdx|rst|adoc|asciidoc|textile|wiki|pod)"
)


class _Layer(NamedTuple):
    """The rules of one ignore file."""

    folder: str
    """Where it stands, relative to the root, with a slash at its end; empty for the root and for what stands above it."""
    lead: str
    """For a file above the root: the way from it to the root, with a slash at its end."""
    where: str
    spec: GitIgnoreSpec
    lines: list[str]


class Rules:
    """Says of each path why it is not read. Folders are entered in the order of a walk: a folder, then all that is in it."""

    def __init__(
        self,
        *,
        include: Collection[str] = (),
        exclude: Collection[str] = (),
        readme: bool = True,
        docs: bool = True,
        ignored: bool = False,
    ) -> None:
        """The person's options.

        Args:
            include: patterns; only files that one of them matches are read.
            exclude: patterns of files and folders that are not read.
            readme: whether files called README are read.
            docs: whether documentation is read.
            ignored: read what ignore files and the list of the usual leave out. Secrets and version control stay unread.

        Raises:
            InputError: not a pattern.
        """
        self._include, self._exclude = _options("--include", include), _options("--exclude", exclude)
        self._readme, self._docs, self._ignored = readme, docs, ignored
        self._git: list[_Layer] = []
        self._own: list[_Layer] = []

    def begin(self) -> None:
        """Forget the ignore files of an earlier walk."""
        self._git.clear()
        self._own.clear()

    def above(self, lead: str, text: str, where: str) -> None:
        """Add the rules of a `.gitignore` above the root, unless they leave out the root itself, which the person named.

        Args:
            lead: the way from that file to the root, with a slash at its end.
            text: of the file.
            where: the file, for reasons.
        """
        layer, _ = _layer("", lead, where, text)
        if lead and layer.spec.check_file(lead).include:
            return
        self._git.append(layer)

    def enter(self, folder: str, read: Callable[[str], str], *, git: bool) -> list[tuple[str, str]]:
        """Enter a folder and take up its ignore files.

        Args:
            folder: relative to the root, with a slash at its end; empty for the root.
            read: gives the text of a file of the folder, empty where there is none.
            git: whether `.gitignore` counts.

        Returns:
            (file, sentence) for each line that is no pattern.
        """
        bad: list[tuple[str, str]] = []
        for layers, name in ((self._git, GIT_RULES), (self._own, OWN_RULES)):
            while layers and not folder.startswith(layers[-1].folder):
                layers.pop()
            text = read(name) if git or name == OWN_RULES else ""
            if text:
                layer, faults = _layer(folder, "", folder + name, text)
                layers.append(layer)
                bad += [(folder + name, fault) for fault in faults]
        return bad

    def folder(self, path: str, beside: Collection[str], inside: Collection[str] = ()) -> str:
        """Why a folder is not read; empty where it is.

        Args:
            path: relative to the root, without a slash at its end.
            beside: the names in the folder that holds it.
            inside: the names in it, as far as they are known.
        """
        name = path.rpartition("/")[2]
        if name in _VERSION_CONTROL:
            return "It is the store of a version control system."
        if found := _match(self._exclude, f"{path}/"):
            return f"It is left out by --exclude {found}."
        if self._back(f"{path}/"):
            return ""
        why = "" if self._ignored else self._usual_folder(name, beside, inside) or self._by_files(f"{path}/")
        if not why and not self._docs and name.lower() in _DOC_FOLDERS:
            why = "It is documentation (--no-docs)."
        return why

    def file(self, path: str) -> str:
        """Why a file is not read; empty where it is. `path` is relative to the root."""
        name = path.rpartition("/")[2]
        if found := _match(self._exclude, path):
            return f"It is left out by --exclude {found}."
        if self._include and not _match(self._include, path):
            return "It is not among --include."
        if not self._back(path):
            if _SECRET.fullmatch(name):
                return f"Its name is that of a secret; a line !{name} in {OWN_RULES} has it read all the same."
            if not self._ignored and (why := _usual_file(name) or self._by_files(path)):
                return why
        if not self._readme and _README.fullmatch(name):
            return "It is a README (--no-readme)."
        if not self._docs and _DOC_FILES.fullmatch(name) and not _README.fullmatch(name):
            return "It is documentation (--no-docs)."
        return ""

    def content(self, path: str, head: bytes) -> str:
        """Why a file is not read, by its first bytes; empty where it is."""
        if _SECRET_TEXT.search(head) and not self._back(path):
            return f"It holds a private key; a line !{path.rpartition('/')[2]} in {OWN_RULES} has it read all the same."
        return ""

    def _usual_folder(self, name: str, beside: Collection[str], inside: Collection[str]) -> str:
        what = _FOLDERS.get(name, "")
        if not what and name in _FOLDERS_BESIDE and not _FOLDERS_BESIDE[name][0].isdisjoint(beside):
            what = _FOLDERS_BESIDE[name][1]
        if not what and (_INSTALLED in inside or name.endswith((".egg-info", ".dist-info"))):
            what = "packages that were installed"
        return f"It is {what}." if what else ""

    def _by_files(self, path: str) -> str:
        for layers in (self._git, self._own):
            said = _verdict(layers, path)
            if said and said[0]:
                return f"It is ignored by {said[2]} ({said[1]})."
        return ""

    def _back(self, path: str) -> bool:
        """Whether a line of a `.fabulaignore` brings it back."""
        said = _verdict(self._own, path)
        return bool(said and not said[0])


def _verdict(layers: list[_Layer], path: str) -> tuple[bool, str, str] | None:
    """(ignored, by which line, of which file); None = no line is about it. The deepest file decides, in it the last line."""
    for layer in reversed(layers):
        if not path.startswith(layer.folder):
            continue  # of a folder that the walk has left
        result = layer.spec.check_file(layer.lead + path.removeprefix(layer.folder))
        if result.include is not None:
            return result.include, layer.lines[result.index or 0], layer.where
    return None


def _usual_file(name: str) -> str:
    if name in _LOCKS:
        return "It is a lock file."
    if name in _SMALL_FILES:
        return "It is a setting of a tool."
    return "It is made by a tool." if _MADE.fullmatch(name) else ""


def _layer(folder: str, lead: str, where: str, text: str) -> tuple[_Layer, list[str]]:
    lines, faults = [], []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.rstrip("\r\n")
        if not line.strip() or line.startswith("#"):
            continue
        if _usable(line):
            lines.append(line)
        else:
            faults.append(f"Its line {number} is no pattern that can be used ({line[:60]}).")
    return _Layer(folder, lead, where, _spec(lines), lines), faults


def _spec(lines: list[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _usable(pattern: str) -> bool:
    """Whether it is a pattern, and one that is matched in bearable time."""
    if pattern.count("**") > _MOST_STARS:
        return False
    if any(len(re.findall(r"(?<!\\)\*+", part)) > _MOST_STARS for part in pattern.split("/")):
        return False
    try:
        _spec([pattern])
    except ValueError:
        return False
    return True


def _options(option: str, patterns: Iterable[str]) -> list[tuple[str, GitIgnoreSpec]]:
    found = []
    for pattern in patterns:
        if not pattern.strip() or not _usable(pattern) or pattern.startswith("!"):
            raise InputError(f"{option} {pattern!r} is no pattern.", "Write it as in a .gitignore, e.g. '*.log' or 'tests/'.")
        found.append((pattern, _spec([pattern])))
    return found


def _match(patterns: list[tuple[str, GitIgnoreSpec]], path: str) -> str:
    """The first pattern that matches; empty where none does."""
    return next((pattern for pattern, spec in patterns if spec.check_file(path).include), "")
