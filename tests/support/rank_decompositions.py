"""Programs with decomposed NumPy functions on distributed arrays, in groups, beside NumPy's results."""

import random
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from rank_keys import any_array, laid_out

import dcarray as dc
from dcarray.comm import world


def arrays(rng: random.Random, small: bool = True) -> dict[str, Any]:
    """The arguments of the calls: a table, lines, integers, a stack of matrices, a square and a tall one."""
    n = rng.choice([4, 9, 23]) if small else 48
    draw = np.random.default_rng(rng.randrange(1 << 30))
    stack, square = draw.random((rng.choice([1, 5]) if small else 9, 3, 3)), draw.random((7, 7))
    return {
        "x": any_array(
            rng,
            (rng.choice([3, 7]), 4) if small else (12, 6),
            rng.choice(["f8", "i8", "f4"]) if small else "f8",
        ),
        "y": any_array(rng, (n,), "f8"),
        "i": any_array(rng, (n,), "i8"),
        "z": np.round(np.sort(draw.random(n)) + np.arange(n), 3),
        "t": stack + 3 * np.eye(3),
        "s": square + 4 * np.eye(7)[::-1],
        "m": draw.random((80, 3)),
        "v": draw.random((80,)),
        "c": np.round(3 * draw.random(n)) + 1j * np.round(2 * draw.random(n)),
    }


def _sets(a: Any) -> Any:
    half = a.i[::2]
    found = np.unique(a.x, axis=0, return_index=True, return_inverse=True, return_counts=True)
    others = np.unique_counts(a.i), np.unique_inverse(a.i), np.unique(a.x > 4, axis=1)
    sets = np.union1d(a.i, half + 4), np.intersect1d(a.i, half), np.setdiff1d(a.i, half + 3)
    return *found, others, *sets, np.setxor1d(a.i, half + 5)


def _orders(a: Any) -> Any:
    by = np.argsort(a.y, kind="stable")
    down = np.sort(a.i)[::-1]
    places = np.searchsorted(a.y, a.i, sorter=by), np.digitize(a.x, np.sort(a.y)), np.digitize(a.i, a.z[::-1])
    among = np.digitize(a.i, down), np.digitize(a.i, down, right=True)
    return (
        *among,
        np.partition(a.x, 1), np.argpartition(a.x, [0, 2], axis=0), np.argsort(a.z[::-1] * 2), *places,
        np.lexsort((a.y, a.i)), np.lexsort((a.x, a.x[::-1]), axis=0), np.argsort(a.x, None, "stable"),
    )  # fmt: skip


def _parts(a: Any) -> Any:
    k = len(a.y) // 2
    part, at = np.asarray(np.partition(a.y, k)), np.asarray(np.argpartition(a.y, k))
    assert all(p[:k].max() <= p[k] <= p[k:].min() for p in (part, np.asarray(a.y)[at]))
    b = a.y.copy()
    b.partition(k)
    return np.sort(part), np.sort(at), np.sort(b), part[k]


def _elements(a: Any) -> Any:
    chosen = np.choose(a.i % 3, [a.y, 2 * a.y, 1.5]), np.choose(a.i, (a.i, -a.i), mode="clip")
    taken = np.take(a.y, a.i, mode="wrap"), np.take(a.x, [9, -9], 0, mode="clip"), np.take(a.y, -1)
    put = a.y.copy()
    put.put([1, 2], 5)
    pieces = np.piecewise(a.y, [a.y < 3, a.y > 5], [lambda v: -v, 7])
    places = np.ravel_multi_index((a.i, a.i), (9, 9)), np.unravel_index(a.i, (3, 3))
    return *chosen, *taken, put, pieces, *places, np.interp(a.x, a.z, a.y), np.interp(0.5, a.z, a.y, -1)


def _lines(a: Any) -> Any:
    modes = [(m, f) for m in ("full", "same", "valid") for f in (np.convolve, np.correlate)]
    slid = tuple(f(a.y, [1.0, 2, 4], m) for m, f in modes) + (np.convolve(a.y, a.i), np.convolve([1, 2], a.i))
    folds = (
        np.add.reduceat(a.y, [0, 1, 3]),
        np.maximum.reduceat(a.x, [0, 2, 1], 0),
        np.add.reduceat(a.x, [1], 1),
    )
    return slid, folds, np.add.accumulate(a.i), np.maximum.accumulate(a.y), np.subtract.accumulate(a.x, 1)


def _moved(a: Any) -> Any:
    added = np.insert(a.y, 1, 9.0), np.insert(a.x, 0, 5, axis=0), np.insert(a.y, [1, 3], [2, 3])
    left = np.delete(a.y, slice(0, 2)), np.delete(a.i, a.i > 4), np.trim_zeros(a.i)
    more = np.pad(a.y, 2), np.pad(a.x, 1, constant_values=3), np.pad(a.x, 1, mode="mean")
    return (
        *added, *left, *more, *np.meshgrid(a.y, a.i), np.diag(a.y, -1), np.array([a.y, a.i]),
        np.ix_(a.i, a.i),
    )  # fmt: skip


def _reshapes(a: Any) -> Any:
    flat, rows = a.x.copy().reshape(-1), (a.x * 2).reshape(-1, 2)
    flat[1:3] = 5
    both = rows.sum(axis=1), a.x.ravel("K").sum(), a.x.reshape(-1) + a.x.T.reshape(-1)
    a.x.shape = (-1,)
    return flat, flat + 1, rows, *both, a.x + 1, np.concatenate((rows, flat), axis=None)


def _statistics(a: Any) -> Any:
    middles = np.median(a.x, keepdims=True), np.median(a.t, axis=(0, 2)), np.quantile(a.x, [0.2, 0.5], axis=0)
    counts = np.histogram_bin_edges(a.y, 4), np.nanargmax(a.y)
    fits = np.polyfit(a.z, a.y, 2), np.vander(a.y, 3), np.average(a.y, weights=a.y + 1), np.unwrap(a.y)
    return *middles, *counts, *fits, np.cov(a.y, a.i), np.gradient(a.y, a.z), np.angle(a.y), np.i0(a.y)


def _stacks(a: Any) -> Any:
    la, one = np.linalg, a.t[0, 0]
    whole = a.t @ np.swapaxes(a.t, 1, 2)
    powers = la.matrix_power(a.t, 3), la.matrix_power(a.t, -1), la.norm(a.t, 2, axis=(1, 2)), la.cond(a.t)
    return (
        la.det(a.t), la.slogdet(a.t), la.inv(a.t), la.solve(a.t, a.t), la.solve(a.t, one), la.eigvalsh(a.t),
        la.svd(a.t, compute_uv=False), la.qr(a.t), la.eigvals(whole), la.cholesky(whole), *powers,
    )  # fmt: skip


def _matrices(a: Any) -> Any:
    la, s = np.linalg, a.s
    norms = la.norm(s, 1), la.norm(s, -np.inf), la.norm(s, "fro"), la.vector_norm(s), la.norm(s[0], 3)
    products = (
        la.multi_dot([s, s, s]),
        np.einsum("ij,jk,kl->il", s, s, s),
        np.vecdot(s, s),
        la.outer(a.y, a.i),
    )
    factors = la.cholesky(s @ s.T, upper=True), la.inv(s), la.det(s), la.slogdet(-s), la.matrix_power(s, -2)
    return *norms, *products, *factors, la.trace(s), np.tensordot(a.t, a.t, ([0, 1], [0, 1])), la.det(s * 0)


def _tall(a: Any) -> Any:
    la, fit = np.linalg, np.linalg.lstsq(a.m, a.v, None)
    again = a.m[:, [0, 0, 1]]  # the columns depend on each other
    values = la.svd(a.m, compute_uv=False), la.matrix_rank(again), la.cond(a.m), la.norm(a.m.T, "nuc")
    turned = la.pinv(a.m), la.pinv(a.m.T), la.pinv(again), la.pinv(a.m, 0.3), la.pinv(a.m + 1j, rtol=None)
    return la.qr(a.m), la.qr(a.m, "r"), *fit, *values, la.lstsq(again, a.m)[0], turned


def _counts(a: Any) -> Any:
    times = (
        np.repeat(a.y, a.i % 4),
        np.repeat(a.x, [1, 0, 3, 2, 0, 1][: a.x.shape[1]], 1),
        np.repeat(a.i, a.i > 3),
    )
    again = np.repeat(a.x, (a.i % 3)[0], axis=0), np.repeat(a.y, np.zeros(len(a.y), "i2"))
    divided = np.polydiv(a.y + 1, [2, 1.0, 3]), np.polydiv([1, 2, 4.0], a.i + 1), np.polydiv(a.i, a.i + 2)
    exact = np.polydiv(np.polymul(a.z, [1, -3.0]), a.z)
    return *times, *again, np.polymul(a.y, [0, 1, 2.0]), np.polymul([1, 2], a.i), *divided, exact


def _histograms(a: Any) -> Any:
    """Values on the edges of bins."""
    grid, limits = [np.array([-1, 0, 2, 5.0]), np.array([0.5, 1, 3])], [(0, 5), (1, 4)]
    flat = np.histogram2d(a.y, a.i, 3), np.histogram2d(a.y, a.z, [2, 4], density=True), a.y.max()
    given = np.histogram2d(a.i, a.y, grid), np.histogram2d(a.i, a.i, [0, 2, 4, 7]), a.i.min()
    several = np.histogramdd(a.m, 3), np.histogramdd(a.m, (2, 3, 4), weights=a.v), np.histogramdd(a.y, 4)
    some = np.histogramdd(a.x[:, :2], 4, limits), np.histogramdd([a.y, a.i, a.z], 2, weights=a.i)
    return *flat, *given, *several, *some


def _rules(a: Any) -> Any:
    """Bins by NumPy's rules, and between distributed edges."""
    rules = ("auto", "fd", "sqrt", "rice", "sturges", "stone", "doane", "scott")
    found = tuple(np.histogram(a.y + a.z / 7, rule) for rule in rules)
    some = np.histogram(a.x, "auto"), np.histogram(a.i, "fd"), np.histogram(a.i, "auto", (1, 6), density=True)
    edges = np.histogram_bin_edges(a.y, "fd", (0, 3)), np.histogram_bin_edges(a.z, "auto", (0.5, 9))
    given = np.histogram(a.y, a.z), np.histogram(a.x, np.sort(a.i)), np.histogram(a.i, a.z, density=True)
    return found, some, edges, given, np.histogram(a.y, 5, weights=a.c)


def _complex(a: Any) -> Any:
    """Complex numbers, which are ordered by their real parts first."""
    sets = np.unique(a.c), np.unique(a.c, return_index=True, return_inverse=True, return_counts=True)
    more = np.union1d(a.c, a.c + 1), np.setdiff1d(a.c, a.c[::3]), np.isin(a.c, a.c[::2]), np.isin(a.c, 2j)
    line = np.sort(a.c)
    places = np.searchsorted(line, a.c), np.searchsorted(line, a.c + 0.5, "right"), np.searchsorted(line, a.y)
    table = a.c[: len(a.c) // 4 * 4].reshape(-1, 4) + 0
    table[1:2, 2] = np.nan
    most = a.c.argmax(), np.argmin(a.c), np.argmax(table, 0), np.argmin(table, axis=1, keepdims=True)
    return sets, more, places, most, np.around(a.c / 3, 1), (a.c * 7).round(-1), np.round(a.c / 7, 3)


def _ramps(a: Any) -> Any:
    ends = np.pad(a.y, (3, 2), "linear_ramp"), np.pad(a.y, 2, "linear_ramp", end_values=(-4, 7.5))
    wide = np.pad(a.x, ((1, 2), (0, 3)), "linear_ramp", end_values=5), np.pad(a.i, 4, "linear_ramp")
    more = np.pad(a.c, 2, "linear_ramp", end_values=1j), np.pad(a.x, ((2, 0), (1, 1)), "reflect")
    between = (
        np.linspace(a.y, a.z, 4),
        np.linspace(0, a.x, 3, axis=1),
        np.linspace(a.i, 9, 5, False, dtype=int),
    )
    return ends, wide, more, between, np.linspace(a.y[:3], a.y[:3], 3, axis=-1), np.linspace(a.y, 2, 1)


def _bits(a: Any) -> Any:
    odd = a.x > 4, a.i % 2, a.t > 1
    packed = tuple(np.packbits(b, bitorder=o) for b in odd for o in ("big", "little"))
    rows = np.packbits(odd[0], 0), np.packbits(odd[0], axis=-1, bitorder="little"), np.packbits(odd[2], 1)
    back = tuple(np.unpackbits(b) for b in packed[:4]), np.unpackbits(packed[0], bitorder="little")
    wide = np.unpackbits(rows[1], 1, 3), np.unpackbits(rows[0], axis=1, count=-2), np.unpackbits(rows[2], 0)
    return *packed, *rows, *back[0], back[1], *wide, np.unpackbits(rows[0])


GROUPS: dict[str, Callable[[Any], Any]] = {
    function.__name__[1:]: function
    for function in (
        _sets, _orders, _parts, _elements, _lines, _moved, _reshapes, _statistics, _stacks, _matrices, _tall,
        _counts, _bits, _histograms, _rules, _complex, _ramps,
    )
}  # fmt: skip


def close(want: Any, got: Any, where: str = "") -> None:
    """Whether two results are equal, floating-point numbers within a tolerance."""
    if isinstance(want, (tuple, list)):
        for k, (a, b) in enumerate(zip(want, got, strict=True)):
            close(a, b, f"{where}[{k}]")
        return
    assert isinstance(want, np.generic) == isinstance(got, np.generic), f"{where}: {type(got)}"
    a, b = np.asarray(want), np.asarray(got)
    assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{where}: {b.dtype}{b.shape} for {a.dtype}{a.shape}"
    np.testing.assert_allclose(b, a, rtol=1e-8 if a.dtype.char in "dD" else 1e-4, atol=1e-8, err_msg=where)


def group(rng: random.Random, name: str) -> None:
    """A group of calls on random arrays of random layouts."""
    plain = arrays(rng)
    with warnings.catch_warnings(), dc.options(distribute_above=0, eager_below=0, jit="off"):
        warnings.simplefilter("ignore")
        want = GROUPS[name](SimpleNamespace(**{key: a.copy() for key, a in plain.items()}))
        got = GROUPS[name](SimpleNamespace(**{key: laid_out(rng, a) for key, a in plain.items()}))
        close(want, got, name)


if __name__ == "__main__":
    for known in GROUPS:
        group(random.Random(7), known)
    print(f"rank {world().rank} ended\n", end="", flush=True)
