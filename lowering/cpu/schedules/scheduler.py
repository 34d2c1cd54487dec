"""The CPU scheduler, which turns statements into kernels: it chooses parallel loops, vector loops and tiles.

The legality of a schedule is proved; size hints only steer the choice among legal ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Branch, Call, Compute, Group, Loop, Region, Rows, TimeTiles, While
from dcarray.lowering.cpu.kernel_passes import ufunc_blocks
from dcarray.lowering.cpu.kernel_passes.streaming_stores import stream_stores
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Binding, Kernel, Op
from dcarray.lowering.kernel.specialise import MAX_CONSTANT, specialise
from dcarray.lowering.nest.loop_nest import MIN_PARALLEL, LoopNest, make_kernel, row_nests

from .cross_row_reductions import folds_rows, schedule_row_blocks, schedule_row_groups
from .elementwise import schedule_elementwise, schedule_row
from .loop_kernels import schedule_loops
from .reductions import schedule_reduction
from .scans import schedule_scan
from .time_tiles import schedule_time_tiles


def cpu_kernel(
    stmt: Any, region: Region, *, cores: int, repeated: bool, exact: Callable[[Op], bool] | None
) -> tuple[Kernel, Binding]:
    """Return the kernel of a statement and its binding, with NumPy's loops for operations that must have
    NumPy's bits; a `dcarray.lowering.target.Scheduler`."""
    kernel, binding = schedule(stmt, region, cores)
    kernel, binding = ufunc_blocks.call_numpy_loops(kernel, binding, exact is not None, exact or _none)
    # what is launched again and again has its sizes in its text
    return specialise(kernel, binding, None if repeated else MAX_CONSTANT)


def _none(op: Op) -> bool:
    return False


def schedule(
    stmt: Compute | Group | Loop | While | Branch | Call, region: Region, cores: int = 2
) -> tuple[Kernel, Binding]:
    """Return the kernel of a statement, without sizes in its text, and the binding of its arguments to the
    region's arrays, symbols and loop variables.

    Raises `Unsupported`, with the reason, if there is no schedule, if its legality cannot be proved, or if
    the statements of a loop use the cores better when launched one by one. The caller may then schedule the
    statements in ``stmt`` one by one.
    """
    if isinstance(stmt, Rows):
        return _by_rows(stmt, region)
    if isinstance(stmt, TimeTiles):
        return schedule_time_tiles(stmt, region)
    if isinstance(stmt, Loop | While | Branch | Call):
        return schedule_loops(stmt, region, cores)
    nest = LoopNest(stmt, region)
    if nest.scan is not None:
        schedule_scan(nest)
    elif any(nest.folds):
        schedule_reduction(nest)
    else:
        schedule_elementwise(nest)
        kernel, binding = make_kernel([nest])
        return stream_stores(kernel, binding, region), binding
    return make_kernel([nest])


def _by_rows(stmt: Rows, region: Region) -> tuple[Kernel, Binding]:
    """Return the kernel of statements that run row by row: one phase over the rows, with each statement's
    loops."""
    reason = rows_conflict(stmt.body, stmt.axes, region)
    if reason is not None:
        raise Unsupported(reason.text)
    nests = row_nests(stmt.body, region, stmt.axes)
    if nests[0].hints(nests[0].loops.extents[0]) < MIN_PARALLEL:
        raise Unsupported("the rows are too few")
    late = [nest for nest in nests if folds_rows(nest)]
    for nest in nests:
        if any(nest.folds) and nest not in late:
            schedule_reduction(nest)
        elif not any(nest.folds):
            schedule_row(nest)
    kernel, binding = schedule_row_blocks(nests) if late else schedule_row_groups(nests) or make_kernel(nests)
    return stream_stores(kernel, binding, region), binding
