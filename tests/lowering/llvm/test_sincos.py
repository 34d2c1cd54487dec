"""Our own sin and cos of doubles: NumPy's bits and flags, or not used at all."""

import ctypes
import platform

import numpy as np
import pytest

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.target import TARGET
from dcarray.lowering.kernel.flags import INVALID, UNDERFLOW
from dcarray.lowering.runtime import buffer_pool, libm

needs_it = pytest.mark.skipif(
    not engine.machine().exact_sincos, reason="this machine's sin is not known so well"
)


def run(x, threads=1):
    """Sine, cosine and flags of an array."""
    source = f"""region() {{ in x: f64[{x.size}]; out s: f64[{x.size}]; out c: f64[{x.size}]
      s[i] = sin(x[i]) for i<{x.size}
      c[i] = cos(x[i]) for i<{x.size}
    }}"""
    plan = compile_region(parse(source))
    emitted = "".join(TARGET.emit(step.kernel) for step in plan.kernels)
    assert ("@dc_sin_rows(" in emitted and "@dc_cos_rows(" in emitted) == engine.machine().exact_sincos
    given = {"x": x, "s": np.empty_like(x), "c": np.empty_like(x)}
    arrays = [given[name] for name in plan.arrays]
    flags = plan.run(arrays, [buffer_pool.address_of(a) for a in arrays], (), threads)
    return given["s"], given["c"], flags


def values():
    rng = np.random.default_rng(0)
    turns = rng.integers(-600_000, 600_000, 100_001)
    yield rng.normal(size=400_001)
    yield rng.uniform(-(2.0**20), 2.0**20, 200_001)
    yield 10.0 ** rng.uniform(-12, 7, 200_001) * rng.choice([-1.0, 1.0], 200_001)
    yield turns * (np.pi / 4)
    yield np.nextafter(turns * (np.pi / 2), 1e9)
    yield turns / 64.0
    yield rng.normal(size=100_001).astype(np.float32).astype(float)
    yield rng.integers(-(2**63), 2**63, 50_001).view(float)
    yield np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e-300, 2.0**-27, 2.0**20])


@needs_it
def test_every_bit_is_numpys():
    for x in values():
        sine, cosine, _ = run(x)
        with np.errstate(all="ignore"):
            for got, want in ((sine, np.sin(x)), (cosine, np.cos(x))):
                same = (got.view("i8") == want.view("i8")) | (np.isnan(got) & np.isnan(want))
                assert same.all(), x[~same][:5]


@needs_it
def test_flags_are_raised_as_by_numpy():
    for some, flags in (
        ([1.0, 2.0, np.nan, 0.0, -0.0, 1e300, 1e-200], 0),
        ([1.0, np.inf], INVALID),
        ([5e-324], UNDERFLOW),
    ):
        assert run(np.array(some * 9))[2] == flags


def test_other_libraries_are_not_trusted(monkeypatch):
    for known in (("glibc", "2.27"), ("musl", "1.2"), ("", "")):
        with monkeypatch.context() as patch:
            patch.setattr(platform, "libc_ver", lambda known=known: known)
            assert not libm.matches_glibc("sin")
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda name: object())
        assert not libm.matches_glibc("sin")
    with monkeypatch.context() as patch:
        patch.setattr(np, "sin", np.cos)
        assert not libm.matches_glibc("sin")
