"""Loops over every n-th element: they are vectorised, with NumPy's results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.ir.text import parse
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.kernel.specialise import specialise
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.nest import access


def optimised(step: int, dtype: str = "f64", value: str = "sqrt(x[{step}*i])", known: bool = False) -> str:
    value = value.format(step=step)
    region = parse(
        f"region() {{ in x: {dtype}[{4000 * step}];  out y: {dtype}[4000]\ny[i] = {value} for i<4000\n}}"
    )
    kernel, binding = scheduler.schedule(region.body[0], region)
    if known:  # as of what a loop launches in each turn
        kernel, _ = specialise(kernel, binding)
        assert str(step) in kernel_text(kernel)
    return engine.optimised(emit(kernel, engine.machine()))


def test_strides_are_gathered() -> None:
    machine = engine.machine()
    if not machine.masks:
        pytest.skip("whether vectors are gathered is LLVM's to say on this processor")
    for step in (2, 3, 100):
        found = optimised(step)
        assert f"@llvm.sqrt.v{machine.vector_bits // 64}f64" in found
        assert "@llvm.masked.gather" in found
        assert "icmp ne i64 %n" not in found  # not behind a look whether the stride is 1


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


@pytest.mark.parametrize("step", [2, 3, 8, -2])
def test_what_lies_between_raises_nothing_in_loops(step: int) -> None:
    # Strides are constants of what a loop launches in each turn.
    n = 300_000
    x, out = np.full(n * abs(step), -1.0), np.zeros(n)
    x[:: abs(step)] = 4.0
    x = x if step > 0 else x[: (n - 1) * abs(step) + 1]

    @dc.accelerate
    def work(x: Any, out: Any, turns: int) -> Any:
        for _ in range(turns):
            out[:] = 0.5 * out + np.sqrt(x[::step])
            out[1:] = out[1:] * 0.25 + 1.0 / np.sqrt(x[::step][1:])
        return out

    expected = out.copy()
    for _ in range(7):
        expected[:] = 0.5 * expected + 2.0
        expected[1:] = expected[1:] * 0.25 + 0.5
    with np.errstate(all="raise"), dc.options(jit="eager", eager_below=0, cache_dir=None):
        for _ in range(3):
            np.testing.assert_array_equal(work(x, out.copy(), 7), expected)


def test_strides_that_are_known_are_no_reason_to_load_what_lies_between() -> None:
    for step in (2, 3, 8):
        assert "= load <" not in optimised(step, known=True)


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "?"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_narrow_elements_are_loaded_with_what_lies_between_and_taken_out_first(kind: str, step: int) -> None:
    x = np.zeros((1000, step), kind)
    x[:, 0] = np.arange(1000) % 2 + 1
    y = np.full((1000, step), 3.0)
    y[:, 1:] = 0.0
    with np.errstate(all="raise"), dc.options(jit="eager", eager_below=0):
        for narrow in (dc.asarray(x), dc.asarray(x.ravel())[:, None][::1].reshape(1000, step)):
            got = 1.0 / narrow[:, 0] + 2.0 / (narrow[:, 0] * dc.asarray(y)[:, 0])
            np.testing.assert_array_equal(np.asarray(got), 1.0 / x[:, 0] + 2.0 / (x[:, 0] * y[:, 0]))
        quotient = dc.asarray(x)[:, 0] // dc.asarray(x)[::-1, 0] if kind != "?" else np.zeros(1000)
        expected = x[:, 0] // x[::-1, 0] if kind != "?" else np.zeros(1000)
        np.testing.assert_array_equal(np.asarray(quotient), expected)
        with pytest.raises(FloatingPointError):
            np.asarray(1.0 / dc.asarray(x)[:, 1])


def test_colours_are_taken_out_of_vectors() -> None:
    if not engine.machine().masks:
        pytest.skip("what is vectorised is LLVM's to say on this processor")
    assert "shufflevector" in optimised(3, "u8", "invert(x[3*i])")
    assert "shufflevector" not in optimised(access.LANES + 1, "u8", f"invert(x[{access.LANES + 1}*i])")


TYPES = ("f8", "f4", "i8", "i4", "i2", "u1", "?", "c16", "c8")


@settings(deadline=None, max_examples=24)
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
