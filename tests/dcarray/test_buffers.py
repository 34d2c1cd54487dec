"""Wrapped arrays where Python asks for a buffer."""

import hashlib
import io
import struct
import sys

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.native import BUILT

_FULL = 0x11C  # what a memoryview asks for


@pytest.fixture(params=["small", "large"])
def way(request):
    with dc.options(**({} if request.param == "small" else {"eager_below": 0, "jit": "off"})):
        yield


def test_whoever_reads_bytes(way):
    plain = np.arange(12.0).reshape(3, 4)
    x = dc.asarray(plain) + 1
    plain = plain + 1
    assert bytes(x) == bytearray(x) == plain.tobytes()
    assert hashlib.sha256(x).digest() == hashlib.sha256(plain).digest()
    file = io.BytesIO()
    assert file.write(x) == plain.nbytes and file.getvalue() == plain.tobytes()
    view = memoryview(x)
    assert (view.shape, view.strides, view.format, view.readonly) == ((3, 4), (32, 8), "d", False)


def test_writes_arrive(way):
    x = dc.zeros((3, 4)) + 1
    view = memoryview(x)
    x += 1
    assert view[1, 1] == 2
    struct.pack_into("d", x, 8, 7.0)
    io.BytesIO(bytes(8)).readinto(x[0])
    assert x.tolist()[0] == [0, 7, 2, 2]
    del view
    x *= 2
    assert x.tolist()[0] == [0, 14, 4, 4]


@pytest.mark.parametrize(
    "dtype", ["?", "i4", "q", "l", ">f8", "e", "g", "F", "U3", "S2", "O", "i4,f8", "M8[ns]", "T"]
)
def test_numpy_sees_its_own_dtype(way, dtype):
    plain = np.zeros(3, dtype)
    found = np.asarray(dc.asarray(plain))
    assert found.dtype == plain.dtype and found.dtype.char == plain.dtype.char
    assert np.array_equal(found, plain) and np.shares_memory(found, plain)


def test_what_a_buffer_does_not_tell():
    for dtype in (np.dtype("i", metadata={"a": 1}), np.dtype("i1,f8", align=True)):
        x = dc.asarray(np.zeros(2, dtype))
        found = np.asarray(x).dtype
        assert found.metadata == dtype.metadata and found.isalignedstruct == dtype.isalignedstruct
        with pytest.raises(BufferError):
            x.__buffer__(_FULL)


def test_what_cannot_be_a_buffer(way):
    file = io.BytesIO()
    assert file.write(dc.ones((2, 3), "M8[s]").T) == 48  # who asks for bytes only is not told of a dtype
    refused = (ValueError, BufferError) if BUILT or sys.version_info >= (3, 12) else SystemError
    for x in (dc.zeros(2, "M8[s]"), dc.zeros(2, "i1,f8").astype(np.dtype("i1,f8", align=True))):
        with pytest.raises(refused):
            memoryview(x)
    frozen = dc.asarray(np.broadcast_to(np.float64(1), (8,)))
    with pytest.raises(TypeError):
        io.BytesIO(bytes(8)).readinto(frozen)


def test_memory_whose_owner_is_its_own_base():
    """As arrays of Cython are."""

    class Memory:
        def __init__(self, values):
            self.__array_interface__, self.values = values.__array_interface__, values

        @property
        def base(self):
            return self

    plain = np.asarray(Memory(np.arange(20_000.0)))
    assert type(plain.base) is Memory
    x = dc.asarray(plain)
    x += 1
    np.testing.assert_array_equal(x + plain[:1], np.arange(20_000.0) + 2)
    assert plain[2] == 3


@pytest.mark.parametrize("part", [np.s_[:, 1], np.s_[::-1, ::2], np.s_[3:9], ...])
def test_views_of_parts_may_be_made_writable_again(part):
    """As SciPy's sparse arrays do with indices."""
    x = dc.asarray(np.arange(60_000.0).reshape(-1, 4)) * 2
    for whole in (x, x.T):
        plain = whole[part].__array__()
        plain.flags.writeable = True
        view = plain[...]
        view.flags.writeable = False
        view.flags.writeable = True
        wanted = np.array(whole)
        del plain
        wanted[part] = 7
        whole += 0  # not recorded, since the view is there
        view[...] = 7
        assert np.array_equal(whole, wanted)


@pytest.mark.parametrize("kind", [np.recarray, np.matrix, np.memmap])
def test_writes_to_views_of_other_classes_are_noticed(kind: type) -> None:
    x = dc.asarray(np.zeros(100_000))
    view = x.view(type=kind)
    assert type(view) is kind
    y = x + 5
    view[..., 0] = 9
    assert (y[0], x[0]) == (5, 9)
