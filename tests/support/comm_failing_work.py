"""Local work that fails while messages are under way."""

from typing import Any

import numpy as np
from comm_layouts import scatter

from dcarray.comm import Layout, choose_grid, world
from dcarray.comm.planning.overlap import overlap_communication
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.execution import execute, interpreted
from dcarray.comm.planning.rank_program.steps import Begin
from dcarray.ir import interp
from dcarray.ir.text import parse

TEXT = """region() {
  in A: f64[40, 40];  inout B: f64[40, 40]
  B[i+1,j+1] = add(add(A[i,j+1], A[i+2,j+1]), add(A[i+1,j], A[i+1,j+2])) for i<38, j<38
}
"""


def check() -> None:
    """Messages of a failed run are not taken for later ones, nor written to freed memory."""
    group, region = world(), parse(TEXT)
    layout = Layout.blocks((40, 40), choose_grid((40, 40), group.size), 1)
    program = overlap_communication(
        plan(region, {"A": layout, "B": layout}, group.size, group.rank, costs=None), None
    )
    assert group.size == 1 or any(isinstance(step, Begin) for step in program.steps)
    rng = np.random.default_rng(1)

    def fail(*args: Any) -> None:
        raise ZeroDivisionError

    for turn in range(30):
        a, b = rng.random((40, 40)), rng.random((40, 40))
        given = {"A": scatter(a, layout, group.rank), "B": scatter(b, layout, group.rank)}
        if turn % 3 < 2:
            try:
                execute(program, group, given, fail)
            except ZeroDivisionError:
                continue
            raise AssertionError("nothing was raised")
        interp.run(region, {"A": a, "B": b})
        found = execute(program, group, given, interpreted)["B"]
        own = layout.owned(group.rank)
        np.testing.assert_array_equal(found[own], scatter(b, layout, group.rank)[own])
