"""Heat in a square plate: plain NumPy, without any use of dcarray or of processes.

``python examples/heat.py [POINTS] [STEPS]`` is NumPy's.
``mpiexec -n 4 python -m dcarray run --report examples/heat.py`` lays the plate out in blocks over four
processes, which exchange what the steps need of their neighbours.
"""

import sys
import time

import numpy as np


def plate(n):
    """Return a cold plate with a hot edge."""
    u = np.zeros((n, n))
    u[0] = 100.0
    return u


def heat(n, steps):
    """Return the plate after some time steps."""
    u, v = plate(n), plate(n)
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def main():
    """Simulate the plate and print its mean temperature."""
    sizes = [int(text) for text in sys.argv[1:] if text.isdigit()]
    n, steps = (*sizes, *(2000, 100)[len(sizes) :])
    begin = time.perf_counter()
    u = heat(n, steps)
    mean, warm = float(u.mean()), int((u > 1).sum())
    print(f"{n} x {n}, {steps} steps: mean {mean:.9f}, {warm:,} points above 1")
    print(f"{time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
