"""Kernels with which devices run NumPy's functions that index, search, sort and count.

Buffers are ``p0``, ``p1``, ...; integer arguments are ``n0``, ``n1``, ..., the last one the number of blocks.
Thread ``k`` makes element ``k`` of the result, and no two threads write to the same element (with `scatter`,
if the indices differ), so results do not depend on the order in which threads run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.lowering.kernel.nodes import (
    Affine,
    Assign,
    Buffer,
    Declare,
    DType,
    Elem,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Local,
    Op,
    Phase,
    Repeat,
    Stmt,
    Store,
    Term,
    Threads,
    affine,
)
from dcarray.lowering.nest.body import cast_to, literal
from dcarray.lowering.nest.loop_nest import variable

__all__ = [
    "RUN", "THREADS", "K", "argument", "binned", "grouped", "merge", "per_element", "ranks", "scatter",
    "search", "selection", "sliding",
]  # fmt: skip

THREADS = 256
RUN = 32
"""Elements that `ranks` sorts among themselves."""
_SUMMED = 32  # terms that `sliding` adds up one by one: sums of sums are more accurate
_INT, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
K = affine(0, Term(THREADS, None, "block"), variable("lane"))


# ---- expressions ---------------------------------------------------------------------------------------
def argument(number: int) -> Affine:
    """Return the kernel's integer argument with a number, as an expression."""
    return affine(0, Term(1, f"n{number}", None))


def _given(number: int) -> Expr:
    return Index(argument(number))


def _number(value: int) -> Expr:
    return literal(value, _INT)


def _whole(name: str, *args: Expr) -> Expr:
    """Return the expression of an operation on integers."""
    return Op(name, args, _INT)


def _true(name: str, *args: Expr) -> Expr:
    """Return the expression of an operation whose result is a boolean."""
    return Op(name, args, _BOOL)


def _element(buffer: str, at: Expr, dtype: DType) -> Elem:
    return Elem(buffer, affine(), dtype, ((at, affine(1)),))


def _before(a: Expr, b: Expr) -> Expr:
    """Return the condition that ``a`` comes before ``b`` in NumPy's order of sorting, with NaN last."""
    less = _true("less", a, b)
    if a.dtype.kind != "f":
        return less
    number, last = _true("equal", a, a), _true("not_equal", b, b)
    return _true("logical_or", less, _true("logical_and", last, number))


def _halving(low: Expr, high: Expr, middle: tuple[Stmt, ...], right: Expr) -> tuple[Stmt, ...]:
    """Return the statements of a binary search for the first index from ``low`` to ``high`` at which
    ``right`` is false; ``middle`` binds what ``right`` tests.  The index is left in the variable ``low``."""
    lower, upper, half = Local("low", _INT), Local("high", _INT), Local("middle", _INT)
    mean = _whole("right_shift", _whole("add", lower, upper), _number(1))
    step = If(right, (Assign("low", _whole("add", half, _number(1))),), (Assign("high", half),))
    return (
        Declare("low", low),
        Declare("high", high),
        Repeat((), _true("less", lower, upper), (Let("middle", mean), *middle, step)),
    )


_AT = affine(0, variable("at"))
_LOW, _MIDDLE = Local("low", _INT), Local("middle", _INT)


def per_element(buffers: list[tuple[DType, Any]], ints: int, body: tuple[Stmt, ...]) -> Kernel:
    """Return a kernel in which a thread runs ``body`` for each ``k < n0``, with ``ints`` integer
    arguments."""
    guarded = If(_true("less", Index(K), _given(0)), body)
    phase = Phase("block", argument(ints - 1), "blocks", (Threads("lane", THREADS, (guarded,)),), (), THREADS)
    pointers = tuple(Buffer(f"p{k}", dtype, access) for k, (dtype, access) in enumerate(buffers))
    return Kernel(pointers, tuple(f"n{k}" for k in range(ints)), (phase,))


# ---- kernels -------------------------------------------------------------------------------------------
def selection(dtype: DType | None) -> Kernel:
    """Return the kernel for ``x[mask]``: ``p0[k] = p1[i]`` for the first ``i`` with ``p2[i] > k``, where
    ``p1`` is ``x`` and ``p2`` is ``cumsum(mask)``.  Without a dtype: ``p0[k] = i``, and ``p1`` is
    ``cumsum(mask)``.

    Its integer arguments are the sizes of ``p0`` and of the running count.
    """
    count = "p1" if dtype is None else "p2"
    right = _true("less_equal", _element(count, _MIDDLE, _INT), Index(K))
    value = _LOW if dtype is None else _element("p1", _LOW, dtype)
    body = (*_halving(_number(0), _given(1), (), right), Store("p0", K, value))
    buffers = [(value.dtype, "w"), (_INT, "r")]
    return per_element(buffers if dtype is None else [buffers[0], (dtype, "r"), buffers[1]], 3, body)


def scatter(dtype: DType, index: DType) -> Kernel:
    """Return the kernel for ``x[:, indices, :] = values``: ``p0[at] = p1[k * n4]``, where ``p0`` is ``x`` and
    ``at`` follows from ``k`` and the indices ``p2`` along one axis; ``n4`` is 0 for a single value, else 1.

    The integer arguments after the first are the number of elements for each index of the axis, the number of
    indices, and the extent of the axis.
    """
    inner, outer = _whole("remainder", Index(K), _given(1)), _whole("floor_divide", Index(K), _given(1))
    j, q = Local("j", _INT), Local("q", _INT)
    wrapped = Op("where", (_true("less", j, _number(0)), _whole("add", j, _given(3)), j), _INT)
    row = _whole("multiply", _whole("floor_divide", q, _given(2)), _given(3))
    place = _whole("add", _whole("multiply", _whole("add", row, wrapped), _given(1)), Local("i", _INT))
    body = (
        Let("i", inner),
        Let("q", outer),
        Let("j", cast_to(_element("p2", _whole("remainder", q, _given(2)), index), _INT)),
        Let("at", place),
        Store("p0", _AT, _element("p1", _whole("multiply", Index(K), _given(4)), dtype)),
    )
    return per_element([(dtype, "w"), (dtype, "r"), (index, "r")], 6, body)


def search(table: DType, values: DType, common: DType, right: bool) -> Kernel:
    """Return the kernel of `numpy.searchsorted`: ``p0[k]`` is how many elements of the sorted array ``p1``
    come before ``p2[k]``, or with ``right``, do not come after it, compared in the dtype ``common``.

    Its integer arguments are the sizes of ``p2`` and of ``p1``.
    """
    value = Local("value", common)
    here = cast_to(_element("p1", _MIDDLE, table), common)
    goes = _true("logical_not", _before(value, here)) if right else _before(here, value)
    body = (
        Let("value", cast_to(Elem("p2", K, values), common)),
        *_halving(_number(0), _given(1), (), goes),
        Store("p0", K, _LOW),
    )
    return per_element([(_INT, "w"), (table, "r"), (values, "r")], 3, body)


def ranks(dtype: DType) -> Kernel:
    """Return the kernel that sorts each `RUN` consecutive elements of ``p2`` into ``p0``; ``p1`` gets the
    index at which each of them was.

    Its integer argument is the size of ``p2``.
    """
    key, begin, rank = Local("key", dtype), Local("begin", _INT), Local("rank", _INT)
    other, j = Elem("p2", affine(0, variable("j")), dtype), affine(0, variable("j"))
    tie = _true("logical_not", _before(key, Local("other", dtype)))
    earlier = _true("logical_and", tie, _true("less", Index(j), Index(K)))
    counted = _true("logical_or", _before(Local("other", dtype), key), earlier)
    body = (
        Let("key", Elem("p2", K, dtype)),
        Let("begin", _whole("subtract", Index(K), _whole("remainder", Index(K), _number(RUN)))),
        Declare("rank", begin),
        For(
            "j", affine(0, variable("begin")), (affine(RUN, variable("begin")), argument(0)), 1, "serial",
            (Let("other", other), Assign("rank", _whole("add", rank, cast_to(counted, _INT)))),
        ),
        Let("at", rank),
        Store("p0", _AT, key),
        Store("p1", _AT, Index(K)),
    )  # fmt: skip
    return per_element([(dtype, "w"), (_INT, "w"), (dtype, "r")], 2, body)


def merge(dtype: DType) -> Kernel:
    """Return the kernel that merges neighbouring pairs of sorted runs of the keys ``p2`` into ``p0``, and
    moves the elements of ``p3`` to ``p1`` in the same way.  Equal keys stay in their order.

    Its integer arguments are the number of keys and the length of a run.
    """
    key, run, other = Local("key", dtype), Local("run", _INT), Local("other", dtype)
    is_second = _true("equal", _whole("remainder", run, _number(2)), _number(1))
    first = _whole("subtract", run, _whole("remainder", run, _number(2)))  # of the two runs
    partner = Op(
        "where",
        (Local("second", _BOOL), Local("start", _INT), _whole("add", Local("start", _INT), _given(1))),
        _INT,
    )
    begin = _whole("minimum", Local("partner", _INT), _given(0))
    end = _whole("minimum", _whole("add", Local("partner", _INT), _given(1)), _given(0))
    goes = Op(
        "where",
        (Local("second", _BOOL), _true("logical_not", _before(key, other)), _before(other, key)),
        _BOOL,
    )
    own = _whole("subtract", Index(K), _whole("multiply", run, _given(1)))
    place = _whole(
        "add", Local("start", _INT), _whole("add", own, _whole("subtract", _LOW, Local("begin", _INT)))
    )
    body = (
        Let("key", Elem("p2", K, dtype)), Let("run", _whole("floor_divide", Index(K), _given(1))),
        Let("second", is_second), Let("start", _whole("multiply", first, _given(1))),
        Let("partner", partner), Let("begin", begin),
        *_halving(Local("begin", _INT), end, (Let("other", _element("p2", _MIDDLE, dtype)),), goes),
        Let("at", place), Store("p0", _AT, key), Store("p1", _AT, Elem("p3", K, _INT)),
    )  # fmt: skip
    return per_element([(dtype, "w"), (_INT, "w"), (dtype, "r"), (_INT, "r")], 3, body)


def binned(values: DType, edges: DType | None, weights: DType | None) -> Kernel:
    """Return the kernel that counts the elements of ``p1`` in each bin, or adds up their weights, which are
    in the last buffer.  Thread ``k`` of ``n0`` counts a share of the elements in ``p0[bin * n0 + k]``.

    With ``edges``, the bins lie between the edges ``p2``, as in `numpy.histogram`; else an element is the
    number of its bin.  The integer arguments are the numbers of threads, elements and bins.
    """
    total = _INT if weights is None else np.dtype(np.float64)
    buffers: list[tuple[DType, Any]] = [(total, "rw"), (values, "r")]
    i, inside = Local("i", _INT), None
    search_bin: tuple[Stmt, ...] = ()
    if edges is None:
        number: Expr = cast_to(_element("p1", i, values), _INT)
    else:
        buffers.append((edges, "r"))
        value = Local("value", edges)
        here = _element("p2", _MIDDLE, edges)
        search_bin = _halving(_number(0), _given(2), (), _true("less_equal", here, value))
        number = _whole("subtract", _LOW, _number(1))
        from_first = _true("less_equal", Elem("p2", affine(), edges), value)
        inside = _true("logical_and", from_first, _true("less_equal", value, Elem("p2", argument(2), edges)))
    added: Expr = literal(1, _INT)
    if weights is not None:
        added = cast_to(_element(f"p{len(buffers)}", i, weights), total)
        buffers.append((weights, "r"))
    place = _whole("add", _whole("multiply", number, _given(0)), Index(K))
    body: tuple[Stmt, ...] = (
        *search_bin,
        Let("at", place),
        Store("p0", _AT, Op("add", (Elem("p0", _AT, total), added), total)),
    )
    if edges is not None:
        assert inside is not None
        body = (Let("value", cast_to(_element("p1", i, values), edges)), If(inside, body))
    steps = (*body, Assign("i", _whole("add", i, _given(0))))
    share = (Declare("i", Index(K)), Repeat((), _true("less", i, _given(1)), steps))
    return per_element(buffers, 4, share)


def grouped(total: DType, keys: DType, weights: DType | None) -> Kernel:
    """Return the kernel that adds 1, or with ``weights`` ``p3[p2[i]]``, to ``p0[k]`` for each ``i`` with
    ``p1[i] == k``, in the order of ``i``; ``p1`` must be sorted.

    Its integer arguments are the sizes of ``p0`` and of ``p1``.
    """
    buffers: list[tuple[DType, Any]] = [(total, "rw"), (keys, "r"), (_INT, "r")]
    added: Expr = literal(1, total)
    if weights is not None:
        buffers.append((weights, "r"))
        added = cast_to(_element("p3", _element("p2", _LOW, _INT), weights), total)
    this = Index(K)
    before = _true("less", cast_to(_element("p1", _MIDDLE, keys), _INT), this)
    here = _whole("minimum", _LOW, _whole("subtract", _given(1), _number(1)))
    same = _true("equal", cast_to(_element("p1", here, keys), _INT), this)
    body = (
        *_halving(_number(0), _given(1), (), before),
        Declare("sum", Elem("p0", K, total)),
        Repeat(
            (),
            _true("logical_and", _true("less", _LOW, _given(1)), same),
            (
                Assign("sum", Op("add", (Local("sum", total), added), total)),
                Assign("low", _whole("add", _LOW, _number(1))),
            ),
        ),
        Store("p0", K, Local("sum", total)),
    )
    return per_element(buffers, 3, body)


def sliding(dtype: DType) -> Kernel:
    """Return the kernel ``p0[k] = sum over j of p1[k + j - n3] * p2[j]``, without terms outside of ``p1``.

    Its integer arguments are the sizes of ``p0``, ``p1`` and ``p2``, and how many terms of the first result
    lie before the first element of ``p1``.
    """
    first = _whole("subtract", _given(3), Index(K))  # of the terms that have an element
    end = _whole("minimum", _given(2), _whole("add", _given(1), first))
    i, j = affine(0, variable("i")), affine(0, variable("j"))
    at = _whole("subtract", Index(j), first)
    term = Op("multiply", (_element("p1", at, dtype), Elem("p2", j, dtype)), dtype)

    def added(name: str, value: Expr) -> Stmt:
        return Assign(name, Op("add", (Local(name, dtype), value), dtype))

    few = For(
        "j", i, (affine(_SUMMED, variable("i")), affine(0, variable("end"))), 1, "serial",
        (added("part", term),),
    )  # fmt: skip
    part = (Declare("part", literal(0, dtype)), few, added("sum", Local("part", dtype)))
    body = (
        Let("begin", _whole("maximum", first, _number(0))),
        Let("end", end),
        Declare("sum", literal(0, dtype)),
        For("i", affine(0, variable("begin")), (affine(0, variable("end")),), _SUMMED, "serial", part),
        Store("p0", K, Local("sum", dtype)),
    )
    return per_element([(dtype, "w"), (dtype, "r"), (dtype, "r")], 5, body)
