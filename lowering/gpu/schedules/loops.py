"""The schedules of a loop or branch with all its statements as one kernel, instead of many small ones.

Each iteration of a parallel loop is run by a thread or by a block.  Other loops are run by one block, whose
threads share each of its statements, or by one thread if there is nothing to share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcarray.ir import dims, nodes
from dcarray.ir.analysis.data_dependent import selected_index
from dcarray.ir.analysis.independence import iteration_conflict
from dcarray.ir.nodes import Branch, Dim, Region, While
from dcarray.lowering.cpu.schedules.loop_kernels import LoopMaker, kernel_of_loops, trip_count_of
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.nest.access import total
from dcarray.lowering.nest.loop_nest import LoopNest, variable

from .blocks import BLOCK, BOOL, LANE, LIMITS, Limits, guard, threads
from .rows import along_row

MAX_WORK = 1 << 16  # the work of a statement, in additions, for which one block does it sooner than a launch
ALONE = 16  # points of a statement that one thread does
EACH = 1 << 12  # the work of an iteration up to which it has a thread
MAX_LOCAL_BYTES = 1 << 10  # bytes of arrays that a thread has in registers, or a block in shared memory
MAX_SCRATCH = 1 << 28  # bytes of scratch for the private arrays of iterations


def schedule_loops(
    stmt: nodes.Loop | While | Branch, region: Region, limits: Limits
) -> tuple[k.Kernel, k.Binding]:
    """Return the kernel, and its binding, of a loop or branch with all its statements.

    Raises
    ------
    Unsupported
        If launching its statements one by one is faster, since each can use the whole device.
    """
    trial = _ThreadMaker(region, 1)
    trial.statement(stmt)
    if isinstance(stmt, nodes.Loop) and selected_index(stmt) is None:
        parallel = _parallel(stmt, region, trial, limits)
        if parallel is not None:
            return parallel
    if trial.most > MAX_WORK:
        raise Unsupported("its statements are large enough for a device")
    alone = trial.points <= ALONE
    maker: LoopMaker = _ThreadMaker(region, 1) if alone else _BlockMaker(region, 1, limits=limits)
    stacks = maker.stacks(maker.locals(stmt))
    body = maker.statement(stmt)
    count = 1 if alone else limits.threads
    if alone:
        body = (threads(1, (*stacks, *body)),)
        stacks = ()
    phase = k.Phase(BLOCK, k.affine(1), "blocks", (*stacks, *body), (), count)
    return kernel_of_loops(maker, stmt, phase, 1)


def _parallel(
    stmt: nodes.Loop, region: Region, trial: _ThreadMaker, limits: Limits
) -> tuple[k.Kernel, k.Binding] | None:
    """Return the kernel, and its binding, of a parallel loop, with a thread or a block per iteration; None if
    its iterations are dependent, or too few."""
    trips, step = trip_count_of(stmt), stmt.bounds[2]
    count = trial.hints(trips)
    if type(step) is not int or len(dims.least_of(dims.simplify(-step * stmt.bounds[0]))) > 1:
        return None
    each = trial.hints(trial.work) // max(1, count)
    by_threads = each <= EACH or count >= limits.threads * limits.blocks
    if count < limits.narrow or (not by_threads and trial.most > MAX_WORK):
        return None
    if not stmt.parallel and iteration_conflict(stmt, region) is not None:
        return None
    maker: LoopMaker = _ThreadMaker(region, 1) if by_threads else _BlockMaker(region, 1, limits=limits)
    small, large = maker.private_arrays(stmt, MAX_LOCAL_BYTES)
    room = sum(maker.hints(total(array.shape)) * array.dtype.itemsize for array in large)
    if room * count > MAX_SCRATCH:
        return None
    maker.arguments.pieces = "g0", trips
    for array in large:
        spot = maker.arguments.scratch_per_piece(array.dtype, total(array.shape))
        maker.arguments.private[array.name] = spot
    stacks = maker.stacks(small)
    loop = maker.loop(stmt)
    extent = maker.arguments.integer(trips)
    piece = (
        k.affine(0, k.Term(limits.threads, None, BLOCK), variable(LANE)) if by_threads else variable(BLOCK)
    )
    begin = k.affine(0, loop.lower, k.Term(loop.step, None, "g0"))
    inner = (k.Let(loop.var, k.Index(begin)), *loop.body)
    if by_threads:
        inside = k.Op("less", (k.Index(variable("g0")), k.Index(extent)), BOOL)
        own = (*stacks, k.Let("g0", k.Index(piece)), *guard([inside], inner))
        blocks: Dim = dims.simplify((trips + limits.threads - 1) // limits.threads)
        body: tuple[k.Stmt, ...] = (threads(limits.threads, own),)
        grid = maker.arguments.integer(blocks)
    else:
        blocks, grid = trips, extent
        body = (*stacks, k.Let("g0", k.Index(piece)), *inner)
    return kernel_of_loops(maker, stmt, k.Phase(BLOCK, grid, "blocks", body, (), limits.threads), blocks)


@dataclass(slots=True)
class _ThreadMaker(LoopMaker):
    """The maker of a kernel in which one thread runs all statements; it measures the largest statement."""

    most: int = 0  # the work of the largest
    points: int = 0  # the most of one statement

    def weigh(self, nest: LoopNest) -> None:
        """Add the work of a statement to the kernel's total, and update the most work and the most points of
        one statement."""
        points = self.hints(dims.substitute(total(nest.shape), self.middle))
        self.most, self.points = max(self.most, points * nest.cost()), max(self.points, points)
        LoopMaker.weigh(self, nest)

    def outermost(self, stmt: nodes.Loop) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for the body of the outermost loop, as one thread runs them."""
        return self.block(stmt.body)


@dataclass(slots=True)
class _BlockMaker(LoopMaker):
    """The maker of a kernel in which the threads of one block share each statement."""

    limits: Limits = LIMITS

    def outermost(self, stmt: nodes.Loop) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for the body of the outermost loop, as one block runs them."""
        return self.block(stmt.body)

    def condition(self, cond: nodes.Expr) -> tuple[tuple[k.Stmt, ...], k.Expr]:
        """Return the statements that compute a condition, and its value in a local variable: all threads read
        the value before any thread goes on."""
        head, value = LoopMaker.condition(self, cond)
        if isinstance(value, k.Lit | k.Local):
            return head, value
        local = k.Local(self.names("v"), value.dtype)
        return (*head, k.Let(local.name, value)), local

    def loop_nest(self, nest: LoopNest) -> tuple[k.Stmt, ...]:
        """Return the kernel statements in which the threads of the block share a statement's loops."""
        self.weigh(nest)
        return along_row(nest, self.limits)

    def rows(self, body: Sequence[nodes.Part], axes: int) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for statements that could run row by row: here one after the other."""
        return self.block(body)
