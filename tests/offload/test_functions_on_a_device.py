"""NumPy's functions that kernels of a device do, against NumPy: on the device, and on a stand-in for CUDA."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import cuda_on_host
import numpy as np
import pytest
from devices import DEVICE, needs_device
from fake_cupy import FakeCupy

import dcarray as dc
from dcarray.lowering.gpu import devices as table
from dcarray.lowering.gpu.cuda.device import CudaDevice
from dcarray.offload.kernel_calls import Kernels

N = 3000


@pytest.fixture(autouse=True)
def kernels_do_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels do what NumPy does sooner where the device is the processor."""
    monkeypatch.setattr("dcarray.offload.function_table.NUMPYS_ON_PROCESSORS", frozenset())


def _data() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(2, N))
    x[[3, 77, 1500]] = 0.0, -0.0, np.inf
    holes = x.copy()
    holes[[5, 900]] = np.nan
    return {
        "x": x, "w": w, "holes": holes, "single": w.astype(np.float32), "A": rng.normal(size=(60, 50)),
        "i": rng.integers(0, 40, N), "signed": rng.integers(-N, N, 700).astype(np.int32),
        "few": rng.integers(-20, 20, N).astype(np.int16), "wide": rng.integers(0, 2 * N, N),
        "once": rng.permutation(N), "m": rng.random(N) < 0.3, "M": rng.random((60, 50)) < 0.5,
        "rows": rng.random(60) < 0.5, "s": np.sort(w), "cols": rng.integers(0, 50, (60, 7)),
        "r": rng.integers(-60, 60, 900), "c": rng.integers(-50, 50, 900), "z": x + 1j * w,
        "bytes": rng.integers(0, 256, N).astype(np.uint8), "e": np.linspace(-2, 2, 30),
    }  # fmt: skip


EXACT = """
np.histogram(x[np.isfinite(x)], 17)
np.histogram(w, 17)
np.histogram(w, 17, (-1, 1.5))
np.histogram(w, np.sort(e))
np.histogram(single, 9)
np.histogram(few, 11)
np.histogram(bytes, 10, (3, 200))
np.histogram(i, np.arange(12))
np.histogram(holes, 8, (-2, 2))
np.histogram(w, 1)
np.histogram(A, 12)
np.histogram(w, 10, weights=i)
np.bincount(i)
np.bincount(i, minlength=100)
np.bincount(wide)
np.bincount(wide * 20, w)
np.bincount(bytes)
np.searchsorted(s, w)
np.searchsorted(s, holes, 'right')
np.searchsorted(s, few)
np.searchsorted(np.sort(few), w, side='right')
np.searchsorted(s, 0.25)
np.searchsorted(e, A)
np.digitize(x, e)
np.digitize(x, e, right=True)
np.digitize(x, e[::-1])
np.interp(holes, s, w)
np.interp(x, e, e ** 2, left=-7.0, right=np.nan)
np.isin(i, [3, 5, 39])
np.isin(x, w[:200])
np.isin(x, s, invert=True)
np.sort(holes)
np.sort(few)
np.sort(A, axis=0)
np.sort(A)
np.sort(A, axis=None)
np.argsort(holes, kind='stable')
np.argsort(w)
np.argsort(A, axis=1)
np.argsort(A, axis=0, stable=True)
np.lexsort((w, i))
np.unique(few)
np.unique(holes)
np.unique(holes, equal_nan=False)
np.unique(i, return_index=True, return_inverse=True, return_counts=True)
np.unique(A)
np.median(w)
np.median(w[:-1])
np.median(holes)
np.median(few)
np.quantile(w, 0.3)
np.quantile(w, [0, 0.25, 1])
np.percentile(w, (10, 99.5))
np.percentile(holes, 5)
np.median(A, axis=0)
np.median(few.reshape(60, 50), axis=1, keepdims=True)
np.median(holes.reshape(2, 30, 50), axis=1)
np.quantile(A, 0.3, axis=0)
np.percentile(holes.reshape(60, 50), [10, 90], axis=1)
np.argmax(A, axis=0, keepdims=True)
np.argmax(x)
np.argmin(holes)
np.argmax(A, axis=0)
np.argmin(few)
x.argmax()
A.argmin(axis=1)
np.nonzero(m)
np.nonzero(M)
np.flatnonzero(x)
np.argwhere(M)
np.where(M)
m.nonzero()
np.extract(m, x)
np.compress(m, x)
x[m]
x[signed]
x[[1, -2, 5]]
A[rows]
A[r]
A[:, c]
A[r, c]
A[1:, 2:][r[:50] // 2]
z[signed]
np.take(x, signed)
np.take(A, [[0, 1], [2, -3]], axis=1)
x.take(i)
np.take_along_axis(A, cols, axis=1)
np.repeat(w, i)
x[::2].argsort(kind='stable')
np.take_along_axis(A.reshape(30, 2, 50), cols.reshape(30, 14, 1)[:, :, [0] * 50] % 4 - 2, axis=1)
np.einsum('ij,ij->i', few.reshape(60, 50), few.reshape(60, 50))
np.convolve(i, i[:30])
np.correlate(few, few[:30], 'same')
"""
CLOSE = """
np.histogram(w, 12, weights=x * 0.5)
np.histogram(w, 12, density=True)
np.histogram(w, np.sort(e), weights=w)
np.bincount(i, w)
np.bincount(wide, w)
np.bincount(i, single)
np.einsum('ij,ij->i', A, A)
np.einsum('ij,ij->', A, A)
np.einsum('bij,bj->bi', w.reshape(60, 25, 2), A[:, :2])
np.einsum('bij,bjk,bkl->lbi', *[w.reshape(120, 5, 5)] * 3)
np.convolve(w, e, 'same')
np.convolve(e, w)
"""
WRITTEN = """
x[once] = w
x[i] = w
x[signed] = 3
A[rows] = -1.0
A[r] = A[:900 // 15 * 15][r % 60] * 2
A[r, c] = 5.0
A[:, c[:20]] = 7
x[m] = w[:m.sum()]
few[i] = w
np.put(x, signed, w[:700])
np.put_along_axis(A, cols, cols * 0.5, 1)
np.put_along_axis(A, cols[:50].T - 25, -1.0, 0)
np.add.at(x, i, w)
np.add.at(x, signed, 1.5)
np.add.at(few, i, 1)
"""
ERRORS = """
np.bincount(signed)
x[wide]
x[w]
np.take(x, [N])
A[r, wide[:900]]
np.histogram(holes, 5)
np.histogram(w, 0)
np.histogram(w, [3, 2, 1])
np.digitize(x, [1, 3, 2])
x.__setitem__(wide, 1.0)
x.__setitem__(i, w[:5])
np.searchsorted(s, x, side='middle')
np.quantile(w, 1.5)
np.repeat(w, few)
np.put_along_axis(A, cols + 1, 0.0, 1)
np.convolve(w, e, 'most')
np.einsum('ij,ij->k', A, A)
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


class _Run:
    """Runs of statements with NumPy, and with arrays on a device; how often elements came to the host."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self.brought = name, 0
        kind: Any = type(table.get(name))
        known = kind.download

        def download(device: Any, buffer: Any, target: Any, start: int = 0) -> None:
            self.brought += target.nbytes > 1000
            known(device, buffer, target, start)

        monkeypatch.setattr(kind, "download", download)

    def both(self, text: str) -> tuple[list[Any], list[Any]]:
        """Return what an expression gives: NumPy's, and the device's, which brings no array to the host."""
        want = _flat(eval(text, {"np": np, "N": N, **_data()}))
        with dc.options(jit="eager", eager_below=20):
            given = {name: dc.asarray(a, device=self.name) for name, a in _data().items()}
            before = self.brought
            found = _flat(eval(text, {"np": np, "N": N, **given}))
            assert self.brought == before, "elements were brought to the host"
            assert len(found) == len(want)
            assert all(getattr(x, "device", self.name) == self.name for x in found if np.ndim(x))
            found = [np.asarray(x) for x in found]
        for one, other in zip(found, want, strict=True):
            assert one.dtype == np.asarray(other).dtype and one.shape == np.shape(other)
        return found, want

    def written(self, text: str) -> None:
        """Compare all arrays after a statement, and what was pending on them."""
        mine = {"np": np, "N": N, **_data()}
        later = mine["x"] + 1
        exec(text, mine)
        with dc.options(jit="eager", eager_below=20):
            given = {name: dc.asarray(a, device=self.name) for name, a in _data().items()}
            pending, before = given["x"] + 1, self.brought
            exec(text, {"np": np, "N": N, **given})
            assert self.brought == before, "elements were brought to the host"
            np.testing.assert_array_equal(np.asarray(pending), later)
            for name, a in given.items():
                np.testing.assert_array_equal(np.asarray(a), mine[name], err_msg=name)


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> _Run:
    return _Run(DEVICE, monkeypatch)


@needs_device
@pytest.mark.parametrize("text", _lines(EXACT))
def test_exact_results(on_device: _Run, text: str) -> None:
    for found, want in zip(*on_device.both(text), strict=True):
        np.testing.assert_array_equal(found, want)


@needs_device
@pytest.mark.parametrize("text", _lines(CLOSE))
def test_sums(on_device: _Run, text: str) -> None:
    first = on_device.both(text)
    for found, want, again in zip(*first, on_device.both(text)[0], strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6 if found.dtype == np.float32 else 1e-12, atol=1e-12)
        np.testing.assert_array_equal(found, again)  # the same in every run


@needs_device
@pytest.mark.parametrize("text", _lines(WRITTEN))
def test_written_elements(on_device: _Run, text: str) -> None:
    on_device.written(text)


def _error(call: Callable[[], Any]) -> Any:
    try:
        return type(call()).__name__
    except Exception as error:
        return type(error), str(error)


@needs_device
@pytest.mark.parametrize("text", _lines(ERRORS))
def test_errors_are_numpys(text: str) -> None:
    want = _error(lambda: eval(text, {"np": np, "N": N, **_data()}))
    assert not isinstance(want, str)
    given = {name: dc.asarray(a, device=DEVICE) for name, a in _data().items()}
    assert _error(lambda: eval(text, {"np": np, "N": N, **given})) == want


NUMBERS = """
random(1500)
random((70, 300), dtype=np.float64)
uniform(-2, 5.5, 4000)
integers(3, 1000, 5001)
random(4000)
integers(0, 7, 5000)
integers(5001, size=(100, 51))
standard_normal(2000)
integers(1, 6, 3000, endpoint=True)
integers(9, size=3)
integers(-9, 2**31, 1111)
integers(10**12, size=2000)
random(2000, dtype=np.float32)
uniform(high=3, size=1500)
random(5)
"""


@needs_device
def test_random_numbers_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table.get(DEVICE), "is_processor", False)
    mine, numpys, drawn = dc.random.default_rng(3), np.random.default_rng(3), []
    known = Kernels.streamed
    monkeypatch.setattr(Kernels, "streamed", lambda *given: drawn.append(given) or known(*given))
    for text in _lines(NUMBERS):
        with dc.options(device=DEVICE, jit="eager"):
            found = eval(f"rng.{text}", {"np": np, "rng": mine})
        want = eval(f"rng.{text}", {"np": np, "rng": numpys})
        assert found.dtype == want.dtype and found.shape == want.shape and found.device == DEVICE
        np.testing.assert_array_equal(np.asarray(found), want)
        assert mine.bit_generator.state == numpys.bit_generator.state
    assert len(drawn) == 10


@needs_device
def test_equal_elements_are_in_numpys_order(on_device: _Run) -> None:
    few = _data()["few"]
    with dc.options(eager_below=20):
        found = np.argsort(dc.asarray(few, device=DEVICE))
    np.testing.assert_array_equal(found, np.argsort(few))
    assert on_device.brought


@needs_device
def test_a_processor_leaves_sorting_to_numpy(on_device: _Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dcarray.offload.function_table.NUMPYS_ON_PROCESSORS", {np.sort})
    x = _data()["holes"]
    with dc.options(eager_below=20):
        found = np.sort(dc.asarray(x, device=DEVICE))
        np.testing.assert_array_equal(found, np.sort(x))
    assert found.device == DEVICE
    assert bool(on_device.brought) == table.get(DEVICE).is_processor


@needs_device
def test_jit_off_is_numpy(on_device: _Run) -> None:
    with dc.options(eager_below=20):
        x = dc.asarray(_data()["few"], device=DEVICE)
    with dc.options(jit="off"):
        np.testing.assert_array_equal(np.sort(x), np.sort(_data()["few"]))
    assert on_device.brought


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Run]:
    """A CUDA device on host memory, whose libraries refuse everything."""
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy())
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    device = CudaDevice(0)
    monkeypatch.setattr(CudaDevice, "library", lambda *_: None)
    monkeypatch.setitem(table._found, "cuda", [device])
    with dc.options(graphs=False, cache_dir=None):
        yield _Run(device.name, monkeypatch)


@pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="no C++ compiler")
def test_on_the_stand_in_for_cuda(cuda: _Run) -> None:
    for text in (
        "np.histogram(w, 17, weights=few)", "np.bincount(wide * 20, w)", "np.searchsorted(s, holes, 'right')",
        "np.argsort(holes, kind='stable')", "np.nonzero(M)", "A[:, c]", "np.take_along_axis(A, cols, axis=1)",
    ):  # fmt: skip
        for found, want in zip(*cuda.both(text), strict=True):
            np.testing.assert_array_equal(found, want)
    cuda.written("x[i] = w")
    for name in ("exp", "log", "sqrt", "cos"):
        found, want = cuda.both(f"np.{name}(z[np.isfinite(x)])")
        np.testing.assert_allclose(found[0], want[0], rtol=1e-14)


@needs_device
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_remainders_of_one_number_for_all_threads_of_a_block(dtype: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-9, 9, shape).astype(dtype) for shape in ((1, 5, 1), (4, 5, 17)))
    with dc.options(eager_below=0, jit="eager", cache_dir=None):
        x, y = dc.asarray(a, device=DEVICE), dc.asarray(b, device=DEVICE)
        for ufunc in (np.floor_divide, np.remainder, np.fmod):
            np.testing.assert_array_equal(np.asarray(ufunc(x, y)), ufunc(a, b))
            np.testing.assert_array_equal(np.asarray(ufunc(y, x)), ufunc(b, a))
