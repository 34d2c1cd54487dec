"""What the floor gains: calls of plain NumPy with and without its parts, each in a process of its own.

    python -m benchmarks.numpy_floor [--rounds N]

No code is compiled.  Printed are microseconds in NumPy, and how many times faster each part of the floor, and
all of it, is in the least of some rounds, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from timeit import repeat

import numpy as np

PARTS = ("off", "memory", "calls", "threads", "on")
CALLS = {
    "a + b of 10 elements": "s + s",
    "np.maximum(a, 0) of 10": "np.maximum(s, 0)",
    "a *= 0.5 of 10": "s.__imul__(0.5)",
    "a.sum() of 10": "s.sum()",
    "np.max(a) of 10": "np.max(s)",
    "a + b of 1,000": "m + m",
    "a * b + a of 100,000": "l * l + l",
    "np.exp(a) of 100,000": "np.exp(l)",
    "a * b + a of 4,000,000": "h * h + h",
    "np.exp(a) of 4,000,000": "np.exp(h)",
    "np.zeros(4,000,000) += 1": "np.zeros(4_000_000).__iadd__(1.0)",
    "five points of 1,000 x 1,000": "u[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]",
    "columns of 1,000 x 1,000": "u.sum(0)",
    "x - y of 1,000 x 1 and 1,000": "u[:, :1] - u[0]",
    "differences of 1,000 points": "u[:, None, :3] - u[:, :3]",
    "np.where of 1,000 x 1,000": "np.where(u > 0.5, u, 0.0)",
    "rows of 200,000 x 5": "u.reshape(-1, 5).sum(1)",
    "np.fft.rfft2 of 1,000 x 1,000": "np.fft.rfft2(u)",
}


def measure() -> None:
    """Print the seconds of each call in this process."""
    import dcarray as dc

    dc.info()  # puts the floor under NumPy
    rng = np.random.default_rng(0)
    names = {"np": np, "u": rng.random((1000, 1000))}
    names.update(
        {name: rng.random(n) for name, n in zip("smlh", (10, 1000, 100_000, 4_000_000), strict=True)}
    )
    least = {}
    for text in CALLS.values():
        once = min(repeat(text, globals=names, number=3, repeat=3)) / 3
        number = max(1, int(0.01 / once))
        least[text] = min(repeat(text, globals=names, number=number, repeat=9)) / number
    print(json.dumps(least))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure()
        return 0
    found: dict[str, dict[str, float]] = {part: {} for part in PARTS}
    for _ in range(options.rounds):
        for part in PARTS:
            command = [sys.executable, "-m", "benchmarks.numpy_floor", "--measure"]
            environment = {**os.environ, "DCARRAY_FLOOR": part}
            done = subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE)
            for text, seconds in json.loads(done.stdout).items():
                found[part][text] = min(seconds, found[part].get(text, seconds))
    print(f"{'':30}{'NumPy, us':>12}" + "".join(f"{part:>9}" for part in PARTS[1:]))
    for name, text in CALLS.items():
        plain = found["off"][text]
        print(
            f"{name:30}{plain * 1e6:12,.1f}"
            + "".join(f"{plain / found[part][text]:9.2f}" for part in PARTS[1:])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
