"""The kernel that selects elements by a mask, on the slow machine and on a device, against NumPy."""

import numpy as np
import pytest
from devices import DEVICE, KIND, needs_device
from kernel_machine import Machine

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.selection import THREADS, compiled, selection
from dcarray.lowering.kernel.nodes import Binding, Pointer
from dcarray.lowering.kernel.verify import check
from dcarray.lowering.targets import get

SHARES = (0.0, 0.003, 0.5, 1.0)


def case(size, share, dtype):
    rng = np.random.default_rng(size)
    x = (rng.random(size) * 100).astype(dtype)
    mask = rng.random(size) < share
    return x, mask, np.cumsum(mask, dtype=np.int64)


@pytest.mark.parametrize("share", SHARES)
def test_on_the_slow_machine(share):
    x, mask, counts = case(700, share, "f8")
    number = int(counts[-1])
    blocks = -(-number // THREADS)
    kernel = selection(x.dtype)
    check(kernel)
    arrays = {"o": (np.zeros(number + 1), 0), "x": (x, 0), "c": (counts, 0)}
    pointers = tuple(Pointer(name, 0) for name in arrays)
    Machine(kernel, Binding(pointers, (number, x.size, blocks), (blocks,), (1,)), arrays, {})
    np.testing.assert_array_equal(arrays["o"][0][:number], x[mask])


@needs_device
@pytest.mark.parametrize("dtype", "?bhilBHILefdFD")
def test_on_a_device(dtype):
    there = devices.get(DEVICE)
    for size in (1, 255, 40_000):
        for share in SHARES:
            x, mask, counts = case(size, share, dtype)
            number = int(counts[-1])
            out = np.empty(number, dtype)
            buffers = [there.allocate(max(a.nbytes, 1)) for a in (out, x, counts)]
            there.upload(x, buffers[1])
            there.upload(counts, buffers[2])
            blocks = -(-number // THREADS)
            if number:
                given = tuple((buffer, 0) for buffer in buffers)
                compiled(get(KIND).compiler, x.dtype)(there, (blocks,), given, (number, size, blocks))
                there.download(buffers[0], out)
            np.testing.assert_array_equal(out, x[mask])
