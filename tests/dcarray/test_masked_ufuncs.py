"""Ufuncs under masks raise nothing for elements that are not chosen, wherever in an array these are."""

import warnings
from typing import Any

import numpy as np
import pytest

import dcarray as dc

LENGTHS = (1, 2, 3, 5, 8, 11, 16, 19, 37)


@pytest.mark.one_process("the lengths of blocks are others")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(("name", "bad"), [
    ("divide", (1.0, 0.0)), ("divide", (0.0, 0.0)), ("multiply", (np.inf, 0.0)),
    ("add", (np.inf, -np.inf)), ("subtract", (np.inf, np.inf)), ("sqrt", (-1.0,)),
    ("reciprocal", (0.0,)), ("square", (60000.0,)),
    ("floor_divide", (1.0, 0.0)), ("remainder", (1.0, 0.0)), ("log", (0.0,)), ("power", (0.0, -1.0)),
])  # fmt: skip
def test_what_is_not_chosen_raises_nothing(name: str, bad: tuple[float, ...], dtype: str) -> None:
    function: Any = getattr(np, name)
    if dtype[0] == "c" and name in ("floor_divide", "remainder"):
        pytest.skip("not of complex numbers")
    with dc.options(jit="eager", eager_below=0), warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in LENGTHS:
            for k in {0, n // 2, n - 1}:
                arrays = [np.full(n, 2.0).astype(dtype) for _ in bad]
                for a, value in zip(arrays, bad, strict=True):
                    a[k] = value
                mask = np.arange(n) != k
                want = function(*arrays, out=np.full(n, 7, dtype), where=mask)
                given = [dc.asarray(a) for a in arrays]
                out = dc.asarray(np.full(n, 7, dtype))
                got = dc.evaluate(function(*given, out=out, where=dc.asarray(mask)))
                assert np.asarray(got).tobytes() == want.tobytes(), (n, k)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_is_chosen_still_raises(dtype: str) -> None:
    x, y = np.ones(13, dtype), np.zeros(13, dtype)
    with dc.options(jit="eager", eager_below=0), pytest.warns(RuntimeWarning, match="divide by zero"):
        dc.evaluate(np.divide(dc.asarray(x), dc.asarray(y), out=dc.asarray(x), where=dc.asarray(x) > 0))
