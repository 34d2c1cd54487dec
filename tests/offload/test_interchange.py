"""DLPack and CUDA's array interface, with a made-up CUDA device: addresses are those of host memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up_device import MadeUpDevice, make_up

import dcarray as dc
from dcarray.lowering.gpu import devices as table

N = 20_000


class _Memory:
    """A place in a buffer, as CuPy's memory pointers are."""

    def __init__(self, bytes_: np.ndarray, offset: int = 0) -> None:
        self.bytes, self.offset = bytes_, offset

    def __add__(self, offset: int) -> _Memory:
        return _Memory(self.bytes, self.offset + offset)


class _Buffer(np.ndarray):
    """A buffer with an address, as that of a CUDA device is."""

    @property
    def ptr(self) -> int:
        return int(self.ctypes.data)

    @property
    def memory(self) -> _Memory:
        return _Memory(self)


class _Array:
    """An array of a library for GPUs, here in host memory."""

    def __init__(self, shape: Any, dtype: Any, memory: Any, strides: Any = None) -> None:
        self.plain = np.ndarray(shape, dtype, memory.bytes.data, memory.offset, strides)
        self.shape, self.dtype, self.size, self.flags = shape, dtype, self.plain.size, self.plain.flags

    def __dlpack__(self, **how: Any) -> Any:
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def copy(self, order: str) -> _Array:
        raw = np.frombuffer(bytearray(self.plain.tobytes()), np.uint8)
        return _Array(self.shape, self.dtype, _Memory(raw))


class _Cuda(MadeUpDevice):
    number = 0
    cupy = SimpleNamespace(ndarray=_Array, from_dlpack=lambda x: x)

    def allocate(self, nbytes: int) -> Any:
        return super().allocate(nbytes).view(_Buffer)

    def buffer_of(self, array: _Array) -> Any:
        return array.plain.reshape(-1).view(np.uint8).view(_Buffer)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> _Cuda:
    """A device that says it is of CUDA, whose plans the region interpreter runs."""
    found = _Cuda("cuda:0", "made-up")
    make_up(monkeypatch)
    monkeypatch.setitem(table._found, "cuda", [found])
    monkeypatch.setattr("dcarray.offload.interchange._is_cuda", lambda x: x._device is found)
    return found


def test_elements_are_shared_without_a_copy(cuda: _Cuda) -> None:
    x = dc.asarray(np.arange(float(N)).reshape(100, 200), device="cuda:0")
    y = (x + 1)[2:50:3, ::-2]
    assert x.__dlpack_device__() == (2, 0)
    shared = y.__dlpack__().plain
    face = y.__cuda_array_interface__
    assert shared.ctypes.data == face["data"][0] and shared.strides == face["strides"] == y.strides
    assert face["typestr"] == "<f8" and face["shape"] == y.shape and face["version"] == 3
    want = (np.arange(float(N)).reshape(100, 200) + 1)[2:50:3, ::-2]
    assert np.array_equal(shared, want) and cuda.downloads == 0
    shared[0, 0] = -1.0  # the other library writes
    assert float(y[0, 0]) == -1.0 and float((y * 2)[0, 0]) == -2.0
    shared[0, 0] = -2.0
    assert float(y[0, 0]) == -2.0
    y += 1  # and so do we, on the device and on the host
    assert shared[0, 0] == -1.0
    y.flat[1] = 8.0
    dc.evaluate(y * 1)
    assert shared[0, 1] == 8.0 and float(y[0, 1]) == 8.0


def test_arrays_of_others_are_taken_over(cuda: _Cuda) -> None:
    raw = np.arange(float(N)).view(np.uint8)
    theirs = _Array((100, 200), np.dtype("f8"), _Memory(raw))
    x = dc.from_dlpack(theirs)
    assert x.device == "cuda:0" and cuda.uploads == 0
    x += 1
    dc.evaluate(x)
    assert theirs.plain[0, 5] == 6.0
    theirs.plain[0, 5] = 9.0
    assert float(x[0, 5]) == 9.0
    copied = dc.from_dlpack(theirs, copy=True)
    copied += 1
    dc.evaluate(copied)
    assert theirs.plain[0, 5] == 9.0 and float(copied[0, 5]) == 10.0
    assert dc.from_dlpack(theirs, device="cpu").device == "cpu"
    gaps = _Array((100, 100), np.dtype("f8"), _Memory(raw), (1600, 16))
    assert float(dc.from_dlpack(gaps)[0, 1]) == theirs.plain[0, 2]
    with pytest.raises(ValueError, match="void a copy"):
        dc.from_dlpack(gaps, copy=False)


def test_small_arrays_have_an_address_too(cuda: _Cuda) -> None:
    x = dc.asarray([1.0, 2.0], device="cuda:0")
    shared = x.__dlpack__().plain
    shared[1] = 5.0
    assert float(x[1]) == 5.0 and float((x + 1)[1]) == 6.0


def test_other_devices_share_the_hosts_memory(cuda: _Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table._found, "made-up", [MadeUpDevice(target="made-up")])
    x = dc.arange(float(N), device="made-up:0") + 1
    assert x.__dlpack_device__() == (1, 0) and not hasattr(x, "__cuda_array_interface__")
    a = np.from_dlpack(x)
    x += 1
    assert a[0] == float(x[0]) == 2.0
    assert not hasattr(dc.ones(3), "__cuda_array_interface__")
    y = dc.from_dlpack(np.arange(4.0), device="made-up:0")
    assert y.device == "made-up:0" and float(y[3]) == 3.0
