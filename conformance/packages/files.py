"""Runs the tests of a large package file by file under ``python -m dcarray run``: ``python -m
conformance.packages.files NAME``.

The package and its tests get sites, arrays stay NumPy's, and each file runs three times: as it is,
accelerated, and accelerated again.  All files share one cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.document import write_section

from .catalogue import LARGE, Package, package_of
from .environments import CannotRun, Environment, environment_of
from .suites import Outcomes, run_tests

__all__ = ["main", "rows"]

_WAYS = "first", "again"
_TIMES = "as they are", "accelerated", "accelerated again"
_MOST = 60  # tests that are printed


def rows(
    package: Package, environment: Environment, files: list[str], timeout: int, limit: float
) -> Iterator[tuple[str, int, dict[str, str], list[float]]]:
    """Run test files, and yield for each its name, the number of tests that pass as they are, the errors of
    those of them that do not pass accelerated, and the seconds of each run.

    Parameters
    ----------
    package : Package
    environment : Environment
    files : list of str
        Relative to the environment's packages.
    timeout, limit : float
        Seconds for a test, and for a file as it is; accelerated files have three times as many.
    """
    root = environment.site_packages
    options = (*package.options, "--assert=plain")  # pytest's own importer would come before dcarray's
    runner = ("-m", "dcarray", "run", "--also", environment.module)

    def outcomes(file: str, words: tuple[str, ...], most: float) -> Outcomes:
        target = file.removesuffix(".py").replace("/", ".")
        try:
            return run_tests(environment.python, root, [target], [], options, timeout, words, most)
        except CannotRun as error:
            return Outcomes(messages={"": str(error)})

    for file in files:
        plain = outcomes(file, (), limit)
        passed = [test for test, outcome in plain.found.items() if outcome == "passed"]
        differing: dict[str, str] = {}
        seconds = [plain.seconds]
        for way in _WAYS if passed else ():
            ours = outcomes(file, runner, 3 * limit)
            seconds.append(ours.seconds)
            for test in passed:
                if ours.found.get(test) not in ("passed", "xpassed"):
                    why = ours.messages.get(test) or ours.messages.get("") or "it was not run"
                    differing[f"{way} {test}"] = why.splitlines()[0][:200]
        if differing:  # is it steady?
            again = outcomes(file, (), limit)
            differing = {
                name: why
                for name, why in differing.items()
                if again.found.get(name.partition(" ")[2]) == "passed"
            }
        yield file, len(passed), differing, seconds


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 1 if a test differs."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.packages.files", description="Test files of a package, accelerated."
    )
    parser.add_argument("name", help=f"the package: {', '.join(one.name for one in LARGE)} or another")
    parser.add_argument("words", nargs="*", help="only files whose path holds one of these words")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="only the k-th of n shares")
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
    number, of = map(int, chosen.share.split("/"))
    files = [one for one in found if not chosen.words or any(word in one for word in chosen.words)]
    files = files[number - 1 :: of]
    done: dict[str, Any] = {}
    if chosen.json is not None and chosen.json.exists():
        done = {line[0]: line[1:] for line in map(json.loads, chosen.json.read_text().splitlines())}
        files = [one for one in files if one not in done]
    cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    os.environ["DCARRAY_CACHE_DIR"] = cache.name
    for k, row in enumerate(rows(package, environment, files, chosen.timeout, chosen.limit), 1):
        file, passed, differing, seconds = row
        done[file] = row[1:]
        if chosen.json is not None:
            with chosen.json.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        print(
            f"{k}/{len(files)} {file}: {passed} pass, {' '.join(f'{s:.1f}' for s in seconds)} s", flush=True
        )
        print("".join(f"    {name}\n        {why}\n" for name, why in [*differing.items()][:_MOST]), end="")
    tests = sum(passed for passed, _, _ in done.values())
    different = {test: why for _, differing, _ in done.values() for test, why in differing.items()}
    total = [sum(times) for times in zip(*(s for _, _, s in done.values() if len(s) == 3), strict=True)]
    text = (
        f"{package.name} {environment.version}: {len(done)} of its {len(found)} test files, {tests:,} tests"
        f" pass as they are, {len(different)} of these differ accelerated (in a first or in a second run)."
        f"  Seconds: {', '.join(f'{s:.0f} {how}' for s, how in zip(total, _TIMES, strict=False))}.\n"
    )
    lines = [text, *(f"* {name}: {why}" for name, why in [*different.items()][:_MOST])]
    print("\n" + "\n".join(lines))
    if chosen.docs is not None:
        write_section(chosen.docs, f"{package.name}'s own tests under `dcarray run`", "\n".join(lines))
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
