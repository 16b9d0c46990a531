"""The small model that tests run for real: fetched once into the person's cache, 98 MB."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabula.errors import WeightsMissing
from fabula.models import fetch

SMOLLM = "smollm2-135m-instruct-q4_1"


def fetched(name: str) -> Path:
    """The weights' path; the test is skipped where they cannot be fetched."""
    try:
        return fetch(name)
    except WeightsMissing as error:
        pytest.skip(f"{name} could not be fetched: {error.message}")
