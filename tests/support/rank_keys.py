"""Random index expressions, read and written through on distributed arrays and plain ones."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dcarray as dc
from dcarray.comm import world
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Spec, Whole

DTYPES = ["f8", "f8", "i8", "i4", "u1", "c16", "f4", "?"]


def laid_out(rng: random.Random, whole: Any) -> Any:
    """A distributed array on a random grid, with axes in blocks, cyclic or replicated."""
    left, grid = world().size, []
    for _ in range(rng.randint(0, 2)):
        grid.append(rng.choice([d for d in range(1, left + 1) if left % d == 0]))
        left //= grid[-1]
    grid.append(left)
    free = list(range(len(grid)))
    rng.shuffle(free)
    axes: list[Spec] = []
    for _ in whole.shape:
        kind = rng.choice(["block", "block", "cyclic", "whole"]) if free else "whole"
        if kind == "whole":
            axes.append(Whole())
        else:
            axis = free.pop()
            axes.append(Block(axis) if kind == "block" else Cyclic(axis, rng.randint(1, 3)))
    return dc.distribute(whole, ProcessGrid(grid), axes)


def any_array(rng: random.Random, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    draw = np.random.default_rng(rng.randrange(1 << 30))
    return draw.integers(0, 9, shape).astype(dtype or rng.choice(DTYPES))


def either(rng: random.Random, whole: Any) -> Any:
    """A plain array, or a distributed one of the same elements."""
    return laid_out(rng, whole) if rng.random() < 0.5 and whole.ndim else whole


def target(rng: random.Random, whole: Any) -> Any:
    """A wrapped array to be written to, distributed or replicated."""
    return laid_out(rng, whole) if rng.random() < 0.7 else dc.asarray(whole.copy())


def any_key(rng: random.Random, shape: tuple[int, ...]) -> list[Any]:
    """The items of a random index expression."""
    draw = np.random.default_rng(rng.randrange(1 << 30))
    common = tuple(rng.choice([1, 2, 5, 11]) for _ in range(rng.randint(1, 2)))
    axis, key = 0, []
    while axis < len(shape):
        n, kind = shape[axis], rng.choice(["index", "index", "slice", "int", "mask", "all", "new"])
        if kind == "index" and n:
            own = tuple(1 if rng.random() < 0.2 else m for m in common[rng.randint(0, len(common) - 1) :])
            low = n + (rng.random() < 0.03)
            key.append(draw.integers(-low, n, own).astype(rng.choice(["i8", "i4"])))
        elif kind == "slice":
            key.append(slice(rng.choice([None, 0, 1, -2]), None, rng.choice([None, 1, 2, -1])))
        elif kind == "int" and n:
            key.append(rng.randrange(-n, n))
        elif kind == "mask" and rng.random() < 0.4:
            key.append(draw.random(n) > 0.5)
        elif kind == "new" and rng.random() < 0.3:
            key.append(None)
            continue
        else:
            key.append(slice(None))
        axis += 1
    if rng.random() < 0.2:
        return [draw.random(shape[: rng.randint(1, len(shape))]) > rng.choice([0.3, 0.9])]
    while key and isinstance(key[-1], slice) and key[-1] == slice(None) and rng.random() < 0.5:
        key.pop()
    return key or [draw.random(shape) > 0.5]


def entries(key: list[Any], change: Callable[[Any], Any] = lambda x: x) -> Any:
    """An index expression of items, with its arrays converted."""
    found = [change(item) if isinstance(item, np.ndarray) else item for item in key]
    return found[0] if len(found) == 1 else tuple(found)


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the exception that it raised."""
    try:
        return call()
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return error


def equal(want: Any, got: Any) -> None:
    if isinstance(want, Exception):
        assert (type(got), str(got)) == (type(want), str(want)), f"{got!r} instead of {want!r}"
        return
    if isinstance(got, Exception):
        raise AssertionError(f"{got!r} where NumPy gives {want!r}") from got
    if want is None:
        assert got is None
        return
    if isinstance(want, tuple):
        for a, b in zip(want, got, strict=True):
            equal(a, b)
        return
    a, b = np.asarray(want), np.asarray(got)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_array_equal(b, a)


def read_and_write(rng: random.Random) -> None:
    """Read, write and add by one index expression."""
    shape = tuple(rng.choice([1, 3, 7, 12]) for _ in range(rng.randint(1, 3)))
    whole = any_array(rng, shape)
    key = any_key(rng, shape)
    with dc.options(distribute_above=0, eager_below=0, jit="off"):
        x = target(rng, whole)
        y, z = x, whole.copy()
        kind = rng.random()
        if kind < 0.2:  # a view
            y, z = y[::-1], z[::-1]
        elif kind < 0.3:
            y, z = y.reshape(shape[::-1]), z.reshape(shape[::-1])
            key = any_key(rng, z.shape)
        plain, ours = entries(key), entries(key, lambda a: either(rng, a))
        want = outcome(lambda: z[plain])
        equal(want, outcome(lambda: y[ours]))
        shape_of = want.shape if isinstance(want, np.ndarray) else ()
        behind = shape_of[rng.randint(0, len(shape_of)) :]
        some = tuple(1 if rng.random() < 0.2 else n + (rng.random() < 0.03) for n in behind)
        new = any_array(rng, some, None if rng.random() < 0.5 else whole.dtype.str)
        if np.iscomplexobj(new):
            new = new.real.copy()
        value = either(rng, new) if new.ndim else rng.choice([3, new[()], True])
        value_plain = new if isinstance(value, (np.ndarray, dc.ndarray)) else value

        def assign(a: Any, k: Any, v: Any) -> Any:
            a[k] = v
            return a

        failed = outcome(lambda: assign(z, plain, value_plain))
        mine = outcome(lambda: assign(y, ours, value))
        if isinstance(failed, Exception):
            equal(failed, mine)
        equal(z, y)
        if whole.dtype.kind in "fi" and whole.dtype.itemsize == 8 and not isinstance(want, Exception):
            w, again = z.copy(), target(rng, z)
            np.add.at(w, plain, 2)
            np.add.at(again, ours, 2)
            equal(w, again)


def by_functions(rng: random.Random) -> None:
    """`put`, `place`, `putmask` and `copyto`."""
    shape = tuple(rng.choice([1, 3, 7, 12]) for _ in range(rng.randint(1, 2)))
    whole = any_array(rng, shape, rng.choice(["f8", "i8", "f4"]))
    draw = np.random.default_rng(rng.randrange(1 << 30))
    mode = rng.choice(["raise", "wrap", "clip"])
    at = draw.integers(-whole.size, whole.size + (mode != "raise"), rng.choice([1, 5, 20]))
    bits = draw.random(shape) > 0.6
    few = any_array(rng, (rng.choice([1, 2, 30]),), "f4")
    with dc.options(distribute_above=0, eager_below=0, jit="off"):
        for function, rest in ((np.put, (at, few)), (np.place, (bits, few)), (np.putmask, (bits, few))):
            x, z = target(rng, whole), whole.copy()
            ours = [either(rng, a) for a in rest]
            named = {"mode": mode} if function is np.put else {}
            call = partial(function, **named)
            equal(outcome(partial(call, z, *rest)), outcome(partial(call, x, *ours)))
            equal(z, x)
        x, z = target(rng, whole), whole.copy()
        if whole.ndim > 1:
            np.fill_diagonal(z, few, wrap=mode == "wrap")
            np.fill_diagonal(x, either(rng, few), wrap=mode == "wrap")
            equal(z, x)
        other = any_array(rng, shape, "f8")
        np.copyto(z, other, casting="unsafe", where=bits)
        np.copyto(x, either(rng, other), casting="unsafe", where=either(rng, bits))
        equal(z, x)
