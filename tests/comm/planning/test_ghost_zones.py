"""Ghost-zone expansion: the same values and fewer messages."""

import numpy as np
import pytest
from comm_layouts import scatter
from comm_stencil_chains import ALWAYS, NEVER, chains, sweeps
from hypothesis import given, settings

from dcarray import comm
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.performance_model import Line, Link
from dcarray.comm.planning.placement.ghost_zone_cost import Costs
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.execution import execute
from dcarray.comm.planning.rank_program.steps import Exchanges
from dcarray.ir import interp
from dcarray.ir.nodes import Region
from dcarray.ir.parse import parse


def run(region: Region, shape: tuple[int, ...], ranks: int, costs: Costs | None) -> list[comm.Counts]:
    """The counts of all ranks for a region, whose results are compared with the interpreter on one rank."""
    layout = Layout.chosen(shape, ranks)
    rng = np.random.default_rng(ranks)
    whole = {a.name: rng.random(shape) for a in region.arrays}
    want = {name: array.copy() for name, array in whole.items()}
    interp.run(region, want)

    def live() -> comm.Counts:
        world = comm.world()
        program = plan(region, dict.fromkeys(whole, layout), ranks, world.rank, costs=costs)
        mine = {name: scatter(array, layout, world.rank, -1) for name, array in whole.items()}
        for name, block in execute(program, world, mine).items():
            after = program.layout(name)
            assert after is not None
            expected = scatter(want[name], after, world.rank)
            np.testing.assert_array_equal(block[after.owned(world.rank)], expected[after.owned(world.rank)])
        assert world.counts == program.counts
        return program.counts

    return comm.run(ranks, live)


def test_one_exchange_serves_as_many_time_steps_as_it_pays() -> None:
    counts = {name: run(sweeps(60, 4), (60,), 3, costs)[1] for name, costs in
              (("always", ALWAYS), ("never", NEVER), ("none", None))}  # fmt: skip
    assert counts["none"] == counts["never"]
    assert (counts["none"].messages_received, counts["none"].bytes_received) == (16, 16 * 8)
    assert (counts["always"].messages_received, counts["always"].bytes_received) == (2, 16 * 8)


def test_a_halo_is_never_wider_than_a_block() -> None:
    counts = run(sweeps(20, 4), (20,), 5, ALWAYS)[2]
    assert counts.messages_received == 4  # four elements in a block: eight statements take two exchanges


def test_what_it_costs_decides() -> None:
    region = sweeps(4000, 32)
    layouts = dict.fromkeys("AB", Layout.chosen((4000,), 2))

    def exchanges(point: float) -> int:
        costs = Costs(Link((Line(1e-6, 1e10),)), point)
        steps = plan(region, layouts, 2, 0, costs=costs).steps
        return sum(isinstance(step, Exchanges) and bool(step.counts().messages_sent) for step in steps)

    found = [exchanges(point) for point in (1e-12, 1e-8, 1e-7, 1e-3)]
    assert found == sorted(found) and found[0] == 1 and found[-1] == 64


@settings(max_examples=24, deadline=None, derandomize=True)
@given(chains())
def test_random_chains(drawn: tuple[Region, tuple[int, ...], int]) -> None:
    region, shape, ranks = drawn
    run(region, shape, ranks, ALWAYS)


def test_what_reads_no_halo_comes_before_the_first_exchange() -> None:
    stencil = "{0}[i+1,j+1] = add({1}[i,j+1], {1}[i+2,j+1]) for i<917, j<917"
    pairs = ["DC", "CD"] * 24
    copies = [f"{c}[i,j] = {a}[i,j] for i<919, j<919" for a, c in ("AC", "BD")]
    arrays = "; ".join(f"inout {name}: f64[919, 919]" for name in "ABCD")
    layouts = dict.fromkeys("ABCD", Layout.chosen((919, 919), 2))
    found = []
    for lines in (copies, []):
        body = [*lines, *(stencil.format(*pair) for pair in pairs)]
        made = plan(parse("\n".join(["region() {", arrays, *body, "}"])), layouts, 2, 0)
        found.append((made.counts.messages_received, made.counts.bytes_received))
    assert found[0] == found[1] and 0 < found[0][0] < 6


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("first", [
    "B[i+1,2*j] = add(A[i,2*j], A[i+2,2*j]) for i<18, j<3",
    "B[i,i] = A[i,i] for i<5",
    "B[i+1,3] = add(A[i,3], A[i+2,3]) for i<18",
])  # fmt: skip
def test_what_lies_between_the_written_elements_is_brought(first: str, ranks: int) -> None:
    lines = [first, "C[i+1,j] = add(B[i,j], B[i+2,j]) for i<18, j<5"]
    arrays = "; ".join(f"inout {name}: f64[20, 5]" for name in "ABC")
    run(parse("\n".join(["region() {", arrays, *lines, "}"])), (20, 5), ranks, ALWAYS)


def test_what_comes_behind_statements_taken_together_has_its_halo() -> None:
    lines = [
        "B[i+1] = add(A[i], A[i+2]) for i<2",
        "A[i+1] = add(B[i], B[i+2]) for i<2",
        "B[i+1] = multiply(A[i], 3.0) for i<2",
        "A[i+1] = B[-i+2] for i<2",  # backwards: not one of those that are taken together
    ]
    region = parse("\n".join(["region() {", "inout A: f64[4]; inout B: f64[4]", *lines, "}"]))
    for costs in (ALWAYS, NEVER, None):
        run(region, (4,), 2, costs)
