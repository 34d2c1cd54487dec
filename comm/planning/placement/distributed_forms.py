"""The distributed forms of library calls.

A form is chosen without data and for all ranks alike; the steps of a rank are made from it later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.rank_program.steps import Memory, Step
from dcarray.ir.nodes import Call

__all__ = ["DistributedForm", "Operand", "Planner"]


@dataclass(frozen=True)
class Operand:
    """An operand of a call: a whole array, never a window of one.

    `layout` is that of the array, or for a result the wanted one; None: every rank has all of it.  For a new
    result, whose layout is free, it is None and `free` is true.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout | None
    free: bool = False


@dataclass(frozen=True)
class DistributedForm:
    """The distributed computation of a library call: layouts of operands and results, and steps.

    Parameters
    ----------
    reads : tuple of (Layout or None)
        The layouts in which operands are needed, without halo; None: whole on every rank.
    writes : tuple of (Layout or None)
        The layouts in which results are made.
    steps : callable
        ``steps(rank, reads, writes, make)`` returns one rank's steps, where ``reads`` and ``writes`` are
        the local arrays (`Memory`) in those layouts and ``make(dtype, shape)`` makes a local array for the
        use of the steps.  Arrays that are read must not be written.
    reason : str
        The chosen algorithm and the reason, in words.
    parts : (Layout, tuple of int), optional
        The steps make parts of the only result, in this layout; those of the ranks along these axes of its
        grid have still to be added up, and `writes` says where the sum lies.
    """

    reads: tuple[Layout | None, ...]
    writes: tuple[Layout | None, ...]
    steps: Callable[
        [
            int,
            tuple[Memory, ...],
            tuple[Memory, ...],
            Callable[[np.dtype[Any], tuple[int, ...]], Memory],
        ],
        Sequence[Step],
    ]
    reason: str
    parts: tuple[Layout, tuple[int, ...]] | None = None


#: ``planner(call, reads, writes, ranks)``: the form, or the reason why there is none.
Planner = Callable[[Call, tuple[Operand, ...], tuple[Operand, ...], int], "DistributedForm | str"]
