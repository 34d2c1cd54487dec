"""Chains of stencils, and what changes the ends of arrays between them: near these halos may stay valid."""

import random
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.comm import run

KINDS = ["wide", "rows", "row", "column", "corner", "edge", "all", "part", "see"]


def _steps(rng: random.Random, arrays: list[Any]) -> None:
    """The same steps for plain arrays and for those in blocks."""
    for _ in range(rng.randint(3, 8)):
        one, other = rng.sample(arrays, 2)
        kind = rng.choice(
            ["five", "five", "five", "wide", "rows", "row", "column", "corner", "edge", "all", "part", "see"]
        )
        turns = rng.choice([1, 2, 5, 9])
        if kind == "five":
            for _ in range(turns):
                for a, b in ((one, other), (other, one)):
                    b[1:-1, 1:-1] = a[1:-1, 1:-1] + a[:-2, 1:-1] - a[2:, 1:-1] + a[1:-1, :-2] - a[1:-1, 2:]
                    b[1:-1, 1:-1] %= 7
        elif kind == "wide":
            for _ in range(turns):
                other[2:-2, 2:-2] = (one[:-4, 2:-2] + one[4:, 2:-2] + one[2:-2, :-4] - one[2:-2, 4:]) % 5
                one[1:-1, 1:-1] = (other[:-2, :-2] + other[2:, 2:]) % 5
        elif kind == "rows":
            for _ in range(turns):
                other[1:-1] = (one[:-2] + one[2:]) % 5
                one[1:-1] = (other[:-2] - other[2:]) % 5
        elif kind == "row":
            one[rng.choice([0, 1, -1, -2])] = rng.randint(1, 9)
        elif kind == "column":
            one[:, rng.choice([0, 1, -1, -2])] = rng.randint(1, 9)
        elif kind == "corner":
            one[rng.choice([0, -1]), rng.choice([0, -1])] = rng.randint(1, 9)
        elif kind == "edge":
            one[0], one[-1] = other[1], other[-2]
        elif kind == "all":
            one += other
        elif kind == "part":
            one[3:9:2, 1:] += 1
        else:
            dc.evaluate(one) if isinstance(one, dc.ndarray) else None


@pytest.mark.parametrize("seed", range(60))
def test_halos_after_random_steps(seed: int) -> None:
    rng = random.Random(seed)
    ranks, shape = rng.choice([2, 3, 4, 6]), rng.choice([(40, 11), (24, 24), (13, 50)])
    starts = [np.random.default_rng(seed + k).integers(0, 9, shape).astype(float) for k in range(3)]
    wanted = [a.copy() for a in starts]
    _steps(random.Random(seed), wanted)

    def program() -> None:
        arrays = [dc.distribute(a.copy()) for a in starts]
        _steps(random.Random(seed), arrays)
        for got, want in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(got.gather(), want)

    with dc.options(jit="off", eager_below=0):
        run(ranks, program)
