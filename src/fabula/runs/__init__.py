"""The engine: runs any recurrence, journals it, resumes it, forks it, replays it and explains it (DESIGN 3).

It knows: runs, lanes, logical time, steps, pieces of state, addresses of calls, verdicts, edits, withdrawals, forks. It does
not know what a story, a chunk, an agent or a message is: that is the way in's, a `Recurrence`. A step touches the world
through its `Context` alone. Everything is async; `fabula.run_sync` is the synchronous face.
"""

from fabula.runs._asking import Ask, Check, Fallback, Refusal, Reply, Watch, always, fingerprint, known
from fabula.runs._context import Context, Memo
from fabula.runs._create import create, facts_of, fork, leave_input
from fabula.runs._drive import advance
from fabula.runs._export import export, row_dict
from fabula.runs._facts import Limits, ModelFacts
from fabula.runs._overview import Edit, Overview, edits, last_model, latest_piece, overview
from fabula.runs._person import ACTS, act, act_on_library, find_record, one_of, records_of, view_of
from fabula.runs._progress import Answered, Asked, Listener, Noted, Progress, StepBegun, StepDone, Wrote, silent
from fabula.runs._prompts import Prompt, Prompts, Rendered, copy_prompts, own_prompts, parse_prompt
from fabula.runs._recurrence import Pieces, Recurrence
from fabula.runs._replay import Difference, replay, replay_step
from fabula.runs._run import Run
from fabula.runs._trace import Divergence, Stale, Trace, TracedCall, diff, drafts, stale, stale_pieces, trace

__all__ = [
    "ACTS",
    "Answered",
    "Ask",
    "Asked",
    "Check",
    "Context",
    "Difference",
    "Divergence",
    "Edit",
    "Fallback",
    "Limits",
    "Listener",
    "Memo",
    "ModelFacts",
    "Noted",
    "Overview",
    "Pieces",
    "Progress",
    "Prompt",
    "Prompts",
    "Recurrence",
    "Refusal",
    "Rendered",
    "Reply",
    "Run",
    "Stale",
    "StepBegun",
    "StepDone",
    "Trace",
    "TracedCall",
    "Watch",
    "Wrote",
    "act",
    "act_on_library",
    "advance",
    "always",
    "copy_prompts",
    "create",
    "diff",
    "drafts",
    "edits",
    "export",
    "facts_of",
    "find_record",
    "fingerprint",
    "fork",
    "known",
    "last_model",
    "latest_piece",
    "leave_input",
    "one_of",
    "overview",
    "own_prompts",
    "parse_prompt",
    "records_of",
    "replay",
    "replay_step",
    "row_dict",
    "silent",
    "stale",
    "stale_pieces",
    "trace",
    "view_of",
]
