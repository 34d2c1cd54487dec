"""The driver of a program on a device: a Python function, written as text, that enqueues launches.

::

    def run(_arrays, _buffers, _symbols=(), _device=None, _minded=0):
        _a0, _a1, = _buffers
        N, = _symbols
        prepare(_device, (_g0, ), ())
        _t2 = allocate(_device, N*8)
        _g0(_device, (N // 256 + 1,), ((_a0, 0), (_t2, 0)), (N,))
        _t2 = None
        return 0

Each temporary has its own buffer, which returns to the device's pool when the function drops it.  A run that
fails for lack of memory or of a kernel changes nothing: ``prepare`` builds the kernels first, and if a buffer
is allocated after a given array has been written, it also allocates and frees all buffers once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dcarray.ir import dims
from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Array, Dim, Stmt
from dcarray.lowering.kernel.nodes import Binding, Pointer, Scratch
from dcarray.lowering.nest.access import strides, total
from dcarray.lowering.program import nodes
from dcarray.lowering.program.python_driver import Driver

__all__ = ["DriverPrinter", "printed"]


def printed(program: nodes.Program, threads: int, fresh: bool = False) -> Driver:
    """Return the driver of a program; ``threads`` and ``fresh`` have no effect for devices.

    Its function has the parameters of a CPU's driver.  But instead of addresses it gets the buffer of each
    array from outside, or a scalar's value, and instead of a number of threads it gets the device.
    """
    return DriverPrinter(program).driver()


class DriverPrinter:
    """The printer of a driver, which writes it node by node; ``depth`` is always the depth of indentation.

    Attributes
    ----------
    library_calls : str
        The name of the function that runs library calls.
    begun : bool
        Whether the lines so far write to an array that the run was given.
    late : bool
        Whether memory is allocated after such a write.
    reserved : list of str
        The second argument of ``prepare``: texts of pairs, of a buffer's variable and its bytes for an
        allocation, of the variable and None where the buffer is freed, in the order of the run.
    """

    library_calls = "on_host"

    def __init__(self, program: nodes.Program) -> None:
        self.program, self.region, self.given = program, program.region, program.given
        self.variables = [symbol.name for symbol in self.region.symbols]  # with those of the loops around
        self.declared = {array.name: array for array in self.region.arrays}
        self._lines: list[str] = []
        self._kernels: list[str] = []
        self.begun = self.late = False
        self.reserved: list[str] = []
        self.things: dict[str, Any] = {}  # what the text calls by name

    def driver(self) -> Driver:
        """Return the driver of the whole program."""
        self.block(self.program.body, 1)
        if self._kernels or self.late:
            kernels, buffers = "".join(f"{name}, " for name in self._kernels), "".join(self.reserved)
            self._lines.insert(0, f"    prepare(_device, ({kernels}), ({buffers if self.late else ''}))")
        return Driver(self.text(), self.things, False)

    def line(self, depth: int, text: str) -> None:
        """Write one line of the driver's text."""
        self._lines.append("    " * depth + text)

    def declare(self, array: Array) -> None:
        """Note the declaration of an array that the program allocates."""
        self.declared.setdefault(array.name, array)

    def block(self, body: tuple[nodes.Node, ...], depth: int) -> None:
        """Write the lines for the nodes of a body."""
        for node in body:
            self.node(node, depth)

    def node(self, node: nodes.Node, depth: int) -> None:
        """Write the lines for one node of the program."""
        if not isinstance(node, nodes.Launch):  # which has its own memory allocated before
            self.begin([node])
        match node:
            case nodes.Alloc(array):
                self.declare(array)
                size = dims.show(total((*array.shape, array.dtype.itemsize)))
                self.allocate(depth, self.buffer(array.name), size)
            case nodes.Free(array):
                self.free(depth, self.buffer(array.name))
            case nodes.Launch(binding=binding):
                self.launch(depth, node, binding)
            case nodes.LibraryCall(stmt, call):
                self.call(depth, self.library_calls, call, node.names, stmt)
            case nodes.Copy(stmt, call):
                self.call(depth, "on_host", call, node.names, stmt)
            case nodes.HostCall(stmt, call, names):
                self.call(depth, "on_host", call, names, stmt)
            case nodes.Stop():
                pass  # no flags are raised
            case nodes.Loop(var, bounds, body):
                start, stop, step = map(dims.show, bounds)
                self.line(depth, f"for {var} in range({start}, {stop}, {step}):")
                self.variables.append(var)
                with dims.ranging(var, bounds):
                    self.line(depth + 1, "pass")
                    self.block(body, depth + 1)
                self.variables.remove(var)
            case nodes.While(cond, head, body):
                self.line(depth, "while True:")
                self.block(head, depth + 1)
                self.line(depth + 1, f"if not flag(_device, {self.buffer(cond)}): break")
                self.block(body, depth + 1)
            case nodes.Branch(cond, then, orelse):
                self.line(depth, f"if flag(_device, {self.buffer(cond)}):")
                self.line(depth + 1, "pass")
                self.block(then, depth + 1)
                self.line(depth, "else:")
                self.line(depth + 1, "pass")
                self.block(orelse, depth + 1)

    def begin(self, some: Iterable[nodes.Node]) -> None:
        """Set `begun` if one of the nodes that come next writes to an array that the run was given."""
        if not self.begun:
            self.begun = any(self.is_given(window.array) for node in some for window in nodes.writes(node))

    def is_given(self, name: str) -> bool:
        """Whether an array, or the array of which it is a part, is an argument of the run."""
        while name not in self.given:
            array = self.declared.get(name)
            if array is None or array.base is None:
                return False
            name = array.base
        return True

    def allocate(self, depth: int, name: str, size: str) -> None:
        """Write the allocation of a buffer of ``size`` bytes to the variable ``name``."""
        how = "_device.allocate(" if self.begun else "allocate(_device, "
        self.line(depth, f"{name} = {how}{size})")
        self.reserve(name, size)

    def free(self, depth: int, name: str) -> None:
        """Write the line that frees a buffer."""
        self.line(depth, f"{name} = None")
        self.reserve(name, "None")

    def reserve(self, name: str, size: str) -> None:
        """Record an allocation, or with the size "None" that a buffer is freed, for ``prepare`` to try before
        the run; a size that depends on a loop's variable is left out."""
        if self.is_known(size):
            self.late |= self.begun and size != "None"
            self.reserved.append(f"({name!r}, {size}), ")

    def is_known(self, size: str) -> bool:
        """Whether the text of a size has no variables but the region's symbols."""
        symbols = {"None", "min", "max", *(symbol.name for symbol in self.region.symbols)}
        return symbols.issuperset(re.findall(r"[A-Za-z_]\w*", size))

    def launch(self, depth: int, node: nodes.Launch, binding: Binding) -> None:
        """Write the launch of a kernel."""
        if all(type(extent) is int and extent <= 0 for extent in binding.extents):
            return
        kernel, arguments, scratch = self.prepared(node)
        for name, size in scratch.items():
            self.allocate(depth, name, size)
        self.begin([node])
        self.line(depth, f"{kernel}(_device, {arguments})")
        for name in scratch:
            self.free(depth, name)

    def prepared(self, node: nodes.Launch) -> tuple[str, str, dict[str, str]]:
        """Return, to write the Python line of a launch, the name of the kernel's variable, the source text of
        the arguments, and the source text of the size in bytes of each scratch buffer, by its variable."""
        number, binding = len(self.things), node.binding
        self.things[f"_g{number}"] = node.loaded
        self._kernels.append(f"_g{number}")
        arguments, scratch = "", {}
        for slot, (buffer, pointer) in enumerate(zip(node.kernel.buffers, binding.pointers, strict=True)):
            if isinstance(pointer, Scratch):
                size = dims.show(total((pointer.size, pointer.dtype.itemsize)))
                scratch[f"_h{number}_{slot}"] = size
                arguments += f"(_h{number}_{slot}, 0), "
            elif buffer.by_value:
                arguments += f"{self.buffer(pointer.array)}, "
            else:
                arguments += f"({self.buffer(pointer.array)}, {self.offset(pointer)}), "
        blocks = "".join(f"{dims.show(extent)}, " for extent in binding.extents)
        ints = "".join(f"{dims.show(value)}, " for value in binding.ints)
        return f"_g{number}", f"({blocks}), ({arguments}), ({ints})", scratch

    def offset(self, pointer: Pointer) -> str:
        """Return the text of the number of the element, in its array, to which a pointer points."""
        return dims.show(dims.simplify(pointer.offset))

    def call(self, depth: int, how: str, step: Any, names: Sequence[str], stmt: Stmt) -> None:
        """Write a call of the function ``how`` (`library_calls` or ``on_host``) with a library or host step,
        the arrays ``names`` that the step uses, and the values of symbols."""
        number = len(self.things)
        self.things[f"_s{number}"] = step
        written = {window.array for window in writes(stmt)}
        arrays = ""
        for name in names:
            array = self.declared[name]
            self.things[f"_d{number}_{name}"] = array.dtype
            geometry = f"{_tuple(array.shape)}, {_tuple(strides(array))}"
            arrays += f"({self.buffer(name)}, {geometry}, _d{number}_{name}, {name in written}), "
        values = ", ".join(f"{name!r}: {name}" for name in self.variables)
        self.line(depth, f"{how}(_device, _s{number}, ({arrays}), {{{values}}})")

    def buffer(self, name: str) -> str:
        """Return the name of the variable that holds an array's buffer."""
        while name not in self.given and (base := self.declared[name].base) is not None:
            name = base
        return f"_a{self.given.index(name)}" if name in self.given else f"_t{list(self.declared).index(name)}"

    def imports(self) -> list[str]:
        """Return the import lines that the driver's text needs."""
        names = r"\b(?<!\.)(allocate|flag|on_host|prepare)\("
        used = sorted({name for line in self._lines for name in re.findall(names, line)})
        return [f"from dcarray.lowering.gpu.host_calls import {', '.join(used)}", ""] if used else []

    def text(self) -> str:
        """Return the driver's whole text."""
        head = []
        if self.given:
            head.append("".join(f"_a{k}, " for k in range(len(self.given))) + "= _buffers")
        if self.region.symbols:
            head.append("".join(f"{symbol.name}, " for symbol in self.region.symbols) + "= _symbols")
        first = "def run(_arrays, _buffers, _symbols=(), _device=None, _minded=0):"
        lines = [*self.imports(), first, *("    " + line for line in head), *self._lines]
        return "\n".join([*lines, "    return 0", ""])


def _tuple(numbers: Sequence[Dim]) -> str:
    return "(" + "".join(f"{dims.show(number)}, " for number in numbers) + ")"
