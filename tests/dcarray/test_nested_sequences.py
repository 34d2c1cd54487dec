"""Arrays in sequences of sequences, and between brackets: NumPy's results, whatever the sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

_CALLS: list[Callable[[Any, Any, Any], Any]] = [
    lambda np, x, y: np.block([[x, y], [y, x]]),
    lambda np, x, y: np.block([[[x, y]], [[y, x]]]),
    lambda np, x, y: np.block([x, 1.0]),
    lambda np, x, y: np.block([[x]]),
    lambda np, x, y: np.block(x),
    lambda np, x, y: np.concatenate(([x, y], [y, x])),
    lambda np, x, y: np.broadcast_arrays(*[[x, y], [y, x]]),
    lambda np, x, y: np.stack([[x, y], (y, x)], 1),
    lambda np, x, y: np.piecewise(x, [x < 1, x > 1], [0, lambda v: -v]),
    lambda np, x, y: np.select([x < 1, x > y], [x, y]),
    lambda np, x, y: np.r_[x, 3, y],
    lambda np, x, y: np.r_[0, x[:0], y],
    lambda np, x, y: np.r_[x],
    lambda np, x, y: np.r_["0,2", x, y],
    lambda np, x, y: np.r_[[x, y]],
    lambda np, x, y: np.r_[-1:1:5j, x],
    lambda np, x, y: np.c_[x, y],
    lambda np, x, y: np.r_[x, y.astype("U4")],
    lambda np, x, y: np.mgrid[0:3, 0:2],
]


@pytest.mark.parametrize("below", [16384, 0])
@pytest.mark.parametrize("n", [3, 20_000])
@pytest.mark.parametrize("call", _CALLS)
def test_nested(call: Callable[[Any, Any, Any], Any], n: int, below: int) -> None:
    x, y = np.linspace(0, 2, n), np.linspace(2, 0, n, dtype=np.float32)
    wanted = call(np, x, y)
    with dc.options(eager_below=below):
        if call not in _BRACKETS:  # which NumPy does not dispatch
            _same(call(np, dc.asarray(x), dc.asarray(y)), wanted)
        _same(call(dc, dc.asarray(x), y), wanted)
        found = call(dc, dc.asarray(x), dc.asarray(y))
        _same(found, wanted)
        if type(wanted) is np.ndarray:
            assert type(found) is dc.ndarray
            if wanted.flags.writeable and not np.shares_memory(wanted, x):
                found[...] = 5  # of no memory that was given
                np.testing.assert_array_equal(np.linspace(0, 2, n), x)


_BRACKETS = _CALLS[10:]


class _Items:
    """A sequence of a program's own."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, k: int) -> Any:
        return self.items[k]

    def __iter__(self) -> Any:
        return iter(self.items)


@pytest.mark.parametrize("n", [3, 20_000])
def test_sequences_of_other_classes(n: int) -> None:
    x, y = np.linspace(0, 2, n), np.linspace(2, 0, n)
    wrapped = _Items(dc.asarray(x) * 2, dc.asarray(y))
    for namespace in (np, dc):
        for name in ("concatenate", "stack", "vstack"):
            found = getattr(namespace, name)(wrapped)
            assert type(found) is dc.ndarray
            _same(found, getattr(np, name)(_Items(x * 2, y)))
        _same(namespace.concatenate(_Items(_Items(x), wrapped)[1]), np.concatenate([x * 2, y]))
    assert type(np.concatenate(_Items(x, y))) is np.ndarray


def _same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            _same(a, b)
    else:
        np.testing.assert_array_equal(np.asarray(found), wanted, strict=True)
