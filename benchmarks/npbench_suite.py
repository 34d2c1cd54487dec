"""The reader of a checkout of NPBench: benchmarks, their inputs, and their versions for each framework.

The processes that run them also use it, some in interpreters without dcarray, so only NumPy is imported.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: Endings of the files in which a framework's versions are, best guess first.
VERSIONS = {
    "numpy": ("numpy",),
    "dcarray": ("numpy",),
    "device": ("numpy",),
    "cupy": ("cupy",),
    "numba": ("numba_n", "numba_np", "numba_npr"),
    "jax": ("jax", "jax_lib"),
}

#: Benchmarks whose work is not in whole-array statements (loops over elements or short rows).
SCALAR = frozenset(
    {"cholesky", "crc16", "gramschmidt", "lu", "ludcmp", "nussinov", "scattering_self_energies", "seidel_2d"}
    | {"spmv", "symm", "syr2k", "syrk", "trmm"}
)

_BLOCK = 1 << 22  # elements


@dataclass(frozen=True)
class Benchmark:
    """One entry of NPBench's ``bench_info``."""

    name: str
    suite: Path
    info: dict[str, Any]

    @property
    def sizes(self) -> list[str]:
        """The names of its sets of parameters."""
        return list(self.info["parameters"])

    def _module(self, ending: str) -> Any:
        if str(self.suite) not in sys.path:
            sys.path.insert(0, str(self.suite))
        folder = self.info["relative_path"].replace("/", ".")
        return importlib.import_module(f"npbench.benchmarks.{folder}.{self.info['module_name']}{ending}")

    def inputs(self, size: str) -> dict[str, Any]:
        """Return arguments by name, created by the benchmark's own ``initialize``.

        Raises
        ------
        KeyError
            If the benchmark has no such size.
        """
        values = dict(self.info["parameters"][size])
        init = self.info.get("init")
        if init:
            made = getattr(self._module(""), init["func_name"])(*[values[a] for a in init["input_args"]])
            names = init["output_args"]
            values.update(zip(names, made if len(names) > 1 else (made,), strict=True))
        return {name: values[name] for name in self.info["input_args"]}

    def endings(self, framework: str) -> list[str]:
        """Return the endings of the file names of a framework's versions (see `VERSIONS`) that exist."""
        folder = self.suite / "npbench" / "benchmarks" / self.info["relative_path"]
        names = {ending: f"{self.info['module_name']}_{ending}.py" for ending in VERSIONS[framework]}
        return [ending for ending, name in names.items() if (folder / name).exists()]

    def version(self, ending: str) -> Callable[..., Any]:
        """Return the function of one of the `endings`, after importing its module."""
        function: Callable[..., Any] = getattr(self._module("_" + ending), self.info["func_name"])
        return function

    def versions(self, framework: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield the existing versions for a framework: ending and function."""
        for ending in self.endings(framework):
            yield ending, self.version(ending)

    def copies(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with copies of the arrays, for one call."""
        arrays = self.info["array_args"]
        return {name: copy.deepcopy(v) if name in arrays else v for name, v in inputs.items()}

    def outputs(self, result: Any, arguments: dict[str, Any]) -> list[Any]:
        """Return the outputs of a call: its return values, and the arguments that it changes."""
        given = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
        return given + [arguments[name] for name in self.info["output_args"]]

    def tolerances(self) -> dict[str, float]:
        """Return the suite's tolerances: for elements, and for the norm of the error."""
        usual = {"rtol": 1e-5, "atol": 1e-8, "norm_error": 1e-5}
        return {name: float(self.info.get(name, value)) for name, value in usual.items()}


def benchmarks(suite: Path, only: str = "") -> list[Benchmark]:
    """Return the benchmarks whose names contain one of the comma-separated words in ``only``.

    Raises
    ------
    FileNotFoundError
        If there is no NPBench at ``suite``.
    ValueError
        If no name holds any of the words.
    """
    files = sorted((suite / "bench_info").glob("*.json"))
    if not files:
        raise FileNotFoundError(f"{suite} is no checkout of NPBench: it has no bench_info/*.json")
    found = [Benchmark(f.stem, suite, json.loads(f.read_text())["benchmark"]) for f in files]
    chosen = [b for b in found if any(word in b.name for word in only.split(","))]
    if not chosen:
        raise ValueError(f"no benchmark has {only!r} in its name: {', '.join(b.name for b in found)}")
    return chosen


def asked_for(parser: argparse.ArgumentParser, suite: Path | None, only: str) -> list[Benchmark]:
    """Return the benchmarks that a command should run; if there are none, exit with a parser error."""
    if not suite:
        parser.error("no suite: give --suite PATH or set NPBENCH")
    try:
        return benchmarks(Path(suite).resolve(), only)
    except (FileNotFoundError, ValueError) as refused:
        parser.error(str(refused))


def _blocks(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of elements of two arrays, so that comparing large arrays needs little memory."""
    a, b = np.ravel(a), np.ravel(b)
    for k in range(0, a.size, _BLOCK):
        yield a[k : k + _BLOCK], b[k : k + _BLOCK]


def error(expected: Any, got: Any) -> float:
    """Return the norm of the error relative to that of the expected values, without equal NaN and inf."""
    if np.shape(expected) != np.shape(got):
        return float("inf")
    norms, differences = [0.0], [0.0]
    for a, b in _blocks(expected, got):
        same = (a == b) | ((a != a) & (b != b))
        a, b = a.astype(np.result_type(a, np.float64)), b.astype(np.result_type(b, np.float64))
        a, b = np.where(same & ~np.isfinite(a), 0, a), np.where(same & ~np.isfinite(b), 0, b)
        norms.append(float(np.linalg.norm(a)))
        differences.append(0.0 if same.all() else float(np.linalg.norm(a - b)))
    norm = float(np.linalg.norm(norms))
    found = float(np.linalg.norm(differences)) / (norm if norm else 1.0)
    return found if found == found else float("inf")


def agrees(expected: Any, got: Any, rtol: float, atol: float, norm_error: float) -> bool:
    """Whether ``got`` is right by NPBench's criteria."""
    if np.shape(expected) != np.shape(got):
        return False
    close = (np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True) for a, b in _blocks(expected, got))
    return all(close) or error(expected, got) < norm_error


def compare(
    expected: Sequence[Any],
    got: Sequence[Any],
    tolerances: dict[str, float],
    exact_kinds: bool,
    any_order: bool,
) -> tuple[str, float]:
    """Return what is wrong with outputs (or ""), and their largest `error`.

    Parameters
    ----------
    exact_kinds : bool
        Whether dtypes and the number of outputs must be the same, too.
    any_order : bool
        Whether outputs may be in any order, as in pure versions, which return what NumPy's version writes
        in place.
    """
    if exact_kinds and len(expected) != len(got):
        return f"{len(got)} outputs instead of {len(expected)}", float("inf")
    worst = 0.0
    for k, a in enumerate(expected):
        if any_order:
            right = [error(a, b) for b in got if agrees(a, b, **tolerances)]
        else:
            right = [error(a, b) for b in got[k : k + 1] if agrees(a, b, **tolerances)]
        if not right:
            wrong = min([error(a, b) for b in (got if any_order else got[k : k + 1])], default=float("inf"))
            return f"output {k} differs, by {wrong:.1e} of its norm", wrong
        if exact_kinds and np.asarray(a).dtype != np.asarray(got[k]).dtype:
            return f"output {k} is {np.asarray(got[k]).dtype} instead of {np.asarray(a).dtype}", float("inf")
        worst = max(worst, min(right))
    return "", worst
