"""Write: stories of any length, alone or with a person, or as interactive fiction (SPEC W).

It knows what a passage, a plan and a chapter are, and in which prompts they go; it knows no model, no database and no terminal.
The prompt of a novel's step is built in `_passage.passage_prompt`; the texts of all prompts are in `prompts/<language>/`.
"""

from fabula.text import LANGUAGE_NAMES
from fabula.write._existing import ManuscriptChapter, Remembered, manuscript_of
from fabula.write._glance import glances
from fabula.write._manuscript import ChapterView, PassageView, SceneView, default_label
from fabula.write._novel import Novel
from fabula.write._premise import Character, Premise
from fabula.write._series import Series
from fabula.write._story import Story
from fabula.write._telling import PROMPTS

__all__ = [
    "LANGUAGE_NAMES",
    "PROMPTS",
    "ChapterView",
    "Character",
    "ManuscriptChapter",
    "Novel",
    "PassageView",
    "Premise",
    "Remembered",
    "SceneView",
    "Series",
    "Story",
    "default_label",
    "glances",
    "manuscript_of",
]
