"""The array API standard: what our namespace has beyond NumPy's, and the list of known failures."""

import os
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from conformance import array_api
from dcarray import array_api as standard

MOST = 28  # known failures; a smaller list lowers this


def test_known_failures_are_numpys_too_and_get_fewer() -> None:
    ours = array_api.listed()
    assert len(ours) == len(set(ours)) <= MOST
    assert set(ours) <= set(array_api.listed(Path(__file__).with_name("numpy_xfails.txt")))


def test_every_known_failure_has_a_reason() -> None:
    for paragraph in array_api.XFAILS.read_text().strip().split("\n\n")[1:]:
        assert paragraph.startswith("# "), paragraph


def test_the_suite_itself() -> None:
    suite = os.environ.get("ARRAY_API_SUITE")
    if not suite:
        pytest.skip("ARRAY_API_SUITE names no checkout of array-api-tests")
    tests = [
        f"array_api_tests/test_{name}.py" for name in ("has_names", "signatures", "inspection_functions")
    ]
    failed = [o for o in array_api.run(Path(suite), 5, tests=tests) if o.kind in ("failed", "error")]
    assert not failed


# ---- the namespace ----------------------------------------------------------------------------------
def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 9, shape).astype(float)


def test_namespace_of_an_array() -> None:
    x = dc.asarray([1.0, 2.0])
    assert x.__array_namespace__() is standard
    assert x.__array_namespace__(api_version="2025.12") is standard
    with pytest.raises(ValueError, match="version"):
        x.__array_namespace__(api_version="1999.12")
    assert dc.__array_api_version__ == "2025.12"


def test_inspection() -> None:
    info = dc.__array_namespace_info__()
    assert info.default_device() == "cpu" in info.devices() == dc.devices()
    every = dc.devices()
    assert info.devices() + [None] == [*every, None] and info.devices() + (None,) == (*every, None)
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.capabilities()["boolean indexing"]


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("n", [7, 200])
def test_sorting_downwards(n: int, axis: int | None) -> None:
    a = _values(n, n)
    down = dc.sort(dc.asarray(a), axis=axis, descending=True)
    order = dc.argsort(dc.asarray(a), axis=axis, descending=True)
    assert type(down) is type(order) is dc.ndarray
    flat = a.reshape(-1) if axis is None else a
    along = 0 if axis is None else axis
    np.testing.assert_array_equal(down, np.flip(np.sort(flat, along), along))
    np.testing.assert_array_equal(order, np.argsort(-flat, along, stable=True))
    assert order.dtype == np.intp


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("kind", ["equal", "distinct", "nan"])
def test_argsort_keeps_the_order_of_what_is_equal(kind: str, axis: int | None) -> None:
    a = (
        _values(300, 300)
        if kind == "equal"
        else np.random.default_rng(2).permutation(90_000).reshape(300, 300)
    )
    a = a.astype(float)
    if kind == "nan":
        a[::50] = np.nan
    np.testing.assert_array_equal(dc.argsort(dc.asarray(a), axis), np.argsort(a, axis, stable=True))
    np.testing.assert_array_equal(dc.argsort(a, axis, "heapsort"), np.argsort(a, axis, "heapsort"))


def test_clip_takes_both_names() -> None:
    a = _values(10)
    x = dc.asarray(a)
    expected = np.clip(a, 2, 5)
    for y in (
        dc.clip(x, 2, 5), dc.clip(x, min=2, max=5), dc.clip(x, a_min=2, a_max=5), dc.clip(x, 2, a_max=5),
        dc.clip(x, 2, None).clip(None, 5), dc.clip(dc.clip(x, 2), max=5),
    ):  # fmt: skip
        np.testing.assert_array_equal(y, expected)
    with pytest.raises(ValueError, match="clip"):
        dc.clip(x, 2, 5, a_max=5)
    assert list(signature(dc.clip).parameters)[1:3] == ["min", "max"]


def test_nothing_to_prepend() -> None:
    a = _values(5, 6)
    for ends in ({}, {"prepend": None, "append": None}, {"prepend": 0.0, "append": None}):
        given = {k: v for k, v in ends.items() if v is not None}
        np.testing.assert_array_equal(dc.diff(dc.asarray(a), axis=0, **ends), np.diff(a, axis=0, **given))


def test_frequencies_have_a_dtype() -> None:
    for name in ("fftfreq", "rfftfreq"):
        ours, numpys = getattr(dc.fft, name), getattr(np.fft, name)
        result = ours(9, d=0.5, dtype=np.float32, device="cpu")
        assert type(result) is dc.ndarray and result.dtype == np.float32
        np.testing.assert_array_equal(ours(9, 0.5), numpys(9, 0.5))
        with pytest.raises(ValueError, match="real"):
            ours(9, dtype=np.int64)
        with pytest.raises(ValueError, match="cpu"):
            ours(9, device="moon")


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8"])
def test_eigenvalues_are_complex(dtype: str) -> None:
    a = np.diag([1, 2, 3]).astype(dtype)
    values, vectors = dc.linalg.eig(dc.asarray(a))
    wanted = np.complex64 if dtype in ("f4", "c8") else np.complex128
    assert values.dtype == vectors.dtype == dc.linalg.eigvals(dc.asarray(a)).dtype == wanted
    np.testing.assert_array_equal(np.sort(values.real), [1, 2, 3])


def test_accelerated_code_keeps_numpys_meaning() -> None:
    a = np.diag([1.0, 2.0, 3.0])
    values = dc.accelerate(lambda: np.linalg.eigvals(a))()
    assert values.dtype == np.linalg.eigvals(a).dtype
    assert list(signature(dc.accelerate(lambda: np.clip)()).parameters) == list(signature(np.clip).parameters)


@pytest.mark.parametrize("n", [3, 300])
def test_dlpack_both_ways(n: int) -> None:
    a = _values(n, n)
    x = dc.asarray(a.copy()) * 2
    plain = np.from_dlpack(x)
    assert type(plain) is np.ndarray
    np.testing.assert_array_equal(plain, a * 2)
    x[0, 0] = 77  # the export shares the memory and sees what comes later
    assert plain[0, 0] == 77
    y = dc.from_dlpack(a)
    assert type(y) is dc.ndarray and np.shares_memory(np.asarray(y), a)
    z = dc.from_dlpack(x, device="cpu", copy=True)
    x[0, 0] = 5
    assert z[0, 0] == 77 and type(z) is dc.ndarray
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(("name", "arguments"), [
    ("arange", (3,)), ("asarray", ([1.0],)), ("empty", (3,)), ("eye", (3,)), ("full", (3, 1.0)),
    ("linspace", (0, 1, 3)), ("ones", (3,)), ("zeros", (3,)), ("astype", (dc.ones(3), np.float32)),
    ("empty_like", (dc.ones(3),)), ("full_like", (dc.ones(3), 2)), ("ones_like", (dc.ones(3),)),
    ("zeros_like", (dc.ones(3),)), ("from_dlpack", (dc.ones(3),)),
])  # fmt: skip
def test_device_of_creation(name: str, arguments: tuple[Any, ...]) -> None:
    x = getattr(dc, name)(*arguments, device="cpu")
    assert type(x) is dc.ndarray and x.device == "cpu"
    with pytest.raises(ValueError, match="moon"):
        getattr(dc, name)(*arguments, device="moon")


# ---- found by the suite ------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3)])
def test_empty_masks(shape: tuple[int, ...]) -> None:
    a, mask = np.zeros(shape), np.zeros(shape, bool)
    x, ours = dc.asarray(a), dc.asarray(mask)
    assert x[ours].shape == a[mask].shape == (0,)
    x[ours] = 1
    with pytest.raises(IndexError):
        x[dc.asarray(a)]
    with pytest.raises(IndexError):
        x[dc.asarray(a)] = 1
