"""How fast `fabula.text` is, in one run; every figure is also given as a ratio to counting tokens, which carries over to other machines.

    python benchmarks/bench_text.py [--seconds 1]

The texts are the passages of tests/text/samples.py, repeated to 400,000 characters; the code is the standard library's.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fabula.text as ft
from tests.text.samples import DIALOGUE, EN, NEXT_EN, RU, ZH

SIZE = 400_000
BUDGETS = (500, 2000, 8000)


def texts() -> dict[str, str]:
    """Four texts of `SIZE` characters each."""
    code = "\n\n".join(inspect.getsource(module) for module in (argparse, inspect, subprocess, json))
    parts = {"en": f"{EN}\n\n{NEXT_EN}\n\n{DIALOGUE}", "zh": ZH, "ru": RU, "code": code}
    return {name: ((part + "\n\n") * (SIZE // len(part) + 1))[:SIZE] for name, part in parts.items()}


def speed(work: Callable[[str], object], text: str, seconds: float) -> float:
    """Megabytes of UTF-8 in a second of CPU, the best of several runs."""
    best, spent = float("inf"), 0.0
    while spent < seconds:
        begin = time.process_time()
        work(text)
        took = time.process_time() - begin
        best, spent = min(best, took), spent + max(took, 1e-4)
    return len(text.encode("utf-8", "surrogatepass")) / best / 1e6


def first_use() -> dict[str, str]:
    """CPU seconds and megabytes that importing and each table cost a fresh process."""
    probes = {
        "import fabula.text": "pass",
        "count_tokens": "ft.count_tokens('The sea was calm.')",
        "detect_language, Latin": "ft.detect_language('The sea was calm that day, and nobody came to the harbour.')",
        "detect_language, Cyrillic": "ft.detect_language('Море было тихо, и никто не пришёл.')",
        "lexical_terms": "ft.lexical_terms('The sea, море')",
    }
    out = {}
    for name, code in probes.items():
        measure = (
            "import time, resource\nm = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
            "a, t = m(), time.process_time()\nimport fabula.text as ft\n"
            + ("" if name.startswith("import") else "a, t = m(), time.process_time()\n")
            + f"{code}\nprint(f'{{time.process_time() - t:.2f}} s, {{m() - a:.0f}} MB')"
        )
        out[name] = subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True).stdout.strip()
    return out


def _kind(name: str) -> Literal["prose", "code"]:
    return "code" if name == "code" else "prose"


def _splitting(budget: int) -> Callable[[str, str], object]:
    return lambda text, name: ft.split(text, budget, kind=_kind(name))


def _with(do: Callable[[str, str], object], name: str, text: str) -> object:
    return do(text, name)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds for each figure")
    seconds = parser.parse_args().seconds
    print("First use:", *(f"  {name}: {cost}" for name, cost in first_use().items()), sep="\n")
    everything = texts()
    ft.count_tokens("warm")
    ft.detect_language(EN)
    ft.lexical_terms(EN + RU)
    counting = {name: speed(ft.count_tokens, text, seconds) for name, text in everything.items()}
    work: dict[str, tuple[int, Callable[[str, str], object]]] = {f"split into {budget}": (SIZE, _splitting(budget)) for budget in BUDGETS}
    work |= {
        "sentences": (SIZE, lambda t, _: ft.sentences(t)),
        "lexical_terms": (SIZE, lambda t, _: ft.lexical_terms(t)),
        "find_loop of 4,000 characters": (4_000, lambda t, _: ft.find_loop(t)),
        "is_language of 4,000 characters": (4_000, lambda t, _: ft.is_language(t, "en")),
        "repeated_share of 2,000 in 20,000": (22_000, lambda t, _: ft.repeated_share(t[:2000], [t[2000:]])),
    }
    print(f"\n{'MB/s of CPU (share of count_tokens)':38s}" + "".join(f"{name:>16s}" for name in everything))
    print(f"{'count_tokens':38s}" + "".join(f"{counting[name]:16.1f}" for name in everything))
    for label, (size, do) in work.items():
        rates = {name: speed(partial(_with, do, name), text[:size], seconds) for name, text in everything.items()}
        print(f"{label:38s}" + "".join(f"{rates[name]:8.2f} ({rates[name] / counting[name]:4.0%})" for name in everything))
    for budget in BUDGETS:
        fills = []
        for name, text in everything.items():
            spans = ft.split(text, budget, kind=_kind(name))
            assert max(span.tokens for span in spans) <= budget
            fills.append(f"{name} {sum(span.tokens for span in spans[:-1]) / budget / (len(spans) - 1):.2f}")
        print(f"mean fill of chunks of {budget}: {', '.join(fills)}")


if __name__ == "__main__":
    main()
