"""Array contraction: temporaries that live inside one nest become shared expressions without memory.

Each statement that reads such a temporary gets the expression instead.  All share one object, which a kernel
computes once per point, so that no work is repeated.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Compute, Expr, Gather, Load, Nest
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import has_checks, loads_of
from dcarray.ir.passes.flow import Block, block_pass, reads_of


def can_localise(block: Block, pos: int, nest: Nest, k: int) -> Reason | None:
    """Return why the result of statement ``k`` of the nest at ``pos`` must be stored; None if it need not
    be."""
    part, facts = nest.body[k], block.facts
    name = part.target.array
    if facts.arrays[name].role != "temp" or facts.roots[name] in facts.shared:
        return Reason(f"{name} is a result that must be stored", (part.target,))
    if part.combine is not None:
        return Reason(f"{name} is the result of a reduction", (part.target,))
    if not block.only_at(name, pos):
        return Reason(f"{name} is used by other statements", (part.target,))
    changed = False  # whether what the expression reads is not what it was
    for j, other in enumerate(nest.body):
        if j == k:
            continue
        if other.target.array == name:
            return Reason(f"{name} is written twice", (other.target,))
        for window, kind in reads_of(other):
            if window.array != name:
                continue
            if j < k or kind != "load" or not windows.same(window, part.target):
                return Reason(f"{name} is read at other points than it is written", (window,))
            if changed:
                return Reason(f"what {name} is made from changes before it is read", (window,))
        if j > k and any(
            facts.overlap(other.target, load.window) is not False for load in loads_of(part.body)
        ):
            changed = True
    if has_checks(part) and not any(w.array == name for other in nest.body for w, _ in reads_of(other)):
        return Reason(f"{name} is never read, but its values are checked", (part.target,))
    return None


def localise(nest: Nest, k: int) -> Nest | Compute:
    """Return the nest without its statement ``k``, whose expression replaces the loads of its result."""
    part = nest.body[k]

    def fn(node: Load | Gather) -> Expr:
        return part.body if node.window.array == part.target.array else node

    rest = [*nest.body[:k], *nest.body[k + 1 :]]
    new = tuple(replace(other, body=windows.map_loads(other.body, fn)) for other in rest)
    return new[0] if len(new) == 1 else replace(nest, body=new)


def _sweep(block: Block, log: Log) -> bool:
    changed = False
    for pos in range(len(block.stmts)):
        k = 0
        while isinstance(nest := block.stmts[pos], Nest) and k < len(nest.body):
            part = nest.body[k]
            if can_localise(block, pos, nest, k) is not None:
                k += 1
                continue
            block.replace(pos, localise(nest, k))
            log.done("locals", f"{part.target.array} lives inside one loop and needs no memory", part.loc)
            changed = True
    return changed


LOCALS = block_pass("locals", _sweep, lambda stmt: isinstance(stmt, Nest))
