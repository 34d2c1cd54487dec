"""Absolute values of complex numbers, and comparisons with them: NumPy's answers and flags."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runs import run_plan

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.kernel.flags import DIVIDE, INVALID, OVERFLOW, UNDERFLOW
from dcarray.lowering.runtime import array_memory

needs_it = pytest.mark.skipif(
    not engine.machine().scaled_magnitude, reason="NumPy's formula is not known here"
)
ORDERS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
PARTS = [
    0.0, 5e-324, 2.0**-1022, 2.0**-600, 2.0**-520, 1e-160, 2.0**-100, 1e-20, 0.1, 1.0, 1.5, 2.0, 3.0,
    4.0, 1e16,
]  # fmt: skip
PARTS += [2.0**100, 2.0**199.9, 2.0**200, 2.0**300, 1e160, 2.0**700, 1.3e308, 1.7e308, np.inf, np.nan]
# without those whose squares and quotients underflow: that may be one flag too many, which is looked into
USUAL = [x for x in PARTS if x == 0 or 1e-150 < x < 1e150 or not np.isfinite(x)]
LIMITS = [
    0.0, -0.0, -1.0, 5e-324, 2.0**-600, 2.0**-100, 0.5, 1.0, 2.0, 5.0, 1e20, 2.0**100, 2.0**150, 1e200,
    1.7e308,
]  # fmt: skip
LIMITS += [np.inf, -np.inf, np.nan, -np.nan]


def region(n, limit="h[]", size=""):
    named = "".join(f"  out {name}: bool[{n}];\n" for name in ORDERS)
    done = "\n".join(f"  {name}[i] = {name}(absolute(z[i]), {limit}) for i<{n}" for name in ORDERS[:4])
    turned = "\n".join(f"  {name}[i] = {name}({limit}, absolute(z[i])) for i<{n}" for name in ORDERS[4:])
    return f"region() {{ in z: c128[{n}]; in h: f64[{size}];\n{named}{done}\n{turned}\n}}"


PLANS = {}


def run(z, h):
    """What the comparisons give for the elements of an array, and their flags."""
    shape = np.shape(h)
    key = z.size, shape
    if key not in PLANS:
        PLANS[key] = compile_region(
            parse(region(z.size, "h[i]" if shape else "h[]", str(z.size) if shape else ""))
        )
    plan = PLANS[key]
    found = {"z": z, "h": np.asarray(h, float), **{name: np.empty(z.shape, bool) for name in ORDERS}}
    flags = run_plan(plan, found)
    return found, flags


def raised(z):
    """NumPy's own flags for absolute values."""
    found = set()
    with np.errstate(all="call", call=lambda what, flag: found.add(what)):
        np.absolute(z)
    names = {"divide by zero": DIVIDE, "overflow": OVERFLOW, "underflow": UNDERFLOW}
    return sum(names.get(what, INVALID) for what in found)


def agree(z, h):
    found, flags = run(z, h)
    length = np.absolute(z)
    with np.errstate(all="ignore"):
        for name in ORDERS:
            order = getattr(np, name)
            want = order(length, h) if name in ORDERS[:4] else order(h, length)
            differs = found[name] != want
            assert not differs.any(), (name, h, z[differs][:5])
    return flags


def corners():
    signed = [*PARTS, *(-x for x in PARTS)]
    return np.array([complex(x, y) for x, y in itertools.product(signed, signed)])


def around(h, n=997):
    """Numbers whose absolute values are next to ``h``, on both sides of it."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, n)
    off = rng.choice([0.0, 1.0, 2.0, 3.0, 1e3, 1e4, 1e5, 1e7, 1e12], n) * rng.choice([-1.0, 1.0], n)
    return h * (1 + off * 2.0**-53) * (np.cos(angle) + 1j * np.sin(angle))


@needs_it
@pytest.mark.parametrize("h", LIMITS)
def test_comparisons_of_corner_values_are_numpys(h):
    with np.errstate(all="ignore"):
        agree(corners(), h)


@needs_it
@pytest.mark.parametrize("h", [2.0**-100, 1e-20, 0.3, 1.0, 2.0, np.pi, 5.0, 1e25, 2.0**100])
def test_comparisons_close_to_the_limit_are_numpys(h):
    z = around(h)
    agree(z, h)
    length = np.absolute(z)
    for limit in (np.nextafter(h, 0), np.nextafter(h, np.inf)):
        agree(z, limit)
    for limit in (length, np.nextafter(length, 0), np.nextafter(length, np.inf)):
        agree(z, limit)


@needs_it
def test_no_flag_is_lost_and_none_comes_of_usual_numbers():
    for x, y in itertools.product(PARTS, PARTS):
        z = np.full(33, complex(x, y))
        wanted = raised(z)
        for h in (2.0, 1e200):
            with np.errstate(all="ignore"):
                assert agree(z, h) & wanted == wanted, (x, y, h)
    for x, y in itertools.product(USUAL, USUAL):
        z = np.full(33, complex(x, y))
        for h in (0.0, 2.0, 1e200, np.inf, np.nan):
            with np.errstate(all="ignore"):
                assert not agree(z, h), (x, y, h)


@needs_it
@settings(max_examples=24, deadline=None)
@given(st.lists(st.complex_numbers(), min_size=19, max_size=19), st.floats())
def test_comparisons_of_any_numbers_are_numpys(some, h):
    with np.errstate(all="ignore"):
        agree(np.array(some), h)


@needs_it
def test_absolute_values_have_numpys_bits():
    n = 1001
    plan = compile_region(
        parse(f"region() {{ in z: c128[{n}]; out r: f64[{n}] r[i] = absolute(z[i]) for i<{n} }}")
    )
    assert plan.kernels[0].kernel.ints == ("n0",)  # no loop of NumPy's
    rng = np.random.default_rng(2)
    usual = rng.normal(size=(n, 2)) * 2.0 ** rng.integers(-40, 40, (n, 2))
    any_bits = rng.integers(-(2**63), 2**63 - 1, (n, 2)).view(float)
    some = [usual.view(complex)[:, 0], any_bits.view(complex)[:, 0], around(2.0, n)]
    some += [np.resize(z, n) for z in np.array_split(corners(), 3)]
    some += [np.full(n, complex(x, y)) for x, y in itertools.product(PARTS, PARTS)]
    for z in some:
        r = np.empty(n)
        arrays = [{"z": z, "r": r}[name] for name in plan.arrays]
        flags = plan.run(arrays, [array_memory.address_of(a) for a in arrays], (), 1)
        with np.errstate(all="ignore"):
            want = np.absolute(z)
        same = (r.view("i8") == want.view("i8")) | (np.isnan(r) & np.isnan(want))
        assert same.all(), z[~same][:5]
        assert flags & raised(z) == raised(z), z[:3]
        if np.isin(np.abs([z.real, z.imag]), [x for x in USUAL if x == x]).all():
            assert not flags, z[:3]


@needs_it
def test_what_is_wanted_itself_is_computed():
    both = "r[i] = absolute(z[i]) for i<64\n b[i] = less(r[i], 2.0) for i<64"
    alone = "b[i] = less(absolute(z[i]), 2.0) for i<64"
    for body, out, shortened in ((both, "out r: f64[64];", False), (alone, "", True)):
        plan = compile_region(parse(f"region() {{ in z: c128[64]; {out} out b: bool[64]\n {body} }}"))
        texts = [emit(step.kernel, engine.machine()) for step in plan.kernels]
        assert any("dc_compared" in text for text in texts) == shortened
        plain = replace(engine.machine(), scaled_magnitude=False)
        assert not any("dc_compared" in emit(step.kernel, plain) for step in plan.kernels)


def test_another_formula_is_seen(monkeypatch):
    monkeypatch.setattr(np, "absolute", lambda z: np.hypot(z.real, z.imag))
    assert not engine._scaled_magnitude()
