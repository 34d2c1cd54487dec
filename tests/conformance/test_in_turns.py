"""What is measured of a program called in turn as it is and accelerated, and how results are compared."""

import time
from typing import Any

import numpy as np
import pytest

from conformance.in_turns import copied, difference, take_turns


class Sleeps:
    """A program that takes some time and gives the numbers of its calls, or one number."""

    def __init__(self, seconds: float, *results: Any) -> None:
        self.seconds, self.results, self.calls = seconds, results, 0

    def call(self) -> float:
        self.calls += 1
        begun = time.perf_counter()
        time.sleep(self.seconds)
        return time.perf_counter() - begun

    def result(self) -> Any:
        given = self.results[min(self.calls, len(self.results)) - 1]
        if isinstance(given, Exception):
            raise given
        return given


def test_a_later_result_is_compared_too() -> None:
    assert take_turns(Sleeps(0.0, 1), Sleeps(0.0, 1, 2), None, 0.01)["differs"] == "it is 1 and 2"


def test_what_only_the_accelerated_program_raises_is_a_difference() -> None:
    assert (
        "raises ValueError"
        in take_turns(Sleeps(0.0, 1), Sleeps(0.0, ValueError("no")), None, 0.01)["differs"]
    )


@pytest.mark.parametrize("one, other", [
    (1, 1.0), (1.0, 1.0001), (np.float32(1), np.float64(1)), ([1, 2], [1, 3]),
    ([1.0, 2.0], [2.0, 1.0]), ([1], [1, 1]), ((1,), [1]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 2}),
    (np.arange(3), np.arange(3.0)), (np.arange(3), np.arange(3)[::-1]),
    (np.array([1.0, np.nan]), np.array([np.nan, 1.0])), (np.zeros(2, "f8,i4"), np.ones(2, "f8,i4")),
    (np.float32(1), np.float32(1.01)),
])  # fmt: skip
def test_results_that_differ(one: Any, other: Any) -> None:
    assert difference(copied(one), copied(other)) and not difference(copied(one), copied(one))


def test_rounding_is_no_difference() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    assert not difference(float(x.sum()), float(x[::-1].cumsum()[-1]))
    assert not difference(x.astype("f4") * 3, (x * 3).astype("f4")) and not difference([0.1 + 0.2], [0.3])
