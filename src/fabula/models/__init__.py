"""Language models: a request in, a stream of events out, whatever answers.

Knows: servers that speak the OpenAI chat API and their families (profiles), the embedded server and its weights, structured answers (the
schema ladder, extraction, validation), retries, limits, and the models that tests script.
Does not know: prompts, memory, the journal, what an answer is for. Importing this loads no SDK; models load it when first asked.
"""

from fabula.models._check import Report, Trial, check_model
from fabula.models._embedded import EmbeddedModel, embedded_grammar, embedded_profile, open_embedded
from fabula.models._embedder import E5, Embedder, HashEmbedder, HttpEmbedder, open_embedder
from fabula.models._extract import extract_json, extract_partial, validate
from fabula.models._keys import find_key, forget_key, store_key
from fabula.models._learnt import Learnt
from fabula.models._manifest import ModelInfo, Weights, available, cache_folder, find_weights
from fabula.models._misbehaving import FAULTS, Fault, Misbehaving
from fabula.models._openai import OpenAIModel
from fabula.models._opening import ModelChoice, guard, open_model
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
from fabula.models._weights import Progress, ProgressCallback, fetch, fetch_in_thread, is_fetched
from fabula.models._wrappers import Budget, Budgeted, Concurrent, Limits, Retrying, Spent, closing

__all__ = [
    "E5",
    "FAULTS",
    "SCRIPTED_PROFILE",
    "Answer",
    "Budget",
    "Budgeted",
    "Concurrent",
    "EmbeddedModel",
    "Embedder",
    "Event",
    "Fault",
    "Finish",
    "FinishReason",
    "Fitness",
    "HashEmbedder",
    "HttpEmbedder",
    "Learnt",
    "Limits",
    "Message",
    "Misbehaving",
    "Model",
    "ModelChoice",
    "ModelInfo",
    "Note",
    "OpenAIModel",
    "Profile",
    "Progress",
    "ProgressCallback",
    "Report",
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
    "Trial",
    "Usage",
    "Weights",
    "available",
    "cache_folder",
    "check_model",
    "closing",
    "complete",
    "crude_tokens",
    "embedded_grammar",
    "embedded_profile",
    "extract_json",
    "extract_partial",
    "fetch",
    "fetch_in_thread",
    "find_key",
    "find_profile",
    "find_weights",
    "forget_key",
    "guard",
    "is_fetched",
    "open_embedded",
    "open_embedder",
    "open_model",
    "prompt_hash",
    "request_language",
    "store_key",
    "validate",
]
