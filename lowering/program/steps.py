"""What a plan does, step by step, as who makes the plan knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir.nodes import Region, Stmt
from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

if TYPE_CHECKING:
    from dcarray.lowering.kernel.nodes import Binding, Kernel

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A compiled statement; ``names`` are the arrays behind the kernel's buffers."""

    kernel: Kernel
    binding: Binding
    names: dict[str, str]
    target: str
    loc: Any


class InterpStep:
    """A statement that the interpreter runs, for ``reason``; ``position`` is that of the region's statement
    it belongs to."""

    def __init__(self, stmt: Stmt, region: Region, reason: str, position: int) -> None:
        self.position = position
        self.reason, self.loc = reason, stmt.loc
        from dcarray.ir.analysis.effects import touched

        used = touched(stmt)
        arrays = tuple(
            replace(array, role="inout", base=None) for array in region.arrays if array.name in used
        )
        self.names = tuple(array.name for array in arrays)
        self.run = Interpreted(replace(region, arrays=arrays, body=(stmt,)))

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run on the arrays called ``names``; gives the floating-point flags."""
        return self.run(arrays, values)


Step = KernelStep | CallStep | InterpStep
