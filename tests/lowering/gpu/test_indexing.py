"""The kernels that index, search, sort and count, on the slow machine and on a device, against NumPy."""

import numpy as np
import pytest
from devices import DEVICE, KIND, needs_device
from kernel_machine import Machine

from dcarray.lowering.gpu import devices, indexing, streams
from dcarray.lowering.gpu.indexing import RUN, THREADS, selection
from dcarray.lowering.kernel.nodes import Binding, Pointer
from dcarray.lowering.kernel.verify import check
from dcarray.offload.kernel_calls import compiled

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
                compiled(KIND, selection(x.dtype))(there, (blocks,), given, (number, size, blocks))
                there.download(buffers[0], out)
            np.testing.assert_array_equal(out, x[mask])


def run(kernel, ints, *given):
    """The arrays after a run of a kernel on the slow machine, which finds elements that two threads write."""
    check(kernel)
    blocks = -(-ints[0] // THREADS)
    arrays = {f"a{k}": (a.reshape(-1).copy(), 0) for k, a in enumerate(given)}
    pointers = tuple(Pointer(name, 0) for name in arrays)
    Machine(kernel, Binding(pointers, (*ints, blocks), (blocks,), (1,)), arrays, {})
    return [a for a, _ in arrays.values()]


F8, I8, I2 = (np.dtype(kind) for kind in ("f8", "i8", "i2"))


def test_scatters():
    rng = np.random.default_rng(0)
    x, at = rng.random((5, 9, 4)), rng.permutation(9)[:6].astype(I2) - 4
    for values, step in ((rng.random((5, 6, 4)), 1), (np.array([7.0]), 0)):
        want = x.copy()
        want[:, at] = values
        found = run(indexing.scatter(F8, I2), (5 * 6 * 4, 4, 6, 9, step), x, values, at)
        np.testing.assert_array_equal(found[0].reshape(x.shape), want)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 300])
def test_sorting_searching_and_sums_of_groups(size):
    rng = np.random.default_rng(size)
    x = np.round(rng.normal(size=size), 1)
    x[rng.random(size) < 0.1] = np.nan
    keys, places = run(indexing.ranks(F8), (size,), np.zeros(size), np.zeros(size, I8), x)[:2]
    width = RUN
    while width < size:
        keys, places = run(indexing.merge(F8), (size, width), keys, places, keys, places)[:2]
        width *= 2
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(keys, np.sort(x))
    for right in (False, True):
        kernel = indexing.search(F8, F8, F8, right)
        found = run(kernel, (size, size), np.zeros(size, I8), keys, x)[0]
        np.testing.assert_array_equal(found, np.searchsorted(keys, x, "right" if right else "left"))
    numbers, weights = rng.integers(0, 20, size), rng.random(size)
    order = np.argsort(numbers, kind="stable")
    kernel = indexing.grouped(F8, I8, F8)
    found = run(kernel, (20, size), np.zeros(20), numbers[order], order, weights)[0]
    np.testing.assert_array_equal(found, np.bincount(numbers, weights, 20))


@pytest.mark.parametrize("threads", [1, 7, 300])
def test_sums_by_bins(threads):
    rng = np.random.default_rng(threads)
    x, weights, edges = rng.normal(size=500), rng.random(500), np.linspace(-1, 1, 12)
    x[::50], x[3] = edges[-1], np.nan
    ints = (threads, 500, 11)
    found = run(indexing.binned(F8, F8, None), ints, np.zeros((11, threads), I8), x, edges)[0]
    np.testing.assert_array_equal(found.reshape(11, threads).sum(axis=1), np.histogram(x, edges)[0])
    found = run(indexing.binned(F8, F8, F8), ints, np.zeros((11, threads)), x, edges, weights)[0]
    np.testing.assert_allclose(found.reshape(11, -1).sum(axis=1), np.histogram(x, edges, weights=weights)[0])
    numbers = rng.integers(0, 11, 500).astype(I2)
    found = run(indexing.binned(I2, None, None), ints, np.zeros((11, threads), I8), numbers)[0]
    np.testing.assert_array_equal(found.reshape(11, threads).sum(axis=1), np.bincount(numbers, minlength=11))


@pytest.mark.parametrize("mode, before", [("full", 69), ("valid", 0), ("same", 35)])
def test_sliding_products(mode, before):
    rng = np.random.default_rng(2)
    x, weights = rng.integers(-9, 9, (2, 300))
    want = np.correlate(x, weights[:70], mode)
    kernel = indexing.sliding(I8)
    found = run(kernel, (want.size, 300, 70, before), np.zeros(want.size, I8), x, weights[:70])[0]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("count", [1, 257, 700])
def test_numbers_of_a_stream(count):
    bits = np.random.PCG64(count)
    state, inc = bits.state["state"].values()
    first = (state * streams.MULTIPLIER + inc) % (1 << 128)
    digits = streams.digits_of(count)
    given = np.array([first >> 64, first % (1 << 64)], np.uint64), streams.jumps(inc, digits)
    found = run(streams.numbers(), (count, digits), np.zeros(count, np.uint64), *given)[0]
    np.testing.assert_array_equal(found, bits.random_raw(count))
