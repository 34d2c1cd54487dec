"""The nodes of the region IR: an ordered list of statements over named, mutable arrays.

A statement names the exact window of every array that it reads and writes; dependences follow from
windows and are never stored.  Expressions are interned: equal expressions are one object, so that
``is`` compares them, hashing is constant-time and shared sub-expressions stay shared.
"""

from __future__ import annotations

import weakref
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from dcarray.ir.records import record

from .memo import Node

Dim = Any  # int | integers.Expression: arithmetic on either gives either
Role = Literal["in", "out", "inout", "temp"]


# ---- data -----------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Array(Node):
    """A data container.  ``strides`` are in elements (None: C order).  An array with a ``base`` is
    another geometry (shape, strides or dtype) of the memory of that array."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...]
    role: Role = "temp"
    strides: tuple[Dim, ...] | None = None
    place: str = "host"
    layout: Any = None
    base: str | None = None


@record(frozen=True, slots=True)
class Index:
    """``offset + stride * i[axis]``: where the iteration point ``i`` lies along one array axis."""

    offset: Dim
    stride: Dim = 0
    axis: int | None = None


@record(frozen=True, slots=True)
class Window(Node):
    """An affine view of ``array``: one ``Index`` per array axis over the iteration domain ``shape``.
    A domain axis that no index uses is a broadcast when read and a reduction when written."""

    array: str
    shape: tuple[Dim, ...]
    index: tuple[Index, ...]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.array, self.shape, self.index)))
            return self._hash


# ---- scalar expressions, interned ------------------------------------------------------------------
class _Interned(type):
    """Metaclass: constructing an equal expression gives back the same object."""

    _table: ClassVar[weakref.WeakValueDictionary[tuple[Any, ...], Expr]] = weakref.WeakValueDictionary()

    def __call__(cls, *args: Any) -> Any:
        key = (cls, *args)
        node = _Interned._table.get(key)
        if node is None:
            node = super().__call__(*args)
            _Interned._table[key] = node
        return node


@record(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expr(Node, metaclass=_Interned):
    """A scalar value at one point of the iteration domain.  Arguments are positional only."""

    if TYPE_CHECKING:

        @property
        def dtype(self) -> np.dtype[Any]: ...


@record(frozen=True, slots=True, eq=False)
class Load(Expr):
    """The element of an array that an affine window gives for the iteration point."""

    window: Window
    dtype: np.dtype[Any]


@record(frozen=True, slots=True, eq=False)
class Gather(Expr):
    """The element of ``window.array`` at a data-dependent position: ``index`` has one integer expression per
    array axis, not negative and in bounds.  ``window.shape`` is the domain; ``window.index`` is not used."""

    window: Window
    index: tuple[Expr, ...]
    dtype: np.dtype[Any]


@record(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A constant by its bytes, so that 0.0 and -0.0, or two NaNs, stay apart.  See ``ops.const``."""

    bits: bytes
    dtype: np.dtype[Any]


@record(frozen=True, slots=True, eq=False)
class Size(Expr):
    """A dimension, or an affine function of sizes and loop variables, as a value."""

    dim: Dim
    dtype: np.dtype[Any]


@record(frozen=True, slots=True, eq=False)
class Iota(Expr):
    """The coordinate of the iteration point along one domain axis."""

    axis: int
    dtype: np.dtype[Any]


@record(frozen=True, slots=True, eq=False)
class Apply(Expr):
    """An operation of ``ops.OPS``; ``args`` already have the dtypes of one of its loops, casts are
    explicit (``op='cast'``), and ``dtype`` is the result's."""

    op: str
    args: tuple[Expr, ...]
    dtype: np.dtype[Any]


# ---- statements ------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Compute(Node):
    """``target[i] = body(i)`` for every ``i`` of the domain ``target.shape``.  With ``combine``, the
    values of the domain axes that the target omits are folded into each element, which starts from
    ``init`` or, if that is None, from what the target holds.  With ``scan``, an axis of the domain, the
    target omits none, and each element is ``init`` with the values up to its own folded in, in order."""

    target: Window
    body: Expr
    combine: str | None = None
    init: Expr | None = None
    loc: Any = field(default=None, compare=False)
    scan: int | None = None

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The body, and ``init`` if there is one."""
        return (self.body,) if self.init is None else (self.body, self.init)


@record(frozen=True, slots=True)
class Call(Node):
    """A library call, a communication or an opaque function: an entry of ``ops.CALLS``."""

    op: str
    reads: tuple[Window, ...]
    writes: tuple[Window, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Nest(Node):
    """Loop fusion to the innermost loop: statements over one domain run as one loop nest, point by point, in
    order. The results are those of running them one after the other; the pass ``siblings`` decides when."""

    body: tuple[Compute, ...]
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Rows(Node):
    """Fused loops: the outer ``axes`` loops are common to all statements, which run in order for each row.

    A row is a point of these loops.  The results are those of running the statements one after the other,
    since each row depends on itself only, and results of reductions over rows are not used inside.  The pass
    ``row_fusion`` decides when.
    """

    body: tuple[Compute | Nest, ...]
    axes: int
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class TimeTiles(Node):
    """Time tiling: statements whose first axes are the same rows run band by band instead of one after the
    other, so that a band is still in the cache when the next statement needs it.

    Rows are cut into tiles of ``tile`` rows, each of them into bands of ``height``.  In every band all
    statements run, each some rows behind those before it; first in all tiles at once, without the rows at
    the sides that need another tile's, and then in what remains between the tiles.  The results are those of
    running them one after the other; ``analysis.skew`` has the distances, the pass ``time_tiling`` decides
    when."""

    body: tuple[Compute | Nest, ...]
    height: int
    tile: int
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Loop(Node):
    """``for var in range(start, stop, step)``; ``var`` may appear in windows and bounds of the body.

    ``parallel``: no dependence is carried by the loop (``analysis.independence``), so that iterations may run
    in any order and at the same time.  Temporaries that are written in every iteration before they are read,
    and used in the loop only, are private to iterations: a target that runs these at the same time gives each
    memory."""

    var: str
    bounds: tuple[Dim, Dim, Dim]
    body: tuple[Stmt, ...]
    parallel: bool = False
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class While(Node):
    """``while cond:`` the body runs in order; ``cond`` is read before each iteration."""

    cond: Expr
    body: tuple[Stmt, ...]
    loc: Any = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Branch(Node):
    """``if cond: then else: orelse``; ``cond`` is a scalar."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    loc: Any = field(default=None, compare=False)


Stmt = Compute | Call | Nest | Rows | TimeTiles | Loop | While | Branch
#: A statement over one domain.
Part = Compute | Nest
#: Statements that run together.
Group = Nest | Rows | TimeTiles


@record(frozen=True, slots=True)
class Symbol:
    """A size known only at run time: at least ``minimum``; ``hint`` is a value it once had."""

    name: str
    minimum: int = 0
    hint: int | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Region(Node):
    """The unit of compilation.  ``guards`` are the relations over the symbols that hold whenever
    the region runs, because the caller checks them.

    ``functions`` are regions by name, which calls of this region run ("function.call"), and calls of
    functions: one may call itself.  Arrays without axes are numbers, and each call of a function has its own;
    those with axes and the role "in" or "inout" are arrays of who calls it.  Functions have the symbols and
    guards of the region, which they do not repeat."""

    symbols: tuple[Symbol, ...]
    arrays: tuple[Array, ...]
    body: tuple[Stmt, ...]
    guards: tuple[Any, ...] = ()
    functions: tuple[tuple[str, Region], ...] = ()
