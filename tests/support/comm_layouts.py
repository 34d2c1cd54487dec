"""Random layouts of all kinds, and their meaning element by element."""

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis, Run
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Spec, Whole
from dcarray.comm.transport.protocol import Array


def elements(runs: Iterable[Run]) -> list[int]:
    """The indices of runs, in their order."""
    return [r.start + k * r.step + j for r in runs for k in range(r.repeats) for j in range(r.length)]


@st.composite
def _block_sizes(draw: st.DrawFn, extent: int, parts: int) -> tuple[int, ...]:
    """Block sizes, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, extent), min_size=parts - 1, max_size=parts - 1)))
    return tuple(int(n) for n in np.diff([0, *cuts, extent]))


@st.composite
def axes(draw: st.DrawFn, extent: int | None = None) -> Axis:
    """One axis with a random distribution."""
    n = draw(st.integers(0, 40)) if extent is None else extent
    parts = draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["even", "sizes", "cyclic"]))
    if kind == "cyclic":
        return CyclicAxis(n, parts, draw(st.integers(1, 6)))
    return BlockAxis(n, parts, draw(_block_sizes(n, parts)) if kind == "sizes" else None)


@st.composite
def layouts(
    draw: st.DrawFn, shape: tuple[int, ...] | None = None, ranks: int | None = None, most: int = 12
) -> Layout:
    """A layout of up to three axes over a grid of any shape, with halos where possible."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
    ranks = ranks or draw(st.integers(1, most))
    grid = ProcessGrid(draw(_factors(ranks)))
    free = list(draw(st.permutations(range(grid.ndim))))
    specs: list[Spec] = []
    for n in shape:
        kind = draw(st.sampled_from(["whole", "even", "sizes", "cyclic"])) if free else "whole"
        if kind == "whole":
            specs.append(Whole())
        elif kind == "cyclic":
            specs.append(Cyclic(free.pop(), draw(st.integers(1, 4))))
        else:
            axis = free.pop()
            specs.append(Block(axis, draw(_block_sizes(n, grid.shape[axis])) if kind == "sizes" else None))
    bare = Layout(shape, grid, specs)
    halo = []
    for spec, part in zip(specs, bare.parts, strict=True):
        widest = 0 if isinstance(spec, Cyclic) else part.smallest() if part.parts > 1 else part.extent
        halo.append((draw(st.integers(0, min(2, widest))), draw(st.integers(0, min(2, widest)))))
    return Layout(shape, grid, specs, halo)


@st.composite
def _factors(draw: st.DrawFn, ranks: int) -> list[int]:
    """A grid of up to three axes."""
    shape = []
    for _ in range(draw(st.integers(0, 2))):
        shape.append(draw(st.sampled_from([d for d in range(1, ranks + 1) if ranks % d == 0])))
        ranks //= shape[-1]
    return [*shape, ranks]


def scatter(whole: Array, layout: Layout, rank: int, empty: int = -1) -> Array:
    """A rank's memory of an array, filled element by element, with a marker value in the halo."""
    memory = np.full(layout.local_shape(rank), empty, whole.dtype)
    for index in np.ndindex(*whole.shape):
        if rank in layout.owners(index):
            memory[layout.to_local(index)] = whole[index]
    return memory
