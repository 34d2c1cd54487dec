"""Recordings on an OpenCL device that has no memory, or refuses a kernel: nothing is lost."""

import numpy as np
import pytest
from devices import needs_opencl

import dcarray as dc
from dcarray.lowering.gpu import devices

pytestmark = [needs_opencl]
N = 40_000
NEEDED = 1  # arrays of so many elements, of a run


def steps(u, v):
    """In-place updates, between which a temporary that is read with a shift needs memory of its own."""
    for _ in range(3):
        u += 1
        t = u * v
        v[1:] = t[:-1] + t[1:]
    return u, v


@pytest.fixture
def operands():
    return np.arange(N) % 7.0, np.ones(N)


@pytest.mark.parametrize("rooms", range(3))
def test_without_memory_the_host_runs_it_and_nothing_is_lost(operands, monkeypatch, rooms):
    opencl = devices.get("opencl")
    allocate, refused = opencl.allocate, []

    def limited(nbytes):
        if opencl._pool.active_bytes + nbytes > most:
            refused.append(nbytes)
            raise MemoryError(f"opencl:0 has no memory left for {nbytes} bytes")
        return allocate(nbytes)

    want = steps(*(a.copy() for a in operands))
    with dc.options(jit="eager"):
        u, v = (dc.asarray(a, device="opencl") for a in operands)
        dc.evaluate(u + 0, v + 0)  # now in buffers
        u *= 1
        v *= 1
        dc.evaluate()  # now the device alone has them
        dc.report(reset=True)
        most = opencl._pool.active_bytes + int((rooms + 0.5) * 8 * N)
        with monkeypatch.context() as patch:
            patch.setattr(opencl, "allocate", limited)
            dc.evaluate(steps(u, v))
        fallbacks = [row.function for row in dc.report().fallbacks]
        assert bool(refused) == any("no memory left" in name for name in fallbacks)
        assert bool(refused) == (rooms < NEEDED)
        for got, expected in zip((u, v), want, strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)
        again = steps(u, v)  # the arrays stay usable, on the device
        assert again[0].device == "opencl:0"
        for got, expected in zip(again, steps(*want), strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)


def test_without_double_precision_the_host_runs_it(operands, monkeypatch):
    opencl = devices.get("opencl")
    monkeypatch.setattr(opencl, "fp64", False)
    monkeypatch.setattr(opencl, "_built", {})
    want = steps(*(a.copy() for a in operands))
    single = steps(*(a.astype("f4") for a in operands))
    with dc.options(jit="eager"):
        dc.report(reset=True)
        with pytest.warns(RuntimeWarning, match="on the host instead of opencl:0"):
            got = steps(*(dc.asarray(a, device="opencl") for a in operands))
            dc.evaluate(got)
        assert dc.report().kernels == 0
        for one, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(one), expected)
        got = steps(*(dc.asarray(a.astype("f4"), device="opencl") for a in operands))
        dc.evaluate(got)
        assert dc.report().kernels > 0
        for one, expected in zip(got, single, strict=True):
            np.testing.assert_array_equal(np.asarray(one), expected)
