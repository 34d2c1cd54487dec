"""Plans of single statements, made to find the statement that raised a floating-point exception."""

from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.comm import run, world
from dcarray.comm.planning import planner


def test_single_statements_are_planned_to_find_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []
    plan = planner.plan

    def counted(*args: Any, **named: Any) -> Any:
        planned.append(world().rank)
        return plan(*args, **named)

    monkeypatch.setattr(planner, "plan", counted)

    def program() -> None:
        rank = world().rank
        with dc.options(distribute_above=0, eager_below=0, jit="off"), np.errstate(all="raise"):
            x = dc.distribute(np.arange(1.0, 9.0))
            y = 1 / x + 3 / (x + 1)
            dc.evaluate(y)
            assert planned.count(rank) == 1
            np.testing.assert_array_equal(y.gather(), 1 / np.arange(1.0, 9.0) + 3 / np.arange(2.0, 10.0))
            for _ in range(2):
                y = 1 / x + 3 / (x - 1)
                with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
                    dc.evaluate(y)
                assert planned.count(rank) == 3  # the second time all is known

    run(3, program)
