"""Compares NPBench compiled ahead of time to shared libraries with ``dc.accelerate``::

    python -m benchmarks libraries --suite PATH [--only WORD] [--size S] [--blas NAME] [--json FILE]

Each benchmark's NumPy version gets a wrapper with types, in which every length is a symbol; ``python -m
dcarray compile`` builds a library of it, which is called in turn with the accelerated function, both in one
thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .measure import described, machine
from .npbench_suite import SCALAR, Benchmark, asked_for, compare

_SINGLE = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


def wrapper(bench: Benchmark, inputs: dict[str, Any]) -> str:
    """Return the source of a function with types that calls a benchmark's function."""
    sizes: dict[int, str] = {}
    arguments = []
    for name, value in inputs.items():
        if isinstance(value, np.ndarray) and value.ndim:
            axes = ", ".join(sizes.setdefault(n, f"n{len(sizes)}") for n in value.shape)
            arguments.append(f"{name}: dc.types.{value.dtype.name}[{axes}]")
        elif isinstance(value, np.generic):
            arguments.append(f"{name}: dc.{value.dtype.name}")
        elif type(value) in (int, float, complex, bool):
            arguments.append(f"{name}: {type(value).__name__}")
        else:
            raise TypeError(f"the argument {name} is a {type(value).__name__}")
    folder = bench.info["relative_path"].replace("/", ".")
    module = f"npbench.benchmarks.{folder}.{bench.info['module_name']}_numpy"
    return "\n".join([
        "import dcarray as dc",
        f"from {module} import {bench.info['func_name']} as called",
        *(f'{symbol} = dc.symbol("{symbol}")' for symbol in sizes.values()),
        f"def npbench_{bench.name}({', '.join(arguments)}):",
        f"    return called({', '.join(inputs)})",
        "",
    ])  # fmt: skip


def compiled(bench: Benchmark, inputs: dict[str, Any], folder: Path, blas: str) -> Any:
    """Return a benchmark's function from its compiled library.

    Raises
    ------
    RuntimeError
        If the benchmark does not compile; the message says why.
    """
    file = folder / f"wrapped_{bench.name}.py"
    file.write_text(wrapper(bench, inputs))
    command = [sys.executable, "-m", "dcarray", "compile", f"{file}:npbench_{bench.name}", "-o", str(folder)]
    command += ["--stem", bench.name, *(["--blas", blas] if blas else [])]
    environment = os.environ | {"PYTHONPATH": str(bench.suite)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    spec = importlib.util.spec_from_file_location(bench.name, folder / f"{bench.name}.py")
    assert spec is not None and spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    return getattr(loader, f"npbench_{bench.name}")


def measure(bench: Benchmark, size: str, rounds: int, blas: str, folder: Path) -> dict[str, Any]:
    """Return the median times of a benchmark in seconds, and their ratio; or the reason if there is none."""
    import dcarray as dc

    inputs = bench.inputs(size)
    start = time.perf_counter()
    try:
        library = compiled(bench, inputs, folder, blas)
    except (RuntimeError, TypeError) as error:
        return {"reason": str(error)}
    row: dict[str, Any] = {"compile": time.perf_counter() - start}
    written = next(function for _, function in bench.versions("numpy"))
    with dc.options(threads=1):
        jobs = {"library": library, "accelerate": dc.accelerate(written)}
        given = bench.copies(inputs)
        with np.errstate(all="ignore"):
            expected = bench.outputs(written(*given.values()), given)
        times: dict[str, list[float]] = {name: [] for name in jobs}
        for name, job in jobs.items():
            for _ in range(4):
                given = bench.copies(inputs)
                try:
                    found = bench.outputs(job(*given.values()), given)
                except ValueError as error:
                    return {"reason": str(error), **row}
                dc.wait()
            wrong, _ = compare(expected, found, bench.tolerances(), False, False)
            if wrong:
                return {"reason": f"{name} is wrong: {wrong}", **row}
        for _ in range(rounds):
            for name, job in jobs.items():
                given = bench.copies(inputs)
                start = time.perf_counter()
                job(*given.values())
                times[name].append(time.perf_counter() - start)
    row |= {name: float(np.median(values)) for name, values in times.items()}
    pairs = zip(times["library"], times["accelerate"], strict=True)
    return row | {"ratio": float(np.median([a / b for a, b in pairs]))}


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks libraries", description=(__doc__ or "")[:100])
    parser.add_argument("--suite", type=Path, default=os.environ.get("NPBENCH"), help="a checkout of NPBench")
    parser.add_argument("--only", default="", metavar="WORD", help="benchmarks with one of these words")
    parser.add_argument("--size", default="S", help="NPBench's name of a set of parameters")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--blas", default="", help="the CBLAS to link; else products of our own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    args = parser.parse_args(argv)
    if any(os.environ.get(name) != "1" for name in _SINGLE):
        # NumPy's BLAS reads them when it is loaded
        command = [sys.executable, "-m", "benchmarks", "libraries", *argv]
        return subprocess.run(command, env=os.environ | _SINGLE, check=False).returncode
    chosen = asked_for(parser, args.suite, args.only)
    print(described(machine()))
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for bench in chosen:
            row = rows[bench.name] = measure(bench, args.size, args.rounds, args.blas, Path(folder))
            kind = "scalar" if bench.name in SCALAR else "array"
            text = row.get("reason") or (
                f"{row['ratio']:6.2f}  library {row['library'] * 1e3:9.3f} ms, "
                f"accelerate {row['accelerate'] * 1e3:9.3f} ms, compiled in {row['compile']:.1f} s"
            )
            print(f"{bench.name:<28}{kind:<8}{text}", flush=True)
    ratios = [row["ratio"] for name, row in rows.items() if "ratio" in row and name not in SCALAR]
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(f"array codes: {len(ratios)} compiled, geometric mean {mean:.2f}, ", end="")
        print(f"{sum(ratio <= 1.1 for ratio in ratios)} within 1.1 times accelerate's time")
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    return 0
