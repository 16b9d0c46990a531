"""Chapters and scenes gathered line by line, for the formats that are lines: Markdown and plain text.

Both formats leave exactly one blank line between a scene's text and what stands around it, so that the text itself comes
back byte for byte, its own blank lines included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fabula.formats._book import Chapter, Scene, heading_separator
from fabula.formats._headings import one_line, split_heading


@dataclass
class _OpenScene:
    id: str
    options: dict[str, object]
    lines: list[str] = field(default_factory=list)


@dataclass
class _OpenChapter:
    id: str
    label: str
    heading: str | None = None
    scenes: list[_OpenScene] = field(default_factory=list)


class Gathering:
    """Collects the lines of a book in order; ids that the file does not give are made by position (`c2`, `c2s1`)."""

    def __init__(self, language: str, decode: Callable[[list[str], dict[str, object]], str]) -> None:
        """`decode` turns the lines of a scene, and the options the file gave for it, into its text."""
        self._language = language
        self._decode = decode
        self._chapters: list[_OpenChapter] = []
        self._scene: _OpenScene | None = None

    def chapter(self, id: str = "", label: str = "") -> None:
        """A chapter begins; its heading may follow."""
        self._chapters.append(_OpenChapter(id, label))
        self._scene = None

    def heading(self, text: str) -> None:
        """The heading of the chapter that has just begun, or else of a new one."""
        last = self._chapters[-1] if self._chapters else None
        if last is None or last.heading is not None or last.scenes:  # the comment of the chapter was lost, or there never was one
            self.chapter()
        self._chapters[-1].heading = text
        self._scene = None

    def scene(self, id: str = "", options: dict[str, object] | None = None) -> None:
        """A scene begins."""
        if not self._chapters:
            self.chapter()
        self._scene = _OpenScene(id, options or {})
        self._chapters[-1].scenes.append(self._scene)

    def scene_break(self) -> None:
        """The scene ends; what follows is another, with or without a mark of its own."""
        self._scene = None

    def line(self, line: str) -> None:
        """A line of text."""
        if self._scene is None:
            if not line.strip():
                return
            self.scene()
            self.line("")
        if self._scene is not None:
            self._scene.lines.append(line)

    def done(self) -> tuple[Chapter, ...]:
        """All chapters, with ids that occur once."""
        names: set[str] = set()
        chapters: list[Chapter] = []
        for number, chapter in enumerate(self._chapters, 1):
            scenes = tuple(
                Scene(unused_name(scene.id or f"c{number}s{place}", names), self._decode(_framed(scene.lines), scene.options))
                for place, scene in enumerate(chapter.scenes, 1)
            )
            label, title = self._split(chapter)
            chapters.append(Chapter(unused_name(chapter.id or f"c{number}", names), title, label, scenes))
        return tuple(chapters)

    def _split(self, chapter: _OpenChapter) -> tuple[str, str]:
        heading = chapter.heading or ""
        if not chapter.id:
            label, title = split_heading(heading)
            printed = heading_separator(self._language).join(part for part in (label, title) if part)
            return (label, title) if printed == heading else ("", heading)
        # A person may have changed the heading; the label counts as long as it still stands there.
        label = one_line(chapter.label)
        if heading == label:
            return label, ""
        start = label + heading_separator(self._language)
        return (label, heading.removeprefix(start)) if label and heading.startswith(start) else ("", heading)


def _framed(lines: list[str]) -> list[str]:
    """Without the one blank line before and the one after."""
    start = 1 if lines and lines[0] == "" else 0
    return lines[start:-1] if len(lines) > start and lines[-1] == "" else lines[start:]


def unused_name(name: str, names: set[str]) -> str:
    """The name, or with a number if it is among `names` already; it is added to them."""
    wish, number = name, 2
    while name in names:
        name, number = f"{wish}-{number}", number + 1
    names.add(name)
    return name
