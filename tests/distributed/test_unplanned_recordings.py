"""Recordings for which planning or compilation fails on some rank run without a plan."""

from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.comm.planning import planner
from dcarray.plans import provider

RANKS = 3


def _program() -> tuple[float, ...]:
    with dc.options(distribute_above=0, eager_below=0):
        x = dc.distribute(np.arange(30.0))
        dc.evaluate()
        y = x * 2 + 1
        z = y[::-1].sum()
        x += 1
        found = float(z), float(np.asarray(y)[3]), float(x[4])
        return *found, float((x + y).sum())


WANT = (900.0, 7.0, 5.0, 1365.0)


@pytest.mark.one_process("simulates ranks")
@pytest.mark.parametrize("which", [range(RANKS), [1]], ids=["all", "one"])
@pytest.mark.filterwarnings("ignore:a region is not shared out")
def test_no_plan(which: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = planner.plan

    def plan(region: Any, layouts: Any, size: int, rank: int, **others: Any) -> Any:
        if rank in which:
            raise KeyError(f"on purpose {rank}")
        return real(region, layouts, size, rank, **others)

    monkeypatch.setattr(planner, "plan", plan)
    dc.report(reset=True)
    assert dc.comm.run(RANKS, _program) == [WANT] * RANKS
    assert "region that has no plan (gathered)" in str(dc.report())


@pytest.mark.one_process("simulates ranks")
def test_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank's part of a region does not compile."""
    real, asked = provider.obtain, []

    def obtained(*args: Any) -> Any:
        asked.append(args)
        if len(asked) % 2:
            raise KeyError("on purpose")
        return real(*args)

    monkeypatch.setattr(provider, "obtain", obtained)
    with pytest.warns(RuntimeWarning, match="a rank's part of a region is interpreted"):
        assert dc.comm.run(RANKS, _program) == [WANT] * RANKS


@pytest.mark.one_process("simulates ranks")
def test_debug_mode_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(*_: Any, **__: Any) -> Any:
        raise KeyError("on purpose")

    monkeypatch.setattr(planner, "plan", plan)

    def program() -> None:
        with dc.options(debug=True), pytest.raises(KeyError):
            _program()

    dc.comm.run(RANKS, program)
