"""Batching of vector-matrix products in loops: the products of a block of iterations become one matrix
product.

``for i: t = x[:, i] @ y[:, i:]`` reads ``y`` in each iteration.  The vectors of a block of iterations form a
matrix, and one library call computes all their products; what each iteration does with its product stays in a
loop. Where the extents differ between iterations, a block computes a little more than is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, writes
from dcarray.ir.analysis.independence import privatisable
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import (
    Apply,
    Array,
    Call,
    Compute,
    Dim,
    Index,
    Load,
    Loop,
    Part,
    Region,
    Stmt,
    Window,
)
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of, is_zero
from dcarray.ir.passes.nested import each_loop, without_unused
from dcarray.ir.records import record
from dcarray.ir.renaming import map_statement, unused_names

#: Iterations in a block.
BLOCK = 64
#: Matrices with fewer iterations, rows or columns are too small.
MIN_EXTENT = 32
#: A loop with fewer products in all takes less time than library calls.
MIN_WORK = 1 << 22
_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class _Product:
    """``target[k] = sum over j of vector[j] * matrix[j, k]`` in each iteration."""

    stmt: Compute
    vector: Window
    matrix: Window
    summed: int  # the domain's axes
    kept: int
    pace: int  # step of the matrix's window per iteration
    grows: int  # growth of the kept extent per iteration


# ---- legality -----------------------------------------------------------------------------------------
def products(loop: Loop, region: Region) -> list[_Product] | Reason:
    """Return a loop's vector-matrix products that can be batched over a block of iterations, or why there are
    none."""
    start, stop, step = loop.bounds
    if not (type(start) is type(stop) is type(step) is int and step == 1):
        return Reason("its iterations are not numbers one after the other")
    if stop - start < MIN_EXTENT:
        return Reason("it has few iterations")
    if not all(isinstance(stmt, Part) for stmt in loop.body):
        return Reason("it holds more than computations")
    with dims.ranging(loop.var, loop.bounds):
        private = privatisable(loop.body, region)
        root = families(region)
        changed = {root[window.array] for stmt in loop.body for window in writes(stmt)}
        found = []
        for stmt in loop.body:
            product = _product(stmt, loop) if isinstance(stmt, Compute) else None
            if product is None or changed & {root[product.vector.array], root[product.matrix.array]}:
                continue
            name = product.stmt.target.array
            if name not in private:
                continue
            if sum(name == window.array for other in loop.body for window in writes(other)) > 1:
                continue
            if _worth(product, loop, region):
                found.append(product)
    return found or Reason("no iteration has a large product of its own")


def _product(stmt: Compute, loop: Loop) -> _Product | None:
    """Return the vector-matrix product that a statement computes; None if it computes something else."""
    body, init = stmt.body, stmt.init
    if stmt.combine != "add" or len(stmt.target.shape) != 2 or dtype_of(body).char not in _DTYPES:
        return None
    if init is None or not is_zero(init) or not (isinstance(body, Apply) and body.op == "multiply"):
        return None
    if len(stmt.target.index) != 1 or stmt.target.index[0] not in (Index(0, 1, 0), Index(0, 1, 1)):
        return None
    kept = stmt.target.index[0].axis
    assert kept is not None
    for a, b in (body.args, body.args[::-1]):
        if not (isinstance(a, Load) and isinstance(b, Load)):
            return None
        if windows.moving_axes(a.window) == (1 - kept,) and sorted(windows.moving_axes(b.window)) == [0, 1]:
            return _batchable(stmt, a.window, b.window, kept, loop.var)
    return None


def _batchable(stmt: Compute, vector: Window, matrix: Window, kept: int, var: str) -> _Product | None:
    """Return the product if its windows move linearly with the iterations, so that the vectors of a block of
    iterations form a matrix; else None."""
    moves = 0
    for ix in vector.index:
        pace = dims.slope(ix.offset, var)
        if type(ix.stride) is not int or type(pace) is not int or (pace and ix.axis is not None):
            return None
        moves += pace != 0
    along = 0
    for ix in matrix.index:
        pace = dims.slope(ix.offset, var)
        if type(ix.stride) is not int or type(pace) is not int or (pace and ix.axis != kept):
            return None
        if pace:
            if pace % ix.stride or pace // ix.stride < 0:
                return None
            along = pace // ix.stride
    grows = dims.slope(stmt.target.shape[kept], var)
    summed = stmt.target.shape[1 - kept]
    if moves != 1 or type(grows) is not int or along + grows < 0 or var in dims.free_symbols(summed):
        return None
    if dims.free_symbols(stmt.target.shape[kept]) - {var}:
        return None  # the size of a block's products is unknown
    return _Product(stmt, vector, matrix, 1 - kept, kept, along, grows)


def _worth(product: _Product, loop: Loop, region: Region) -> bool:
    """Whether the products of a loop are large enough for library calls."""
    hints, shape = SizeHints(region), product.stmt.target.shape
    iterations = loop.bounds[1] - loop.bounds[0]
    middle = dims.substitute(shape[product.kept], {loop.var: loop.bounds[0] + iterations // 2})
    summed, kept = hints(shape[product.summed]), hints(middle)
    return min(summed, kept) >= MIN_EXTENT and iterations * summed * kept >= MIN_WORK


# ---- action -------------------------------------------------------------------------------------------
def batch(loop: Loop, found: Sequence[_Product], region: Region) -> tuple[tuple[Stmt, ...], list[Array]]:
    """Return the statements that replace a loop, and new arrays for the products of a block of iterations."""
    start, stop, _ = loop.bounds
    taken = {array.name for array in region.arrays}
    arrays = []
    for product in found:
        name = product.stmt.target.array
        name = next(unused_names(f"{name}_", taken))
        taken.add(name)
        extents = [_columns(product, loop.var, at, min(BLOCK, stop - at)) for at in range(start, stop, BLOCK)]
        dtype = dtype_of(product.stmt.body)
        arrays.append(Array(name, dtype, (min(BLOCK, stop - start), max(extents))))
    whole = start + (stop - start) // BLOCK * BLOCK
    made: list[Stmt] = []
    if whole > start:
        var = f"{loop.var}_block"
        body = _block(loop, found, arrays, dims.symbol(var, None), BLOCK)
        made.append(Loop(var, (start, whole, BLOCK), body, loc=loop.loc))
    if whole < stop:
        made += _block(loop, found, arrays, whole, stop - whole)
    return tuple(made), arrays


def _columns(product: _Product, var: str, at: Dim, iterations: int) -> Dim:
    """Return the number of columns of a block's product."""
    first = dims.substitute(product.stmt.target.shape[product.kept], {var: at})
    return dims.simplify(first + (product.pace + product.grows) * (iterations - 1))


def _block(
    loop: Loop, found: Sequence[_Product], arrays: Sequence[Array], at: Dim, iterations: int
) -> tuple[Stmt, ...]:
    """Return the iterations from ``at`` on: their products, and a loop with the rest."""
    made: list[Stmt] = []
    places: dict[str, tuple[_Product, Array]] = {}
    for product, array in zip(found, arrays, strict=True):
        columns = _columns(product, loop.var, at, iterations)
        summed = product.stmt.target.shape[product.summed]
        here = {loop.var: at}

        def first(ix: Index, here: dict[str, Dim] = here) -> Dim:
            return dims.substitute(ix.offset, here)

        left = []
        for ix in product.vector.index:
            pace = dims.slope(ix.offset, loop.var)
            axis = 1 if ix.axis is not None else 0 if pace else None
            left.append(Index(first(ix), pace if axis == 0 else ix.stride, axis))
        place = {product.summed: 0, product.kept: 1, None: None}
        right = tuple(Index(first(ix), ix.stride, place[ix.axis]) for ix in product.matrix.index)
        reads = (
            Window(product.vector.array, (iterations, summed), tuple(left)),
            Window(product.matrix.array, (summed, columns), right),
        )
        target = Window(array.name, (iterations, columns), (Index(0, 1, 0), Index(0, 1, 1)))
        made.append(Call("blas.matmul", reads, (target,), loc=product.stmt.loc))
        places[product.stmt.target.array] = product, array
    iteration = dims.simplify(dims.symbol(loop.var, None) - at)
    mine = {id(product.stmt) for product in found}

    def row(load: Any) -> Any:
        if not isinstance(load, Load) or load.window.array not in places:
            return load
        product, array = places[load.window.array]
        (ix,) = load.window.index
        ahead = replace(ix, offset=dims.simplify(ix.offset + product.pace * iteration))
        return Load(Window(array.name, load.window.shape, (Index(iteration), ahead)), load.dtype)

    rest = [
        map_statement(stmt, lambda window: window, lambda expr: windows.map_loads(expr, row))
        for stmt in loop.body
        if id(stmt) not in mine
    ]
    return (*made, Loop(loop.var, (at, dims.simplify(at + iterations), 1), tuple(rest), loc=loop.loc))


def _run(region: Region, log: Log) -> Region:
    def replaced(loop: Loop, region: Region, position: int) -> tuple[tuple[Stmt, ...], list[Array]] | None:
        name, found = f"the loop over {loop.var}", products(loop, region)
        if isinstance(found, Reason):
            log.refused("batched_matvec", f"{name} has no matrix products: {found.text}", loop.loc)
            return None
        log.done("batched_matvec", f"{BLOCK} iterations of {name} are matrix products", loop.loc)
        return batch(loop, found, region)

    made = each_loop(region, replaced)
    return region if made is region else without_unused(made)


BATCHED_MATVEC = Pass("batched_matvec", _run)
