"""What is left out: secrets, the list of the usual, ignore files, the person's options; and what brings it back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.read._ignore import Rules
from tests.read.test_sources import names, read, write

USUAL = {
    "node_modules/x/a.js": "x", "sub/node_modules/a.js": "x", "__pycache__/a.py": "x", "src/__pycache__/a.py": "x",
    ".idea/a.xml": "x", ".git/config": "x",
    "package-lock.json": "{}", "Cargo.lock": "x", "a.min.js": "x", "a.js.map": "{}", "m_pb2.py": "x", ".gitattributes": "x",
    "env/pyvenv.cfg": "x", "env/a.py": "x", "lib.egg-info/PKG": "x",
}  # fmt: skip


def test_the_list_of_the_usual(tmp_path: Path) -> None:
    documents, skipped, source = read(write(tmp_path, {"a.py": "x", "build/kept.py": "x", "vendor/kept.py": "x", **USUAL}))
    assert list(documents) == ["a.py", "build/kept.py", "vendor/kept.py"]
    assert skipped["node_modules/"] == "It is packages that were installed (1 file)."
    assert skipped["env/"] == "It is packages that were installed (2 files)."
    assert skipped[".git/"] == "It is the store of a version control system (1 file)."
    assert skipped["package-lock.json"] == "It is a lock file."
    assert len(skipped) == 14
    assert [item.path for item in source.skipped if item.path.startswith("sub")] == ["sub/node_modules/"]


def test_folders_that_are_built(tmp_path: Path) -> None:
    """`build` and `vendor` are what they are called only beside the file of the tool that makes them."""
    write(tmp_path, {"pyproject.toml": "x", "build/a.py": "x", "go/go.mod": "x", "go/vendor/a.go": "x", "vendor/b.go": "x"})
    assert names(tmp_path) == ["go/go.mod", "pyproject.toml", "vendor/b.go"]


def test_a_large_folder_is_not_counted_to_its_end(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x"} | {f"node_modules/{number}": "" for number in range(2010)})
    assert read(tmp_path)[1]["node_modules/"] == "It is packages that were installed (more than 2,000 files)."


def test_gitignore(tmp_path: Path) -> None:
    write(tmp_path, {
        ".gitignore": "# comment\n*.log\n!keep.log\n/top.txt\nbuild/\ndocs/**/gen\n\\#odd\n", "a.log": "x", "keep.log": "x", "top.txt": "x",
        "sub/top.txt": "x", "build/x.txt": "x", "sub/build/x.txt": "x", "docs/a/b/gen": "x", "#odd": "x",
        "sub/.gitignore": "*.tmp\n!a.log\n", "sub/a.log": "x", "sub/b.log": "x", "sub/c.tmp": "x", "c.tmp": "x", "sub/deep/c.tmp": "x",
    })  # fmt: skip
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["c.tmp", "keep.log", "sub/a.log", "sub/top.txt"]
    assert skipped["a.log"] == "It is ignored by .gitignore (*.log)."
    assert skipped["sub/b.log"] == "It is ignored by .gitignore (*.log)."
    assert skipped["sub/deep/c.tmp"] == "It is ignored by sub/.gitignore (*.tmp)."
    assert skipped["build/"] == "It is ignored by .gitignore (build/) (1 file)."
    assert set(names(tmp_path, ignored=True)) >= {"a.log", "build/x.txt", "sub/c.tmp", "#odd"}


def test_rules_of_a_folder_end_with_it(tmp_path: Path) -> None:
    write(tmp_path, {"a/.gitignore": "*.txt\n", "a/x.txt": "x", "b.txt": "x", "c/x.txt": "x"})
    assert names(tmp_path) == ["b.txt", "c/x.txt"]


def test_rules_above_a_folder_of_a_work_tree(tmp_path: Path) -> None:
    write(tmp_path, {
        ".git/info/exclude": "*.own\n", ".gitignore": "*.log\n/sub/deep/x.txt\nout/\n", "sub/.gitignore": "*.tmp\n",
        "sub/deep/a.log": "x", "sub/deep/x.txt": "x", "sub/deep/y.txt": "x", "sub/deep/a.tmp": "x", "sub/deep/a.own": "x", "out/z.txt": "x",
    })  # fmt: skip
    documents, skipped, _ = read(tmp_path / "sub" / "deep")
    assert list(documents) == ["y.txt"]
    assert skipped["a.own"] == "It is ignored by .git/info/exclude (*.own)."
    assert skipped["a.tmp"] == "It is ignored by sub/.gitignore (*.tmp)."
    assert names(tmp_path / "out") == ["z.txt"]


def test_fabulaignore(tmp_path: Path) -> None:
    """Fabula's own file is the stronger one, and brings back what the others leave out."""
    write(tmp_path, {
        ".gitignore": "*.log\n", ".fabulaignore": "drafts/\n!a.log\n!Cargo.lock\n!.env\n!node_modules/\n",
        "a.log": "x", "b.log": "x", "Cargo.lock": "x", ".env": "A=1", ".env.local": "x", "drafts/x.txt": "x",
        "node_modules/a.js": "x", "c.txt": "x",
    })  # fmt: skip
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == [".env", "Cargo.lock", "a.log", "c.txt", "node_modules/a.js"]
    assert skipped["drafts/"] == "It is ignored by .fabulaignore (drafts/) (1 file)."
    assert "Its name is that of a secret" in skipped[".env.local"]


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.production", "id_rsa", "id_ed25519", "server.pem", "a.KEY", "store.p12", ".netrc", "credentials.json", "secrets.yaml",
        "x.tfstate", ".git-credentials",
    ],
)  # fmt: skip
def test_secrets(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "x", "a.txt": "x", f"sub/{name}": "x"})
    for ignored in (False, True):
        documents, skipped, _ = read(tmp_path, ignored=ignored)
        assert list(documents) == ["a.txt"]
        assert set(skipped) == {name, f"sub/{name}"}
        assert "secret" in skipped[name]


@pytest.mark.parametrize(
    "name", [".env.example", "environment.py", "credentials.py", "secrets.py", "keys.txt", "id_rsa.pub", "pem.md", "secret.py"]
)
def test_what_only_sounds_secret(tmp_path: Path, name: str) -> None:
    assert names(write(tmp_path, {name: "x"})) == [name]


def test_a_private_key_in_a_file_of_any_name(tmp_path: Path) -> None:
    write(tmp_path, {"notes.txt": "-----BEGIN RSA PRIVATE KEY-----\nMIIE", "a.txt": "x", "k.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----"})
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["a.txt"]
    assert "It holds a private key" in skipped["notes.txt"]


def test_include_and_exclude(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x", "b.txt": "x", "src/c.py": "x", "src/gen/d.py": "x", "test/e.py": "x", "package-lock.json": "{}"})
    assert names(tmp_path, include=("*.py",)) == ["a.py", "src/c.py", "src/gen/d.py", "test/e.py"]
    documents, skipped, _ = read(tmp_path, include=("*.py", "*.json"), exclude=("gen/", "/test", "a.*"))
    assert list(documents) == ["src/c.py"]
    assert skipped == {
        "a.py": "It is left out by --exclude a.*.",
        "b.txt": "It is not among --include.",
        "package-lock.json": "It is a lock file.",
        "src/gen/": "It is left out by --exclude gen/ (1 file).",
        "test/": "It is left out by --exclude /test (1 file).",
    }
    assert names(tmp_path, include=("src/**/*.py",)) == ["src/c.py", "src/gen/d.py"]
    for pattern in ("", "!a", "*a*b*c*d*e"):
        with pytest.raises(InputError, match="--exclude"):
            read(tmp_path, exclude=(pattern,))


FILES = {
    "README.md": "x", "README": "x", "readme.zh-CN.txt": "x", "sub/ReadMe.rst": "x", "CHANGELOG": "x", "CONTRIBUTING.md": "x",
    "LICENSE": "x",
    "docs/a.py": "x", "sub/doc/b.txt": "x", "guide.rst": "x", "notes.txt": "x", "main.py": "x", "history.py": "x", "security.xml": "x",
    "install-sh": "x", "requirements.txt": "x", "NEWS.txt": "x", "readmeter.py": "x",
}  # fmt: skip


def test_without_readme_and_docs(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    readmes = {"README.md", "README", "readme.zh-CN.txt", "sub/ReadMe.rst"}
    documentation = {"CHANGELOG", "CONTRIBUTING.md", "LICENSE", "docs/a.py", "sub/doc/b.txt", "guide.rst", "NEWS.txt"}
    assert set(names(tmp_path)) == set(FILES)
    assert set(names(tmp_path, readme=False)) == set(FILES) - readmes
    assert set(names(tmp_path, docs=False)) == set(FILES) - documentation
    documents, skipped, _ = read(tmp_path, readme=False, docs=False)
    assert set(documents) == set(FILES) - readmes - documentation
    assert skipped["docs/"] == "It is documentation (--no-docs) (1 file)."
    assert skipped["README"] == "It is a README (--no-readme)."


def test_bad_patterns_are_said_and_passed_over(tmp_path: Path) -> None:
    """Also those that would take years: the time of a match grows with the power of its wild cards."""
    slow = "*a*a*a*a*a*a*a*a*a*b"
    write(
        tmp_path,
        {
            ".gitignore": f"!\n*.log\n{slow}\n",
            "a" * 200 + ".txt": "x",
            "b.log": "x",
            "sub/.fabulaignore": "a/**/b/**/c/**/d/**/e\n",
            "sub/c.txt": "x",
        },
    )
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["a" * 200 + ".txt", "sub/c.txt"]
    assert skipped["sub/.fabulaignore"]
    said = [item.why for item in read(tmp_path)[2].skipped if item.path == ".gitignore"]
    assert said[:2] == ["Its line 1 is no pattern that can be used (!).", f"Its line 3 is no pattern that can be used ({slow})."]


def test_all_that_is_left_out_has_a_sentence(tmp_path: Path) -> None:
    _, skipped, _ = read(write(tmp_path, {"a.py": "x", **USUAL, ".env": "x", ".gitignore": "*.log", "x.log": "x"}))
    assert all(re.fullmatch(r"It.+\.", why) for why in skipped.values()), skipped


def test_rules_say_nothing_of_what_is_read() -> None:
    rules = Rules()
    rules.enter("", lambda name: "", git=True)
    assert (rules.file("a/b.py"), rules.folder("a", {"a"}), rules.content("a", b"x")) == ("", "", "")
