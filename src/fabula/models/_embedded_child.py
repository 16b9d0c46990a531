"""The embedded server's process: llama.cpp on a loopback port, until the parent's pipe closes.

Started by `_embedded_server` as `python -m fabula.models._embedded_child`. The first line of standard input is a JSON object of settings
(the key comes this way, so that no list of processes shows it); one JSON line goes out: `{"address": …}` once the model is loaded, or
`{"error": …}`. The log goes to standard error. When standard input ends, or the parent is no longer the one at the start, it ends at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, TextIO

_PARENT_SECONDS = 2.0
"""How often the parent is looked at. The pipe tells at once; this is for a pipe that some other child of the parent keeps open."""


def main() -> None:
    """Serve until the parent ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever native code prints belongs to the log
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    parent = os.getppid()
    settings = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_pipe, daemon=True).start()
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    try:
        server = _serve(settings)
    except RuntimeError as error:
        _say(answers, error=str(error))
        sys.exit(1)
    _say(answers, address=server.listening_address)
    threading.Event().wait()


def _serve(settings: dict[str, Any]) -> Any:
    # Before the import: with spinning OpenMP threads a busy machine of two cores fell from 6 tokens a second to 0.3.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["window"] * settings["slots"]  # split evenly among the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]  # without a key any web page in the user's browser could ask
    params.cache_ram_mib = settings["cache_mib"]
    params.ui = False
    params.endpoint_slots = False  # it would show prompts
    if settings["template"]:
        params.default_template_kwargs = {name: json.dumps(value) for name, value in settings["template"].items()}
        if settings["template"].get("enable_thinking") is False:
            params.enable_reasoning = 0
    return xllamacpp.Server(params)


def _say(answers: TextIO, **facts: str) -> None:
    answers.write(json.dumps(facts) + "\n")
    answers.flush()


def _end_with_pipe() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
