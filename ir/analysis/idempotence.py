"""Idempotence: the arrays that a repeated run may overwrite without undo copies.

Statements are idempotent in an array if they overwrite no element of it whose initial value they have read:
then a repeated run reads the same values, or overwrites them first.  (De Kruijf, Sankaralingam and Singh,
"Static analysis and compiler design for idempotent processing", PLDI 2012: no "clobber" antidependences.)
"""

from __future__ import annotations

from dcarray.ir import dims
from dcarray.ir.nodes import Branch, Call, Loop, Region, Stmt, While, Window
from dcarray.ir.ops import may_fail
from dcarray.ir.statements import all_statements, flatten
from dcarray.ir.windows import covers, identity, overlap

from .effects import definite_writes, sharing, touched_arrays, writes
from .independence import accesses, iteration_pair, upward_exposed_reads, window_at

INFALLIBLE = frozenset({"blas.matmul"})
"""Library calls that end a run for want of memory only."""


def idempotent_arrays(region: Region) -> frozenset[str]:
    """Return the written ``inout`` arrays in which the region is idempotent; no array at all if the region
    has a library call that may fail."""
    if any(
        isinstance(stmt, Call) and stmt.op not in INFALLIBLE and may_fail(stmt.op)
        for stmt in all_statements(region.body)
    ):
        return frozenset()
    shared = sharing(region)
    return frozenset(
        array.name
        for array in region.arrays
        if array.role == "inout" and array.name not in shared and not _clobbers(region.body, identity(array))
    )


def _clobbers(body: tuple[Stmt, ...], whole: Window, before: tuple[Window, ...] = ()) -> bool:
    """Return whether the statements may overwrite elements of the array ``whole`` whose initial values they
    have read; the windows ``before`` are already overwritten."""
    cover = list(before)
    old: list[Window] = []  # reads of initial elements
    for stmt in flatten(body):
        written = [w for w in writes(stmt) if w.array == whole.array]
        seen = _not_covered(upward_exposed_reads((stmt,), whole), cover)
        if isinstance(stmt, While | Branch):
            if written:  # which the other run might leave out, where a sum differs in its last bit
                return True
        elif isinstance(stmt, Loop):
            with dims.ranging(stmt.var, stmt.bounds):
                if written and (_clobbers(stmt.body, whole, tuple(cover)) or _carries(stmt, whole, cover)):
                    return True
        elif _meet(seen, written):
            return True
        if _meet(old, written):
            return True
        old += seen
        cover += [w for w in definite_writes(stmt) if w.array == whole.array]
    return False


def _not_covered(windows: list[Window], cover: list[Window]) -> list[Window]:
    return [w for w in windows if not any(covers(v, w) is True for v in cover)]


def _meet(some: list[Window], others: list[Window]) -> bool:
    return any(overlap(v, w) is not False for v in some for w in others)


def _carries(loop: Loop, whole: Window, cover: list[Window]) -> bool:
    """Return whether an iteration may overwrite elements of ``whole`` whose initial values an earlier
    iteration has read; elements in ``cover`` are already overwritten."""
    pair = iteration_pair(loop)
    if pair is None:
        return True
    iteration, after, known = pair
    first = [
        window_at(w, {loop.var: iteration})
        for w in _not_covered(upward_exposed_reads(loop.body, whole), cover)
    ]
    root = {name: name for stmt in loop.body for name in touched_arrays(stmt)}
    for access in accesses(loop.body, {loop.var: after}, "_b", {}, {whole.array}, root):
        if access.writing:
            with dims.between({**known, **dict(access.ranges)}):
                if _meet(first, [access.window]):
                    return True
    return False
