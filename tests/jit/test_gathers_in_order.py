"""Arrays gathered at integer places are named in loops; what follows from their order in memory."""

from typing import Any

import numpy as np
import pytest
from compare_accelerated import alike

RNG = np.random.default_rng(0)


def columns(x: Any, at: Any, turns: int) -> Any:
    for _ in range(turns):
        found = x[:, at]
        x *= 0.5
        x += 0.5 * found
    return x


def pairs(x: Any, row: Any, column: Any, turns: int) -> Any:
    for _ in range(turns):
        found = x[:, row, column]
        there = found - 1.0
        x *= 0.5
        x += there[:, :, :]
    return x


def planes(x: Any, at: Any, turns: int) -> Any:
    total = np.zeros(at.shape + x.shape[1:])
    for k in range(turns):
        found = x[at]
        total += k * found
    return total


def carried(x: Any, at: Any, turns: int) -> Any:
    """The order in memory of a result may be seen: the loop is NumPy's."""
    for _ in range(turns):
        x = 0.5 * (x + x[:, at])
    return x


def reshaped(x: Any, at: Any, turns: int) -> Any:
    """What NumPy lays out otherwise is not taken for memory in C order."""
    total = np.zeros(x.shape[0] * at.size)
    for _ in range(turns):
        found = x[:, at]
        flat = found.reshape(-1)
        flat[0] = 5.0
        total = total + flat + found[0, 0]
    return total


@pytest.mark.parametrize(("f", "args", "compiled"), [
    (columns, (RNG.random((7, 9)), RNG.integers(-9, 9, 9), 400), True),
    (pairs, (RNG.random((3, 5, 6)), RNG.integers(0, 5, (5, 6)), RNG.integers(0, 6, (5, 6)), 400), True),
    (planes, (RNG.random((5, 4)), RNG.integers(0, 5, (2, 3)), 400), True),
    (carried, (RNG.random((7, 9)), RNG.integers(-9, 9, 9), 400), False),
    (reshaped, (RNG.random((4, 6)), RNG.integers(0, 6, 5), 400), False),
    (columns, (RNG.random((7, 9)), np.full(9, 9), 400), False),  # out of bounds: NumPy's error
])  # fmt: skip
def test_gathered_arrays_of_several_axes(f: Any, args: tuple[Any, ...], compiled: bool) -> None:
    loops = alike(f, *args)
    assert loops or not compiled
