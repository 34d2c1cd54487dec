"""Read an outside checkout of NPBench: its benchmarks, their inputs, and their versions for each framework.

Used by the processes that run them too, some of them interpreters without dcarray: only NumPy is imported.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import pickle
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
        """Arguments by name, as the benchmark's own ``initialize`` makes them.

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

    def kept(self, size: str, folder: Path) -> dict[str, Any]:
        """The same arguments; their arrays are files of a folder, mapped, and written if there are none.

        For arrays of which the memory holds too few to have them once for each framework.
        """
        rest = folder / "rest"
        if not rest.exists():
            made = self.inputs(size)
            arrays = [name for name, value in made.items() if isinstance(value, np.ndarray)]
            for name in arrays:
                np.save(folder / f"{name}.npy", made.pop(name))
            rest.write_bytes(pickle.dumps((arrays, made)))
        arrays, found = pickle.loads(rest.read_bytes())
        for name in arrays:
            found[name] = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
        return {name: found[name] for name in self.info["input_args"]}

    def endings(self, framework: str) -> list[str]:
        """What the suite has for one of the frameworks in `VERSIONS`."""
        folder = self.suite / "npbench" / "benchmarks" / self.info["relative_path"]
        names = {ending: f"{self.info['module_name']}_{ending}.py" for ending in VERSIONS[framework]}
        return [ending for ending, name in names.items() if (folder / name).exists()]

    def version(self, ending: str) -> Callable[..., Any]:
        """The function of one of the `endings`; imports its module, and what that imports."""
        function: Callable[..., Any] = getattr(self._module("_" + ending), self.info["func_name"])
        return function

    def versions(self, framework: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        """The versions that the suite has for one of the frameworks, by their `endings`."""
        for ending in self.endings(framework):
            yield ending, self.version(ending)

    def copies(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The same arguments with arrays of their own, for one call."""
        arrays = self.info["array_args"]
        return {name: copy.deepcopy(v) if name in arrays else v for name, v in inputs.items()}

    def outputs(self, result: Any, arguments: dict[str, Any]) -> list[Any]:
        """What a call gave: what it returned, and what it wrote in place."""
        given = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
        return given + [arguments[name] for name in self.info["output_args"]]

    def tolerances(self) -> dict[str, float]:
        """The suite's own: element by element, or else the error of the whole."""
        usual = {"rtol": 1e-5, "atol": 1e-8, "norm_error": 1e-5}
        return {name: float(self.info.get(name, value)) for name, value in usual.items()}


def benchmarks(suite: Path, only: str = "") -> list[Benchmark]:
    """Benchmarks of a checkout whose name holds ``only`` (or one of its words, with commas between).

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
    """The benchmarks that a command is to run; if there are none, the parser says so."""
    if not suite:
        parser.error("no suite: give --suite PATH or set NPBENCH")
    try:
        return benchmarks(Path(suite).resolve(), only)
    except (FileNotFoundError, ValueError) as refused:
        parser.error(str(refused))


def _blocks(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """Elements of two arrays of one shape, so many at a time: what is compared may fill the memory."""
    a, b = np.ravel(a), np.ravel(b)
    for k in range(0, a.size, _BLOCK):
        yield a[k : k + _BLOCK], b[k : k + _BLOCK]


def error(expected: Any, got: Any) -> float:
    """Norm of the difference by the norm of what is expected, without equal values that are not finite."""
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
    """Whether NPBench would take ``got`` for right."""
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
    """What is wrong with ``got`` (or nothing), and its largest `error`.

    Parameters
    ----------
    exact_kinds : bool
        Also ask for the same dtypes and number of outputs.
    any_order : bool
        Take any output for any expected one: a pure version returns what NumPy's writes in place, in an
        order of its own.
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
