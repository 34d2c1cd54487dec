"""Layouts against the enumeration of all elements."""

from typing import Any

import numpy as np
import pytest
from comm_layouts import axes, elements, layouts
from hypothesis import given, settings

from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis, Run
from dcarray.comm.layout.axis_overlap import overlap, peers
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.transport.errors import LayoutError

quick = settings(max_examples=60, deadline=None, derandomize=True)


# ---- one axis ----------------------------------------------------------------------------------------
@quick
@given(axes())
def test_the_formulas_of_an_axis(axis: Axis) -> None:
    owners = [axis.owner(i) for i in range(axis.extent)]
    for part in range(axis.parts):
        mine = [i for i, owner in enumerate(owners) if owner == part]
        assert elements(axis.runs(part)) == mine
        assert axis.size(part) == len(mine)
        assert [axis.to_local(i) for i in mine] == list(range(len(mine)))
        assert [axis.to_global(part, k) for k in range(len(mine))] == mine
    assert axis.smallest() == min(map(axis.size, range(axis.parts)))


def test_even_blocks_differ_by_at_most_one_and_the_larger_come_first() -> None:
    assert [BlockAxis(11, 4).size(part) for part in range(4)] == [3, 3, 3, 2]
    assert [BlockAxis(2, 4).size(part) for part in range(4)] == [1, 1, 0, 0]


@quick
@given(axes(extent=37), axes(extent=37))
def test_parts_that_meet(a: Axis, b: Axis) -> None:
    for part in range(a.parts):
        mine = elements(a.runs(part))
        met = list(peers(a, part, b))
        assert len(set(met)) == len(met)
        assert set(met) == {b.owner(i) for i in mine}
        for other in range(b.parts):
            runs = overlap(a, part, b, other)
            assert runs == overlap(b, other, a, part)  # both ends of a message list the same
            assert sorted(elements(runs)) == [i for i in mine if b.owner(i) == other]
            assert elements(a.local_run(part, run) for run in runs) == [a.to_local(i) for i in elements(runs)]


def test_cyclic_parts_meet_in_few_runs_however_long_the_axis() -> None:
    a, b = CyclicAxis(10**9, 36, 3), CyclicAxis(10**9, 36, 5)
    met = list(peers(a, 1, b))
    assert len(met) <= 7
    assert sum(len(overlap(a, 1, b, other)) for other in met) <= 14


# ---- whole layouts -----------------------------------------------------------------------------------
@quick
@given(layouts())
def test_the_formulas_of_a_layout(layout: Layout) -> None:
    table: dict[tuple[int, ...], list[int]] = {index: [] for index in np.ndindex(*layout.shape)}
    for rank in range(layout.grid.size):
        assert layout.local_shape(rank) == tuple(
            n + sum(w) for n, w in zip(layout.owned_shape(rank), layout.halo, strict=True)
        )
        memory = np.zeros(layout.local_shape(rank))
        memory[layout.owned(rank)] = 1
        assert layout.elements(rank) == memory.sum()
        for place in np.argwhere(memory):
            index = layout.to_global(rank, tuple(place))
            assert layout.to_local(index) == tuple(place)
            assert all(i in elements(runs) for i, runs in zip(index, layout.runs(rank), strict=True))
            table[index].append(rank)
    for index, owners in table.items():
        assert layout.owners(index) == tuple(owners)
        assert layout.owner(index) == owners[0]


def test_ways_to_make_a_layout() -> None:
    grid = ProcessGrid((2, 3))
    assert Layout.blocks((5, 7, 4), grid, halo=(1, (0, 2), 0)).local_shape(0) == (5, 5, 4)
    assert Layout.chosen((100, 100), 4).grid.shape == (2, 2)
    assert Layout.copies((3, 3), grid).copy_axes == (0, 1)
    only = Layout.on_one((5, 7), 6, 4)
    assert [only.owned_shape(rank) == (5, 7) for rank in range(6)] == [r == 4 for r in range(6)]
    assert sum(map(only.elements, range(6))) == 35


GRID = ProcessGrid((4,))
BAD: list[tuple[tuple[Any, ...], str]] = [
    (((8,), GRID, [Block(1)]), "over the grid axes"),
    (((8, 8), GRID, [Block(0), Block(0)]), "over the grid axes"),
    (((8, 8), GRID, [Block(0)]), "1 axes are laid out of an array of 2"),
    (((8,), GRID, [Block(0, (4, 4))]), "2 block sizes were given for 4 parts"),
    (((8,), GRID, [Block(0, (4, 4, 4, -4))]), "do not make up an axis of 8"),
    (((8,), GRID, [Cyclic(0, 0)]), "a block of 0"),
    (((8,), GRID, [Cyclic(0, 2)], 1), "can have no halo"),
    (((10,), GRID, [Block(0)], 3), "a halo of 3 elements is wider than a block of 2"),
    (((8,), GRID, [Block(0)], [1, 1]), "widths were given for 2 axes"),
    (((8,), GRID, [Block(0)], -1), "not all positive"),
]


@pytest.mark.parametrize(("args", "text"), BAD)
def test_layouts_that_do_not_exist(args: tuple[Any, ...], text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        Layout(*args)


def test_what_is_not_in_a_layout() -> None:
    layout = Layout((8,), GRID, [Block(0)], 1)
    with pytest.raises(IndexError, match="not in an array"):
        layout.owner((8,))
    with pytest.raises(LayoutError, match="not among the elements"):
        layout.to_global(0, (0,))
    with pytest.raises(LayoutError, match=r"shape \(2,\).*needs \(4,\)"):
        layout.check(0, (2,))
    with pytest.raises(LayoutError, match="more axes"):
        Layout.blocks((8,), ProcessGrid((2, 2)))
    with pytest.raises(LayoutError, match="without axes"):
        Layout.on_one((), 4, 0)
    assert Layout((8,), GRID, [Whole()]).runs(3) == ((Run(0, 8),),)


def test_sizes_of_blocks_may_be_any_sequence() -> None:
    """Sizes are converted to tuples: layouts are dictionary keys."""
    want = Block(0, (3, 0, 2))
    for sizes in ([3, 0, 2], np.array([3, 0, 2]), iter([3, 0, 2])):
        assert Block(0, sizes) == want and hash(Block(0, (3, 0, 2))) == hash(want)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Block(0, [2.5, 2.5])  # type: ignore[arg-type]
