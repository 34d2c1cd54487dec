"""Runs NumPy's own test suite with dcarray's arrays: ``python -m conformance.numpy_suite``.

The test modules come from the installed wheel.  Each runs twice in separate processes: with plain NumPy, the
baseline, and with the names of `conformance.numpy_names`, so that tests create dcarray's arrays.  Tests that
pass with NumPy and fail with dcarray must be listed, with reasons, in ``numpy_suite_known.txt``; that list
may only shrink: an entry that passes is an error, too.

``--mode interpreted`` and ``--mode compiled`` have every call recorded, however small its arrays are, and run
by the interpreter or by compiled kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from .document import write_section
from .known import causes, known

__all__ = [
    "KNOWN",
    "MODES",
    "MODULES",
    "OUT_OF_SCOPE",
    "PACKAGES",
    "Result",
    "main",
    "run_module",
    "run_some",
]

KNOWN = Path(__file__).with_name("numpy_suite_known.txt")
MODES = {
    "defaults": {},
    "interpreted": {"DCARRAY_EAGER_BELOW": "0", "DCARRAY_JIT": "off"},
    "compiled": {"DCARRAY_EAGER_BELOW": "0", "DCARRAY_JIT": "eager"},
}
MODULES = {
    "_core": """
        array_api_info array_coercion arrayobject arrayprint api casting_floatingpoint_errors datetime
        defchararray deprecations dlpack einsum errstate function_base half indexerrors indexing
        item_selection longdouble mem_overlap multiarray multithreading nditer nep50_promotions numeric
        protocols records regression scalar_methods scalarmath shape_base stringdtype strings ufunc umath
        umath_complex unicode
    """,
    "lib": """
        array_utils arraypad arraysetops arrayterator format function_base histograms index_tricks io loadtxt
        nanfunctions packbits polynomial recfunctions regression shape_base stride_tricks twodim_base
        type_check ufunclike
    """,
    "linalg": "deprecations linalg regression",
    "fft": "helper pocketfft",
    "ma": "arrayobject core deprecations extras mrecords old_ma regression subclassing",
    "random": """
        direct generator_mt19937 generator_mt19937_regressions random randomstate randomstate_regression
        regression smoke
    """,
}
OUT_OF_SCOPE = {
    "no arrays in them": """
        _core:_exceptions _core:abc _core:cpu_dispatcher _core:cpu_features _core:dtype _core:finfo
        _core:getlimits _core:numerictypes _core:print _core:scalar_ctors _core:scalarbuffer
        _core:scalarinherit _core:scalarprint lib:_datasource lib:_iotools lib:_version lib:utils
        random:seed_sequence
    """,
    "NumPy's C code and its interfaces": """
        _core:argparse _core:array_interface _core:arraymethod _core:casting_unittests
        _core:conversion_utils _core:custom_dtypes _core:cython _core:extint128 _core:hashtable
        _core:limited_api _core:mem_policy _core:simd _core:simd_module random:extending
    """,
    "how NumPy dispatches to other arrays": "_core:overrides lib:mixins",
    "mapped files": "_core:memmap",
    "processes": "_core:multiprocessing",
    "needs data that the wheel lacks": "_core:umath_accuracy",
}
# Single tests, of which NumPy's own run is no measure.
_LEFT_OUT = (
    "_core/tests/test_shape_base.py::TestConcatenate::test_huge_list_error",  # takes 16 GB
    "_core/tests/test_multithreading.py::test_arg_locking",  # races inside NumPy's C code, without an end
)
# Passing ones that take too long for a quick look.
_LONG = (
    "_core/tests/test_arrayprint.py::test_multithreaded_array_printing",
    "lib/tests/test_format.py::test_huge_header_npz",
    "linalg/tests/test_regression.py::TestRegression::test_openblas_threading",
)
PACKAGES = Path(np.__file__).parent.parent


@dataclass
class Result:
    """The outcome of one test module.

    Attributes
    ----------
    module : str
        Such as ``"_core/tests/test_umath.py"``.
    numpy, ours : int
        The numbers of tests that plain NumPy passes, and of those among them that pass with dcarray.
    failures : dict
        For each test id that fails only with dcarray, the last line of the error.
    seconds, processor : tuple of float
        Wall-clock time and processor time (of all cores) of the tests, with NumPy and with dcarray.
    """

    module: str
    numpy: int
    ours: int
    failures: dict[str, str] = field(default_factory=dict)
    seconds: tuple[float, float] = (0.0, 0.0)
    processor: tuple[float, float] = (0.0, 0.0)

    @property
    def share(self) -> float:
        """The fraction of the tests passing with NumPy that pass with dcarray's arrays."""
        return self.ours / self.numpy if self.numpy else 1.0


def _outcomes(
    modules: Sequence[str], arrays: str, mode: str, timeout: int, *options: str
) -> tuple[tuple[float, float], dict[str, list[str]]]:
    """Run modules in a separate process; return wall-clock and processor time, and outcome and message by
    id."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outcomes.json")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            os.devnull,
            "--rootdir",
            str(PACKAGES),
            "-qq",
            "--no-header",
            "-p",
            "conformance.numpy_plugin",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            "--tb=native",  # the other styles parse the test module anew for every failure
            "--arrays",
            arrays,
            "--outcomes",
            str(file),
            f"--timeout={timeout}",
            "--available-memory=1G",
            *options,
        ]
        for test in _LEFT_OUT:
            command += ["--deselect", f"numpy/{test}"]
        environment = {**os.environ, **(MODES[mode] if arrays == "wrapped" else {})}
        root = str(Path(__file__).parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        done = subprocess.run(
            [*command, *(str(PACKAGES / "numpy" / module) for module in modules)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if not file.exists():
            tail = (done.stdout + done.stderr)[-2000:]
            raise RuntimeError(f"{modules[0]} with {arrays} arrays ended without a result:\n{tail}")
        found = json.loads(file.read_text())
        tests = {test.removeprefix("numpy/"): result for test, result in found["tests"].items()}
        return (found["seconds"], found["processor"]), tests


def run_module(module: str, mode: str = "defaults", timeout: int = 600) -> Result:
    """Run a test module with NumPy's and with dcarray's arrays, and return the result.

    Parameters
    ----------
    module : str
        Such as ``"_core/tests/test_umath.py"``.
    mode : str
        A name in `MODES`.
    timeout : int
        Seconds for one test.
    """
    plain_times, plain = _outcomes([module], "plain", mode, timeout)
    our_times, ours = _outcomes([module], "wrapped", mode, timeout)
    passed = [test for test, (outcome, _) in plain.items() if outcome == "passed"]
    failures = {}
    broken = [message for test, (_, message) in ours.items() if "::" not in test]
    for test in passed:
        outcome, message = ours.get(test, ("missing", broken[0] if broken else "not collected"))
        if outcome != "passed":
            failures[test] = message or outcome
    seconds, processor = zip(plain_times, our_times, strict=True)
    return Result(module, len(passed), len(passed) - len(failures), failures, seconds, processor)


def run_some(each: int, mode: str = "defaults", timeout: int = 60) -> tuple[dict[str, int], dict[str, str]]:
    """Run a few tests of every module, always the same ones, in one process with dcarray's arrays.

    Parameters
    ----------
    each : int
        The number of tests of each module.
    mode : str
        A name in `MODES`.
    timeout : int
        Seconds for one test.

    Returns
    -------
    passed : dict
        For each module, the number of tests that passed.
    failures : dict
        For each test id that fails although plain NumPy passes, the last line of the error.
    """
    modules = _selected(())
    few = [f"--each={each}", *(f"--deselect=numpy/{test}" for test in _LONG)]
    _, ours = _outcomes(modules, "wrapped", mode, timeout, *few)
    passed = dict.fromkeys(modules, 0)
    for test, (outcome, _) in ours.items():
        passed[test.partition("::")[0]] += outcome == "passed"
    failures = {test: message for test, (outcome, message) in ours.items() if outcome == "failed"}
    unknown = sorted({test.partition("::")[0] for test in failures.keys() - known(mode, KNOWN).keys()})
    if unknown:  # which may be NumPy's own
        _, plain = _outcomes(unknown, "plain", mode, timeout, *few)
        bad = {test for test, (outcome, _) in plain.items() if outcome != "passed"}
        failures = {test: message for test, message in failures.items() if test not in bad}
    return passed, failures


def _times(results: Iterable[Result]) -> str:
    """Return the ratios of dcarray's to NumPy's wall-clock and processor time, as text."""
    pairs = [(r.seconds, r.processor) for r in results]
    clock, processor = ([sum(side) for side in zip(*some, strict=True)] for some in zip(*pairs, strict=True))
    return f"{clock[1] / max(clock[0], 1e-9):7.2f}x{processor[1] / max(processor[0], 1e-9):10.2f}x"


def _table(results: Sequence[Result], listed: Mapping[str, str]) -> str:
    lines = [f"{'module':52}{'NumPy':>7}{'ours':>7}{'%':>8}{'new':>5}{'time':>8}{'processor':>11}"]
    for r in results:
        new = sum(test not in listed for test in r.failures)
        lines.append(f"{r.module:52}{r.numpy:7}{r.ours:7}{100 * r.share:8.2f}{new:5}{_times([r])}")
    if len(results) > 1:
        numpy, ours = sum(r.numpy for r in results), sum(r.ours for r in results)
        new = sum(test not in listed for r in results for test in r.failures)
        share = 100 * ours / max(numpy, 1)
        lines.append(f"{'all':52}{numpy:7}{ours:7}{share:8.2f}{new:5}{_times(results)}")
    return "\n".join(lines)


def _selected(names: Iterable[str]) -> list[str]:
    every = [f"{part}/tests/test_{name}.py" for part, text in MODULES.items() for name in text.split()]
    if not names:
        return every
    found = []
    for name in names:
        some = [m for m in every if name in (m, m.partition("/")[0], Path(m).stem.removeprefix("test_"))]
        if not some:
            raise SystemExit(f"unknown module {name!r}: must be one of\n  " + "\n  ".join(every))
        found += some
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status.

    Returns
    -------
    int
        0 if the failures are exactly the listed ones and enough tests pass: 97% of all, and with the
        defaults 90% of each module; else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m conformance.numpy_suite", description=__doc__)
    parser.add_argument("--module", nargs="+", default=[], help="paths, names or parts (_core, lib, ...)")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--docs", type=Path, help="document whose section on these tests is written anew")
    parser.add_argument("--mode", choices=MODES, default="defaults")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one test")
    parser.add_argument("--jobs", type=int, default=1, help="modules that run side by side")
    parser.add_argument("--list", action="store_true", help="print the failures and what went wrong")
    options = parser.parse_args(arguments)
    if options.docs and options.module:
        parser.error("--docs is for all modules")
    listed = known(options.mode, KNOWN)
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:  # each of its threads waits for processes
        for result in pool.map(
            lambda module: run_module(module, options.mode, options.timeout), _selected(options.module)
        ):
            results.append(result)
            print(_table([result], listed).splitlines()[-1], flush=True)
            if options.list:
                for test, message in result.failures.items():
                    reason = f"({listed[test]})" if test in listed else "NEW"
                    print(f"    {reason} {test}\n        {message.splitlines()[0]}")
    print("\n" + _table(results, listed))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1))
    if options.docs:
        write_section(options.docs, _TITLES[options.mode], _section(results, listed, options.mode))
    failed = {test for r in results for test in r.failures}
    ran = {r.module for r in results}
    new = sorted(failed - set(listed))
    gone = sorted(test for test in listed if test not in failed and test.partition("::")[0] in ran)
    for title, tests in (("failures that are not listed", new), ("listed, but passing", gone)):
        if tests:
            print(f"\n{title}:\n  " + "\n  ".join(tests))
    share = sum(r.ours for r in results) / max(sum(r.numpy for r in results), 1)
    low = options.mode == "defaults" and any(r.share < 0.90 for r in results)
    return int(bool(new or gone) or share < 0.97 or low)


# ---- the document ------------------------------------------------------------------------------------
_TITLES = {
    "defaults": "NumPy's own tests",
    "interpreted": "NumPy's own tests, recorded and interpreted",
    "compiled": "NumPy's own tests, recorded and compiled",
}
_ABOUT = """\
    python -m conformance.numpy_suite [--module NAME ...] [--mode defaults|interpreted|compiled] [--jobs N]
                                      [--json FILE] [--docs docs/conformance.md]

runs the test modules of the installed NumPy twice, with plain NumPy and with the arrays that the tests create
wrapped; this section is what it wrote.  The tests' source stays as it is: their `import numpy` is answered as
under `python -m dcarray run` on a device or over ranks.  `conformance/numpy_suite.py` names the modules that
run and those that are out of scope, with the reason.

Each test that NumPy passes and we do not is listed in `conformance/numpy_suite_known.txt` under its reason.
The command fails on a failure that is not listed, on an entry that passes, below 97% of all tests, and with
the defaults below 90% of a module.  `make test` runs twelve tests of each module, always the same
(`tests/conformance/test_numpy_subset.py`), and holds that the list does not grow.

NumPy reports a floating-point mistake at the call, we when the call runs.  So where a test expects an error
or a warning of a block, what was recorded is asked for at the end of the block.  In the recorded modes, where
even the smallest call is recorded, the entries marked `[recorded]` come from results that are dropped unread:
they are never computed, and their mistakes never reported.
"""
_ABOUT_MODE = (
    "As above with `--mode {mode}`: every call is recorded, however small its arrays are, and {mode}.\n"
)


def _section(results: Sequence[Result], listed: Mapping[str, str], mode: str) -> str:
    """Return the document's section: a table of the parts, the modules with failures, and the reasons."""
    parts: dict[str, list[Result]] = {}
    for r in results:
        parts.setdefault(r.module.partition("/")[0], []).append(r)
    rows = [
        "| part | modules | tests that NumPy passes | with wrapped arrays | % | time |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, some in (*parts.items(), ("all", results)):
        numpy, ours = sum(r.numpy for r in some), sum(r.ours for r in some)
        share = 100 * ours / max(numpy, 1)
        times = _times(some).split()[-1]
        rows.append(f"| {name} | {len(some)} | {numpy:,} | {ours:,} | {share:.2f} | {times} |")
    low = sorted((r for r in results if r.failures), key=lambda r: r.share)
    modules = ", ".join(f"{_name(r)} {r.ours} of {r.numpy}" for r in low)
    failed = [test for r in results for test in r.failures]
    about = _ABOUT if mode == "defaults" else _ABOUT_MODE.format(mode=mode)
    where = f"NumPy {np.__version__}, Python {sys.version.split()[0]}.  Processor time of all cores."
    text = [about, *rows, "", where, "", f"The modules in which not all pass: {modules or 'none'}."]
    return "\n".join([*text, "", f"The reasons of the {len(failed)}:", "", causes(failed, listed)])


def _name(result: Result) -> str:
    return f"{result.module.partition('/')[0]}.{Path(result.module).stem.removeprefix('test_')}"


if __name__ == "__main__":
    sys.exit(main())
