"""Loops on aligned copies of their arrays: results and floating-point exceptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from as_written import as_written
from outcomes import outcome
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager(eager_below=16384)

SOURCE = """
def f(x, y, n):
    for t in range(n):
        y[1:-1, 1:-1] = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
        x[1:-1, 1:-1] = 0.25 * (y[2:, 1:-1] + y[:-2, 1:-1] + y[1:-1, 2:] + y[1:-1, :-2])
"""


def arrays(top: float) -> tuple[Any, Any]:
    x = np.random.default_rng(1).random((60, 60))
    x[30, 30] = top
    return x, x.copy()


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("top", [0.5, 1e308, np.inf])
def test_floating_point_exceptions_are_numpys(mode: str, top: float) -> None:
    f = written(SOURCE)
    fast = dc.accelerate(f)
    for n in (200, 200, 200):
        want = as_written(outcome, f, (*arrays(top), n), over=mode, invalid=mode)
        got = outcome(fast, (*arrays(top), n), over=mode, invalid=mode)
        assert got[:2] == want[:2] and got.texts == want.texts
    if top == 0.5:
        assert dc.report().loops == 3


def test_aligned_copies_need_no_undo_copies() -> None:
    """A run takes memory for the copies that it works on, and for no others."""
    from dcarray.lowering import compilation as plans

    seen = []
    compile_region = plans.compile_region

    def compiled(*args: Any, **options: Any) -> Any:
        seen.append((compile_region(*args, **options), options["stop"]))
        return seen[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "compile_region", compiled)
        f = dc.accelerate(written(SOURCE))
        f(*arrays(0.5), 200)
    ((plan, stop),) = seen
    assert plan.arrays == ("x", "y") or len(plan.arrays) == 2
    assert stop == 5  # after what is around the points, the first turn and the loop
    assert "if _flags & _minded: return _flags" in plan.driver
