"""The benchmark of first calls: what its programs give in each way, and its summary."""

import json

import numpy as np
import pytest

from benchmarks import first_calls
from benchmarks.short_programs import SHORT


@pytest.mark.parametrize("way", first_calls.WAYS[1:])
@pytest.mark.parametrize("name", ["page rank", "tracks", "winsorized"])
def test_programs_give_what_numpy_gives(capsys: pytest.CaptureFixture[str], name: str, way: str) -> None:
    sums = []
    for one in ("numpy", way):
        first_calls.run(name, one)
        times, found = json.loads(capsys.readouterr().out)
        assert len(times) == first_calls.CALLS
        sums.append(found)
    assert sums[0] == pytest.approx(sums[1], rel=1e-9)


def test_a_figure_is_numpys_time_by_ours() -> None:
    rows = [{"wrapped": 4.0, "accelerated": 0.5}, {"wrapped": 1.0, "accelerated": 2.0}]
    wrapped, accelerated = first_calls.summary(rows)
    assert wrapped == "wrapped: geometric mean 2.00, 0 of 2 below 0.95, the least 1.00"
    assert accelerated == "accelerated: geometric mean 1.00, 1 of 2 below 0.95, the least 0.50"


def test_arguments_do_not_depend_on_the_process() -> None:
    for _, make in SHORT.values():
        first, second = (make(np.random.default_rng(0)) for _ in range(2))
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
