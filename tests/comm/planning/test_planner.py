"""Programs of random regions for many ranks against the interpreter on whole arrays."""

import numpy as np
import pytest
from comm_random_regions import check, check_placed, laid_out
from hypothesis import given, settings

import dcarray as dc
from dcarray.comm import Layout, count


@settings(max_examples=20, derandomize=True, deadline=None)
@given(laid_out())
def test_random_regions(drawn) -> None:
    check(*drawn)


@settings(max_examples=12, derandomize=True, deadline=None)
@given(laid_out())
def test_placed_regions_are_regions(drawn) -> None:
    check_placed(*drawn)


@pytest.mark.parametrize("ranks", [2, 3])
def test_of_a_short_slice_of_a_long_array_travels_what_is_read(ranks: int) -> None:
    text = """region() {
  in x: f64[9000];  in w: f64[300];  out y: f64[300]
  y[i] = add(w[i], x[i]) for i<300
}"""
    layouts = {name: Layout.chosen((n,), ranks) for name, n in {"x": 9000, "w": 300, "y": 300}.items()}
    for rank in range(ranks):
        assert count(text, layouts, ranks, rank).counts.bytes_received == (8 * 300 // ranks if rank else 0)

    def program() -> None:
        with dc.options(distribute_above=0, eager_below=0, jit="off"):
            x, w = dc.distribute(np.arange(9000.0)), dc.distribute(np.ones(300))
            np.testing.assert_array_equal(np.asarray(w + x[:300]), np.arange(1.0, 301.0))

    dc.comm.run(ranks, program)
