"""Splitting, ours beside others in one run: speed, where the cuts fall, how full chunks are, hazards, edits, and up to 50 MB.

    python benchmarks/bench_split.py [--texts FOLDER [--fetch]] [--budget 2000] [--parts prose,code,edits,hazards,long,rest]

semchunk and LangChain's splitters are compared when they can be imported; they are no dependency of Fabula. To have them:

    .venv/bin/uv pip install --group bench        (or: pip install --group bench)

`--fetch` first downloads some Debian packages of books and manuals into FOLDER (apt; 14 MB); without a folder the texts are docstrings and
our own samples, see texts.py. All times are seconds of CPU on one core; under load they move by half, so go by ratios.
"""

from __future__ import annotations

import argparse
import ast
import base64
import importlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.texts import fetch, long_text, passage, prose, python_files
from fabula.text import LineIndex, count_tokens, rank, split

Place = tuple[int, int]
Splitter = Callable[[str, int], Sequence[Place | str]]

_CLOSERS = "\"'”’」』）)]"


def _ours(text: str, budget: int, kind: Literal["prose", "code"] = "prose", *, stable: bool = False) -> list[Place]:
    return [(span.start, span.end) for span in split(text, budget, kind=kind, stable=stable)]


def _article(text: str, budget: int) -> list[str]:
    """The source article's rule: words grown one at a time, the whole chunk counted again each time."""
    chunks: list[str] = []
    words: list[str] = []
    for word in text.split():
        if count_tokens(" ".join([*words, word])) > budget:
            chunks.append(" ".join(words))
            words = []
        words.append(word)
    return [*chunks, " ".join(words)]


def _optional(name: str) -> Any:
    """A package that only this benchmark knows, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def splitters(kind: Literal["prose", "code"]) -> dict[str, Splitter]:
    """Those that can be imported, by name."""
    out: dict[str, Splitter] = {
        "ours": partial(_ours, kind=kind),
        "ours, stable": partial(_ours, kind=kind, stable=True),
    }
    semchunk = _optional("semchunk")
    if semchunk:

        def semantic(text: str, budget: int) -> list[str]:
            def counter(part: str) -> int:  # a new one each time: semchunk remembers what a counter said
                return count_tokens(part)

            return list(semchunk.chunk(text, budget, counter))

        out["semchunk"] = semantic
    langchain = _optional("langchain_text_splitters")
    if langchain:
        recursive = langchain.RecursiveCharacterTextSplitter

        def plain(text: str, budget: int) -> list[str]:
            return list(recursive(chunk_size=budget, chunk_overlap=0, length_function=count_tokens).split_text(text))

        def python(text: str, budget: int) -> list[str]:
            made = recursive.from_language(langchain.Language.PYTHON, chunk_size=budget, chunk_overlap=0, length_function=count_tokens)
            return list(made.split_text(text))

        out["LangChain Recursive"] = plain
        if kind == "code":
            out["LangChain PYTHON"] = python
    out["article's rule"] = _article
    return out


def located(text: str, chunks: Sequence[Place | str]) -> list[Place | None]:
    """Where each chunk stands in the text; None where it is no verbatim piece of it."""
    out: list[Place | None] = []
    position = 0
    for chunk in chunks:
        if isinstance(chunk, tuple):
            out.append(chunk)
            position = chunk[1]
            continue
        body = chunk.strip()
        at = text.find(body, max(0, position - 20), position + len(body) + 100_000) if body else -1
        out.append((at, at + len(body)) if at >= 0 else None)
        position = at + len(body) if at >= 0 else position
    return out


def word_places(text: str, chunks: Sequence[Place | str]) -> list[Place | None]:
    """The same for chunks that only kept the words."""
    words = re.finditer(r"\S+", text)
    out: list[Place | None] = []
    for chunk in chunks:
        found = [next(words).span() for _ in str(chunk).split()]
        out.append((found[0][0], found[-1][1]) if found else None)
    return out


def prose_place(text: str, at: int) -> str | None:
    """What a cut at `at` lies between: paragraphs, sentences, lines, clauses, words, characters of Chinese, or inside a word."""
    left, right = at, at
    while left > 0 and text[left - 1].isspace():
        left -= 1
    while right < len(text) and text[right].isspace():
        right += 1
    if left == 0 or right == len(text):
        return None
    gap = text[left:right]
    if gap.count("\n") >= 2:
        return "paragraph"
    last = left - 1
    while last > 0 and text[last] in _CLOSERS:
        last -= 1
    if text[last] in "。！？；…" or (text[last] in ".!?" and gap):
        return "sentence"
    if "\n" in gap:
        return "line"
    if text[last] in "，、：" or (text[last] in ",;:—" and gap):
        return "clause"
    if gap or not (text[left - 1].isalnum() and text[right].isalnum()):
        return "word"
    return "character" if min(text[left - 1], text[right]) > "\u2e80" else "INSIDE WORD"


class Module:
    """Which lines of a Python file begin a declaration: a statement of the module or a member of a class, with what stands above it."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts: set[int] = set()
        self.inner: set[int] = set()  # statements inside functions
        self._body(ast.parse(text).body, declared=True)

    def _body(self, body: Iterable[ast.stmt], *, declared: bool) -> None:
        for node in body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            (self.starts if declared else self.inner).add(first)
            inside = declared and isinstance(node, ast.ClassDef)
            for field in ("body", "orelse", "finalbody"):
                self._body(getattr(node, field, []), declared=inside)
            for handler in getattr(node, "handlers", []):
                self._body(handler.body, declared=False)

    def place(self, text: str, at: int) -> str | None:
        """What a cut at `at` lies before."""
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return None
        line = text.count("\n", 0, at) + 1
        if text[text.rfind("\n", 0, at) + 1 : at].strip():
            return "inside a line"
        while line < len(self.lines) and self.lines[line - 1].lstrip().startswith("#"):
            line += 1
            while line < len(self.lines) and not self.lines[line - 1].strip():
                line += 1
        if line in self.starts:
            return "declaration"
        return "statement" if line in self.inner else "inside a statement"


def shares(counts: Counter[str]) -> str:
    """`paragraph 97 %, line 3 %`."""
    total = max(1, sum(counts.values()))
    return ", ".join(f"{name} {count / total:.0%}" for name, count in counts.most_common(4))


def timed(work: Splitter, text: str, budget: int, least: float) -> tuple[float, Sequence[Place | str]]:
    """Best CPU seconds of a call, and what it gave."""
    best, spent = float("inf"), 0.0
    while True:
        begin = time.process_time()
        chunks = work(text, budget)
        took = time.process_time() - begin
        best, spent = min(best, took), spent + max(took, 1e-4)
        if spent >= least:
            return best, chunks


def _pieces(text: str, chunks: Sequence[Place | str]) -> list[str]:
    return [text[chunk[0] : chunk[1]] if isinstance(chunk, tuple) else chunk for chunk in chunks]


def measure_prose(folder: Path | None, budget: int, seconds: float) -> None:
    """Speed and quality on prose."""
    print(f"\n## Prose, chunks of {budget} tokens\n")
    print("| text | splitter | MB/s | chunks | fill | over budget | verbatim | where chunks end |\n|---|---|---|---|---|---|---|---|")
    for name, text in prose(folder, 1_000_000).items():
        for label, work in splitters("prose").items():
            part = text[:30_000] if work is _article else text
            took, chunks = timed(work, part, budget, 0 if work is _article else seconds)
            places = word_places(part, chunks) if work is _article else located(part, chunks)
            sizes = [count_tokens(piece) for piece in _pieces(part, chunks)]
            ends = Counter(place for span in places[:-1] if span and (place := prose_place(part, span[1])))
            row(f"{name}", label, len(part.encode()) / took / 1e6, sizes, budget, verbatim(part, chunks, places), shares(ends))


def verbatim(text: str, chunks: Sequence[Place | str], places: Sequence[Place | None]) -> float:
    """Share of chunks that stand in the text as they are."""
    kept = sum(
        span is not None and piece.strip() in text[span[0] - 1 if span[0] else 0 : span[1] + 1]
        for piece, span in zip(_pieces(text, chunks), places, strict=True)
    )
    return kept / max(1, len(chunks))


def row(text: str, label: str, rate: float, sizes: list[int], budget: int, kept: float, ends: str, last: bool = True) -> None:
    """One line of a table."""
    filled = sizes[:-1] if last else sizes
    fill = sum(filled) / len(filled) / budget if filled else 0.0
    over = sum(size > budget for size in sizes)
    print(f"| {text} | {label} | {rate:.2f} | {len(sizes)} | {fill:.2f} | {over} | {kept:.0%} | {ends} |", flush=True)


def measure_code(budget: int) -> None:
    """Speed and quality on Python files of more than one chunk."""
    files = [(text, Module(text)) for _, text in python_files(3 * budget, 2_500_000) if count_tokens(text) > budget]
    print(f"\n## Python, {len(files)} files of more than {budget} tokens, {sum(len(t) for t, _ in files) / 1e6:.1f} MB\n")
    print("| text | splitter | MB/s | chunks | fill | over budget | verbatim | what follows a cut |\n|---|---|---|---|---|---|---|---|")
    for label, work in splitters("code").items():
        if work is _article:
            continue
        took, sizes, filled, ends, kept = 0.0, 0, 0.0, Counter[str](), 0.0
        all_sizes: list[int] = []
        for text, module in files:
            seconds, chunks = timed(work, text, budget, 0)
            places = located(text, chunks)
            counts = [count_tokens(piece) for piece in _pieces(text, chunks)]
            took, sizes, filled = took + seconds, sizes + len(chunks), filled + sum(counts[:-1])
            kept += verbatim(text, chunks, places) * len(chunks)
            all_sizes += counts[:-1]
            ends.update(place for span in places[:-1] if span and (place := module.place(text, span[1])))
        row("python", label, sum(len(t.encode()) for t, _ in files) / took / 1e6, all_sizes, budget, kept / sizes, shares(ends), last=False)


def edits(text: str, places: int, extra: str, begins: str) -> Iterable[tuple[str, str]]:
    """Edited copies of `text`, `places` of each of four kinds, spread over it; a paragraph begins behind a match of `begins`."""
    starts = [match.end() for match in re.finditer(begins, text)][1:]
    for number in range(min(places, len(starts) - 1)):
        which = number * (len(starts) - 1) // places
        at, end = starts[which], starts[which + 1]
        gap = text[end - len(text[at:end]) + len(text[at:end].rstrip()) : end]
        note = f"{extra} ({number}){gap}"
        yield "a paragraph inserted", text[:at] + note + text[at:]
        yield "a paragraph changed", text[:at] + note + text[end:]
        yield "a paragraph deleted", text[:at] + text[end:]
        word = re.compile(r"[^\W\d_]{2,}").search(text, at)
        if word:
            yield "a word changed", text[: word.start()] + word.group()[::-1] + text[word.end() :]


def measure_edits(folder: Path | None, budget: int, places: int) -> None:
    """How many chunks are new after one edit."""
    print(f"\n## Chunks of {budget} tokens that must be read again after one edit, {places} places each: mean (worst)\n")
    kinds = ["a paragraph inserted", "a paragraph changed", "a paragraph deleted", "a word changed"]
    print("| text | splitter | chunks | fill | " + " | ".join(kinds) + " | all |\n|---|---|---|---|" + "---|" * (len(kinds) + 1))
    notes = {
        "zh": "这一段是编辑后来补上的说明，只是想多举一个例子。",
        "ru": "Этот абзац добавлен при правке: ещё один пример на том же месте.",
    }
    texts = prose(folder, 600_000)
    texts["code"] = "\n\n".join(text for _, text in python_files(3 * budget, 600_000))
    for name, text in texts.items():
        text = text[: 200_000 if name.startswith("zh") else 500_000]
        begins = {"zh flat": "。", "code": r"\n\n(?=(?:    )?(?:@|def |class |async ))"}.get(name, "\n\n+")
        note = notes.get(
            name[:2],
            "    def example(self):\n        return 1  #" if name == "code" else "This was added by an editor who wanted one more example.",
        )
        for label, work in splitters("code" if name == "code" else "prose").items():
            if work is _article:
                continue
            old = _pieces(text, work(text, budget))
            known = set(old)
            found: dict[str, list[int]] = {kind: [] for kind in kinds}
            fewer = places if label.startswith("ours") else max(4, places // 5)
            for kind, edited in edits(text, fewer, note, begins):
                found[kind].append(sum(piece not in known for piece in _pieces(edited, work(edited, budget))))
            cells = [f"{sum(counts) / len(counts):.2f} ({max(counts)})" for counts in found.values()]
            together = [count for counts in found.values() for count in counts]
            fill = sum(count_tokens(piece) for piece in old[:-1]) / max(1, len(old) - 1) / budget
            cells.append(f"{sum(together) / len(together):.2f} ({max(together)})")
            print(f"| {name} | {label} | {len(old)} | {fill:.2f} | " + " | ".join(cells) + " |", flush=True)


def _hazards() -> dict[str, tuple[str, int, Literal["prose", "code"]]]:
    """Text, budget and kind of what splitters broke on, in public reports and here."""
    chance = random.Random(1)
    han = "".join(re.findall(r"[\u4e00-\u9fff]+", prose(None, 50_000)["zh"]))
    page = passage()
    return {
        "1 MB of one letter": ("a" * 1_000_000, 2_000, "prose"),
        "a script of 3 MB on one line": (
            "".join(f"function f{i}(a,b){{var c=a+{i};if(c>b){{return g(c,'{i * 7}')}}return[a,b,c]}};" for i in range(45_000))[:3_000_000],
            2_000,
            "code",
        ),
        "flat YAML, 1 MB, budget 2048": ("".join(f"key_{i}: {chance.random()}\n" for i in range(36_000)), 2_048, "code"),
        "base64, 300 KB on one line": (base64.b64encode(chance.randbytes(225_000)).decode(), 2_000, "prose"),
        "special tokens": ("def f():\n    return '<|endoftext|>'  # <|fim_prefix|>\n\n" * 3_000, 2_000, "code"),
        "emoji with joiners": ("👩\u200d👩\u200d👧\u200d👦🏳️\u200d🌈e\u0301 " * 6_000, 2_000, "prose"),
        "blank lines": ("\n" * 150_000 + "x" + " " * 150_000, 2_000, "prose"),
        "CRLF": ((page * 60).replace("\n", "\r\n"), 2_000, "prose"),
        "lone surrogates": ("tide \ud83d and \udc00 sea.\n" * 9_000, 2_000, "prose"),
        "NUL": ("tide\0\0sea\0" * 20_000, 2_000, "prose"),
        "Chinese without marks": ((han * 12)[:150_000], 2_000, "prose"),
        "escaped quotes, 1 MB": ('\\"' * 500_000, 2_000, "code"),
    }


def _too_late(*_: object) -> None:
    raise TimeoutError


def measure_hazards(limit: int) -> None:
    """Time, chunks over the budget, and whether the chunks give the text."""
    print(f"\n## Hazards, at most {limit} s each\n")
    print("| text | splitter | s | chunks | fill | over budget (largest) | blank | characters lost |\n|---|---|---|---|---|---|---|---|")
    signal.signal(signal.SIGALRM, _too_late)
    for name, (text, budget, kind) in _hazards().items():
        for label, work in splitters(kind).items():
            if work is _article and len(text) > 200_000:
                continue
            signal.alarm(limit)
            try:
                took, chunks = timed(work, text, budget, 0)
                pieces = _pieces(text, chunks)
                sizes = [count_tokens(piece) for piece in pieces]
                signal.alarm(0)
            except TimeoutError:
                print(f"| {name} | {label} | over {limit} |||||| ", flush=True)
                continue
            except Exception as error:  # noqa: BLE001 - what others raise is the result
                signal.alarm(0)
                print(f"| {name} | {label} | {type(error).__name__} ||||||", flush=True)
                continue
            over = [size for size in sizes if size > budget]
            fill = sum(sizes[:-1]) / max(1, len(sizes) - 1) / budget
            blank = sum(not piece.strip() for piece in pieces)
            lost = len(text) - sum(map(len, pieces))
            worst = f"{len(over)} ({max(over)})" if over else "0"
            print(f"| {name} | {label} | {took:.2f} | {len(pieces)} | {fill:.2f} | {worst} | {blank} | {lost} |", flush=True)


_CHILD = """
import re, sys, time
from pathlib import Path
from fabula.text import split
text = Path(sys.argv[1]).read_text("utf-8")
split("warm. " * 99, 16)
begin = time.process_time()
spans = split(text, int(sys.argv[2]), kind=sys.argv[3], stable=sys.argv[4] == "stable")
took = time.process_time() - begin
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(took, len(spans), sys.getsizeof(text) / 1e6, int(peak[1]) / 1000)
"""


def measure_long(folder: Path | None, budget: int, sizes: Sequence[int]) -> None:
    """Time and memory from 1 to 50 MB, each in a process of its own."""
    print("\n## Length: MB/s, and memory of the whole process at its peak (100 MB without the text)\n")
    print("| text | " + " | ".join(f"{size} MB" for size in sizes) + " |\n|---|" + "---|" * len(sizes))
    with tempfile.TemporaryDirectory() as place:
        for name, how in (
            ("en", "plain"),
            ("en", "stable"),
            ("wrapped", "plain"),
            ("zh", "plain"),
            ("ru", "plain"),
            ("code", "plain"),
            ("code", "stable"),
        ):
            cells = []
            for size in sizes:
                path = Path(place) / "text"
                text = long_text(name, size * 1_000_000, folder)
                path.write_text(text, "utf-8")
                kind = "code" if name == "code" else "prose"
                command = [sys.executable, "-c", _CHILD, str(path), str(budget), kind, how]
                answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
                took, _, held, peak = (float(part) for part in answer)
                cells.append(f"{len(text.encode()) / 1e6 / took:.1f}, {peak:.0f} MB (text {held:.0f})")
            print(f"| {name}{', stable' if how == 'stable' else ''} | " + " | ".join(cells) + " |", flush=True)


QUESTIONS = {
    "en": "How did the anarchists of Spain organise collectives during the revolution in Barcelona?",
    "wrapped": "Where does the word hacker come from, and which programmers used it at MIT?",
    "zh": "如何在系统启动时配置网络和安装软件包？",
    "ru": "Как сопровождающий пакета исправляет зависимости при установке обновлений?",
    "code": "Which class parses the arguments of the command line and formats the help?",
}


def measure_rest(folder: Path | None) -> None:
    """`rank` and `LineIndex`."""
    print("\n## Relevance and line numbers, MB/s\n\n| text | rank | LineIndex |\n|---|---|---|")
    texts = prose(folder, 1_000_000)
    texts["code"] = "\n\n".join(text for _, text in python_files(6_000, 1_500_000))
    for name, question in QUESTIONS.items():
        text = texts[name]
        size = len(text.encode()) / 1e6
        parts: list[str] = [text[i : i + 50_000] for i in range(0, len(text), 50_000)]
        ranked, _ = timed(lambda *_, q=question, p=parts: [str(score) for score in rank(q, iter(p))], text, 0, 0.5)
        indexed, _ = timed(lambda t, _: [str(len(LineIndex(t)))], text, 0, 0.5)
        print(f"| {name} | {size / ranked:.0f} | {size / indexed:.0f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="folder of unpacked Debian packages")
    parser.add_argument("--fetch", action="store_true", help="download them into that folder first")
    parser.add_argument("--budget", type=int, default=2_000, help="tokens of a chunk")
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU seconds for each figure of speed")
    parser.add_argument("--places", type=int, default=25, help="places of edits")
    parser.add_argument("--parts", default="prose,code,edits,hazards,long,rest")
    chosen = parser.parse_args()
    if chosen.fetch:
        if chosen.texts is None:
            parser.error("--fetch needs --texts FOLDER")
        fetch(chosen.texts)
    missing = [name for name in ("semchunk", "langchain_text_splitters") if _optional(name) is None]
    if missing:
        print(f"Not installed, so not compared: {', '.join(missing)}; see --help.")
    parts = chosen.parts.split(",")
    split("warm. " * 99, 16)
    if "prose" in parts:
        measure_prose(chosen.texts, chosen.budget, chosen.seconds)
    if "code" in parts:
        measure_code(chosen.budget)
    if "edits" in parts:
        measure_edits(chosen.texts, chosen.budget, chosen.places)
    if "hazards" in parts:
        measure_hazards(60)
    if "long" in parts:
        measure_long(chosen.texts, chosen.budget, (1, 5, 25, 50))
    if "rest" in parts:
        measure_rest(chosen.texts)


if __name__ == "__main__":
    main()
