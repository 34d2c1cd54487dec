"""What a plan does besides launching kernels: library calls, and statements left to the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir import effects, interp
from ..ir.nodes import Call, Region, Stmt
from .kernel import Binding, Kernel
from .libraries import Library, View

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A compiled statement; ``names`` are the arrays behind the kernel's buffers."""

    kernel: Kernel
    binding: Binding
    names: dict[str, str]
    target: str
    loc: Any


class _Flags:
    """Collects NumPy's floating-point flags, numbered as those of kernels are."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = 0

    def __call__(self, _: str, flag: int) -> None:
        self.raised |= flag


class CallStep:
    """A call that a library serves; ``position`` is that of the region's statement it belongs to."""

    def __init__(self, call: Call, library: Library, region: Region, position: int) -> None:
        self.position = position
        arrays = {array.name: array for array in region.arrays}
        self.op, self.library, self.loc = call.op, library.name, call.loc
        self.names = tuple(window.array for window in (*call.writes, *call.reads))
        self._run, self._attrs, self._writes = library.run, dict(call.attrs), len(call.writes)
        self._views = [View(window, arrays[window.array]) for window in (*call.writes, *call.reads)]

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int]) -> int:
        """Run on the arrays called ``names``; gives the floating-point flags."""
        views = [view(array, values) for view, array in zip(self._views, arrays, strict=True)]
        flags = _Flags()
        with np.errstate(all="call", call=flags):
            self._run(views[: self._writes], views[self._writes :], self._attrs)
        return flags.raised


class InterpStep:
    """A statement that the interpreter runs, for ``reason``; ``position`` is that of the region's statement
    it belongs to."""

    def __init__(self, stmt: Stmt, region: Region, reason: str, position: int) -> None:
        self.position = position
        self.reason, self.loc = reason, stmt.loc
        used = effects.touched(stmt)
        arrays = tuple(
            replace(array, role="inout", base=None) for array in region.arrays if array.name in used
        )
        self.names = tuple(array.name for array in arrays)
        self._region = replace(region, arrays=arrays, body=(stmt,))
        self._idle: list[interp.Interpreter] = []  # each serves one thread at a time

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int]) -> int:
        """Run on the arrays called ``names``; gives the floating-point flags."""
        try:
            runner = self._idle.pop()
        except IndexError:
            runner = interp.Interpreter(self._region)
        flags = _Flags()
        with np.errstate(all="call", call=flags):
            runner.run(dict(zip(self.names, arrays, strict=True)), values)
        self._idle.append(runner)
        return flags.raised


Step = KernelStep | CallStep | InterpStep
