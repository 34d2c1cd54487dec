"""Programs with sets, medians, quantiles, counts and transforms of distributed arrays, beside NumPy's
results."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rank_keys import any_array, either, equal, laid_out, outcome

import dcarray as dc

Call = Callable[[Any, Any, Any], Any]  # of some array, another of its dtype on one axis, and small integers

EXACT: dict[str, Call] = {
    "unique": lambda x, y, i: np.unique(x, return_index=True, return_inverse=True, return_counts=True),
    "unique values": lambda x, y, i: np.unique(x),
    "unequal NaNs": lambda x, y, i: np.unique(x, equal_nan=False, return_counts=True),
    "searchsorted": lambda x, y, i: np.searchsorted(np.sort(y), x),
    "searchsorted right": lambda x, y, i: np.searchsorted(np.sort(y), x, "right"),
    "one place": lambda x, y, i: np.searchsorted(np.sort(y), 3),
    "isin": lambda x, y, i: np.isin(x, y),
    "not in": lambda x, y, i: np.isin(x, [1, 3], invert=True),
    "digitize": lambda x, y, i: np.digitize(x, [1, 3, 7]),
    "interp": lambda x, y, i: np.interp(x, [1, 3, 7], [2, 1, 5]),
    "median": lambda x, y, i: np.median(x),
    "medians": lambda x, y, i: np.median(x, axis=-1),
    "nanmedian": lambda x, y, i: np.nanmedian(x),
    "quantiles": lambda x, y, i: np.quantile(x, [0, 0.31, 0.5, 1]),
    "quantile": lambda x, y, i: np.quantile(x, 0.77, method="midpoint"),
    "percentile": lambda x, y, i: np.percentile(x, 33.3, axis=0),
    "lower": lambda x, y, i: np.nanpercentile(x, [20, 80], method="lower"),
    "bincount": lambda x, y, i: np.bincount(i),
    "bincount, so many": lambda x, y, i: np.bincount(i, minlength=30),
    "weighted bincount": lambda x, y, i: np.bincount(i, i / 2),
    "histogram": lambda x, y, i: np.histogram(i),
    "histogram in limits": lambda x, y, i: np.histogram(y, 7, (1, 6.5)),
    "histogram of bins": lambda x, y, i: np.histogram(y, [0, 1, 5], density=True),
    "weighted histogram": lambda x, y, i: np.histogram(i, 4, weights=i),
    "flatnonzero": lambda x, y, i: np.flatnonzero(x),
    "argwhere": lambda x, y, i: np.argwhere(x),
    "where": lambda x, y, i: np.where(x),
    "compress": lambda x, y, i: np.compress(y > 3, y),
    "compress an axis": lambda x, y, i: np.compress([True, False, True][: x.shape[0]], x, axis=0),
    "extract": lambda x, y, i: np.extract(x > 3, x),
    "take_along_axis": lambda x, y, i: np.take_along_axis(y, i % y.size, 0),
    "sort": lambda x, y, i: np.sort(x, axis=None),
    "repeat": lambda x, y, i: np.repeat(x, 3),
    "repeat rows": lambda x, y, i: np.repeat(x, 2, axis=0),
    "tile": lambda x, y, i: np.tile(x, (2, 3)),
    "shift": lambda x, y, i: np.fft.fftshift(x),
    "shift back": lambda x, y, i: np.fft.ifftshift(y),
    "delete": lambda x, y, i: np.delete(y, i % y.size),
    "delete rows": lambda x, y, i: np.delete(x, 0, axis=0),
    "of a reshape": lambda x, y, i: np.sort(x.reshape(-1))[np.array([0, -1])],
    "count_nonzero": lambda x, y, i: np.count_nonzero(x),
}  # fmt: skip

CLOSE: dict[str, Call] = {
    "fft": lambda x, y, i: np.fft.fft(y),
    "padded": lambda x, y, i: np.fft.fft(y, 60, norm="ortho"),
    "cut": lambda x, y, i: np.fft.ifft(y, 10, norm="forward"),
    "rfft": lambda x, y, i: np.fft.rfft(y, 48),
    "irfft": lambda x, y, i: np.fft.irfft(y),
    "fft2": lambda x, y, i: np.fft.fft2(np.nan_to_num(x)),
    "ifftn": lambda x, y, i: np.fft.ifftn(np.nan_to_num(x)),
    "rfft2": lambda x, y, i: np.fft.rfft2(np.nan_to_num(x)),
    "irfftn": lambda x, y, i: np.fft.irfftn(np.nan_to_num(x)),
    "running products": lambda x, y, i: np.cumprod(x, axis=-1),
}  # fmt: skip


def ordered(rng: random.Random, name: str) -> None:
    """One call on random arrays, compared with NumPy's."""
    call = EXACT.get(name) or CLOSE[name]
    shape = tuple(rng.choice([1, 3, 7, 12]) for _ in range(rng.randint(1, 2)))
    x = any_array(rng, shape, rng.choice(["f8", "f8", "i8", "i4"]))
    y = any_array(rng, (rng.choice([1, 4, 36, 51]),), x.dtype.str)
    i = any_array(rng, y.shape, "i8")
    if x.dtype.kind == "f" and rng.random() < 0.3 and "histogram" not in name:
        x.flat[rng.randrange(x.size)] = np.nan
        y.flat[rng.randrange(y.size)] = np.nan if name in EXACT else 0.5
    with warnings.catch_warnings(), dc.options(distribute_above=0, eager_below=0, jit="off"):
        warnings.simplefilter("ignore")
        want = outcome(lambda: call(x, y, i))
        got = outcome(lambda: call(laid_out(rng, x), either(rng, y), laid_out(rng, i)))
        if name in EXACT or isinstance(want, Exception):
            equal(want, got)
        else:
            a, b = np.asarray(want), np.asarray(got)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)
