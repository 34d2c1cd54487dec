"""Wrapped arrays inside of other libraries' arrays: chunks of Dask's, the data of xarray's; array-api-extra.

Each program runs on plain arrays and on wrapped ones: with the same results, which are wrapped where they
were not computed by code that only makes plain arrays."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

MISSING = "{} is missing: pip install 'dcarray[engines]'"
RNG = np.random.default_rng(0)
A, B = RNG.random((24, 30)), RNG.random((24, 30))
HOLES = np.where(RNG.random((24, 30)) < 0.2, np.nan, A)

DASK: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda da, a, b: np.exp(a) * 2 + b,
    "its own ufuncs": lambda da, a, b: da.arctan2(da.exp(a), b),
    "map_blocks": lambda da, a, b: a.map_blocks(lambda x: np.sort(x, axis=0) * 2, dtype=float),
    "sum": lambda da, a, b: a.sum(axis=0),
    "std": lambda da, a, b: a.std(axis=1),
    "argmax": lambda da, a, b: a.argmax(axis=1),
    "nanmean": lambda da, a, b: da.nanmean(da.where(a > 0.3, a, np.nan), axis=1),
    "cumsum": lambda da, a, b: da.cumsum(a, axis=1, method="blelloch"),
    "median": lambda da, a, b: da.median(a, axis=1),
    "where": lambda da, a, b: da.where(a > 0.5, a, b),
    "product": lambda da, a, b: a @ b.T,
    "einsum": lambda da, a, b: da.einsum("ij,kj->ik", a, b),
    "steps": lambda da, a, b: a[1:20:3, ::-1],
    "indices": lambda da, a, b: a.vindex[[1, 5, 12], [2, 3, 29]] + a[[1, 5, 12], 0],
    "a mask": lambda da, a, b: a[a > 0.5],
    "assignment": lambda da, a, b: assigned(a),
    "joined": lambda da, a, b: da.block([[a, b], [b, a]]),
    "other chunks": lambda da, a, b: a.rechunk((5, 30)).mean(axis=1),
    "overlap": lambda da, a, b: da.map_overlap(lambda x: x + np.roll(x, 1, 0), a, depth=1, boundary=0.0),
    "padded": lambda da, a, b: da.pad(a, 2, mode="edge"),
    "histogram": lambda da, a, b: da.histogram(a, bins=10, range=(0, 1))[0],
    "largest": lambda da, a, b: da.topk(a, 3, axis=1),
    "reduction": lambda da, a, b: da.reduction(a, squares, roots, axis=0, dtype=float),
    "gufunc": lambda da, a, b: da.apply_gufunc(row_means, "(i)->()", a.rechunk({1: -1}), output_dtypes=float),
    "singular values": lambda da, a, b: da.linalg.svd(a.rechunk((8, -1)).T)[1],
    "percentile": lambda da, a, b: da.percentile(a.ravel(), [10, 50, 90]),
}

XARRAY: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda xr, a, b, h: np.exp(a) * 2 + b,
    "mean without holes": lambda xr, a, b, h: h.mean("time"),
    "quantile": lambda xr, a, b, h: a.quantile([0.1, 0.9], "x"),
    "groupby": lambda xr, a, b, h: a.groupby("part") - a.groupby("part").mean(),
    "groupby_bins": lambda xr, a, b, h: h.groupby_bins("x", [0, 10, 20, 30]).sum(),
    "rolling": lambda xr, a, b, h: h.rolling(x=3, center=True, min_periods=1).mean(),
    "rolling over both": lambda xr, a, b, h: a.rolling(time=3, x=4).max(),
    "coarsen": lambda xr, a, b, h: a.coarsen(time=2, x=3).mean(),
    "concat": lambda xr, a, b, h: xr.concat([a, b], "z"),
    "where": lambda xr, a, b, h: a.where(a > 0.5, b),
    "fillna": lambda xr, a, b, h: h.fillna(a),
    "combine_first": lambda xr, a, b, h: h.combine_first(b),
    "apply_ufunc": lambda xr, a, b, h: xr.apply_ufunc(np.hypot, a, b, dask="parallelized"),
    "core dimensions": lambda xr, a, b, h: xr.apply_ufunc(row_means, a, input_core_dims=[["x"]]),
    "dot": lambda xr, a, b, h: xr.dot(a, b, dim="x"),
    "corr": lambda xr, a, b, h: xr.corr(a, b, dim="x"),
    "polyfit": lambda xr, a, b, h: a.polyfit("x", 2).polyfit_coefficients,
    "differentiate": lambda xr, a, b, h: a.differentiate("x"),
    "shift": lambda xr, a, b, h: a.shift(time=2),
    "padded": lambda xr, a, b, h: a.pad(x=2, mode="edge"),
    "labels": lambda xr, a, b, h: a.sel(x=[3.2, 7.9], method="nearest"),
    "stacked": lambda xr, a, b, h: a.stack(z=("time", "x")).unstack("z"),
    "aligned": lambda xr, a, b, h: a[:, :20] + b[:, 10:],
    "weighted": lambda xr, a, b, h: h.weighted(a.x + 1).mean("x"),
    "assignment": lambda xr, a, b, h: assigned(a.copy()),
    "pickled": lambda xr, a, b, h: pickle.loads(pickle.dumps(a * 2)),
    "plain: interp": lambda xr, a, b, h: a.interp(x=[0.5, 1.5, 7.2]),
    "plain: vectorize": lambda xr, a, b, h: xr.apply_ufunc(max, a, 0.5, vectorize=True),
}


def assigned(a: Any) -> Any:
    a = a.copy()
    a[3:9] = 5.0
    return a


def row_means(x: Any) -> Any:
    return x.mean(axis=-1)


def squares(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(x * x, axis=axis, keepdims=keepdims)


def roots(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x, axis=axis, keepdims=keepdims))


def as_numpys(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-13)


@pytest.fixture(params=["synchronous", "threads"])
def da(request: pytest.FixtureRequest) -> Any:
    dask = pytest.importorskip("dask", reason=MISSING.format("Dask"))
    found = pytest.importorskip("dask.array", reason=MISSING.format("Dask"))
    # as docs/getting-started.md says: Dask has no default of this one function
    of = found.dispatch.percentile_lookup
    of.register(dc.ndarray, of.dispatch(np.ndarray))
    with dask.config.set(scheduler=request.param):
        yield found


@pytest.mark.one_process("Dask's threads are this process's own")
@pytest.mark.parametrize("name", DASK)
def test_chunks_of_dask_are_wrapped_arrays(da: Any, name: str) -> None:
    with dc.options(eager_below=50):  # calls on chunks are recorded, but in other threads
        given = [da.from_array(dc.asarray(x.copy()), chunks=(10, 12)) for x in (A, B)]
        got = DASK[name](da, *given).compute()
    want = DASK[name](da, *[da.from_array(x.copy(), chunks=(10, 12)) for x in (A, B)]).compute()
    assert isinstance(got, dc.ndarray)
    as_numpys(got, want)


def test_dask_names_equal_arrays_alike() -> None:
    tokenize = pytest.importorskip("dask.base", reason=MISSING.format("Dask")).tokenize
    x = dc.asarray(A.copy())
    assert tokenize(x) == tokenize(dc.asarray(A.copy())) != tokenize(x + 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", XARRAY)
def test_xarray_keeps_wrapped_arrays(name: str) -> None:
    xr = pytest.importorskip("xarray", reason=MISSING.format("xarray"))

    def array(x: Any) -> Any:
        part = ("time", np.arange(24) // 2)
        coords = {"time": np.arange(24), "x": np.arange(30.0), "part": part}
        return xr.DataArray(x, dims=("time", "x"), coords=coords)

    with dc.options(eager_below=50):
        got = XARRAY[name](xr, *[array(dc.asarray(x.copy())) for x in (A, B, HOLES)])
        kind = np.ndarray if name.startswith("plain") else dc.ndarray
        assert isinstance(got.data, kind)
        values = got.values
    want = XARRAY[name](xr, *[array(x.copy()) for x in (A, B, HOLES)])
    assert got.dims == want.dims
    as_numpys(values, want.values)


EXTRA: dict[str, Callable[..., Any]] = {
    "at": lambda xpx, xp, x: xpx.at(x)[1:, 2].add(3.0),
    "at a mask": lambda xpx, xp, x: xpx.at(x, x > 0.5).multiply(2.0, copy=True),
    "at a copy": lambda xpx, xp, x: xpx.at(x, 0).set(1.0, copy=True),
    "at in place": lambda xpx, xp, x: in_place(xpx, x),
    "lazy_apply": lambda xpx, xp, x: xpx.lazy_apply(
        lambda y: np.sort(y), x, as_numpy=True, shape=x.shape, dtype=x.dtype
    ),
    "apply_where": lambda xpx, xp, x: xpx.apply_where(
        x > 0.5, (x, x + 1), lambda p, q: p * q, fill_value=0.0
    ),
    "cov": lambda xpx, xp, x: xpx.cov(x),
    "kron": lambda xpx, xp, x: xpx.kron(x, x[:2, :2]),
    "pad": lambda xpx, xp, x: xpx.pad(x, 2),
    "partition": lambda xpx, xp, x: xp.sort(xpx.partition(x[0, :], 5)[:5]),
    "setdiff1d": lambda xpx, xp, x: xpx.setdiff1d(x[0, :], x[0, 3:]),
    "nunique": lambda xpx, xp, x: xpx.nunique(x),
    "one_hot": lambda xpx, xp, x: xpx.one_hot(xp.asarray([0, 2, 1]), 3) + x[0, 0],
}


def in_place(xpx: Any, x: Any) -> Any:
    y = x + 0
    assert xpx.at(y, 0).set(1.0, copy=False) is y
    return y


@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name: str) -> None:
    xpx = pytest.importorskip("array_api_extra", reason=MISSING.format("array-api-extra"))
    want = EXTRA[name](xpx, np, A.copy())
    with dc.options(eager_below=50):
        x = dc.asarray(A.copy())
        for given in (x, x.__array_namespace__().asarray(A.copy())):
            got = EXTRA[name](xpx, x.__array_namespace__(), given)
            assert isinstance(got, dc.ndarray)
            as_numpys(got, want)


def test_what_array_api_compat_says_of_wrapped_arrays() -> None:
    """Not lazy: it asks for the value of one element, which is there, so what is pending runs."""
    import array_api_compat as compat

    x = dc.asarray(A.copy())
    with dc.options(eager_below=50):
        pending = x * 2 + 1
        assert compat.is_array_api_obj(pending) and compat.is_writeable_array(pending)
        assert not compat.is_numpy_array(pending) and not compat.is_lazy_array(pending)
    xp = compat.array_namespace(pending)
    assert xp is dc.array_api and not compat.is_numpy_namespace(xp)
    assert compat.device(x) == "cpu" and compat.size(x) == x.size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compat.to_device(x, "cpu") is x
