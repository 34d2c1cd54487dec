"""Choice of layouts for arrays whose layouts are free, from the matrix products that they are factors of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

from dcarray.comm.algorithms.product_axes import Product, parse
from dcarray.comm.algorithms.product_layouts import cost
from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Layout
from dcarray.ir.nodes import Array, Call, Compute, Load, Region
from dcarray.ir.windows import identity, loads

from .matmul_call import letters

__all__ = ["final_arrays", "has_matrix_products", "preferred_layouts"]

# The least saving for which a layout is changed, as a fraction of a rank's share of the array.
MIN_SAVING = 1 / 8


def preferred_layouts(
    region: Region, layouts: Mapping[str, Layout | None], free: Set[str], ranks: int
) -> dict[str, Layout | None]:
    """Return layouts for arrays that every rank has whole, which can be distributed without communication.

    A factor is not cut along a summed axis if the other arrays of the product then need no communication,
    such as for a stack of vectors times one matrix.  It is cut over the grid of the other factor, or of the
    result, if that sends fewer bytes.  An input factor stays whole if the copies on all ranks together are
    no larger than the other factor; the same holds for inputs of a product written out as a sum.

    Parameters
    ----------
    region : Region
        A region with known sizes.
    layouts : mapping of str to (Layout or None)
        The layouts of the region's arrays, and defaults for those in `free`.  None or no entry: whole on
        every rank, or, for an array that the region creates, any layout.
    free : set of str
        The arrays whose layouts are free.
    ranks : int

    Returns
    -------
    dict of str to (Layout or None)
        All layouts, the same on all ranks.
    """
    chosen = dict(layouts)
    arrays = {array.name: array for array in region.arrays}
    of_which, into_which = _element_wise_chains(region, arrays)
    for stmt in region.body:
        if isinstance(stmt, Compute):
            chosen.update(dict.fromkeys(_replicable_reads(stmt, arrays, ranks) & free & chosen.keys()))
    for call in region.body:
        if not isinstance(call, Call) or call.op != "blas.matmul":
            continue
        first, second = (arrays[of_which.get(w.array, w.array)] for w in call.reads)
        result = arrays[into_which.get(call.writes[0].array, call.writes[0].array)]
        named = letters(call, [first.shape, second.shape, result.shape])
        try:
            of = parse(named or "", first.shape, second.shape, adds_axes=True)
        except ValueError:
            continue  # not a product of whole arrays
        for output in (arrays[call.writes[0].array], result):
            if output.name in free and output.role not in ("in", "inout"):
                chosen.pop(output.name, None)
        for factor, other, names in sorted(
            ((first, second, of.a), (second, first, of.b)), key=lambda x: -math.prod(x[0].shape)
        ):
            if factor.name not in free or chosen.get(factor.name) is None:
                continue
            grids = [x.grid for x in (chosen.get(other.name), chosen.get(result.name)) if x is not None]
            choices: list[Layout | None] = [
                Layout.blocks(factor.shape, grid) for grid in grids if grid.ndim <= len(factor.shape)
            ]
            others = [1 if x in of.inner else n for x, n in zip(names, factor.shape, strict=True)]
            if sum(n > 1 for n in others) > 1 and math.prod(others) >= ranks:
                choices.append(Layout.blocks(factor.shape, choose_grid(others, ranks)))
            if factor.role == "in" and math.prod(factor.shape) * ranks <= math.prod(other.shape):
                choices.append(None)
            usual = _cost(of, (first, second, result), chosen, ranks)
            least = MIN_SAVING * math.prod(factor.shape) * factor.dtype.itemsize / ranks
            for choice in choices:
                with_it = {**chosen, factor.name: choice}
                taken = _cost(of, (first, second, result), with_it, ranks)
                if usual - taken >= least:
                    usual, chosen = taken, with_it
    return chosen


def has_matrix_products(region: Region) -> bool:
    """Whether a region has products of two matrices; cutting their rows costs no additional messages."""
    calls = [stmt for stmt in region.body if isinstance(stmt, Call) and stmt.op == "blas.matmul"]
    return any(all(len(window.shape) > 1 for window in call.reads) for call in calls)


def _replicable_reads(stmt: Compute, arrays: Mapping[str, Array], ranks: int) -> set[str]:
    """Return the input arrays whose elements a statement reads at several points and that are small.

    Small: the copies on all ranks together are no larger than the largest array of the statement.

    The small factors of products that are written out as sums are examples.
    """
    read = [load.window for load in loads(stmt.body)]
    largest = max(math.prod(arrays[name].shape) for name in {stmt.target.array, *(w.array for w in read)})
    return {
        window.array
        for window in read
        if arrays[window.array].role == "in"
        and len({ix.axis for ix in window.index if ix.axis is not None}) < len(window.shape)
        and math.prod(arrays[window.array].shape) * ranks <= largest
    }


def _element_wise_chains(
    region: Region, arrays: Mapping[str, Array]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two maps: from element-wise results to an array they are computed from, and the converse."""
    of_which: dict[str, str] = {}
    into_which: dict[str, str] = {}
    for stmt in region.body:
        if not isinstance(stmt, Compute) or stmt.combine is not None:
            continue
        result = arrays[stmt.target.array]
        if not result.shape or stmt.target != identity(result):
            continue
        for load in loads(stmt.body):
            read = arrays[load.window.array]
            if isinstance(load, Load) and read.shape == result.shape and load.window == identity(read):
                if result.role == "temp":
                    of_which.setdefault(result.name, of_which.get(read.name, read.name))
                if read.role == "temp":
                    into_which[read.name] = result.name
    return of_which, into_which


def final_arrays(region: Region) -> dict[str, str]:
    """Return for each temporary the array at the end of its element-wise chain, if that outlives the region.

    A temporary is best computed in the layout of that array.
    """
    arrays = {array.name: array for array in region.arrays}
    into = _element_wise_chains(region, arrays)[1]
    ends = {}
    for name in into:
        end, seen = into[name], {name}
        while end in into and end not in seen:
            seen.add(end)
            end = into[end]
        if arrays[end].role != "temp":
            ends[name] = end
    return ends


def _cost(
    of: Product, arrays: tuple[Array, Array, Array], layouts: Mapping[str, Layout | None], ranks: int
) -> float:
    """Return the cost in bytes of a product for a rank, if its arrays have given layouts."""
    grid = ProcessGrid((ranks,))
    a, b, out = (layouts.get(array.name) for array in arrays)
    first, second, result = (array.dtype.itemsize for array in arrays)
    a, b = a or Layout.copies(arrays[0].shape, grid), b or Layout.copies(arrays[1].shape, grid)
    return cost(of, a, b, out, (first, second, result))
