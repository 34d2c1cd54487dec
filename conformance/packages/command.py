"""The command ``python -m conformance.packages``, its table, and its document."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import dcarray as dc
from conformance.known import known

from .catalogue import PACKAGES, package_of
from .environments import CannotRun, environment_of
from .suites import Result, compare

__all__ = ["KNOWN", "RESULTS", "document", "main", "table"]

KNOWN = Path(__file__).with_name("known.txt")
RESULTS = Path(__file__).with_name("results.json")
_NEW = "not looked into yet"
_LONGEST = 60  # tests that are printed
_HEAD = """\
# Whole packages

`dc.accelerate` is applied to all modules of a package, and the package's own tests run twice: with plain
NumPy, and accelerated.  The packages are not changed for this.  `python -m conformance.packages NAME...
--docs docs/packages.md` writes this page.  It installs each package from PyPI in an environment of its own.
With `--tests-too` the tests are accelerated, too.  Any package that contains its tests can be named."""


def _cause(result: Result, test: str, listed: Mapping[str, str]) -> str:
    return listed.get(f"{result.name}/{test}", _NEW)


def table(results: Iterable[Result], listed: Mapping[str, str]) -> str:
    """Return text with a table of the counts, and each test that differs with its cause."""
    lines = [
        f"{'package':<18}{'version':>10}{'tests':>8}{'NumPy':>8}{'dcarray':>9}{'of these':>10}{'seconds':>14}"
    ]
    details: list[str] = []
    more = 0
    for r in results:
        share, (plain, ours) = 100 * r.kept / r.passed, r.seconds
        lines.append(
            f"{r.name:<18}{r.version:>10}{r.tests:>8}{r.passed:>8}{r.kept:>9}{share:>9.2f}%{plain:>7.0f}{ours:>7.0f}"
        )
        for test, message in r.differing.items():
            cause = _cause(r, test, listed)
            if len(details) >= 2 * _LONGEST:
                more += 1
                continue
            what = f"{cause}: {message.partition(chr(10))[0][:160]}" if cause == _NEW else cause
            details += [f"{r.name}/{test}", f"    {what}"]
    if more:
        details.append(f"and {more} more")
    return "\n".join([*lines, *([""] if details else []), *details])


def document(results: Iterable[Result], listed: Mapping[str, str], where: str) -> str:
    """Return the document's page on packages, in Markdown."""
    lines = [
        _HEAD, "", where, "",
        "| package | version | tests | pass with NumPy | of these, pass accelerated | share |",
        "|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    results = sorted(results, key=lambda r: r.name.lower())
    for r in results:
        counts = f"{r.tests:,} | {r.passed:,} | {r.kept:,} | {100 * r.kept / r.passed:.2f}%"
        lines.append(f"| {r.name} | {r.version} | {counts} |")
    passed, kept = sum(r.passed for r in results), sum(r.kept for r in results)
    run, share = sum(r.tests for r in results), 100 * kept / passed
    lines.append(f"| all | | {run:,} | {passed:,} | {kept:,} | {share:.2f}% |")
    by_cause: dict[str, list[str]] = {}
    for r in results:
        for test in r.differing:
            by_cause.setdefault(_cause(r, test, listed), []).append(f"{r.name}: `{test}`")
    lines += ["", "## Tests that pass with NumPy only, by cause", ""] if by_cause else []
    for cause, tests in sorted(by_cause.items(), key=lambda item: -len(item[1])):
        lines += [f"**{cause}** ({len(tests)})", "", *(f"* {test}" for test in tests), ""]
    return "\n".join(lines).rstrip() + "\n"


def _stored() -> dict[str, Result]:
    """Return the stored results of earlier runs, by package."""
    if not RESULTS.exists():
        return {}
    found = json.loads(RESULTS.read_text())["packages"]
    return {r["name"]: Result(**{**r, "seconds": tuple(r["seconds"])}) for r in found}


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status.

    Returns
    -------
    int
        0 if every test that differs is listed with its cause, and all packages could be tested; else 1.
    """
    names = ", ".join(package.name for package in PACKAGES)
    parser = argparse.ArgumentParser(
        prog="python -m conformance.packages",
        description="Accelerate whole packages and run their own tests, with plain NumPy and with dcarray.",
        epilog=f"Known are {names}; any other is looked for on PyPI.",
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="package, as PyPI or `import` has it; or all"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="PATH", help="document to write, with results of earlier runs"
    )
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one test")
    parser.add_argument("--tests-too", action="store_true", help="accelerate the tests as well")
    options = parser.parse_args(arguments)
    if options.docs and options.tests_too:
        parser.error("the document is about packages whose tests are as they are")
    wanted = PACKAGES if options.names == ["all"] else [package_of(name) for name in options.names]
    listed = known("defaults", KNOWN)
    results, refused = [], []
    for package in wanted:
        try:
            results.append(compare(package, environment_of(package), options.timeout, options.tests_too))
            print(table(results[-1:], listed), flush=True)
        except CannotRun as error:
            refused.append(str(error))
            print(error, flush=True)
    if len(results) > 1:
        print("\n" + table(results, {}).partition("\n\n")[0])
    if options.docs and results:
        every = _stored() | {r.name: r for r in results}
        where = f"Python {sys.version.split()[0]}, NumPy {version('numpy')}, dcarray {dc.__version__}."
        RESULTS.write_text(json.dumps({"packages": [asdict(r) for r in every.values()]}, indent=1) + "\n")
        options.docs.write_text(document(every.values(), listed, where))
    new = [test for r in results for test in r.differing if _cause(r, test, listed) == _NEW]
    if refused or new:
        print(
            f"\n{len(new)} tests differ without a cause in {KNOWN.name}; {len(refused)} packages not tested"
        )
    return int(bool(refused or new))
