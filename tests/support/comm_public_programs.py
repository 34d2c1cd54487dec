"""Programs of a number of ranks with checks: for simulated ranks and, as ``python -m``, under ``mpiexec``.

Each program takes no arguments and raises on some rank when a check fails.
"""

import math
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import comm_failing_work
import numpy as np
from comm_layouts import scatter

import dcarray as dc
from dcarray.comm import Block, Cyclic, Layout, ProcessGrid, Whole, choose_grid, world
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.exchange.exchange_plan import start_exchanges
from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.exchange.redistribute import redistribute
from dcarray.comm.transport.protocol import Array

PROGRAMS: list[Callable[[], None]] = []
comm = dc.comm
plain_or_wrapped = (np.asarray, dc.asarray)


def program(function: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS.append(function)
    return function


def raises(kind: type[BaseException], text: str, function: Callable[[], Any]) -> None:
    try:
        function()
    except kind as error:
        assert text in str(error), f"{error} instead of {text}"
    else:
        raise AssertionError(f"no {kind.__name__}")


# ---- messages ----------------------------------------------------------------------------------------
DTYPES = ["?", "i1", "u2", "f2", "f4", "f8", "c16", "U3", "M8[s]", "f8,i4", ">i4", "g"]


def _cube(dtype: str, seed: int) -> Array:
    bits = np.random.default_rng(seed).integers(0, 100, (5, 6, 7))
    if dtype == "f8,i4":
        cube = np.zeros(bits.shape, dtype)
        cube["f0"], cube["f1"] = bits, -bits
        return cube
    return bits.astype("M8[s]" if dtype == "M8[s]" else dtype)


WINDOWS: list[Callable[[Array], Array]] = [
    lambda a: a, lambda a: a[1:-1, 2, 1:-1], lambda a: a[:, :, 3], lambda a: a[::-2, 1:5:2, ::-1],
    lambda a: a.T[2:, 1], lambda a: a[2, 3, 4:5], lambda a: a[2, 3, 4:4],
    lambda a: a[2, 3:4, 4:5][0, 0, ...],
]  # fmt: skip


@program
def windows_of_all_dtypes_around_a_ring() -> None:
    group = world()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    for dtype in DTYPES:
        for k, window in enumerate(WINDOWS):
            there, got = window(_cube(dtype, group.rank)), window(np.zeros((5, 6, 7), dtype))
            comm.Waitall([comm.Irecv(got, left, k), comm.Isend(there, right, k)])
            assert np.array_equal(got, window(_cube(dtype, left)))


@program
def strides_differ_at_the_two_ends() -> None:
    group = world()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    for wrap in plain_or_wrapped:
        for n in (4, 300):
            here, there = wrap(np.full((n, n), group.rank) + np.arange(n)), wrap(np.zeros((n, n), int))
            here = here + 1  # pending, if wrapped
            requests = [comm.Irecv(there[1:-1, -1], left), comm.Isend(here[0, 1:-1], right)]
            comm.Waitall(iter(requests))
            for request in requests:
                comm.Wait(request)
            assert np.array_equal(there[1:-1, -1], left + 1 + np.arange(1, n - 1))
            assert there.sum() == there[1:-1, -1].sum()


@program
def messages_of_several_windows() -> None:
    group = world()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    for _ in range(3):
        a = np.arange(48.0).reshape(6, 8) + 100 * group.rank
        b = np.arange(6) + group.rank
        got_a, got_b = np.zeros((8, 6)).T, np.zeros(6, int)
        into = [got_a[::2], got_b[::-1], got_a[1::2, 3:], got_b[:0]]
        receive = group.irecv(into, left, 1)
        group.waitall([group.isend([a[:3], b, a[3:, 3:], b[:0]], right, 1), receive])
        assert np.array_equal(got_a[::2], a[:3] + 100 * (left - group.rank))
        assert np.array_equal(got_a[1::2, 3:], a[3:, 3:] + 100 * (left - group.rank))
        assert np.array_equal(got_b[::-1], np.arange(6) + left)


@program
def nobody_sends_nothing() -> None:
    untouched = np.ones(3)
    comm.Waitall([comm.Irecv(untouched, None), comm.Isend(untouched, None)])
    comm.Waitall([])
    assert untouched.sum() == 3


@program
def counted() -> None:
    group = world()
    before = group.counts + comm.Counts()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    comm.Waitall([comm.Irecv(np.empty(5), left), comm.Isend(np.ones(5), right)])
    comm.Allreduce(np.ones(3))
    travels = group.size > 1
    assert group.counts == before + comm.Counts(travels, 40 * travels, travels, 40 * travels, 1, 24)


@program
def wrong_calls() -> None:
    group = world()
    raises(TypeError, "which a list is not", lambda: comm.Irecv([1, 2], 0))
    raises(TypeError, "which a float64 is not", lambda: comm.Irecv(np.float64(1), 0))
    raises(TypeError, "dtype object", lambda: comm.Isend(np.array([None]), 0))
    raises(ValueError, "read-only", lambda: comm.Irecv(np.broadcast_to(0, 3), 0))
    raises(ValueError, "is taken", lambda: comm.Isend(np.ones(1), 0, 32767))
    raises(comm.CommError, f"no rank {group.size}", lambda: comm.Isend(np.ones(1), group.size))
    raises(comm.CommError, "'mean' is not a reduction", lambda: comm.Allreduce(np.ones(1), "mean"))
    raises(ValueError, "out is int64(2,)", lambda: comm.Allreduce(np.ones(2), out=np.ones(2, int)))
    raises(comm.GridError, "but there are", lambda: comm.Cart_create((group.size + 1,)))
    raises(comm.LayoutError, "equal parts", lambda: comm.Alltoall(np.ones(())))


# ---- collective operations ---------------------------------------------------------------------------
@program
def reductions() -> None:
    group = world()
    ops: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    ops |= {"land": np.logical_and, "lor": np.logical_or}
    bits = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
    for dtype in ["?", "i1", "u4", "i8", "f2", "f4", "f8", "c16", ">f8", "g"]:
        everybody = [_cube(dtype, rank)[:, ::2, 1] % 3 if dtype not in ("?", "c16") else
                     _cube(dtype, rank)[:, ::2, 1] for rank in range(group.size)]  # fmt: skip
        for name, ufunc in (ops | bits if dtype in ("?", "i1", "u4", "i8") else ops).items():
            wanted = everybody[0]
            for other in everybody[1:]:
                wanted = ufunc(wanted, other).astype(dtype)
            got = comm.Allreduce(everybody[group.rank], name)
            close = np.allclose if name == "prod" and dtype in ("f2", "c16") else np.array_equal
            assert close(got, wanted), (dtype, name)
            root = group.size - 1
            at_root = comm.Reduce(everybody[group.rank], name, root)
            assert close(at_root, wanted) if group.rank == root else at_root is None


@program
def reductions_in_place_and_of_wrapped_arrays() -> None:
    group = world()
    total = sum(range(group.size))
    for wrap in plain_or_wrapped:
        for n in (3, 20_000):
            x = wrap(np.full(n, float(group.rank)))
            y = comm.Allreduce(x * 2)
            assert type(y) is type(x)
            assert np.array_equal(y, np.full(n, 2.0 * total))
            comm.Allreduce(x[::2], out=x[::2])
            assert np.array_equal(x[::2], np.full(len(x[::2]), float(total)))
            assert np.array_equal(x[1::2], np.full(n // 2, float(group.rank)))
            z = wrap(np.zeros(n))
            comm.Reduce(x[1::2], "max", 0, out=z[1::2] if group.rank == 0 else None)
            assert np.all(z[1::2] == (group.size - 1 if group.rank == 0 else 0))
    nan = comm.Allreduce(np.array([np.nan if group.rank == 0 else 1.0]), "max")
    assert np.isnan(nan[0])
    for op in ("max", "min"):
        zeros = comm.Allreduce(np.copysign([0.0, np.nan], [1 - group.rank % 2 * 2, group.rank % 3 - 1]), op)
        signs = comm.Allreduce(np.signbit(zeros).astype(int))
        assert set(signs.tolist()) <= {0, group.size}  # alike on all ranks


@program
def broadcasts() -> None:
    group = world()
    for wrap in plain_or_wrapped:
        for root in range(group.size):
            x = wrap(np.arange(12.0).reshape(3, 4) * (group.rank + 1))
            column = x[:, 1] if group.rank == root else x.T[1]
            assert comm.Bcast(column, root) is column
            assert np.array_equal(x[:, 1], np.array([1.0, 5.0, 9.0]) * (root + 1))
            assert x[0, 2] == 2 * (group.rank + 1)


@program
def all_to_all() -> None:
    group = world()
    for wrap in plain_or_wrapped:
        x = wrap(np.arange(6 * group.size).reshape(2 * group.size, 3) + 1000 * group.rank)
        got = comm.Alltoall(x[:, ::2])
        assert type(got) is type(x)
        for rank in range(group.size):
            mine = slice(2 * group.rank, 2 * group.rank + 2)
            theirs = (np.arange(6 * group.size).reshape(-1, 3) + 1000 * rank)[mine, ::2]
            assert np.array_equal(got[2 * rank : 2 * rank + 2], theirs)
    if group.size > 1:
        raises(
            comm.MismatchError, "disagree on the value sent", lambda: comm.Alltoall(np.ones(12 + group.rank))
        )


@program
def rows_and_columns_of_a_grid() -> None:
    group = world()
    cart = comm.Cart_create(choose_grid((100, 100), group.size).shape, periodic=(True, False))
    row, column = comm.Cart_sub(cart, (False, True)), comm.Cart_sub(cart, (True, False))
    assert (row.rank, column.rank) == (cart.coords[1], cart.coords[0])
    table = np.arange(group.size).reshape(cart.grid.shape)
    assert comm.Allreduce(np.array(cart.rank), comm=row) == table[cart.coords[0]].sum()
    assert comm.Allreduce(np.array(cart.rank), comm=column) == table[:, cart.coords[1]].sum()
    point = comm.Cart_sub(cart, (False, False))
    assert comm.Allreduce(np.array(3), comm=point) == 3
    assert cart.neighbour(0, -1 - cart.coords[1]) is None
    assert cart.neighbour(table.shape[0], 0) == cart.rank
    if group.size > 1:
        shape = (1, group.size) if group.rank else (group.size, 1)
        raises(comm.MismatchError, "disagree on the grid", lambda: comm.Cart_create(shape))


# ---- arrays in blocks --------------------------------------------------------------------------------
@program
def scattered_and_gathered() -> None:
    group = world()
    root = group.size - 1
    for wrap in plain_or_wrapped:
        for shape in [(7,), (5, 9), (1, 2), (3, 4, 5), (0, 3), (150, 200)]:
            whole = np.arange(math.prod(shape), dtype="f4").reshape(shape)
            mine = comm.BlockScatter(wrap(whole) if group.rank == root else None, root=root)
            assert type(mine) is (dc.ndarray if wrap is dc.asarray and group.rank == root else np.ndarray)
            mine = wrap(mine) * 2
            for back in (comm.BlockGather(mine), comm.BlockGather(mine, root=root)):
                assert (back is None) or (type(back) is type(mine) and np.array_equal(back, 2 * whole))
            assert back is not None or group.rank != root
    layout = Layout((6, 8), ProcessGrid((group.size,)), [Whole(), Cyclic(0, 3)])
    whole = np.arange(48).reshape(6, 8)
    mine = comm.BlockScatter(whole, layout)
    assert np.array_equal(mine, scatter(whole, layout, group.rank))
    assert np.array_equal(comm.BlockGather(mine, layout), whole)
    with_halo = Layout.blocks((24, 5), ProcessGrid((group.size,)), halo=(1, 2))
    mine = comm.BlockScatter(np.ones((24, 5)) if group.rank == 0 else None, with_halo)
    assert mine.sum() == with_halo.elements(group.rank)


@program
def scatter_and_gather_that_do_not_fit() -> None:
    group = world()
    raises(comm.GridError, "but there are", lambda: comm.BlockScatter(np.ones(4), (group.size + 1,)))
    raises(comm.LayoutError, "more axes", lambda: comm.BlockScatter(np.ones(4), (1, group.size)))
    raises(TypeError, "dtype object", lambda: comm.BlockScatter(np.array([None])))
    three = Layout.blocks((3,), ProcessGrid((group.size,)))
    raises(comm.LayoutError, "is to be laid out as", lambda: comm.BlockScatter(np.ones(4), three))
    raises(comm.LayoutError, "needs", lambda: comm.BlockGather(np.ones(99), three))
    raises(comm.LayoutError, "needs", lambda: comm.Redistribute(np.ones(99), three, three))
    if group.size > 1:
        odd = np.ones((2, 2 + (group.rank == 1)))
        raises(comm.LayoutError, "do not fit together", lambda: comm.BlockGather(odd, (group.size, 1)))
        raises(comm.MismatchError, "axes", lambda: comm.BlockGather(np.ones((1,) * (1 + group.rank))))


def _layout(shape: tuple[int, ...], ranks: int, rng: random.Random) -> Layout:
    first = rng.choice([d for d in range(1, ranks + 1) if ranks % d == 0])
    grid = ProcessGrid((first, ranks // first))
    free = [0, 1]
    rng.shuffle(free)
    specs: list[Any] = []
    for _ in shape:
        kind = rng.choice(["block", "cyclic", "whole"])
        if kind == "whole" or not free:
            specs.append(Whole())
        else:
            specs.append(Block(free.pop()) if kind == "block" else Cyclic(free.pop(), rng.randint(1, 3)))
    return Layout(shape, grid, specs)


@program
def redistributed() -> None:
    group, rng = world(), random.Random(7)
    for turn in range(40):
        shape = rng.choice([(13,), (7, 10), (4, 9, 5)])
        source, target = _layout(shape, group.size, rng), _layout(shape, group.size, rng)
        whole = np.arange(math.prod(shape)).reshape(shape)
        mine = scatter(whole, source, group.rank)
        before = group.counts.bytes_sent
        if turn % 2:
            got = comm.Redistribute(dc.asarray(mine) + 0, source, target)
            assert type(got) is dc.ndarray
        else:
            got = np.zeros(target.local_shape(group.rank), int)
            assert comm.Redistribute(mine, source, target, out=got) is got
        assert np.array_equal(got, scatter(whole, target, group.rank))
        planned = redistribute(source, target, group.rank).counts(8)
        assert group.counts.bytes_sent - before == planned.bytes_sent
    if group.size > 1:
        one, other = (Layout((4,), ProcessGrid((group.size,)), [Cyclic(0, b)]) for b in (1, 2))
        mine = scatter(np.arange(4), one, group.rank)
        target = one if group.rank else other
        raises(comm.MismatchError, "disagree on layouts", lambda: comm.Redistribute(mine, one, target))


@program
def multiplied() -> None:
    group, rng = world(), random.Random(9)
    values = np.random.default_rng(3)
    cases = [
        ("mk,kn->mn", (150, 210), (210, 90)), ("mk,k->m", (70, 90), (90,)), ("k,kn->n", (70,), (70, 90)),
        ("bmk,bkn->bmn", (5, 7, 8), (5, 8, 3)), ("bmk,kn->bmn", (9, 7, 8), (8, 6)), ("k,k->", (33,), (33,)),
    ]  # fmt: skip
    for turn in range(36):
        subscripts, *shapes = cases[turn % len(cases)]
        dtypes = [rng.choice(["f4", "f8", "c8", "c16", "i4", "?"]) for _ in shapes]
        wholes = [values.integers(0, 5, shape).astype(d) for shape, d in zip(shapes, dtypes, strict=True)]
        want = np.matmul(*wholes)
        of = [_layout(shape, group.size, rng) for shape in shapes]
        a, b = (DistArray.from_whole(x, its, group).block for x, its in zip(wholes, of, strict=True))
        target = _layout(want.shape, group.size, rng) if turn % 2 else None
        wrap = plain_or_wrapped[turn // 6 % 2]
        got, its = comm.Matmul(wrap(a), of[0], b, of[1], target)
        assert type(got) is type(wrap(a)) and (target is None or its == target)
        assert np.array_equal(got, DistArray.from_whole(want, its, group).block), (subscripts, dtypes)
        out = np.full(its.local_shape(group.rank), 77, want.dtype)
        if "?" not in dtypes:
            assert comm.Einsum(subscripts, a, of[0], b, of[1], its, out=out)[0] is out
            assert np.array_equal(out, got)
    square = Layout.chosen((6, 6), group.size)
    mine = scatter(np.ones((6, 6)), square, group.rank, 0)
    raises(comm.LayoutError, "needs", lambda: comm.Matmul(np.ones(99), square, mine, square))
    raises(ValueError, "the result needs a layout", lambda: comm.Matmul(mine, square, mine, square, out=mine))
    short = np.ones((1, 1), "f4")
    raises(ValueError, "the result needs", lambda: comm.Matmul(mine, square, mine, square, square, out=short))
    more = Layout.chosen((6, 6), group.size + 1)
    raises(comm.GridError, "but there are", lambda: comm.Matmul(mine, square, mine, square, more))
    if group.size > 1:
        mine = mine.astype("f4") if group.rank else mine
        raises(comm.MismatchError, "disagree on layouts", lambda: comm.Matmul(mine, square, mine, square))


@program
def halos() -> None:
    group = world()
    for shape, periodic in [((24, 30), False), ((24, 30), (True, True)), ((12, 13, 14), (True, False, True))]:
        layout = Layout.chosen(shape, group.size, halo=1)
        whole = np.arange(math.prod(shape), dtype="f8").reshape(shape)
        a, b = scatter(whole, layout, group.rank), scatter(-whole, layout, group.rank)
        wrapped = dc.asarray(b)
        halo = comm.HaloExchange(layout, periodic=periodic)
        halo.start(a, wrapped).finish()
        round_ = (periodic,) * len(shape) if isinstance(periodic, bool) else periodic
        padded = np.full([n + 2 for n in shape], -1.0)
        padded[(slice(1, -1),) * len(shape)] = whole
        for axis, goes_round in enumerate(round_):
            if goes_round:
                line: list[Any] = [slice(None)] * len(shape)
                for to, source in ((0, -2), (-1, 1)):
                    line[axis] = to
                    into = tuple(line)
                    line[axis] = source
                    padded[into] = padded[tuple(line)]
        place = tuple(slice(r[0].start, r[0].start + r[0].length + 2) for r in layout.runs(group.rank))
        assert np.array_equal(a, padded[place])
        inside = padded[place] != -1
        assert np.array_equal(np.asarray(wrapped)[inside], -a[inside])
    faces = halo_exchange(layout, group.rank, corners=False)
    pending = start_exchanges(group, [(faces, a, a)])
    pending.finish()
    raises(comm.LayoutError, "needs", lambda: halo.run(a[1:]))


@program
def distributed_arrays() -> None:
    comm_failing_work.check()
    a, b = np.random.default_rng(1).random((40, 30)), np.zeros((40, 30))
    x, y = dc.distribute(a), dc.distribute(b)
    for to, of in ((y, x), (x, y), (b, a), (a, b)):
        to[1:-1, 1:-1] = 0.25 * (of[2:, 1:-1] + of[:-2, 1:-1] + of[1:-1, 2:] + of[1:-1, :-2])
    assert np.array_equal(np.asarray(x), a)
    assert np.isclose(float((x * y).sum()), (a * b).sum())


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    assert world().size == wanted, f"{world().size} ranks instead of {wanted}: another MPI's mpiexec?"
    for function in PROGRAMS:
        begin = time.perf_counter()
        function()
        if world().rank == 0:
            print("ok", function.__name__, f"{time.perf_counter() - begin:.2f} s", flush=True)
