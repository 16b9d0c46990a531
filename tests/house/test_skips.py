"""Where everything is installed, nothing may be skipped; elsewhere what did not run is counted and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT

SKIPS = """
import pytest

def test_one():
    pytest.skip("needs a unicorn")

@pytest.mark.skipif(True, reason="needs a unicorn")
def test_two(): ...

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""


@pytest.mark.parametrize(
    ("allowed", "status", "says"), [("0", 0, "2 tests did NOT run"), ("1", 1, "FABULA_NO_SKIP=1 allows no skip: needs a unicorn")]
)
def test_skips(allowed: str, status: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(SKIPS)
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", str(tmp_path)]
    environment = os.environ | {"FABULA_NO_SKIP": allowed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stdout
    assert "xfailed" in done.stdout
