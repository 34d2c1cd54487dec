"""Checks of NumPy kernels on Intel's FPGA emulator, and as circuits in Verilator and Yosys with the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.document import Telling
from conformance.fpga import circuits, emulator, verilog

__all__ = ["KERNELS", "main"]

_RNG = np.random.default_rng(0)
_A = _RNG.integers(-99, 100, (64, 64)).astype(np.int32)
_V = _RNG.integers(-99, 100, 1000).astype(np.int32)


def axpy(x: Any, y: Any) -> Any:
    """Return a scaled vector plus another one."""
    return 3 * x + y


def threshold(x: Any) -> Any:
    """Return the excess of each element over 10, or 0."""
    return np.where(x > 10, x - 10, 0)


def laplace(a: Any) -> Any:
    """Return a five-point stencil of the interior."""
    return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]


def two_steps(a: Any) -> Any:
    """Return the result of two time steps of a stencil over the interior: two processing elements."""
    b = a.copy()
    b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] - a[1:-1, 1:-1]
    c = b.copy()
    c[1:-1, 1:-1] = b[:-2, 1:-1] + b[2:, 1:-1] - b[1:-1, 1:-1]
    return c


def total(x: Any) -> Any:
    """Return the sum of all elements."""
    return np.sum(x, dtype=x.dtype)


def product(a: Any, x: Any) -> Any:
    """Return the product of a matrix and a vector, as a sum over rows."""
    return np.sum(a * x, axis=1, dtype=a.dtype)


def centred(a: Any) -> Any:
    """Return each row minus its smallest element: two stages."""
    return a - np.min(a, axis=1)[:, None]


KERNELS: Sequence[tuple[Callable[..., Any], Sequence[Any]]] = (
    (axpy, (_V, _V[::-1].copy())),
    (threshold, (_V,)),
    (laplace, (_A,)),
    (two_steps, (_A,)),
    (total, (_V,)),
    (product, (_A, _V[:64].copy())),
    (centred, (_A,)),
)


def _on_emulator(tell: Telling) -> bool:
    """Run the kernels on the emulator with int32, float32 and float64; return whether all are right."""
    tell(f"{'on Intels FPGA emulator':<28}{'int32':>10}{'float32':>10}{'float64':>10}")
    right = True
    for function, given in KERNELS:
        told = []
        for kind in ("int32", "float32", "float64"):
            converted = [array.astype(kind) for array in given]
            circuit = circuits.circuit_of(function, converted)
            (found,) = circuit.outputs(circuits.emulate(circuit), ())
            same = np.allclose(found, function(*converted), rtol=1e-5)
            told.append("right" if same else "WRONG")
            right &= same
        tell(f"{function.__name__:<28}{''.join(f'{one:>10}' for one in told)}")
    return right


def _as_verilog(tell: Telling) -> bool:
    """Run the integer kernels in Verilator and Yosys, print the model's values in brackets; return if
    right."""
    head = f"{'in Verilator':>14}{'cycles':>16}{'DSP':>10}{'LUT':>14}{'FF':>14}{'BRAM':>10}"
    tell(f"{'as Verilog (in brackets the model)':<36}{head}")
    right = True
    for function, given in KERNELS:
        circuit = circuits.circuit_of(function, given)
        results, cycles = circuits.simulate_cycles(circuit)
        (found,) = circuit.outputs(results, ())
        same = bool(np.array_equal(found, function(*given)))
        cells, cost = circuits.synthesise(circuit), circuit.model.cost
        right &= same
        pairs = [
            (sum(cycles), circuit.model.cycles, 16), (cells.dsp, cost.dsp, 10), (cells.lut, cost.lut, 14),
            (cells.ff, cost.ff, 14), (cells.bram, cost.bram, 10),
        ]  # fmt: skip
        counts = "".join(f"{f'{a:,} ({b:,})':>{width}}" for a, b, width in pairs)
        tell(f"{function.__name__:<36}{'right' if same else 'WRONG':>14}{counts}")
    return right


def main(install: bool, docs: Path | None) -> int:
    """Print the tables; return 0 if all results are right, 2 if no tool is installed, else 1."""
    if install:
        emulator.install()
        verilog.install()
    tell, right, any_there = Telling(), True, False
    for part, there in ((_on_emulator, emulator.installed()), (_as_verilog, verilog.installed())):
        if there:
            if any_there:
                tell("")
            right &= part(tell)
            any_there = True
    if not any_there:
        print("nothing is installed: run it without --no-install")
        return 2
    if docs is not None:
        command = "`python -m conformance.fpga --docs docs/fpga-npbench.md`"
        tell.write(docs, "Emulator and Verilog", command)
    return 0 if right else 1
