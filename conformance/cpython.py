"""Runs CPython's own tests accelerated and compares with plain Python: ``python -m conformance cpython``.

The tests are those of the interpreter that runs the command (`test.test_*`).  Each file of tests runs
plainly, then in several ways in processes of their own (`conformance.cpython_child`): the modules under test
accelerated, or the test files themselves; in eager mode, in which every site is asked, or in the default
mode.  A test that passes plainly and not so is run once more in both ways; if it fails again, it must be
listed in ``cpython_known.txt`` with a reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import dcarray as dc

from .cpython_child import MODULES, accelerated
from .document import write_section
from .known import causes, known

__all__ = ["FILES", "KNOWN", "WAYS", "Outcomes", "judge", "main", "run"]

KNOWN = Path(__file__).with_name("cpython_known.txt")
_LANGUAGE = (
    "grammar scope generators exceptions patma named_expressions unpack unpack_ex class descr iter with "
    "contextlib sys_settrace sys_setprofile monitoring bdb trace profile cprofile pdb signal threadsignals "
    "thread"
)
_MORE = (
    "augassign bool builtin call cmath complex contains coroutines asyncgen decorators dict dictcomps "
    "except_star exception_group extcall float frame fstring gc generator_stop genexps global int isinstance "
    "itertools keywordonlyarg list listcomps long math metaclass operator ordered_dict positional_only_arg "
    "pow property raise range richcmp set setcomps slice sort string super traceback tuple types userdict "
    "userlist userstring weakref"
)
FILES = tuple(dict.fromkeys([*_LANGUAGE.split(), *MODULES, *_MORE.split()]))
"""The files of tests, without ``test_``: of the language, of modules in Python, and more of the language."""
WAYS = ("module eager", "tests eager", "module default", "tests default")
_SHOWN = 10  # failures of a file, without --verbose
_GOOD = ("passed", "as expected", "skipped")


@dataclass
class Outcomes:
    """The outcomes of one file of tests in one way."""

    # For each id the outcome, such as ``"passed"``, ``"failed"``, ``"hang"`` or ``"crash"``, and the error.
    tests: dict[str, tuple[str, str]] = field(default_factory=dict)
    seconds: float = 0.0
    log: str = ""  # what the processes wrote to their standard error: the tracebacks

    def count(self, *kinds: str) -> int:
        """Return how many tests have one of some outcomes."""
        return sum(outcome in kinds for outcome, _ in self.tests.values())


def _process(way: str, name: str, limit: float, ids: list[list[str]], found: Outcomes) -> str:
    """Run tests in one process; return the id of the test with which it ended, "" if it ran all of them, or
    None if it ended before the first."""
    jit = {"eager": "eager", "default": "background"}.get(way.partition(" ")[2], "off")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", errors="replace") as log:
        results = Path(folder, "results")
        results.touch()
        environment = {**os.environ, "DCARRAY_JIT": jit, "PYTHONHASHSEED": "0", "TMPDIR": folder}
        environment["DCARRAY_CACHE_DIR"] = str(Path(folder, "cache"))
        also = [f"--also={module}" for module in accelerated(way, name)]
        runner = ["-m", "dcarray", "run", *also] if also else []
        script = str(Path(__file__).with_name("cpython_child.py"))
        child = subprocess.Popen(
            [sys.executable, *runner, script, way, name, str(results), str(limit)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=environment, cwd=folder,
            text=True, start_new_session=True,
        )  # fmt: skip
        assert child.stdin is not None
        child.stdin.write(json.dumps(ids))
        child.stdin.close()
        hangs = False
        while child.poll() is None:
            time.sleep(0.05)
            if hangs := time.time() - results.stat().st_mtime > limit + 10:
                break
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # and what the tests have left
        status = child.wait()
        log.seek(0)
        text = log.read()
        lines = [json.loads(line) for line in results.read_text().splitlines()]
    found.log += text
    begun = ""
    for test, outcome, told in lines:
        if outcome == "end":
            return ""
        if outcome == "begun":
            begun = test
        if found.tests.get(test, ("passed",))[0] in ("begun", *_GOOD):  # a failure remains one
            found.tests[test] = outcome, told
    kind = "hang" if hangs or "Timeout (" in text else "crash"
    found.tests[begun or f"test_{name}"] = kind, (text.strip().splitlines() or [f"status {status}"])[-1][:300]
    return begun or f"test_{name}"


def run(way: str, name: str, limit: float, only: Iterable[str] = ()) -> Outcomes:
    """Run a file of tests in one way, after a hang or a crash the tests that remain.

    Parameters
    ----------
    way : str
        One of `WAYS`, or "plain".
    name : str
        One of `FILES`.
    limit : float
        Seconds for one test.
    only : iterable of str, optional
        The tests to run; none: all.
    """
    found, begun = Outcomes(), time.perf_counter()
    chosen = [*only]
    while True:
        before = len(found.tests)
        ended = _process(way, name, limit, [chosen, [*found.tests]], found)
        for test, (outcome, _) in found.tests.items():
            if outcome == "begun":  # and no more: its class or its subtests were skipped
                found.tests[test] = "skipped", ""
        if not ended or len(found.tests) == before or ended == f"test_{name}":
            break
    found.seconds = time.perf_counter() - begun
    return found


def judge(plain: Outcomes, other: Outcomes) -> dict[str, str]:
    """Return the tests that pass plainly and not in another way, with what happened."""
    failed = {}
    for test, (outcome, told) in other.tests.items():
        expected = plain.tests.get(test, ("missing", ""))[0]
        if outcome not in _GOOD and expected in (*_GOOD, "missing"):
            failed[test] = f"{outcome}: {told}"
    if not any(other.count(kind) for kind in ("hang", "crash")):
        absent = [test for test, (outcome, _) in plain.tests.items() if outcome == "passed"]
        failed |= {test: "not run" for test in absent if test not in other.tests}
    return failed


@dataclass
class _Row:
    """What is told about a file of tests in one way."""

    name: str
    way: str
    tests: int
    failed: dict[str, str]
    once: dict[str, str]  # failed, and passed when they ran again
    seconds: float
    plain: float


_HEAD = f"{'file':<22}{'way':<16} tests  failed  hangs  crashes  once       s  plain"


def _line(row: _Row) -> str:
    kinds = [why.partition(":")[0] for why in row.failed.values()]
    return (
        f"{row.name:<22}{row.way:<16}{row.tests:>6}{len(kinds):>8}{kinds.count('hang'):>7}"
        f"{kinds.count('crash'):>9}{len(row.once):>6}{row.seconds:>8.1f}{row.plain:>7.1f}"
    )


def _rows(name: str, ways: Iterable[str], limit: float, verbose: bool) -> Iterable[_Row]:
    """Yield the rows of one file of tests."""
    plain = run("plain", name, limit)
    for way in ways:
        if not accelerated(way, name):
            continue
        bound = max(limit, 20 * max(plain.seconds, 1) if limit >= 60 else limit)
        other = run(way, name, bound)
        failed = judge(plain, other)
        once = {}
        if failed:
            again = judge(run("plain", name, limit, failed), run(way, name, bound, failed))
            once = {test: why for test, why in failed.items() if test not in again}
            failed = {test: why for test, why in failed.items() if test in again}
            if verbose:
                print(other.log, file=sys.stderr, flush=True)
        yield _Row(name, way, len(other.tests), failed, once, other.seconds, plain.seconds)


_ABOUT = """\
`python -m conformance cpython --docs docs/conformance.md` wrote this section: CPython's own tests, as the
interpreter has them, in processes of their own.  *Module*: the modules under test are accelerated, those in
Python; *tests*: the test files are.  *Eager*: every site asks for compiled code at its first run; *default*:
those that are hot.  *Failed* are tests that pass in plain Python, and twice not so; *once* are those that
passed when they were run again.  The command fails on a failure that is not listed, with its reason, in
`conformance/cpython_known.txt`.  Tests that need the network, or much time or memory, are skipped.
"""


def _latest(file: Path) -> list[_Row]:
    """Return the rows that runs have added to a file: for each file of tests and each way the last."""
    rows = [_Row(**json.loads(line)) for line in file.read_text().splitlines()]
    last = {(row.name, row.way): row for row in rows}
    return sorted(last.values(), key=lambda row: (FILES.index(row.name), WAYS.index(row.way)))


def _section(rows: list[_Row], listed: Mapping[str, str]) -> str:
    body = "\n".join([_HEAD, *map(_line, rows)])
    why = causes((test for row in rows for test in row.failed), listed)
    where = f"Python {sys.version.split()[0]}, dcarray {dc.__version__}"
    return f"{_ABOUT}\n{where}\n\n```\n{body}\n```\n" + (
        f"\nReasons of the failures:\n\n{why}\n" if why else ""
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if a test fails that passes plainly and is not listed."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance cpython", description=about)
    parser.add_argument("names", nargs="*", help="files of tests, such as heapq (default: all)")
    parser.add_argument("--way", action="append", default=[], choices=WAYS, help="default: all")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one test (default: 120)")
    parser.add_argument("--docs", type=Path, help="document whose section is written anew")
    parser.add_argument("--json", type=Path, help="file to which rows are added; the section has all in it")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all failures and tracebacks")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("test.test_grammar") is None:
        print("this Python has no tests of its own (Debian, Ubuntu: libpython3-testsuite)", file=sys.stderr)
        return 2
    unknown = {*options.names} - {*FILES}
    if unknown:
        parser.error(f"no such file of tests: {', '.join(sorted(unknown))}")
    rows, new = [], 0
    print(_HEAD, flush=True)
    for name in options.names or FILES:
        if importlib.util.find_spec(f"test.test_{name}") is None and not name.startswith("multiprocessing_"):
            print(f"{name:<22}not in this version of Python", flush=True)
            continue
        for row in _rows(name, options.way or WAYS, options.limit, options.verbose):
            rows.append(row)
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(vars(row)) + "\n")
            listed = known(row.way.partition(" ")[2], KNOWN)
            print(_line(row))
            for test, why in row.once.items():
                print(f"    once: {test}\n        {why}")
            new += len({*row.failed} - {*listed})
            for test, why in [*row.failed.items()][: None if options.verbose else _SHOWN]:
                print(f"    {test}{f' (listed: {listed[test]})' if test in listed else ''}\n        {why}")
            sys.stdout.flush()
    print(f"{sum(row.tests for row in rows)} tests, {new} failures that are not listed")
    if options.docs:
        told = _latest(options.json) if options.json else rows
        write_section(options.docs, "CPython's own tests", _section(told, known("eager", KNOWN)))
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main())
