"""Communication of placed regions: inserted calls, those that passes remove, and the remaining messages."""

from dataclasses import replace

import numpy as np
import pytest

from dcarray import comm
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout
from dcarray.comm.layout.notation import canonical, read, write
from dcarray.comm.planning.analysis.halo_state import Halo, ValidHalos
from dcarray.comm.planning.passes import redundancy
from dcarray.comm.planning.planner import place_region, plan
from dcarray.comm.planning.rank_program.execution import execute
from dcarray.comm.planning.rank_program.steps import Exchanges, Local
from dcarray.ir import interp
from dcarray.ir.passes.base import Log
from dcarray.ir.text import dump, parse

JACOBI = """region() {
  in A: f64[N, M];  inout B: f64[N, M]
  B[i+1,j+1] = multiply(0.25, add(add(A[i,j+1], A[i+2,j+1]), add(A[i+1,j], A[i+1,j+2]))) for i<P, j<Q
}
"""


def stencil(text: str, n: int, m: int) -> str:
    return text.replace("N", str(n)).replace("M", str(m)).replace("P", str(n - 2)).replace("Q", str(m - 2))


def after_passes(text: str, *passes: redundancy.Pass) -> tuple[str, str]:
    """A region after some passes, and their log."""
    log, region = Log(), parse(text)
    for one in passes:
        region = one.fn(region, log)
    return dump(region), str(log)


def test_notation() -> None:
    for text in (
        "grid(2, 3), block(0), cyclic(1, 64), whole, halo((1, 1), (0, 0), (0, 2))",
        "grid(3), block(0, (5, 4, 0)), whole, whole",
        "grid(3), block(0, cut(11, 1)), whole, whole",
        "grid(3), block(0, cut(20, 1, 2, (8, 8, 4))), whole, whole",
    ):
        layout, partial = read(text, (9, 70, 4))
        assert write(layout) == text and partial is None
    layout, partial = read('grid(2, 2), block(0), partial("add", 1, block(1))', (8,))
    assert partial is not None and partial.over == (1,)
    assert write(layout, partial) == 'grid(2, 2), block(0), partial("add", 1, block(1))'
    assert canonical(Layout.chosen((8, 8), 1)) is None


def test_a_stencil_exchanges_its_halo() -> None:
    layout = Layout.blocks((8, 8), ProcessGrid((2, 2)))
    placed = place_region(parse(stencil(JACOBI, 8, 8)), {"A": layout, "B": layout}, 4)
    assert (
        dump(placed.region)
        == """region() {
  in A: f64[8, 8] layout 'grid(2, 2), block(0), block(1)'
  inout B: f64[8, 8] layout 'grid(2, 2), block(0), block(1)'
  out A_1: f64[8, 8] layout 'grid(2, 2), block(0), block(1), halo((1, 1), (1, 1))'
  call comm.redistribute(A) -> A_1
  call comm.halo(A_1) {widths: ((1, 1), (1, 1)), corners: False}
  B[i+1,j+1] = multiply(0.25, add(add(A_1[i,j+1], A_1[i+2,j+1]), add(A_1[i+1,j], A_1[i+1,j+2]))) for i<6, j<6
}
"""
    )


def test_folds_reduce_over_the_axes_that_are_cut() -> None:
    layout = Layout.blocks((8, 6), ProcessGrid((2, 3)))
    text = """region() {
  in A: f64[8, 6];  out s: f64[6]
  s[j] add= A[i,j] init 0.0 for i<8, j<6
}
"""
    placed = place_region(parse(text), {"A": layout}, 6)
    want = """region() {
  in A: f64[8, 6] layout 'grid(2, 3), block(0), block(1)'
  out s: f64[6] layout 'grid(2, 3), block(1)'
  temp s_1: f64[6] layout 'grid(2, 3), block(1), partial("add", 0, block(0))'
  s_1[j] add= A[i,j] init 0.0 for i<8, j<6
  call comm.reduce(s_1) -> s {op: 'add'}
}
"""
    assert placed.region == parse(want)


# ---- passes ------------------------------------------------------------------------------------------
HEAD = """region() {
  inout A: f64[8] layout 'grid(2), block(0), halo((2, 2))'
  inout B: f64[8] layout 'grid(2), block(0), halo((2, 2))'
"""


def halo(name: str, before: int, after: int) -> str:
    return f"  call comm.halo({name}) {{widths: (({before}, {after}),), corners: False}}\n"


SUM = "  B[i+1] = add(A[i], A[i+2]) for i<6\n"


def test_valid_halos_are_not_sent_again() -> None:
    text = HEAD + halo("A", 1, 1) + SUM + halo("A", 1, 1) + SUM + halo("A", 2, 1) + SUM + "}\n"
    want = HEAD + halo("A", 1, 1) + SUM + SUM + halo("A", 2, 1) + SUM + "}\n"
    got, said = after_passes(text, redundancy.remove_redundant_exchanges({}))
    assert got == want and said == "redundant exchange: done: the halo of A is still valid: not sent again"
    got, _ = after_passes(
        text, redundancy.remove_redundant_exchanges({"A": ValidHalos((Halo(((2, 2),), False),))})
    )
    assert got == HEAD + SUM + SUM + SUM + "}\n"
    changed = HEAD + halo("A", 1, 1) + SUM + "  A[0] = B[0]\n" + halo("A", 1, 1) + SUM + "}\n"
    region = parse(changed)
    assert redundancy.remove_redundant_exchanges({}).fn(region, Log()) is region
    one = Halo(((1, 1),), False)
    after = redundancy.valid_after(region, {"B": ValidHalos((one,))})
    assert after == {"A": ValidHalos((one,)), "B": ValidHalos((replace(one, rim=1),))}


def test_corners_are_valid_only_where_they_were_sent() -> None:
    one, other = Halo(((1, 1), (0, 0)), True), Halo(((0, 0), (1, 1)), True)
    layout = "layout 'grid(2, 2), block(0), block(1), halo((1, 1), (1, 1))'"

    def sent(h: Halo) -> str:
        return f"  call comm.halo(A) {{widths: {h.widths}, corners: {h.corners}}}\n"

    region = parse(f"region() {{\n  in A: f64[8, 8] {layout}\n{sent(one)}{sent(other)}}}\n")
    assert not redundancy.valid_after(region, {})["A"].has(one | other)


def test_of_a_wide_halo_the_rim_stays_valid_beside_a_narrow_one() -> None:
    text = HEAD + halo("B", 2, 2) + SUM + halo("B", 1, 1) + "}\n"  # what is between writes 1 to 6 of 0 to 7
    there = redundancy.valid_after(parse(text), {})["B"]
    wide, narrow = Halo(((2, 2),), False), Halo(((1, 1),), False)
    assert there.has(narrow) and there.has(replace(wide, rim=1))
    assert not there.has(wide) and not there.has(replace(wide, rim=2))
    after = there.after_write(3)
    assert after.has(replace(narrow, rim=3)) and after.has(replace(wide, rim=1)) and not after.has(narrow)
    assert not after.after_write(0)
    assert after.after_exchange(wide) == ValidHalos((wide,))


def test_no_more_than_a_few_halos_are_remembered() -> None:
    there = ValidHalos()
    for k in range(1, 40):
        there = there.after_exchange(Halo(((k, 40 - k),), True))
    assert 0 < len(there.halos) < 20 and there.has(Halo(((39, 1),), True))


def test_exchanges_of_one_halo_become_one() -> None:
    got, said = after_passes(
        HEAD + halo("A", 1, 0) + SUM + halo("A", 0, 2) + SUM + "}\n", redundancy.MERGE_EXCHANGES
    )
    assert got == HEAD + halo("A", 1, 2) + SUM + SUM + "}\n"
    assert said == "exchange merging: done: the halo of A is exchanged once for several reads"


def test_halos_of_several_arrays_travel_together() -> None:
    own = "  A[i] = negative(A[i]) for i<8\n"
    got, said = after_passes(
        HEAD + halo("A", 1, 1) + own + halo("B", 1, 1) + SUM + "}\n", redundancy.AGGREGATE_MESSAGES
    )
    assert got == HEAD + halo("A", 1, 1) + halo("B", 1, 1) + own + SUM + "}\n"
    assert said == "message aggregation: done: B goes in the same messages"
    region = parse(HEAD + halo("A", 1, 1) + SUM + halo("B", 1, 1) + SUM + "}\n")  # B is written in between
    assert redundancy.AGGREGATE_MESSAGES.fn(region, Log()) is region


def test_a_gather_and_a_scatter_vanish() -> None:
    head = HEAD + "  out C: f64[8] layout 'grid(2), block(0)';  temp t: f64[8];  temp u: f64[8]\n"
    text = head + "  call comm.redistribute(A) -> t\n  call comm.redistribute(t) -> C\n}\n"
    got, said = after_passes(text, redundancy.PROPAGATE_COPIES, redundancy.REMOVE_DEAD_REDISTRIBUTIONS)
    short = head.replace(";  temp t: f64[8];  temp u: f64[8]", "")
    assert parse(got) == parse(short + "  call comm.redistribute(A) -> C\n}\n")
    assert said.splitlines() == [
        "copy propagation: done: t is not needed on the way from A",
        "dead redistribution: done: t is not needed",
    ]  # fmt: skip
    uses = "  B[i] = t[7] for i<8\n", "  B[i] = u[6] for i<8\n"
    gather = "  call comm.redistribute(A) -> {}\n"
    got, said = after_passes(
        head + gather.format("t") + uses[0] + gather.format("u") + uses[1] + "}\n",
        redundancy.REUSE_REDISTRIBUTIONS,
    )
    assert parse(got) == parse(head + gather.format("t") + uses[0] + uses[1].replace("u", "t") + "}\n")
    assert said == "redistribution reuse: done: A is there already"
    region = parse(head + gather.format("t") + "  A[0] = t[7]\n" + gather.format("u") + uses[1] + "}\n")
    assert redundancy.REUSE_REDISTRIBUTIONS.fn(region, Log()) is region


# ---- what travels ------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (2, 3), (3, 3), (5, 1)])
def test_stencils_send_the_least_there_can_be(shape: tuple[int, int]) -> None:
    grid = ProcessGrid(shape)
    layout = Layout.blocks((17, 16), grid)
    half = parse(stencil(JACOBI, 17, 16))
    start = np.random.default_rng(1).random((17, 16))

    def live() -> tuple:
        world = comm.world()
        lays = {"u": layout, "v": layout}
        blocks = {name: start[tuple(_own(layout, world.rank))].copy() for name in lays}
        valid: dict[str, dict] = {"u": None, "v": None}
        sent = []
        for step in range(4):
            a, b = ("u", "v") if step % 2 == 0 else ("v", "u")
            known = {k: valid[n] for k, n in (("A", a), ("B", b)) if valid[n] is not None}
            program = plan(half, {"A": lays[a], "B": lays[b]}, world.size, world.rank, valid=known)
            after = execute(program, world, {"A": blocks[a], "B": blocks[b]})
            for k, n in (("A", a), ("B", b)):
                blocks[n], lays[n], valid[n] = after[k], program.layout(k), program.valid.get(k)
            sent.append(program.counts)
        return sent, blocks["u"][lays["u"].owned(world.rank)]

    u, v = start.copy(), start.copy()
    for _ in range(2):
        interp.run(half, {"A": u, "B": v})
        interp.run(half, {"A": v, "B": u})
    for rank, (sent, block) in enumerate(comm.run(grid.size, live)):
        rows, columns = layout.owned_shape(rank)
        (r, c), near = grid.coords(rank), 0
        sides = 0
        for k, extent, side in ((r, shape[0], columns), (c, shape[1], rows)):
            here = (k > 0) + (k < extent - 1)
            near, sides = near + here, sides + here * side
        for counts in sent:
            assert (counts.messages_sent, counts.bytes_sent) == (near, sides * 8)
        assert np.array_equal(block, u[tuple(_own(layout, rank))])


def _own(layout: Layout, rank: int) -> list[slice]:
    parts = zip(layout.parts, layout.part_indices(rank), strict=True)
    return [slice(part.start(c), part.start(c + 1)) for part, c in parts]


def test_several_arrays_are_one_message_for_each_neighbour() -> None:
    text = """region() {
  in A: f64[12];  in B: f32[12];  inout C: f64[12]
  C[i+1] = add(add(A[i], A[i+2]), cast:f64(B[i])) for i<10
}
"""
    layout = Layout((12,), ProcessGrid((3,)), [Block(0)], 1)
    program = plan(parse(text), {"A": layout, "B": layout, "C": layout}, 3, 1)
    assert [type(step) for step in program.steps] == [Exchanges, Local]
    assert (program.counts.messages_sent, program.counts.bytes_sent) == (2, 8 + 8 + 4)
