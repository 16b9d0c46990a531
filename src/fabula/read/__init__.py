"""Read: books and code far longer than a model's window, cited, resumable, cheap to read again (SPEC R).

It knows sources, chunks, ways of reading, claims and where they are written; it knows no model, no database and no terminal. The
prompt that reads a chunk is built in `_leaf.chunk_prompt`; the texts of all prompts are in `prompts/<language>/`. Everything that is
cited was found in the text by the program; what documents say is data, never an instruction.
"""

from __future__ import annotations

from fabula.read._chunks import Chunk, Gathered, Part
from fabula.read._knowledge import Entity
from fabula.read._look import PROMPTS
from fabula.read._plan import Plan
from fabula.read._reading import Reading
from fabula.read._report import lines_of, place_of, report_of
from fabula.read._source_entry import Skipped
from fabula.read._sources import Source, SourceOptions, open_source
from fabula.read._study import Answer, Study, plan_only
from fabula.read._task import WAYS, Sizes, Task, Way

__all__ = [
    "PROMPTS",
    "WAYS",
    "Answer",
    "Chunk",
    "Entity",
    "Gathered",
    "Part",
    "Plan",
    "Reading",
    "Sizes",
    "Skipped",
    "Source",
    "SourceOptions",
    "Study",
    "Task",
    "Way",
    "lines_of",
    "open_source",
    "place_of",
    "plan_only",
    "report_of",
]
