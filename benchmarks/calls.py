"""Commonly used calls of NumPy, as text, and the arrays that they use; `benchmarks.sweep` times them."""

from __future__ import annotations

from typing import Any

import numpy as np

ACCELERATED = "accelerated code"  # where the names of NumPy's namespace are ours
# Statements (which write into their first name) and expressions, by what they are.
CALLS: dict[str, tuple[str, ...]] = {
    "operators": (
        "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** 2", "x ** 0.5", "x + 1.0", "2 * x",
        "1.0 / x", "-x", "abs(x)", "x < y", "x == y", "x > 0.5", "p & q", "p | q", "~p", "i + j", "i * 3",
        "i // 7", "i % 7", "i << 2", "i & j", "f + g", "f * 2.0", "c * c", "c + 1.0", "divmod(x, y)",
        "s + s", "s * 3", "i + x", "x @ y",
    ),
    "in place": (
        "x += y", "x -= y", "x *= 0.999", "x /= 1.001", "i += 1", "i |= j", "p &= q", "f += g", "x **= 1.0",
        "np.add(x, y, out=x)", "np.multiply(x, 0.999, out=x)", "np.sqrt(x, out=x)",
        "np.maximum(x, y, out=x)", "np.clip(x, 0.1, 0.9, out=x)", "np.copyto(x, y)",
        "np.copyto(x, y, where=p)", "x.fill(0.5)",
    ),
    "ufuncs": (
        "np.sqrt(x)", "np.square(x)", "np.exp(x)", "np.log(x)", "np.sin(x)", "np.tanh(x)",
        "np.arctan2(x, y)", "np.power(x, y)", "np.hypot(x, y)", "np.floor(x)", "np.rint(x)", "np.sign(x)",
        "np.abs(x)", "np.negative(x)", "np.reciprocal(x)", "np.maximum(x, y)", "np.minimum(x, 0.5)",
        "np.fmax(x, y)", "np.isnan(x)", "np.isfinite(x)", "np.logical_and(p, q)", "np.logical_not(p)",
        "np.greater(x, y)", "np.bitwise_xor(i, j)", "np.add(x, y)", "np.copysign(x, y)", "np.exp2(x)",
        "np.log1p(x)", "np.cbrt(x)", "np.deg2rad(x)", "np.conj(c)", "np.abs(c)", "np.sqrt(f)", "np.exp(f)",
        "np.absolute(i)", "np.modf(x)", "np.add.reduce(x)", "np.add.accumulate(x)",
        "np.multiply.outer(r, r)", "np.maximum.reduce(x)",
    ),
    "reductions": (
        "x.sum()", "np.sum(x)", "np.sum(m, axis=0)", "np.sum(m, axis=1)", "m.sum(axis=-1, keepdims=True)",
        "x.mean()", "np.mean(m, axis=0)", "x.std()", "np.var(x)", "np.var(m, axis=1)", "x.max()",
        "np.min(x)", "m.max(axis=0)", "np.ptp(x)", "x.prod()", "p.any()", "p.all()", "np.any(x > 2.0)",
        "np.all(x < 2.0)", "i.sum()", "f.sum()", "c.sum()", "p.sum()", "np.count_nonzero(p)", "x.argmax()",
        "np.argmin(x)", "m.argmax(axis=1)", "np.cumsum(x)", "x.cumprod()", "np.median(x)",
        "np.percentile(x, 30)", "np.quantile(x, 0.3)", "np.average(x, weights=y)", "np.nansum(x)",
        "np.nanmean(x)", "np.linalg.norm(x)", "np.sum(x * x)", "np.sum((x - y) ** 2)", "(x * y).sum()",
        "np.mean(np.abs(x - y))", "np.max(np.abs(x))", "np.sqrt(np.mean(x * x))", "float(x.sum())",
        "np.trapezoid(x)",
    ),
    "chains": (
        "x * 2.0 + y", "(x + y) * (x - y)", "np.sqrt(x * x + y * y)", "np.sqrt(x * x + y * y) - 1.0",
        "x - x.mean()", "(x - x.mean()) / x.std()", "np.exp(-x) * y", "np.where(x > y, x - y, y - x)",
        "1.0 / (1.0 + np.exp(-x))", "0.5 * (m[1:, :] + m[:-1, :])", "x[1:] - x[:-1]", "x / np.sum(x)",
        "x * x + 1.0", "(x > 0.2) & (x < 0.8)", "m - m.mean(axis=0)", "m / m.sum(axis=1, keepdims=True)",
    ),
    "indexing": (
        "x[3]", "x[-1]", "x[2:7]", "x[::2]", "x[::-1]", "x[1:-1] * 2.0", "m[1]", "m[:, 1]", "m[1, 2]",
        "m[1:, 1:]", "m[..., 0]", "x[None, :]", "x[p]", "x[k]", "x.take(k)", "np.take(x, k)", "m[:, k2]",
        "m[[0, 1]]", "x[x > 0.5]", "np.compress(p, x)", "np.extract(p, x)", "np.nonzero(p)", "np.where(p)",
        "np.flatnonzero(p)", "np.argwhere(p)", "np.where(p, x, y)", "np.where(x > 0.5, x, 0.0)",
        "np.choose(l, (x, y))", "np.select([p, q], [x, y], 0.0)", "np.take_along_axis(x, k, 0)",
        "np.searchsorted(o, y)", "np.clip(x, 0.2, 0.8)", "x.clip(0.2, 0.8)", "x.item(3)",
        "x.diagonal() if x.ndim > 1 else m.diagonal()",
    ),
    "assignments": (
        "x[3] = 0.5", "x[2:7] = 0.5", "x[:] = y", "x[...] = 0.5", "x[1:-1] = y[1:-1]", "x[1:] += 0.001",
        "m[0] = 0.5", "m[:, 0] = 0.5", "m[1:-1, 1:-1] = 0.5", "m[0, :] = m[1, :]", "x[p] = 0.5",
        "x[x > 0.9] = 0.9", "x[k] = y", "x[k] = 0.5", "x[p] += 0.001", "x[::2] = y[::2]",
        "x[1:-1] = 0.5 * (y[2:] + y[:-2])", "np.putmask(x, p, y)", "np.place(x, p, y)", "np.put(x, k, y)",
    ),
    "creation": (
        "np.zeros_like(x)", "np.empty_like(x)", "np.ones_like(x)", "np.full_like(x, 0.5)", "np.array(x)",
        "x.copy()", "np.copy(x)", "np.asarray(x)", "x.astype(np.float32)", "x.astype(np.int64)",
        "i.astype(np.float64)", "p.astype(np.float64)", "f.astype(np.float64)", "np.ascontiguousarray(x)",
        "np.diag(r)", "np.tri(3, like=x)", "np.meshgrid(r, r)", "np.eye(3, like=x)",
        "x.tolist() if x.size < 2000 else None",
    ),
    "manipulation": (
        "x.reshape(2, -1)", "np.reshape(x, (-1, 2))", "m.ravel()", "m.flatten()", "m.T", "np.transpose(m)",
        "m.swapaxes(0, 1)", "np.moveaxis(m, 0, 1)", "np.expand_dims(x, 0)", "np.squeeze(x)",
        "np.concatenate((x, y))", "np.stack((x, y))", "np.vstack((x, y))", "np.hstack((x, y))",
        "np.column_stack((x, y))", "np.split(x, 2)", "np.array_split(x, 3)", "np.tile(x, 2)",
        "np.repeat(x, 2)", "np.roll(x, 1)", "np.flip(x)", "np.rot90(m)", "np.pad(x, 1)", "np.append(x, y)",
        "np.insert(x, 1, 0.5)", "np.delete(x, 1)", "np.broadcast_to(x, (2, x.size))",
        "np.broadcast_arrays(x, 1.0)", "np.diff(x)", "np.gradient(x)", "np.ediff1d(x)", "np.atleast_1d(x)",
        "np.atleast_2d(x)", "np.triu(m)", "np.tril(m)", "np.trace(m)", "np.outer(r, r)", "np.kron(r, r)",
    ),
    "sorting and sets": (
        "np.sort(x)", "np.argsort(x)", "np.partition(x, 3)", "np.unique(l)", "np.isin(l, [1, 2])",
        "np.union1d(l, l)", "np.bincount(l)", "np.histogram(x, 8)", "np.digitize(x, r)",
        "np.interp(x, o, y)", "np.lexsort((x, y))", "np.array_equal(x, y)", "np.allclose(x, y)",
        "np.isclose(x, y)", "np.round(x, 2)", "x.round(2)", "np.around(x)", "np.nan_to_num(x)",
        "np.real(c)", "c.imag", "np.angle(c)", "np.cross(v, v)", "np.convolve(x, v[0])",
    ),
    "linear algebra": (
        "np.dot(x, y)", "x.dot(y)", "np.vdot(x, y)", "np.inner(x, y)", "m @ m", "m.dot(m)",
        "np.matmul(m, r)", "r @ m", "m.T @ m", "np.einsum('i,i->', x, y)", "np.einsum('ij,j->i', m, r)",
        "np.tensordot(m, m, 1)", "np.linalg.norm(m)", "np.linalg.norm(m, axis=1)", "np.linalg.det(a)",
        "np.linalg.inv(a)", "np.linalg.solve(a, d)", "np.linalg.eigvalsh(a)", "np.linalg.qr(a)",
        "np.linalg.cholesky(a)", "np.linalg.svd(a)", "np.fft.fft(x)", "np.fft.rfft(x)", "np.cov(w)",
        "np.corrcoef(w)", "np.polyval(d, x)",
    ),
    "attributes": (
        "x.shape", "x.dtype", "x.size", "x.ndim", "len(x)", "x.nbytes", "m.T.shape", "bool(x[0] > 0.5)",
        "float(x[0])", "int(i[0])", "np.shape(x)", "np.ndim(x)", "np.size(x)", "np.result_type(x, y)",
        "np.iscomplexobj(x)",
    ),
    "beside plain arrays": (
        "x + X", "X + x", "X * x", "x < X", "x @ X", "X @ x", "M @ r", "np.maximum(x, X)",
        "np.maximum(X, x)", "np.add(x, X)", "np.dot(X, x)", "np.where(X > 0.5, x, X)",
        "np.concatenate((x, X))", "np.stack((X, x))", "x += X", "X += x", "x[:] = X", "X[:] = x",
    ),
    ACCELERATED: (
        "np.zeros(n)", "np.ones(n)", "np.empty(n)", "np.full(n, 0.5)", "np.arange(n)", "np.zeros((n, 2))",
        "np.linspace(0.0, 1.0, n)", "np.eye(3)", "np.array([1.0, 2.0, 3.0])", "np.array([[1, 2], [3, 4]])",
        "np.sqrt(2.0)", "np.maximum(1.5, 2.5)", "np.zeros_like(x)", "np.empty_like(x)", "np.asarray(x)",
        "np.sqrt(x)", "np.sum(x)", "np.dot(x, y)", "np.linalg.norm(x)", "np.arange(n) * 0.5",
    ),
}  # fmt: skip


def arrays(n: int) -> dict[str, Any]:
    """Return the variables that the calls use: arrays of about ``n`` elements, and some small ones.

    Vectors ``x, y`` (float), ``o`` (sorted), ``i, j`` (int), ``l`` (small ints), ``k`` (indices), ``p, q``
    (bool), ``f, g`` (float32), ``c`` (complex), ``s`` (no axes); matrices ``m`` (square), ``w`` (two rows),
    ``v`` (rows of three); ``r``, a row of ``m``; ``k2``, two columns; ``a``, a small matrix, and ``d``, a
    row of it.  ``X`` and ``M``, like ``x`` and ``m``, are for both sides plain; ``n`` is that number.
    """
    rng = np.random.default_rng(1)
    side = max(int(n**0.5), 3)
    small = min(side, 8)
    a = rng.random((small, small))
    return {
        "x": rng.random(n), "y": rng.random(n), "o": np.sort(rng.random(n)), "i": rng.integers(1, 1000, n),
        "j": rng.integers(1, 1000, n), "l": rng.integers(0, 2, n), "k": rng.permutation(n),
        "p": rng.random(n) > 0.5, "q": rng.random(n) > 0.5, "f": rng.random(n).astype("f4"),
        "g": rng.random(n).astype("f4"), "c": rng.random(n) + 1j * rng.random(n), "s": np.array(1.5),
        "m": rng.random((side, side)), "w": rng.random((2, max(n // 2, 3))),
        "v": rng.random((max(n // 3, 2), 3)), "r": np.sort(rng.random(side)), "k2": np.array([0, 2]),
        "a": a @ a.T + small * np.eye(small), "d": rng.random(small), "X": rng.random(n),
        "M": rng.random((side, side)), "n": n,
    }  # fmt: skip
