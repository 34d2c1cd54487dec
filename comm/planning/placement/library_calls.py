"""Which library calls have a distributed form, and what that takes.

A form is chosen without data and for all ranks alike; it is asked for one rank's steps later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.program.steps import Memory, Step
from dcarray.ir.nodes import Call

__all__ = ["DistributedForm", "Operand", "Planner", "planners"]


@dataclass(frozen=True)
class Operand:
    """An operand of a call: a whole array (never a part of one).

    `layout` is the one that it has, or for a result the one that is wanted; None: every rank has all of it.
    Of a result that is new it is None, and `free` is true: any layout will do.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout | None
    free: bool = False


@dataclass(frozen=True)
class DistributedForm:
    """How a call is computed on many ranks.

    Parameters
    ----------
    reads : tuple of (Layout or None)
        The layout in which each operand is needed, without halo; None: whole on every rank.
    writes : tuple of (Layout or None)
        Those in which results are made.
    steps : callable
        ``steps(rank, reads, writes, make)`` gives one rank's steps, where ``reads`` and ``writes`` are
        the local arrays (`Memory`) in those layouts and ``make(dtype, shape)`` is another local array for the
        use of the steps.  What is read must not be written.
    reason : str
        What was chosen and why, in words.
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


#: ``planner(call, reads, writes, ranks)``: the form, or why there is none.
Planner = Callable[[Call, tuple[Operand, ...], tuple[Operand, ...], int], "DistributedForm | str"]


def planners() -> Mapping[str, Planner]:
    """The planner of each operation that has one, by the names of `dcarray.ir.ops.CALLS`."""
    from .matmul_call import plan_matmul  # which is about the classes above

    return {"blas.matmul": plan_matmul}
