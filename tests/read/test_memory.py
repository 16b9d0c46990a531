"""A large folder is read in bounded memory: in a process of its own, whose highest use is looked at when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.read.reading import long_text

ROOT = Path(__file__).parents[2]
READ = """
import asyncio, re, resource, sys
from contextlib import closing
from pathlib import Path
from fabula.store import open_store
from tests.read.models import Copyist
from tests.read.reading import start

class Forgetful(list):
    def append(self, request):  # the scripted model keeps what it was asked; a real one does not
        pass

def highest():  # megabytes of this very program: ru_maxrss begins with what its parent had
    if not Path("/proc/self/status").exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**20
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)) // 1024

async def main(library, folder, chunk):
    model = Copyist(200)
    model.requests = Forgetful()
    with closing(open_store(library)) as store:
        study = start(store, [Path(folder)], model, chunk_tokens=int(chunk), way="tree")
        await study.read()
        coverage = study.outcome().coverage()
        study.close()
        print(coverage["chunks"], coverage["read"], coverage["documents"], highest())

asyncio.run(main(*sys.argv[1:]))
"""


def read_folder(tmp_path: Path, megabytes: int, chunk: int) -> tuple[int, int, int, int]:
    """(chunks, read, documents, megabytes of memory at most) of a folder of about so many megabytes."""
    folder = tmp_path / "sources"
    folder.mkdir()
    text = long_text(400)
    files = megabytes * 1_000_000 // len(text) + 1
    for n in range(files):
        (folder / f"book-{n:04}.md").write_text(f"# Book {n}\n\n" + text.replace("house", f"house {n}"), "utf-8")
    assert sum(p.stat().st_size for p in folder.iterdir()) >= megabytes * 1_000_000
    command = [sys.executable, "-c", READ, str(tmp_path / "library.db"), str(folder), str(chunk)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "FABULA_EMBEDDER": "none"})
    assert done.returncode == 0, done.stderr
    chunks, read, documents, memory = map(int, done.stdout.split())
    assert documents == files
    assert read == chunks
    return chunks, read, documents, memory


def test_twenty_megabytes(tmp_path: Path) -> None:
    memory = read_folder(tmp_path, 20, 24_000)[-1]
    print(f"20 MB: {memory} MB of memory")
    assert memory < 500


@pytest.mark.soak
def test_two_hundred_megabytes(tmp_path: Path) -> None:
    memory = read_folder(tmp_path, 200, 8_000)[-1]
    print(f"200 MB: {memory} MB of memory")
    assert memory < 500
