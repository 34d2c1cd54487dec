"""Comparisons that raise nothing for a NaN, put into optimised code."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.passes.quiet_compare import MARK, quiet_comparisons

TEXT = f"""define <N x i1> @f(TYPE %a, TYPE %b) #1 {{{{
  %m = fcmp HOW TYPE %a, %b
  ret <N x i1> %m
}}}}

attributes #1 = {{{{ nounwind {MARK} }}}}
""".format()
HOWS = ["olt", "ole", "ogt", "oge", "ult", "ule", "ugt", "uge"]


def text(how: str, kind: str, count: int) -> str:
    made = TEXT.replace("HOW", how).replace("%m", "%1")  # as LLVM calls it
    if count == 1:
        return made.replace("<N x i1>", "i1").replace("TYPE", kind)
    return made.replace("N x", f"{count} x").replace("TYPE", f"<{count} x {kind}>")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("kind", "count"), [("double", n) for n in (1, 2, 3, 4, 8, 16)] + [("float", 16)])
def test_code_of_comparisons(how: str, kind: str, count: int) -> None:
    if not engine.machine().quiet_comparisons:
        pytest.skip("masks are no registers here")
    made = quiet_comparisons(text(how, kind, count))
    assert ("fcmp ord" in made) == (count in (1, 3) or (kind, count) == ("double", 16))
    code = engine.assembly(text(how, kind, count))
    if "fcmp ord" not in made:
        assert "_oq" in code or "_uq" in code


@pytest.mark.parametrize("other", [
    text("olt", "double", 8).replace(MARK, ""),  # nobody asks what it raises
    text("oeq", "double", 8),  # which raise nothing anyhow
    text("une", "float", 4),
    text("ord", "double", 1),
    "define i32 @f() {\n  ret i32 0\n}\n",
])  # fmt: skip
def test_other_code_stays(other: str) -> None:
    assert quiet_comparisons(other) is other


def test_constants_and_flags() -> None:
    constant = "<" + ", ".join(["double 1.0"] * 8) + ">"
    for operand in (constant, "splat (double 1.0)", "zeroinitializer"):
        line = text("ogt", "double", 8).replace("fcmp ogt", "fcmp nsz ogt").replace("%b\n", f"{operand}\n")
        assert f"<8 x double> %a, <8 x double> {operand}, i32 30, <8 x i1>" in quiet_comparisons(line)


BOTH = text("olt", "double", 8).replace(
    "  ret <8 x i1> %1",
    """  %2 = fcmp oge <8 x double> %b, zeroinitializer
  %11 = and <8 x i1> %1, %2
  ret <8 x i1> %11""",
)


def test_comparisons_under_a_mask() -> None:
    made = quiet_comparisons(BOTH)
    assert " and " not in made and made.count("i32 17, ") == made.count("i32 29, ") == 1
    assert "%11 = tail call" in made and "<8 x i1> %2, i32 4)" in made
    if engine.machine().quiet_comparisons:
        assert "{%k" in engine.assembly(BOTH)


@pytest.mark.parametrize("other", [
    BOTH.replace("and <8 x i1> %1, %2", "or <8 x i1> %1, %2"),
    BOTH.replace("and <8 x i1> %1, %2", "and <8 x i1> %1, %1"),
    BOTH.replace("ret <8 x i1> %11", "%12 = xor <8 x i1> %1, %2\n  ret <8 x i1> %12"),  # used again
])  # fmt: skip
def test_comparisons_that_are_needed_by_themselves(other: str) -> None:
    made = quiet_comparisons(other)
    assert made.count("i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true") == 2
    if engine.machine().quiet_comparisons:
        engine.assembly(other)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_comparisons_of_nan_are_no_invalid_operations(name: str, dtype: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    compare = getattr(np, name)
    with dc.options(jit="eager", cache_dir="", eager_below=0), np.errstate(all="raise"):
        for size in (1, 5, 8, 31, 49):
            x, y = a[:size], b[:size]
            u, v = dc.asarray(x), dc.asarray(y)
            safe = np.array([1.0], dtype)
            for f in (
                lambda p, q, one: np.where(compare(p, q), 1.0 + one, 2.0),
                lambda p, q, one: np.where(~compare(p, q), one - 1.0, 2.0),
                lambda p, q, one: (compare(p, q) & ~compare(q, p)) + one,
                lambda p, q, one: np.where(compare(p, q) & compare(q, one[0]), p, one),
                lambda p, q, one: compare(p, q).sum() + one,
            ):
                got, want = f(u, v, dc.asarray(safe)), f(x, y, safe)
                assert got.dtype == want.dtype and np.array_equal(np.asarray(got), want)
