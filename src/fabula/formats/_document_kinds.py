"""Which format a file is in, by its name and its first bytes."""

from __future__ import annotations

import re

from fabula.formats._document import Kind
from fabula.formats._document_text import is_text

HEAD = 8192
"""Bytes of a file that are enough to tell."""

_PROSE = {
    ".txt": "text", ".text": "text", ".rst": "text", ".adoc": "text", ".asciidoc": "text", ".org": "text", ".tex": "text", ".ltx": "text",
    ".srt": "text", ".vtt": "text", ".log": "text", ".textile": "text", ".wiki": "text", ".pod": "text", ".fountain": "text",
    ".me": "text", ".man": "text", ".csv": "text", ".tsv": "text",
    ".bib": "text", ".eml": "text", ".mbox": "text", ".po": "text", ".pot": "text",
    ".md": "markdown", ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown", ".mdx": "markdown", ".rmd": "markdown",
    ".qmd": "markdown",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".xht": "html",
}  # fmt: skip
_CODE_SUFFIXES = (
    ".py .pyi .pyw .pyx .pxd .js .mjs .cjs .jsx .ts .mts .cts .tsx .vue .svelte .astro .java .kt .kts .scala .sc .groovy .gradle "
    ".clj .cljs .cljc .edn .c .h .cc .cpp .cxx .c++ .hh .hpp .hxx .inl .ipp .m .mm .cu .cuh .cs .csx .fs .fsi .fsx .vb .vbs .go "
    ".rs .swift .d .zig .nim .v .sv .svh .vhd .vhdl .rb .rake .erb .gemspec .php .phtml .pl .pm .t .raku .lua .tcl .r .jl .hs .lhs "
    ".ml .mli .elm .purs .ex .exs .erl .hrl .lisp .lsp .cl .el .scm .ss .rkt .f .for .f77 .f90 .f95 .f03 .f08 .pas .pp .dpr .ada "
    ".adb .ads .cob .cbl .cpy .asm .s .nasm .sh .bash .zsh .fish .ksh .csh .ps1 .psm1 .psd1 .bat .cmd .awk .sed .sql .psql .pls "
    ".plsql .ddl .graphql .gql .proto .thrift .avsc .capnp .idl .yaml .yml .toml .ini .cfg .conf .config .properties .env "
    ".editorconfig .json .json5 .jsonc .jsonl .ndjson .geojson .xml .xsd .xsl .xslt .dtd .wsdl .plist .storyboard .xib .xaml "
    ".csproj .vbproj .fsproj .sln .props .targets .resx .tf .tfvars .hcl .nix .dhall .bzl .bazel .bzlmod .cmake .mk .mak .make .am "
    ".ac .in .m4 .pro .pri .qml .css .scss .sass .less .styl .jinja .jinja2 .j2 .hbs .handlebars .mustache .ejs .pug .jade .haml "
    ".slim .liquid .tpl .tmpl .twig .jsp .asp .aspx .ascx .cshtml .razor .njk .dart .sol .move .vy .cairo .wat .wast .glsl .vert "
    ".frag .geom .comp .hlsl .fx .metal .wgsl .gd .gdshader .tscn .tres .cls .trigger .apex .abap .sas .do .ado .sps .mat .nb .wl "
    ".stan .bugs .mod .dat .ahk .au3 .applescript .scpt .coffee .ls .hx .as .vala .vapi .cr .feature .robot .diff .patch .rego "
    ".cue .jsonnet .libsonnet .ipxe .ld .lds .dts .dtsi .kdl .ron .http .rest .prisma .tcsh .inc .def .rc .service .timer"
)
_CODE = frozenset(_CODE_SUFFIXES.split())
_CODE_NAMES = re.compile(
    r"(?i)(?:gnu)?makefile(?:\..+)?|dockerfile(?:\..+)?|containerfile|jenkinsfile|vagrantfile|rakefile|gemfile|guardfile|procfile|brewfile"
    r"|podfile|fastfile|cmakelists\.txt|meson\.build|meson_options\.txt|sconstruct|sconscript|build|workspace|justfile|snakefile|tiltfile"
    r"|caddyfile|configure|gradlew|requirements[\w.-]*\.txt|constraints[\w.-]*\.txt|\.(?:bash|zsh|vim|git|npm|docker|eslint|prettier|babel)\w*"
)
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"})
_SPEECH = frozenset({".wav", ".mp3", ".flac", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".aiff", ".aif"})
_BINARY = {
    ".doc": ("an old Word document", "Save it as .docx."),
    ".odt": ("an OpenDocument text", "Save it as .docx."),
    ".pages": ("a Pages document", "Save it as .docx."),
    ".xlsx": ("a spreadsheet", "Save it as .csv."),
    ".xls": ("a spreadsheet", "Save it as .csv."),
    ".ods": ("a spreadsheet", "Save it as .csv."),
    ".pptx": ("a slide show", "Save it as PDF."),
    ".ppt": ("a slide show", "Save it as PDF."),
    ".odp": ("a slide show", "Save it as PDF."),
    ".mobi": ("a Kindle book", "Convert it to EPUB."),
    ".azw": ("a Kindle book", "Convert it to EPUB."),
    ".azw3": ("a Kindle book", "Convert it to EPUB."),
    ".djvu": ("a DjVu file", "Convert it to PDF."),
    ".svg": ("a drawing", "Save the text that matters as a text file."),
}
_ARCHIVE = ("an archive", "Unpack it, and read the folder.")
_MAGIC: list[tuple[bytes, str]] = [
    (b"\x89PNG\r\n\x1a\n", "image"), (b"\xff\xd8\xff", "image"), (b"GIF87a", "image"), (b"GIF89a", "image"), (b"II*\0", "image"),
    (b"MM\0*", "image"), (b"ID3", "speech"), (b"fLaC", "speech"), (b"OggS", "speech"),
]  # fmt: skip
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\x28\xb5\x2f\xfd")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PAGE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]*>\s*)?(?:<!--.{0,500}?-->\s*)*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL
)


def document_format(name: str, head: bytes) -> str | None:
    """The format of a file.

    Args:
        name: the file's name, or its path.
        head: its first bytes; `HEAD` of them are enough.

    Returns:
        `text`, `markdown`, `html`, `pdf`, `docx`, `epub`, `rtf`, `notebook`, `code`, `image` or `speech`; None = no text can be read
        from it (a program, an archive, a film).
    """
    suffix = suffix_of(name)
    by_bytes = _by_bytes(suffix, head)
    if by_bytes != "text":
        return by_bytes
    if suffix == ".ipynb":
        return "notebook"
    if suffix == ".svg" or not is_text(head):
        return None
    if suffix in _PROSE and not _CODE_NAMES.fullmatch(_last(name)):
        format = _PROSE[suffix]
        return "code" if format == "html" and _is_template(head.decode("utf_8", "replace")) else format
    if suffix in _CODE or _CODE_NAMES.fullmatch(_last(name)) or head.startswith(b"#!"):
        return "code"
    return "html" if _PAGE.match(head) else "text"


def kind_of(name: str, format: str) -> Kind:
    """How a text in this format is to be split."""
    return "code" if format in {"code", "notebook"} or suffix_of(name) in {".csv", ".tsv"} else "prose"


def why_not(name: str, head: bytes) -> tuple[str, str]:
    """What a file is of which no text can be read, and what to do."""
    suffix = suffix_of(name)
    if suffix in _BINARY:
        return _BINARY[suffix]
    if head.startswith(_OLD_OFFICE):
        return "a file of an old office program, or protected by a password", "Save it as .docx, without a password."
    if head.startswith(_ARCHIVES):
        return _ARCHIVE
    return "not a text file", "Check that it is the right file."


def suffix_of(name: str) -> str:
    """The ending of a file's name, small, with its point; empty where there is none."""
    stem, point, suffix = _last(name).rpartition(".")
    return f".{suffix.lower()}" if point and stem else ""


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _by_bytes(suffix: str, head: bytes) -> str | None:
    """What the first bytes say; `text` where they say nothing."""
    if head.startswith(b"PK\x03\x04"):
        if suffix in {".epub", ".docx"}:
            return suffix[1:]
        if suffix in _BINARY:
            return None
        if b"mimetypeapplication/epub+zip" in head[:100]:
            return "epub"
        return "docx" if b"word/" in head and b"[Content_Types].xml" in head else None
    if b"%PDF-" in head[:1024] and (suffix == ".pdf" or head.lstrip()[:5] == b"%PDF-"):
        return "pdf"
    if head.startswith(b"{\\rtf"):
        return "rtf"
    for magic, format in _MAGIC:
        if head.startswith(magic):
            return format
    if head.startswith(b"RIFF") and head[8:12] in {b"WEBP", b"WAVE"}:
        return "image" if head[8:12] == b"WEBP" else "speech"
    if head.startswith((_OLD_OFFICE, *_ARCHIVES)):
        return None
    if suffix in {".pdf", ".docx", ".epub"}:
        return suffix[1:]  # damaged, and its reader says so
    if b"\0" in head and suffix in _IMAGES | _SPEECH:
        return "image" if suffix in _IMAGES else "speech"
    return None if b"\0" in head and suffix in _BINARY else "text"


def _is_template(html: str) -> bool:
    """Whether it is the source of pages rather than a page."""
    return bool(re.search(r"\{%-?\s*\w|\{\{[#/>]?\s*[\w.$]|<%[=\-#@\s]|<\?(?:php|=)", html))
