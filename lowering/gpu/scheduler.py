"""The scheduler for devices, which turns statements of regions into kernels of blocks of threads.

A schedule is used only if it is proved to be legal; size hints choose among legal schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.build import is_scalar_argument
from dcarray.ir.nodes import Branch, Call, Compute, Loop, Nest, Region, Rows, TimeTiles, While
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Binding, Kernel, Op, Pointer
from dcarray.lowering.kernel.walk import shared_stacks
from dcarray.lowering.nest.loop_nest import LoopNest, make_kernel, row_nests

from .schedules.blocks import LIMITS, Limits
from .schedules.elementwise import schedule_elementwise
from .schedules.loops import schedule_loops
from .schedules.panels import is_panel, schedule_panel
from .schedules.products import has_tiles, product_of, schedule_product
from .schedules.reductions import schedule_reduction
from .schedules.rows import schedule_rows
from .schedules.scans import schedule_scan

SHARED = 1 << 15  # bytes that the threads of a block share, at most: what OpenCL promises


def gpu_kernel(
    stmt: Any,
    region: Region,
    *,
    cores: int,
    repeated: bool,
    exact: Callable[[Op], bool] | None,
    limits: Limits = LIMITS,
) -> tuple[Kernel, Binding]:
    """Return what `schedule` returns; the signature is that of a `dcarray.lowering.target.Scheduler`."""
    return schedule(stmt, region, limits)


def schedule(
    stmt: Compute | Nest | Rows | TimeTiles | Loop | While | Branch | Call,
    region: Region,
    limits: Limits = LIMITS,
) -> tuple[Kernel, Binding]:
    """Return the kernel of a statement, and the binding of its arguments to the region's arrays and symbols.

    Parameters
    ----------
    stmt : Compute, Nest, Rows, TimeTiles, Loop, While, Branch or Call
        A statement of the region.
    region : Region
        The statement's region, which declares its arrays and symbols.
    limits : Limits, optional
        The number of threads of a block, and other constants of schedules.

    Returns
    -------
    kernel : Kernel
        The kernel; its text contains no sizes.
    binding : Binding
        The kernel's arguments; each number is a Dim over the region's symbols and loop variables.

    Raises
    ------
    Unsupported
        If there is no schedule, or if its legality cannot be proved; the text is the reason.  The caller may
        then schedule the statements in ``stmt`` one by one.
    """
    if isinstance(stmt, Call):
        raise Unsupported("random numbers are not drawn on devices")
    if isinstance(stmt, Rows):
        reason = rows_conflict(stmt.body, stmt.axes, region)
        if reason is not None:
            raise Unsupported(reason.text)
        kernel, binding = schedule_rows(row_nests(stmt.body, region, stmt.axes), limits)
        kernel = with_shared_writes(kernel)
    elif isinstance(stmt, Loop | While | Branch):
        kernel, binding = schedule_loops(stmt, region, limits)
        kernel = with_shared_writes(kernel)
    elif isinstance(stmt, Compute | Nest):
        kernel, binding = _schedule_nest(LoopNest(stmt, region), limits)
    else:
        raise Unsupported(f"a device runs no {type(stmt).__name__} as one kernel")
    check_shared_memory(kernel)
    return scalars_by_value(kernel, binding, region)


def _schedule_nest(nest: LoopNest, limits: Limits) -> tuple[Kernel, Binding]:
    """Return the kernel of a loop nest, with the schedule that fits its statements, and its binding."""
    if nest.scan is not None:
        schedule_scan(nest, limits)
    elif (product := product_of(nest)) is not None and is_panel(nest, product, limits):
        schedule_panel(nest, product, limits)
    elif product is not None and has_tiles(nest, product, limits):
        schedule_product(nest, product, limits)
    elif any(nest.folds):
        schedule_reduction(nest, limits)
    else:
        schedule_elementwise(nest, limits)
    return make_kernel([nest])


def check_shared_memory(kernel: Kernel) -> None:
    """Check that the threads of a block share at most `SHARED` bytes of memory.

    Raises
    ------
    Unsupported
        If they share more.
    """
    for phase in kernel.phases:
        stacks = shared_stacks(phase.body)
        if sum(stack.size * stack.dtype.itemsize for stack in stacks) > SHARED:
            raise Unsupported("the threads of a block would share too much memory")


def with_shared_writes(kernel: Kernel) -> Kernel:
    """Return a kernel without ``restrict`` on the buffers that it writes.

    Kernels with loops over statements, or whose threads read what other threads have written, need this: with
    ``restrict``, compilers keep values in registers across barriers, or move stores out of loops.
    """
    buffers = tuple(replace(b, noalias=b.noalias and b.access == "r") for b in kernel.buffers)
    return replace(kernel, buffers=buffers)


def scalars_by_value(kernel: Kernel, binding: Binding, region: Region) -> tuple[Kernel, Binding]:
    """Return the kernel, and its binding, with the region's scalar arguments passed by value."""
    scalars = {array.name for array in region.arrays if is_scalar_argument(array)}
    buffers = tuple(
        replace(buffer, by_value=True)
        if isinstance(pointer, Pointer) and pointer.array in scalars and buffer.access == "r"
        else buffer
        for buffer, pointer in zip(kernel.buffers, binding.pointers, strict=True)
    )
    return replace(kernel, buffers=buffers), binding
