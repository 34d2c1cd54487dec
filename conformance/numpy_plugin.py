"""The pytest plugin behind `conformance.numpy_suite`: loads test modules with wrapped arrays, notes results.

``--arrays wrapped`` executes the test modules with the names of `conformance.numpy_names`, ``--arrays
plain`` as they are.  Either way they are loaded alike, so that the test ids are the same.

NumPy reports a mistake of floating-point arithmetic at the call, we when the recorded call runs.  So a test
that expects an error or a warning of a block asks, at the end of the block, for what has been recorded; so
does every test at its end, lest its errors count as another's.
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
    """The options of the plugin."""
    group = parser.getgroup("numpy_suite")
    group.addoption("--arrays", choices=("plain", "wrapped"), default="wrapped")
    group.addoption("--outcomes", help="file for the outcome of every test, as JSON")
    group.addoption("--each", type=int, default=0, help="run so many tests of each module, always the same")


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
        if hasattr(module, "HAS_REFCOUNT"):  # its tests of references run; others need not count them too
            vars(module)["HAS_REFCOUNT"] = False
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
    """Leave ``--each`` tests of each module: of those that NumPy does not call slow, those whose names have
    the smallest checksums."""
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
    """Have a context manager ask for what has been recorded when its block ends without an error."""
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
    """Asks for what a test has recorded when the test ends."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield
        dc.evaluate()


def pytest_configure(config: pytest.Config) -> None:
    """Note outcomes if a file is named; ask for what wrapped arrays have recorded."""
    file = config.getoption("--outcomes")
    if file:
        config.pluginmanager.register(_Outcomes(Path(file)))
    if config.getoption("--arrays") == "wrapped":
        config.pluginmanager.register(_Asking())
        assertion: Any = vars(unittest.case)["_AssertRaisesContext"]
        for kind in (assertion, type(pytest.raises(Exception)), type(pytest.warns(Warning))):
            _asking(kind)
