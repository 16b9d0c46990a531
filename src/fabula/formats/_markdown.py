"""A book as one Markdown file: readable anywhere, and read back without loss.

    ---
    fabula: 1
    title: The Fourth Lock
    language: en
    ---

    # The Fourth Lock

    <!-- chapter {"id": "c1", "label": "Chapter 1"} -->

    ## Chapter 1: The Harbour

    <!-- scene {"id": "s1"} -->

    The text as it is.

    * * *

    <!-- scene {"id": "s2"} -->

The comments carry the ids and are invisible once rendered. A line of prose that Markdown would take for a block (`# …`,
`- …`, `1986. …`) gets a backslash; one newline inside a paragraph is a hard break (a backslash at the line's end), except
in a scene that has no blank line at all: there, every line is a paragraph, and the comment says `"lines": true`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from fabula.errors import InputError
from fabula.formats._book import Book, Chapter, Scene
from fabula.formats._headings import one_line
from fabula.formats._lines import Gathering
from fabula.formats._outline import Block, outline

VERSION = 1
_FRONT = re.compile(r"---[ \t]*\n(?=\S)(?P<yaml>.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MARK = re.compile(r"<!-- (?P<kind>chapter|scene) (?P<json>\{.*\}) -->")
_HEADING = re.compile(r"## *(?P<text>.*)")
_BREAK = re.compile(r" {0,3}([*_-])(?:[ \t]*\1){2,}[ \t]*")
_BLOCK = r"\\*(?:#{1,6}(?:[ \t]|$)|([*_-])(?:[ \t]*\2){2,}[ \t]*$|[=-]+[ \t]*$|[-+*](?:[ \t]|$)|[<>]|`{3}|~{3}|\[[^\]]*\]:|\||&#(?:32|9);)"
_NEEDS = re.compile(rf"^( {{0,3}})(?={_BLOCK})")
_HAS = re.compile(rf"^( {{0,3}})\\(?={_BLOCK})")
_NUMBER_NEEDS = re.compile(r"^( {0,3}\d{1,9})(?=\\*[.)](?:[ \t]|$))")
_NUMBER_HAS = re.compile(r"^( {0,3}\d{1,9})\\(?=\\*[.)](?:[ \t]|$))")
_INDENT = re.compile(r"^(?: {4}| {0,3}\t)(?=[ \t]*\S)")


def write_markdown(book: Book) -> bytes:
    """The book as UTF-8 Markdown."""
    body = [f"# {one_line(book.title)}\n"]
    for chapter in book.chapters:
        body.append(_mark("chapter", {"id": chapter.id, "label": one_line(chapter.label)}))
        if heading := chapter.heading(book.language):
            body.append(f"## {heading}\n")
        for number, scene in enumerate(chapter.scenes):
            body += ["* * *\n"] if number else []
            body.append(_scene(scene))
    front = {"fabula": VERSION, "title": one_line(book.title), "language": book.language}
    optional = {"authors": list(book.authors), "identifier": book.identifier, "note": book.note}
    yaml = _yaml({**front, **{key: value for key, value in optional.items() if value}})
    rest = "---\n\n" + "\n".join(body)
    return f'---\n{yaml}check: "{_digest("---" + chr(10) + yaml + rest)}"\n{rest}'.encode()


def _digest(text: str) -> str:
    """What the front matter keeps of all the rest, so that a later edit by a person shows."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_own(text: str) -> bool:
    """Whether Fabula wrote this Markdown, whatever was changed in it since."""
    return "fabula" in _front_matter(text)[0]


def was_edited(text: str) -> bool:
    """Whether a Markdown text that Fabula wrote was changed since."""
    match = re.search(r'^check: "([0-9a-f]{16})"\n', text, re.MULTILINE)
    return match is None or match[1] != _digest(text[: match.start()] + text[match.end() :])


def read_markdown(text: str, name: str) -> Book:
    """A book from Markdown; `name` is its title where the file gives none.

    Raises:
        InputError: the front matter is damaged, or a later Fabula wrote the file.
    """
    front, body = _front_matter(text)
    version = front.get("fabula")
    if isinstance(version, int) and version > VERSION:
        raise InputError(f"{name} was written by a later Fabula (format {version}).", "Upgrade Fabula.")
    authors = front.get("authors") or front.get("author") or ()
    fields = {key: str(front.get(key) or "") for key in ("title", "language", "note", "identifier")}
    language = fields["language"] or str(front.get("lang") or "")
    if version is None:
        title, chapters = outline(_foreign_blocks(body))
    else:
        title, chapters = _own_title(body), _own_chapters(body, language)
    return Book(
        fields["title"] or title or name,
        language or "und",
        (authors,) if isinstance(authors, str) else tuple(str(author) for author in authors),
        chapters,
        fields["note"],
        fields["identifier"],
    )


def _yaml(values: Mapping[str, object]) -> str:
    import yaml

    return yaml.safe_dump(dict(values), allow_unicode=True, sort_keys=False, width=10_000)


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    match = _FRONT.match(text)
    if not match:
        return {}, text
    import yaml

    try:
        front = yaml.safe_load(match["yaml"])
    except yaml.YAMLError as error:
        if "fabula:" not in match["yaml"]:
            return {}, text
        raise InputError(f"The front matter is damaged: {one_line(str(error))}", "Correct the lines between the two `---`.") from error
    # A book of others may begin with a thematic break; only a mapping is front matter.
    return (front, text[match.end() :]) if isinstance(front, dict) else ({}, text)


def _mark(kind: str, values: Mapping[str, object]) -> str:
    said = json.dumps({key: value for key, value in values.items() if value}, ensure_ascii=False)
    return f"<!-- {kind} {said.replace('--', chr(92) + 'u002d-').replace('>', chr(92) + 'u003e')} -->\n"


def _scene(scene: Scene) -> str:
    lines = scene.text.split("\n")
    each_line = len(lines) > 1 and all(line.strip() for line in lines)
    encoded = [_escape(line) for line in lines]
    if each_line:
        text = "\n\n".join(encoded)
    else:
        text = "\n".join(line + "\\" if _joined(line, after) else line for line, after in zip(encoded, [*encoded[1:], ""], strict=True))
    return f"{_mark('scene', {'id': scene.id, 'lines': each_line})}\n{text}\n"


def _joined(line: str, after: str) -> bool:
    return bool(line.strip() and after.strip())


def _escape(line: str) -> str:
    if _INDENT.match(line):
        return f"&#{ord(line[0])};{line[1:]}"
    return _NUMBER_NEEDS.sub(r"\1\\", _NEEDS.sub(r"\1\\", line))


def _unescape(line: str) -> str:
    for sign, entity in ((" ", "&#32;"), ("\t", "&#9;")):
        if line.startswith(entity):
            return sign + line.removeprefix(entity)
    return _NUMBER_HAS.sub(r"\1", _HAS.sub(r"\1", line))


def _decode(lines: list[str], options: dict[str, object]) -> str:
    if options.get("lines"):
        return "\n".join(_unescape(line) for line in lines if line.strip())
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return "\n".join(_unescape(line.removesuffix("\\") if _joined(line, after) else line) for line, after in pairs)


def _own_title(body: str) -> str:
    match = re.match(r"\s*# +(.*)", body)
    return one_line(match[1]) if match else ""


def _own_chapters(body: str, language: str) -> tuple[Chapter, ...]:
    lines = re.sub(r"\A\s*# [^\n]*(?:\n|\Z)", "", body).split("\n")
    gathering = Gathering(language, _decode)
    for line in lines:
        if mark := _MARK.fullmatch(line.rstrip()):
            values = _mark_values(mark["json"])
            name = str(values.pop("id", ""))
            if mark["kind"] == "chapter":
                gathering.chapter(name, str(values.get("label", "")))
            else:
                gathering.scene(name, values)
        elif heading := _HEADING.fullmatch(line) if re.match(r"##(?:[ \t]|$)", line) else None:
            gathering.heading(heading["text"].rstrip())
        elif _BREAK.fullmatch(line):
            gathering.scene_break()
        else:
            gathering.line(line)
    return gathering.done()


def _mark_values(said: str) -> dict[str, object]:
    try:
        return dict(json.loads(said))
    except ValueError as error:
        raise InputError(f"A comment that carries an id is damaged: {said[:80]}", "Correct it, or remove the whole comment.") from error


def _foreign_blocks(body: str) -> list[Block]:
    """The top-level blocks of any Markdown. Paragraphs lose their soft line breaks; lists, quotes and code stay as they are."""
    from markdown_it import MarkdownIt

    lines = body.split("\n")
    blocks: list[Block] = []
    tokens = MarkdownIt("commonmark").parse(body)
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        if token.level or token.map is None:  # inside another block, or its end
            continue
        source = "\n".join(lines[token.map[0] : token.map[1]]).rstrip("\n")
        if token.type == "heading_open" and after is not None:
            blocks.append(Block(int(token.tag[1]), _plain(after.content)))
        elif token.type == "hr":
            blocks.append(Block(-1, ""))
        elif token.type == "paragraph_open" and after is not None:
            blocks.append(Block(0, _unwrapped(after.content)))
        elif not (token.type == "html_block" and re.fullmatch(r"\s*<!--.*?-->\s*", source, re.DOTALL)):
            blocks.append(Block(0, source))
    return blocks


def _unwrapped(content: str) -> str:
    hard = re.sub(r"(?:(?<! ) {2,}|\\)\n", "\0", content)  # the look-behind: a long run of blanks is tried once
    wide = r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
    soft = re.sub(rf"(?<={wide})\n(?={wide})", "", hard).replace("\n", " ")
    return _plain(soft.replace("\0", "\n"))


def _plain(content: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", content)
