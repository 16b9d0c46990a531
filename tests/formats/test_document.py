"""Documents of text, web pages, notebooks and rich text: what is read, how it is called, what is guessed, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import InputError
from fabula.formats import Document, document_format, read_document

ENGLISH = "Mira counted the boats – “four”, she said. There were five yesterday; nobody answered.\n" * 4
CHINESE = "米拉数了数船。“四条，”她说，“昨天还有五条。”没有人回答她的话。\n" * 8
RUSSIAN = "Мира считала лодки. «Четыре, — сказала она, — вчера было пять». Никто не ответил ей.\n" * 4


TRADITIONAL = CHINESE.translate(str.maketrans("数条说还没话", "數條說還沒話"))
RUSSIAN_PLAIN = RUSSIAN.translate({ord("«"): '"', ord("»"): '"', ord("—"): "-"})


def refused(data: bytes, name: str, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read_document(data, name, **options)
    assert caught.value.next_action
    assert caught.value.next_action != InputError.default_action
    return caught.value


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((text, name) for text in (ENGLISH, CHINESE, RUSSIAN) for name in ("utf_8", "utf_8_sig", "utf_16", "utf_32")),
        *((text, name) for text in (ENGLISH, CHINESE, RUSSIAN) for name in ("utf_16_le", "utf_16_be", "utf_32_le", "utf_32_be")),
        (CHINESE, "gb18030"), (RUSSIAN, "cp1251"), (RUSSIAN_PLAIN, "koi8_r"), (ENGLISH, "cp1252"),
        (TRADITIONAL, "big5"),
    ],
)  # fmt: skip
def test_encodings(text: str, encoding: str) -> None:
    document = read_document(text.encode(encoding), "a.txt")
    assert document.text == text
    guessed = encoding in {"gb18030", "cp1251", "koi8_r", "cp1252", "big5", "utf_16_le", "utf_16_be"}
    assert any("guessed" in note for note in document.notes) == guessed


def test_a_named_encoding_is_not_guessed() -> None:
    assert read_document(RUSSIAN_PLAIN.encode("cp866"), "a.txt", encoding="cp866") == Document(
        "a.txt", RUSSIAN_PLAIN, "prose", "text", (), ()
    )
    assert "not in the encoding ascii" in refused(RUSSIAN.encode(), "a.txt", encoding="ascii").message
    assert "no encoding 'klingon'" in refused(b"x", "a.txt", encoding="klingon").message


def test_one_broken_letter_keeps_no_file_from_being_read() -> None:
    broken = read_document(RUSSIAN.encode() + b"\xff\xd0", "a.md")
    assert broken.text == RUSSIAN + "\ufffd\ufffd"
    assert broken.notes == ("2 places are not UTF-8 and shown as \ufffd",)
    latin = read_document(b"# by Ren\xe9\nx = 1\n" * 3, "a.py")
    assert (latin.text, latin.kind) == ("# by René\nx = 1\n" * 3, "code")
    assert "windows-1252" in latin.notes[0]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends(ends: str) -> None:
    assert read_document(ends.join(["a", "", "b"]).encode(), "a.txt").text == "a\n\nb"
    assert read_document(f"a{ends}b\nc".encode(), "a.py").text == "a\nb\nc"


@given(
    st.text(
        st.characters(
            codec="utf-8", categories=("L", "M", "N", "P", "S", "Z", "Cf"), exclude_characters="\ufeff", include_characters="\n\t"
        ),
        min_size=1,
        max_size=200,
    ).filter(str.strip)
)
@settings(max_examples=60, deadline=None)
def test_utf8_is_read_as_it_is(text: str) -> None:
    assert read_document(text.encode(), "a.txt").text == text


@given(st.binary(max_size=300), st.sampled_from(["a.txt", "a.html", "a.ipynb", "a.docx", "a.epub", "a.rtf.md", "a", "a.py"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_a_document_or_an_error(data: bytes, name: str) -> None:
    said = ""
    text = "x"
    try:
        text = read_document(data, name).text
    except InputError as error:
        said = error.message
    assert said.startswith(name if said else "")
    assert text.strip()
    assert not set(text) & {"\0", "\r"}


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("a.txt", b"x", "text"), ("LICENSE", b"x", "text"), ("Makefile", b"x", "code"), ("a/Dockerfile", b"x", "code"),
        ("run", b"#!/bin/sh\n", "code"), ("a.PY", b"x", "code"), ("a.md", b"x", "markdown"), ("a.html", b"<p>x", "html"),
        ("page", b"<!DOCTYPE html><p>", "html"), ("a.html", b"<p>{% if x %}", "code"), ("a.html", b"<?php echo 1 ?>", "code"),
        ("a.pdf", b"%PDF-1.4", "pdf"), ("stdin", b"%PDF-1.4", "pdf"), ("a.ipynb", b"{}", "notebook"), ("a.rtf", b"{\\rtf1", "rtf"),
        ("a.epub", b"PK\x03\x04", "epub"), ("a.docx", b"PK\x03\x04", "docx"), ("x", b"PK\x03\x04....mimetypeapplication/epub+zip", "epub"),
        ("a.zip", b"PK\x03\x04", None), ("a.xlsx", b"PK\x03\x04[Content_Types].xml word/", None), ("a.odt", b"PK\x03\x04", None),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None), ("a", b"\x7fELF\0\0", None), ("a.gz", b"\x1f\x8b", None),
        ("a.png", b"\x89PNG\r\n\x1a\n", "image"), ("a.mp3", b"ID3\x04", "speech"), ("a.wav", b"RIFF....WAVE", "speech"),
        ("a.svg", b"<svg>", None), ("a.txt", "Привет".encode("utf_16"), "text"), ("a.txt", "Hello, hello.".encode("utf_32_be"), "text"),
        ("a.csv", b"a,b", "text"), (".bashrc", b"x", "code"), ("requirements.txt", b"x", "code"), ("第一章.txt", b"x", "text"),
    ],
)  # fmt: skip
def test_formats(name: str, head: bytes, format: str | None) -> None:
    assert document_format(name, head) == format


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.bin", b"\x7fELF\0\0\1", "not a text file"), ("a.zip", b"PK\x03\x04xx", "an archive"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Word"),
        ("a.odt", b"PK\x03\x04xx", "OpenDocument"), ("a.txt", b"", "empty"), ("a.txt", b" \n\t\n", "no text"),
        ("a.mobi", b"\0\0BOOKMOBI", "Kindle"),
        ("a.html", b"<p> </p><script>x</script>", "no text"), ("a.ipynb", b"{", "not a notebook"), ("a.ipynb", b"[1]", "not a notebook"),
        ("a.ipynb", b"[" * 100_000, "not a notebook"), ("a.ipynb", b"[]," * 4_000_000, "too large"),
        ("a.txt", bytes(range(1, 32)) * 9, "not"),
    ],
)  # fmt: skip
def test_refusals(name: str, data: bytes, says: str) -> None:
    assert says in refused(data, name).message


PAGE = """<html><head><title>T</title><style>p {{}}</style><script>alert(1)</script></head><body>
<h1>{head}</h1><p>{text} &lt;&eacute;&gt; <a href="http://example.org/long">link</a></p><p>one<br>two</p>
<ul><li>a<ul><li>b</li></ul></li></ul><table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>def f():
    return 1</pre><img src="x.png"><p style="display:none">hidden</p></body></html>"""


@pytest.mark.parametrize(
    ("text", "encoding", "label"),
    [
        (ENGLISH, "cp1252", "ISO-8859-1"), (CHINESE, "gb18030", "gb2312"), (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8_r", "koi8-r"), (CHINESE, "utf_8", "UTF-8"),
    ],
)  # fmt: skip
def test_web_pages(text: str, encoding: str, label: str) -> None:
    text = " ".join(text.split())
    page = f'<!DOCTYPE html><meta http-equiv="Content-Type" content="text/html; charset={label}">' + PAGE.format(head="H", text=text)
    document = read_document(page.encode(encoding, "xmlcharrefreplace"), "a.html")
    blocks = document.text.strip().split("\n\n")
    assert blocks[:3] == ["# H", f"{text} <é> link", "one\ntwo"]
    assert blocks[3:6] == ["- a\n  - b", "| x | y |\n| --- | --- |\n| 1 | 2 |", "```\ndef f():\n    return 1\n```"]
    assert not {"alert", "hidden", "example"} & set(document.text.replace(".", " ").split())
    assert document.notes == ("1 picture is not read",)
    assert document.kind == "prose"


def test_a_page_that_lies_about_its_encoding() -> None:
    document = read_document(b'<meta charset="ascii-8">' + RUSSIAN.encode(), "a.html")
    assert RUSSIAN.split("\n")[0] in document.text
    wrong = read_document(b'<meta charset="utf-8"><p>' + (RUSSIAN * 3).encode("cp1251"), "a.html")
    assert RUSSIAN.split("\n")[0] in wrong.text
    assert [note for note in wrong.notes if "utf-8" in note]


def test_self_closed_elements_swallow_nothing() -> None:
    head = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
    page = f'{head}<body><p/><script src="x"/><p>Text.</p></body></html>'
    assert read_document(page.encode(), "a.xhtml").text == "Text.\n"


def test_hostile_pages() -> None:
    """Nesting that would fill a stack, a small page that wants to become a large one, entities: bounded, and said."""
    assert "nested too deep" in refused(b"<div>" * 100_000 + b"deep text " * 100, "a.html").message
    half = read_document(b"<p>" + b"plain text " * 60 + b"<div>" * 100_000 + b"deep text " * 90, "a.html")
    assert "hidden or nested too deep" in half.notes[0]
    assert read_document(b"<!DOCTYPE html [<!ENTITY a 'aaaa'>]><p>x &a;</p>", "a.html").text == "x &a;\n"
    assert "16 MiB" in refused(b"<p>" + b"x" * (17 * 2**20), "a.html").message


def test_a_large_page_is_converted_in_another_process() -> None:
    document = read_document(b"".join(b"<p>Paragraph %d of them.</p>" % number for number in range(9000)), "a.html")
    assert document.text.count("\n\n") == 8999


def notebook(*cells: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"cells": list(cells), "nbformat": 4, **more}).encode()


def test_notebooks() -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}
    fault = {"output_type": "error", "ename": "KeyError", "evalue": "x", "traceback": ["…"]}
    data = notebook(
        {"cell_type": "markdown", "source": ["# Лодки\n", "四条船"]},
        {"cell_type": "code", "source": "print(1)", "outputs": [{"output_type": "stream", "text": ["\x1b[31m1\x1b[0m\n"]}]},
        {"cell_type": "code", "source": "", "outputs": []},
        {"cell_type": "code", "source": "plot()", "outputs": [picture]},
        {"cell_type": "code", "source": "f()", "outputs": [fault]},
        {"cell_type": "code", "source": "g()", "outputs": [{"output_type": "stream", "text": "row\n" * 500}]},
        metadata={"kernelspec": {"language": "julia"}},
    )  # fmt: skip
    document = read_document(data, "a.ipynb")
    assert (document.kind, document.format) == ("code", "notebook")
    assert [label for _, label in document.places] == ["cell 1", "cell 2", "cell 4", "cell 5", "cell 6"]
    assert document.text.startswith("# Лодки\n四条船\n\n```julia\nprint(1)\n```\n\nOutput:\n\n```\n1\n```\n\n")
    assert "KeyError: x" in document.text
    assert document.text.count("row") == 20
    assert set(document.notes) == {"the output of 1 cell is shortened to 20 lines", "1 picture is not read"}
    at = next(offset for offset, label in document.places if label == "cell 4")
    assert document.text[at:].startswith("```julia\nplot()")


def test_a_notebook_with_half_a_character() -> None:
    assert read_document(notebook({"cell_type": "raw", "source": "x \ud800 y"}), "a.ipynb").text == "x \ufffd y\n"


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (rb"{\rtf1\ansi\ansicpg1251 {\b \'cc\'e8\'f0\'e0}\par 2}", "Мира\n2\n"),
        (rb"{\rtf1\ansi\ansicpg936 \u31859?\u25289?\'a1\'a3}", "米拉。\n"),
        (rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\info{\title No}}Plain \{braces\}.\par}", "Plain {braces}.\n"),
    ],
)  # fmt: skip
def test_rich_text(rtf: bytes, text: str) -> None:
    assert read_document(rtf, "a.rtf").text == text
