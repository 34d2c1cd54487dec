"""Assignments that NumPy refuses: the same exception on wrapped arrays, whatever is wrong at once."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

DTYPES: Any = ["f8", "f4", "i8", "u1", "?", "c16", "c8", "U3", "S3", "O", "M8[s]", "m8[s]", "f2", "g", "V4"]
SHAPES = [(), (1,), (3,), (7,), (8,), (1, 8), (3, 8), (8, 8), (2, 1), (0,), (1, 1, 8), (2, 2, 2)]
INDICES: list[Any] = [
    0, -1, 9, -20, slice(None), slice(2, 5), slice(None, None, -2), slice(4, 2), slice(None, None, 0), ...,
    None, np.int64(2), True, 1.5, "a", slice(1.5), [0, 1], [9], [], np.array([1, 2]), np.array([0.5]),
    np.array([True] * 8), np.array([True] * 3), np.array(1),
]  # fmt: skip
OTHERS: list[Any] = [None, "x", "1.5", {}, [[1], [2, 3]], 1j, 2**70, -1, object(), [1, 2], [1j, 2j]]


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "done"


def _differs(seed: int, eager_below: int) -> str:
    """Make one assignment on both kinds of arrays; returns what differs, or nothing."""
    chance = random.Random(seed)
    shape = chance.choice([(), (0,), (1,), (8,), (8, 8), (2, 8), (8, 8, 2)])
    dtype = chance.choice(["f8", "f4", "i4", "c16", "?", "M8[s]", "U3", "O"])
    several = tuple(chance.choice(INDICES) for _ in range(chance.choice([1, 2, 2, 3])))
    key = chance.choice([(), chance.choice(INDICES), several, several])
    value: Any = np.zeros(chance.choice(SHAPES), chance.choice(DTYPES))
    if chance.random() < 0.15:
        value = chance.choice(OTHERS)
    plain = np.zeros(shape, dtype)
    with dc.options(eager_below=eager_below, jit="off"):
        x, given = dc.asarray(plain.copy()), value
        if dtype in ("f8", "f4", "i4", "c16") and shape and chance.random() < 0.5:
            x = x + x  # pending
        if isinstance(value, np.ndarray) and chance.random() < 0.6:
            given = dc.asarray(value)
        if chance.random() < 0.1:
            plain.flags.writeable = x.flags.writeable = False
        wanted = _outcome(lambda: plain.__setitem__(key, value))
        got = _outcome(lambda: x.__setitem__(key, given))
        case = f"{seed}: {dtype}{shape}[{key!r}] = {value!r} with eager_below={eager_below}"
        if got != wanted:
            return f"{case} gives {got}, with NumPy {wanted}"
        return "" if repr(np.asarray(x)) == repr(plain) else f"{case} has other values"


@pytest.mark.parametrize("eager_below", [0, 5, 1000])
def test_random_assignments(eager_below: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(filter(None, (_differs(seed, eager_below) for seed in range(1500))))
    assert not found, "\n".join(found[:10])


@pytest.mark.parametrize("slices", [(slice(None, None, 0), 0), (slice(None, 1.5), slice(2))])
def test_indices_are_counted_before_they_are_looked_at(slices: Any) -> None:
    with dc.options(eager_below=0):
        x = dc.asarray(np.ones(8)) * 2
        for call in (lambda: x[slices], lambda: x.__setitem__(slices, 1)):
            with pytest.raises(IndexError, match="too many indices"):
                call()
