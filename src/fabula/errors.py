"""The error tree: every error that Fabula raises on purpose.

    FabulaError
    ├── InputError              what the person gave is wrong                    exit 2   HTTP 422
    │   ├── NotFound            no such run, record, model, file                 exit 2   HTTP 404
    │   ├── PromptError         a prompt file that cannot be used                exit 2   HTTP 422
    │   └── LanguageUnfit       the model cannot write this language             exit 2   HTTP 422
    ├── StoreError              the library                                      exit 1   HTTP 500
    │   ├── LibraryBusy         another process kept the write lock too long     exit 1   HTTP 503
    │   ├── LibraryFull         no room on the disk                              exit 1   HTTP 507
    │   ├── LibraryDamaged      the file is not a library, or is damaged         exit 1   HTTP 500
    │   └── LibraryTooNew       written by a later Fabula                        exit 1   HTTP 500
    ├── RunError                a run
    │   ├── Held                another process holds this run                   exit 1   HTTP 409
    │   ├── StepFailed          a call was refused as often as allowed           exit 1   HTTP 502
    │   ├── NotPossible         this act is not possible on this run now         exit 2   HTTP 409
    │   ├── AddressTwice        one address used twice in a step (a bug)         exit 1   HTTP 500
    │   └── Offline             a replay asked for what the journal lacks        exit 1   HTTP 500
    ├── ModelError              a language model or an embedder                  exit 1   HTTP 502
    │   ├── Unreachable         nothing answers at the address
    │   ├── TimedOut            no answer in time
    │   ├── AuthFailed          the key is missing or refused
    │   ├── RateLimited         too many requests; says how long to wait         exit 1   HTTP 429
    │   ├── ServerFailed        the server answered 5xx or nonsense
    │   ├── TooLong             prompt + answer exceed the model's window
    │   ├── TooLarge            the request exceeds the server's byte limit
    │   ├── Filtered            the provider refused the content
    │   ├── Unsupported         the server lacks a feature that is needed        exit 2
    │   ├── WeightsMissing      weights could not be fetched or are damaged
    │   └── EmbeddedFailed      the embedded server does not start or died
    ├── LimitReached            a limit that the person set                      exit 3   HTTP 402
    └── FindingsFound           a check found something                          exit 4   HTTP 200

Every error has a stable `code` (its class name in snake case), a sentence for the person, and the next
action. Nothing is logged or printed when an error is made. Lower-level errors are mapped where they occur
(`store/`, `models/`); tests/test_errors.py holds the mapping complete. Interruption (Ctrl-C) is not an
error: the command line ends with 130.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

__all__ = [
    "AddressTwice", "AuthFailed", "EmbeddedFailed", "FabulaError", "Filtered", "FindingsFound", "Held", "InputError",
    "LanguageUnfit", "LibraryBusy", "LibraryDamaged", "LibraryFull", "LibraryTooNew", "LimitReached", "ModelError",
    "NotFound", "NotPossible", "Offline", "PromptError", "RateLimited", "RunError", "ServerFailed", "StepFailed",
    "StoreError", "TimedOut", "TooLarge", "TooLong", "Unreachable", "Unsupported", "WeightsMissing",
]  # fmt: skip


class FabulaError(Exception):
    """Base of all.

    Args:
        message: what is wrong and where, one sentence.
        next_action: what the person can do next, one sentence in the imperative.
        details: machine-readable facts (status, seconds to wait, provider code …); never a key or a prompt.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    default_action: ClassVar[str] = "Run `fabula doctor` and report what it says."

    def __init__(self, message: str, next_action: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.next_action = next_action or self.default_action
        self.details = details

    @property
    def code(self) -> str:
        """Stable name for programs, e.g. `rate_limited`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def as_dict(self) -> dict[str, Any]:
        """`{"code", "message", "next_action", "details"}`, as `--json` and the server send it."""
        return {"code": self.code, "message": self.message, "next_action": self.next_action, "details": self.details}


class InputError(FabulaError):
    """What the person gave is wrong."""

    exit_code, http_status = 2, 422
    default_action = "Correct the input and run the command again."


class NotFound(InputError):
    """No such run, record, model or file."""

    http_status = 404
    default_action = "List what there is, for example with `fabula runs list`."


class PromptError(InputError):
    """A prompt file that cannot be used: unknown slot, bad front matter, missing part."""

    default_action = "Correct the prompt file, or remove it to use the one that comes with Fabula."


class LanguageUnfit(InputError):
    """The model is marked unfit for the language asked for (SPEC M6)."""

    default_action = "Choose another model with `fabula model use`, or insist with --anyway."


class StoreError(FabulaError):
    """The library cannot be read or written."""


class LibraryBusy(StoreError):
    """Another process kept the write lock longer than we wait."""

    http_status = 503
    default_action = "Wait until the other process is done, then run the command again; nothing was lost."


class LibraryFull(StoreError):
    """No room on the disk (or the file may not grow). What was committed is safe."""

    http_status = 507
    default_action = "Free some disk space, then resume the run; nothing that was committed is lost."


class LibraryDamaged(StoreError):
    """The file is not a library, or its pages are damaged."""

    default_action = "Run `fabula doctor`; it makes a copy before it repairs anything."


class LibraryTooNew(StoreError):
    """The library was written by a later version of Fabula."""

    default_action = "Upgrade Fabula, or open a backup made with this version."


class RunError(FabulaError):
    """A run cannot do what is asked."""


class Held(RunError):
    """Another process holds this run (DESIGN 3, One holder)."""

    http_status = 409
    default_action = "Wait until that process ends, or end it; reading the run is always possible."


class StepFailed(RunError):
    """A call was refused as often as allowed and had no fall-back. The run is intact and can be resumed."""

    http_status = 502
    default_action = "Resume the run to ask again, or use another model with --model."


class NotPossible(RunError):
    """This act is not possible on this run as it is now."""

    exit_code, http_status = 2, 409
    default_action = "Look at the run with `fabula runs show`."


class AddressTwice(RunError):
    """One address was used twice in one execution of a step: a mistake in the way in's code."""

    default_action = "This is a bug in Fabula or in your extension: give each call its own purpose or part."


class Offline(RunError):
    """A replayed step asked for something that the journal does not have."""

    default_action = "The step cannot be replayed from the journal alone; run `fabula doctor`."


class ModelError(FabulaError):
    """A language model or an embedder failed."""

    http_status = 502
    default_action = "Check the model with `fabula model check`, then resume the run."


class Unreachable(ModelError):
    """Nothing answers at the address."""

    default_action = "Start the server or correct FABULA_BASE_URL, then check with `fabula model check`."


class TimedOut(ModelError):
    """No answer in time."""

    default_action = "Resume the run to ask again, or choose a faster model."


class AuthFailed(ModelError):
    """The key is missing or refused."""

    default_action = "Set FABULA_API_KEY, or store the key with `fabula model use … --ask-key`."


class RateLimited(ModelError):
    """Too many requests; `details["seconds"]` says how long the server asks us to wait, if it does."""

    http_status = 429
    default_action = "Wait, then resume the run; or lower --concurrency."


class ServerFailed(ModelError):
    """The server answered with an error of its own, or with something that is not an answer."""


class TooLong(ModelError):
    """Prompt and answer together exceed the model's window (tokens)."""

    default_action = "Use a model with a larger window, or lower the budget of the prompt."


class TooLarge(ModelError):
    """The request exceeds the server's limit in bytes."""

    default_action = "Use a server with a larger limit; the limit is remembered and the next request will respect it."


class Filtered(ModelError):
    """The provider refused the content."""

    default_action = "Change the plan or the passage, or use another model."


class Unsupported(ModelError):
    """The server lacks a feature that this needs."""

    exit_code, http_status = 2, 422
    default_action = "Use a server or model that has the feature; `fabula model check` says which it has."


class WeightsMissing(ModelError):
    """Weights could not be fetched, or the file does not have the right hash."""

    default_action = "Check the network and run the command again (it resumes), or use your own file with `fabula model use`."


class EmbeddedFailed(ModelError):
    """The embedded server does not start, or died more often than it is restarted."""

    default_action = "Run `fabula model check`; on a small machine choose a smaller model with `fabula model use`."


class LimitReached(FabulaError):
    """A limit that the person set (tokens, money, calls, seconds) would be exceeded. The run can be resumed."""

    exit_code, http_status = 3, 402
    default_action = "Raise the limit and resume the run."


class FindingsFound(FabulaError):
    """A check ended with findings."""

    exit_code, http_status = 4, 200
    default_action = "Look at the findings above."
