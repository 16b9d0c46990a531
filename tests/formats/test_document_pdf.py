"""PDF as a document: pages as places, what has no text, what is protected or damaged, and files made to break a reader."""

from __future__ import annotations

import pytest

from fabula.errors import InputError
from fabula.formats import _bounded, _converting, read_document
from tests.formats.files import make_pdf, pack_pdf, stream

PAGES = ["The fourth lock.\nMira counted the boats.", "米拉数了数船。\n没有人回答。", "Мира считала лодки."]
SQUARE = stream(b"\0" * 3, "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceRGB /BitsPerComponent 8 ")


def one_page(content: bytes, resources: str = "", more: tuple[bytes, ...] = ()) -> bytes:
    """A PDF of one page with this content stream; `more` are objects 5 and on."""
    return pack_pdf([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << {resources} >> >>".encode(),
        content,
        *more,
    ])  # fmt: skip


def test_pages_are_places() -> None:
    document = read_document(make_pdf(PAGES), "a.pdf")
    assert document.text == "\n\n".join(PAGES) + "\n"
    assert [label for _, label in document.places] == ["page 1", "page 2", "page 3"]
    assert [document.text[at:].split("\n")[0] for at, _ in document.places] == [page.split("\n")[0] for page in PAGES]
    assert (document.kind, document.format, document.notes) == ("prose", "pdf", ())


def test_pages_without_text_are_said() -> None:
    document = read_document(make_pdf(["One.", "", "", "Four.", ""]), "a.pdf")
    assert document.places == ((0, "page 1"), (6, "page 4"))
    assert document.notes == ("pages 2-3, 5 hold no text",)


def test_a_scanned_page_is_said_to_be_a_picture() -> None:
    scanned = one_page(stream(b"q 100 0 0 100 0 0 cm /I Do Q"), "/XObject << /I 5 0 R >>", (SQUARE,))
    with pytest.raises(InputError, match=r"a\.pdf holds no text \(page 1 holds no text; it is a picture\)"):
        read_document(scanned, "a.pdf")


def test_a_password() -> None:
    secret = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ({0}) /U ({0}) >> /ID [<00> <00>] ".format("x" * 32)
    with pytest.raises(InputError, match="protected by a password") as caught:
        read_document(make_pdf(["One."], trailer=secret), "a.pdf")
    assert "without the password" in caught.value.next_action


@pytest.mark.parametrize("data", [b"%PDF-1.7\n" + b"x" * 2000, make_pdf(PAGES)[:300], b"%PDF-", b"not a pdf"])
def test_damage(data: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.pdf is damaged or no PDF"):
        read_document(data, "a.pdf")


def test_hyphens_at_the_ends_of_lines() -> None:
    """PDFium joins a word across lines and marks the place; no mark may stay in the text."""
    text = read_document(make_pdf(["The har-\nbour was dark."]), "a.pdf").text
    assert not set(text) & set("\x02\ufffe\xad")
    assert "dark" in text


def test_a_form_that_draws_itself_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten calls a level, twenty levels deep: the child ends by its limits, and this process goes on."""
    monkeypatch.setattr(_bounded, "MOST_SECONDS", 1)
    monkeypatch.setattr(_bounded, "MOST_BYTES", 150 * 2**20)
    forms = tuple(
        stream(b"/X Do " * 10, f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X {6 + number} 0 R >> >> ")
        for number in range(20)
    )
    with pytest.raises(InputError) as caught:
        read_document(one_page(stream(b"/X Do"), "/XObject << /X 5 0 R >>", forms), "a.pdf")
    assert caught.value.message.startswith("a.pdf")


def test_a_stream_that_unpacks_to_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bounded, "MOST_BYTES", 120 * 2**20)
    with pytest.raises(InputError, match=r"a\.pdf (?:is damaged or no PDF file \(it takes too much memory\)|holds no text)"):
        read_document(one_page(stream(b" " * (100 * 2**20))), "a.pdf")


def test_pages_read_before_the_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile page in the middle: what was read before it stays, and the rest is said to be missing."""
    monkeypatch.setattr(_bounded, "MOST_BYTES", 150 * 2**20)
    bomb = stream(b"BT /F 12 Tf " + b"<0001> Tj " * 3_000_000)
    good = make_pdf(["One.", "Two.", "Three."])
    place = good.index(b"9 0 obj") + 8
    document_data = good[:place] + bomb + good[good.index(b"\nendobj", place) :]
    document = read_document(document_data, "a.pdf")
    assert document.text.startswith("One.")
    assert any("not read" in note for note in document.notes), document


def test_more_pages_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One page that is named thirty thousand times, and a file that claims more pages than it has."""
    claims = make_pdf(["One."]).replace(b"/Count 1", b"/Count 2")
    assert read_document(claims, "a.pdf").text.startswith("One.")
    many = make_pdf(["One."]).replace(b"/Kids [6 0 R] /Count 1", b"/Kids [" + b"6 0 R " * 30_000 + b"] /Count 30000")
    monkeypatch.setattr(_converting, "MOST_PAGES", 5)
    records = list(_converting.read_pdf(many))
    assert records[0] == {"pages": 30_000}
    assert [record.get("text") for record in records[1:]] == ["One."] * 5 + [None]
    assert records[-1] == {"ended": "pages"}
