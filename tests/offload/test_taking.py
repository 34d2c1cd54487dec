"""Elements at arrays of integers, and arrays joined of parts: on the device, like NumPy's."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from devices import DEVICE, needs_device

import dcarray as dc

pytestmark = needs_device


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Plans are made before the first run."""
    with dc.options(jit="eager"):
        yield


def given() -> tuple[np.ndarray, ...]:
    """An array, and arrays of indices into its axes: from both ends, and from the beginning alone."""
    rng = np.random.default_rng(5)
    q = rng.random((4, 20, 1200))
    return q, rng.integers(-20, 20, (16, 1200)), rng.integers(-300, 300, (16, 1200)), rng.integers(0, 20, 16)


KEYS: dict[str, Callable[..., Any]] = {
    "an axis": lambda q, i, j, k: q[:, k],
    "two axes": lambda q, i, j, k: q[:, i, j],
    "the first axis": lambda q, i, j, k: q.transpose(2, 0, 1)[j],
    "an integer first": lambda q, i, j, k: q[1, i, j],
    "an integer last": lambda q, i, j, k: q[:, i, -3],
    "a slice beside": lambda q, i, j, k: q[::-1, k, 1::2],
    "broadcast": lambda q, i, j, k: q[1:, k[:, None], j],
    "parts of arrays": lambda q, i, j, k: q[:, i[:, ::2], j[3:4, ::2]],
    "a part": lambda q, i, j, k: q[2][k][:, ::3],
    "computed": lambda q, i, j, k: (q * 2)[:, (i + 1) // 2, j] - q[:, i, j],
    "short integers": lambda q, i, j, k: q[:, i.astype(np.int8), j],
    "flat": lambda q, i, j, k: q.reshape(-1)[j + 700],
}


@pytest.mark.parametrize("work", KEYS.values(), ids=KEYS)
def test_elements_at_arrays_of_integers(work: Callable[..., Any]) -> None:
    plain = given()
    there = [dc.asarray(a, device=DEVICE) for a in plain]
    with dc.options(strict=True):  # nothing is NumPy's
        found = work(*there)
    assert type(found) is type(there[0])
    np.testing.assert_array_equal(np.asarray(found), work(*plain))


@pytest.mark.parametrize("shift", [(1, 0), (0, -1)])
def test_indices_out_of_bounds_raise_as_in_numpy(shift: tuple[int, int]) -> None:
    q, i, j, _ = given()
    i[0, 0], j[0, 0] = 19, -1200
    with pytest.raises(IndexError) as expected:
        q[:, i + shift[0], j + shift[1]]
    q, i, j = (dc.asarray(a, device=DEVICE) for a in (q, i, j))
    with pytest.raises(IndexError) as found:
        q[:, i + shift[0], j + shift[1]]
    assert str(found.value) == str(expected.value)


def test_indices_that_change_are_looked_at_again() -> None:
    q, i, j, _ = given()
    there, x, y = (dc.asarray(a, device=DEVICE) for a in (q, i, j))
    first = there[:, x, y]
    x //= 2
    second = there[:, x, y]
    x[:1] = 7
    third = there[:, x, y]
    np.testing.assert_array_equal(np.asarray(first), q[:, i, j])
    i //= 2
    np.testing.assert_array_equal(np.asarray(second), q[:, i, j])
    i[:1] = 7
    np.testing.assert_array_equal(np.asarray(third), q[:, i, j])
    x[0] = 20
    with pytest.raises(IndexError):
        there[:, x, y]


def test_joined_arrays_are_made_on_the_device() -> None:
    q = given()[0]
    there = dc.asarray(q, device=DEVICE)
    for join in (
        lambda a: np.stack([a[0] + 1, a[1] * 2, a[2], a[3]]) * 2,
        lambda a: np.concatenate([a, a[:, ::2] + a[:, 1::2]], axis=1),
        lambda a: np.stack([a.astype(np.float32), a], axis=-1),
        lambda a: np.hstack([a, a]),
    ):
        np.testing.assert_array_equal(np.asarray(join(there)), join(q))
