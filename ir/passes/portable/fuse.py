"""Producer-consumer fusion by inlining, through any affine window.

A statement whose values are only read by computations is inlined into them: each load of what it wrote
becomes its expression, seen through the window of the load (shifted, transposed, strided, reversed or
broadcast).  The statement and its memory are gone then, so it is all consumers or none.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Compute, Expr, Gather, Index, Load, Window
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import cache_sizes, has_checks, loads_of, size_bound, summary
from dcarray.ir.passes.flow import Block, Use, block_pass
from dcarray.ir.passes.fusion_profit import EXPRESSION, Change, loss, repeated_work, work_along
from dcarray.ir.passes.match import containing_map, unused_axes
from dcarray.ir.records import record

from .contract import can_contract

#: The most refusals of a producer in one sweep: a bound on planning time.
_PATIENCE = 8


@record(frozen=True, slots=True)
class Fusion:
    """The consumers of the statement at ``pos``, each with its fused statement."""

    pos: int
    consumers: tuple[tuple[int, Compute], ...]


# ---- legality -----------------------------------------------------------------------------------------
def can_inline(block: Block, pos: int, use: Use) -> Reason | None:
    """Return why the expression of the statement at ``pos`` may not replace one load of its array."""
    producer, consumer = block.stmts[pos], block.stmts[use.pos]
    if not isinstance(producer, Compute):
        return Reason("only a computation can be put into its consumer")
    name = producer.target.array
    if producer.combine is not None:
        return Reason(f"{name} is the result of a reduction", (producer.target,))
    if not isinstance(consumer, Compute) or use.kind != "load":
        return Reason(f"{name} is read by more than a plain load of a computation", (use.window,))
    amap = containing_map(producer.target, use.window)
    if amap is None:
        return Reason(f"{name} is read where this statement may not have written it", (use.window,))
    if has_checks(producer) and not windows.same(producer.target, use.window):
        return Reason(f"{name} has checks, also where it is not read", (use.window,))  # as in an empty array
    for node in loads_of(producer.body):
        if block.facts.roots[node.window.array] not in block.written:
            continue
        moved = _move(node, amap, use.window)
        written = block.writer_between(pos, use.pos, moved)
        if written is not None:
            return Reason(f"{moved.array} changes before {name} is read", (moved, written))
        if block.facts.overlap(consumer.target, moved) is not False and (
            consumer.combine is not None or not windows.same(consumer.target, moved)
        ):
            return Reason(
                f"{moved.array} is written at other points than it is read for {name}",
                (consumer.target, moved),
            )
    return None


def _move(node: Load | Gather, amap: tuple[Index, ...], window: Window) -> Window:
    if isinstance(node, Gather):
        return Window(node.window.array, window.shape, ())
    return windows.compose(node.window, amap, window.shape)


# ---- profit -------------------------------------------------------------------------------------------
#: A fused array is neither written to memory nor read again.
_SAVED = 2


def _worthwhile(block: Block, producer: Compute, uses: list[Use]) -> Reason | None:
    """Return why the producer's values should be stored rather than inlined in ``uses``; else None."""
    if isinstance(producer.body, Load):
        return None
    name, price = producer.target.array, summary(producer.body)
    for use in uses:
        consumer = block.stmts[use.pos]
        assert isinstance(consumer, Compute)
        if can_contract(consumer, block.facts) is None:
            return Reason(f"{name} is an operand of a contraction", (use.window,))
        again = work_along(price, unused_axes(use.window), len(use.window.shape))
        if loss(Change(_SAVED, again)):
            return Reason(f"{name} would be computed again along a whole axis", (use.window,))
    if loss(Change(_SAVED, repeated_work(price, len(uses) - 1))):
        return Reason(f"{name} is expensive and is read through {len(uses)} windows")
    return None


def _too_large(
    producer: Compute, before: list[Compute], after: list[Compute], repeats: bool
) -> Reason | None:
    """Return why the fused expressions are too large, or repeat too much work."""
    name = producer.target.array
    extra = -summary(producer.body).weight if repeats else 0.0
    for old, new in zip(before, after, strict=True):
        most = EXPRESSION.nodes
        if size_bound(new.body) > most and (nodes := summary(new.body).nodes) > most:
            return Reason(f"the expression with {name} inside would have {nodes} nodes")
        places = sum(1 for load in loads_of(new.body) if load.window.index)
        if places > EXPRESSION.loads:
            return Reason(f"the expression with {name} inside would load from {places} places")
        if repeats:
            extra += summary(new.body).weight - summary(old.body).weight
    why = loss(Change(_SAVED, extra))
    return Reason(f"with {name} inside, {why}") if why else None


# ---- action -------------------------------------------------------------------------------------------
def inline(producer: Compute, consumer: Compute) -> Compute:
    """Return the consumer with each load of the producer's target replaced by the producer's expression."""
    inlined: dict[Expr, None] = {}
    count = 0

    def fn(node: Load | Gather) -> Expr:
        nonlocal count
        new: Expr = node
        if isinstance(node, Load) and node.window.array == producer.target.array:
            amap = containing_map(producer.target, node.window)
            if amap is not None:
                new = _seen_through(producer, amap, node.window)
                count += 1
        inlined[new] = None
        return new

    body = windows.map_loads(consumer.body, fn)
    leaves = dict.fromkeys(load for part in inlined for load in loads_of(part))
    cache_sizes(body, tuple(leaves), size_bound(consumer.body) + count * size_bound(producer.body))
    return replace(consumer, body=body)


def _seen_through(producer: Compute, amap: tuple[Index, ...], window: Window) -> Expr:
    domain = producer.target.shape
    if window.shape == domain and all(ix == Index(0, 1, k) for k, ix in enumerate(amap)):
        return producer.body
    return windows.remap(producer.body, amap, window.shape)


def plan(block: Block, pos: int, single: bool) -> Fusion | Reason | None:
    """Return how to fuse the statement at ``pos`` into all its consumers, or why not; None if it has none.

    With ``single``, it is fused only if it is read once, by a window with all axes of the reader's domain."""
    producer = block.stmts[pos]
    if not isinstance(producer, Compute) or producer.combine is not None:
        return None
    reads, reason = block.uses(pos, producer.target)
    if not reads:
        return None
    if reason is not None:
        return reason
    uses = list(dict.fromkeys(reads))
    free = isinstance(producer.body, Load) or not unused_axes(uses[0].window)
    if single and (len(uses) > 1 or not free):
        return None
    for use in uses:
        reason = can_inline(block, pos, use)
        if reason is not None:
            return reason
    reason = _worthwhile(block, producer, uses)
    if reason is not None:
        return reason
    places = list(dict.fromkeys(use.pos for use in uses))
    before = [stmt for stmt in (block.stmts[q] for q in places) if isinstance(stmt, Compute)]
    after = [inline(producer, stmt) for stmt in before]
    reason = _too_large(producer, before, after, len(uses) > 1 and not isinstance(producer.body, Load))
    if reason is not None:
        return reason
    return Fusion(pos, tuple(zip(places, after, strict=True)))


def _apply(block: Block, pos: int, single: bool, log: Log) -> Fusion | Reason | None:
    decision = plan(block, pos, single)
    if decision is None:
        return None
    producer = block.stmts[pos]
    assert isinstance(producer, Compute)
    if isinstance(decision, Reason):
        log.refused("fuse", decision.text, producer.loc)
        return decision
    for q, stmt in decision.consumers:
        block.replace(q, stmt)
    block.replace(pos, None)
    names = ", ".join(dict.fromkeys(stmt.target.array for _, stmt in decision.consumers))
    log.done("fuse", f"{producer.target.array} is computed where {names} needs it", producer.loc)
    return decision


def _producers(block: Block, pos: int) -> list[int]:
    """Return the positions of the last writers of the arrays that the statement at ``pos`` loads."""
    positions: dict[int, None] = {}
    arrays = block.facts.arrays
    for name in dict.fromkeys(window.array for window, kind in block.reads[pos] if kind == "load"):
        if arrays[name].role == "in":
            continue
        for q in reversed(block.before(name, pos)):
            if any(window.array == name for window in block.writes[q]):
                positions[q] = None
                break
    return sorted(positions, reverse=True)


def _sweep(block: Block, log: Log) -> bool:
    fused = 0
    tried: dict[int, int] = {}  # how much was fused when a producer was last tried
    refused: dict[int, int] = {}  # and when it was refused, not only for having several readers
    # First producers with one reader, from the first consumer on: each expression is then complete when its
    # own reader is reached, and the second sweep knows the cost of repeating it.
    refusals = [0] * len(block.stmts)
    for pos, stmt in enumerate(block.stmts):
        open_ = isinstance(stmt, Compute)
        while open_:
            open_ = False
            for q in _producers(block, pos):
                if refusals[q] >= _PATIENCE:
                    continue
                refusals[q] += 1
                if tried.get(q) == fused:
                    continue
                decision = _apply(block, q, True, log)
                if isinstance(decision, Fusion):
                    fused += 1
                    open_ = True
                    break
                tried[q] = fused
                if decision is not None:
                    refused[q] = fused
    for pos in reversed(range(len(block.stmts))):
        if refused.get(pos) != fused:
            fused += isinstance(_apply(block, pos, False, log), Fusion)
    return fused > 0


FUSE = block_pass("fuse", _sweep)
