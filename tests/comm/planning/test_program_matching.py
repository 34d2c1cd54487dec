"""The check of all ranks' programs against each other before they run."""

import comm_mismatched_programs
import pytest
from comm_layouts import layouts as some_layout
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_regions import cases
from launching import launch, needs_mpi

from dcarray import comm
from dcarray.comm.exchange.plan_matching import verify
from dcarray.comm.planning.planner import arrays_to_gather, plan
from dcarray.comm.planning.rank_program.matching import matched_steps


@settings(max_examples=24, derandomize=True, deadline=None)
@given(cases(), st.integers(1, 12), st.data())
def test_what_is_planned_fits_together(case, ranks, data) -> None:
    layouts = {a.name: data.draw(some_layout(a.shape, ranks)) for a in case.region.arrays}
    layouts.update(dict.fromkeys(arrays_to_gather(case.region, layouts)))
    verify([matched_steps(plan(case.region, layouts, ranks, rank)) for rank in range(ranks)])


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_what_does_not_fit_is_told_on_all_ranks(ranks: int) -> None:
    comm.run(ranks, comm_mismatched_programs.main)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_under_mpi(ranks: int) -> None:
    done = launch(ranks, "-m", "comm_mismatched_programs", timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks
