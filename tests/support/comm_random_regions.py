"""Random regions over many ranks: their programs run and compared with the interpreter on whole arrays."""

from collections.abc import Collection
from typing import Any

import numpy as np
from comm_layouts import layouts as some_layout
from comm_layouts import scatter
from hypothesis import strategies as st
from ir_regions import Case, assert_agree, cases

from dcarray import comm
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.planner import arrays_to_gather, place_region, plan
from dcarray.comm.planning.rank_program.execution import execute
from dcarray.comm.transport.protocol import Counts
from dcarray.ir import interp
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify


def whole_of(blocks: list[np.ndarray], layout: Layout | None, rank: int) -> np.ndarray:
    """An array assembled from all ranks' memory; without a layout, that of one rank."""
    if layout is None:
        return blocks[rank]
    made = np.empty(layout.shape, blocks[0].dtype)
    for index in np.ndindex(*layout.shape):
        made[index] = blocks[layout.owner(index)][layout.to_local(index)]
    return made


def check_placed(
    case: Case, ranks: int, layouts: dict[str, Layout | None], preserved: Collection[str] = ()
) -> None:
    """A placed region is valid, can be printed and parsed, and has the same meaning as before."""
    for name in arrays_to_gather(case.region, layouts):
        layouts[name] = None
    placed = place_region(case.region, layouts, ranks, preserved=preserved)
    verify(placed.region)
    assert parse(dump(placed.region)) == placed.region
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory())
        got = {**case.memory(), **interp.run(placed.region, case.memory())}
    assert_agree({name: got[placed.after[name]] for name in want}, want, zero_signs=case.zero_signs)


def check(case: Case, ranks: int, layouts: dict[str, Layout | None], plan: Any = plan) -> None:
    """Run a region twice, so that the layouts and halos after the first run are those of the second."""
    for name in arrays_to_gather(case.region, layouts):
        layouts[name] = None
    wants, memory = [], case.memory()
    with np.errstate(all="ignore"):
        for _ in range(2):
            wants.append({name: a.copy() for name, a in interp.run(case.region, memory).items()})

    def live() -> list:
        world = comm.world()
        said, valid, found = dict(layouts), {}, []
        mine = {}
        for name, whole in case.memory().items():
            layout = layouts.get(name)
            mine[name] = whole if layout is None else scatter(whole, layout, world.rank, 1)
        for _ in range(2):
            program = plan(case.region, said, ranks, world.rank, valid=valid)
            before = world.counts + Counts()
            with np.errstate(all="ignore"):
                after = execute(program, world, _existing(case, mine))
            assert world.counts == before + program.counts
            lay = {name: program.layout(name) for name in after}
            found.append(({name: block.copy() for name, block in after.items()}, lay))
            said = {**layouts, **{name: lay[name] for name in program.given}}
            valid, mine = program.valid, after
        return found

    found = comm.run(ranks, live)
    for turn, want in enumerate(wants):
        for name in (a.name for a in case.region.arrays if a.role in ("out", "inout")):
            for rank in range(ranks):
                layout = found[rank][turn][1][name]
                got = whole_of([each[turn][0][name] for each in found], layout, rank)
                assert_agree({name: got}, want, zero_signs=case.zero_signs)


def _existing(case: Case, memory: dict) -> dict:
    return {a.name: memory[a.name] for a in case.region.arrays if a.role in ("in", "inout")}


@st.composite
def laid_out(draw, **options):
    case = draw(cases(**options))
    ranks = draw(st.integers(1, 12))
    chosen = {}
    for array in case.region.arrays:
        if draw(st.booleans()):
            chosen[array.name] = draw(some_layout(array.shape, ranks))
    return case, ranks, chosen
