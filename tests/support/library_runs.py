"""Regions and programs in libraries for C, run beside the interpreter and NumPy; perhaps with sanitizers.

As a program, ``python library_runs.py LIBRARY CASES``, it checks regions in a process of its own, since the
address sanitizer has to be loaded first.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ir_regions
import numpy as np

from dcarray.ir import dims, interp
from dcarray.ir.nodes import Region
from dcarray.lowering.aot import build
from dcarray.lowering.aot.interface import Function, Parameter, Refused, Result
from dcarray.lowering.aot.library import sources

SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
OPTIONS: dict[str, Any] = {"symbolic": True, "aliases": False, "numpy_bits": False}


def region_function(name: str, region: Region) -> Function:
    """A region as a function: its arrays are arguments, its results are written to memory of the caller."""
    given = [array for array in region.arrays if array.role in ("in", "inout")]
    parameters = [
        Parameter(array.name, "array", array.dtype, array.shape, "", array.role == "inout") for array in given
    ]
    results = [Result("array", array.name) for array in region.arrays if array.role == "out"]
    return Function(
        name, region, tuple([s.name for s in region.symbols]), tuple(parameters),
        tuple([array.name for array in given]), tuple(results), True,
    )  # fmt: skip


def region_library(seeds: range, to: Path, extra: tuple[str, ...] = (), **how: Any) -> list[int]:
    """Build a library of random regions; returns the seeds of those that are in it.  Others are refused."""
    functions, kept = [], []
    for seed in seeds:
        case = ir_regions.make_case(seed, 1 + seed % 5, **OPTIONS)
        function = region_function(f"f{seed}", case.region)
        try:
            sources([function], "regions", **how)
        except Refused:
            continue
        functions.append(function)
        kept.append(seed)
    build.build(sources(functions, "regions", **how), to, extra=extra)
    return kept


def check_regions(library: Path, seeds: list[int]) -> None:
    """Run regions of a library at the sizes of their cases, which it was built without, against the
    interpreter."""
    loaded = ctypes.CDLL(str(library))
    for seed in seeds:
        case = ir_regions.make_case(seed, 1 + seed % 5, **OPTIONS)
        run = loaded[f"f{seed}"]
        run.restype = ctypes.c_int32
        _check_region(case, run)


def _check_region(case: ir_regions.Case, run: Any) -> None:
    values = case.values
    memory = {name: np.array(array, order="C") for name, array in case.memory().items()}
    mine = {name: array.copy() for name, array in memory.items()}
    with np.errstate(all="ignore"):
        wanted = interp.run(case.region, memory, values)
    results = {}
    for array in case.region.arrays:
        if array.role == "out":
            shape = tuple([dims.evaluate(n, values) for n in array.shape])
            results[array.name] = np.empty(shape, array.dtype)
    arrays = [mine[a.name] for a in case.region.arrays if a.role in ("in", "inout")] + [*results.values()]
    sizes = [ctypes.c_int64(values[symbol.name]) for symbol in case.region.symbols]
    status = run(*sizes, *[ctypes.c_void_p(array.ctypes.data) for array in arrays])
    assert status == 0, f"{case!r} gives the status {status}"
    found = {**results, **{name: mine[name] for name in wanted if name in mine}}
    try:
        ir_regions.assert_agree(found, wanted, zero_signs=False, rtol=1e-12)
    except AssertionError as error:
        raise AssertionError(f"{case!r}: {error}") from error


def under_sanitizers(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command whose process may load libraries that are built with `SANITIZERS`."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = os.environ | {
        "LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.path.dirname(__file__),
    }  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


if __name__ == "__main__":
    check_regions(Path(sys.argv[1]), json.loads(sys.argv[2]))
