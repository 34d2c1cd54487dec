"""The pytest plugin of `conformance.numpy_suite`: loads test modules with dcarray's arrays, notes outcomes.

``--arrays wrapped`` executes the test modules with the names of `conformance.numpy_names`, ``--arrays
plain`` as they are.  Both use the same loader, so that the test ids are the same.

NumPy reports a floating-point error at the call, dcarray when the recorded call runs.  Therefore a block in
which a test expects an error or a warning evaluates pending operations at its end, and so does every test, so
that its errors are not attributed to another test.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import unittest.case
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dcarray as dc

_ROOT = Path(np.__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("numpy_suite")
    group.addoption("--arrays", choices=("plain", "wrapped"), default="wrapped")
    group.addoption("--outcomes", help="file for the outcome of every test, as JSON")
    group.addoption("--each", type=int, default=0, help="run so many tests of each module, always the same")


class _Module(pytest.Module):
    """A test module that is executed with the builtins of `conformance.numpy_names`."""

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
        if hasattr(module, "HAS_REFCOUNT"):  # its tests of references run; others need not count them too
            vars(module)["HAS_REFCOUNT"] = False
        return module


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Return a `_Module` for a test module of NumPy, None for others."""
    if module_path.is_relative_to(_ROOT):
        return _Module.from_parent(parent, path=module_path)
    return None


class _Outcomes:
    """The outcome of every test, with the last line of its error."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.start = time.perf_counter(), time.process_time()
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
        now = time.perf_counter(), time.process_time()
        seconds, processor = (end - start for start, end in zip(self.start, now, strict=True))
        found = {"seconds": seconds, "processor": processor, "tests": tests}
        self.file.write_text(json.dumps(found))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select ``--each`` tests of each module: those with the smallest checksums of names.

    Tests that NumPy marks as slow are left out.
    """
    each = config.getoption("--each")
    if each:
        modules = defaultdict(list)
        for item in items:
            if item.get_closest_marker("slow"):
                continue
            modules[item.path].append((zlib.crc32(item.nodeid.partition("numpy/")[2].encode()), item.nodeid))
        kept = {name for names in modules.values() for _, name in sorted(names)[:each]}
        items[:] = [item for item in items if item.nodeid in kept]


def _asking(kind: Any) -> None:
    """Let a context manager evaluate pending operations when its block ends without an error."""
    leave = kind.__exit__

    def __exit__(self: Any, *error: Any) -> Any:
        if error[:1] == (None,):
            try:
                dc.evaluate()
            except BaseException as late:
                if leave(self, type(late), late, late.__traceback__):
                    return True
                raise
        return leave(self, *error)

    kind.__exit__ = __exit__


class _Asking:
    """The plugin part that evaluates a test's pending operations at its end."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield
        dc.evaluate()


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin that notes outcomes, if ``--outcomes`` names a file.  With ``--arrays wrapped``,
    also evaluate pending operations after every test, and after every block that expects an error or a
    warning."""
    file = config.getoption("--outcomes")
    if file:
        config.pluginmanager.register(_Outcomes(Path(file)))
    if config.getoption("--arrays") == "wrapped":
        config.pluginmanager.register(_Asking())
        assertion: Any = vars(unittest.case)["_AssertRaisesContext"]
        for kind in (assertion, type(pytest.raises(Exception)), type(pytest.warns(Warning))):
            _asking(kind)
