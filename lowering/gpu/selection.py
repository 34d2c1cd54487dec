"""The kernel that selects elements by a mask: for each result a search in the running count of the chosen.

The count is a scan of the mask, which comes before.  Each thread looks its element up by halving, so that no
thread writes where another does, and results are in the mask's order.
"""

from __future__ import annotations

import numpy as np

from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.kernel.compiler import Compiler
from dcarray.lowering.kernel.nodes import (
    Affine,
    Assign,
    Buffer,
    Declare,
    DType,
    Elem,
    If,
    Index,
    Kernel,
    Let,
    Local,
    Op,
    Phase,
    Repeat,
    Store,
    Term,
    Threads,
    affine,
)
from dcarray.lowering.nest.body import literal
from dcarray.lowering.nest.loop_nest import variable

__all__ = ["THREADS", "compiled", "selection"]

THREADS = 256
_INT, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def selection(dtype: DType) -> Kernel:
    """Return the kernel ``p0[k] = p1[i]``, with the first ``i`` for which ``p2[i] > k``.

    Its integer arguments are the elements of ``p0``, those of ``p1`` and ``p2``, and the blocks.
    """
    low, high, middle = Local("low", _INT), Local("high", _INT), Local("middle", _INT)
    k = affine(0, Term(THREADS, None, "block"), variable("lane"))
    half = Op("right_shift", (Op("add", (low, high), _INT), literal(1, _INT)), _INT)
    counted = Elem("p2", affine(), _INT, ((middle, affine(1)),))
    search = Repeat(
        (),
        Op("less", (low, high), _BOOL),
        (
            Let("middle", half),
            If(
                Op("less", (Index(k), counted), _BOOL),
                (Assign("high", middle),),
                (Assign("low", Op("add", (middle, literal(1, _INT)), _INT)),),
            ),
        ),
    )
    found = Elem("p1", affine(), dtype, ((low, affine(1)),))
    one = (
        Declare("low", literal(0, _INT)),
        Declare("high", Index(_integer("n1"))),
        search,
        Store("p0", k, found),
    )
    body = If(Op("less", (Index(k), Index(_integer("n0"))), _BOOL), one)
    threads = Threads("lane", THREADS, (body,))
    buffers = (Buffer("p0", dtype, "w"), Buffer("p1", dtype, "r"), Buffer("p2", _INT, "r"))
    return Kernel(
        buffers, ("n0", "n1", "n2"), (Phase("block", _integer("n2"), "blocks", (threads,), (), THREADS),)
    )


def _integer(name: str) -> Affine:
    """Return an integer argument."""
    return affine(0, Term(1, name, None))


def compiled(compiler: Compiler, dtype: DType) -> DeviceKernel:
    """Return the kernel in the dialect of a target's compiler.

    Raises
    ------
    Unsupported
        If the target cannot print it.
    """
    kernel = selection(dtype)
    loaded = compiler.load(kernel, compiler.compile(compiler.emit(kernel)))
    assert isinstance(loaded, DeviceKernel)
    return loaded
