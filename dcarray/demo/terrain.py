"""Terrain analysis in plain NumPy: the workload of the demo.

Nothing here imports dcarray: the same functions take plain and wrapped arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cbook import get_sample_data
from matplotlib.colors import LightSource

METRES_PER_DEGREE = 111_200.0


def load() -> tuple[Any, float, float]:
    """The elevation model of the Jacksboro fault that matplotlib ships: metres, and the grid spacing."""
    source: Any = get_sample_data("jacksboro_fault_dem.npz")
    with source as data:
        elevation = data["elevation"].astype(np.float64)
        dy = METRES_PER_DEGREE * float(data["dy"])
        dx = METRES_PER_DEGREE * float(data["dx"]) * float(np.cos(np.radians(data["ymin"])))
    return elevation, dx, dy


def upsample(z: Any, factor: int) -> Any:
    """Return a bilinear refinement of the grid ``z``."""

    def along_rows(a: Any) -> Any:
        at = np.linspace(0, len(a) - 1, len(a) * factor)
        low = np.minimum(at.astype(int), len(a) - 2)
        weight = (at - low)[:, None]
        return a[low] * (1 - weight) + a[low + 1] * weight

    return np.ascontiguousarray(along_rows(along_rows(z).T).T)


def smooth(z: Any, passes: int = 4) -> Any:
    """``z`` after some passes of a 3x3 binomial filter; the border keeps its heights."""
    for _ in range(passes):
        out = z.copy()
        out[1:-1, 1:-1] = (
            0.25 * z[1:-1, 1:-1]
            + 0.125 * (z[:-2, 1:-1] + z[2:, 1:-1] + z[1:-1, :-2] + z[1:-1, 2:])
            + 0.0625 * (z[:-2, :-2] + z[:-2, 2:] + z[2:, :-2] + z[2:, 2:])
        )
        z = out
    return z


def slope(z: Any, dx: float, dy: float) -> Any:
    """Return the steepest slope at every point, in degrees."""
    down, right = np.gradient(z, dy, dx)
    return np.degrees(np.arctan(np.hypot(down, right)))


def hillshade(z: Any, dx: float, dy: float) -> Any:
    """Matplotlib's own shading with the sun in the north-west."""
    return LightSource(azdeg=315, altdeg=45).hillshade(z, vert_exag=2.0, dx=dx, dy=dy)


def statistics(z: Any, smoothed: Any, steepness: Any) -> dict[str, float]:
    """Statistics of the terrain, by name."""
    rough = z - smoothed
    return {
        "mean elevation (m)": float(np.mean(z)),
        "standard deviation (m)": float(np.std(z)),
        "relief (m)": float(np.max(z) - np.min(z)),
        "roughness (m)": float(np.sqrt(np.mean(rough**2))),
        "mean slope (degrees)": float(np.mean(steepness)),
        "steeper than 15 degrees (%)": 100 * float(np.mean(steepness > 15)),
    }


def analyse(z: Any, dx: float, dy: float) -> tuple[dict[str, Any], dict[str, float]]:
    """All maps and all statistics of the demo, by name."""
    smoothed = smooth(z)
    steepness = slope(smoothed, dx, dy)
    shade = hillshade(z, dx, dy)
    maps = {"elevation": z, "smoothed": smoothed, "slope": steepness, "hillshade": shade}
    return maps, statistics(z, smoothed, steepness)
