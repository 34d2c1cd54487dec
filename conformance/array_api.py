"""Run the array API standard's official test-suite against dcarray.

::

    python -m conformance.array_api --suite PATH [--namespace NAME] [--max-examples N] [--all-compiled]
                                    [--json FILE] [--docs docs/conformance.md]

``PATH`` is a checkout of github.com/data-apis/array-api-tests with its submodule; what the suite itself
imports is the extra ``conformance`` of this project.  Both namespaces are tested if none is named.  The
options of dcarray are taken from the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc

from .document import write_section

XFAILS = Path(__file__).with_name("array_api_xfails.txt")
STANDARD = "2025.12"
NAMESPACES = ("dcarray", "dcarray.array_api")  # with NumPy's scalars, and with arrays in their place
COLUMNS = ("passed", "failed", "xfailed", "skipped")
_AS_COLUMN = {"error": "failed", "xpassed": "passed"}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test: its id, kind and message."""

    test: str  # its id
    kind: str  # passed, failed, error, xfailed, xpassed or skipped
    message: str  # the last line of what went wrong


def listed(file: Path = XFAILS) -> list[str]:
    """Return the test ids in a file of known failures."""
    lines = file.read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def run(
    suite: Path,
    max_examples: int = 100,
    all_compiled: bool = False,
    tests: Iterable[str] = (),
    namespace: str = NAMESPACES[0],
) -> list[Outcome]:
    """Run the suite in a separate process, and return the outcome of each test.

    Parameters
    ----------
    suite : Path
        The checkout of array-api-tests.
    max_examples : int
        The number of random examples of each property.
    all_compiled : bool
        Record and compile the operations of small arrays, too.
    tests : iterable of str
        Test ids or files, relative to the checkout; if empty, all tests run.
    namespace : str
        The module that is tested.

    Raises
    ------
    SystemExit
        If the suite cannot be started.
    """
    if not (suite / "array_api_tests").is_dir() or not any((suite / "array-api").glob("src/*")):
        raise SystemExit(f"{suite} is no checkout of array-api-tests with its submodule array-api")
    environment = dict(os.environ, ARRAY_API_TESTS_MODULE=namespace, ARRAY_API_TESTS_VERSION=STANDARD)
    if all_compiled:
        environment |= {"DCARRAY_EAGER_BELOW": "0", "DCARRAY_JIT": "eager"}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable, "-m", "pytest", *(tests or ("array_api_tests",)), "-q", "--tb=line",
            f"--xfails-file={XFAILS}", f"--max-examples={max_examples}", "--derandomize",
            "--disable-deadline", "--json-report", f"--json-report-file={report}",
            "--json-report-omit", "collectors", "keywords", "-p", "no:cacheprovider", "--disable-warnings",
        ]  # fmt: skip
        code = subprocess.run(command, cwd=suite, env=environment).returncode
        if not report.is_file() or code not in (0, 1):
            raise SystemExit(f"pytest ended with status {code}; it needs: pip install -e '.[conformance]'")
        return [_outcome(test) for test in json.loads(report.read_text())["tests"]]


def _outcome(test: dict[str, Any]) -> Outcome:
    message = ""
    for stage in ("setup", "call", "teardown"):
        crash = test.get(stage, {}).get("crash", {})
        message = message or crash.get("message", "").strip().split("\n")[0]
    return Outcome(test["nodeid"], test["outcome"], message if test["outcome"] in ("failed", "error") else "")


def by_module(outcomes: Iterable[Outcome]) -> dict[str, Counter[str]]:
    """Return for each test module the number of outcomes of each kind."""
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        module = Path(outcome.test.partition("::")[0]).stem
        counts.setdefault(module, Counter())[_AS_COLUMN.get(outcome.kind, outcome.kind)] += 1
    return dict(sorted(counts.items()))


def table(counts: dict[str, Counter[str]]) -> str:
    """Return a table of the counts as text."""
    rows = [*counts.items(), ("all", sum(counts.values(), Counter()))]
    lines = [" " * 42 + "".join(f"{column:>9}" for column in COLUMNS)]
    lines += [f"{name:<42}" + "".join(f"{count[column]:>9}" for column in COLUMNS) for name, count in rows]
    return "\n".join(lines)


def _commit(folder: Path) -> str:
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def causes(file: Path = XFAILS) -> dict[str, int]:
    """Return for each reason in a file of known failures the number of tests listed under it."""
    counts: dict[str, int] = {}
    for paragraph in file.read_text(encoding="utf-8").strip().split("\n\n")[1:]:
        lines = paragraph.split("\n")
        said = [line.removeprefix("# ") for line in lines if line.startswith("#")]
        counts[" ".join(said)] = len(lines) - len(said)
    return counts


def _document(given: argparse.Namespace, namespace: str, outcomes: list[Outcome]) -> dict[str, Any]:
    counts = by_module(outcomes)
    return {
        "suite": "array-api-tests",
        "namespace": namespace,
        "commit": _commit(given.suite),
        "standard": STANDARD,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dcarray": dc.__version__,
        "max_examples": given.max_examples,
        "all_compiled": given.all_compiled,
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("DCARRAY_")},
        "known_failures": len(listed()),
        "modules": {name: {c: count[c] for c in COLUMNS} for name, count in counts.items()},
        "failed": {o.test: o.message for o in outcomes if o.kind in ("failed", "error")},
        "xpassed": [o.test for o in outcomes if o.kind == "xpassed"],
    }


_ABOUT = """\
    python -m conformance.array_api --suite PATH [--namespace NAME] [--all-compiled] [--json FILE]
                                    [--docs docs/conformance.md]

runs the official tests of the array API standard {standard} from a checkout of data-apis/array-api-tests
(`pip install -e '.[conformance]'` has what they import) and wrote this section.  Two namespaces are tested:
`dcarray`, which gives NumPy's scalars where NumPy does, and `dcarray.array_api`, whose results stay arrays
and which `x.__array_namespace__()` gives.  *Known* failures are those of `conformance/array_api_xfails.txt`,
each of which NumPy's own list has too; the file may only shrink.  The command fails on any other failure.
"""


def _section(runs: list[dict[str, Any]]) -> str:
    """Return the document's section: a table with the counts of each namespace, and the known failures."""
    first = runs[0]
    compiled = ", every call recorded and compiled" if first["all_compiled"] else ""
    where = (
        f"array-api-tests {first['commit'][:7]}, "
        f"{first['max_examples']} examples of each property{compiled}, "
        f"NumPy {first['numpy']}, Python {first['python']}"
    )
    heads = [
        f"`{run['namespace']}` {column}"
        for run in runs
        for column in ("passed", "failed", "known", "skipped")
    ]
    rows = ["| tests | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    names = [*first["modules"], "all"]
    for run in runs:
        run["modules"]["all"] = {c: sum(count[c] for count in run["modules"].values()) for c in COLUMNS}
    for name in names:
        counts = [f"{run['modules'][name][c]:,}" for run in runs for c in COLUMNS]
        rows.append(f"| {name.removeprefix('test_')} | " + " | ".join(counts) + " |")
    why = [f"* {count} x {reason}" for reason, count in causes().items()]
    about = _ABOUT.format(standard=first["standard"])
    return "\n".join([about, *rows, "", where + ".", "", "The known failures:", "", *why])


def main(arguments: list[str] | None = None) -> int:
    """Run the suite, print tables, write JSON and document; return exit status 1 if a test failed, else 0."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance.array_api", description=about)
    parser.add_argument("--suite", type=Path, required=True, help="checkout of data-apis/array-api-tests")
    parser.add_argument("--max-examples", type=int, default=100, help="of each property (default 100)")
    parser.add_argument("--json", type=Path, help="file for the outcomes, a list")
    parser.add_argument("--docs", type=Path, help="document whose section on the standard is written anew")
    parser.add_argument("--all-compiled", action="store_true", help="small arrays are compiled too")
    parser.add_argument("--namespace", choices=NAMESPACES, help="what is tested (default: both)")
    parser.add_argument("tests", nargs="*", help="ids or files in the checkout (default: all)")
    given = parser.parse_args(arguments)
    if given.docs and (given.tests or given.namespace):
        parser.error("--docs is for all tests and both namespaces")
    runs = []
    for namespace in (given.namespace,) if given.namespace else NAMESPACES:
        outcomes = run(given.suite, given.max_examples, given.all_compiled, given.tests, namespace)
        runs.append(_document(given, namespace, outcomes))
        print(f"\narray API standard {STANDARD}, array-api-tests {_commit(given.suite)[:7]}, "
              f"{namespace} {dc.__version__}, NumPy {np.__version__}, {given.max_examples} examples"
              f"{', all compiled' if given.all_compiled else ''}")  # fmt: skip
        print(table(by_module(outcomes)))
        if runs[-1]["xpassed"]:
            print("\nknown failures that passed with these examples:", *runs[-1]["xpassed"], sep="\n  ")
        gone = [] if given.tests else sorted({*listed()} - {outcome.test for outcome in outcomes})
        if gone:
            print("\nknown failures that the suite does not have:", *gone, sep="\n  ")
    if given.json:
        given.json.write_text(json.dumps(runs, indent=1) + "\n")
    if given.docs:
        write_section(given.docs, "The array API standard", _section(runs))
    return int(any(one["failed"] for one in runs))


if __name__ == "__main__":
    raise SystemExit(main())
