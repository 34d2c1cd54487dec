"""Loops without undo copies, where the input range check rules out floating-point exceptions."""

from typing import Any

import numpy as np
import pytest
from as_written import as_written
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.lowering.program import input_range_check

SOURCE = """
def f(x, y, n):
    for t in range(n):
        y[1:, :] -= 0.5 * (x[1:, :] - x[:-1, :])
        x[:-1, :-1] -= 0.75 * (y[1:, :-1] - y[:-1, :-1] + y[:-1, 1:])
"""


@pytest.fixture(autouse=True)
def eagerly(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(input_range_check, "MIN_COPIED", 0)
    with dc.options(jit="eager", eager_below=16384, cache_dir=None):
        dc.report(reset=True)
        yield


def arguments(top: float) -> tuple[Any, ...]:
    x = np.random.default_rng(1).random((150, 160))
    y = x[::-1].copy()
    x[70, 31] = top
    return x, y, 40


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("kind", ["over", "under", "invalid"])
@pytest.mark.parametrize("top", [0.5, 1e-308, 1e300, np.inf, np.nan])
def test_results_and_exceptions_are_numpys(mode: str, kind: str, top: float) -> None:
    f = written(SOURCE)
    fast = dc.accelerate(f)
    state = {"over": "ignore", "under": "ignore", "invalid": "ignore", kind: mode}
    for _ in range(2):
        want = as_written(outcome, f, arguments(top), **state)
        got = outcome(fast, arguments(top), **state)
        assert got.result == want.result and got.texts == want.texts
        if np.isfinite(top):
            assert got.given == want.given


def test_undo_copies_only_for_large_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, int, bool]] = []
    within = input_range_check.within

    def noted(found: Any, plain: Any, most: float, least: float) -> bool:
        seen.append((most, len(found), within(found, plain, most, least)))
        return seen[-1][-1]

    monkeypatch.setattr(input_range_check, "within", noted)
    fast = dc.accelerate(written(SOURCE))
    for top in (0.5, -1e200, np.nan, -np.inf, 1e100):
        outcome(fast, arguments(top))
    assert [found for _, _, found in seen] == [True, False, False, False, True]
    assert seen[0][:2] == (2.0**512, 2)
    outcome(fast, arguments(0.5), under="warn")  # which small numbers raise, too
    assert len(seen) == 5
    assert dc.report().loops >= 3
