"""Tests third-party libraries with dcarray's arrays: ``python -m conformance.libraries``.

If a library's tests are parametrised by array backends, they run with dcarray as a further backend
(`conformance.libraries_plugin`), from the installed wheel, each part in a separate process.  Failures must be
listed in ``libraries_known.txt`` with causes, and listed tests must fail.  The project's extra ``libraries``
has them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dcarray as dc

from .document import write_section
from .known import causes, known
from .numpy_suite import MODES

__all__ = ["KNOWN", "PARTS", "Result", "main", "missing", "run", "table"]

KNOWN = Path(__file__).with_name("libraries_known.txt")
_SCIPY = "special stats signal fft linalg ndimage optimize integrate cluster interpolate"
_OPT_EINSUM = "backends blas contract edge_cases input sharing"
# Library, part, and the packages or modules whose tests make the part.
PARTS: dict[str, dict[str, list[str]]] = {
    "scipy": {name: [f"scipy.{name}"] for name in _SCIPY.split()},
    "scipy-usual": {name: [f"scipy.{name}"] for name in _SCIPY.split()},  # without SCIPY_ARRAY_API
    "scipy-accelerated": {"ndimage": ["scipy.ndimage"]},  # so too, with `dc.accelerate`
    "scikit-learn": {"": ["sklearn"]},
    "xarray": {"": ["xarray.tests.test_array_api", "xarray.tests.test_duck_array_wrapping"]},
    "array-api-compat": {"": ["array_api_compat.tests"]},
    "array-api-extra": {"": ["array_api_extra.tests.main"]},
    "opt_einsum": {"": [f"opt_einsum.tests.test_{name}" for name in _OPT_EINSUM.split()]},
}  # fmt: skip
_WARNINGS = {
    "array-api-extra": "error::DeprecationWarning"
}  # as its tests want them; otherwise they do not matter here
_WAYS = {"scipy-usual": "usual ", "scipy-accelerated": "accelerated "}  # of the same tests: before their ids
_MENTIONING = {"scikit-learn": "yield_namespace"}  # of a large suite, the modules with this word are enough


@dataclass
class Result:
    """The outcome of one part of a library."""

    library: str
    part: str
    version: str
    passed: int = 0
    # For each failed test id, the first line of the error.
    failures: dict[str, str] = field(default_factory=dict)
    # For each reason, how many tests the library skips with a backend like dcarray.
    skipped: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)  # all tests that were run

    @property
    def name(self) -> str:
        """The name of the part, such as ``scipy.fft``."""
        return f"{self.library}.{self.part}" if self.part else self.library


def _distribution(library: str) -> str:
    return "scipy" if library in _WAYS else library


def missing(library: str) -> str:
    """Return the package that must be installed for a library's tests, or "" if none is missing."""
    for name in (_distribution(library), "pytest", "pytest-json-report", "pytest-timeout"):
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return name
    return ""


def _modules(library: str, names: Iterable[str]) -> list[str]:
    """Return test modules and packages in the form of pytest's ``--pyargs``."""
    word = _MENTIONING.get(library)
    if word is None:
        return list(names)
    found = []
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        top = Path(spec.origin).parent
        for path in sorted(top.rglob("test_*.py")):
            if word in path.read_text(encoding="utf-8"):
                found.append(".".join(path.relative_to(top.parent).with_suffix("").parts))
    return found


def _own_tests(result: Result, names: list[str], mode: str, timeout: int) -> None:
    """Run a library's own tests in a separate process, and add the outcomes to ``result``."""
    prefix = _WAYS.get(result.library, "")
    packages = str(importlib.metadata.distribution(_distribution(result.library)).locate_file(""))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", packages, "-qq", "--no-header",
            "-p", "conformance.libraries_plugin", "--backend-for", result.library, "-p", "no:cacheprovider",
            "-W", _WARNINGS.get(result.library, "ignore"), "--tb=short", f"--timeout={timeout}",
            "--json-report", f"--json-report-file={report}", "--json-report-omit", "collectors", "keywords",
            "--pyargs", *_modules(result.library, names),
        ]  # fmt: skip
        environment = {**os.environ, **MODES[mode], "SCIPY_ARRAY_API": "1"}
        if prefix:
            del environment["SCIPY_ARRAY_API"]
        root = str(Path(__file__).parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        if not report.exists() or done.returncode not in (0, 1):
            raise SystemExit(f"{result.name} ended without a result:\n{(done.stdout + done.stderr)[-3000:]}")
        tests = json.loads(report.read_text())["tests"]
    skipped: Counter[str] = Counter()
    for test in tests:
        kind, text = test["outcome"], ""
        for stage in ("setup", "call", "teardown"):
            found = test.get(stage, {})
            text = text or found.get("crash", {}).get("message", "")
            if found.get("outcome") == kind == "skipped":
                skipped[found.get("longrepr", "").partition("Skipped: ")[2].rstrip("')\"")] += 1
        if kind in ("failed", "error"):
            result.failures[prefix + test["nodeid"]] = text.strip().partition("\n")[0][:300]
        result.passed += kind in ("passed", "xpassed")
        result.seen.add(prefix + test["nodeid"])
    result.skipped = dict(skipped.most_common())


def run(library: str, part: str = "", mode: str = "defaults", timeout: int = 300) -> Result:
    """Run one part of a library's tests, and return the result.

    Parameters
    ----------
    library, part : str
        Keys of `PARTS`.
    mode : str
        A set of dcarray's options: a key of `conformance.numpy_suite.MODES`.
    timeout : int
        The time limit of one test, in seconds.
    """
    result = Result(library, part, importlib.metadata.version(_distribution(library)))
    _own_tests(result, PARTS[library][part], mode, timeout)
    return result


def table(results: Iterable[Result], listed: Mapping[str, str]) -> str:
    """Return a table of the counts; ``left out`` counts tests that the library skips with such a backend."""
    lines = [f"{'library':<26}{'version':>10}{'tests':>8}{'passed':>8}{'failed':>8}{'left out':>10}  causes"]
    results = list(results)
    for r in results:
        causes = Counter(listed.get(test, "NEW").partition(":")[0] for test in r.failures)
        why = ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
        left = sum(r.skipped.values())
        lines.append(
            f"{r.name:<26}{r.version:>10}{r.passed + len(r.failures):>8}{r.passed:>8}{len(r.failures):>8}"
            f"{left:>10}  {why}".rstrip()
        )
    passed, failed = sum(r.passed for r in results), sum(len(r.failures) for r in results)
    left = sum(sum(r.skipped.values()) for r in results)
    lines.append(f"{'all':<36}{passed + failed:>8}{passed:>8}{failed:>8}{left:>10}")
    return "\n".join(lines)


def _chosen(names: Iterable[str]) -> list[tuple[str, str]]:
    every = {
        (f"{lib}.{part}" if part else lib): (lib, part) for lib, parts in PARTS.items() for part in parts
    }
    chosen = [key for name in names for key in every if name in (key, every[key][0])] if names else [*every]
    if not chosen:
        raise SystemExit("no such library: must be some of\n  " + "\n  ".join(every))
    return [every[key] for key in chosen]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status.

    Returns
    -------
    int
        0 if the failures are exactly the listed ones, else 1.
    """
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance.libraries", description=about)
    parser.add_argument("--library", nargs="+", default=[], help="such as scipy, scipy.fft or xarray")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--docs", type=Path, help="document whose section on libraries is written anew")
    parser.add_argument("--mode", choices=MODES, default="defaults")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one test")
    parser.add_argument("--list", action="store_true", help="print each failure with its cause")
    options = parser.parse_args(arguments)
    if options.docs and options.library:
        parser.error("--docs is for all libraries")
    chosen = _chosen(options.library)
    absent = sorted({name for library, _ in chosen if (name := missing(library))})
    if absent:
        raise SystemExit(f"not installed: {', '.join(absent)} (pip install -e '.[libraries]')")
    listed = known(options.mode, KNOWN)
    results: list[Result] = []
    for library, part in chosen:
        results.append(run(library, part, options.mode, options.timeout))
        print(table(results[-1:], listed).splitlines()[1], flush=True)
        if options.list:
            for test, message in results[-1].failures.items():
                print(f"    ({listed.get(test, 'NEW')}) {test}\n        {message}")
    print("\n" + table(results, listed))
    if options.json:
        options.json.write_text(json.dumps(_document(results, listed, options.mode), indent=1) + "\n")
    if options.docs:
        write_section(options.docs, "Libraries", _section(results, listed, options.mode))
    failed = {test for r in results for test in r.failures}
    seen = {test for r in results for test in r.seen} if options.library else {*listed}
    new, gone = sorted(failed - {*listed}), sorted(({*listed} & seen) - failed)
    for title, tests in (("failures that are not listed", new), ("listed, but passing", gone)):
        if tests:
            print(f"\n{title}:\n  " + "\n  ".join(tests))
    return int(bool(new or gone))


_ABOUT = """\
`python -m conformance.libraries --docs docs/conformance.md` (needs `pip install -e '.[libraries]'`) wrote
this section.  The libraries are as they were installed.  Where their own tests take backends, dcarray is one
more, through `x.__array_namespace__()` and a pytest plugin; for opt_einsum, `np` in its tests is dcarray.
`scipy-usual` is SciPy without `SCIPY_ARRAY_API`, as most people use it: the same tests, with our namespace
under NumPy's name.  `scipy-accelerated` is that once more, with `dc.accelerate` of the two modules of
`scipy.ndimage` that ask most often whether an `output` is a `numpy.ndarray`.  *Left out* are tests that a
library does not run with backends other than those it lists.  The command fails on a failure that is not
listed, with its cause, in `conformance/libraries_known.txt`, and on an entry that passes.

With `SCIPY_ARRAY_API=1` SciPy refuses arrays of two namespaces in one call, and so plain arrays, or NumPy's
scalars such as `x[0]`, beside wrapped ones; arrays that `x.__array_namespace__()` makes give no scalars.
"""


def _section(results: list[Result], listed: Mapping[str, str], mode: str) -> str:
    """Return the document's section: the table and the causes of the failures."""
    python, numpy = sys.version.split()[0], importlib.metadata.version("numpy")
    where = f"Python {python}, NumPy {numpy}, dcarray {dc.__version__}, mode `{mode}`"
    why = causes((test for r in results for test in r.failures), listed)
    return f"{_ABOUT}\n{where}\n\n```\n{table(results, listed)}\n```\n\nCauses of the failures:\n\n{why}"


def _document(results: Iterable[Result], listed: Mapping[str, str], mode: str) -> dict[str, Any]:
    return {
        "mode": mode,
        "python": sys.version.split()[0],
        "numpy": importlib.metadata.version("numpy"),
        "results": [
            {**asdict(r), "seen": len(r.seen), "causes": {test: listed.get(test, "") for test in r.failures}}
            for r in results
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
