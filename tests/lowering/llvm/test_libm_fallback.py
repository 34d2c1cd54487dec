"""Vector loops of functions of doubles that leave undecided elements to the C library."""

import dataclasses

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.target import TARGET

FUNCTIONS = {
    "exp": ("exp({})", np.exp, "exact_exp"),
    "sin": ("sin({})", np.sin, "exact_sincos"),
    "cos": ("cos({})", np.cos, "exact_sincos"),
    "pow": ("power({}, -1.5)", lambda x: np.power(x, -1.5), "exact_powers"),
    "cube": ("power({}, 3.0)", lambda x: np.power(x, 3.0), "exact_powers"),
}


def run(arrays, body):
    """Run a statement on arrays; what was compiled."""
    declared = "; ".join(f"inout {name}: f64{list(a.shape)}" for name, a in arrays.items())
    plan = compile_region(parse(f"region() {{ {declared}\n {body}\n}}"))
    run_plan(plan, arrays)
    return "".join(TARGET.emit(step.kernel) for step in plan.kernels)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 50, 511, 512, 515, 1541])
def test_every_length_is_numpys(name, size):
    """With elements at every place that only the library knows, which are the last ones, too."""
    text, function, _ = FUNCTIONS[name]
    rng = np.random.default_rng(size)
    x = rng.uniform(0.5, 20.0, size)
    x[rng.random(size) < 0.3] = 5e-200
    guarded = np.full(size + 2, 7.25)
    z = guarded[1:-1]
    run({"x": x, "z": z}, f"z[i] = {text.format('x[i]')} for i<{size}")
    with np.errstate(all="ignore"):
        assert z.tobytes() == function(x).tobytes()
    assert guarded[0] == guarded[-1] == 7.25


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [3, 50, 512, 1037])
def test_in_place_and_shifted(name, size):
    """What the library is asked about is what was there before the row was written."""
    text, function, flag = FUNCTIONS[name]
    if not getattr(engine.machine(), flag):
        pytest.skip("NumPy's own function, whose bits depend on whether its operands overlap")
    rng = np.random.default_rng(size)
    for shift in (0, 1, 3):
        x = rng.uniform(0.5, 20.0, size + shift)
        x[rng.random(x.size) < 0.2] = 5e-200
        with np.errstate(all="ignore"):
            want = np.concatenate([function(x[shift:]), x[size:]])
        run({"x": x}, f"x[i] = {text.format(f'x[i+{shift}]')} for i<{size}")
        assert x.tobytes() == want.tobytes()


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_registers_of_all_widths(name, bits, monkeypatch):
    """What is written for other processors is at least correct LLVM text."""
    known = {"exact_sincos": True, "exact_powers": True, "exact_exp": True}
    wide = dataclasses.replace(engine.machine(), vector_bits=bits, **known)
    monkeypatch.setattr(engine, "machine", lambda: wide)
    text = FUNCTIONS[name][0].format("x[i]")
    source = f"region() {{ in x: f64[50]; out z: f64[50]\n z[i] = {text} for i<50\n}}"
    (step,) = compile_region(parse(source)).kernels
    emitted = TARGET.emit(step.kernel)
    assert f"<{bits // 64} x double>" in emitted
    engine.optimised(emitted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_after_the_other_is_the_librarys(name):
    """A recurrence has no rows: each element is asked for itself, without a loop."""
    text, function, flag = FUNCTIONS[name]
    x = np.array([0.7] + [0.0] * 20)
    want = x.copy()
    for i in range(1, 21):
        want[i] = function(0.25 * want[i - 1 : i])[0] + 0.25
    source = text.format("multiply(0.25, x[i-1])")
    emitted = run({"x": x}, f"for i in range(1, 21, 1) {{\n x[i] = add({source}, 0.25)\n }}")
    assert x.tobytes() == want.tobytes()
    symbol = "pow" if flag == "exact_powers" else name
    assert (f"call double @{symbol}(" in emitted) == bool(getattr(engine.machine(), flag))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_over_short_rows(name):
    text, function, _ = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    x, s = rng.uniform(0.5, 9.0, (40, 51)), np.empty(40)
    run({"x": x, "s": s}, f"s[i] add= {text.format('x[i,j]')} init 0.0 for i<40, j<51")
    np.testing.assert_allclose(s, function(x).sum(axis=1), rtol=1e-14)
