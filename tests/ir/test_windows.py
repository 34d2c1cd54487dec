"""Windows against the sets of points that they stand for."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import windows
from dcarray.ir.dims import Guards, symbol
from dcarray.ir.nodes import Apply, Array, Const, Gather, Index, Iota, Load, Size, Window
from dcarray.ir.ops import const

F8 = np.dtype(np.float64)
I8 = np.dtype(np.int64)
quick = settings(max_examples=160, deadline=None, derandomize=True)


def points(window: Window) -> list[tuple[int, ...]]:
    """The element that each point of the domain touches."""
    return [
        tuple(ix.offset + (0 if ix.axis is None else ix.stride * point[ix.axis]) for ix in window.index)
        for point in product(*map(range, window.shape))
    ]


def elements(window: Window) -> set[tuple[int, ...]]:
    """What is touched when the axes that are not used have points."""
    used = {ix.axis for ix in window.index}
    shape = tuple(n if k in used else max(n, 1) for k, n in enumerate(window.shape))
    return set(points(Window(window.array, shape, window.index)))


@st.composite
def ints(draw, rank=2):
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5]), max_size=3)))
    axes = st.sampled_from([None, *range(len(shape))])

    def index():
        axis = draw(axes)
        offset = draw(st.integers(0, 8))
        return (
            Index(offset)
            if axis is None
            else Index(offset, draw(st.sampled_from([1, 1, 2, 3, -1, -2, 4])), axis)
        )

    return Window("A", shape, tuple(index() for _ in range(rank)))


@quick
@given(ints(), ints())
def test_overlap_and_covers_agree_with_the_sets(a, b):
    met = windows.overlap(a, b)
    assert met is None or met == bool(elements(a) & elements(b))
    within = windows.covers(a, b)
    if within is True:
        assert elements(b) <= set(points(a)) or windows.same(a, b)
    elif within is False:
        assert not elements(b) <= set(points(a))


@quick
@given(ints(1), ints(1))
def test_overlap_of_one_axis_is_decided(a, b):
    assert windows.overlap(a, b) is bool(elements(a) & elements(b))


@quick
@given(ints())
def test_injective_counts_points(a):
    assert windows.injective(a) is (len(set(points(a))) == len(points(a)))


@quick
@given(ints(), ints())
def test_same_means_the_same_at_every_point(a, b):
    if windows.same(a, b):
        assert points(a) == points(b)
    assert windows.same(a, a)


@quick
@given(ints(), st.data())
def test_compose_is_composition(window, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    axes = st.sampled_from([None, *range(len(shape))])
    amap = []
    for _ in window.shape:
        axis = data.draw(axes)
        stride = 0 if axis is None else data.draw(st.sampled_from([1, 2, -1]))
        amap.append(Index(data.draw(st.integers(0, 4)), stride, axis))
    made = windows.compose(window, tuple(amap), shape)
    for point in product(*map(range, shape)):
        old = [ix.offset + (0 if ix.axis is None else ix.stride * point[ix.axis]) for ix in amap]
        want = [ix.offset + (0 if ix.axis is None else ix.stride * old[ix.axis]) for ix in window.index]
        got = [ix.offset + (0 if ix.axis is None else ix.stride * point[ix.axis]) for ix in made.index]
        assert want == got
    assert all((ix.axis is None) == (ix.stride == 0) for ix in made.index)


def test_identity():
    window = windows.identity(Array("A", F8, (3, 4)))
    assert window == Window("A", (3, 4), (Index(0, 1, 0), Index(0, 1, 1)))


def test_the_diagonal_is_injective_and_not_a_box():
    diagonal = Window("A", (4,), (Index(0, 1, 0), Index(0, 1, 0)))
    shifted = Window("A", (3,), (Index(0, 1, 0), Index(1, 1, 0)))
    assert windows.injective(diagonal) is True
    assert windows.overlap(diagonal, shifted) is None
    assert windows.overlap(diagonal, diagonal) is True
    assert windows.covers(diagonal, Window("A", (), (Index(1), Index(2)))) is None


def test_a_fold_over_nothing_touches_its_target():
    fold = Window("s", (0,), (Index(0),))
    assert windows.overlap(fold, Window("s", (), (Index(0),))) is True
    assert windows.covers(Window("s", (), (Index(1),)), fold) is False


def test_a_window_without_index_may_be_anywhere():
    nowhere, row = Window("A", (), ()), Window("A", (3,), (Index(0, 1, 0),))
    assert windows.overlap(nowhere, row) is None
    assert windows.covers(row, nowhere) is None


def row(offset, count, stride=1):
    return Window("A", (count,), (Index(offset, stride, 0),))


def test_symbolic_windows():
    n = symbol("N", 3)
    k = symbol("k", None)
    assert windows.overlap(row(0, k), Window("A", (), (Index(k),))) is False
    assert windows.overlap(row(0, n), row(1, n - 2)) is True
    assert windows.overlap(row(0, n), row(n, n)) is False
    assert windows.overlap(row(0, n, 2), row(1, n, 2)) is False
    assert windows.overlap(row(0, n, 2), row(2, n, 2)) is None
    assert windows.covers(row(0, n), row(1, n - 2)) is True
    assert windows.covers(row(1, n), row(0, n)) is False
    assert windows.covers(row(0, n), row(0, symbol("M", 0))) is None
    assert windows.injective(row(0, n)) is True
    assert windows.injective(Window("A", (n,), (Index(0),))) is False
    assert windows.injective(Window("A", (symbol("M"),), (Index(0),))) is None


def test_guards_decide_what_is_not_proved():
    n, m = symbol("N"), symbol("M")
    with Guards({"N": 4, "M": 6}) as guards:
        assert windows.covers(row(0, m), row(0, n)) is True
        assert windows.same(row(0, n), row(0, m)) is False
    assert guards.holds({"N": 5, "M": 9})
    assert not guards.holds({"N": 5, "M": 5})


# ---- expressions ------------------------------------------------------------------------------------
def load(name, *index):
    return Load(Window(name, (4,), index), F8)


def test_a_shared_graph_is_walked_once():
    node = load("A", Index(0, 1, 0))
    for _ in range(200):  # a tree would have 2**200 leaves
        node = Apply("add", (node, node), F8)
    seen = []
    moved = windows.map_loads(node, lambda x: seen.append(x) or load("B", Index(0, 1, 0)))
    assert len(seen) == 1
    assert [x.window.array for x in windows.loads(moved)] == ["B"]
    assert windows.rewrite(node, lambda x: x) is node


def test_a_deep_chain_does_not_recurse():
    node = load("A", Index(0, 1, 0))
    for _ in range(5000):
        node = Apply("negative", (node,), F8)
    assert len(windows.walk(node)) == 5001


def test_remap_moves_loads_gathers_and_coordinates():
    where = Apply("add", (Iota(0, I8), const(1, I8)), I8)
    body = Apply("add", (load("A", Index(1, 1, 0)), Gather(Window("G", (4,), ()), (where,), F8)), F8)
    moved = windows.remap(body, (Index(3, -1, 1),), (2, 4))
    first, second = windows.loads(moved)
    kinds = {type(node) for node in windows.walk(moved)}
    windows_of = {x.window.array: x.window for x in (first, second)}
    assert windows_of["A"] == Window("A", (2, 4), (Index(4, -1, 1),))
    assert windows_of["G"] == Window("G", (2, 4), ())
    assert {Iota, Size, Apply, Load, Gather, Const} == kinds


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64", "float32", "bool"])
def test_a_moved_coordinate_keeps_its_value(dtype):
    from dcarray.ir import interp
    from dcarray.ir.nodes import Compute, Region

    dtype = np.dtype(dtype)
    moved = windows.remap(Iota(0, dtype), (Index(9, -3, 1),), (2, 4))
    out = Array("o", dtype, (2, 4), "out")
    region = Region((), (out,), (Compute(windows.identity(out), moved),))
    want = np.broadcast_to((9 - 3 * np.arange(4)).astype(dtype), (2, 4))
    assert np.array_equal(interp.run(region, {})["o"], want)
