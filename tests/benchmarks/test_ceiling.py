"""The loop of multiply-adds does what is counted."""

import numpy as np

from benchmarks.ceiling import MultiplyAdds, rows
from benchmarks.measure import cores


def test_every_turn_of_every_sum_is_done_on_every_core() -> None:
    ceiling = MultiplyAdds(3)
    ceiling()
    done = 0
    for out in ceiling._out:
        (sums,) = {value for value in out.tolist() if value}
        assert sums == ((0.5 * 0.5) + 0.5) * 0.5 + 0.5
        done += np.count_nonzero(out)
    assert ceiling.flops == 2 * 3 * done and len(ceiling._out) == cores()


def test_a_product_is_compared_with_it() -> None:
    (row,) = rows(0.001, 3)
    assert row.value > 0 and row.at_least and "ceiling" in row.detail
