"""The manuscript: chapters, scenes and passages with stable ids; order and printed label are apart from them (SPEC W5).

Pure functions on the pieces `chapters` and `chapter:ID`; `Novel` turns what they return into one edit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.errors import InputError, NotFound
from fabula.runs import Run
from fabula.text import length
from fabula.write._telling import LANE

Changes = dict[tuple[str, str], Any]


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage as it is now."""

    id: str
    text: str
    by: str
    chapter: str
    scene: str
    before: str = "\n\n"
    """What stands between it and the passage before it in its scene."""


@dataclass(frozen=True, slots=True)
class SceneView:
    """A scene: passages without a break between them."""

    id: str
    passages: tuple[PassageView, ...]

    @property
    def text(self) -> str:
        """Its passages, joined by what stands between them."""
        return "".join(f"{p.before if number else ''}{p.text}" for number, p in enumerate(self.passages))


@dataclass(frozen=True, slots=True)
class ChapterView:
    """A chapter in its place. `number` is its place in the order, from 1; `label` is what is printed."""

    id: str
    number: int
    label: str
    title: str
    scenes: tuple[SceneView, ...]


_LABELS = {
    "en": "Chapter {n}",
    "zh": "第{n}章",
    "ja": "第{n}章",
    "ru": "Глава {n}",
    "de": "Kapitel {n}",
    "fr": "Chapitre {n}",
    "es": "Capítulo {n}",
    "it": "Capitolo {n}",
}


def default_label(number: int, language: str) -> str:
    """What is printed over a chapter that has no label of its own."""
    return _LABELS.get(language, "{n}").format(n=number)


def chapters(run: Run, language: str, version: int | None = None) -> list[ChapterView]:
    """The whole manuscript in order, as of a version (None = now)."""
    at: dict[str, Any] = {} if version is None else {"version": version}
    order = run.piece("chapters", default=[], **at)
    pieces = [run.piece(f"chapter:{cid}", **at) for cid in order]
    out = []
    for number, (cid, held, label) in enumerate(zip(order, pieces, _labels(pieces, language), strict=True), 1):
        scenes = tuple(SceneView(s["id"], tuple(_passage(run, p, cid, s["id"], at) for p in s["passages"])) for s in held["scenes"])
        out.append(ChapterView(cid, number, label, held.get("title", ""), scenes))
    return out


def _labels(pieces: Sequence[Mapping[str, Any]], language: str) -> list[str]:
    """What is printed over each chapter. Chapters that were there already have what they had; new ones go on with their numbers, in the
    way in which these were written.
    """
    if not any(held.get("given") for held in pieces):
        return [held.get("label") or default_label(number, language) for number, held in enumerate(pieces, 1)]
    from fabula.formats import chapter_number, renumbered

    out, like, last = list[str](), "", 0
    for held in pieces:
        label = str(held.get("label") or "")
        if not label and not held.get("given"):
            label = renumbered(like, last + 1) if like else default_label(last + 1, language)
        number = chapter_number(label)
        if number is not None:
            like, last = label, number
        elif held["scenes"] and not like:
            last += 1  # a chapter without a number counts as long as none has one
        out.append(label)
    return out


def passage_ids(run: Run) -> list[str]:
    """Ids of the passages that stand in the book, in order."""
    held = [run.piece(f"chapter:{c}") for c in run.piece("chapters", default=[])]
    return [p for chapter in held if chapter for scene in chapter["scenes"] for p in scene["passages"]]


def _passage(run: Run, passage: str, chapter: str, scene: str, at: Mapping[str, Any]) -> PassageView:
    held = run.piece(f"text:{passage}", **at)
    return PassageView(passage, held["text"], held.get("by", "model"), chapter, scene, held.get("before", "\n\n"))


def raw_chapters(run: Run) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Order and chapters as plain values, copied so that they may be changed."""
    order = list(run.piece("chapters", default=[]))
    return order, {
        c: {**run.piece(f"chapter:{c}"), "scenes": [{**s, "passages": list(s["passages"])} for s in run.piece(f"chapter:{c}")["scenes"]]}
        for c in order
    }


def changes_of(
    order: Sequence[str], held: Mapping[str, Mapping[str, Any]], before: Sequence[str], old: Mapping[str, Mapping[str, Any]]
) -> Changes:
    """Only what differs. Chapters that have lost their last scene go from the order."""
    order = [c for c in order if _stands(held[c])]
    out: Changes = {}
    if list(order) != list(before):
        out[LANE, "chapters"] = list(order)
    for chapter in order:
        if held[chapter] != old.get(chapter):
            out[LANE, f"chapter:{chapter}"] = {**held[chapter], "scenes": [s for s in held[chapter]["scenes"] if s["passages"]]}
    return out


def _stands(chapter: Mapping[str, Any] | None) -> bool:
    """It holds a passage, or is the heading of a volume in a book that was there already."""
    if not chapter:
        return False
    return any(s["passages"] for s in chapter["scenes"]) or (bool(chapter.get("given")) and not chapter["scenes"])


def find_scene(held: Mapping[str, Mapping[str, Any]], scene: str) -> tuple[str, int]:
    """(chapter, index) of a scene. Raises NotFound."""
    for chapter, value in held.items():
        for index, one in enumerate(value["scenes"]):
            if one["id"] == scene:
                return chapter, index
    raise NotFound(f"There is no scene {scene}.", "See the scenes with `fabula runs show RUN`.")


def find_passage(held: Mapping[str, Mapping[str, Any]], passage: str) -> tuple[str, int, int]:
    """(chapter, scene index, passage index). Raises NotFound."""
    for chapter, value in held.items():
        for index, scene in enumerate(value["scenes"]):
            if passage in scene["passages"]:
                return chapter, index, scene["passages"].index(passage)
    raise NotFound(f"There is no passage {passage}.", "See the passages with `fabula runs show RUN`.")


def without_passages(edited: Mapping[tuple[str, str], Any], gone: Collection[str]) -> Changes:
    """A person's edits of the manuscript's pieces, without these passages; edits of anything else go.

    The order of chapters and the position are settled anew from what is left (`reckon`).
    """
    out: Changes = {}
    for (lane, name), value in edited.items():
        if name.startswith("chapter:"):
            scenes = [{**s, "passages": [p for p in s["passages"] if p not in gone]} for s in value["scenes"]]
            out[lane, name] = {**value, "scenes": [s for s in scenes if s["passages"]]}
        elif name == "chapters":
            out[lane, name] = value
        elif name == "rederive":
            out[lane, name] = [p for p in value if p not in gone]
    return out


def reckon(run: Run, language: str, changes: Changes | None = None) -> Changes:
    """Order and position as the manuscript has them once `changes` are made: length, passages, last passage, last chapter.

    Returns:
        `changes` and what must change with them; the same act, so that it is undone as one.
    """
    changes = dict(changes or {})

    def look(name: str, default: Any = None) -> Any:
        return changes[LANE, name] if (LANE, name) in changes else run.piece(name, default)

    order, position = list(look("chapters", [])), dict(look("position"))
    held = {c: look(f"chapter:{c}") for c in order}
    whole = [c for c in order if _stands(held[c])]
    ids = {c: [p for s in held[c]["scenes"] for p in s["passages"]] for c in whole}
    texts = {p: look(f"text:{p}") for c in whole for p in ids[c]}
    sizes = {p: length(text["text"], language) for p, text in texts.items()}
    last = next((c for c in reversed(whole) if ids[c]), "")
    now = {
        **position,
        "length": sum(sizes.values()),
        "passages": len(sizes),
        "chapter": last,
        "chapter_length": sum(sizes[p] for p in ids[last]) if last else 0,
        "last": ids[last][-1] if last else "",
        "outline": held[last].get("outline", position.get("outline")) if last else None,
    }
    old = [p for p, text in texts.items() if text.get("old")]
    if old or "old" in position:
        now |= {"old": sum(sizes[p] for p in old), "old_passages": len(old)}
        if last and texts[now["last"]].get("old"):  # what is new begins a chapter of its own
            now |= {"chapter": "", "chapter_length": 0, "outline": None}
    if whole != order:
        changes[LANE, "chapters"] = whole
    if now != position:
        changes[LANE, "position"] = now
    return changes


def move_scene(run: Run, scene: str, chapter: str, index: int) -> Changes:
    """Move a scene to a place in a chapter (its own or another). Raises NotFound, InputError."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    source, at = find_scene(held, scene)
    if chapter not in held:
        raise NotFound(f"There is no chapter {chapter}.")
    moving = held[source]["scenes"].pop(at)
    if not 0 <= index <= len(held[chapter]["scenes"]):
        raise InputError(f"Chapter {chapter} has {len(held[chapter]['scenes'])} scenes; there is no place {index}.")
    held[chapter]["scenes"].insert(index, moving)
    return changes_of(order, held, order, old)


def split_scene(run: Run, passage: str, scene_id: str) -> Changes:
    """End a scene before a passage; the rest is a new scene with the id given."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    chapter, at, index = find_passage(held, passage)
    if index == 0:
        raise InputError(f"Passage {passage} begins its scene; there is nothing to split.")
    scene = held[chapter]["scenes"][at]
    held[chapter]["scenes"].insert(at + 1, {"id": scene_id, "passages": scene["passages"][index:]})
    scene["passages"] = scene["passages"][:index]
    return changes_of(order, held, order, old)


def merge_scenes(run: Run, first: str, second: str) -> Changes:
    """Make one scene of two neighbours; it keeps the first one's id."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    chapter, at = find_scene(held, first)
    other, after = find_scene(held, second)
    if chapter != other or after != at + 1:
        raise InputError(f"Scenes {first} and {second} are not neighbours in one chapter.", "Move one of them first.")
    held[chapter]["scenes"][at]["passages"] += held[chapter]["scenes"].pop(after)["passages"]
    return changes_of(order, held, order, old)


def insert_passage(run: Run, passage: str, after: str | None, scene_id: str, chapter_id: str) -> Changes:
    """Put a passage after another one (None = at the very beginning). An empty manuscript gets its first chapter."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    if after is not None:
        chapter, at, index = find_passage(held, after)
        held[chapter]["scenes"][at]["passages"].insert(index + 1, passage)
        return changes_of(order, held, order, old)
    first = next((c for c in order if held[c]["scenes"]), None)
    if first is not None:
        held[first]["scenes"][0]["passages"].insert(0, passage)
        return changes_of(order, held, order, old)
    held[chapter_id] = {"title": "", "label": "", "scenes": [{"id": scene_id, "passages": [passage]}]}
    return changes_of([*order, chapter_id], held, order, old)


def remove_passage(run: Run, passage: str) -> Changes:
    """Take a passage out of the manuscript; its text stays in the journal."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    chapter, at, index = find_passage(held, passage)
    held[chapter]["scenes"][at]["passages"].pop(index)
    changes = changes_of(order, held, order, old)
    if not any(s["passages"] for s in held[chapter]["scenes"]):
        changes[LANE, "chapters"] = [c for c in order if c != chapter]
    return changes


def split_chapter(run: Run, scene: str, chapter_id: str) -> Changes:
    """End a chapter before a scene; the rest is a new chapter with the id given."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    chapter, at = find_scene(held, scene)
    if at == 0:
        raise InputError(f"Scene {scene} begins its chapter; there is nothing to split.")
    given = {"given": True} if held[chapter].get("given") else {}
    held[chapter_id] = {"title": "", "label": "", **given, "scenes": held[chapter]["scenes"][at:]}
    held[chapter]["scenes"] = held[chapter]["scenes"][:at]
    place = order.index(chapter) + 1
    return changes_of([*order[:place], chapter_id, *order[place:]], held, order, old)


def merge_chapters(run: Run, first: str, second: str) -> Changes:
    """Make one chapter of two neighbours; it keeps the first one's id, label and title."""
    order, held = raw_chapters(run)
    _, old = raw_chapters(run)
    if first not in held or second not in held or order.index(second) != order.index(first) + 1:
        raise InputError(f"Chapters {first} and {second} are not neighbours.", "Move one of them first.")
    held[first]["scenes"] += held.pop(second)["scenes"]
    return changes_of([c for c in order if c != second], held, order, old)


def move_chapter(run: Run, chapter: str, index: int) -> Changes:
    """Move a chapter to a place in the order, from 0."""
    order, _ = raw_chapters(run)
    if chapter not in order:
        raise NotFound(f"There is no chapter {chapter}.")
    if not 0 <= index < len(order):
        raise InputError(f"The book has {len(order)} chapters; there is no place {index}.")
    rest = [c for c in order if c != chapter]
    return {(LANE, "chapters"): [*rest[:index], chapter, *rest[index:]]}
