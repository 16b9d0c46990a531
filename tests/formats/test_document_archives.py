"""DOCX and EPUB as documents: headings and chapters as places, tables and notes, damage, protection, bombs."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.formats import Document, Format, _unpacking, read_book, read_document, render_book
from tests.formats.books import BOOKS
from tests.formats.files import make_docx, make_epub, make_zip, paragraph

HEADINGS = '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="2"><w:name w:val="heading 2"/></w:style>'
OWN = '<w:style w:styleId="Own"><w:name w:val="Глава"/><w:basedOn w:val="1"/></w:style>'


def refused(data: bytes, name: str) -> str:
    with pytest.raises(InputError) as caught:
        read_document(data, name)
    assert caught.value.message.startswith(name)
    assert caught.value.next_action != InputError.default_action
    return caught.value.message


def at_places(document: Document) -> list[tuple[str, str]]:
    """Each place with the line that it points to."""
    return [(label, document.text[offset:].split("\n")[0]) for offset, label in document.places]


@pytest.mark.parametrize("format", ["docx", "epub"])
@pytest.mark.parametrize("language", ["en", "zh", "ru"])
def test_our_own_books(language: str, format: Format) -> None:
    book = BOOKS[language]
    document = read_document(render_book(book, format), f"a.{format}")
    assert (document.kind, document.format) == ("prose", format)
    labels = [label for label, _ in at_places(document)]
    for chapter in book.chapters:
        if chapter.title:
            assert any(chapter.title in label for label in labels)
    for scene in book.scenes():
        for sentence in scene.text.replace("*", "").replace("_", "").split("\n"):
            assert not sentence.strip("*_ 　-#") or sentence.strip("*_ 　-#")[:12].strip() in document.text.replace("*", "").replace(
                "\\", ""
            ), sentence
    assert all(label.split()[0] in line.replace("\u3000", " ") for label, line in at_places(document))


def test_word_documents() -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = "".join(f"<w:tr>{''.join(cell.format(text) for text in row)}</w:tr>" for row in (("Лодка", "число"), ("a|b", "5")))
    item = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="3"/></w:numPr>'
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = "".join([
        paragraph("Лодки", "1"), paragraph("四条船。"), f"<w:tbl>{rows}</w:tbl>",
        paragraph("one", more=item.format(0)), paragraph("two", more=item.format(1)), paragraph("Next", "2"),
        f'<w:p><w:r><w:t>With</w:t><w:tab/><w:t>tab</w:t><w:br/><w:t>line</w:t><w:br w:type="page"/></w:r>{note}</w:p>',
        '<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>',
        '<w:p><w:moveFrom><w:r><w:t>away</w:t></w:r></w:moveFrom></w:p>',
        "<w:p><w:r><w:drawing><a:blip xmlns:a='a'/></w:drawing></w:r></w:p>",
        paragraph("Своя", "Own"),
    ])  # fmt: skip
    styles = HEADINGS + OWN
    footnotes = '<w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote>'
    document = read_document(make_docx(body, styles=styles, footnotes=footnotes), "a.docx")
    assert document.text.split("\n\n") == [
        "# Лодки", "四条船。", "| Лодка | число |\n| --- | --- |\n| a\\|b | 5 |", "- one\n  - two", "## Next", "With\ttab\nline[^2]",
        "new", "# Своя", "[^2]: A note.\n",
    ]  # fmt: skip
    assert at_places(document) == [("Лодки", "# Лодки"), ("Next", "## Next"), ("Своя", "# Своя")]
    assert document.notes == ("1 picture is not read",)


def test_epub_of_others() -> None:
    pages = {
        "one": "<p>米拉数了数船。<br/>四条。</p><table><tr><td>a</td><td>b</td></tr></table>",
        "two": "<h1>Глава 2</h1><p>Text &amp; more.</p><h2>Part</h2><ul><li>x</li></ul>",
        "three": '<img src="p.png"/>',
    }
    nav = '<ol><li><a href="one.xhtml#start">第一章</a></li><li><a href="two.xhtml">Two</a></li></ol>'
    document = read_document(make_epub(pages, nav=nav, order=["two", "one", "two", "three", "lost"]), "a.epub")
    assert document.text.split("\n\n") == [
        "# Глава 2", "Text & more.", "## Part", "- x", "# 第一章", "米拉数了数船。\n四条。", "| a | b |\n| --- | --- |\n",
    ]  # fmt: skip
    assert at_places(document) == [("Глава 2", "# Глава 2"), ("Part", "## Part"), ("第一章", "# 第一章")]
    assert document.notes == ("1 picture is not read",)


def test_epub_with_pages_missing() -> None:
    data = make_epub({"one": "<p>One.</p>", "two": "<p>Two.</p>"})
    parts = {name: zipfile.ZipFile(io.BytesIO(data)).read(name) for name in zipfile.ZipFile(io.BytesIO(data)).namelist()}
    del parts["E/two.xhtml"]
    assert read_document(make_zip(parts), "a.epub").notes == ("1 page is missing from the file",)


def test_protection() -> None:
    drm = '<encryption xmlns="x"><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>'
    assert "DRM" in refused(make_epub({"one": "<p>x</p>"}, parts={"META-INF/encryption.xml": drm}), "a.epub")
    fonts = drm.replace("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "http://www.idpf.org/2008/embedding")
    assert read_document(make_epub({"one": "<p>x</p>"}, parts={"META-INF/encryption.xml": fonts}), "a.epub").text == "x\n"
    locked = bytearray(make_docx(paragraph("x")))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = locked.find(mark)
        while place >= 0:
            locked[place + offset] |= 1
            place = locked.find(mark, place + 4)
    assert "password" in refused(bytes(locked), "a.docx")
    assert "password" in refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"E\0n\0c\0r\0y\0p\0t\0e\0d\0" * 9, "a.docx")


@pytest.mark.parametrize("name", ["a.docx", "a.epub"])
def test_damage(name: str) -> None:
    whole = make_docx(paragraph("x" * 5000)) if name == "a.docx" else make_epub({"one": "<p>x</p>"})
    assert "damaged" in refused(whole[: len(whole) // 2], name)
    assert "damaged" in refused(b"PK\x03\x04" + b"\0" * 500, name)
    assert "lacks" in refused(make_zip({"[Content_Types].xml": "<Types/>"}), name)
    assert "damaged" in refused(make_docx("<w:p>"), "a.docx")
    bent = bytearray(whole)
    place = whole.index(b"PK\x03\x04", 4) + 60
    bent[place : place + 12] = b"\xff" * 12
    with pytest.raises(InputError):
        read_document(bytes(bent), name)


class _Lying(io.BytesIO):
    """Takes a zip file and makes its sizes small, as a bomb does."""

    @staticmethod
    def shrink(data: bytes, part: str, size: int) -> bytes:
        out = bytearray(data)
        entry = zipfile.ZipFile(io.BytesIO(data)).getinfo(part)
        needle = entry.file_size.to_bytes(4, "little")
        place = out.find(needle)
        while place >= 0:
            out[place : place + 4] = size.to_bytes(4, "little")
            place = out.find(needle, place + 4)
        return bytes(out)


def peak(data: bytes, name: str) -> tuple[str, int]:
    tracemalloc.start()
    said = refused(data, name)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return said, most


def test_bombs_are_counted_while_they_unpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty times its size on the disk, honest or not about it: refused after the limit, in bounded memory."""
    monkeypatch.setattr(_unpacking, "MOST_BYTES", 2**20)
    body = paragraph("x" * (4 * 2**20))
    honest = make_docx(body)
    assert len(honest) < 2**16
    said, most = peak(honest, "a.docx")
    assert "unpacks to more than 1 MiB" in said
    assert most < 8 * 2**20
    lying = _Lying.shrink(honest, "word/document.xml", 1000)
    said, most = peak(lying, "a.docx")
    assert "damaged" in said
    assert most < 8 * 2**20
    book = make_epub({f"p{number}": f"<p>{'y' * 300_000}</p>" for number in range(6)})
    said, most = peak(book, "a.epub")
    assert "unpacks to more than 1 MiB" in said
    assert most < 8 * 2**20


def test_zip_files_inside_are_not_opened() -> None:
    bomb = make_zip({"x": b"\0" * (4 * 2**20)})
    for _ in range(3):
        bomb = make_zip({f"{number}.zip": bomb for number in range(4)})
    assert read_document(make_epub({"one": "<p>x</p>"}, parts={"E/inner.zip": bomb}), "a.epub").text == "x\n"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_bound(method: int) -> None:
    data = make_zip({"[Content_Types].xml": "<Types/>", "word/document.xml": b"x" * 2**20}, method)
    assert "packed in a way" in refused(data, "a.docx")


def test_a_million_parts() -> None:
    assert "more than 20,000 parts" in refused(make_zip({"a": b""}) + b"PK\x01\x02" * 20_001, "a.docx")


LAUGHS = '<!DOCTYPE a [<!ENTITY a "lol"><!ENTITY b "{}"><!ENTITY c "{}">]>'.format("&a;" * 50, "&b;" * 50)


def test_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    document = make_docx(paragraph("x"))
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        text = archive.read("word/document.xml").decode()
    bomb = make_zip({"word/document.xml": text.replace("<w:document", LAUGHS + "<w:document").replace(">x<", ">&c;<")})
    assert "declares entities" in refused(bomb, "a.docx")
    page = make_epub({"one": "<p>&c; text</p>"}, parts={"E/one.xhtml": LAUGHS + "<html><body><p>&c; text</p></body></html>"})
    assert read_document(page, "a.epub").text == "&c; text\n"
    outside = '<!DOCTYPE a SYSTEM "file:///etc/passwd"><!-- --><a/>'
    assert "names no package" in refused(make_epub({}, parts={"META-INF/container.xml": outside}), "a.epub")


def test_depth_and_number() -> None:
    assert "nested too deep" in refused(make_docx("<w:p>" * 3000 + "</w:p>" * 3000), "a.docx")
    assert "nested too deep" in refused(make_epub({"one": "<div>" * 60_000 + "deep text " * 60}), "a.epub")


def test_many_headings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unpacking, "_MOST_ELEMENTS", 1000)
    assert "too many elements" in refused(make_docx(paragraph("x") * 400), "a.docx")


def test_books_refuse_the_same(tmp_path: Path) -> None:
    """`read_book`, which builds trees, is as safe: depth, methods without bound, more parts or bytes than are allowed."""
    cases = {
        "deep.epub": (make_epub({"one": "<div>" * 1900 + "deep" + "</div>" * 1900}), "nested too deep"),
        "method.docx": (make_zip({"word/document.xml": b"x" * 2**20}, zipfile.ZIP_LZMA), "packed in a way"),
        "parts.docx": (make_zip({"a": b""}) + b"PK\x01\x02" * 20_001, "more than 20,000 parts"),
        "zeros.docx": (make_zip({"word/document.xml": b"\0" * 2**20}), "not XML"),
        "large.docx": (
            make_zip({"a": b"x"}).replace(b"\1\0\0\0\1\0\0\0", b"\xff\xff\xff\x7f\xff\xff\xff\x7f"),
            "more than 256 MiB|damaged",
        ),
    }
    for name, (data, says) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=says):
            read_book(tmp_path / name)
