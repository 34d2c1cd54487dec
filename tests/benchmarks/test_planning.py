"""Planning for 1,296 ranks takes no longer than for 4: no list is as long as there are ranks, or partners."""

import pytest
from comm_planning_effort import counted, forget, planned

from benchmarks.papers import PROGRAMS, Program
from benchmarks.scaling_counts import layouts, region
from dcarray.comm.layout.grid import choose_grid
from dcarray.comm.planning.planner import plan
from dcarray.ir.parse import parse

MORE = 1.08  # times as many functions are called


def _middle(ranks: int) -> int:
    """A rank with neighbours on all sides, where there is one."""
    rows, columns = choose_grid((ranks, ranks), ranks).shape
    return rows // 2 * columns + columns // 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_planning_a_kernel_for_1296_ranks_takes_no_longer_than_for_4(program: Program) -> None:
    def taken(ranks: int) -> tuple[int, int]:
        sizes = program.at(ranks)
        text = parse(region(program.name, sizes, 4 if "T" in sizes else 1))
        return planned(text, layouts(program, sizes, ranks), ranks, _middle(ranks))

    (few, _), (some, _), (many, listed) = taken(4), taken(36), taken(1296)
    assert many <= MORE * min(few, some)
    assert not listed  # no message is, before it is sent or counted


@pytest.mark.parametrize("ranks", [36, 1296])
@pytest.mark.parametrize("name", ["gemm", "k2mm", "k3mm"])
def test_listing_the_messages_of_products_takes_the_time_of_these(name: str, ranks: int) -> None:
    """Those of one rank's row and column of the grid, whatever the number of panels."""
    (program,) = (program for program in PROGRAMS if program.name == name)
    sizes = program.at(ranks)
    forget()
    made = plan(parse(region(name, sizes)), layouts(program, sizes, ranks), ranks, _middle(ranks))
    counts, calls, _ = counted(lambda: made.counts)
    assert calls <= 250 * (counts.messages_sent + counts.messages_received)
