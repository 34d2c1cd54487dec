"""Loops over every n-th element: they are vectors' loops, and give what NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.ir.text import parse
from dcarray.lowering import schedule
from dcarray.lowering.llvm import engine
from dcarray.lowering.llvm.emit import emit


def optimised(step: int, dtype: str = "f64") -> str:
    region = parse(
        f"region() {{ in x: {dtype}[{4000 * step}];  out y: {dtype}[4000]\n"
        f"y[i] = sqrt(x[{step}*i]) for i<4000\n}}"
    )
    kernel, _ = schedule.schedule(region.body[0], region)
    return engine.optimised(emit(kernel, engine.machine()))


def test_strides_are_gathered() -> None:
    machine = engine.machine()
    if not machine.masks:
        pytest.skip("whether vectors are gathered is LLVM's to say on this processor")
    for step in (2, 3, 100):
        text = optimised(step)
        assert f"@llvm.sqrt.v{machine.vector_bits // 64}f64" in text
        assert "@llvm.masked.gather" in text
        assert "icmp ne i64 %n" not in text  # not behind a look whether the stride is 1


def test_what_lies_between_raises_nothing() -> None:
    # Were the stride a constant, LLVM would load all that lies between, and take its square root, too.
    rng = np.random.default_rng(0)
    x = rng.random((1000, 4))
    x[:, 1:] = [-1.0, np.inf, 0.0]
    with np.errstate(all="raise"), dc.options(jit="eager", eager_below=0):
        for n in (1, 2, 4):
            rows = dc.asarray(np.ascontiguousarray(x[:, :n]))
            y = 1.0 / np.sqrt(rows[:, 0]) + rows[:, 0] * rows[::-1, 0]
            np.testing.assert_array_equal(np.asarray(y), 1.0 / np.sqrt(x[:, 0]) + x[:, 0] * x[::-1, 0])
        with pytest.raises(FloatingPointError):
            np.asarray(np.sqrt(dc.asarray(x)[:, 1]))


TYPES = ("f8", "f4", "i8", "i4", "i2", "u1", "?", "c16", "c8")


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.integers(1, 7),
    st.integers(1, 5),
    st.integers(0, 90),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_every_nth_as_numpy(
    kind: str, other: str, step: int, lanes: int, count: int, backwards: bool, random: Any
) -> None:
    rng = np.random.default_rng(random.randrange(2**32))
    x = rng.integers(0, 100, count * step + 3).astype(kind)
    points = rng.integers(0, 100, (count, lanes)).astype(other)
    out = np.zeros((count, step), kind)

    def work(x: Any, points: Any, out: Any) -> Any:
        strided = x[: count * step : step]
        if backwards:
            strided = strided[::-1]
        out[:, step // 2] = strided + strided
        pairs = points[:, 0] - points[:, :1].T if points.dtype != np.bool_ else points[:, 0] ^ points[:, :1].T
        return strided * points[:, lanes - 1], pairs, (points[:, 0] * strided).sum(), out

    expected = work(x, points, out.copy())
    with dc.options(jit="eager", eager_below=0):
        got = work(dc.asarray(x), dc.asarray(points), dc.asarray(out.copy()))
        for e, g in zip(expected, got, strict=True):
            assert e.dtype == g.dtype
            np.testing.assert_array_equal(np.asarray(g), e)
