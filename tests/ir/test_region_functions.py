"""Regions with functions, which may call themselves."""

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir import interp
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check
from dcarray.lowering.program.nodes import Launch

# Which numbers are even, and how many calls that took.
TEXT = """
region() {
  in n: i64[];  in x: c128[];  out even: bool[];  out y: c128[];  out sound: bool[];  temp d: i64[]
  function is_even {
    inout sound: bool[];  in depth: i64[];  in n: i64[];  in x: c128[];  out even: bool[];  out y: c128[]
    temp deeper: i64[];  temp m: i64[];  temp z: c128[];  temp odd: bool[]
    sound[] = logical_and(sound[], less(depth[], 100))
    even[] = true
    y[] = x[]
    if sound[] {
      if greater(n[], 0) {
        deeper[] = add(depth[], 1)
        m[] = subtract(n[], 1)
        z[] = add(x[], c128(0.5, 1.0))
        call function.call(sound, deeper, m, z) -> sound, odd, y {name: 'is_odd'}
        even[] = odd[]
      }
    }
  }
  function is_odd {
    inout sound: bool[];  in depth: i64[];  in n: i64[];  in x: c128[];  out odd: bool[];  out y: c128[]
    temp m: i64[]
    odd[] = false
    y[] = x[]
    if greater(n[], 0) {
      m[] = subtract(n[], 1)
      call function.call(sound, depth, m, x) -> sound, odd, y {name: 'is_even'}
    }
  }
  sound[] = true
  d[] = 0
  call function.call(sound, d, n, x) -> sound, even, y {name: 'is_even'}
}
"""


def test_the_text_says_all() -> None:
    region = parse(TEXT)
    verify(region)
    assert parse(dump(region)) == region
    assert [name for name, _ in region.functions] == ["is_even", "is_odd"]


def given(n: int) -> dict[str, np.ndarray]:
    return {"n": np.array(n), "x": np.array(1 + 2j)}


@pytest.mark.parametrize("n", [0, 1, 6, 7, 90])
@pytest.mark.parametrize("target", ["cpu", "c"])
def test_targets_do_as_the_interpreter(target: str, n: int) -> None:
    region = parse(TEXT)
    want = interp.run(region, given(n))
    assert want["even"] == (n % 2 == 0)
    plan = compile_region(region, target, fallback=lambda reason, loc: pytest.fail(reason))
    kernels = [node.kernel for node in plan.program.body if isinstance(node, Launch)]
    for kernel in kernels:
        check(kernel)
    assert any("routine r0(" in kernel_text(kernel) for kernel in kernels)
    memory = {**given(n), **{name: np.empty_like(array) for name, array in want.items()}}
    run_plan(plan, memory)
    for name, array in want.items():
        np.testing.assert_array_equal(memory[name], array)


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("{name: 'is_even'}", "{name: 'is_eve'}", "there is no function 'is_eve'"),
    ("call function.call(sound, d, n, x)", "call function.call(sound, d, n)", "does not take"),
    ("(sound, d, n, x)", "(sound, d, x, n)", "does not take"),
    ("-> sound, even, y {name: 'is_even'}", "-> sound, y, even {name: 'is_even'}", "does not take"),
    ("temp odd: bool[]", "temp odd: bool[];  out a: f64[3]", "has arrays that it cannot have"),
    ("m[] = subtract(n[], 1)\n        z", "z", "read before it is written"),
])  # fmt: skip
def test_what_is_refused(old: str, new: str, reason: str) -> None:
    assert old in TEXT
    with pytest.raises(VerifyError, match=reason):
        verify(parse(TEXT.replace(old, new)))
