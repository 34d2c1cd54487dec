"""The pytest plugin that accelerates a package and writes the outcome of each of its tests to a file.

``--accelerated FOLDER`` accelerates each module whose file is in the folder as soon as it is imported, except
for test modules, which are accelerated only with ``--tests-too``; without a folder nothing is accelerated.
``--outcomes FILE`` names a file that gets a line of JSON when a test begins and one when it ends, so that a
test that ends the process is known.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

__all__ = ["Accelerating", "Writing"]

_TESTS = {"test", "tests"}  # folders


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--accelerated", nargs=1, action="extend", default=[], help="folder of modules")
    parser.addoption("--tests-too", action="store_true", help="accelerate modules of tests, too")
    parser.addoption("--outcomes", type=Path, help="file of outcomes")
    parser.addoption("--only", type=Path, help="file of the tests, or files of tests, that are to run")


def pytest_configure(config: pytest.Config) -> None:
    """Register the parts of the plugin that the options ask for."""
    only = config.getoption("--only")
    config.pluginmanager.register(
        Writing(config.getoption("--outcomes"), set(json.loads(only.read_text())) if only else set())
    )
    folders = config.getoption("--accelerated")
    if folders:
        places = [f"{Path(folder).resolve()}/" for folder in folders]
        config.pluginmanager.register(Accelerating(places, config.getoption("--tests-too")))


def _is_of_tests(file: str) -> bool:
    path = Path(file)
    named = path.name.startswith(("test_", "conftest")) or path.stem.endswith("_test")
    return named or not _TESTS.isdisjoint(path.parts)


class Writing:
    """The part of the plugin that writes outcomes to a file, and leaves out tests that were not asked for."""

    def __init__(self, file: Path, only: set[str]) -> None:
        self._file = file.open("w", encoding="utf-8")
        self._only = only
        self._since = 0.0
        self._found: dict[str, tuple[str, str]] = {}

    def _write(self, *line: Any) -> None:
        seconds, self._since = time.process_time() - self._since, time.process_time()
        self._file.write(json.dumps((*line, seconds)) + "\n")
        self._file.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests that were not asked for."""
        if self._only:
            items[:] = [
                one for one in items if not self._only.isdisjoint((one.nodeid, one.nodeid.partition("::")[0]))
            ]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a test begins."""
        self._write(nodeid, "running", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the outcome of a test whose last stage has ended; note that of an earlier stage."""
        known, message = self._found.get(report.nodeid, ("", ""))
        outcome: str = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
        crash = getattr(report.longrepr, "reprcrash", None)
        if report.failed:
            message = message or (crash.message if crash is not None else str(report.longrepr))
        if known in ("", "passed") or report.failed:
            known = outcome
        self._found[report.nodeid] = known, message
        if report.when == "teardown":
            self._write(report.nodeid, known, message.strip()[:2000])
            del self._found[report.nodeid]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write that a test module cannot be imported."""
        if report.failed:
            self._write(report.nodeid, "no import", str(report.longrepr)[-2000:])


class Accelerating:
    """The part of the plugin that accelerates the modules of a package."""

    def __init__(self, folders: list[str], tests_too: bool) -> None:
        self._folders = tuple(folders)
        self._tests_too = tests_too
        self._seen: set[str] = set()

    def _look(self) -> None:
        import dcarray as dc

        for name in sys.modules.keys() - self._seen:
            self._seen.add(name)
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            if not (isinstance(module, ModuleType) and isinstance(file, str)):
                continue
            folder = next(filter(file.startswith, self._folders), None)
            if folder and (self._tests_too or not _is_of_tests(file[len(folder) :])):
                with warnings.catch_warnings():  # of names that are looked up
                    warnings.simplefilter("ignore")
                    with suppress(ValueError):  # it has no NumPy, or is compiled
                        dc.accelerate(module)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Accelerate the package, now that pytest has imported all modules with tests."""
        self._look()

    def pytest_runtest_setup(self) -> None:
        """Accelerate modules that the previous test may have imported."""
        self._look()
