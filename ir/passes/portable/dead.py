"""Dead code elimination: statements and arrays whose values are neither read nor a result are removed."""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir.analysis.effects import Reason, touched_arrays
from dcarray.ir.nodes import Call, Nest, Part, Region
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import has_checks
from dcarray.ir.passes.flow import Block, each_block, reads_of
from dcarray.ir.statements import bodies

#: Calls of these families do nothing but fill their outputs.
PURE = frozenset({"blas", "lapack", "linalg", "fft", "scan", "sort"})


def can_remove(block: Block, pos: int) -> Reason | None:
    """Return why the statement at ``pos`` must stay; None if it is dead."""
    stmt = block.stmts[pos]
    if stmt is None or bodies(stmt):
        return Reason("control flow is kept")
    if isinstance(stmt, Call) and (not stmt.writes or stmt.op.partition(".")[0] not in PURE):
        return Reason(f"{stmt.op} may have other effects")
    for window in block.writes[pos]:
        uses, reason = block.uses(pos, window)
        if reason is not None:
            return reason
        if uses:
            return Reason(f"{window.array} is read later", (window, uses[0].window))
    if isinstance(stmt, Part) and has_checks(stmt):
        return Reason("it checks its values")
    return None


def _sweep(block: Block, log: Log) -> bool:
    changed = False
    for pos in reversed(range(len(block.stmts))):
        stmt = block.stmts[pos]
        if stmt is None:
            continue
        if can_remove(block, pos) is None:
            names = ", ".join(window.array for window in block.writes[pos])
            log.done("dead", f"{names} is never read: its statement is gone", getattr(stmt, "loc", None))
            block.replace(pos, None)
            changed = True
        elif isinstance(stmt, Nest):
            changed |= _thin(block, pos, stmt, log)
    return changed


def _thin(block: Block, pos: int, nest: Nest, log: Log) -> bool:
    """Remove the statements of a nest whose results no statement of the nest or after it reads."""
    parts = list(nest.body)
    for k in reversed(range(len(parts))):
        target = parts[k].target
        if any(block.facts.overlap(target, w) is not False for p in parts[k:] for w, _ in reads_of(p)):
            continue
        uses, reason = block.uses(pos, target)
        if reason is None and not uses and not has_checks(parts[k]):
            log.done("dead", f"{target.array} is never read: its statement is gone", parts[k].loc)
            del parts[k]
    if len(parts) == len(nest.body):
        return False
    block.replace(pos, parts[0] if len(parts) == 1 else replace(nest, body=tuple(parts)))
    return True


def _unused(region: Region) -> set[str]:
    """Return the temporaries that no statement names, also not by another shape of their memory."""
    used = set[str]().union(*map(touched_arrays, region.body))
    named = {array.name: array for array in region.arrays}
    for name in list(used):
        while (base := named[name].base) is not None:
            used.add(base)
            name = base
    return {array.name for array in region.arrays if array.role == "temp" and array.name not in used}


def _run(region: Region, log: Log) -> Region:
    region = each_block(region, lambda block: _sweep(block, log))
    gone = _unused(region)
    if not gone:
        return region
    return replace(region, arrays=tuple(array for array in region.arrays if array.name not in gone))


DEAD = Pass("dead", _run)
