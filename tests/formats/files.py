"""Files for the tests of documents, made byte by byte: PDF of pages in any script, zip files with any parts."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def stream(data: bytes, extra: str = "") -> bytes:
    """A PDF stream object, packed."""
    packed = zlib.compress(data)
    return f"<< /Length {len(packed)} /Filter /FlateDecode {extra}>>\nstream\n".encode() + packed + b"\nendstream"


def pack_pdf(objects: list[bytes], trailer: str = "") -> bytes:
    """A PDF file of these objects; the first is the catalogue."""
    out = b"%PDF-1.5\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer}>>\n"
    return out + end.encode() + f"startxref\n{len(out)}\n%%EOF".encode()


def make_pdf(pages: list[str], trailer: str = "", extra: list[bytes] | None = None) -> bytes:
    """A PDF with a page for each text; letters are mapped to Unicode by a table in it, so that any script works without a font."""
    signs = sorted(set("".join(pages)) - {"\n"}) or [" "]
    code = {sign: number for number, sign in enumerate(signs, 1)}
    rows = "\n".join(f"<{code[sign]:04x}> <{sign.encode('utf_16_be').hex()}>" for sign in signs)
    table = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        f"1 begincodespacerange <0000> <ffff> endcodespacerange {len(signs)} beginbfchar\n{rows}\nendbfchar endcmap end end"
    )
    count = len(pages)
    kids = " ".join(f"{6 + 2 * number} 0 R" for number in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [4 0 R] /ToUnicode 5 0 R >>",
        (
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 500"
            b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
        ),
        stream(table.encode()),
    ]
    for number, text in enumerate(pages):
        lines = "".join(
            f"BT /F 12 Tf 50 {750 - 20 * row} Td <{''.join(f'{code[sign]:04x}' for sign in line)}> Tj ET\n"
            for row, line in enumerate(text.split("\n"))
            if line
        )
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {7 + 2 * number} 0 R"
            " /Resources << /Font << /F 3 0 R >> >> >>".encode()
        )
        objects.append(stream(lines.encode()))
    return pack_pdf(objects + (extra or []), trailer)


def make_zip(parts: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these parts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def make_docx(body: str, **parts: str) -> bytes:
    """A DOCX file of this body, with more parts below `word/` (`styles="…"`)."""
    head = f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{W}"><w:body>'
    more = {f"word/{name}.xml": f'<w:{name} xmlns:w="{W}">{content}</w:{name}>' for name, content in parts.items()}
    return make_zip({"[Content_Types].xml": "<Types/>", "word/document.xml": f"{head}{body}</w:body></w:document>", **more})


def paragraph(text: str, style: str = "", more: str = "") -> str:
    """A paragraph of a DOCX file."""
    said = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f'<w:p><w:pPr>{said}{more}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def make_epub(
    pages: dict[str, str], *, nav: str = "", order: list[str] | None = None, parts: Mapping[str, bytes | str] | None = None
) -> bytes:
    """An EPUB of these pages (name → body), in their order, unless another is given."""
    xhtml = '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>'
    items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in pages)
    items += '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>' if nav else ""
    spine = "".join(f'<itemref idref="{name}"/>' for name in (order or list(pages)))
    return make_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="E/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
            "E/book.opf": f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>',
            **{f"E/{name}.xhtml": f"{xhtml}{body}</body></html>" for name, body in pages.items()},
            **({"E/nav.xhtml": f"{xhtml}{nav}</body></html>"} if nav else {}),
            **(parts or {}),
        }
    )
