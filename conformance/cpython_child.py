"""Runs one of CPython's own test files, plainly or accelerated, in a process of its own.

The command is ``python cpython_child.py WAY FILE RESULTS LIMIT``, or so with ``python -m dcarray run --also``
and the modules to accelerate; `conformance.cpython` starts it.  The standard input has two lists of test ids
in JSON: those to run (none: all), and those to leave out.  A line of JSON is added to the file of results as
a test begins, and one as it ends.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import random
import sys
import traceback
import types
import unittest
from collections.abc import Iterator
from typing import Any

__all__ = ["MODULES", "accelerated"]

_PURE = (
    "asyncio base64 bisect calendar collections configparser contextlib copy csv dataclasses difflib enum "
    "fractions functools heapq html ipaddress json pprint queue random statistics tarfile textwrap threading "
    "tokenize zipfile"
)
_PROCESSES = ("multiprocessing_fork", "multiprocessing_spawn")
# By test file: the modules under test, if they have code in Python.
MODULES = {
    **{name: name for name in _PURE.split()},
    "ast": "ast",
    "concurrent_futures": "concurrent",
    "datetime": "datetime _pydatetime _strptime",
    "decimal": "_pydecimal",
    **dict.fromkeys(_PROCESSES, "multiprocessing"),
}
# By test file: further modules with its tests.
_ALSO = {
    "datetime": "datetimetester",
    "queue": "lock_tests",
    "threading": "lock_tests",
    **dict.fromkeys(_PROCESSES, "_test_multiprocessing"),
}


def accelerated(way: str, name: str) -> list[str]:
    """Return the names of the modules that are accelerated when a test file runs in one way."""
    kind = way.partition(" ")[0]
    if kind == "module":
        return MODULES.get(name, "").split()
    return [f"test.{one}" for one in (f"test_{name}", _ALSO.get(name)) if one and kind == "tests"]


def _accelerate(names: list[str]) -> None:
    """Accelerate the modules that are imported already; ``dcarray run --also`` does it for later ones."""
    import dcarray

    @dcarray.accelerate
    def warm(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    warm(1000)  # what compiles is imported now, before modules that it needs are imported anew by tests
    for name in [*sys.modules]:
        if any(name == one or name.startswith(one + ".") for one in names):
            dcarray.accelerate(sys.modules[name])


class _Result(unittest.TestResult):
    """The outcomes of tests, written to a file one by one."""

    def __init__(self, file: int, limit: float, log: Any) -> None:
        super().__init__()
        self._file, self._limit, self._log, self._process = file, limit, log, os.getpid()

    def note(self, test: Any, outcome: str, error: Any = None) -> None:
        """Write that a test has begun or ended."""
        if os.getpid() != self._process:  # a child that a test has forked, and that did not end
            os._exit(1)
        told = ""
        if error is not None:
            told = " ".join("".join(traceback.format_exception_only(error[0], error[1])).split())[:200]
            print(
                f"=== {test.id()}\n{''.join(traceback.format_exception(*error))}", file=self._log, flush=True
            )
        os.write(self._file, (json.dumps([test.id(), outcome, told]) + "\n").encode())

    def startTest(self, test: Any) -> None:
        """Limit the time of the test, too."""
        super().startTest(test)
        faulthandler.dump_traceback_later(self._limit, exit=True, file=self._log)
        random.seed(0)
        self.note(test, "begun")

    def addSuccess(self, test: Any) -> None:
        self.note(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:
        self.note(test, "failed", err)

    addError = addFailure

    def addSkip(self, test: Any, reason: str) -> None:
        self.note(test, "skipped")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.note(test, "as expected")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.note(test, "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            skipped = issubclass(err[0], unittest.SkipTest)
            self.note(test, "skipped" if skipped else "failed", err)


def _each(suite: Any) -> Iterator[Any]:
    """Yield the tests of a suite, and of those inside."""
    if isinstance(suite, unittest.TestSuite):
        for one in suite:
            yield from _each(one)
    else:
        yield suite


def _module(name: str) -> Any:
    """Import a test file.  Those of multiprocessing are made here if the interpreter has only what they are
    made of, as in the images of some distributors."""
    kind = name.removeprefix("multiprocessing_")
    if kind == name or importlib.util.find_spec(f"test.test_{name}"):
        return importlib.import_module(f"test.test_{name}")
    made = types.ModuleType(f"test.test_{name}")
    from test import _test_multiprocessing  # type: ignore[import-not-found]

    _test_multiprocessing.install_tests_in_module_dict(vars(made), kind)
    return made


def main(way: str, name: str, results: str, limit: str) -> None:
    """Run the tests."""
    only, without = (frozenset(ids) for ids in json.load(sys.stdin))
    file = os.open(results, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    log = os.fdopen(os.dup(2), "w")
    faulthandler.enable(log)
    if names := accelerated(way, name):
        _accelerate(names)
    from test import support
    from test.support import os_helper  # type: ignore[import-not-found]

    support.use_resources = []  # neither the network, nor tests that need many minutes
    result = _Result(file, float(limit), log)
    with os_helper.temp_cwd():
        suite: Any = unittest.TestLoader().loadTestsFromModule(_module(name))
        if only or without:
            chosen = [
                one for one in _each(suite) if one.id() not in without and (not only or one.id() in only)
            ]
            suite = unittest.TestSuite(chosen)
        suite.run(result)
    faulthandler.cancel_dump_traceback_later()
    os.write(file, b'["", "end", ""]\n')


if __name__ == "__main__":
    del sys.path[0]
    main(*sys.argv[1:])
