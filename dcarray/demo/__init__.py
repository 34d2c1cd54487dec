"""``python -m dcarray demo``: terrain analysis by matplotlib and NumPy code, with plain and wrapped arrays.

It compares results and times, and shows the kernels and the bytes that they move.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dcarray.core.config import options
from dcarray.core.counters import Report, report
from dcarray.execution.executor import wait
from dcarray.inspect.drawing import size_text
from dcarray.jit.loops.entry.bound_names import INSIDE
from dcarray.jit.patching import module_names

from .traffic_meter import Metered

FACTOR = 8
ROUNDS = 5
TOLERANCE = 1e-9


@dataclass
class Result:
    """The measurements on one grid."""

    name: str
    grid: Any
    maps: dict[str, Any]
    figures: dict[str, float]
    difference: float
    agree: bool
    first: float
    numpy_seconds: float
    our_seconds: float
    ratio: float
    numpy_bytes: int
    report: Report


def _user_code() -> Any:
    """Return the analysis as a module outside this package, so that reports show its lines as the user's."""
    path = Path(__file__).with_name("terrain.py")
    module = ModuleType("terrain")
    exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), vars(module))
    return module


def _difference(wrapped: Any, plain: Any) -> tuple[float, bool]:
    """Return the largest difference between two results, and whether it is within rounding."""
    wrapped, plain = np.asarray(wrapped), np.asarray(plain)
    gap = float(np.max(np.abs(wrapped - plain)))
    scale = max(1.0, float(np.max(np.abs(plain))))
    return gap, wrapped.shape == plain.shape and wrapped.dtype == plain.dtype and gap <= TOLERANCE * scale


def run_grid(terrain: Any, name: str, z: Any, dx: float, dy: float, rounds: int = ROUNDS) -> Result:
    """Analyse one grid with plain and with wrapped arrays.

    Parameters
    ----------
    terrain : module
        The analysis.
    name : str
        The name of the grid.
    z : ndarray
        Heights in metres.
    dx, dy : float
        Grid spacing in metres.
    rounds : int
        The number of measurements, plain and wrapped alternating.

    Returns
    -------
    Result
    """
    import dcarray as dc

    wrapped = dc.asarray(z.copy())

    def plain() -> Any:
        return terrain.analyse(z, dx, dy)

    from matplotlib import colors

    scope = module_names(vars(colors))  # it views an array of its own in the class of the one it is given

    def run_wrapped() -> Any:
        token = scope.inside()
        try:
            maps, figures = terrain.analyse(wrapped, dx, dy)
            dc.evaluate(maps)
            wait()
            return maps, figures
        finally:
            INSIDE.reset(token)

    start = time.perf_counter()
    run_wrapped()
    first = time.perf_counter() - start
    (maps, figures), (expected, numbers) = run_wrapped(), plain()
    checks = [_difference(maps[key], expected[key]) for key in expected]
    checks += [_difference(figures[key], numbers[key]) for key in numbers]
    for _ in range(3):
        wait()  # for the kernels
        run_wrapped()
    report(reset=True)
    run_wrapped()
    counted = report()
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        marks = [time.perf_counter()]
        for job in (plain, run_wrapped):
            job()
            marks.append(time.perf_counter())
        times.append((marks[1] - marks[0], marks[2] - marks[1]))
    Metered.moved = 0
    terrain.analyse(z.view(Metered), dx, dy)
    return Result(
        name, z, {key: np.asarray(value) for key, value in maps.items()}, figures,
        max(gap for gap, _ in checks), all(good for _, good in checks), first,
        statistics.median(t[0] for t in times), statistics.median(t[1] for t in times),
        statistics.median(t[0] / t[1] for t in times), Metered.moved, counted,
    )  # fmt: skip


def describe(r: Result) -> str:
    """Return the result as text."""
    rows, columns = r.grid.shape
    saved = r.numpy_bytes - r.report.bytes
    lines = [
        f"{r.name}: {rows} x {columns} heights, {size_text(r.grid.nbytes)}",
        f"  results       {'agree' if r.agree else 'DISAGREE'}; largest difference {r.difference:.2g}",
        f"  time          NumPy {r.numpy_seconds * 1e3:.1f} ms, dcarray {r.our_seconds * 1e3:.1f} ms:"
        f" {r.ratio:.2f} x as fast (first call {r.first * 1e3:.0f} ms)",
        f"  kernels       {r.report.kernels} run for {r.report.statements} recorded statements in"
        f" {r.report.flushes} regions",
        f"  bytes moved   {size_text(r.report.bytes)} by kernels, {size_text(r.numpy_bytes)} by NumPy:"
        f" {size_text(saved)} saved",
    ]
    calls = [f"{f.count} x {f.function} ({f.where})" for f in r.report.fallbacks]
    lines.append(f"  through NumPy {'; '.join(calls) if calls else 'nothing'}")
    return "\n".join(lines)


def picture(results: list[Result], path: Path) -> None:
    """Write maps and the figures of all grids as one PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    last = results[-1]
    step = max(1, last.grid.shape[0] // 700)
    maps = {key: value[::step, ::step] for key, value in last.maps.items()}
    fig, axes = plt.subplots(2, 2, figsize=(13, 10.5), constrained_layout=True)
    flat: list[Any] = list(axes.flat)
    flat[0].imshow(maps["smoothed"], cmap="terrain")
    flat[0].imshow(maps["hillshade"], cmap="gray", alpha=0.55)
    flat[0].set_title("hillshade (matplotlib's LightSource) over elevation")
    shown = flat[1].imshow(maps["slope"], cmap="magma")
    flat[1].set_title("slope, degrees")
    fig.colorbar(shown, ax=flat[1], shrink=0.8)
    rough = results[0].maps["elevation"] - results[0].maps["smoothed"]
    limit = float(np.percentile(np.abs(rough), 99.5)) or 1.0
    shown = flat[2].imshow(rough, cmap="RdBu_r", vmin=-limit, vmax=limit)
    flat[2].set_title("what smoothing took away (original grid), metres")
    fig.colorbar(shown, ax=flat[2], shrink=0.8)
    for axis in flat[:3]:
        axis.set_axis_off()
    _bars(flat[3], results)
    fig.suptitle("Jacksboro fault: the same NumPy code on plain and on wrapped arrays", fontsize=15)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def _bars(axis: Any, results: list[Result]) -> None:
    labels, numpy_share, texts = [], [], []
    for r in results:
        labels += [f"{r.name}\ntime", f"{r.name}\nbytes moved"]
        numpy_share += [r.our_seconds / r.numpy_seconds, r.report.bytes / r.numpy_bytes]
        texts += [
            f"{r.our_seconds * 1e3:.0f} of {r.numpy_seconds * 1e3:.0f} ms",
            f"{size_text(r.report.bytes)} of {size_text(r.numpy_bytes)}",
        ]
    at = np.arange(len(labels))
    axis.barh(at, 1.0, color="#d9dee6", label="NumPy")
    axis.barh(at, numpy_share, color="#3f9a5b", label="dcarray")
    for y, share, text in zip(at, numpy_share, texts, strict=True):
        axis.text(min(share, 1.0) + 0.02, y, text, va="center")
    axis.set_yticks(at, labels)
    axis.invert_yaxis()
    axis.set_title("dcarray as a share of NumPy (less is better)")
    axis.legend(loc="lower right")


def run(out: Path, factor: int = FACTOR, rounds: int = ROUNDS, device: str = "cpu") -> int:
    """Run the demo.

    Parameters
    ----------
    out : Path
        The folder of the picture, created if there is none.
    factor : int
        The refinement of the large grid.
    rounds : int
        The number of measurements.
    device : str
        The device of the wrapped arrays.

    Returns
    -------
    int
        0 if plain and wrapped arrays gave the same results, else 1.
    """
    terrain = _user_code()
    z, dx, dy = terrain.load()
    print("terrain analysis (smoothing, slope, matplotlib's hillshade, statistics) of the Jacksboro fault\n")
    results = []
    for times in (1, factor):
        name = "original" if times == 1 else f"{times} times finer"
        grid = z if times == 1 else terrain.upsample(z, times)
        with options(device=device):
            results.append(run_grid(terrain, name, grid, dx / times, dy / times, rounds))
        print(describe(results[-1]) + "\n", flush=True)
    for name, value in results[-1].figures.items():
        print(f"  {name:<28} {value:10.2f}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "terrain.png"
    picture(results, path)
    print(f"\npicture: {path}")
    return 0 if all(r.agree for r in results) else 1
