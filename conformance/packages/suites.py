"""Runs a package's own tests with plain NumPy and accelerated, in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .catalogue import Package
from .environments import ROOT, CannotRun, Environment

__all__ = ["Outcomes", "Result", "compare", "run_tests"]


@dataclass
class Outcomes:
    """The outcomes of the tests of one run.

    Attributes
    ----------
    found : dict
        The outcome for each test id: ``passed``, ``failed``, ``skipped``, ``xfailed``, ``xpassed``,
        ``running`` if the test ended the process, or ``no import`` if a module could not be imported.
    messages : dict
        The error of each test that did not pass.
    times : dict
        The seconds of processor time of each test.
    seconds : float
    """

    found: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, outcome: str) -> int:
        """Return how many tests have an outcome."""
        return list(self.found.values()).count(outcome)


@dataclass
class Result:
    """The results of a package's tests with plain NumPy and accelerated."""

    name: str
    version: str
    tests: int  # how many tests ran with plain NumPy, without skipped ones
    passed: int  # how many passed with plain NumPy
    kept: int  # how many of those passed accelerated, too
    differing: dict[str, str]  # for each test that passed with plain NumPy only, the error
    seconds: tuple[float, float]  # the time of all tests, with plain NumPy and accelerated


def run_tests(
    python: Path,
    root: Path,
    targets: list[str],
    accelerated: list[Path],
    options: tuple[str, ...],
    timeout: int,
    runner: tuple[str, ...] = (),
    limit: float | None = None,
) -> Outcomes:
    """Run tests in a separate process, and return the outcomes.

    Parameters
    ----------
    python : Path
        The interpreter.
    root : Path
        The folder that test ids are relative to.
    targets : list of str
        Modules, or folders.
    accelerated : list of Path
        Folders whose modules are accelerated.
    options : tuple of str
        More options of pytest, and of the plugin.
    timeout : int
        Seconds for one test.
    runner : tuple of str
        The interpreter's words before ``-m pytest``.
    limit : float, optional
        Seconds for all.

    Raises
    ------
    CannotRun
        If pytest ends before any test has run.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outcomes.jsonl")
        command = [
            str(python), *runner, "-m", "pytest", "-c", os.devnull, "--rootdir", str(root), "-qq",
            "--no-header",
            "--tb=short", "--disable-warnings", "-p", "no:cacheprovider", "-p", "conformance.packages.plugin",
            f"--outcomes={file}", f"--timeout={timeout}", *(f"--accelerated={f}" for f in accelerated),
            "--continue-on-collection-errors", *options, "--pyargs", *targets,
        ]  # fmt: skip
        paths = [str(python.parent), os.environ.get("PATH", "")]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(paths),
            "MPLBACKEND": "Agg",
            "PYTHONPATH": str(ROOT),
        }
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, env=environment, cwd=folder, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(command, -9, "", f"no end within {limit:g} s")
        outcomes = Outcomes(seconds=time.perf_counter() - start)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for test, outcome, message, seconds in map(json.loads, lines):
        outcomes.found[test], outcomes.times[test] = outcome, seconds
        if outcome == "running":
            outcomes.messages[test] = f"it ended the process (exit status {done.returncode})"
        elif outcome in ("failed", "no import"):
            outcomes.messages[test] = message
        else:
            outcomes.messages.pop(test, None)
    if set(outcomes.found.values()) <= {"no import"}:
        said = [*outcomes.messages.values(), f"{done.stdout}{done.stderr}".strip(), "no test was found"]
        raise CannotRun(next(filter(None, said)).splitlines()[-1])
    return outcomes


def compare(
    package: Package, environment: Environment, timeout: int = 300, tests_too: bool = False
) -> Result:
    """Run a package's tests with plain NumPy, and again accelerated (its tests, too, if ``tests_too``).

    Raises
    ------
    CannotRun
        If its tests do not run with plain NumPy.
    """
    root, folders = environment.site_packages, [environment.site_packages / environment.module]
    targets = list(package.tests) or [environment.module]
    try:
        plain = run_tests(environment.python, root, targets, [], package.options, timeout)
    except CannotRun as error:
        raise CannotRun(f"the tests of {package.name} do not run with plain NumPy: {error}") from None
    passed = [test for test, outcome in plain.found.items() if outcome == "passed"]
    if not passed:
        raise CannotRun(
            f"no test of {package.name} passes with plain NumPy: {next(iter(plain.messages.values()), '')}"
        )
    try:
        options = (*package.options, *(["--tests-too"] if tests_too else []))
        ours = run_tests(environment.python, root, targets, folders, options, timeout)
    except CannotRun as error:
        ours = Outcomes(messages=dict.fromkeys(passed, str(error)))
    differing = {
        test: ours.messages.get(test) or ours.found.get(test) or "it was not run"
        for test in passed
        if ours.found.get(test) not in ("passed", "xpassed")
    }
    return Result(
        package.name,
        environment.version,
        sum(plain.count(outcome) for outcome in ("passed", "failed", "xfailed", "xpassed", "running")),
        len(passed),
        len(passed) - len(differing),
        differing,
        (plain.seconds, ours.seconds),
    )
