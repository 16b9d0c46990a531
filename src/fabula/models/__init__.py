"""Language models: a request in, a stream of events out, whatever answers.

Knows: servers that speak the OpenAI chat API and their families (profiles), the embedded server and its weights, structured answers (the
schema ladder, extraction, validation), retries, limits, and the models that tests script.
Does not know: prompts, memory, the journal, what an answer is for. Importing this loads no SDK; models load it when first asked.
"""

from fabula.models._extract import extract_json, extract_partial, validate
from fabula.models._learnt import Learnt
from fabula.models._openai import OpenAIModel
from fabula.models._port import (
    Answer,
    Event,
    Finish,
    FinishReason,
    Fitness,
    Message,
    Model,
    Note,
    Profile,
    Request,
    Role,
    Sampling,
    Schema,
    Structured,
    TextDelta,
    Usage,
    complete,
)
from fabula.models._profiles import find_profile
from fabula.models._scripted import SCRIPTED_PROFILE, Script, Scriptable, Scripted, crude_tokens, prompt_hash, request_language
from fabula.models._wrappers import Budget, Budgeted, Concurrent, Limits, Retrying, Spent, closing

__all__ = [
    "SCRIPTED_PROFILE",
    "Answer",
    "Budget",
    "Budgeted",
    "Concurrent",
    "Event",
    "Finish",
    "FinishReason",
    "Fitness",
    "Learnt",
    "Limits",
    "Message",
    "Model",
    "Note",
    "OpenAIModel",
    "Profile",
    "Request",
    "Retrying",
    "Role",
    "Sampling",
    "Schema",
    "Script",
    "Scriptable",
    "Scripted",
    "Spent",
    "Structured",
    "TextDelta",
    "Usage",
    "closing",
    "complete",
    "crude_tokens",
    "extract_json",
    "extract_partial",
    "find_profile",
    "prompt_hash",
    "request_language",
    "validate",
]
