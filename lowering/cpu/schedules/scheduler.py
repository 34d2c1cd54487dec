"""Statements to kernels: which loop is parallel, which is the vector loop, what is tiled.

``schedule`` never decides what is right by a guess: legality is proved, sizes only steer choices.
"""

from __future__ import annotations

from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Bands, Branch, Compute, Loop, Nest, Region, Rows, While
from dcarray.lowering.cpu.kernel_passes.streaming_stores import past_caches
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Binding, Kernel
from dcarray.lowering.nest.loop_nest import FEW, LoopNest, finish

from .cross_row_reductions import by_blocks, by_groups, folds_rows
from .elementwise import elementwise, row, row_nests
from .loop_kernels import by_loops
from .reductions import reduction
from .scans import scanning
from .time_tiles import by_bands


def schedule(
    stmt: Compute | Nest | Rows | Bands | Loop | While | Branch, region: Region, cores: int = 2
) -> tuple[Kernel, Binding]:
    """The kernel of a statement, and how its arguments come from the region's arrays and symbols.

    Parameters
    ----------
    stmt : Compute, Nest, Rows, Bands, Loop, While or Branch
        A statement of the region.  When one that holds others is refused, these may be scheduled one by one.
    region : Region
        Where the statement is from; its arrays and symbols are looked up.
    cores : int, optional
        How many there are: a loop is refused whose statements, one by one, make better use of them.

    Returns
    -------
    kernel : Kernel
        Its text has no sizes in it.
    binding : Binding
        Every number in it is a Dim over the region's symbols and loop variables.

    Raises
    ------
    Unsupported
        If it cannot be done, or cannot be proved right; the text says why.
    """
    if isinstance(stmt, Rows):
        return _by_rows(stmt, region)
    if isinstance(stmt, Bands):
        return by_bands(stmt, region)
    if isinstance(stmt, Loop | While | Branch):
        return by_loops(stmt, region, cores)
    nest = LoopNest(stmt, region)
    if nest.scan is not None:
        scanning(nest)
    elif any(nest.folds):
        reduction(nest)
    else:
        elementwise(nest)
        kernel, binding = finish([nest])
        return past_caches(kernel, binding, region), binding
    return finish([nest])


def _by_rows(stmt: Rows, region: Region) -> tuple[Kernel, Binding]:
    """One phase over the rows; in it the loops of one statement after the other."""
    reason = rows_conflict(stmt.body, stmt.axes, region)
    if reason is not None:
        raise Unsupported(reason.text)
    nests = row_nests(stmt.body, region, stmt.axes)
    if nests[0].hints(nests[0].loops.extents[0]) < FEW:
        raise Unsupported("the rows are too few")
    late = [nest for nest in nests if folds_rows(nest)]
    for nest in nests:
        if any(nest.folds) and nest not in late:
            reduction(nest)
        elif not any(nest.folds):
            row(nest)
    kernel, binding = by_blocks(nests) if late else by_groups(nests) or finish(nests)
    return past_caches(kernel, binding, region), binding
