"""NumPy's functions done by a vendor's library, which is NumPy itself on the memory of a made-up device."""

from __future__ import annotations

import ast
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy
from made_up_device import MadeUpDevice, make_up

import dcarray as dc
from dcarray.lowering.gpu.cuda import libraries
from dcarray.lowering.gpu.cuda.device import CudaDevice

N = 20_000


class _Library(MadeUpDevice):
    """A device with a library, which logs its calls, and that may refuse everything."""

    def __init__(self) -> None:
        super().__init__("made-up:0", "made-up")
        self.calls: list[str] = []
        self.refuses = False

    def library(self, name: str) -> Any:
        if name not in libraries.FUNCTIONS:
            return None

        def run(*args: Any, **kwargs: Any) -> Any:
            if self.refuses:
                raise TypeError("not today")
            self.calls.append(name)
            function: Any = np
            for part in name.split(".")[1:]:
                function = getattr(function, part)
            found = function(*args, **kwargs)
            return tuple(found) if isinstance(found, tuple) else np.asarray(found)

        return run

    def array(self, buffer: Any, shape: Any, strides: Any, dtype: Any) -> Any:
        return np.ndarray(shape, dtype, buffer.data, 0, [step * dtype.itemsize for step in strides])

    def allocate(self, nbytes: int) -> Any:
        return super().allocate(nbytes).view(_Bytes)

    def buffer_of(self, array: Any) -> Any:
        return np.array(array).reshape(-1).view(np.uint8).view(_Bytes)


class _Bytes(np.ndarray):
    """A buffer of which parts can be had."""

    def part(self, offset: int, size: int) -> _Bytes:
        return self[offset : offset + size]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> _Library:
    found = _Library()
    make_up(monkeypatch, found)
    return found


def _put(a: Any) -> Any:
    return dc.asarray(a, device="made-up:0")


def _square(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((n, n)) + n * np.eye(n)


CALLS: dict[str, Any] = {
    "numpy.fft.fft": lambda np, x: np.fft.fft(x),
    "numpy.fft.rfft2": lambda np, x: np.fft.rfft2(x, axes=(0, 1)),
    "numpy.fft.ifftn": lambda np, x: np.fft.ifftn(x, s=(100, 90), axes=(0, 1)),
    "numpy.fft.irfft": lambda np, x: np.fft.irfft(x, n=120, axis=0, norm="ortho"),
    "numpy.linalg.solve": lambda np, x: np.linalg.solve(x, x * 2 + 1),
    "numpy.linalg.inv": lambda np, x: np.linalg.inv(x[1:, :-1].T),
    "numpy.linalg.qr": lambda np, x: np.linalg.qr(x).R,
    "numpy.linalg.svd": lambda np, x: np.linalg.svd(x, compute_uv=False),
    "numpy.linalg.det": lambda np, x: np.linalg.det(x / 150.0),
    "numpy.linalg.slogdet": lambda np, x: np.linalg.slogdet(x).logabsdet,
    "numpy.sort": lambda np, x: np.sort(x, axis=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_the_librarys(name: str, device: _Library) -> None:
    a = _square(150)
    want, x = CALLS[name](np, a + 1), dc.evaluate(_put(a) + 1)
    got = CALLS[name](np, x)
    assert device.calls == [name] and (device.downloads > 0) == (np.ndim(want) == 0)
    assert type(got) is (type(x) if np.ndim(want) else type(want))
    assert got.dtype == want.dtype and np.shape(got) == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)
    if np.ndim(want):
        assert got.device == "made-up:0"
        np.testing.assert_allclose(np.asarray(abs(got * 2)), abs(want * 2), rtol=1e-12, atol=1e-12)


def test_what_a_library_refuses_is_numpys(device: _Library) -> None:
    a = _square(150)
    device.refuses = True
    got = np.fft.fft(_put(a))
    assert device.calls == [] and got.device == "made-up:0"
    np.testing.assert_array_equal(np.asarray(got), np.fft.fft(a))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(_put(np.zeros((150, 150))), _put(a))
    device.refuses = False
    with pytest.raises(np.linalg.LinAlgError):  # which the library raises, and then NumPy
        np.linalg.solve(_put(np.zeros((150, 150))), _put(a))
    with pytest.raises(IndexError):
        np.fft.fft(_put(a), axis=5)


def test_what_is_not_in_a_buffer_is_numpys(device: _Library) -> None:
    a = _square(150)
    np.linalg.solve(_put(a), a[0])  # a plain operand
    np.fft.fft(_put(np.ones(10)))  # a small array
    np.argsort(_put(a))  # equal elements may come in any order
    assert device.calls == []


def test_what_is_pending_runs_first(device: _Library) -> None:
    a = _square(150)
    x = _put(a)
    x += 1
    y = np.linalg.inv(x)
    x *= 0
    np.testing.assert_allclose(np.asarray(y), np.linalg.inv(a + 1), rtol=1e-12)


def test_cupys_functions_are_called_in_the_devices_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy: Any = FakeCupy()
    states: list[Any] = []

    def errstate(**how: Any) -> Any:
        states.append(how)
        return nullcontext()

    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(errstate=errstate))
    cupy.fft, cupy.linalg, cupy.sort = np.fft, np.linalg, np.sort
    device = CudaDevice(0)
    for name in libraries.FUNCTIONS:
        assert device.library(name) is not None
    assert device.library("numpy.linalg.eig") is None
    transform, solve = device.library("numpy.fft.fft"), device.library("numpy.linalg.inv")
    assert transform is not None and solve is not None
    np.testing.assert_array_equal(transform(np.ones(4)), np.fft.fft(np.ones(4)))
    assert states == []
    solve(np.eye(3))
    assert states == [{"linalg": "raise"}]


def test_cupy_has_the_functions() -> None:
    """Read from the package's source, since CuPy does not run without a GPU."""
    import importlib.util

    spec = importlib.util.find_spec("cupy")
    if spec is None or spec.origin is None:
        pytest.skip("CuPy is not installed")
    for module in ("fft", "linalg"):
        tree = ast.parse((Path(spec.origin).parent / module / "__init__.py").read_text())
        names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        wanted = {name.rpartition(".")[2] for name in libraries.FUNCTIONS if f".{module}." in name}
        assert wanted <= names, wanted - names
