"""The choice of layouts for arrays that are to be distributed in blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.placement.layout_preferences import has_matrix_products, preferred_layouts
from dcarray.comm.transport.protocol import Communicator
from dcarray.core.config import Options
from dcarray.ir.nodes import Region

__all__ = ["chosen_layouts", "default_layout", "is_large"]


def is_large(shape: tuple[int, ...], options: Options) -> bool:
    return bool(shape) and math.prod(shape) > options.distribute_above


def default_layout(shape: tuple[int, ...], options: Options, comm: Communicator, rows: bool = True) -> Layout:
    """Return the layout of an array by its shape; ``rows`` prefers whole rows."""
    return _layout(shape, options.grid, comm.size, rows)


@cache
def _layout(shape: tuple[int, ...], grid: tuple[int, ...] | None, ranks: int, rows: bool) -> Layout:
    if grid is None or len(grid) > len(shape):
        return Layout.chosen(shape, ranks, rows=rows)
    over = ProcessGrid(grid)
    over.check(ranks)
    return Layout.blocks(shape, over)


def chosen_layouts(
    exact: Region, region: Region, known: Mapping[str, Layout], several: bool, options: Options,
    comm: Communicator,
) -> dict[str, Layout]:  # fmt: skip
    """Return the layouts of a region's arrays: of those that lie in blocks, and of those that will.

    Parameters
    ----------
    exact, region : Region
        The region before and after passes.
    known : mapping of str to Layout
        The layouts of arrays that lie in blocks already, by name.
    several : bool
        Whether there are such arrays, so that the planner chooses layouts of new ones.
    """
    layouts = dict(known)
    rows = not has_matrix_products(region)
    for array in exact.arrays:
        if array.name not in layouts and is_large(array.shape, options):
            like = None
            if array.role in ("in", "inout"):
                like = next((x for x in layouts.values() if x.shape == array.shape), None)
            elif several:
                continue
            default = default_layout(array.shape, options, comm, rows)
            layouts[array.name] = default if like is None else like.without_halo()
    best = preferred_layouts(region, layouts, layouts.keys() - known.keys(), comm.size)
    return {name: layout for name, layout in best.items() if layout is not None}
