"""The text of kernels for Vitis HLS."""

from dcarray.ir.parse import parse
from dcarray.lowering.hls.kernels.vitis import emit
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.folds import LANES
from tests.support.fold_regions import SUMS


def test_a_sum_has_no_addition_that_the_next_one_waits_for():
    text = emit(compose(parse(SUMS)), "sums")
    assert text.count(f"lane = (lane + 1) % {LANES};") == 3  # not for the maximum
    assert "not NumPy's order" in text
    assert text == emit(compose(parse(SUMS)), "sums")
