"""Our own exp of doubles: NumPy's bits and flags, or not used at all."""

import ctypes
import platform

import numpy as np
import pytest

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.runtime import buffer_pool, libm

needs_it = pytest.mark.skipif(
    not engine.machine().exact_exp, reason="this machine's exp is not known so well"
)


def run(x, threads=1, body="exp(x[i])", out=None):
    """What a kernel makes of an array, and the flags."""
    there = "inout" if out is x else "in"
    target = "x" if out is x else "z"
    source = f"""region() {{ {there} x: f64[{x.size}]; out z: f64[{x.size}]
      {target}[i] = {body} for i<{x.size}
    }}"""
    plan = compile_region(parse(source))
    given = {"x": x, "z": np.empty_like(x)}
    arrays = [given[name] for name in plan.arrays]
    flags = plan.run(arrays, [buffer_pool.address_of(a) for a in arrays], (), threads)
    return given[target], flags


def values():
    rng = np.random.default_rng(0)
    yield rng.normal(size=1_000_001)
    yield rng.uniform(-760.0, 760.0, 500_003)
    yield 10.0 ** rng.uniform(-30, 4, 300_002) * rng.choice([-1.0, 1.0], 300_002)
    yield np.arange(-100_000, 100_001) * (np.log(2) / 256)
    yield rng.integers(-50_000, 50_000, 100_001) / 64.0
    yield rng.normal(size=100_001).astype(np.float32).astype(float)
    yield rng.integers(-(2**63), 2**63, 100_001).view(float)
    yield np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.0**-60, -(2.0**-60), 700.0, -745.2, 709.8]
    )


def same(got, want):
    return ((got.view("i8") == want.view("i8")) | (np.isnan(got) & np.isnan(want))).all()


@needs_it
@pytest.mark.parametrize("threads", [1, 2])
def test_every_bit_is_numpys(threads):
    with np.errstate(all="ignore"):
        for x in values():
            want = np.exp(x)
            assert same(run(x, threads)[0], want)
            assert same(run(x, threads, "add(exp(negative(x[i])), exp(x[i]))")[0], np.exp(-x) + want)
            place = x.copy()
            assert same(run(place, threads, out=place)[0], want)


@needs_it
@pytest.mark.parametrize("size", [1, 3, 4, 5, 511, 512, 513, 1027])
def test_every_size(size):
    x = np.random.default_rng(size).normal(size=size) * 300
    with np.errstate(all="ignore"):
        assert same(run(x)[0], np.exp(x))


@needs_it
@pytest.mark.parametrize("x", [0.0, 1e-320, 1e-200, 3.0, 720.0, -720.0, -746.0, np.inf, -np.inf, np.nan])
def test_flags_are_numpys(x):
    many = np.array([1.5] * 6 + [x] + [1.5] * 6)
    told = {}
    with np.errstate(all="call", call=lambda kind, flag: told.setdefault("flags", flag)):
        np.exp(many)
    assert run(many)[1] == told.get("flags", 0)


def test_other_libraries_are_not_trusted(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(platform, "libc_ver", lambda: ("glibc", "2.27"))
        assert not libm.matches_glibc("exp")
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda name: object())
        assert not libm.matches_glibc("exp")
    with monkeypatch.context() as patch:
        patch.setattr(np, "exp", np.exp2)
        assert not libm.matches_glibc("exp")
