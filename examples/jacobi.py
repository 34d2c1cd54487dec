"""Two sweeps of Jacobi's method for Poisson's equation, as a function that is compiled ahead of time.

``python -m dcarray export examples/jacobi.py:step --target vitis --out DIR`` makes a circuit of it.
"""

import numpy as np

import dcarray as dc

N = M = 128


@dc.program
def step(u: dc.types.float32[N, M], f: dc.types.float32[N, M]):
    """Return the grid after two sweeps; its border does not change."""
    v = u.copy()
    v[1:-1, 1:-1] = np.float32(0.25) * (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1]
    )
    w = v.copy()
    w[1:-1, 1:-1] = np.float32(0.25) * (
        v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - f[1:-1, 1:-1]
    )
    return w


if __name__ == "__main__":
    grid = np.zeros((N, M), np.float32)
    grid[0] = 1
    for _ in range(200):
        grid = step(grid, np.zeros_like(grid))
    print(f"the mean of the grid is {grid.mean():.4f}")
