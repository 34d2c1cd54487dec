"""Trials of plans against NumPy, by a clock that the tests set."""

from __future__ import annotations

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.execution import trial
from dcarray.execution.trial import Trial
from dcarray.tiering.cost_model import Estimate

LOG = [
    ("old", "d", (9,), None, 0),
    ("new", "d", (9,), 1),
    ("map", "negative", "d->d", (9,), 1, None, (0, None, None)),
]
COST = Estimate(9, 100.0, 50.0, False)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(trial, "perf_counter", found)
    return found


def run(one: Trial, clock: Clock, numpy: float, plan: float) -> int:
    """Run until it is over; returns how often NumPy was asked."""
    asked = 0
    while not one.is_over:
        turn = one.is_numpys_turn()
        asked += turn

        def work(seconds: float = numpy if turn else plan) -> None:
            clock.now += seconds

        one.timed(turn, work)
    return asked


@pytest.mark.parametrize(
    ("numpy", "plan", "sooner"), [(20e-6, 100e-6, True), (100e-6, 20e-6, False), (50e-6, 50e-6, True)]
)
def test_the_sooner_one_is_found(clock: Clock, numpy: float, plan: float, sooner: bool) -> None:
    one = Trial(COST, LOG)
    assert run(one, clock, numpy, plan) == (8 if sooner else 2)
    assert one.numpy_is_sooner() is sooner


@pytest.mark.parametrize("cost", [Estimate(0), COST._replace(rounded=True), COST._replace(numpy=1e9)])
def test_what_is_not_tried(cost: Estimate) -> None:
    assert Trial(cost, LOG).is_over


@pytest.mark.parametrize("sooner", [True, False])
def test_where_numpy_is_sooner_it_works_at_once(monkeypatch, sooner: bool) -> None:
    monkeypatch.setattr(Trial, "numpy_is_sooner", lambda self: sooner)
    monkeypatch.setattr("dcarray.tiering.cost_model.eager_elements", lambda cost: 0)
    a = np.linspace(0.0, 1.0, 40_000).reshape(-1, 200 if sooner else 400)  # with plans of its own
    scope: dict = {"np": np}
    exec("def step(x):\n    x[1:-1] = np.sqrt(x[1:-1] * x[1:-1])", scope)  # with call sites of its own
    with dc.options(jit="background", eager_below=1 << 14):
        x = dc.asarray(a.copy())
        for _ in range(60):
            before = counters.kernels
            scope["step"](x)
            dc.evaluate(x)
            dc.wait()
        assert (counters.kernels > before) is not sooner
        np.testing.assert_array_equal(np.asarray(x), np.sqrt(a * a))
