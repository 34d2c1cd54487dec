"""Programs for many ranks against the interpreter on whole arrays."""

from __future__ import annotations

import numpy as np
from comm_planning import check, laid_out
from hypothesis import given, settings
from ir_regions import assert_agree

from dcarray.comm.planner import place, whole_first
from dcarray.ir import interp
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify


@settings(max_examples=100, derandomize=True, deadline=None)
@given(laid_out())
def test_random_regions(drawn) -> None:
    check(*drawn)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(laid_out())
def test_placed_regions_are_regions(drawn) -> None:
    """With its communication a region is valid, has a text, and means what it did."""
    case, ranks, layouts = drawn
    for name in whole_first(case.region, layouts):
        layouts[name] = None
    placed = place(case.region, layouts, ranks)
    verify(placed.region)
    assert parse(dump(placed.region)) == placed.region
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory())
        got = {**case.memory(), **interp.run(placed.region, case.memory())}
    assert_agree({name: got[placed.after[name]] for name in want}, want, zero_signs=case.zero_signs)
