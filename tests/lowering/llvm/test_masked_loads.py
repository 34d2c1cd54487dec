"""Loads under masks are kept apart from what uses them, and nothing else is touched."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.passes.masked_loads import isolate_masked_loads

TEXT = """define void @f(ptr %p, ptr %q, <8 x i1> %m, <8 x double> %z) {
entry:
  %a = load <8 x double>, ptr %p, align 8
  %b = select <8 x i1> %m, <8 x double> BODY, <8 x double> %z
  store <8 x double> %b, ptr %q, align 8
  ret void
}
"""
FENCE = '%a = tail call <8 x double> asm "", "=v,0"(<8 x double> %raw.a)'


def test_a_load_that_a_mask_chooses() -> None:
    changed = isolate_masked_loads(TEXT.replace("BODY", "%a"))
    assert "  %raw.a = load <8 x double>, ptr %p, align 8\n  " + FENCE in changed
    assert "select <8 x i1> %m, <8 x double> %a," in changed


def test_a_load_without_a_name_of_its_own() -> None:
    text = isolate_masked_loads(TEXT.replace("BODY", "%a").replace("%a", "%1"))
    assert "%raw.1" in text
    if "avx512vl" in engine._host()[2]:
        engine.assembly(TEXT.replace("BODY", "%a").replace("%a", "%1").replace("%b", "%2"))


def test_a_load_that_an_operation_under_a_mask_uses() -> None:
    text = TEXT.replace("  %b", "  %c = fadd <8 x double> %a, %z\n  %b").replace("BODY", "%c")
    assert FENCE in isolate_masked_loads(text)


@pytest.mark.parametrize("text", [
    TEXT.replace("BODY", "%z"),  # not used
    TEXT.replace("BODY", "%a").replace("%z\n", "%a\n"),  # used twice
    TEXT.replace("BODY", "%a").replace("double", "half"),  # not in a register of this kind
    TEXT.replace("BODY", "%a").replace("8 x", "3 x"),
    TEXT.replace("select <8 x i1> %m, <8 x double> BODY, <8 x double> %z", "fadd <8 x double> %a, %z"),
    "define i32 @f() {\n  ret i32 0\n}\n",
])  # fmt: skip
def test_other_loads_stay(text: str) -> None:
    assert isolate_masked_loads(text) == text


def test_names_are_those_of_one_function() -> None:
    plain = TEXT.replace("@f", "@g").replace("BODY", "%z")
    changed = isolate_masked_loads(plain + "\n" + TEXT.replace("BODY", "%a"))
    assert changed.startswith(plain) and changed.count("asm") == 1


def test_kernels_with_masks_in_memory() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    with dc.options(jit="eager", cache_dir="", eager_below=0):
        for dtype in "?bhilefdFD":
            a, b = (rng.integers(0, 2 if dtype == "?" else 9, n).astype(dtype) for _ in "ab")
            m = rng.random(n) < 0.3
            x, y, k = dc.asarray(a), dc.asarray(b), dc.asarray(m)
            one = np.dtype(dtype).type(1)
            for f in (np.add, np.multiply):
                got = np.where(k, f(x, y), x), np.where(k, x, one), np.where(k & (x > y), y, x)
                want = np.where(m, f(a, b), a), np.where(m, a, one), np.where(m & (a > b), b, a)
                for g, w in zip(got, want, strict=True):
                    assert g.dtype == w.dtype and np.array_equal(np.asarray(g), w)


def test_what_is_kept_apart_is_no_part_of_a_masked_instruction() -> None:
    if "avx512vl" not in engine._host()[2]:
        pytest.skip("masks are no registers here")
    lines = engine.assembly(TEXT.replace("BODY", "%a")).splitlines()
    assert not any("{%k" in line and "(%r" in line for line in lines)
