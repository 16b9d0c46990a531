"""Prompts are files (SPEC W7): Markdown with front matter, one folder a language, loaded through this one module.

A prompt file:

    ---
    about: one sentence for the person who wants to change it
    slots: [premise, plan]            # the names that the code fills in
    answer: {…JSON schema…}           # only for structured answers; property names may not be changed
    sampling: {temperature: 0.9, max_tokens: 900}
    ---
    [system]
    You write {{ premise }} …
    [user]
    …

The body is a Jinja2 template, sandboxed; `[system]`, `[user]` and `[assistant]` on a line of their own start a message. What is
filled in is data and cannot start one. A prompt is looked up as <own folder>/<language>/<name>.md, <own folder>/<name>.md, then
<package>/<language>/<name>.md, then <package>/en/<name>.md.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.errors import PromptError
from fabula.models import Message, Role, Sampling, Schema

_MARK = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt with its slots filled: what `ctx.ask` takes."""

    name: str
    messages: tuple[Message, ...]
    schema: Schema | None
    sampling: Sampling


@dataclass(frozen=True)
class Prompt:
    """One prompt file, parsed."""

    name: str
    where: str
    """The file, for messages to the person."""
    about: str
    slots: tuple[str, ...]
    answer: Mapping[str, Any] | None
    sampling: Mapping[str, Any]
    bodies: tuple[tuple[Role, str], ...]

    def render(self, **slots: Any) -> Rendered:
        """Fill the slots.

        Raises:
            PromptError: a slot is missing or unknown, or the template fails.
        """
        unknown, missing = sorted(set(slots) - set(self.slots)), sorted(set(self.slots) - set(slots))
        if unknown or missing:
            raise PromptError(f"Prompt {self.name} ({self.where}): slots missing: {missing}, unknown: {unknown}.")
        messages = tuple(Message(role, _render(body, self.where, slots)) for role, body in self.bodies)
        schema = Schema(self.name.replace("-", "_"), self.answer) if self.answer is not None else None
        return Rendered(self.name, messages, schema, Sampling(**self.sampling))


class Prompts:
    """The prompts of one way in for one language."""

    def __init__(self, package: Path, language: str, own: Mapping[str, str] | None = None):
        """Args:
        package: the way in's `prompts/` folder.
        language: ISO 639-1; a language without files of its own uses English ones.
        own: changed prompts by name → text of the file (see `own_prompts`).
        """
        self._package, self._language, self._own = package, language, dict(own or {})
        self._parsed: dict[str, Prompt] = {}

    def get(self, name: str) -> Prompt:
        """A prompt by its name. Raises PromptError."""
        if name not in self._parsed:
            if name in self._own:
                prompt = parse_prompt(name, self._own[name], f"your own {name}.md")
                self._match(prompt, _from_package(self._package, self._language, name))
            else:
                prompt = _from_package(self._package, self._language, name)
            self._parsed[name] = prompt
        return self._parsed[name]

    def render(self, name: str, **slots: Any) -> Rendered:
        """`get(name).render(**slots)`; slots that a person's own file does not use may be given all the same."""
        prompt = self.get(name)
        if name in self._own:
            slots = {key: value for key, value in slots.items() if key in prompt.slots}
        return prompt.render(**slots)

    @staticmethod
    def _match(own: Prompt, shipped: Prompt) -> None:
        """A changed prompt may drop slots, but not invent them, and must answer with the same fields."""
        invented = sorted(set(own.slots) - set(shipped.slots))
        if invented:
            raise PromptError(
                f"Prompt {own.name} ({own.where}) uses slots that do not exist: {invented}.", f"The slots are: {', '.join(shipped.slots)}."
            )
        need = sorted((shipped.answer or {}).get("required", []))
        have = (own.answer or {}).get("properties", {})
        lost = [name for name in need if name not in have]
        if lost:
            raise PromptError(
                f"Prompt {own.name} ({own.where}): the answer lacks the fields {lost}.", "Keep the fields of the shipped prompt's `answer`."
            )


def own_prompts(folder: Path, language: str) -> dict[str, str]:
    """The changed prompts in a person's folder for a language: name → text. They are journaled with the run.

    Raises:
        PromptError: no such folder, or a file that is not UTF-8.
    """
    if not folder.is_dir():
        raise PromptError(
            f"There is no folder {folder}.", "Copy the prompts out with `fabula write --copy-prompts FOLDER` and change them there."
        )
    found: dict[str, str] = {}
    for path in [*sorted(folder.glob("*.md")), *sorted((folder / language).glob("*.md"))]:
        try:
            found[path.stem] = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise PromptError(f"{path} is not UTF-8: {error}.", "Save the file as UTF-8.") from error
    return found


def copy_prompts(package: Path, language: str, folder: Path) -> list[Path]:
    """Copy the shipped prompts of a language to a folder, to be changed there; existing files are left alone. Returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({p.stem for p in package.glob("en/*.md")} | {p.stem for p in package.glob(f"{language}/*.md")})
    written = []
    for name in names:
        target = folder / f"{name}.md"
        if not target.exists():
            target.write_text(_source(package, language, name).read_text("utf-8"), "utf-8")
            written.append(target)
    return written


def parse_prompt(name: str, text: str, where: str) -> Prompt:
    """Parse a prompt file.

    Raises:
        PromptError: bad front matter, no message, a template that does not compile, a slot that is not declared.
    """
    import yaml

    head, body = _halves(name, text, where)
    try:
        front = yaml.safe_load(head) or {}
    except yaml.YAMLError as error:
        raise PromptError(f"Prompt {name} ({where}): the front matter is not YAML: {error}.") from error
    unknown = sorted(set(front) - {"about", "slots", "answer", "sampling"})
    if not isinstance(front, dict) or unknown:
        raise PromptError(f"Prompt {name} ({where}): unknown front matter {unknown}.", "Known are: about, slots, answer, sampling.")
    wrong = sorted(set(front.get("sampling") or {}) - set(Sampling.__slots__))
    if wrong:
        raise PromptError(f"Prompt {name} ({where}): unknown sampling {wrong}.", f"Known are: {', '.join(Sampling.__slots__)}.")
    marks = list(_MARK.finditer(body))
    if not marks:
        raise PromptError(f"Prompt {name} ({where}) has no message.", "Start each message with a line [system], [user] or [assistant].")
    ends = [m.start() for m in marks[1:]] + [len(body)]
    bodies: tuple[tuple[Role, str], ...] = tuple((m.group(1), body[m.end() : end].strip()) for m, end in zip(marks, ends, strict=True))  # type: ignore[misc]
    slots = tuple(front.get("slots") or ())
    used = _used_slots((b for _, b in bodies), name, where)
    if used - set(slots):
        raise PromptError(
            f"Prompt {name} ({where}) uses slots that it does not declare: {sorted(used - set(slots))}.", "Add them to `slots`."
        )
    return Prompt(name, where, front.get("about") or "", slots, front.get("answer"), front.get("sampling") or {}, bodies)


def _halves(name: str, text: str, where: str) -> tuple[str, str]:
    text = text.lstrip("\ufeff").replace("\r\n", "\n")
    parts = text.split("\n---\n", 1)
    if not text.startswith("---\n") or len(parts) != 2:
        raise PromptError(f"Prompt {name} ({where}) has no front matter.", "Start the file with `---`, the front matter, and `---`.")
    return parts[0][4:], parts[1]


def _source(package: Path, language: str, name: str) -> Path:
    for folder in (language, "en"):
        path = package / folder / f"{name}.md"
        if path.is_file():
            return path
    raise PromptError(f"There is no prompt {name} in {package}.")


@functools.lru_cache(maxsize=256)
def _from_package(package: Path, language: str, name: str) -> Prompt:
    path = _source(package, language, name)
    return parse_prompt(name, path.read_text("utf-8"), f"{package.parent.name}/prompts/{path.parent.name}/{path.name}")


@functools.lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False, autoescape=False
    )


def _used_slots(bodies: Iterable[str], name: str, where: str) -> set[str]:
    from jinja2 import TemplateSyntaxError, meta

    used: set[str] = set()
    for body in bodies:
        try:
            used |= meta.find_undeclared_variables(_environment().parse(body))
        except TemplateSyntaxError as error:
            raise PromptError(f"Prompt {name} ({where}): {error.message} (line {error.lineno} of the message).") from error
    return used


@functools.lru_cache(maxsize=256)
def _template(body: str) -> Any:
    return _environment().from_string(body)


def _render(body: str, where: str, slots: Mapping[str, Any]) -> str:
    from jinja2 import TemplateError

    try:
        return str(_template(body).render(**slots)).strip()
    except TemplateError as error:
        raise PromptError(f"The prompt file {where} cannot be filled in: {error}.") from error
