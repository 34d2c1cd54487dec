"""Our own exp, sin and cos of doubles: NumPy's bits and flags, or not used at all."""

import ctypes
import platform

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.target import TARGET
from dcarray.lowering.kernel.flags import INVALID, UNDERFLOW
from dcarray.lowering.runtime import libm

MACHINE = engine.machine()
EXACT = {"exp": MACHINE.exact_exp, "sin": MACHINE.exact_sincos, "cos": MACHINE.exact_sincos}


@pytest.fixture(params=EXACT)
def name(request):
    if not EXACT[request.param]:
        pytest.skip(f"this machine's {request.param} is not known so well")
    return request.param


def run(x, body, threads=1, out=None):
    """What a kernel makes of an array, and the flags."""
    there, target = ("inout", "x") if out is x else ("in", "z")
    source = f"""region() {{ {there} x: f64[{x.size}]; out z: f64[{x.size}]
      {target}[i] = {body} for i<{x.size}
    }}"""
    plan = compile_region(parse(source))
    emitted = "".join(TARGET.emit(step.kernel) for step in plan.kernels)
    for name in ("sin", "cos"):
        assert (f"@dc_{name}_rows(" in emitted) == (name in body and EXACT[name])
    given = {"x": x, "z": np.empty_like(x)}
    flags = run_plan(plan, given, (), threads)
    return given[target], flags


def values(name):
    rng = np.random.default_rng(0)
    yield rng.normal(size=400_001)
    yield rng.normal(size=100_001).astype(np.float32).astype(float)
    yield rng.integers(-(2**63), 2**63, 100_001).view(float)
    yield np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e-300, 2.0**-27, 2.0**20, 2.0**-60])
    if name == "exp":
        yield rng.uniform(-760.0, 760.0, 500_003)
        yield 10.0 ** rng.uniform(-30, 4, 300_002) * rng.choice([-1.0, 1.0], 300_002)
        yield np.arange(-100_000, 100_001) * (np.log(2) / 256)
        yield rng.integers(-50_000, 50_000, 100_001) / 64.0
        yield np.array([-(2.0**-60), 700.0, -745.2, 709.8])
    else:
        turns = rng.integers(-600_000, 600_000, 100_001)
        yield rng.uniform(-(2.0**20), 2.0**20, 200_001)
        yield 10.0 ** rng.uniform(-12, 7, 200_001) * rng.choice([-1.0, 1.0], 200_001)
        yield turns * (np.pi / 4)
        yield np.nextafter(turns * (np.pi / 2), 1e9)
        yield turns / 64.0


def same(got, want):
    return ((got.view("i8") == want.view("i8")) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_every_bit_is_numpys(name, threads):
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        for x in values(name):
            want = function(x)
            assert same(run(x, f"{name}(x[i])", threads)[0], want)
            place = x.copy()
            assert same(run(place, f"{name}(x[i])", threads, place)[0], want)
            both = run(x, f"add({name}(negative(x[i])), {name}(x[i]))", threads)[0]
            assert same(both, function(-x) + want)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 511, 512, 513, 1027])
def test_every_size(name, size):
    x = np.random.default_rng(size).normal(size=size) * 300
    with np.errstate(all="ignore"):
        assert same(run(x, f"{name}(x[i])")[0], getattr(np, name)(x))


@pytest.mark.parametrize("x", [0.0, 1e-320, 1e-200, 3.0, 720.0, -720.0, -746.0, np.inf, -np.inf, np.nan])
def test_flags_of_exp_are_numpys(x):
    many = np.array([1.5] * 6 + [x] + [1.5] * 6)
    told = {}
    with np.errstate(all="call", call=lambda kind, flag: told.setdefault("flags", flag)):
        np.exp(many)
    if not EXACT["exp"]:
        pytest.skip("this machine's exp is not known so well")
    assert run(many, "exp(x[i])")[1] == told.get("flags", 0)


@pytest.mark.skipif(not MACHINE.exact_sincos, reason="this machine's sin is not known so well")
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_flags_of_sin_and_cos(name):
    for some, flags in (
        ([1.0, 2.0, np.nan, 0.0, -0.0, 1e300, 1e-200], 0),
        ([1.0, np.inf], INVALID),
        ([5e-324], UNDERFLOW if name == "sin" else 0),
    ):
        assert run(np.array(some * 9), f"{name}(x[i])")[1] == flags


@pytest.mark.parametrize("name", EXACT)
def test_other_libraries_are_not_trusted(name, monkeypatch):
    for known in (("glibc", "2.27"), ("musl", "1.2"), ("", "")):
        with monkeypatch.context() as patch:
            patch.setattr(platform, "libc_ver", lambda known=known: known)
            assert not libm.matches_glibc(name)
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda name: object())
        assert not libm.matches_glibc(name)
    with monkeypatch.context() as patch:
        patch.setattr(np, name, np.exp2)
        assert not libm.matches_glibc(name)
