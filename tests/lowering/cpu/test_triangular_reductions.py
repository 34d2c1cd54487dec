"""Sums over as many rows as the iteration says: jammed rows and their remainder."""

import numpy as np
import pytest
from plan_runs import run_plan

from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check

TEXT = """region() {{
  in a: f64[23, 23];  inout c: f64[23, 6]
  for k in range(0, 23, 1) {{
    c[k,i] add= multiply(a[j,k], a[j,i]) init {} for i<6, j<23-k
  }}
}}"""


@pytest.mark.parametrize("init", ["0.0", "2.0"])
def test_rows_of_a_triangle_are_added_up_several_at_a_time(init):
    region = parse(TEXT.format(init))
    (loop,) = region.body
    kernel, _ = schedule(loop, region, cores=1)
    check(kernel)
    assert "step 4" in kernel_text(kernel)
    a = np.random.default_rng(0).integers(-3, 4, (23, 23)).astype(float)
    want = np.array([float(init) + a[: 23 - k, k] @ a[: 23 - k, :6] for k in range(23)])
    plan = compile_region(region)
    given = {"a": a, "c": np.zeros((23, 6))}
    run_plan(plan, given, (), 0)
    np.testing.assert_array_equal(given["c"], want)
