"""NumPy programs on distributed arrays, each compared with the same on plain arrays.

``mpiexec -n P python -m rank_programs`` runs all of them; the tests run them on simulated ranks.
"""

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import rank_keys
import rank_order

import dcarray as dc
from dcarray.comm import run, world

Program = Callable[[Any, Any], Any]


def elementwise(a: Any, b: Any) -> Any:
    return np.where(a > b, np.sqrt(a) * 2, -b) + a / 3


def in_place(a: Any, b: Any) -> Any:
    a += b
    a[1:] *= 2
    a[:, 1] = b[:, 2]
    return a


def stencil(a: Any, b: Any) -> Any:
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a


def folds(a: Any, b: Any) -> Any:
    return a.sum(), (a * b).max(), a.mean(axis=0), b.min(axis=1), np.argmax(a), (a > 0.5).any()


def aliases(a: Any, b: Any) -> Any:
    view = a[2:, ::-1]
    view += 1
    a[...] = a[::-1]
    a[1:, 1:] = a[:-1, :-1]
    return a, view, a.T @ b


def reshaped(a: Any, b: Any) -> Any:
    c = (a + b).reshape(-1)
    c[3:7] = 0
    d = (a * 2).reshape(b.shape[::-1])
    d += 1
    return c, d, a.T + b.T


def chosen(a: Any, b: Any) -> Any:
    a[a > 0.5] = 0
    return a[b > 0.5], a[[0, 2]], a[1, 2], np.sort(b, axis=0), np.concatenate([a, b])


def looked_at(a: Any, b: Any) -> Any:
    c = a + b
    plain = np.asarray(c)
    c *= 2
    plain[0] = 5
    c += 1
    return c, np.array(plain), c.tolist()


def products(a: Any, b: Any) -> Any:
    return a @ b.T, a[0] @ b.T, np.outer(a[0], b[1]), np.einsum("ij,ij->i", a, b)


def chains(a: Any, b: Any) -> Any:
    c = a @ b.T
    c[...] = 1.5 * c @ c.T + 0.5 * c
    y = (a @ b[0]) @ a
    d = a[1:, ::2] @ b[:-1, ::2].T
    a[...] = np.reshape(np.reshape(a, (len(a), 1, -1)) @ (b.T @ b), a.shape)
    e = np.reshape(a, (3, 3, -1)) @ b.T[:, 1:5]
    b[2:] = np.outer(c[0, :-2], y) + c[2:, :3] @ a[4:7]
    return c, y, d, a, e, b, a[2] @ b[3], np.dot(b, a.T), np.matmul(a[1:3], b.T, out=c[3:5]), c


def made(a: Any, b: Any) -> Any:
    c = np.zeros_like(a)
    c[2:5] = 1
    d = np.full_like(b, 2.5)
    return c + d, np.ones_like(a) - a, np.empty_like(a).shape


PROGRAMS: tuple[Program, ...] = (
    elementwise, in_place, stencil, folds, aliases, reshaped, chosen, looked_at, products, chains,
    made,
)  # fmt: skip


def check(program: Program, shape: tuple[int, int] = (9, 7), **options: Any) -> None:
    """Run a program on plain and on distributed arrays, and compare."""
    first, second = np.random.default_rng(0).random((2, *shape))
    want = program(first.copy(), second.copy())
    with dc.options(**{"distribute_above": 0, "jit": "off", **options}):
        shared = first.copy()
        got = program(dc.asarray(shared), dc.asarray(second.copy()))
        _compare(want, got)


def _compare(want: Any, got: Any) -> None:
    if isinstance(want, tuple):
        for a, b in zip(want, got, strict=True):
            _compare(a, b)
        return
    a, b = np.asarray(want), np.asarray(got)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_allclose(b, a, rtol=1e-12)


def every() -> None:
    """Run all programs on the present ranks."""
    for program in PROGRAMS:
        for shape in ((9, 7), (1, 5)) if program in (elementwise, folds) else ((9, 7),):
            check(program, shape)
        check(program, jit="eager")
    for seed in range(20):
        rank_keys.read_and_write(random.Random(seed))
        rank_keys.by_functions(random.Random(seed))
    for name in (*rank_order.EXACT, *rank_order.CLOSE):
        for seed in range(2):
            rank_order.ordered(random.Random(seed), name)


if __name__ == "__main__":
    if sys.argv[1:]:
        run(int(sys.argv[1]), every)
    else:
        every()
    print(f"rank {world().rank} ended\n", end="", flush=True)
