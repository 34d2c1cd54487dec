"""Matrix-vector products as sums, where that lets them share one pass over the matrix.

Such a product is bound by reading the matrix.  Where another statement reads or makes the same matrix, the
product is expanded into a sum, which other passes can fuse with that; and so are products of one vector with
several large matrices of one shape, which a kernel reads side by side.  Other products are left to the
library.
"""

from __future__ import annotations

from collections import Counter

from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.matrix_products import as_sum, as_terms
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Call, Dim, Part, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, Facts, each_block, reads_of, writes_of
from dcarray.ir.windows import moving_axes

#: Smaller matrices, in elements, stay in a cache, where the library is faster.
MIN_ELEMENTS = 1 << 16
#: Shorter rows or columns are not worth a loop of their own.
MIN_EXTENT = 8
#: The fewest elements, and rows and columns, of matrices that are read side by side.
MIN_BESIDE, MIN_LONG = 1 << 22, 256
_DTYPES = "fd"
#: The most terms of a product that is written out, and the shortest rows and fewest elements of its result.
MAX_TERMS = 4
MIN_ROW = 64
MIN_RESULT = 1 << 14


def matrix_of(stmt: Stmt | None) -> Window | None:
    """Return the matrix of a library call that multiplies a matrix and a vector; None for other
    statements."""
    if not isinstance(stmt, Call) or stmt.op != "blas.matmul":
        return None
    a, b = stmt.reads
    return None if len(a.shape) + len(b.shape) != 3 else a if len(a.shape) == 2 else b


# ---- legality -----------------------------------------------------------------------------------------
def can_take_apart(call: Call, matrix: Window, facts: Facts, hints: SizeHints) -> Reason | None:
    """Return why the product of a matrix and a vector must, or should, stay with the library."""
    (target,) = call.writes
    dtypes = {facts.arrays[window.array].dtype for window in (target, *call.reads)}
    if len(dtypes) > 1 or any(dtype.char not in _DTYPES for dtype in dtypes):
        return Reason("kernels do not multiply its dtypes as the library does", (target,))
    if hints.product(matrix.shape) < MIN_ELEMENTS or min(map(hints, matrix.shape)) < MIN_EXTENT:
        return Reason(f"{matrix.array} is small", (matrix,))
    return None


def terms_of(stmt: Stmt | None, facts: Facts, hints: SizeHints) -> int:
    """Return the number of terms if a library product is to be written out as a sum; else 0."""
    if not isinstance(stmt, Call) or stmt.op != "blas.matmul" or stmt.attrs:
        return 0
    (target,), (a, b) = stmt.writes, stmt.reads
    depth = a.shape[-1]
    if len(a.shape) < 2 or len(b.shape) < 2 or type(depth) is not int or not 0 < depth <= MAX_TERMS:
        return 0
    dtypes = {facts.arrays[window.array].dtype for window in (target, a, b)}
    if len(dtypes) > 1 or any(dtype.char not in "fdFD" for dtype in dtypes):
        return 0
    large = hints.product(target.shape) >= MIN_RESULT and hints(target.shape[-1]) >= MIN_ROW
    return depth if large else 0


def _reads(stmt: Stmt | None, matrix: Window) -> bool:
    """Whether a statement reads the same matrix element by element."""
    if isinstance(stmt, Part):
        used = [*writes_of(stmt), *(window for window, _ in reads_of(stmt))]
    else:
        other = matrix_of(stmt)
        used = [] if other is None else [other]
    return any(w.array == matrix.array and len(moving_axes(w)) == 2 for w in used)


def _reduces_along_rows(matrix: Window, first: bool, facts: Facts, hints: SizeHints) -> bool:
    """Whether the reduced axis is the one along which the matrix's rows follow each other in memory."""
    strides = facts.arrays[matrix.array].strides
    steps = [0] * 2
    for place, ix in enumerate(matrix.index):
        if ix.axis is not None:
            own = len(matrix.index) - place if strides is None else abs(hints(strides[place]))
            steps[ix.axis] += own
    rows = 0 if steps[0] >= steps[1] else 1
    return rows != (0 if first else 1)


def _pass_of(
    stmt: Stmt | None, facts: Facts, hints: SizeHints
) -> tuple[Window, bool, bool, tuple[Dim, ...]] | None:
    """Return a key that is equal for products whose matrices one kernel can read side by side; None if the
    statement is no such product, or if its matrix is too small."""
    matrix = matrix_of(stmt)
    if matrix is None or not isinstance(stmt, Call):
        return None
    if hints.product(matrix.shape) < MIN_BESIDE or min(map(hints, matrix.shape)) < MIN_LONG:
        return None
    first = matrix is stmt.reads[0]
    return stmt.reads[first], first, _reduces_along_rows(matrix, first, facts, hints), matrix.shape


# ---- action -------------------------------------------------------------------------------------------
def _visit(block: Block, log: Log, hints: SizeHints) -> bool:
    changed = False
    passes = [_pass_of(stmt, block.facts, hints) for stmt in block.stmts]
    beside = Counter(passes)
    for pos, stmt in enumerate(block.stmts):
        depth = terms_of(stmt, block.facts, hints)
        if depth and isinstance(stmt, Call):
            name = stmt.writes[0].array
            block.replace(pos, as_terms(stmt, block.facts.arrays[name].dtype, depth))
            log.done("shared_matvec", f"{name} is written out, term by term", stmt.loc)
            changed = True
            continue
        matrix = matrix_of(stmt)
        if matrix is None or not isinstance(stmt, Call):
            continue
        along = passes[pos]
        several = along is not None and beside[along] > 1
        others = (other for k, other in enumerate(block.stmts) if k != pos)
        if not several and not any(_reads(other, matrix) for other in others):
            continue
        name = stmt.writes[0].array
        reason = can_take_apart(stmt, matrix, block.facts, hints)
        if reason is not None:
            log.refused("shared_matvec", f"{name} is left to the library: {reason.text}", stmt.loc)
            continue
        summed_first = _reduces_along_rows(matrix, matrix is stmt.reads[0], block.facts, hints)
        block.replace(pos, as_sum(stmt, block.facts.arrays[name].dtype, summed_first))
        where = (
            f"beside others over as much as {matrix.array}"
            if several
            else f"where others go over {matrix.array}"
        )
        log.done("shared_matvec", f"{name} is summed {where}", stmt.loc)
        changed = True
    return changed


def _run(region: Region, log: Log) -> Region:
    hints = SizeHints(region)
    return each_block(region, lambda block: _visit(block, log, hints), lambda s: isinstance(s, Call))


SHARED_MATVEC = Pass("shared_matvec", _run)
