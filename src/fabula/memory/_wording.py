"""The words by which a record is found: what is embedded, its hash, and its search terms."""

from __future__ import annotations

import hashlib
import re

from fabula.memory._record import Record
from fabula.text import lexical_terms

_ERASED = re.compile(r"⟨erased [^⟩]*⟩")


def embedded_text(record: Record) -> str:
    """The text that is embedded and searched: it names whose it is ("Mira: …"), which alone doubled what an embedder finds.

    The owner stands before the text unless the text begins with the owner's name already.
    """
    owner = record.owner.strip()
    return f"{owner}: {record.text}" if owner and not record.text.startswith(owner) else record.text


def text_hash(text: str) -> str:
    """SHA-256 of a text, first 32 hex digits: the key of its vector, together with the embedder's id."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def terms_of(record: Record) -> list[str]:
    """Search terms, with repeats: of the embedded text, then of the subject and the entities where the text lacks them."""
    terms = lexical_terms(embedded_text(record))
    known = set(terms)
    for name in dict.fromkeys((record.subject, *record.entities)):
        fresh = [term for term in lexical_terms(name) if term not in known]
        terms += fresh
        known.update(fresh)
    return terms


def is_erased(text: str) -> bool:
    """Nothing is left of the text but the marks of `Store.erase`."""
    return not _ERASED.sub("", text).strip()
