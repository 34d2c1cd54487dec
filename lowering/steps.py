"""What a plan does besides launching kernels: library calls, and statements left to the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.nodes import Call, Region, Stmt
from .libraries import LIBRARIES, Library, Own, View

if TYPE_CHECKING:
    from ..ir.interp import Interpreter
    from .kernel import Binding, Kernel
    from .target import Launch

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
    """A call that a library serves; ``position`` is that of the region's statement it belongs to.

    ``parts`` makes another one like it, in another process too: of what it does, the number of arrays that it
    writes, and the shape and index of each `View`.  ``launch`` is the library's own code, if it has any, in
    the form of its `Routine`.
    """

    def __init__(
        self,
        op: str,
        library: str,
        attrs: tuple[tuple[str, Any], ...],
        writes: int,
        views: tuple[Any, ...],
        position: int = 0,
        names: tuple[str, ...] = (),
        loc: Any = None,
        launch: Launch | None = None,
    ) -> None:
        self.op, self.library, self.position, self.names, self.loc = op, library, position, names, loc
        self.parts = (op, library, attrs, writes, views)
        (self._run,) = (one.run for one in LIBRARIES[op] if one.name == library)
        self._attrs, self._writes, self.launch = dict(attrs), writes, launch
        self._views = [View(*parts) for parts in views]

    @classmethod
    def of(cls, call: Call, library: Library, position: int, launch: Launch | None = None) -> CallStep:
        """The step of a call in a region."""
        windows = (*call.writes, *call.reads)
        views = tuple([(view.shape, view.index) for view in map(View.of, windows)])
        names = tuple([window.array for window in windows])
        name, writes = library.name, len(call.writes)
        return cls(call.op, name, call.attrs, writes, views, position, names, call.loc, launch)

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run on the arrays called ``names``; gives the floating-point flags."""
        views = [view(array, values) for view, array in zip(self._views, arrays, strict=True)]
        flags, launch = _Flags(), self.launch
        own = None if launch is None else Own(launch, threads)
        with np.errstate(all="call", call=flags):
            raised = self._run(views[: self._writes], views[self._writes :], self._attrs, own)
        return flags.raised | raised


class InterpStep:
    """A statement that the interpreter runs, for ``reason``; ``position`` is that of the region's statement
    it belongs to."""

    def __init__(self, stmt: Stmt, region: Region, reason: str, position: int) -> None:
        self.position = position
        self.reason, self.loc = reason, stmt.loc
        from ..ir.effects import touched

        used = touched(stmt)
        arrays = tuple(
            replace(array, role="inout", base=None) for array in region.arrays if array.name in used
        )
        self.names = tuple(array.name for array in arrays)
        self.run = Interpreted(replace(region, arrays=arrays, body=(stmt,)))

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run on the arrays called ``names``; gives the floating-point flags."""
        return self.run(arrays, values)


class Interpreted:
    """A region of one statement, left to the interpreter; or its text."""

    def __init__(self, region: Region | str) -> None:
        self._region = region
        self._idle: list[Interpreter] = []  # each serves one thread at a time

    @property
    def text(self) -> str:
        """The region as text."""
        from ..ir.text import dump

        return self._region if isinstance(self._region, str) else dump(self._region)

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run on the region's arrays; gives the floating-point flags."""
        if isinstance(self._region, str):
            from ..ir.parse import parse

            self._region = parse(self._region)
        try:
            runner = self._idle.pop()
        except IndexError:
            from ..ir.interp import Interpreter

            runner = Interpreter(self._region)
        flags = _Flags()
        given = {array.name: a for array, a in zip(self._region.arrays, arrays, strict=True)}
        with np.errstate(all="call", call=flags):
            runner.run(given, values)
        self._idle.append(runner)
        return flags.raised


Step = KernelStep | CallStep | InterpStep
