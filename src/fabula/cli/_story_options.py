"""The options that say what kind of story is wanted, and the premise that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from fabula.write import Premise

STORY = "Story"
START = "Start from"
SHAPE = "Shape"

Person = Literal["first", "second", "third"]


@dataclass(frozen=True)
class StoryOptions:
    """What `write` and `play` have in common."""

    genre: Annotated[str, typer.Option(help="Mystery, science fiction, 武侠 …", rich_help_panel=STORY, show_default=False)] = ""
    language: Annotated[
        str,
        typer.Option(
            help="ISO code of the story's language, e.g. en, zh, ru; else that of the premise.", rich_help_panel=STORY, show_default=False
        ),
    ] = ""
    title: Annotated[str, typer.Option(help="The title; else the model finds one.", rich_help_panel=STORY, show_default=False)] = ""
    style: Annotated[str, typer.Option(help="How it is told, in your words (or @FILE).", rich_help_panel=STORY, show_default=False)] = ""
    person: Annotated[Person | None, typer.Option(help="Grammatical person.", rich_help_panel=STORY, show_default=False)] = None
    tense: Annotated[str, typer.Option(help="For example past or present.", rich_help_panel=STORY, show_default=False)] = ""
    note: Annotated[
        str, typer.Option(help="Author's note: pinned in every prompt (or @FILE).", rich_help_panel=STORY, show_default=False)
    ] = ""
    cast: Annotated[
        list[str] | None,
        typer.Option(help="Someone in the story. Repeatable.", metavar='"NAME: ABOUT"', rich_help_panel=STORY, show_default=False),
    ] = None
    setting: Annotated[
        str | None, typer.Option(help="World and background.", metavar="TEXT|FILE", rich_help_panel=START, show_default=False)
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(help="Your own short-term memory, a sentence a line.", metavar="FILE", rich_help_panel=START, show_default=False),
    ] = None
    plan: Annotated[
        str | None, typer.Option(help="Your own plan of the first passage.", metavar="TEXT|FILE", rich_help_panel=START, show_default=False)
    ] = None
    opening: Annotated[
        str | None, typer.Option(help="Your own opening passages.", metavar="FILE", rich_help_panel=START, show_default=False)
    ] = None
    step_length: Annotated[
        str | None,
        typer.Option(
            help="From and to of a passage, in words (Chinese and Japanese: characters).",
            metavar="A-B",
            rich_help_panel=SHAPE,
            show_default=False,
        ),
    ] = None
    small: Annotated[
        bool | None,
        typer.Option(
            "--small/--no-small",
            help="One request a sentence of the plan, for small models; else as the model's profile says.",
            rich_help_panel=SHAPE,
            show_default=False,
        ),
    ] = None
    prompt_tokens: Annotated[int, typer.Option(min=800, help="Most tokens of a prompt.", rich_help_panel=SHAPE)] = 6_000
    prompts: Annotated[
        str | None, typer.Option(help="A folder with your own prompts.", metavar="FOLDER", rich_help_panel=SHAPE, show_default=False)
    ] = None
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Write in a language that the model is marked unfit for.", rich_help_panel=SHAPE)
    ] = False
    seed: Annotated[str | None, typer.Option(help="Seed of all that is drawn by lot.", rich_help_panel=SHAPE, show_default=False)] = None

    def premise(
        self, premise: str | None, *, mode: Literal["write", "play"], found: Mapping[str, Any] | None = None, **shape: object
    ) -> Premise:
        """The premise, checked.

        Args:
            premise: as given.
            mode: whether it is played.
            found: what a manuscript gives that is to be continued: opening, title, language.
            shape: further fields of `Premise`.

        Raises:
            InputError, NotFound: says which part is wrong.
        """
        from fabula.cli._texts import cast_of, lines_of, only_file, step_range, text_of, text_or_file
        from fabula.runs import own_prompts
        from fabula.write import Character, Premise

        found = found or {}
        told = Premise(
            premise=text_of(premise, "the premise"),
            genre=self.genre,
            language=self.language or found.get("language", ""),
            mode=mode,
            title=self.title or found.get("title", ""),
            setting=text_or_file(self.setting, "--setting"),
            cast=tuple(Character(name, about) for name, about in cast_of(self.cast or [])),
            plan=text_or_file(self.plan, "--plan"),
            opening=found.get("opening", "") or only_file(self.opening, "--opening"),
            note=text_of(self.note, "--note"),
            style=text_of(self.style, "--style"),
            person=self.person or "",
            tense=self.tense,
            step_length=step_range(self.step_length),
            small=self.small,
            prompt_tokens=self.prompt_tokens,
            short_term=tuple(only_file(self.memory, "--memory").splitlines()),
            **shape,  # type: ignore[arg-type]
        ).checked()
        from dataclasses import replace

        lines = lines_of("\n".join(told.short_term), told.language)
        own = own_prompts(Path(self.prompts).expanduser(), told.language) if self.prompts else {}
        return replace(told, short_term=lines, prompts=own)
