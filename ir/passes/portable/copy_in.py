"""Copy-in: an in-place update reads thin copies of rows and columns that it overwrites, so that it fuses.

``a[:] = minimum(a, add.outer(a[:, k], a[k]))`` reads one column and one row of ``a`` at other points than it
writes.  An expression cannot be fused into a statement that writes the array it reads elsewhere.  Where all
those reads are thin, copies take their place, and the expression needs no temporary.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Array, Compute, Dim, Expr, Gather, Index, Load, Region, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import loads_of
from dcarray.ir.passes.flow import Block, Facts
from dcarray.ir.passes.match import containing_map, unused_axes
from dcarray.ir.renaming import unused_names

from .fuse import Fusion, plan

#: Domains with fewer points are not worth more kernels.
MIN_POINTS = 1 << 14
#: The statement has at least so many points for one of a copy.
PART = 16
#: More copies cost more than a pass over memory.
MAX_COPIES = 4


def conflicting_loads(block: Block, pos: int, consumer: Compute) -> tuple[Load, ...] | Reason:
    """Return the loads of the statement at ``pos`` whose elements its consumer overwrites, or why copies of
    them do not help."""
    producer = block.stmts[pos]
    assert isinstance(producer, Compute)
    overwritten: list[Load] = []
    reads = [node.window for node in loads_of(consumer.body) if node.window.array == producer.target.array]
    for node in loads_of(producer.body):
        if block.facts.roots[node.window.array] != block.facts.roots[consumer.target.array]:
            continue
        if isinstance(node, Gather):
            return Reason(f"{node.window.array} is read at places that depend on values", (node.window,))
        for read in reads:
            amap = containing_map(producer.target, read)
            if amap is None:
                return Reason(f"{read.array} is read where it may not have been written", (read,))
            moved = windows.compose(node.window, amap, read.shape)
            if block.facts.overlap(consumer.target, moved) is not False and not windows.same(
                consumer.target, moved
            ):
                overwritten.append(node)
                break
    return tuple(overwritten)


def worth_copies(producer: Compute, copied: tuple[Load, ...], hints: SizeHints) -> Reason | None:
    """Return why storing the producer's values is cheaper than copies of the loads ``copied``; else None."""
    points = hints.product(producer.target.shape)
    if points < MIN_POINTS:
        return Reason(f"{points} points are too few for more kernels")
    if len(copied) > MAX_COPIES:
        return Reason(f"{len(copied)} copies are too many")
    if sum(hints.product(_thin(node.window)) for node in copied) * PART > points:
        return Reason("too much would be copied")
    return None


def _axes(window: Window) -> list[int]:
    """Return the domain axes along which a window moves."""
    still = unused_axes(window)
    return [axis for axis in range(len(window.shape)) if axis not in still]


def _thin(window: Window) -> tuple[Dim, ...]:
    """Return the extents along which a window moves."""
    return tuple(window.shape[axis] for axis in _axes(window))


# ---- action -------------------------------------------------------------------------------------------
def with_copies(
    producer: Compute, copied: tuple[Load, ...], names: list[str]
) -> tuple[list[Array], list[Compute], Compute]:
    """Return the arrays of the copies, the statements that make them, and the consumer that reads them."""
    arrays: list[Array] = []
    copies: list[Compute] = []
    instead: dict[Expr, Load] = {}
    for name, node in zip(names, copied, strict=True):
        axes = _axes(node.window)
        shape = _thin(node.window)
        place = {axis: k for k, axis in enumerate(axes)}
        index = tuple(
            Index(ix.offset, ix.stride, place[ix.axis]) if ix.axis in place else Index(ix.offset)
            for ix in node.window.index
        )
        whole = tuple(Index(0, 1, k) for k in range(len(axes)))
        source = Load(Window(node.window.array, shape, index), node.dtype)
        arrays.append(Array(name, node.dtype, shape))
        copies.append(Compute(Window(name, shape, whole), source, loc=producer.loc))
        seen = Window(name, node.window.shape, tuple(Index(0, 1, axis) for axis in axes))
        instead[node] = Load(seen, node.dtype)
    body = windows.map_loads(producer.body, lambda node: instead.get(node, node))
    return arrays, copies, replace(producer, body=body)


def _candidate(block: Block, pos: int) -> tuple[Compute, Compute] | None:
    """Return the statement at ``pos`` and its only reader, if both are plain computations."""
    producer = block.stmts[pos]
    if not isinstance(producer, Compute) or producer.combine is not None:
        return None
    if block.facts.roots[producer.target.array] in block.facts.kept:
        return None
    uses, reason = block.uses(pos, producer.target)
    places = {use.pos for use in uses}
    if reason is not None or len(places) != 1:
        return None
    consumer = block.stmts[places.pop()]
    if not isinstance(consumer, Compute) or consumer.combine is not None:
        return None
    return producer, consumer


def _attempt(region: Region, block: Block, pos: int, hints: SizeHints, log: Log) -> Region | None:
    """Return the region with copies before the statement at ``pos``, which is then inlined into its
    consumer."""
    pair = _candidate(block, pos)
    if pair is None:
        return None
    producer, consumer = pair
    copied = conflicting_loads(block, pos, consumer)
    if not copied:
        return None
    reason = copied if isinstance(copied, Reason) else worth_copies(producer, copied, hints)
    if reason is None and not isinstance(copied, Reason):
        names = unused_names("s", {array.name for array in region.arrays})
        arrays, copies, reader = with_copies(producer, copied, list(islice(names, len(copied))))
        body = (*region.body[:pos], *copies, reader, *region.body[pos + 1 :])
        new = replace(region, arrays=(*region.arrays, *arrays), body=body)
        moved = Block(body, Facts(new))
        fusion = plan(moved, pos + len(copies), False)
        if isinstance(fusion, Fusion):
            for q, stmt in fusion.consumers:
                moved.replace(q, stmt)
            moved.replace(fusion.pos, None)
            held = ", ".join(dict.fromkeys(node.window.array for node in copied))
            log.done("copy_in", f"what is read of {held} elsewhere is copied first", producer.loc)
            return replace(new, body=moved.body())
        reason = fusion
    if reason is not None:
        log.refused("copy_in", f"{producer.target.array} is stored: {reason.text}", producer.loc)
    return None


def _run(region: Region, log: Log) -> Region:
    if len(region.body) < 2:
        return region
    hints = SizeHints(region)
    pos = 0
    block = Block(region.body, Facts(region))
    while pos < len(region.body):
        new = _attempt(region, block, pos, hints, log)
        if new is None:
            pos += 1
        else:
            region, block = new, Block(new.body, Facts(new))
    return region


COPY_IN = Pass("copy_in", _run)
