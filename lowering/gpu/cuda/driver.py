"""The driver of a program on a CUDA device: like that of other devices, but segments run as CUDA graphs.

A driver is a Python function, printed as text, that runs a plan.  Here ``_r1`` is a `LaunchGraph`:

::

    def run(_arrays, _buffers, _symbols=(), _device=None, _minded=0):
        _a0, _a1, = _buffers
        N, = _symbols
        _r1(_device, True, (_a0, _a1, ), (N, ), (N*8, ), lambda _t2: (
            LaunchKernel(_g2, (N // 256 + 1, ), ((_a0, 0), (_t2, 0), ), (N, )),
            CopyMemory(_a1, 0, _t2, 0, N*8),
        ))
        return 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dcarray.ir import dims
from dcarray.ir.nodes import Dim
from dcarray.lowering.gpu.driver import DriverPrinter
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.nest.access import total
from dcarray.lowering.program import nodes
from dcarray.lowering.program.python_driver import Driver
from dcarray.lowering.runtime.library_calls import CallStep

from .graph import LaunchGraph
from .segments import Operation, Segment, partition

__all__ = ["printed"]


def printed(program: nodes.Program, threads: int, fresh: bool = False) -> Driver:
    """Return the driver of a program; see `dcarray.lowering.gpu.driver.printed`."""
    return _Printer(program).driver()


class _Printer(DriverPrinter):
    library_calls = "on_device"

    def block(self, body: tuple[nodes.Node, ...], depth: int) -> None:
        for part in partition(body, self.region):
            if isinstance(part, Segment):
                self.segment(part, depth)
            else:
                self.node(part, depth)

    def segment(self, segment: Segment, depth: int) -> None:
        """Write the call that runs a segment as a graph (`LaunchGraph.__call__`)."""
        for alloc in segment.earlier:
            self.node(alloc, depth)
        number = len(self.things)
        before = tuple([tuple(sorted(earlier)) for earlier in segment.before])
        loaded = [getattr(operation.node, "loaded", None) for operation in segment.operations]
        checks = any(isinstance(one, DeviceKernel) and one.checks for one in loaded)
        self.things[f"_r{number}"] = LaunchGraph(before, segment.uses, checks)
        sizes: dict[str, str] = {}
        for array in segment.temporaries:
            self.declare(array)
            sizes[self.buffer(array.name)] = dims.show(total((*array.shape, array.dtype.itemsize)))
        tasks = [text for operation in segment.operations for text in self.task(operation, sizes)]
        used = dict.fromkeys(name for text in tasks for name in re.findall(r"\b_[at]\d+\b", text))
        given = "".join(f"{name}, " for name in used if name not in sizes)
        block = "".join(f"{size}, " for size in sizes.values())
        # the number of an iteration that changes nothing must not look like a change
        words = set(re.findall(r"[A-Za-z_]\w*", " ".join([*tasks, block])))
        values = "".join(f"{name}, " for name in self.variables if name in words)
        fresh = not self.begun
        self.begin([operation.node for operation in segment.operations])
        head = f"_r{number}(_device, {fresh}, ({given}), ({values}), ({block}), lambda {', '.join(sizes)}: ("
        self.line(depth, head.replace("lambda :", "lambda:"))
        for text in tasks:
            self.line(depth + 1, text + ",")
        self.line(depth, "))")
        if sizes and all(map(self.is_known, sizes.values())):
            self.late |= not fresh
            room = f"_r{number}.room(_device, ({block}))"
            self.reserved.append(f"('_r{number}', {room}), ('_r{number}', None), ")
        for free in segment.later:
            self.node(free, depth)

    def task(self, operation: Operation, sizes: dict[str, str]) -> Iterator[str]:
        """Yield the text of the task for an operation.  The sizes of its scratch memory are added to
        ``sizes``, which has the text of the bytes of each temporary."""
        if operation.kind == "kernel":
            kernel, arguments, scratch = self.prepared(operation.node)
            sizes.update(scratch)
            yield f"LaunchKernel({kernel}, {arguments})"
        else:
            nbytes = self.nbytes(operation.target[0], operation.elements)
            if operation.kind == "fill":
                yield f"FillMemory({self.place(*operation.target)}, {operation.byte}, {nbytes})"
            else:
                places = f"{self.place(*operation.target)}, {self.place(*operation.source)}"
                yield f"CopyMemory({places}, {nbytes})"

    def place(self, name: str, first: Dim) -> str:
        """Return the text of an array's buffer and of the byte at which element ``first`` begins in it."""
        return f"{self.buffer(name)}, {self.nbytes(name, first)}"

    def nbytes(self, name: str, elements: Dim) -> str:
        """Return the text of how many bytes a number of elements of an array take."""
        return dims.show(total((elements, self.declared[name].dtype.itemsize)))

    def imports(self) -> list[str]:
        lines = super().imports()
        things = self.things.values()
        if any(isinstance(thing, CallStep) for thing in things):
            lines = ["from dcarray.lowering.gpu.cuda.libraries import on_device", *lines]
        names = "CopyMemory", "FillMemory", "LaunchKernel"
        used = [name for name in names if any(f"    {name}(" in line for line in self._lines)]
        if used:
            lines = [f"from dcarray.lowering.gpu.cuda.tasks import {', '.join(used)}", *lines]
        return lines
