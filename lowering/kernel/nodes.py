"""The kernel IR: loop nests over typed pointers and integers, from which every target emits code.

A kernel is a sequence of *phases*.  A phase is one parallel loop ``for var in [0, extent)``; a target
makes of it a function of ``(pointers, ints, lo, hi)`` that runs ``pre`` once and then ``body`` for
``var`` in ``[lo, hi)``.  The runtime may cut ``[0, extent)`` in any way and run the pieces at the same
time; all of one phase is finished before the next phase starts.  ``var`` iterates with ``kind``:
"serial" is a plain loop (its body holds inner loops), "vector" is itself the SIMD loop, and "blocks" is the
grid of a device: ``var`` is the number of a block, whose ``Threads`` run at the same time.

Sizes, strides and large offsets are integer arguments (int64, named ``n0``, ``n1``, ...), so the text
of a kernel (``text``) contains no sizes unless `specialise` puts them there, and is the structural
key of its compiled code.  All address arithmetic is in elements of the buffer's dtype and in int64.

Expressions are trees of bounded depth: a value that is used twice is bound by ``Let``.  Names of locals are
unique in a kernel; loops that are not nested may use the same variable.  Operations are
those of ``ir.ops`` (with "where" and "cast", whose result dtype is ``Op.dtype``) on values of any
compiled dtype, complex ones included: an emitter expands them.

Functions whose last bits IEEE 754 leaves open are NumPy's own ufunc inner loops: ``NumpyOp`` on one element,
``NumpyCall`` on a row of elements.  Their code and data addresses are integer arguments, so that compiled
code does not depend on where a process has loaded NumPy.  ``lowering.cpu.kernel_passes.ufunc_blocks`` inserts
them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from dcarray.ir.records import record

from .affine import Affine as Affine
from .affine import Term as Term
from .affine import affine as affine

DType = np.dtype[Any]


# ---- expressions -----------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Lit:
    """A constant, given as its bytes in native order."""

    bits: bytes
    dtype: DType


@record(frozen=True, slots=True)
class Index:
    """An affine integer (a loop variable, an integer argument, ...) as an int64 value."""

    at: Affine

    @property
    def dtype(self) -> DType:
        return np.dtype(np.int64)


@record(frozen=True, slots=True)
class Local:
    """The value of a ``Let``, or the current value of a ``Declare``d variable."""

    name: str
    dtype: DType


@record(frozen=True, slots=True)
class Elem:
    """A load of the element of a buffer at index ``at``.  For a gather, ``more`` has pairs of an integer
    expression and a stride, whose products are added to ``at``."""

    buffer: str
    at: Affine
    dtype: DType
    more: tuple[tuple[Expr, Affine], ...] = ()


@record(frozen=True, slots=True)
class Op:
    """An operation on scalars; arguments have the dtypes of one of its NumPy loops."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@record(frozen=True, slots=True)
class NumpyLoop:
    """A ufunc inner loop of NumPy: the names of the integer arguments with its address and its data pointer,
    and whether it may clear floating-point flags, so that its caller saves these."""

    code: str
    data: str
    clears: bool


#: The step that NumPy's loop demands of an argument, by operation and position: 0 (a scalar) or 1.
STEPS = {("power", 1): 0, ("array_power", 1): 1}


@record(frozen=True, slots=True)
class NumpyOp:
    """An operation on scalars, computed by NumPy's loop on one element."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType
    loop: NumpyLoop


Expr = Lit | Index | Local | Elem | Op | NumpyOp


# ---- statements ------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Let:
    """An immutable local, visible in the rest of its block."""

    name: str
    value: Expr


@record(frozen=True, slots=True)
class Declare:
    """A mutable scalar variable.  With ``reassoc`` its ``Update``s inside vector loops may be reassociated
    (lanes of partial results); without, they keep the program's order."""

    name: str
    init: Expr
    reassoc: bool = False


@record(frozen=True, slots=True)
class Update:
    """The update ``name = op(name, value)`` of a ``Declare``d variable by a reduction operation."""

    name: str
    op: str
    value: Expr


@record(frozen=True, slots=True)
class Assign:
    """The assignment ``name = value`` to a ``Declare``d variable."""

    name: str
    value: Expr


@record(frozen=True, slots=True)
class Store:
    """The store ``buffer[at] = value``, of one dtype.  ``nontemporal``: the element is not read soon."""

    buffer: str
    at: Affine
    value: Expr
    nontemporal: bool = False


@record(frozen=True, slots=True)
class For:
    """The loop ``for var in range(max(lower, *floors), min(upper), step)``; ``step`` is positive.

    "vector": no iteration touches memory that another one writes, and the only loop-carried values are
    ``reassoc`` variables that are only ``Update``d inside.  ``unroll`` is a hint (0: the target's choice)."""

    var: str
    lower: Affine
    upper: tuple[Affine, ...]
    step: int
    kind: Literal["serial", "vector", "short"]
    body: tuple[Stmt, ...]
    unroll: int = 0
    floors: tuple[Affine, ...] = ()


@record(frozen=True, slots=True)
class Repeat:
    """A while loop: ``head``, and then, as long as ``cond`` holds, ``body`` and ``head`` again."""

    head: tuple[Stmt, ...]
    cond: Expr
    body: tuple[Stmt, ...]


@record(frozen=True, slots=True)
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@record(frozen=True, slots=True)
class Stack:
    """A stack buffer of ``size`` uninitialised elements for the rest of the enclosing body, private to one
    iteration of the enclosing loop.  Outside of the `Threads` of a block they share it; with ``per_thread``
    each of them has its own, which lasts from one `Threads` to the next."""

    name: str
    dtype: DType
    size: int
    per_thread: bool = False


@record(frozen=True, slots=True)
class Threads:
    """The threads of a block: ``body`` for every ``var`` in ``range(count)``, all at the same time.

    It is in the body of a phase of blocks, or in loops and conditions there, never in another ``Threads``, so
    that all threads of a block run the same sequence of them.  There is a barrier after each, which all
    threads reach.  In a phase of blocks, only statements inside of ``Threads`` store.
    """

    var: str
    count: int
    body: tuple[Stmt, ...]


@record(frozen=True, slots=True)
class Row:
    """A strided row of a buffer: its first element, the step to the next one (0: a scalar), and the value if
    it is a constant."""

    buffer: str
    at: Affine
    step: int
    dtype: DType
    value: Lit | None = None


@record(frozen=True, slots=True)
class NumpyCall:
    """``write[k] = name(reads[0][k], ...)`` for ``k`` in ``range(min(count))``, which is not empty, by
    NumPy's loop.  The written row is disjoint from the rows that are read, or identical to one of them."""

    name: str
    reads: tuple[Row, ...]
    write: Row
    count: tuple[Affine, ...]
    loop: NumpyLoop


@record(frozen=True, slots=True)
class Draw:
    """``let name = function(generator, *args)``: the next random number, by a function of ``ir.draws.DRAWS``
    whose address is the integer argument ``code``; ``generator`` is the address of the generator's interface.
    It changes memory that no buffer is, so it is not left out, repeated, or moved past another one."""

    name: str
    function: str
    code: str
    generator: Expr
    args: tuple[Expr, ...]
    dtype: DType


@record(frozen=True, slots=True)
class Invoke:
    """``let results = routine(args)``: a call of a `Routine` of the kernel."""

    results: tuple[Local, ...]
    routine: str
    args: tuple[Expr, ...]


@record(frozen=True, slots=True)
class TransposeTile:
    """A transposing copy of a tile, which a target can do in registers: ``write[to + c*across + r] = read[at
    + r*along + c]`` for ``r < min(rows)`` and ``c < min(cols)``.  The two tiles share no memory."""

    write: str
    to: Affine
    across: Affine
    read: str
    at: Affine
    along: Affine
    rows: tuple[Affine, ...]
    cols: tuple[Affine, ...]
    dtype: DType


Stmt = (
    Let | Declare | Update | Assign | Store | For | Repeat | If | Stack | Threads | NumpyCall | Draw
    | Invoke | TransposeTile
)  # fmt: skip


# ---- the kernel ------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Buffer:
    """A pointer argument.  ``noalias`` is C's ``restrict``: memory that the kernel writes and accesses
    through this pointer is accessed through no other.  ``by_value``: a device gets the buffer's single
    element, which is only read, instead of a pointer."""

    name: str
    dtype: DType
    access: Literal["r", "w", "rw"]
    noalias: bool = True
    by_value: bool = False


@record(frozen=True, slots=True)
class Phase:
    """One parallel loop over ``[0, extent)``; each chunk of it runs ``pre`` (only ``Let``) once.  In a phase
    of blocks, all `Threads` count ``threads``."""

    var: str
    extent: Affine
    kind: Literal["serial", "vector", "blocks"]
    body: tuple[Stmt, ...]
    pre: tuple[Let, ...] = ()
    threads: int = 0


@record(frozen=True, slots=True)
class Routine:
    """A function that statements of a kernel call, and that may call itself: it runs ``body`` and returns
    ``results``.  It can use its parameters and the kernel's arguments."""

    name: str
    parameters: tuple[Local, ...]
    body: tuple[Stmt, ...]
    results: tuple[Expr, ...]


@record(frozen=True, slots=True)
class Kernel:
    """A kernel: pointer arguments ``p0``, ``p1``, ..., then scratch ``t0``, ``t1``, ..., integer arguments
    ``n0``, ``n1``, ..., the phases, and the routines that these call."""

    buffers: tuple[Buffer, ...]
    ints: tuple[str, ...]
    phases: tuple[Phase, ...]
    routines: tuple[Routine, ...] = ()


# ---- how a kernel is called ------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Pointer:
    """The address of an element of a region array: ``offset`` elements (a Dim) after its first one."""

    array: str
    offset: Any


@record(frozen=True, slots=True)
class Scratch:
    """Uninitialised memory of ``size`` elements (a Dim) that lives for one launch."""

    dtype: DType
    size: Any


@record(frozen=True, slots=True)
class Binding:
    """The arguments of a kernel for one statement; every number is a Dim.

    ``extents`` and ``work`` have one entry per phase: the number of iterations, and the cost of an iteration
    in units of about one addition on cached memory, by which the runtime chooses threads and chunks.
    ``bytes`` and ``operations`` are the bytes moved (each window once) and the operations done, for reports.
    ``then`` is the binding of a second launch of the kernel, after the first."""

    pointers: tuple[Pointer | Scratch, ...]
    ints: tuple[Any, ...]
    extents: tuple[Any, ...]
    work: tuple[Any, ...]
    bytes: Any = 0
    operations: Any = 0
    then: Binding | None = None
