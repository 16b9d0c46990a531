"""Texts to measure splitting on, built from packages that are installed or fetched; none is kept in this repository.

With a folder of unpacked Debian packages (`bench_split.py --texts FOLDER --fetch` makes one) these are books and manuals; without, English
comes from the docstrings of the standard library, and Chinese and Russian from our own samples with their sentences shuffled. Code is
always the standard library's.
"""

from __future__ import annotations

import gzip
import inspect
import random
import re
import subprocess
import sysconfig
from html.parser import HTMLParser
from pathlib import Path

from fabula.text import sentences
from tests.text.samples import DIALOGUE, DIALOGUE_RU, EN, NEXT_EN, RU, ZH

DEBIAN = {
    "en": ("anarchism",),
    "wrapped": ("jargon-text",),
    "zh": ("debian-reference-zh-cn", "maint-guide-zh-cn"),
    "zh flat": ("fortunes-zh",),
    "ru": ("aptitude-doc-ru", "debian-faq-ru", "developers-reference-ru", "maint-guide-ru"),
}
_BLOCKS = {"p", "div", "h1", "h2", "h3", "h4", "h5", "li", "tr", "pre", "br", "dt", "dd", "blockquote", "section"}
_SILENT = {"script", "style", "head", "nav"}
_HAN = "\u4e00-\u9fff"


class _Page(HTMLParser):
    """The text of a page: blocks as paragraphs, white space folded."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        """A block begins a paragraph."""
        if tag in _SILENT:
            self.silent += 1
        elif tag in _BLOCKS:
            self.out.append("\n" if tag == "br" else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        """A block ends a paragraph."""
        if tag in _SILENT:
            self.silent = max(0, self.silent - 1)
        elif tag in _BLOCKS:
            self.out.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Text of a page."""
        if not self.silent:
            self.out.append(re.sub(r"[ \t\r\n]+", " ", data))


def _pages(folder: Path, names: tuple[str, ...]) -> str:
    texts = []
    for path in (path for name in names for path in sorted((folder / name).rglob("*.html"))):
        page = _Page()
        page.feed(path.read_text("utf-8", "replace"))
        texts.append(re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", "".join(page.out))).strip())
    return "\n\n".join(texts) + "\n"


def fetch(folder: Path) -> None:
    """Download the packages of `DEBIAN` with apt and unpack each into a folder of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for group in DEBIAN.values() for name in group]
    subprocess.run(["apt-get", "download", *names], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive.name, archive.name.partition("_")[0]], cwd=folder, check=True)


def _shuffled(passages: list[str], size: int) -> str:
    """Paragraphs of two to six sentences drawn from `passages`."""
    chance = random.Random(7)
    stock = [sentence.strip() for passage in passages for sentence in sentences(passage)]
    gap = "" if re.search(f"[{_HAN}]", stock[0]) else " "
    out: list[str] = []
    total = 0
    while total < size:
        out.append(gap.join(chance.sample(stock, chance.randint(2, 6))))
        total += len(out[-1]) + 2
    return "\n\n".join(out)


def _docstrings() -> str:
    """Hard-wrapped English: the longer docstrings of the standard library."""
    found: list[str] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text("utf-8", "replace")
        found.extend(inspect.cleandoc(doc) for doc in re.findall(r'"""(.*?)"""', source, re.DOTALL) if len(doc) > 300)
    return "\n\n".join(found)


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))


def prose(folder: Path | None, size: int) -> dict[str, str]:
    """English paragraphs, hard-wrapped English, a Chinese manual, Chinese without white space, Russian; at most `size` characters each."""
    if folder is None:
        wrapped = _docstrings()
        zh = _shuffled([ZH], size)
        found = {
            "en": _unwrapped(wrapped),
            "wrapped": wrapped,
            "zh": zh,
            "zh flat": "".join(zh.split()),
            "ru": _shuffled([RU, DIALOGUE_RU], size),
        }
    else:
        jargon = next((folder / "jargon-text").rglob("jargon.txt.gz"))
        chinese = next(path for path in (folder / "fortunes-zh").rglob("chinese") if path.is_file()).read_text("utf-8", "replace")
        bare = re.sub(r"\x1b\[[0-9;]*m", "", chinese)
        found = {name: _pages(folder, DEBIAN[name]) for name in ("en", "zh", "ru")}
        found["wrapped"] = gzip.decompress(jargon.read_bytes()).decode("utf-8", "replace")
        found["zh flat"] = "".join(re.findall(rf"[\u3000-\u303f{_HAN}\uff00-\uffef]+", bare))
    return {name: found[name][:size] for name in ("en", "wrapped", "zh", "zh flat", "ru")}


def python_files(least: int, size: int) -> list[tuple[str, str]]:
    """Names and texts of the standard library's files of at least `least` characters, drawn by chance, about `size` characters in all."""
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"site-packages", "dist-packages", "test", "tests", "pydoc_data", "encodings", "lib2to3"}
    paths = [path for path in sorted(root.rglob("*.py")) if least <= path.stat().st_size < 60 * least and not left_out & set(path.parts)]
    random.Random(3).shuffle(paths)
    out: list[tuple[str, str]] = []
    for path in paths:
        if size <= 0:
            break
        out.append((path.name, path.read_text("utf-8", "replace")))
        size -= len(out[-1][1])
    return out


def passage() -> str:
    """A page of English of our own."""
    return f"{EN}\n\n{NEXT_EN}\n\n{DIALOGUE}"


def long_text(name: str, size: int, folder: Path | None) -> str:
    """`size` bytes of UTF-8 of one kind, repeated from what there is; "code" too."""
    if name == "code":
        part = "\n\n".join(text for _, text in python_files(8_000, 2_000_000))
    else:
        part = prose(folder, 1_000_000)[name]
    each = len(part.encode())
    whole = part * (size // each + 1)
    return whole[: size * len(part) // each]
