"""Horizontal diffusion, the usual weather stencil, in plain NumPy: twenty operations, one kernel.

``python examples/diffusion.py [FOLDER]`` prints the explanation and draws it as ``diffusion.svg``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc


def diffuse(u: Any, strength: Any) -> Any:
    """Return the field after one step: a Laplacian, two limited fluxes, an update."""
    lap = 4.0 * u[1:-1, 1:-1] - (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    down = lap[1:, 1:-1] - lap[:-1, 1:-1]
    down = np.where(down * (u[2:-1, 2:-2] - u[1:-2, 2:-2]) > 0, 0.0, down)
    right = lap[1:-1, 1:] - lap[1:-1, :-1]
    right = np.where(right * (u[2:-2, 2:-1] - u[2:-2, 1:-2]) > 0, 0.0, right)
    return u[2:-2, 2:-2] - strength * (down[1:, :] - down[:-1, :] + right[:, 1:] - right[:, :-1])


def main(folder: Path) -> None:
    """Explain one step, and compare it with NumPy's."""
    field, strength = np.random.default_rng(1).random((1000, 1000)), np.full((996, 996), 0.025)
    u, s = dc.asarray(field), dc.asarray(strength)
    shown = dc.explain(diffuse, u, s)
    print(shown)
    print("\ndrawing:", shown.save(folder / "diffusion.svg"))
    assert np.array_equal(np.asarray(diffuse(u, s)), diffuse(field, strength))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
