"""Arrays over many ranks against NumPy, on simulated ranks; `comm_public_programs` has some under MPI."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import Block, Cyclic, Layout, ProcessGrid, Whole, run, world


def some(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape)


def jacobi(a: Any, b: Any) -> None:
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


# ---- what travels ------------------------------------------------------------------------------------
def test_a_stencil_sends_its_halo_and_no_more() -> None:
    def program() -> tuple[int, int]:
        a, b = some((30, 30)), some((30, 30), 1)
        x, y = dc.distribute(a, (3, 3)), dc.distribute(b, (3, 3))
        counts = world().counts
        before = counts.messages_sent, counts.bytes_sent
        for _ in range(2):
            for one, other in ((x, y), (y, x)):
                jacobi(one, other)
                dc.evaluate(other)  # each by itself: together they may take a wider halo, and fewer messages
        sent = counts.messages_sent - before[0], counts.bytes_sent - before[1]
        for _ in range(2):
            jacobi(a, b), jacobi(b, a)
        assert np.array_equal(np.asarray(x), a)
        return sent

    sent = run(9, program)
    assert sent[4] == (4 * 4, 4 * 4 * 80)  # four exchanges with four neighbours of ten elements each
    assert sent[0] == (4 * 2, 4 * 2 * 80)


@on_ranks(4)
def test_nothing_travels_for_elements_in_the_same_place() -> None:
    a, b, row = some((9, 8)), some((9, 8), 1), some((8,), 2)
    x, y = dc.distribute(a), dc.distribute(b)
    messages = world().counts.messages_sent
    z = np.where(x > y, np.sqrt(x) * 2, row) - y[:] / 3
    z[2:, 1:] += x[2:, 1:]
    dc.evaluate(z)
    assert world().counts.messages_sent == messages
    c = np.where(a > b, np.sqrt(a) * 2, row) - b[:] / 3
    c[2:, 1:] += a[2:, 1:]
    assert np.array_equal(np.asarray(z), c)


@on_ranks(3)
def test_a_halo_that_is_still_valid_is_not_sent_again() -> None:
    a = some((12,))
    x = dc.distribute(a)
    counts = world().counts
    first = (x[1:] - x[:-1]).copy()
    dc.evaluate(first)
    sent = counts.messages_sent
    second = (x[1:] * x[:-1]).copy()
    dc.evaluate(second)
    assert counts.messages_sent == sent
    third = x[1:-1] + x[:-2] * x[2:]
    dc.evaluate(third)
    sent = counts.messages_sent
    fourth = x[:-1] - x[1:]
    dc.evaluate(fourth)
    fifth = x[1:] + x[:-1]
    dc.evaluate(fifth)
    assert counts.messages_sent == sent
    assert np.array_equal(np.asarray(second), a[:-1] * a[1:])


def test_elements_of_other_ranks_are_sent_not_gathered() -> None:
    def program() -> int:
        a, b = some((12, 12)), some((12, 12), 1)
        x = dc.distribute(a, (2, 2))
        y = dc.distribute(b, grid=(4,))
        counts = world().counts
        before = counts.bytes_sent
        with dc.options(strict=True):
            z = (x + y).copy()
            z[5:, 5:] += x[:7, :7]  # shifted by more than a halo can be
            z[:, 0] = y[3]
            z -= x[4, :, None] * x[None, :, 7]  # one row and one column, everywhere
            dc.evaluate(z)
        sent = counts.bytes_sent - before
        c = a + b
        c[5:, 5:] += a[:7, :7]
        c[:, 0] = b[3]
        c -= a[4, :, None] * a[None, :, 7]
        assert np.array_equal(np.asarray(z), c)
        return sent

    assert sum(run(4, program)) < 8 * (12 * 12 + 7 * 7 + 12 * 4 + 4 * 12)


# ---- meaning -----------------------------------------------------------------------------------------
@on_ranks(4)
def test_expressions_keep_earlier_values() -> None:
    a = some((10, 6))
    x = dc.distribute(a.copy())
    later = x[1:] - x[:-1]
    again = later * 2
    x[3:5] = 7
    x += 1
    assert np.array_equal(np.asarray(later), a[1:] - a[:-1])
    later[0] = 5
    assert np.array_equal(np.asarray(again), 2 * (a[1:] - a[:-1]))
    view = x[2:4, 1:]
    view[...] = 0
    assert np.asarray(x)[2:4, 1:].sum() == 0


@on_ranks(3)
def test_a_long_expression() -> None:
    x = y = dc.distribute(np.arange(10.0))
    for _ in range(300):
        y = y + x
    assert np.array_equal(np.asarray(y), 301 * np.arange(10.0))


@on_ranks(3)
def test_plain_and_wrapped_operands() -> None:
    a, b = some((7, 5)), some((7, 5), 1)
    x = dc.distribute(a)
    for other in (b, dc.asarray(b), b[0], np.float64(3), 2):
        for pair in ((x + other, a + np.asarray(other)), (other * x, np.asarray(other) * a)):
            assert type(pair[0]) is type(x)
            assert np.array_equal(np.asarray(pair[0]), pair[1])
    plain = b.copy()
    y = x * plain
    plain[:] = 0
    assert np.array_equal(np.asarray(y), a * b)
    x[1:3] = b[1:3]
    x[3:] = [1, 2, 3, 4, 5]
    x[0] = 9
    a[1:3], a[3:], a[0] = b[1:3], [1, 2, 3, 4, 5], 9
    assert np.array_equal(np.asarray(x), a)


@on_ranks(6)
def test_layouts_of_all_kinds() -> None:
    a, b = some((8, 10)), some((8, 10), 1)
    grid = ProcessGrid((2, 3))
    x = dc.distribute(a, grid, [Cyclic(0, 2), Block(1)])
    y = dc.distribute(b, grid, [Block(1, (5, 0, 3)), Whole()])
    assert np.array_equal(np.asarray(x + y), a + b)
    assert np.array_equal(np.asarray(x * x), a * a)
    assert np.array_equal(np.asarray(y[1:] - y[:-1]), b[1:] - b[:-1])
    x[2:] = y[2:]
    a[2:] = b[2:]
    assert np.array_equal(np.asarray(x), a)
    assert np.isclose(y.sum(), b.sum())


@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_properties(ranks: int) -> None:
    def program() -> None:
        a = some((6, 4))
        x = dc.distribute(a, halo=0)
        rank, size = world().rank, world().size
        assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((6, 4), 2, 24, 192, 6)
        assert np.shape(x) == (6, 4)
        assert x.layout == Layout.chosen((6, 4), size) or size == 1
        assert x.local.shape == x.layout.local_shape(rank)
        assert repr(x) == repr(a)
        root = size - 1
        at_root = x[1:, 1:].gather(root)
        assert np.array_equal(at_root, a[1:, 1:]) if rank == root else at_root is None
        assert np.array_equal(x.gather(), a)
        assert x[2, 3] == a[2, 3] == x[2:3, 3:].item()
        assert x[-1, -4].dtype == np.float64
        x.local[...] += 1
        assert np.array_equal(np.asarray(x[1:] + x[:-1]), (a + 1)[1:] + (a + 1)[:-1])
        assert x.astype("f4").dtype == np.float32
        assert bool((x > 0).all()) and not (x < 0).any()
        assert np.array_equal(np.asarray(np.ones_like(x[1:], dtype=int)), np.ones((5, 4)))
        assert np.asarray(x, dtype="f4").dtype == np.float32
        assert int(x[0, 0]) == int(a[0, 0] + 1)

    run(ranks, program)


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "f2", "f4", "f8", "c16"])
@on_ranks(5)
def test_reductions(dtype: str) -> None:
    a = (some((5, 7)) * 5).astype(dtype)
    x = dc.distribute(a)
    for name in ("sum", "prod", "max", "min", "mean", "any", "all"):
        with np.errstate(over="ignore"):
            got, wanted = getattr(np, name)(x), getattr(np, name)(a)
        assert got.dtype == wanted.dtype, name
        assert np.allclose(got, wanted, rtol=1e-2 if dtype == "f2" else 1e-6), name
    empty = dc.distribute(np.zeros((0, 3), dtype))
    assert empty.sum() == 0
    with pytest.raises(ValueError, match="zero-size array"):
        empty.max()
    copies = dc.distribute(a, ProcessGrid((5,)), [Whole(), Whole()])
    assert np.allclose(copies.sum(), a.sum())


# ---- what has no distributed form --------------------------------------------------------------------
def dealt(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else dc.distribute(np.asarray(x), (4,), axes=[Cyclic(0), Whole()])


PLACED: list[Callable[[Any], Any]] = [
    lambda x: x.sum(axis=1), lambda x: x[::2] * 2, lambda x: x @ x.gather().T,
    lambda x: dealt(x)[1:] + 1, lambda x: x + np.transpose(np.transpose(x)),
    lambda x: x[:4].T * x[2:].T[:, ::-1], lambda x: np.sort(x, axis=0), lambda x: x[[0, 2]],
]  # fmt: skip


@pytest.mark.parametrize("function", PLACED)
@on_ranks(4)
def test_distributed_functions(function: Callable[[Any], Any]) -> None:
    a = some((6, 4))
    plain: Any = a.view(type("Plain", (np.ndarray,), {"gather": lambda self: self}))
    with dc.options(strict=True):
        found = dc.evaluate(function(dc.distribute(a)))
    assert np.allclose(np.asarray(found), np.asarray(function(plain)), rtol=1e-14)


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: x[7, 0], IndexError, "out of bounds"),
    (lambda x: x[0, 0, 0], IndexError, "too many"),
    (lambda x: x[..., ...], IndexError, "single ellipsis"),
    (lambda x: x + np.ones(3), ValueError, "broadcast"),
    (lambda x: x.__setitem__(slice(1, 3), np.ones(3)), ValueError, "could not broadcast"),
    (lambda x: np.add(x.astype(int), 1.5, out=x.astype(int)), TypeError, "same_kind"),
    (lambda x: np.add.reduce(x, out=x), ValueError, "wrong number of dimensions"),
    (lambda x: np.bitwise_and(x, x), TypeError, "not supported"),
    (lambda x: x.astype("i1").__setitem__(0, 300), OverflowError, "300"),
    (lambda x: float(x), TypeError, "only 0-dimensional arrays"),
    (lambda x: bool(x), ValueError, "ambiguous"),
    (lambda x: dc.distribute(x.astype(str)), TypeError, "not distributed"),
    (lambda x: dc.distribute(np.ones(4), (7,)), dc.comm.GridError, "there are 4"),
    (lambda x: dc.distribute(np.ones(4), (1.5,)), dc.comm.GridError, "whole numbers"),
    (lambda x: dc.distribute(np.ones(4), 4), dc.comm.GridError, "whole numbers"),
    (lambda x: x.gather(root=4), dc.comm.CommError, "no rank 4 among 4"),
    (lambda x: x[1:, 0].gather(root=-1), dc.comm.CommError, "no rank -1 among 4"),
    (lambda x: dc.distribute(np.ones(8), halo=3), dc.comm.LayoutError, "wider than a block"),
    (lambda x: dc.distribute(np.ones(8 + world().rank)), dc.comm.MismatchError, "disagree"),
]


@pytest.mark.parametrize(("function", "kind", "text"), WRONG)
@on_ranks(4)
def test_errors_on_every_rank(function: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    x = dc.distribute(some((6, 4)))
    with pytest.raises(kind, match=text):
        function(x)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fold", [np.sum, np.prod, np.mean])
@pytest.mark.parametrize("dtype", ["d", "F"])
def test_small_reductions_are_those_of_one_process(ranks: int, fold: Callable[..., Any], dtype: str) -> None:
    a = some((37, 41)) + 0.5 if dtype == "d" else (some((37, 41)) - 0.5j).astype(dtype)

    def lines(x: Any) -> Any:
        return x[:5, 3:].T if dtype == "d" else x[:5, 3:]  # what NumPy folds has C order

    def folded(x: Any) -> list[bytes]:
        return [np.asarray(y).tobytes() for y in (fold(x), fold(x, axis=0), fold(lines(x), axis=1))]

    with dc.options(jit="off", eager_below=0), np.errstate(all="ignore"):
        want = folded(dc.asarray(a))
        assert run(ranks, lambda: folded(dc.distribute(a))) == [want] * ranks


def test_printing_a_view_gathers_only_that() -> None:
    a = some((600, 50))

    def program() -> None:
        x = dc.distribute(a)
        before = world().counts.bytes_received
        assert str(x[3:5, ::9]) == str(a[3:5, ::9]) and x[300, :4].tolist() == a[300, :4].tolist()
        assert repr(x[::-1, 2][:3]) == repr(a[::-1, 2][:3]) and f"{x.T[0, 7]:.3f}" == f"{a[7, 0]:.3f}"
        assert world().counts.bytes_received - before < a.nbytes / 10
        assert x._store.family.remote is not None
        x[3:5] += 1
        np.testing.assert_array_equal(x[2:5, :2].gather(), a[2:5, :2] + [[0], [1], [1]])
        assert str(x) == str(np.concatenate([a[:3], a[3:5] + 1, a[5:]]))

    with dc.options(eager_below=0, jit="off"):
        run(3, program)
