"""``blas.matmul`` as steps of a program, and products and transposes of distributed arrays, against NumPy."""

import operator
from functools import reduce as fold
from typing import Any

import numpy as np
import pytest
from comm_layouts import layouts, scatter
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.comm.algorithms.diagonals import diagonal, trace
from dcarray.comm.algorithms.products import einsum, matmul
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.placement.distributed_forms import DistributedForm, Operand
from dcarray.comm.planning.placement.matmul_call import plan_matmul
from dcarray.comm.planning.rank_program.execution import interpreted
from dcarray.comm.planning.rank_program.steps import Execution, Memory, Reduce
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array
from dcarray.ir import interp
from dcarray.ir.nodes import Array as Declared
from dcarray.ir.nodes import Call, Index, Region, Window

SHAPES = [
    ((4, 5), (5, 6)), ((5,), (5, 6)), ((4, 5), (5,)), ((5,), (5,)), ((3, 4, 5), (3, 5, 2)),
    ((3, 4, 5), (5, 2)), ((4, 5), (3, 5, 2)), ((3, 1, 4, 5), (2, 5, 6)), ((1, 4, 5), (3, 5, 2)),
    ((3, 7, 1, 5), (5, 5)), ((2, 4, 0), (0, 3)), ((3, 4, 5), (5,)), ((5,), (3, 5, 2)), ((0, 5), (5, 1)),
    ((1, 1), (1, 1)),
]  # fmt: skip


@st.composite
def placed(draw: st.DrawFn, shape: tuple[int, ...], ranks: int) -> Layout | None:
    layout = draw(layouts(shape, ranks)) if draw(st.booleans()) else None
    return None if layout is None else Layout(shape, layout.grid, layout.axes)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Any, ...]:
    a, b = draw(st.sampled_from(SHAPES))
    out = np.matmul(np.ones(a), np.ones(b)).shape
    ranks = draw(st.integers(1, 8))
    windows, operands = [], []
    for name, shape in zip("abc", (a, b, out), strict=True):
        # The array's axes in another order than the window's; those of one element may be missing.
        some = [k for k, n in enumerate(shape) if n != 1 or draw(st.booleans())]
        order = draw(st.permutations(some))
        index = [Index(0) if shape[k] == 1 and draw(st.booleans()) else Index(0, 1, k) for k in order]
        windows.append(Window(name, shape, tuple(index)))
        own = tuple(shape[k] for k in order)
        layout = draw(placed(own, ranks))
        free = name == "c" and layout is None and draw(st.booleans())
        operands.append(Operand(own, np.dtype("f8"), layout, free))
    return Call("blas.matmul", (windows[0], windows[1]), (windows[2],)), operands, ranks


def fill(rank: int, layout: Layout | None, whole: Array) -> Array:
    return whole.copy() if layout is None else scatter(whole, layout, rank)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(calls())
def test_calls_as_steps(case: tuple[Any, ...]) -> None:
    call, (first, second, result), ranks = case
    form = plan_matmul(call, (first, second), (result,), ranks)
    assert isinstance(form, DistributedForm)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 9, x.shape).astype("f8") for x in (first, second))
    arrays = [
        Declared(n, x.dtype, x.shape, "out" if n == "c" else "in")
        for n, x in zip("abc", (first, second, result), strict=True)
    ]
    want = interp.run(Region((), tuple(arrays), (call,)), {"a": a, "b": b})["c"]

    def live() -> None:
        comm = simulated_ranks.rank_of_thread()
        memory = {
            "a": fill(comm.rank, form.reads[0], a),
            "b": fill(comm.rank, form.reads[1], b),
            "c": fill(comm.rank, form.writes[0], np.full(result.shape, 77.0)),
        }
        at = Execution(comm, memory, interpreted)
        names = [Memory(n, np.dtype("f8"), memory[n].shape) for n in "abc"]

        def make(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Memory:
            memory["made"] = np.full(shape, 77, dtype)
            return Memory("made", dtype, shape)

        steps = [*form.steps(comm.rank, (names[0], names[1]), (names[2],), make)]
        if form.parts is not None:
            layout, over = form.parts
            along = tuple(g in over for g in range(layout.grid.ndim))
            steps.append(Reduce(names[2], names[2], "add", layout.grid, along, comm.rank))
        for step in steps:
            step.run(at)
        assert comm.counts == fold(operator.add, (step.counts() for step in steps))
        np.testing.assert_array_equal(memory["c"], fill(comm.rank, form.writes[0], want))

    simulated_ranks.run(ranks, live)
    if not result.free:
        assert form.writes[0] == result.layout
    assert form.reads == (first.layout, second.layout)


def test_calls_without_a_form() -> None:
    window = Window("b", (5, 6), (Index(0, 1, 0),))
    first, out = (Window(n, s, (Index(0, 1, 0), Index(0, 1, 1))) for n, s in (("a", (4, 5)), ("c", (4, 6))))
    f8, times = np.dtype("f8"), np.dtype("M8[s]")

    def operand(shape: tuple[int, ...], dtype: np.dtype[Any] = f8) -> Operand:
        return Operand(shape, dtype, None)

    call = Call("blas.matmul", (first, window), (out,))
    made = plan_matmul(call, (operand((4, 5)), operand((5,))), (operand((4, 6)),), 3)
    assert made == "a product in a part of an array"
    second = Window("b", (5, 6), (Index(0, 1, 0), Index(0, 1, 1)))
    call = Call("blas.matmul", (first, second), (out,))
    parts = (operand((4, 5)), operand((5, 9))), (operand((4, 6)),), 3
    assert plan_matmul(call, *parts) == "a product of parts of arrays"
    assert isinstance(
        plan_matmul(call, (operand((4, 5), times), operand((5, 6))), (operand((4, 6)),), 3), str
    )


# ---- pieces ------------------------------------------------------------------------------------------
@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.data())
def test_pieces_multiply_as_arrays_do(data: st.DataObject) -> None:
    shapes = data.draw(st.sampled_from(SHAPES))
    ranks = data.draw(st.integers(1, 7))
    a, b = (np.arange(np.prod(s), dtype="i4").reshape(s) % 7 for s in shapes)
    first, second = (data.draw(layouts(s, ranks)) for s in shapes)
    want = a @ b
    target = data.draw(st.none() | layouts(want.shape, ranks))

    def live() -> None:
        comm = simulated_ranks.rank_of_thread()
        pieces = (DistArray(comm, x, scatter(y, x, comm.rank)) for x, y in ((first, a), (second, b)))
        got = matmul(*pieces, target)
        assert target is None or got.layout == target
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(
            got.local, scatter(want, got.layout, comm.rank)[got.layout.owned(comm.rank)]
        )

    simulated_ranks.run(ranks, live)


def test_bad_products_of_pieces() -> None:
    def live() -> None:
        comm = simulated_ranks.rank_of_thread()

        def zeros(*shape: int, dtype: str = "f8") -> DistArray:
            return DistArray.replicated(np.zeros(shape, dtype), comm)

        with pytest.raises(ValueError, match="cannot be multiplied"):
            matmul(zeros(4, 5), zeros(4, 5))
        with pytest.raises(ValueError, match="without axes"):
            matmul(zeros(), zeros(4, 5))
        with pytest.raises(ValueError, match="broadcast"):
            matmul(zeros(2, 4, 5), zeros(3, 5, 5))
        with pytest.raises(ValueError, match="not of the form"):
            einsum("mk,kn", zeros(4, 5), zeros(5, 6))
        with pytest.raises(LayoutError, match="where the product has one"):
            einsum("mk,kn->mn", zeros(4, 5), zeros(5, 6), Layout.chosen((4, 5), comm.size))
        with pytest.raises(TypeError):
            matmul(zeros(4, 5, dtype="M8[s]"), zeros(5, 6))

    simulated_ranks.run(3, live)


@settings(max_examples=32, deadline=None, derandomize=True)
@given(st.data())
def test_diagonals_and_traces(data: st.DataObject) -> None:
    ranks = data.draw(st.integers(1, 8))
    shape = tuple(data.draw(st.lists(st.integers(0, 8), min_size=2, max_size=3)))
    source = data.draw(layouts(shape, ranks))
    axes = data.draw(st.permutations(range(len(shape))))[:2]
    offset = data.draw(st.integers(-9, 9))
    dtype = data.draw(st.sampled_from(["f8", "i2", "?", "c8"]))
    x = np.random.default_rng(offset + 9).integers(-5, 5, shape).astype(dtype)
    want, total = x.diagonal(offset, *axes), x.trace(offset, *axes)

    def live() -> None:
        comm = simulated_ranks.rank_of_thread()
        piece = DistArray(comm, source, scatter(x, source, comm.rank, 0))
        for got, wanted in ((diagonal(piece, offset, *axes), want), (trace(piece, offset, *axes), total)):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            assert got.gather().tobytes() == wanted.tobytes()

    simulated_ranks.run(ranks, live)


def test_diagonals_that_are_none() -> None:
    one = DistArray.replicated(np.ones((2, 2)), simulated_ranks.single_rank())
    with pytest.raises(ValueError, match="at least two"):
        diagonal(DistArray.replicated(np.ones(2), simulated_ranks.single_rank()))
    with pytest.raises(ValueError, match="the same"):
        trace(one, 0, 1, -1)
    with pytest.raises(np.exceptions.AxisError):
        diagonal(one, 0, 0, 2)
