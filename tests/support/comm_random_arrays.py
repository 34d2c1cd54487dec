"""Random programs on distributed arrays, compared with NumPy step by step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import dcarray as dc
from dcarray.comm import Block, Cyclic, ProcessGrid, Whole, world

UNARY = [np.negative, np.abs, np.square, np.isnan]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.less, np.equal]
DTYPES = ["f8", "f8", "f8", "f4", "i4", "?"]
Pair = tuple[Any, np.ndarray[Any, Any]]


class Program:
    """A program of some steps that all ranks make from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.size = world().size
        self.shape = self.rng.choice([(17,), (9, 12), (24, 5), (6, 7, 8), (3,)])
        self.grid = self._grid()
        self.pairs: list[Pair] = [self._new() for _ in range(3)]

    def _grid(self) -> tuple[int, ...]:
        ndim = self.rng.randint(1, len(self.shape))
        shape, left = [], self.size
        for _ in range(ndim - 1):
            shape.append(self.rng.choice([d for d in range(1, left + 1) if left % d == 0]))
            left //= shape[-1]
        return (*shape, left)

    def _new(self) -> Pair:
        dtype = np.dtype(self.rng.choice(DTYPES))
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        whole = rng.integers(-9, 10, self.shape).astype(dtype)
        axes: list[Any] = [Whole()] * len(self.shape)
        places = self.rng.sample(range(len(self.shape)), len(self.grid))
        kind = self.rng.choice(["blocks", "blocks", "other axes", "cyclic"])
        if kind == "blocks":
            return dc.distribute(whole.copy(), self.grid, halo=0), whole
        for g, axis in enumerate(places):
            axes[axis] = Block(g) if kind == "other axes" else Cyclic(g, self.rng.randint(1, 3))
        return dc.distribute(whole.copy(), ProcessGrid(self.grid), axes), whole

    # ---- steps -----------------------------------------------------------------------------------
    def _window(self, like: Pair, shape: tuple[int, ...] | None = None) -> Pair:
        """A random slice, of a wanted shape if the array is large enough."""
        key: list[Any] = []
        for k, n in enumerate(like[1].shape):
            if shape is not None and k < len(shape) and len(shape) == like[1].ndim and shape[k] <= n:
                begin = self.rng.randint(0, n - shape[k])
                key.append(slice(begin, begin + shape[k]))
            elif shape is None and self.rng.random() < 0.7 and n > 2:
                begin = self.rng.randint(0, 2)
                key.append(slice(begin, n - self.rng.randint(0, 2)))
            elif shape is None and self.rng.random() < 0.1 and n:
                key.append(self.rng.randrange(n))
            else:
                key.append(slice(None))
        found = like[1][tuple(key)]
        return (like[0][tuple(key)], found) if found.ndim else like

    def _operand(self, shape: tuple[int, ...]) -> Pair:
        """A random operand that can be combined with an array of a shape."""
        if self.rng.random() < 0.2:
            value = self.rng.choice([2, 0.5, True, np.float32(3)])
            return value, value  # type: ignore[return-value]
        if self.rng.random() < 0.25:
            return self._broadcast(shape)
        fits = [p for p in self.pairs if p[1].ndim == len(shape) and all(
            n >= m for n, m in zip(p[1].shape, shape, strict=True))]  # fmt: skip
        if not fits:
            plain = np.arange(int(np.prod(shape))).reshape(shape) % 5
            return plain, plain
        return self._window(self.rng.choice(fits), shape)

    def _broadcast(self, shape: tuple[int, ...]) -> Pair:
        """One index of an axis, broadcast along another array's axis; a scalar where there is none."""
        fits = [p for p in self.pairs if p[1].ndim == len(shape) > 1 and all(
            n >= m for n, m in zip(p[1].shape, shape, strict=True))]  # fmt: skip
        if not fits or not all(shape):
            return 3, 3  # type: ignore[return-value]
        x, y = self.rng.choice(fits)
        axis = self.rng.randrange(len(shape))
        key: list[Any] = [slice(0, n) for n in shape]
        key[axis] = self.rng.randrange(y.shape[axis])
        if axis or self.rng.random() < 0.5:
            if self.rng.random() < 0.5:
                key[axis] = slice(key[axis], key[axis] + 1)
            else:
                key.insert(axis, None)
        return x[tuple(key)], y[tuple(key)]

    def step(self) -> None:
        one = self._window(self.rng.choice(self.pairs))
        kind = self.rng.choice(
            ["binary", "stencil"] * 3 + ["unary", "where", "assign", "assign", "inplace", "keep", "odd"]
        )
        if kind == "unary":
            f = self.rng.choice(UNARY if one[1].dtype != bool else [np.logical_not])
            self._add((f(one[0]), f(one[1])))
        elif kind == "binary":
            other = self._operand(one[1].shape)
            g = self.rng.choice([f for f in BINARY if f is not np.subtract or one[1].dtype != bool])
            self._add((g(one[0], other[0]), g(one[1], other[1])))
        elif kind == "where":
            other = self._operand(one[1].shape)
            self._add((np.where(one[0] > 0, one[0], other[0]), np.where(one[1] > 0, one[1], other[1])))
        elif kind == "assign":
            other = self._operand(one[1].shape)
            one[0][...], one[1][...] = other
        elif kind == "inplace":
            other = self._operand(one[1].shape)
            if np.can_cast(np.maximum(one[1], other[1]).dtype, one[1].dtype, "same_kind"):
                np.maximum(one[0], other[0], out=one[0])
                np.maximum(one[1], other[1], out=one[1])
        elif kind == "stencil":
            self._stencil(*self.rng.sample(self.pairs[:4], 2), self.rng.randint(1, 2))
        elif kind == "keep":
            self._add(one)
        else:
            self._odd(one)

    def _stencil(self, one: Pair, other: Pair, width: int) -> None:
        """Sums of neighbours, back and forth, so that halos are read again."""
        if one[1].shape != other[1].shape or min(one[1].shape) <= 2 * width:
            return
        inner = tuple(slice(width, n - width) for n in one[1].shape)
        shifts = []
        for _ in range(self.rng.randint(1, 4)):
            moved = [self.rng.randint(-width, width) for _ in inner]
            shifts.append(
                tuple(slice(width + d, n - width + d) for d, n in zip(moved, one[1].shape, strict=True))
            )
        for _ in range(2):
            for k in (0, 1):
                total = one[k][inner]
                for shift in shifts:
                    total = np.maximum(one[k][shift], total)
                other[k][inner] = total
            one, other = other, one

    def _odd(self, one: Pair) -> None:
        """An operation without distributed form, which reads values."""
        kind = self.rng.choice(["sort", "mask", "sum", "element", "local", "cumsum"])
        if kind == "sort":
            self._add((np.sort(one[0], axis=0), np.sort(one[1], axis=0)))
        elif kind == "cumsum":
            self._add((np.cumsum(one[0], axis=-1), np.cumsum(one[1], axis=-1)))
        elif kind == "mask":
            one[0][one[0] > 3] = 1
            one[1][one[1] > 3] = 1
        elif kind == "sum":
            assert np.allclose(one[0].sum(), one[1].sum(), rtol=1e-5, equal_nan=True)
            if one[1].size:
                assert np.array_equal(one[0].max(), one[1].max(), equal_nan=True)
        elif kind == "element" and one[1].size:
            place = tuple(self.rng.randrange(n) for n in one[1].shape)
            assert np.array_equal(one[0][place], one[1][place], equal_nan=True)
        elif kind == "local":
            x, y = self.rng.choice(self.pairs)
            if y.base is None and y.dtype != bool:
                x.local[...] += 1
                y += 1

    def _add(self, pair: Pair) -> None:
        assert pair[0].shape == pair[1].shape
        assert pair[0].dtype == pair[1].dtype
        if len(self.pairs) > 6:
            self.pairs.pop(self.rng.randrange(len(self.pairs)))
        self.pairs.append(pair)

    def check(self) -> None:
        for x, y in self.pairs:
            assert np.array_equal(np.asarray(x), y, equal_nan=True), (x, y)


def run(seed: int, steps: int = 12) -> None:
    """Run one program; NumPy's warnings are not compared."""
    with np.errstate(all="ignore"):
        program = Program(seed)
        for _ in range(steps):
            program.step()
        program.check()
