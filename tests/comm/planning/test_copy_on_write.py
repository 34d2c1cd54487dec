"""Copy on write of preserved arrays: the same results and messages, and unchanged memory."""

from typing import Any

import numpy as np
import pytest
from comm_layouts import scatter
from comm_random_regions import check, check_placed, laid_out
from comm_stencil_chains import ALWAYS, chains, sweeps
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray import comm
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.planning.placement.ghost_zone_cost import Costs
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.execution import execute
from dcarray.comm.planning.rank_program.steps import Frame, Local
from dcarray.comm.transport.errors import PlanError
from dcarray.ir import interp
from dcarray.ir.analysis.effects import families
from dcarray.ir.nodes import Region
from dcarray.ir.text import parse


def unaliased_arrays(region: Region) -> list[str]:
    """The existing arrays that share no memory."""
    root = families(region)
    many = [root[a.name] for a in region.arrays]
    return [a.name for a in region.arrays if a.role == "inout" and many.count(root[a.name]) == 1]


@settings(max_examples=10, derandomize=True, deadline=None)
@given(laid_out())
def test_random_regions(drawn: Any) -> None:
    region = drawn[0].region

    def spared(*args: Any, **kwargs: Any) -> Any:
        made = plan(*args, **kwargs, preserved=unaliased_arrays(region))
        for name in unaliased_arrays(region):
            assert not any(made.given[name] in s.writes for s in made.steps if isinstance(s, (Local, Frame)))
        return made

    check(*drawn, plan=spared)


SHARED = """region() {
  in a: i32[4, 4];  inout b: f32[4];  inout v: f32[4] base b;  temp t: f32[4];  out x: f32[4];  out y: f32[4]
  t[i] = cast:f32(a[3-i,1]) for i<4
  b[i] = t[i] for i<4
  nest {
    x[i] = where(cast:bool(a[2,3-i]), t[i], v[3-i]) for i<4
    y[i] = maximum(x[i], v[i]) for i<4
  }
}"""


def test_what_shares_memory_waits_for_what_is_written() -> None:
    """An alias is not redistributed before a write under another name."""
    region = parse(SHARED)
    memory = {"a": np.arange(16, dtype=np.int32).reshape(4, 4) - 7, "b": np.full(4, 99, np.float32)}
    t = memory["a"][::-1, 1].astype(np.float32)
    want = {"x": np.where(memory["a"][2, ::-1] != 0, t, t[::-1])}
    want["y"] = np.maximum(want["x"], t)
    rows = Layout((4, 4), ProcessGrid((2,)), (Block(0), Whole()))
    dealt = Layout((4,), ProcessGrid((2,)), (Cyclic(0, 1),))

    def live() -> None:
        world = comm.world()
        program = plan(region, {"a": rows, "x": dealt}, 2, world.rank)
        b = memory["b"].copy()
        after = execute(program, world, {"a": scatter(memory["a"], rows, world.rank, 1), "b": b, "v": b})
        for name, whole in want.items():
            lay = program.layout(name)
            mine = whole if lay is None else scatter(whole, lay, world.rank, 1)
            assert np.array_equal(after[name], mine), name

    comm.run(2, live)


@settings(max_examples=10, derandomize=True, deadline=None)
@given(laid_out())
def test_placed_regions_are_regions(drawn: Any) -> None:
    check_placed(*drawn, preserved=unaliased_arrays(drawn[0].region))


def run(region: Region, shape: tuple[int, ...], ranks: int, costs: Costs | None, turns: int) -> list[Any]:
    """Run a region several times on simulated ranks; preserved arrays must be unchanged after each run, and
    the counts are those of runs that write in place."""
    layout = Layout.chosen(shape, ranks)
    rng = np.random.default_rng(ranks)
    whole = {a.name: rng.integers(0, 9, shape).astype(float) for a in region.arrays}
    want = [whole]
    for _ in range(turns):
        want.append({name: array.copy() for name, array in want[-1].items()})
        interp.run(region, want[-1])

    def live() -> list[comm.Counts]:
        world = comm.world()
        both: list[list[comm.Counts]] = []
        for names in ((), unaliased_arrays(region)):
            lays: dict[str, Any] = dict.fromkeys(whole, layout)
            mine = {name: scatter(array, layout, world.rank, -1) for name, array in whole.items()}
            valid: dict[str, Any] = {}
            both.append([])
            for turn in range(turns):
                program = plan(region, lays, ranks, world.rank, valid=valid, costs=costs, preserved=names)
                before = {name: mine[name][lays[name].owned(world.rank)].copy() for name in mine}
                after = execute(program, world, mine)
                for name in names:
                    np.testing.assert_array_equal(mine[name][lays[name].owned(world.rank)], before[name])
                lays = {name: program.layout(name) for name in after}
                for name, block in after.items():
                    own = lays[name].owned(world.rank)
                    expected = scatter(want[turn + 1][name], lays[name], world.rank)
                    np.testing.assert_array_equal(block[own], expected[own])
                mine, valid = after, dict(program.valid)
                both[-1].append(program.counts)
        assert both[0] == both[1]
        return both[1]

    return comm.run(ranks, live)


@settings(max_examples=10, derandomize=True, deadline=None)
@given(chains(), st.sampled_from([ALWAYS, None]))
def test_random_chains(drawn: tuple[Region, tuple[int, ...], int], costs: Costs | None) -> None:
    run(*drawn, costs, 3)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_only_the_ends_are_copied_and_nothing_more_is_sent(ranks: int) -> None:
    region = sweeps(60, 4)
    first, *others = run(region, (60,), ranks, ALWAYS, 3)[ranks // 2]
    assert all(one.bytes_received <= first.bytes_received for one in others)
    layout = Layout.blocks((60,), comm.ProcessGrid((ranks,)), halo=8 if ranks > 1 else 0)
    made = plan(region, dict.fromkeys("AB", layout), ranks, 0, costs=ALWAYS, preserved=["A"])
    (frame,) = (step for step in made.steps if isinstance(step, Frame))
    # the first element, and room before it that no element has
    assert sum(high - low for ((low, high),) in frame.boxes) == (2 if ranks == 1 else 1 + 8)
    assert sum(isinstance(step, Local) for step in made.steps) == 1
    assert made.layout("A") == layout


def test_memory_of_several_shapes_is_refused() -> None:
    text = """region() {
      inout A: f64[4]
      inout V: f64[2, 2] base A
      A[i] = add(A[i], 1.0) for i<4
    }"""
    with pytest.raises(PlanError, match="several shapes"):
        plan(parse(text), {}, 2, 0, preserved=["A"])
