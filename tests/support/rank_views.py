"""Random programs with views of views of distributed arrays, compared with the same on plain arrays.

``python -m rank_views P FIRST COUNT`` runs some on P simulated ranks, or for 0 on those there are.
"""

import random
import sys
from typing import Any

import numpy as np

import dcarray as dc
from dcarray.comm import run, world

SHAPES = [(12,), (6, 4), (9, 7), (4, 3, 6), (2, 8, 3), (24, 1), (1, 30)]


def _shape_of(rng: random.Random, size: int) -> tuple[int, ...]:
    """A random shape of a number of elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        n = rng.choice([k for k in range(1, size + 1) if size % k == 0])
        shape.append(n)
        size //= n
    return (*shape, size) if size > 1 or not shape else tuple(shape)


def _key(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random index expression of slices and integers."""
    key: list[Any] = []
    for n in shape:
        low, high = sorted(rng.choices(range(n + 1), k=2))
        key.append(
            rng.choice(
                [
                    slice(None), slice(low, max(high, low + 1)), slice(None, None, 2), slice(None, None, -1),
                    slice(1, None) if n > 1 else slice(None), rng.randrange(n),
                ]
            )
        )  # fmt: skip
    return tuple(key)


def steps(seed: int, x: Any) -> list[Any]:
    """The results of a program and its arrays; views of ``x`` must be those that they are in NumPy."""
    rng = random.Random(seed)
    held, found = [x], []
    for _ in range(rng.randint(4, 12)):
        v = rng.choice(held)
        what = rng.randrange(9)
        if what == 0 and v.size:
            held.append(v.reshape(_shape_of(rng, v.size)))
        elif what == 1 and v.ndim and v.size:
            held.append(v[(..., *_key(rng, v.shape))])
        elif what == 2:
            held.append(v.T)
        elif what == 3 and v.dtype.kind == "c":
            held.append(rng.choice([v.real, v.imag]))
        elif what == 4 and v.dtype == np.float64:
            held.append(v.view(np.int64))
        elif what == 5:
            v += rng.randint(1, 5)
        elif what == 6:
            w = rng.choice(held)
            if w.shape == v.shape and w.dtype == v.dtype:
                v[...] = w * 3
        elif what == 7:
            found.append((v // 3 if v.dtype.kind == "i" else v * 3) + 1)
        else:
            found.append(v.copy())
    if x.dtype.kind == "f" and rng.random() < 0.3:
        found.append(np.resize(x, _shape_of(rng, rng.randint(1, 40))))
    return [*found, *held]


def check(seeds: range) -> None:
    """Run programs on plain and on distributed arrays, and compare."""
    for seed in seeds:
        rng = random.Random(seed)
        a = (
            np.random.default_rng(seed)
            .integers(-9, 9, rng.choice(SHAPES))
            .astype(rng.choice(["f8", "c16", "i4"]))
        )
        a += 0.5j if a.dtype.kind == "c" else 0
        with np.errstate(all="ignore"):
            want = steps(seed, a.copy())
            with dc.options(distribute_above=rng.choice([0, 0, 30]), eager_below=rng.choice([0, 16])):
                x = dc.distribute(a) if rng.random() < 0.5 else dc.asarray(a.copy())
                got = [np.array(g) for g in steps(seed, x)]
        assert len(want) == len(got), seed
        for one, other in zip(want, got, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), seed
            np.testing.assert_array_equal(other, one, err_msg=f"seed {seed}")


def gathering_nothing(seeds: range) -> None:
    """As `check`, but nothing may be gathered."""
    dc.report(reset=True)
    check(seeds)
    assert world().size == 1 or "(gathered)" not in str(dc.report()), dc.report()


if __name__ == "__main__":
    ranks, first, count = map(int, sys.argv[1:])
    with dc.options(jit="off"):
        if ranks:
            run(ranks, gathering_nothing, range(first, first + count))
        else:
            gathering_nothing(range(first, first + count))
