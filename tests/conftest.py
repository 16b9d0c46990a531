"""What all tests share: nothing is skipped unseen, nothing reads the person's own settings, nothing is random."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

NO_SKIP = os.environ.get("FABULA_NO_SKIP") == "1"
"""Set where everything that tests need was installed: a skipped test is then a failed one."""

settings.register_profile(
    "fabula", deadline=None, derandomize=True, database=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fabula")


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and FABULA_NO_SKIP=1 allows no skip: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return re.sub(r"^Skipped: ", "", text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.section(f"{skipped.total()} tests did NOT run")
        for reason, count in skipped.most_common():
            terminalreporter.line(f"  {count}  {reason}")


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or changes the library, settings or keys of whoever runs it; the cache of weights is shared."""
    for name in list(os.environ):
        if (name.startswith("FABULA_") and name != "FABULA_NO_SKIP") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)
    base: Path = tmp_path_factory.getbasetemp()
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(base / name.lower()))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
