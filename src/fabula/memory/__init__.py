"""Memory: records in natural language, the events that make and change them, and recall within a budget of tokens.

Knows what a record is, whose word stands, how a view of a line and a library finds what it needs (dense and lexical, by a named policy),
and how vectors are kept up. Does not know models, prompts, steps or the database: it is given a `Store` and an `Embedder`, and returns
events and vectors for others to commit. numpy is loaded by the first recall.
"""

from __future__ import annotations

from fabula.memory._embedder import Embedder
from fabula.memory._events import EVERYTHING, Change, added, edited, fold, history, restored, retracted
from fabula.memory._memory import Memory
from fabula.memory._policy import PolicyFunction, Ranking, Sight, register_policy
from fabula.memory._record import Found, Kind, Level, Policy, Query, Realm, Recalled, Record, Scope, Status, View
from fabula.memory._search import search
from fabula.memory._wording import embedded_text, terms_of, text_hash

__all__ = [
    "EVERYTHING",
    "Change",
    "Embedder",
    "Found",
    "Kind",
    "Level",
    "Memory",
    "Policy",
    "PolicyFunction",
    "Query",
    "Ranking",
    "Realm",
    "Recalled",
    "Record",
    "Scope",
    "Sight",
    "Status",
    "View",
    "added",
    "edited",
    "embedded_text",
    "fold",
    "history",
    "register_policy",
    "restored",
    "retracted",
    "search",
    "terms_of",
    "text_hash",
]
