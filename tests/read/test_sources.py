"""Sources on this machine: what is read, in which order, and that all that is not read is listed with its reason."""

from __future__ import annotations

import io
import os
import socket
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, NotFound
from fabula.formats import Document
from fabula.read import _source_folder
from fabula.read._source_entry import printable
from fabula.read._source_folder import read_file
from fabula.read._sources import Source, SourceOptions, open_source
from tests.formats.files import make_docx, make_epub, make_pdf, paragraph


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files below a folder, with their folders."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read(where: str | Path, **options: Any) -> tuple[dict[str, Document], dict[str, str], Source]:
    """(documents by name, reasons by path, the source)."""
    with open_source(str(where), SourceOptions(**options)) as source:
        documents = {document.name: document for document in source.documents()}
        return documents, {skipped.path: skipped.why for skipped in source.skipped}, source


def names(where: str | Path, **options: Any) -> list[str]:
    return list(read(where, **options)[0])


def test_a_folder_of_every_format(tmp_path: Path) -> None:
    root = write(tmp_path / "book", {
        "a.md": "# The harbour\n", "b/第一章.txt": "米拉数了数船。" * 9, "b/глава.txt": ("Мира считала лодки. " * 9).encode("cp1251"),
        "c.pdf": make_pdf(["Page one.", "Page two."]),
        "d.docx": make_docx(paragraph("Word.")), "e.epub": make_epub({"one": "<p>Book.</p>"}),
        "f.html": "<p>Web.</p>", "g.py": "x = 1\n", "h.bin": b"\0\1\2" * 99, "empty.txt": "",
        "i.ipynb": '{"cells": []}', "j.docx": b"PK\x03\x04no",
    })  # fmt: skip
    documents, skipped, source = read(root)
    assert {name: (document.kind, document.format) for name, document in documents.items()} == {
        "a.md": ("prose", "markdown"), "b/глава.txt": ("prose", "text"), "b/第一章.txt": ("prose", "text"), "c.pdf": ("prose", "pdf"),
        "d.docx": ("prose", "docx"), "e.epub": ("prose", "epub"), "f.html": ("prose", "html"), "g.py": ("code", "code"),
    }  # fmt: skip
    assert documents["b/глава.txt"].text == "Мира считала лодки. " * 9
    assert list(skipped) == ["empty.txt", "h.bin", "i.ipynb", "j.docx"]
    assert skipped["h.bin"] == "It is not a text file."
    assert skipped["empty.txt"] == "It is empty."
    assert "damaged" in skipped["j.docx"]
    assert (source.name, source.where, source.commit) == ("book", str(root), "")
    assert {item.path: item.size for item in source.skipped}["h.bin"] == 297


def test_order_is_that_of_the_parts_of_paths(tmp_path: Path) -> None:
    """Not that of the system, and not that of the whole path, in which `-` and `.` come before the slash."""
    write(tmp_path, dict.fromkeys(("b.txt", "a/z.txt", "a-1/y.txt", "a.txt", "B.txt", "é.txt", "10.txt", "9.txt", "a/b/c.txt"), "x"))
    expected = ["10.txt", "9.txt", "B.txt", "a/b/c.txt", "a/z.txt", "a-1/y.txt", "a.txt", "b.txt", "é.txt"]
    assert names(tmp_path) == expected == sorted(expected, key=lambda name: name.split("/"))
    with open_source(str(tmp_path)) as source:
        assert [d.name for d in source.documents()] == [d.name for d in source.documents()] == expected


@pytest.mark.parametrize("given", ["{}/", "{}/.", "{}//"])
def test_a_slash_at_the_end(tmp_path: Path, given: str) -> None:
    write(tmp_path / "book", {"a.txt": "x"})
    documents, _, source = read(given.format(tmp_path / "book"))
    assert (list(documents), source.name) == (["a.txt"], "book")


def test_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(tmp_path / "here", {"a.txt": "x"}))
    _, _, source = read(".")
    assert (source.name, source.where) == ("here", ".")


def test_one_file(tmp_path: Path) -> None:
    """A file that is named is read whatever the rules say of it."""
    write(tmp_path, {".gitignore": "*.log\n", "a.log": "line\n", ".env": "x=1"})
    documents, skipped, source = read(tmp_path / "a.log")
    assert (list(documents), skipped, source.name) == (["a.log"], {}, "a.log")
    assert names(tmp_path / ".env") == [".env"]
    (tmp_path / "link").symlink_to("a.log")
    assert names(tmp_path / "link") == ["link"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.pdf", b"%PDF-1.4 broken", "a.pdf is damaged"),
        ("a.bin", b"\0\1", "not a text file"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b"x" * 2000, "1 KiB"),
    ],
)
def test_one_file_that_cannot_be_read(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    write(tmp_path, {name: data})
    with pytest.raises(InputError, match=says):
        read(tmp_path / name, max_file_bytes=1024)


def test_standard_input() -> None:
    def given(data: bytes, **options: Any) -> list[Document]:
        with open_source("-", SourceOptions(**options), stdin=io.BytesIO(data)) as source:
            assert (source.name, source.where) == ("standard input", "-")
            return list(source.documents())

    assert [(d.name, d.text) for d in given("Глава 1".encode())] == [("standard input", "Глава 1")]
    assert given(make_pdf(["One."]))[0].places == ((0, "page 1"),)
    assert given(b"<!DOCTYPE html><p>x")[0].text == "x\n"
    assert given("Глава".encode("cp866"), encoding="cp866")[0].text == "Глава"
    for data, options, says in (
        (b"", {}, "is empty"),
        (b"\0\1\2", {}, "not a text"),
        (b"x" * 99, {"max_file_bytes": 9}, "max-file-size"),
        (b"x", {"branch": "b"}, "no branch"),
    ):
        with pytest.raises(InputError) as caught:
            given(data, **options)
        assert says in f"{caught.value.message} {caught.value.next_action}"


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no file or folder"):
        read(tmp_path / "nothing")
    with pytest.raises(NotFound, match="There is no file or folder") as caught:
        read("github.com/owner/name")
    assert "https://" in caught.value.next_action
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(NotFound, match="leads nowhere"):
        read(tmp_path / "link")
    with pytest.raises(InputError, match="no branch 'main'"):
        read(write(tmp_path, {"a.txt": "x"}), branch="main")


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="There is no file in empty"):
        read(tmp_path / "empty")
    root = write(tmp_path / "bins", {f"{number}.bin": b"\0" for number in range(3)} | {"a.txt": ""})
    with pytest.raises(InputError, match=r"4 entries are skipped, 3 of them for this reason: It is not a text file\.") as caught:
        read(root)
    assert caught.value.details["reasons"] == {"It is not a text file.": 3, "It is empty.": 1}


def test_limits(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.txt": "x" * 100, "b.txt": "x" * 2000, "c.txt": "x" * 100, "d.txt": "x" * 100})
    documents, skipped, _ = read(root, max_file_bytes=1024, max_bytes=250)
    assert list(documents) == ["a.txt", "c.txt"]
    assert skipped == {
        "b.txt": "It is larger than 1 KiB; --max-file-size raises that limit.",
        "d.txt": "With it more than 250 bytes would be read; --max-size raises that limit.",
    }
    documents, skipped, _ = read(root, max_files=1)
    assert list(documents) == ["a.txt"]
    assert skipped == dict.fromkeys(("c.txt", "d.txt"), "The limit of 1 file is reached; --max-files raises it.") | {
        "b.txt": skipped["c.txt"]
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.txt": "no", "root/a.txt": "x", "root/sub/b.txt": "y"})
    root = tmp_path / "root"
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "sub" / "up").symlink_to("..", target_is_directory=True)
    (root / "out").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "out.txt").symlink_to("../outside/secret.txt")
    (root / "same.txt").symlink_to("a.txt")
    (root / "self").symlink_to("self")
    (root / "gone").symlink_to("nowhere")
    documents, skipped, _ = read(root)
    assert list(documents) == ["a.txt", "sub/b.txt"]
    assert skipped == {
        "loop": "It is a link to what has its own place in the folder.",
        "sub/up": "It is a link to what has its own place in the folder.",
        "same.txt": "It is a link to what has its own place in the folder.",
        "out": "It is a link that leads out of the folder.",
        "out.txt": "It is a link that leads out of the folder.",
        "self": "It is a link that leads nowhere.",
        "gone": "It is a link that leads nowhere.",
    }
    (tmp_path / "door").symlink_to(root, target_is_directory=True)
    assert names(tmp_path / "door") == ["a.txt", "sub/b.txt"]


def test_pipes_and_sockets_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a pipe that nobody writes to would wait for ever."""
    write(tmp_path, {"a.txt": "x"})
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
        documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["a.txt"]
    assert skipped == {"pipe": "It is a pipe.", "socket": "It is a socket."}
    for special in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(InputError, match="neither a file nor a folder"):
            read(special)


def test_a_pipe_that_takes_the_place_of_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", "b.txt": "y"})
    with open_source(str(tmp_path)) as source:
        documents = source.documents()
        assert next(documents).name == "a.txt"
        (tmp_path / "b.txt").unlink()
        os.mkfifo(tmp_path / "b.txt")
        assert list(documents) == []
    assert [skipped.why for skipped in source.skipped] == ["It is a pipe."]


def test_files_that_vanish_or_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "x", "b.txt": "y", "c.txt": "z", "sub/d.txt": "w"})
    real = read_file

    def changing(path: str | Path, most: int | None) -> bytes:
        data = real(path, most)
        if str(path).endswith("a.txt") and most is not None:
            (tmp_path / "b.txt").unlink()
            (tmp_path / "sub" / "d.txt").unlink()
            (tmp_path / "sub").rmdir()
        return data

    monkeypatch.setattr(_source_folder, "read_file", changing)
    stat = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        about = stat(descriptor)
        if about.st_ino == (tmp_path / "c.txt").stat().st_ino:
            with (tmp_path / "c.txt").open("a") as file:
                file.write("more")
        return about

    monkeypatch.setattr(os, "fstat", growing)
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["a.txt"]
    assert skipped == {
        "b.txt": "It vanished before it was read.",
        "c.txt": "It changed while it was read; read again when it is at rest.",
        "sub/": "It vanished before it was read.",
    }


def test_what_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, whom no permission keeps out: so the system's refusal is played."""
    write(tmp_path, {"a.txt": "x", "b.txt": "y", "shut/c.txt": "z"})
    real_open, real_scan = os.open, os.scandir

    def refusing(path: Any, *rest: Any) -> Any:
        if str(path).endswith("b.txt"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *rest)

    def shut(path: Any) -> Any:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return real_scan(path)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "scandir", shut)
    documents, skipped, _ = read(tmp_path)
    assert list(documents) == ["a.txt"]
    assert skipped == {"b.txt": "It cannot be read: Permission denied.", "shut/": "It cannot be read: Permission denied."}


def test_names_in_any_encoding(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path)
    for name in (b"caf\xe9.txt", "глава\u202egpj.txt".encode(), b"two\nlines.txt", b"\x1b[31mred.txt", "第一章.txt".encode()):
        descriptor = os.open(raw + b"/" + name, os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"text")
        os.close(descriptor)
    found = names(tmp_path)
    assert found == ["\\x1b[31mred.txt", "caf\\xe9.txt", "two\\nlines.txt", "глава\\u202egpj.txt", "第一章.txt"]
    assert all(name.isprintable() and name.encode() for name in found)
    assert printable("a b　c.txt") == "a b　c.txt"


def test_deep_folders(tmp_path: Path) -> None:
    """Deeper than Python's stack, as deep as the system allows."""
    opened = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=opened)
        inner = os.open("d", os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)
    write(tmp_path, {"a.txt": "x", "e/b.txt": "y"})
    documents, _, _ = read(tmp_path)
    assert list(documents) == ["a.txt", "e/b.txt"]
    deep = os.open(tmp_path, os.O_RDONLY)
    depths = [deep]
    for _ in range(1100):
        depths.append(os.open("d", os.O_RDONLY, dir_fd=depths[-1]))
    for holder in reversed(depths[:-1]):
        os.close(depths.pop())
        os.rmdir("d", dir_fd=holder)
    os.close(deep)


def test_one_document_in_memory_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.txt": "x" * 2**20 for number in range(12)})
    with open_source(str(tmp_path)) as source:
        next(source.documents())
        tracemalloc.start()
        for _ in source.documents():
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 7 * 2**20
