"""Powers with whole and half exponents: NumPy's bits and flags."""

import shutil

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir import interp
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.target import TARGET

needs_it = pytest.mark.skipif(
    not engine.machine().exact_powers, reason="this machine's pow is not known so well"
)
EXPONENTS = [k / 2 for k in range(-10, 11)] + [0.7, -1.25, 17.0, 1e300, np.inf, np.nan, 5e-324]


def run(x, y, threads=1, name="power", literal=False):
    """``x ** y``, and the flags; ``y`` is in the code if ``literal``."""
    size, at = (x.size, "i") if np.ndim(y) else ("", "")
    exponent = repr(y) if literal else f"y[{at}]"
    source = f"""region() {{ in x: f64[{x.size}]; in y: f64[{size}]; out z: f64[{x.size}]
      z[i] = {name}(x[i], {exponent}) for i<{x.size}
    }}"""
    plan = compile_region(parse(source))
    alone = name == "power" and literal and y in (-1.0, 0.5, 2.0) and engine.machine().exact_powers
    assert alone == ([step.kernel.ints for step in plan.kernels] == [("n0",)])
    if name == "power" and literal and not alone and engine.machine().exact_powers:
        ours = y != 0 and abs(y) < 4.75 and 2 * y == round(2 * y)
        assert ours == ("halves(" in TARGET.emit(plan.kernels[0].kernel))
    given = {"x": x, "y": np.array(y), "z": np.empty_like(x)}
    flags = run_plan(plan, given, (), threads)
    return given["z"], flags


def values():
    rng = np.random.default_rng(0)
    yield rng.uniform(0.1, 9.0, 100_001)
    yield 10.0 ** rng.uniform(-14, 14, 50_001) * rng.choice([-1.0, 1.0], 50_001, p=[0.1, 0.9])
    yield rng.integers(0, 3000, 20_001) / 64.0
    yield np.arange(1.0, 5000.0)
    yield 1.0 + rng.normal(size=20_001) * 1e-9
    yield rng.integers(-(2**63), 2**63, 20_001).view(float)
    yield np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.0, -2.0, 2.0**-40, 2.0**40, 1e300, 1e-300])


@needs_it
@pytest.mark.parametrize("y", EXPONENTS)
@pytest.mark.parametrize("literal", [False, True])
def test_every_bit_is_numpys(y, literal):
    if literal and not abs(y) < 1e9:
        pytest.skip("no literal")
    for x in values():
        got, _ = run(x, y, 2, literal=literal)
        with np.errstate(all="ignore"):
            want = np.power(x, y)
        same = (got.view("i8") == want.view("i8")) | (np.isnan(got) & np.isnan(want))
        assert same.all(), (y, x[~same][:5])


@needs_it
@pytest.mark.parametrize("y", [-4.5, -1.5, -1.0, 0.5, 2.0, 2.5, 3.0, 0.3])
@pytest.mark.parametrize("x", [0.0, -0.0, -1.0, 1e200, 1e-200, 2.5, np.inf, -np.inf, np.nan])
def test_flags_are_numpys(x, y):
    many = np.array([1.5] * 6 + [x] + [1.5] * 6)
    flags = {run(many, y, literal=literal)[1] for literal in (False, True)}
    told = {}
    with np.errstate(all="call", call=lambda kind, flag: told.setdefault("flags", flag)):
        np.power(many, y)
    assert flags == {told.get("flags", 0)}


@pytest.mark.parametrize("y", [-1.0, 0.0, 0.5, 2.0, 3.0, -1.5])
def test_float_power_is_numpys_loop(y):
    """It calls the library for every exponent, also where ``power`` does not."""
    x = np.linspace(0.1, 9.0, 40_000)
    got, _ = run(x, y, name="float_power")
    assert got.tobytes() == np.float_power(x, y).tobytes()


@needs_it
def test_an_exponent_for_each_is_numpys_loop():
    """It squares where one exponent is for all only."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.5, 2.0, 1001), rng.choice([2.0, -1.5, 3.0, 0.7], 1001)
    got, _ = run(x, y, name="array_power")
    assert got.tobytes() == np.power(x, y).tobytes()


def hard(y, dtype, size):
    """Bases whose power is another number where NumPy is given one exponent for all."""
    x = np.random.default_rng(2).uniform(0.5, 9.0, 400_000).astype(dtype)
    x = x[np.power(x, dtype(y)) != np.power(x, np.full_like(x, y))]
    return np.resize(x if x.size else dtype(0.7), size)


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [2.0, 0.5, -1.0])
def test_one_exponent_and_many_are_two_operations(target, dtype, y):
    """Whatever loops their elements come in, and whether or not their exponents are the same."""
    kind = f"f{8 * np.dtype(dtype).itemsize}"
    x, many = np.ascontiguousarray(hard(y, dtype, 12_000).reshape(30, 400)), np.full(400, y, dtype)
    source = f"""region() {{ in x: {kind}[30, 400]; in y: {kind}[400]; in s: {kind}[]
      out a: {kind}[30, 400]; out b: {kind}[30, 400]; out c: {kind}[30, 400]; out d: {kind}[30, 400]
      a[i, j] = power(x[i, j], y[j]) for i<30, j<400
      b[i, j] = array_power(x[i, j], y[j]) for i<30, j<400
      c[i, j] = array_power(x[i, j], add(y[i], s[])) for i<30, j<400
      d[i, j] = power(x[i, j], y[i]) for i<30, j<400
    }}"""
    if target == "c" and not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    plan = compile_region(parse(source), target)
    given = {"x": x, "y": many, "s": np.zeros((), dtype), **{n: np.empty_like(x) for n in "abcd"}}
    run_plan(plan, given)
    one, each = np.power(x, dtype(y)), np.power(x, np.full_like(x, y))
    interpreted = interp.run(
        parse(source), {n: given[n] for n in "xys"} | {n: np.empty_like(x) for n in "abcd"}
    )
    for name, want in zip("abcd", (one, each, each, one), strict=True):
        assert given[name].tobytes() == want.tobytes(), name
        assert interpreted[name].tobytes() == want.tobytes(), name
