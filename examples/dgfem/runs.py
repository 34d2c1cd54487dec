"""Errors, convergence rates and speed for the three equations, with NumPy or dcarray on a device."""

import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import dcarray as dc

from . import gas, wave
from .mesh import Mesh, box, error
from .operators import geometry_of
from .stepping import A, B, steps

EQUATIONS = ("wave", "euler", "navier-stokes")
FINEST = 2.2  # the speed of the fastest wave in the flows, at most


@dataclass(frozen=True)
class Problem:
    """An equation on a mesh with a known solution, whose initial values are the start.

    `extra` are the arguments of ``advance`` beyond those that all equations have; `dt` is the longest step
    that is stable; `exact` gives the fields at a time.
    """

    mesh: Mesh
    start: np.ndarray
    dt: float
    extra: tuple
    exact: object
    advance: object


def problem(equation, order, cells, bend=0.0):
    """Return the problem with known solution of an equation: plane wave, vortex or manufactured flow.

    Raises
    ------
    ValueError
        For an equation or an order that there is not, or a mesh of nothing.
    """
    if equation not in EQUATIONS:
        raise ValueError(f"equation {equation!r}: must be one of {', '.join(EQUATIONS)}")
    if equation == "euler":
        # The vortex is the same all along z: two cells do.
        mesh = box(order, (cells, cells, 2), (10.0, 10.0, 20.0 / max(cells, 1)), bend)
    else:
        mesh = box(order, cells, bend=bend)
    h = mesh.size / (order * order + 1)
    if equation == "wave":
        return Problem(
            mesh, wave.plane_wave(mesh, 0.0), 0.6 * h, (), lambda t: wave.plane_wave(mesh, t), wave.advance
        )
    if equation == "euler":
        dt = 0.6 * h / FINEST
        return Problem(mesh, gas.vortex(mesh, 0.0), dt, (), lambda t: gas.vortex(mesh, t), gas.advance)
    exact, source = gas.manufactured(mesh)
    dt = 1 / (FINEST / (0.6 * h) + 2 * gas.VISCOSITY / (0.15 * h * h))
    extra = source, gas.penalty_of(order)
    return Problem(mesh, exact, dt, extra, lambda t: exact, gas.advance_viscous)


def stepper(one, device=None):
    """Return a function of fields, number and length of steps, with NumPy or with dcarray on a device."""
    geometry = geometry_of(one.mesh)
    if device is None:
        return lambda q, count, dt: one.advance(q, count, dt, geometry, A, B, *one.extra)
    fast = dc.accelerate(one.advance)

    def on(x):
        return dc.asarray(x, device=device) if isinstance(x, np.ndarray) else x

    geometry, a, b = tuple(map(on, geometry)), on(A), on(B)
    extra = tuple(map(on, one.extra))
    return lambda q, count, dt: np.asarray(dc.evaluate(fast(on(q), count, dt, geometry, a, b, *extra)))


def solve(one, until, device=None):
    """Return the fields at a time, and their error in the L2 norm."""
    count, dt = steps(until, one.dt)
    q = stepper(one, device)(one.start, count, dt)
    return q, error(one.mesh, q, one.exact(until))


def convergence(equation, order, cells, until, device=None, bend=0.0):
    """Yield lines of cells, tetrahedra, error, and rate relative to the previous line (first: None)."""
    lines = []
    for n in cells:
        one = problem(equation, order, n, bend)
        found = solve(one, until, device)[1]
        rate = np.log(lines[-1][2] / found) / np.log(n / lines[-1][0]) if lines else None
        lines.append((n, one.mesh.jacobian.size, found, rate))
    return lines


def speeds(equation, order, cells, device, numpy=True, rounds=5, count=2):
    """Return the least seconds of a step by name, for NumPy, dcarray and CuPy (if installed), run in turn;
    the number of unknowns; and the bytes that dcarray's kernels read and write in a step."""
    one = problem(equation, order, cells)
    ours = stepper(one, device)
    ways = {"dcarray": lambda: ours(one.start, count, one.dt)}
    if numpy:
        ways["NumPy"] = lambda: one.advance(one.start, count, one.dt, geometry_of(one.mesh), A, B, *one.extra)
    for _ in range(8):  # until its plans are made
        ways["dcarray"]()
        dc.wait()
    before = dc.report().bytes
    ways["dcarray"]()
    moved = (dc.report().bytes - before) / count
    if device.startswith("cuda") and find_spec("cupy"):
        ways["CuPy"] = _with_cupy(one, count)
        ways["CuPy"]()
    least = dict.fromkeys(ways, np.inf)
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            least[name] = min(least[name], (time.perf_counter() - begin) / count)
    return least, one.start.size, moved


def _with_cupy(one, count):
    """Return a function that runs the same steps with CuPy's arrays."""
    cupy = import_module("cupy")
    geometry, a, b = tuple(map(cupy.asarray, geometry_of(one.mesh))), cupy.asarray(A), cupy.asarray(B)
    extra = tuple(cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in one.extra)
    start = cupy.asarray(one.start)
    return lambda: cupy.asnumpy(one.advance(start, count, one.dt, geometry, a, b, *extra))
