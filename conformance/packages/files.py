"""Runs the tests of a large package under ``python -m dcarray run``: ``python -m conformance.packages.files
NAME``.

The package and its tests get sites, and arrays stay NumPy's.  Some files of one folder share a process, which
runs twice, and all processes share one cache folder.  Then tests that fail, or take long, run as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from conformance.document import write_section

from .catalogue import LARGE, Package, package_of
from .environments import CannotRun, Environment, environment_of
from .suites import Outcomes, run_tests

__all__ = ["main", "rows"]

_WAYS = "first", "again"
_LONG = 5.0  # seconds of processor time
_MOST = 60  # tests that are printed


def rows(
    package: Package, environment: Environment, files: list[str], timeout: int, limit: float, together: int
) -> Iterator[tuple[str, int, dict[str, str], list[float]]]:
    """Run test files, and yield for each its name, the number of tests that pass, the errors of tests that
    pass only as they are, or the times of those that take three times as long in the second run, and the
    seconds of processor time of its tests in each run.

    Parameters
    ----------
    package : Package
    environment : Environment
    files : list of str
        Relative to the environment's packages.
    timeout, limit : float
        Seconds for a test, and for a file.
    together : int
        How many files share a process, at most.
    """
    root = environment.site_packages
    options = (*package.options, "--assert=plain")  # pytest's own importer would come before dcarray's
    runner = ("-m", "dcarray", "run", "--also", environment.module)

    def outcomes(group: list[str], words: tuple[str, ...] = (), only: Iterable[str] = ()) -> Outcomes:
        modules = [file.removesuffix(".py").replace("/", ".") for file in group]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as chosen:
            json.dump([*(only or group)], chosen)
            chosen.flush()
            more = (*options, f"--only={chosen.name}")
            try:
                found = run_tests(
                    environment.python, root, modules, [], more, timeout, words, limit * len(group)
                )
            except CannotRun as error:
                found = Outcomes(messages={"": str(error)})
        if len(group) > 1 and words and (not found.found or "running" in found.found.values()):
            for alone in [outcomes([file], words) for file in group]:  # where did it end?
                found.found |= alone.found
                found.messages |= alone.messages
                found.times |= alone.times
        return found

    for _, same in groupby(files, os.path.dirname):
        folder = [*same]
        for group in (folder[k : k + together] for k in range(0, len(folder), together)):
            runs = outcomes(group, runner), outcomes(group, runner)
            asked = {file for file in group if not all(_of(file, run.found) for run in runs)}
            for run, other in (runs, runs[::-1]):
                asked |= run.found.keys() - other.found.keys()
                asked |= {test for test, how in run.found.items() if how in ("failed", "no import")}
                asked |= {test.partition("::")[0] for test, how in run.found.items() if how == "running"}
                asked |= {test for test, seconds in run.times.items() if seconds > _LONG}
            again = [file for file in group if any(one.partition("::")[0] == file for one in asked)]
            plain = outcomes(again, (), asked) if asked else Outcomes()
            differing = {}
            for test in [test for test, how in plain.found.items() if how == "passed"]:
                for way, run in zip(_WAYS, runs, strict=True):
                    if run.found.get(test) not in ("passed", "xpassed"):
                        why = run.messages.get(test) or run.messages.get("") or "it was not run"
                        differing[f"{way} {test}"] = why.splitlines()[0][:200]
                    elif run is runs[1] and run.times[test] > 3 * plain.times[test] + 1:
                        differing[f"{way} {test}"] = f"{run.times[test]:.1f} s for {plain.times[test]:.1f}"
            whole = outcomes(group).found if differing else {}  # do they pass beside other tests?
            for file in group:
                passed = sum(how == "passed" for how in _of(file, runs[0].found).values())
                mine = {
                    name: why
                    for name, why in differing.items()
                    if f" {file}::" in name and whole.get(name.split(" ", 1)[1]) == "passed"
                }
                yield file, passed, mine, [sum(_of(file, run.times).values()) for run in runs]


def _of(file: str, tests: dict[str, Any]) -> dict[str, Any]:
    return {test: one for test, one in tests.items() if test.startswith(file)}


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 1 if a test differs."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.packages.files", description="Test files of a package, accelerated."
    )
    parser.add_argument("name", help=f"the package: {', '.join(one.name for one in LARGE)} or another")
    parser.add_argument("words", nargs="*", help="only files whose path holds one of these words")
    parser.add_argument("--together", type=int, default=8, help="files that share a process")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add rows to FILE; skip files that it has")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of FILE")
    chosen = parser.parse_args(arguments)
    package = package_of(chosen.name)
    environment = environment_of(package)
    root = environment.site_packages
    found = sorted(
        str(file.relative_to(root)) for file in (root / environment.module).rglob("tests/**/test_*.py")
    )
    files = [*dict.fromkeys(one for word in chosen.words or [""] for one in found if word in one)]
    done: dict[str, Any] = {}
    if chosen.json is not None and chosen.json.exists():
        done = {line[0]: line[1:] for line in map(json.loads, chosen.json.read_text().splitlines())}
        files = [one for one in files if one not in done]
    cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    os.environ["DCARRAY_CACHE_DIR"] = cache.name
    ran = rows(package, environment, files, chosen.timeout, chosen.limit, chosen.together)
    for k, row in enumerate(ran, 1):
        file, passed, differing, seconds = row
        done[file] = row[1:]
        if chosen.json is not None:
            with chosen.json.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        print(
            f"{k}/{len(files)} {file}: {passed} pass, {' '.join(f'{s:.1f}' for s in seconds)} s", flush=True
        )
        print("".join(f"    {name}\n        {why}\n" for name, why in [*differing.items()][:_MOST]), end="")
    tests = sum(row[0] for row in done.values())
    different = {test: why for row in done.values() for test, why in row[1].items()}
    text = (
        f"{package.name} {environment.version}: {len(done)} of its {len(found)} test files, {tests:,} tests"
        f" pass accelerated; {len(different)} differ from how they are in a first or a second run.\n"
    )
    lines = [text, *(f"* {name}: {why}" for name, why in [*different.items()][:_MOST])]
    print("\n" + "\n".join(lines))
    if chosen.docs is not None:
        write_section(chosen.docs, f"{package.name}'s own tests under `dcarray run`", "\n".join(lines))
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
