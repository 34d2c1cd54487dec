"""The pytest plugin behind `conformance.numpy_suite`: loads test modules with wrapped arrays, notes results.

``--arrays wrapped`` executes the test modules with the names of `conformance.numpy_names`, ``--arrays
plain`` as they are.  Either way they are loaded alike, so that the test ids are the same.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

_ROOT = Path(np.__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("numpy_suite")
    group.addoption("--arrays", choices=("plain", "wrapped"), default="wrapped")
    group.addoption("--outcomes", help="file for the outcome of every test, as JSON")


class _Module(pytest.Module):
    """A test module, executed with builtins of our choice."""

    def _getobj(self) -> ModuleType:
        name = ".".join(self.path.relative_to(_ROOT).with_suffix("").parts)
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if self.config.getoption("--arrays") == "wrapped":
            from conformance.numpy_names import substituted

            module.__dict__["__builtins__"] = substituted()
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Take the loading of NumPy's test modules over."""
    if module_path.is_relative_to(_ROOT):
        return _Module.from_parent(parent, path=module_path)
    return None


class _Outcomes:
    """What became of every test, with the last line of what went wrong."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.start = time.process_time()
        self.tests: dict[str, tuple[str, str]] = {}

    def note(self, report: Any) -> None:
        name = report.nodeid.partition("site-packages/")[2] or report.nodeid
        if report.outcome == "failed":
            text = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
            self.tests[name] = ("failed", (text or str(report.longrepr))[:400])
        elif report.when == "call" or report.outcome == "skipped":
            outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            if self.tests.get(name, ("",))[0] != "failed":
                self.tests[name] = (outcome, "")

    pytest_runtest_logreport = note
    pytest_collectreport = note

    def pytest_sessionfinish(self) -> None:
        tests = {k: v for k, v in self.tests.items() if "::" in k or v[0] == "failed"}
        found = {"seconds": time.process_time() - self.start, "tests": tests}
        self.file.write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    """Note outcomes if a file is named."""
    file = config.getoption("--outcomes")
    if file:
        config.pluginmanager.register(_Outcomes(Path(file)))
