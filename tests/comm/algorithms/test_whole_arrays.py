"""Folds of distributed arrays: what travels, and how exact sums are."""

import numpy as np

import dcarray as dc
from dcarray.comm import Layout, ProcessGrid
from dcarray.comm.algorithms.reductions import reduction
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.transport import simulated_ranks


def test_a_large_fold_is_shared_out_and_sends_each_part_once() -> None:
    whole = np.random.default_rng(0).random((8, 40_000))
    layout = Layout.blocks(whole.shape, ProcessGrid((4,)))

    def program() -> int:
        comm = simulated_ranks.rank_of_thread()
        x = DistArray.from_whole(whole, layout, comm)
        total = reduction(x, np.add, 0)
        assert total.block.shape == (10_000,)
        assert np.allclose(total.gather(), whole.sum(0), rtol=1e-15)
        return comm.counts.bytes_sent

    sent = dc.comm.run(4, program)
    # Three quarters of the row of sums, and the row again to look at it here.
    assert sent == [2 * 3 * 10_000 * 8] * 4


def test_sums_are_the_same_every_time_and_as_exact_as_pairwise_ones() -> None:
    whole = np.random.default_rng(1).random(200_000).astype("f4")
    exact = whole.astype("f8").sum()

    def program() -> float:
        x = DistArray.from_whole(
            whole, Layout.blocks(whole.shape, ProcessGrid((7,))), simulated_ranks.rank_of_thread()
        )
        return float(reduction(x, np.add).block)

    sums = {total for _ in range(2) for total in dc.comm.run(7, program)}
    assert len(sums) == 1
    assert abs(sums.pop() - exact) <= max(abs(float(whole.sum()) - exact), 2e-7 * exact)
