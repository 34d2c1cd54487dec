"""``make test-python``: the tests of arrays, accelerated code and packaging on several versions of Python.

``python -m conformance.release.versions 3.12 3.14/no-compiler`` makes a copy of the sources and a virtual
environment for each, below ``out/pythons``, with the newest NumPy, and runs tests there.  Versions that are
not available are printed; the command fails if none is available.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time

from .interpreters import OUT, ROOT, Interpreter, Missing, copy_of_the_sources, find

TESTS = (
    "tests/test_packaging.py",
    "tests/ir/test_interp.py",
    *(
        f"tests/dcarray/test_{name}.py"
        for name in (
            "functions_creation", "functions_differences", "functions_elementwise", "functions_fallback",
            "functions_joining", "functions_linalg", "functions_reductions", "functions_views",
            "native_module", "native_functions", "native_differential", "fast_path", "buffers",
            "ctypes_compat", "held_memory", "like_ndarray", "fp_state", "background", "plan_server",
            "accelerate", "runner", "cores", "peak_memory", "c_module_reason", "guarantees",
        )
    ),
    *(
        f"tests/jit/test_{name}.py"
        for name in (
            "python_semantics", "comprehension_loops", "comprehensions", "decorated_functions",
            "exceptions_in_loops", "function_rewriting", "global_names", "inner_functions", "iterables",
            "loop_sites", "module_sites", "python_functions", "runs_of_statements", "sampler", "scalar_types",
            "complex_numbers", "short_runs", "object_runs", "number_lists",
        )
    ),
)  # fmt: skip
"""Where versions of Python differ: buffers, references, tracebacks, source and code objects, numbers."""

OPTIONAL = ("scipy>=1.13", "h5py>=3.10", "matplotlib>=3.8")
"""Installed where they have wheels; without them some tests are skipped."""


def main() -> int:
    """Run the tests on each version; return 1 if a test failed or nothing was run, else 0."""
    parser = argparse.ArgumentParser(prog="python -m conformance.release.versions", description=__doc__)
    parser.add_argument(
        "versions", nargs="+", help="3.13, the path of a Python, or either with /no-compiler or /no-proc"
    )
    parser.add_argument("--tests", action="append", help="a file of tests, once or more (default: some 45)")
    parser.add_argument("--numpy", default="numpy", help="what pip is asked for (default: the newest)")
    parser.add_argument("--index", help="a further index, from which newer development versions are taken")
    parser.add_argument("--cases", default="0/4", help="of tests with several cases only some (0/1: all)")
    parser.add_argument("--workers", default="2", help="processes that run tests (default: 2)")
    args = parser.parse_args()
    rows, good = [], []
    for wanted in args.versions:
        print(f"== Python {wanted}", flush=True)
        try:
            row, passed = _test(find(wanted), args)
        except Missing as reason:
            row, passed = f"not run: {reason}", None
        except subprocess.CalledProcessError as error:
            row, passed = f"failed before the tests: {error}", False
        rows.append(f"{wanted:<18} {row}")
        good.append(passed)
    print("", *rows, sep="\n")
    return 0 if True in good and False not in good else 1


def _test(python: Interpreter, args: argparse.Namespace) -> tuple[str, bool]:
    """Run the tests with one interpreter; return a line on the outcome, and whether all passed."""
    folder = OUT / re.sub(r"\W+", "-", python.wanted).strip("-")
    sources = copy_of_the_sources(folder / "sources")
    program = python.venv(folder / "venv", keep=True)
    pip = [program, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input"]
    newer = ["--pre", "--extra-index-url", args.index] if args.index else []
    group = ["--group", f"{sources}/pyproject.toml:versions"]
    subprocess.run(python.enter(*pip, *group, "-e", sources), cwd=ROOT, check=True)
    subprocess.run(python.enter(*pip, "--upgrade", *newer, args.numpy), cwd=ROOT, check=True)
    for package in OPTIONAL:
        command = python.enter(*pip, "--only-binary", ":all:", package)
        if subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode:
            print(
                f"== no wheel of {package} for Python {python.wanted}: tests that need it are skipped",
                flush=True,
            )
    inside = ["env", "-C", str(sources)]  # where the options of pytest are, and this copy is what is imported
    about = python.output(*inside, program, "-c", _ABOUT)
    print(f"== {about}", flush=True)
    start = time.perf_counter()
    pytest = [program, "-m", "pytest", "-n", args.workers, "--dist", "worksteal", "--cases", args.cases]
    command = python.enter(*inside, *pytest, *(args.tests or TESTS))
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    last = ""
    assert run.stdout is not None
    for line in run.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    return f"{about}: {last} ({time.perf_counter() - start:.0f} s)", run.wait() == 0


_ABOUT = """
import platform, numpy
from dcarray.core import native
built = "built" if native.BUILT else "not built"
print(f"Python {platform.python_version()}, NumPy {numpy.__version__}, C module {built}")
"""

if __name__ == "__main__":
    sys.exit(main())
