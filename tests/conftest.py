"""Fixtures of all tests."""

from __future__ import annotations

import cuda_compiled
import pytest

from dcarray.tiering import eager_period


@pytest.fixture(autouse=True)
def no_eager_period() -> None:
    """End the eager period that a loop of an earlier test may have begun."""
    eager_period.end(loop=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the kernels that were compiled for a GPU take."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [one for report in reports for one in getattr(report, "user_properties", ())]
    functions = [tuple(value) for name, value in properties if name == cuda_compiled.PROPERTY]
    if functions:
        terminalreporter.write_line(cuda_compiled.summary(functions))
