"""Files: formats by name, encodings, whole or not at all, and errors that say what and where."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fabula.errors import InputError, NotFound
from fabula.formats import Book, Chapter, Kept, Scene, format_of, keep_current, read_book, render_book, write_book
from fabula.formats._files import decode
from tests.formats.books import BOOKS, CHINESE, ENGLISH

CHINESE_TEXT = (
    "第一章 港口\n\n米拉数了数船，一共有四条。“昨天还有五条。”\n她对守夜人说，可是没有人回答。\n\n第二章 锁\n\n最后一把锁还在门上。"
)
RUSSIAN_TEXT = (
    "Глава 1. Гавань\n\nМира пересчитала лодки: их было четыре. «Вчера было пять», — сказала она сторожу.\n\nГлава 2. Замок\n\nПоследний."
)


def test_format_of() -> None:
    assert [format_of(name) for name in ("a.md", "a.MARKDOWN", "b.txt", "c.EPUB", "d.docx")] == [
        "markdown",
        "markdown",
        "text",
        "epub",
        "docx",
    ]
    assert format_of("no-ending", "md") == format_of("x.epub", "markdown") == "markdown"
    for name, format in (("a.pdf", None), ("a", None), ("a.md", "pdf")):
        with pytest.raises(InputError):
            format_of(name, format)
    with pytest.raises(InputError) as caught:
        format_of("old.doc")
    assert ".docx" in caught.value.next_action


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"], ids=str
)  # fmt: skip
def test_chinese_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "书.txt"
    path.write_bytes(CHINESE_TEXT.encode(encoding))
    book = read_book(path)
    assert [(chapter.label, chapter.title) for chapter in book.chapters] == [("第一章", "港口"), ("第二章", "锁")]
    assert book.chapters[0].scenes[0].text.startswith("米拉数了数船")
    assert book.title == "书"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1251", "koi8-r"])
def test_russian_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "книга.txt"
    path.write_bytes(RUSSIAN_TEXT.replace("\n", "\r\n").encode(encoding, "replace"))
    book = read_book(path)
    assert [(chapter.label, chapter.title) for chapter in book.chapters] == [("Глава 1", "Гавань"), ("Глава 2", "Замок")]
    assert "пересчитала лодки" in book.chapters[0].scenes[0].text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Смотритель маяка находит письмо без подписи.", "cp1251"),
        ("灯塔看守人收到一封没有署名的信。", "gb18030"),
        ("T恤在iPhone手机旁边。他买了一件新的T恤，然后回家。", "gb18030"),
        ("Die Straße führt über die Brücke; schöne Grüße aus Köln. Größer als früher, und müde Söhne hören süße Töne.", "cp1252"),
        ("The lamp is out, and nobody has come for three nights.", "utf-16-le"),
    ],
)
def test_a_guessed_encoding_is_told(text: str, encoding: str) -> None:
    told: list[str] = []
    assert decode(text.encode(encoding), "x", guessed=told.append) == text
    assert told == [encoding]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_encoding_that_is_certain_is_not_told(encoding: str) -> None:
    told: list[str] = []
    decode("Ёж и café".encode(encoding), "x", guessed=told.append)
    decode("Ёж".encode("koi8-r"), "x", "koi8-r", guessed=told.append)
    assert told == []


@pytest.mark.parametrize(
    "data",
    [
        b"caf\xe9 \x80\x81",
        b"A caf\xe9 by the sea.",
        "Письмо.".encode("cp1251"),
        "L'été dernier, le gardien a été là-bas.".encode("cp1252"),
        "Смотритель маяка \x07 находит письмо без подписи.".encode("cp1251"),
    ],
)
def test_a_doubtful_encoding_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        decode(data, "premise.txt")
    assert "premise.txt" in caught.value.message
    assert "UTF-8" in caught.value.next_action


def test_words_of_two_scripts_are_doubtful() -> None:
    from fabula.formats._files import _doubt

    french = "L'été dernier, le gardien a trouvé une lettre où il était écrit que la mer était fermée, déjà oubliée là-bas.".encode(
        "cp1252"
    )
    assert not _doubt(french, french.decode("cp1252"))
    assert "two scripts" in _doubt(french, french.decode("cp1251"))
    assert "two scripts" in _doubt(french, french.decode("gb18030", "ignore"))


def test_encoding_named() -> None:
    assert decode("Ёж".encode("koi8-r"), "x", "koi8-r") == "Ёж"
    with pytest.raises(InputError, match="utf-8"):
        decode(b"\xff\xfe\xfa", "x", "utf-8")
    with pytest.raises(InputError, match="no encoding"):
        decode(b"a", "x", "utf-9")


def test_line_ends() -> None:
    assert decode(b"a\r\nb\r\n", "x") == decode(b"a\rb\r", "x") == "a\nb\n"
    assert decode(b"a\r\nb\n", "x") == "a\r\nb\n", "mixed line ends are somebody's text"


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        read_book(tmp_path / "nowhere.md")
    assert str(tmp_path / "nowhere.md") in caught.value.message


@pytest.mark.parametrize("suffix", [".md", ".txt", ".epub", ".docx"])
@pytest.mark.parametrize(
    "data", [b"", b"  \n\n", b"PK\x03\x04 not whole", b"\x00\x01\x02\x03" * 9, "A story.".encode("utf-16")[:-1]], ids=str
)
def test_never_an_empty_book(suffix: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"book{suffix}"
    path.write_bytes(data)
    if suffix in {".md", ".txt"} and data.startswith(b"PK"):
        assert read_book(path).chapters[0].scenes[0].text.startswith("PK")
        return
    with pytest.raises(InputError) as caught:
        read_book(path)
    assert str(path) in caught.value.message
    assert caught.value.next_action


@pytest.mark.parametrize("suffix", [".epub", ".docx"])
def test_damaged_at_every_tenth(suffix: str, tmp_path: Path) -> None:
    """Cut anywhere, or with a byte turned, a file gives an error or all of its text, never a part of it."""
    whole = render_book(CHINESE, "epub" if suffix == ".epub" else "docx")
    path = tmp_path / f"book{suffix}"
    texts, refusals = [scene.text for scene in CHINESE.scenes()], list[str]()
    spoilt = [whole[: len(whole) * tenth // 10] for tenth in range(1, 10)]
    spoilt += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(60, len(whole), max(1, len(whole) // 12))]
    for data in spoilt:
        path.write_bytes(data)
        try:
            found = [scene.text for scene in read_book(path).scenes()]
        except InputError as error:
            found, refusals = texts, [*refusals, error.message]
        assert found == texts
    assert len(refusals) >= 9
    assert all(str(path) in message for message in refusals)


def test_folder_and_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder.md"
    folder.mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_book(folder)

    def refuse(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "a.md").write_text("x")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        read_book(tmp_path / "a.md")


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves the old file and no debris."""
    path = tmp_path / "book.md"
    write_book(ENGLISH, path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left") as caught:
        write_book(CHINESE, path)
    assert str(path) in caught.value.message
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["book.md"]  # noqa: PTH208


def test_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_book(ENGLISH, tmp_path / "no" / "book.md")


def test_mode_and_link_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    write_book(ENGLISH, real)
    real.chmod(0o640)
    link.symlink_to(real)
    write_book(CHINESE, link)
    assert link.is_symlink()
    assert read_book(real).title == CHINESE.title
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("suffix", "bad"), [(".epub", "\x0b"), (".docx", "\x01"), (".epub", "\ufffe"), (".md", "\x00"), (".txt", "\ud800")]
)
def test_characters_that_a_format_cannot_hold(suffix: str, bad: str, tmp_path: Path) -> None:
    book = Book("T", chapters=(Chapter("c1", scenes=(Scene("s7", f"ab{bad}c"),)),))
    with pytest.raises(InputError, match=r"Scene s7.*position 2"):
        write_book(book, tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


def test_books_that_cannot_be_written(tmp_path: Path) -> None:
    twice = Chapter("c1", scenes=(Scene("s1", "a"), Scene("s1", "b")))
    for book in (
        Book(" "),
        Book("T", chapters=(twice,)),
        Book("T", chapters=(Chapter("c"), Chapter("c"))),
        Book("T", chapters=(Chapter(""),)),
    ):
        with pytest.raises(InputError):
            write_book(book, tmp_path / "x.md")


def test_keep_current(tmp_path: Path) -> None:
    path = tmp_path / "novel.md"
    assert keep_current(ENGLISH, path) == Kept(True, None)
    stamp = path.stat().st_mtime_ns, path.stat().st_ino
    assert keep_current(ENGLISH, path) == Kept(False, None)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == stamp
    assert keep_current(CHINESE, path) == Kept(True, None)
    assert read_book(path).title == CHINESE.title


@pytest.mark.parametrize("edit", [("船", "舟"), ("title: 第四把锁", "title: 锁")])
def test_keep_current_loses_no_edit(edit: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "novel.md"
    keep_current(CHINESE, path)
    edited = path.read_text("utf-8").replace(*edit)
    for number in (1, 2):
        path.write_text(edited, "utf-8")
        assert keep_current(CHINESE, path) == Kept(True, tmp_path / f"novel.edited-{number}.md")
        assert (tmp_path / f"novel.edited-{number}.md").read_text("utf-8") == edited
    assert read_book(path).chapters == CHINESE.chapters


def test_keep_current_spares_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "novel.md"
    path.write_text("# My own notes\n")
    with pytest.raises(InputError, match="did not write it"):
        keep_current(ENGLISH, path)
    assert path.read_text() == "# My own notes\n"


@pytest.mark.parametrize("language", BOOKS)
def test_urn_is_stable(language: str) -> None:
    book = BOOKS[language]
    assert book.urn == Book(book.title, book.language, book.authors, identifier=book.identifier).urn
    assert book.urn.startswith("urn:uuid:")


def test_a_long_text_without_line_breaks_is_read_in_linear_work(tmp_path: Path) -> None:
    """2 MB took minutes with a search that began anew at every character; here the whole test would not end."""
    path = tmp_path / "one-line.txt"
    text = "word " * 400_000
    path.write_text(text, "utf-8")
    assert sum(len(scene.text) for scene in read_book(path).scenes()) > 1_900_000


@pytest.mark.parametrize("name", ["own.md", "foreign.md", "foreign.txt"])
@pytest.mark.parametrize("line", ["a{}x", "## a{}x", "* * *{}x", "{}", "-{}-"], ids=str)
def test_long_runs_of_blanks_are_read_in_linear_work(name: str, line: str, tmp_path: Path) -> None:
    """With a search that begins anew at every blank this would take minutes."""
    path = tmp_path / name
    own = render_book(ENGLISH, "markdown").decode() if name == "own.md" else "A story.\n"
    path.write_text(f"{own}\n{line.format(' ' * 400_000)}\nThe end.\n", "utf-8")
    assert read_book(path).chapters[-1].scenes[-1].text.endswith("The end.")
