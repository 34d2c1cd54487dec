"""Checks of NumPy's functions on distributed arrays in random layouts, on simulated or real ranks.

Each check takes random numbers that are the same on all ranks, and compares with NumPy on the whole array.
"""

import random
import shutil
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from comm_layouts import scatter

from dcarray.comm import world
from dcarray.comm.algorithms import npy_files
from dcarray.comm.algorithms.along_axis import apply_along_axes
from dcarray.comm.algorithms.distributed_scans import scan
from dcarray.comm.algorithms.joining import concatenate, pad_with_zeros, repeat, roll, tile
from dcarray.comm.algorithms.mask_selection import assign, nonzero, select
from dcarray.comm.algorithms.reductions import reduction
from dcarray.comm.algorithms.sorting import sort_1d, sorted_values
from dcarray.comm.algorithms.take import put, take
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.exchange.window_copies import ArrayWindow, copy_windows, sliced
from dcarray.comm.layout.derived_layouts import even_blocks, with_whole_axes, without_cyclic
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Spec, Whole
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.protocol import Array

CHECKS: list[Callable[[random.Random], None]] = []


def check(function: Callable[[random.Random], None]) -> Callable[[random.Random], None]:
    CHECKS.append(function)
    return function


# ---- arrays in random layouts ------------------------------------------------------------------------
def any_layout(rng: random.Random, shape: tuple[int, ...], ranks: int) -> Layout:
    """A random layout: whole axes, even and uneven blocks, cyclic axes, halos, and copies."""
    grid, left = [], ranks
    for _ in range(rng.randint(0, 2)):
        grid.append(rng.choice([d for d in range(1, left + 1) if left % d == 0]))
        left //= grid[-1]
    grid.append(left)
    free = list(range(len(grid)))
    rng.shuffle(free)
    specs: list[Spec] = []
    for n in shape:
        kind = rng.choice(["whole", "even", "sizes", "cyclic"]) if free else "whole"
        if kind == "whole":
            specs.append(Whole())
            continue
        axis = free.pop()
        if kind == "cyclic":
            specs.append(Cyclic(axis, rng.randint(1, 4)))
        elif kind == "even":
            specs.append(Block(axis))
        else:
            cuts = sorted(rng.randint(0, n) for _ in range(grid[axis] - 1))
            specs.append(Block(axis, tuple(int(m) for m in np.diff([0, *cuts, n]))))
    bare = Layout(shape, ProcessGrid(grid), specs)
    room = [
        0 if isinstance(spec, Cyclic) else min(2, part.smallest())
        for spec, part in zip(specs, bare.parts, strict=True)
    ]
    return Layout(shape, bare.grid, specs, [(rng.randint(0, w), rng.randint(0, w)) for w in room])


def any_shape(rng: random.Random, least: int = 0, most: int = 3) -> tuple[int, ...]:
    return tuple(rng.randint(0 if rng.random() < 0.1 else 1, 9) for _ in range(rng.randint(least, most)))


DTYPES = ["f8", "f8", "f4", "f2", "i8", "i4", "i1", "?", "c16"]


def values(rng: random.Random, shape: tuple[int, ...], dtypes: list[str] = DTYPES) -> Array:
    """Small numbers with many equal ones, sometimes with NaNs."""
    dtype = rng.choice(dtypes)
    found = np.random.default_rng(rng.randrange(1 << 30)).integers(-4, 5, shape).astype(dtype)
    if found.dtype.kind in "fc" and found.size and rng.random() < 0.3:
        found.flat[rng.randrange(found.size)] = np.nan
    return found


def piece(rng: random.Random, whole: Array) -> DistArray:
    group = world()
    layout = any_layout(rng, whole.shape, group.size)
    return DistArray(group, layout, scatter(whole, layout, group.rank, empty=1))


def same(ours: Callable[[], Any], theirs: Callable[[], Any], close: float = 0) -> None:
    """Whether both functions return the same array, or raise the same error."""
    try:
        want = np.asarray(theirs())
    except (ValueError, TypeError, IndexError) as error:
        try:
            ours()
        except type(error) as mine:
            assert str(mine) == str(error), f"{mine} instead of {error}"
            return
        raise AssertionError(f"no {error!r}") from error
    got = ours()
    got.layout.check(got.comm.rank, got.block.shape)
    whole = got.gather()
    assert (whole.dtype, whole.shape) == (want.dtype, want.shape)
    if close:
        np.testing.assert_allclose(whole, want, rtol=1e-2 if want.dtype.char == "e" else close, atol=close)
    else:
        np.testing.assert_array_equal(whole, want)


# ---- folds and scans ---------------------------------------------------------------------------------
FOLDS = [np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and]


@check
def folds(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng) if rng.random() < 0.7 else (rng.randint(1, 3), 6000))
    x, op, keep = piece(rng, whole), rng.choice(FOLDS), rng.random() < 0.5
    axes = None if rng.random() < 0.3 else tuple(rng.sample(range(whole.ndim), rng.randint(0, whole.ndim)))
    axis = rng.randrange(whole.ndim) if whole.ndim and rng.random() < 0.7 else None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(
            lambda: reduction(x, op, axes, None, keep),
            lambda: op.reduce(whole, axis=axes, keepdims=keep),
            1e-5,
        )
        if axis is not None:
            same(lambda: scan(x, op, axis), lambda: op.accumulate(whole, axis=axis), 1e-5)


@check
def shapes(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng))
    x = piece(rng, whole)
    same(lambda: x, lambda: whole)
    same(lambda: x.redistribute(even_blocks(x.layout)), lambda: whole)
    same(x.ravel, whole.ravel)
    same(lambda: x.reshape(whole.shape[::-1]), lambda: whole.reshape(whole.shape[::-1]))
    axes = rng.sample(range(whole.ndim), rng.randint(0, max(0, whole.ndim - 1)))
    same(lambda: x.redistribute(with_whole_axes(x.layout, axes)), lambda: whole)
    assert all(isinstance(with_whole_axes(x.layout, axes).axes[a], Whole) for a in axes)


# ---- windows -----------------------------------------------------------------------------------------
def any_slice(rng: random.Random, n: int, length: int | None = None) -> slice:
    """A random slice of any step, of a given length if one is wanted."""
    step = rng.choice([1, 1, 1, 2, 3, -1, -1, -2])
    if length is None:
        begin, end = sorted((rng.randint(0, n), rng.randint(0, n)))
        return slice(begin, end, step) if step > 0 else slice(end - 1, begin - 1 if begin else None, step)
    step = step if length < 2 or abs(step) * (length - 1) < n else (1 if step > 0 else -1)
    begin = rng.randint(0, max(0, n - 1 - abs(step) * max(0, length - 1)))
    if step > 0:
        return slice(begin, begin + step * length, step)
    last = begin - step * (length - 1)
    return slice(last, begin - 1 if begin else None, step) if length else slice(0, 0)


@check
def slices(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng))
    x, key = piece(rng, whole), tuple(any_slice(rng, n) for n in whole.shape)
    same(lambda: sliced(x, key), lambda: whole[key])
    there = any_layout(rng, whole[key].shape, world().size)
    there = Layout(
        there.shape, there.grid, [s if isinstance(s, Whole) else Block(s.grid_axis) for s in there.axes]
    )
    same(lambda: sliced(x, key, there), lambda: whole[key])


@check
def windows_into_windows(rng: random.Random) -> None:
    shape = any_shape(rng)
    whole, other = values(rng, shape, ["f8"]), values(rng, tuple(rng.randint(1, 9) for _ in shape), ["f8"])
    x, y = piece(rng, whole), piece(rng, other)
    x, y = x.redistribute(without_cyclic(x.layout)), y.redistribute(without_cyclic(y.layout))
    pairs, wanted, at = [], other.copy(), 0
    common = [rng.randint(0, min(n, m)) for n, m in zip(shape, other.shape, strict=True)]
    for _ in range(rng.randint(1, 2)):  # neither writes what the other does: they share out the first axis
        source = tuple(any_slice(rng, n, c) for n, c in zip(shape, common, strict=True))
        target = [any_slice(rng, n, c) for n, c in zip(other.shape, common, strict=True)]
        if shape:
            target[0] = slice(at, min(other.shape[0], at + common[0]))
            at = target[0].stop
            source = (slice(0, target[0].stop - target[0].start), *source[1:])
        wanted[tuple(target)] = whole[source]
        pairs.append((_window(x, source), _window(y, tuple(target))))
        if not shape:
            break
    copy_windows(pairs)
    same(lambda: y, lambda: wanted)


def _window(x: DistArray, key: tuple[slice, ...]) -> ArrayWindow:
    return ArrayWindow(x, tuple(range(*s.indices(n)) for s, n in zip(key, x.shape, strict=True)))


@check
def joined(rng: random.Random) -> None:
    shape = any_shape(rng, 1)
    axis = rng.randrange(-len(shape), len(shape))
    wholes = []
    for _ in range(rng.randint(1, 4)):
        other = list(shape)
        other[axis] = rng.randint(0, 6)
        if rng.random() < 0.03:
            other[-1] += 1
        wholes.append(values(rng, tuple(other)))
    parts = [piece(rng, whole) for whole in wholes]
    same(lambda: concatenate(parts, axis), lambda: np.concatenate(wholes, axis))


@check
def turned_and_repeated(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng))
    x, nd = piece(rng, whole), whole.ndim
    axes = tuple(rng.sample(range(nd), rng.randint(0, nd)))
    shifts = tuple(rng.randint(-12, 12) for _ in axes)
    if axes:
        same(lambda: roll(x, shifts, axes), lambda: np.roll(whole, shifts, axes))
    same(lambda: roll(x, 3), lambda: np.roll(whole, 3))
    times = [rng.randint(0, 3) for _ in range(rng.randint(0, nd + 1))]
    same(lambda: tile(x, times), lambda: np.tile(whole, times))
    widths = [(rng.randint(0, 3), rng.randint(0, 3)) for _ in whole.shape]
    same(lambda: pad_with_zeros(x, widths), lambda: np.pad(whole, widths) if nd else whole)
    if nd:
        axis, n = rng.randrange(nd), rng.randint(0, 3)
        same(lambda: repeat(x, n, axis), lambda: np.repeat(whole, n, axis))


# ---- elements by mask and by place -------------------------------------------------------------------
@check
def chosen_by_masks(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng, 1))
    bits = values(rng, whole.shape[: rng.randint(1, whole.ndim)], ["f8"]) > rng.choice([-9, 0, 3, 9])
    x, mask = piece(rng, whole), piece(rng, bits)
    same(lambda: select(x, mask), lambda: whole[bits])
    for axis in range(whole.ndim):
        same(lambda a=axis: nonzero(x)[a], lambda a=axis: np.nonzero(whole)[a])
    new = values(rng, whole[bits].shape, [whole.dtype.char])
    wanted = whole.copy()
    wanted[bits] = new
    y = piece(rng, new)
    same(lambda: assign(x, mask, y), lambda: wanted)


@check
def taken_by_places(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng, 1))
    axis = rng.randrange(whole.ndim)
    n = whole.shape[axis]
    draw = np.random.default_rng(rng.randrange(1 << 30))
    low = max(1, n) + (rng.random() < 0.05)
    at = draw.integers(-low, low, any_shape(rng, 1, 2) if n else (0,))
    x, index = piece(rng, whole), piece(rng, at)
    key = (slice(None),) * axis
    same(lambda: take(x, index, axis), lambda: whole[(*key, at)])
    if not at.size or (-n <= at.min() and at.max() < n):
        wanted = whole.copy()
        new = values(rng, whole[(*key, at)].shape if rng.random() < 0.7 else (), [whole.dtype.char])
        wanted[(*key, at)] = new
        v = piece(rng, new)
        same(lambda: put(x, index, axis, v), lambda: wanted)


# ---- sorting and transforms --------------------------------------------------------------------------
@check
def sorted_by_samples(rng: random.Random) -> None:
    whole = values(rng, (rng.choice([0, 1, 5, 40, 300]),))
    x = piece(rng, whole)
    same(lambda: sort_1d(x)[0], lambda: np.sort(whole))
    same(lambda: sorted_values(x), lambda: np.sort(whole))
    same(lambda: sort_1d(x)[1], lambda: np.argsort(whole, kind="stable"))


@check
def fourier_transforms(rng: random.Random) -> None:
    whole = values(rng, tuple(rng.randint(1, 9) for _ in range(rng.randint(2, 3))), ["f8", "f4", "c16"])
    x = piece(rng, np.nan_to_num(whole))
    axes = rng.sample(range(whole.ndim), rng.randint(1, whole.ndim))
    steps = [(a, lambda v, a=a: np.fft.fft(v, axis=a)) for a in axes]
    same(lambda: apply_along_axes(x, steps), lambda: np.fft.fftn(np.nan_to_num(whole), axes=axes[::-1]), 1e-4)


# ---- files -------------------------------------------------------------------------------------------
@check
def filed(rng: random.Random) -> None:
    whole = values(rng, any_shape(rng))
    x, comm = piece(rng, whole), world()
    folder = broadcast_object(comm, tempfile.mkdtemp() if comm.rank == 0 else None, 0)
    name = f"{folder}/x.npy"
    npy_files.save(name, x)
    assert np.array_equal(np.load(name), whole, equal_nan=whole.dtype.kind in "fc")
    assert npy_files.stored_shape(name, comm) == (whole.shape, whole.dtype)
    same(lambda: npy_files.load(name, any_layout(rng, whole.shape, comm.size), comm), lambda: whole)
    comm.barrier()
    if comm.rank == 0:
        shutil.rmtree(folder)
