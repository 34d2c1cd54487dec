"""Statements to kernels: which loop is parallel, which is the vector loop, what is tiled.

``schedule`` never decides what is right by a guess: legality is proved, sizes only steer choices.
"""

from __future__ import annotations

from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Bands, Branch, Compute, Loop, Nest, Region, Rows, While
from dcarray.lowering.cpu.kernel_passes.streaming_stores import past_caches
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Binding, Kernel
from dcarray.lowering.nest.loop_nest import FEW, Job, finish

from .cross_row_reductions import by_blocks, by_groups, folds_rows
from .elementwise import elementwise, row, row_jobs
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
    job = Job(stmt, region)
    if job.scan is not None:
        scanning(job)
    elif any(job.folds):
        reduction(job)
    else:
        elementwise(job)
        kernel, binding = finish([job])
        return past_caches(kernel, binding, region), binding
    return finish([job])


def _by_rows(stmt: Rows, region: Region) -> tuple[Kernel, Binding]:
    """One phase over the rows; in it the loops of one statement after the other."""
    reason = rows_conflict(stmt.body, stmt.axes, region)
    if reason is not None:
        raise Unsupported(reason.text)
    jobs = row_jobs(stmt.body, region, stmt.axes)
    if jobs[0].guess(jobs[0].loops.extents[0]) < FEW:
        raise Unsupported("the rows are too few")
    late = [job for job in jobs if folds_rows(job)]
    for job in jobs:
        if any(job.folds) and job not in late:
            reduction(job)
        elif not any(job.folds):
            row(job)
    kernel, binding = by_blocks(jobs) if late else by_groups(jobs) or finish(jobs)
    return past_caches(kernel, binding, region), binding
