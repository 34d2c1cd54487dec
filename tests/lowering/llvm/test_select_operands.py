"""Operands of selects are computed for all elements, as in NumPy, and raise NumPy's floating-point flags."""

import warnings

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.passes.select_operands import isolate_select_operands

TEXT = """define void @f(<8 x i1> %m, <8 x double> %x, <8 x double> %z) {
entry:
  %a = MADE
  %b = select <8 x i1> %m, <8 x double> %a, <8 x double> %z
  ret void
}
"""
OPERATIONS = (
    "fdiv <8 x double> %x, %z",
    "fadd nsz <8 x double> %x, %z",
    "tail call <8 x double> @llvm.sqrt.v8f64(<8 x double> %x)",
    "fptrunc <8 x fp128> zeroinitializer to <8 x double>",
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_are_kept_apart(operation: str) -> None:
    text = TEXT.replace("MADE", operation)
    changed = isolate_select_operands(text, True)
    assert f"  %everywhere.a = {operation}\n" in changed
    assert '  %a = tail call <8 x double> asm "", "=v,0"(<8 x double> %everywhere.a)\n' in changed
    assert len(changed.split("\n")) == len(text.split("\n")) + 1
    assert isolate_select_operands(text, False) == text


@pytest.mark.parametrize("given", ["double v", "float v", "i64 r", "i16 r", "i8 r", "i1 "])
def test_numbers_are_kept_apart_too(given: str) -> None:
    kind, register = given.split(" ")
    floats = {"double": "fdiv double %x, %z", "float": "fptrunc double %x to float"}
    operation = floats.get(kind, f"fptosi double %x to {kind}")
    text = f"""define {kind} @f(i1 %m, double %x, double %z, {kind} %o) {{
  %a = {operation}
  %b = select i1 %m, {kind} %a, {kind} %o
  ret {kind} %b
}}
"""
    changed = isolate_select_operands(text, False)
    assert (changed == text) == (not register)
    if register:
        assert f'  %a = tail call {kind} asm "", "={register},0"({kind} %everywhere.a)\n' in changed
        engine.compile_object(text, optimised=True)


@pytest.mark.parametrize("count", [0, 8, 16, 32])
def test_halves_are_kept_apart_as_words(count: int) -> None:
    """Few processors have registers of halves: asked for one, LLVM ends the process."""
    masks = "avx512vl" in engine._host()[2]
    kind, words, mask = (f"<{count} x {one}>" if count else one for one in ("half", "i16", "i1"))
    text = f"""define {kind} @f({mask} %m, {kind} %x, {kind} %z) {{
  %a = fmul {kind} %x, %z
  %b = select {mask} %m, {kind} %a, {kind} %z
  ret {kind} %b
}}
"""
    changed = isolate_select_operands(text, masks)
    assert (changed == text) == (count > 0 and not masks)
    if changed != text:
        assert f'asm "", "={"v" if count else "r"},0"({words} %bits.a)' in changed
    assert engine.compile_object(text)


@pytest.mark.parametrize("text", [
    TEXT.replace("MADE", "fneg <8 x double> %x"),  # raises nothing
    TEXT.replace("MADE", "tail call <8 x double> @llvm.fabs.v8f64(<8 x double> %x)"),
    TEXT.replace("MADE", OPERATIONS[0]).replace("select <8 x i1> %m, ", "fadd "),  # nothing is chosen
    TEXT.replace("MADE", OPERATIONS[0]).replace("8 x", "3 x"),  # no register
    *[TEXT.replace("MADE", OPERATIONS[0]).replace("%b", f"%{name}") for name in ("predphi3", "q0.1", "v1.0")],
    "define i32 @f() {\n  ret i32 0\n}\n",
])  # fmt: skip
def test_other_text_stays(text: str) -> None:
    assert isolate_select_operands(text, True) == text


def test_names_are_those_of_one_function() -> None:
    plain = TEXT.replace("@f", "@g").replace("select <8 x i1> %m, ", "fadd ").replace("MADE", OPERATIONS[0])
    changed = isolate_select_operands(plain + "\n" + TEXT.replace("MADE", OPERATIONS[0]), True)
    assert changed.startswith(plain) and changed.count("asm") == 1


def test_no_instruction_divides_under_a_mask() -> None:
    if "avx512vl" not in engine._host()[2]:
        pytest.skip("masks are no registers here")
    text = TEXT.replace("define void", "define <8 x double>").replace("ret void", "ret <8 x double> %b")
    made = engine.assembly(text.replace("MADE", OPERATIONS[0]))
    (divides,) = [line for line in made.split("\n") if "vdivpd" in line]
    assert "{" not in divides


def _said(f, *arrays):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = np.asarray(f(*arrays))
    return result, sorted(str(one.message) for one in caught)


CASES = [
    lambda x, y, m: np.where(x > 0, np.sqrt(x), 0.5),
    lambda x, y, m: np.where(x != 0, 1 / x, x),
    lambda x, y, m: np.where((x > 0) & (y > 0), y / x, y),
    lambda x, y, m: np.where(m, np.reciprocal(x), 0),
    lambda x, y, m: np.where(m, x * np.finfo(x.dtype).max * 2, y),
    lambda x, y, m: np.where(np.abs(x) < 1, (x * np.finfo(x.dtype).max).astype(np.float16), 1),
    lambda x, y, m: np.where(m, np.where(x > 0, x / y, y), np.sqrt(y)),
]


@pytest.mark.parametrize("k", range(len(CASES)))
@pytest.mark.parametrize("dtype", "fd")
def test_where_says_what_numpy_says(k: int, dtype: str) -> None:
    rng = np.random.default_rng(k)
    for n in (3, 8, 37, 5000):
        x, y = ((rng.normal(size=n) * 3).astype(dtype) for _ in "xy")
        x[::3], y[::4] = 0, 0
        m = (x > 0) & (y != 0)
        with dc.options(jit="eager", eager_below=0):
            want, got = _said(CASES[k], x, y, m), _said(CASES[k], *map(dc.asarray, (x, y, m)))
        assert got[1] == want[1]
        assert np.array_equal(got[0], want[0], equal_nan=True)
