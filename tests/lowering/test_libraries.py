"""Library calls: every window without a wrong answer, with and without BLAS."""

import itertools

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir import dims, interp
from dcarray.ir.nodes import Array, Call, Index, Region, Symbol, Window
from dcarray.ir.verify import verify
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.libraries import LIBRARIES
from dcarray.lowering.libraries import dispatch
from dcarray.lowering.runtime import array_memory

# How a matrix of (rows, columns) lies in its array: the array's shape and the two indices, with r and c.
PLACES = {
    "plain": (lambda r, c: (r, c), (Index(0, 1, 0), Index(0, 1, 1))),
    "transposed": (lambda r, c: (c, r), (Index(0, 1, 1), Index(0, 1, 0))),
    "inside": (lambda r, c: (r + 3, c + 4), (Index(2, 1, 0), Index(1, 1, 1))),
    "transposed inside": (lambda r, c: (c + 1, r + 2), (Index(1, 1, 1), Index(1, 1, 0))),
    "every other": (lambda r, c: (2 * r, 2 * c), (Index(1, 2, 0), Index(0, 2, 1))),
    "every other row": (lambda r, c: (2 * r, c), (Index(1, 2, 0), Index(0, 1, 1))),
    "backwards": (lambda r, c: (r, c), "flip"),
}


def window(name, place, rows, columns):
    shape, index = PLACES[place]
    if index == "flip":
        index = (Index(rows - 1, -1, 0), Index(columns - 1, -1, 1))
    return Window(name, (rows, columns), index), shape(rows, columns)


def run(region, memory_, values=None):
    verify(region)
    want = interp.run(region, {name: array.copy() for name, array in memory_.items()}, values)
    compiled = compile_region(region)
    arrays = [memory_[name] for name in compiled.arrays]
    symbols = [values[symbol.name] for symbol in region.symbols] if values else ()
    compiled.run(arrays, [array_memory.address_of(array) for array in arrays], symbols, 2)
    for name, array in want.items():
        tolerance = 1e-5 if array.dtype.char in "fF" else 1e-12
        np.testing.assert_allclose(memory_[name], array, rtol=tolerance, atol=tolerance)
    return compiled


def matmul(dtype, places, shape=(3, 4, 5)):
    m, k, n = shape
    rng = np.random.default_rng(0)
    windows, arrays, given = [], [], {}
    for name, place, (rows, columns) in zip("oab", places, ((m, n), (m, k), (k, n)), strict=True):
        one, whole = window(name, place, rows, columns)
        windows.append(one)
        arrays.append(Array(name, np.dtype(dtype), whole, "inout" if name == "o" else "in"))
        given[name] = (rng.integers(-9, 9, whole) + (1j * rng.random(whole) if dtype in "FD" else 0)).astype(
            dtype
        )
    return Region((), tuple(arrays), (Call("blas.matmul", tuple(windows[1:]), (windows[0],)),)), given


@pytest.mark.parametrize("dtype", "fdFD")
def test_every_place_of_every_operand(dtype):
    for places in itertools.product(PLACES, repeat=3):
        if dtype == "d" or len(set(places)) < 3:  # all combinations with float64 only
            region, given = matmul(dtype, places)
            assert run(region, given).stats["calls"] == 1


@pytest.mark.parametrize("dtype", "?bBhilQfdFD")
@pytest.mark.parametrize("place", PLACES)
def test_without_a_library(place, dtype, monkeypatch):
    monkeypatch.setitem(LIBRARIES, "blas.matmul", [])
    region, given = matmul(dtype, (place, "plain", place))
    assert run(region, given).stats == {"kernels": 1, "calls": 0, "interpreted": 0}


def test_what_neither_can_is_interpreted():
    region, given = matmul("e", ("plain", "plain", "plain"))
    assert run(region, given).stats == {"kernels": 0, "calls": 0, "interpreted": 1}


@pytest.mark.parametrize("blas", [True, False])
@pytest.mark.parametrize("left, right, out", [
    ((6, 3, 4), (6, 4, 5), (6, 3, 5)), ((3, 4), (6, 4, 5), (6, 3, 5)),
    ((6, 1, 3, 4), (2, 4, 5), (6, 2, 3, 5)), ((4,), (4, 5), (5,)), ((3, 4), (4,), (3,)),
    ((6, 3, 4), (4,), (6, 3)), ((4,), (6, 4, 5), (6, 5)), ((4,), (4,), ()), ((3, 0), (0, 5), (3, 5)),
    ((0, 4), (4, 5), (0, 5)),
])  # fmt: skip
def test_stacks_and_vectors(left, right, out, blas, monkeypatch):
    if not blas:
        monkeypatch.setitem(LIBRARIES, "blas.matmul", [])
    double = np.dtype(float)

    def whole(name, shape):
        return Window(name, shape, tuple(Index(0, 1, k) for k in range(len(shape))))

    arrays = (Array("a", double, left, "in"), Array("b", double, right, "in"), Array("o", double, out, "out"))
    region = Region(
        (), arrays, (Call("blas.matmul", (whole("a", left), whole("b", right)), (whole("o", out),)),)
    )
    rng = np.random.default_rng(0)
    given = {"a": rng.random(left), "b": rng.random(right), "o": np.full(out, np.nan)}
    verify(region)
    compiled = compile_region(region)
    run_plan(compiled, given, (), 2)
    np.testing.assert_allclose(given["o"], given["a"] @ given["b"], rtol=1e-13)


def test_sizes_may_be_symbols():
    n = dims.symbol("n", 2)
    double = np.dtype(float)
    arrays = (Array("a", double, (n, n), "in"), Array("o", double, (n, n), "inout"))
    inner = Window("a", (n - 1, n - 1), (Index(1, 1, 0), Index(0, 1, 1)))
    turned = Window("a", (n - 1, n - 1), (Index(n - 2, -1, 1), Index(1, 1, 0)))
    target = Window("o", (n - 1, n - 1), (Index(0, 1, 0), Index(1, 1, 1)))
    region = Region((Symbol("n", 2),), arrays, (Call("blas.matmul", (inner, turned), (target,)),))
    for size in (2, 5, 9):
        rng = np.random.default_rng(size)
        run(region, {"a": rng.random((size, size)), "o": rng.random((size, size))}, {"n": size})


def test_a_view_has_an_axis_for_every_axis_of_the_domain():
    a = np.arange(24.0).reshape(4, 6)
    cases = [
        (Window("a", (3, 2), (Index(1, 1, 0), Index(5, -3, 1))), a[1:4, 5::-3]),
        (Window("a", (6, 4), (Index(0, 1, 1), Index(0, 1, 0))), a.T),
        (Window("a", (2, 6), (Index(3), Index(0, 1, 1))), np.broadcast_to(a[3], (2, 6))),
        (Window("a", (4, 2), (Index(3, -1, 0), Index(2))), np.broadcast_to(a[::-1, 2:3], (4, 2))),
        (Window("a", (), (Index(3), Index(2))), a[3, 2]),
        (Window("a", (0, 6), (Index(0, 1, 0), Index(0, 1, 1))), a[:0]),
    ]
    for one, want in cases:
        got = dispatch.view_of(one)(a, {})
        assert got.shape == np.shape(want) and (got == want).all()


@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("stack", [(6,), (3, 2), (1, 4)])
@pytest.mark.parametrize("last", [(), (1,), (1, 1)])
@pytest.mark.parametrize("rows", [1, 5])
def test_a_stack_with_one_matrix(dtype, stack, last, rows):
    if len(last) > len(stack):
        last = (1,) * len(stack)
    rng = np.random.default_rng(0)
    shapes = {"o": (*stack, rows, 4), "a": (*stack, rows, 3), "b": (*last, 3, 4)}
    given = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    arrays, windows = [], []
    for name, shape in shapes.items():
        arrays.append(Array(name, np.dtype(dtype), shape, "inout" if name == "o" else "in"))
        windows.append(Window(name, shape, tuple(Index(0, 1, k) for k in range(len(shape)))))
    run(Region((), tuple(arrays), (Call("blas.matmul", tuple(windows[1:]), (windows[0],)),)), given)
    np.testing.assert_allclose(given["o"], given["a"] @ given["b"], rtol=1e-4)
