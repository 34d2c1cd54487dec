"""The distributed forms of library calls, such as matrix products: layouts of operands, and steps per rank.

A form is chosen without data, the same on all ranks; the steps of a rank are made from it later.
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

    `layout` is that of the array, or the required one for a result; None: every rank has the whole array.
    For a new result, whose layout the form chooses, `layout` is None and `free` is true.
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
        the local arrays (`Memory`) in those layouts and ``make(dtype, shape)`` creates a local temporary
        array.  The steps must not write the arrays ``reads``.
    reason : str
        The chosen algorithm and the reason, in words.
    parts : (Layout, tuple of int), optional
        Set if the steps compute partial sums of the only result: their layout, and the axes of its grid
        over whose ranks they must still be added up; `writes` then has the layout of the sum.
    """

    reads: tuple[Layout | None, ...]
    writes: tuple[Layout | None, ...]
    steps: Callable[
        [int, tuple[Memory, ...], tuple[Memory, ...], Callable[[np.dtype[Any], tuple[int, ...]], Memory]],
        Sequence[Step],
    ]
    reason: str
    parts: tuple[Layout, tuple[int, ...]] | None = None


#: ``planner(call, reads, writes, ranks)``: the form, or the reason why there is none.
Planner = Callable[[Call, tuple[Operand, ...], tuple[Operand, ...], int], "DistributedForm | str"]
