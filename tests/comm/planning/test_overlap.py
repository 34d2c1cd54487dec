"""Overlap of communication and computation: the same values and messages, and as much work meanwhile as
possible."""

import numpy as np
from comm_random_regions import check, laid_out
from hypothesis import given, settings

from dcarray.comm.exchange.plan_matching import verify
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.overlap import overlap_communication
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.matching import matched_steps
from dcarray.comm.planning.rank_program.steps import Begin, Finish, Local
from dcarray.ir.text import parse

TEXT = """region() {
  in A: f64[40, 40];  inout B: f64[40, 40];  inout C: f64[40, 40]
  C[i,j] = negative(C[i,j]) for i<40, j<40
  B[i+1,j+1] = multiply(0.25, add(add(A[i,j+1], A[i+2,j+1]), add(A[i+1,j], A[i+1,j+2]))) for i<38, j<38
  C[i,j] = add(C[i,j], B[i,j]) for i<40, j<40
}
"""


@settings(max_examples=12, derandomize=True, deadline=None)
@given(laid_out())
def test_random_regions(drawn) -> None:
    check(*drawn, lambda *args, **options: overlap_communication(plan(*args, **options, costs=None), None))


def test_the_inner_points_do_not_wait() -> None:
    layout = Layout.blocks((40, 40), ProcessGrid((2, 2)), 1)
    region = parse(TEXT)
    programs = []
    for rank in range(4):
        program = plan(region, {name: layout for name in "ABC"}, 4, rank, costs=None)
        later = overlap_communication(program, None)
        assert [type(step) for step in later.steps] == [Begin, Local, Local, Finish, Local]
        first, early, late = (step.region.body for step in later.steps if isinstance(step, Local))
        assert first[0].target.array == "C" and early[0].target.shape == (18, 18)
        *rims, last = late
        assert last.target.array == "C"
        assert sum(np.prod(rim.target.shape) for rim in rims) == 19 * 19 - 18 * 18
        assert later.counts == program.counts
        programs.append(matched_steps(later))
    verify(programs)


def test_what_is_sent_is_not_written_meanwhile() -> None:
    red = parse("""region() {
  inout A: f64[40]
  A[2*i+1] = add(A[2*i], A[2*i+2]) for i<19
}
""")
    layout = Layout.blocks((40,), ProcessGrid((2,)), 1)
    program = plan(red, {"A": layout}, 2, 0, costs=None)
    assert overlap_communication(program, None) is program
