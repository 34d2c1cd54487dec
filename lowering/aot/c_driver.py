"""The C function of a program: it checks the arguments, allocates one block of memory, and runs the steps.

All checks of arguments, and all allocations but those in some loops, come before the first write.  Addresses
are of type ``int64_t``, as kernels expect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Dim
from dcarray.lowering.c_family.ops import literal
from dcarray.lowering.kernel.nodes import Binding, Kernel, Lit, Pointer, Scratch
from dcarray.lowering.nest.access import total
from dcarray.lowering.program import nodes, storage

from . import matmul_text
from .interface import DType, Function, Refused
from .size_text import size_text, variable
from .target import DIALECT

MAX_SIZE = (1 << 40) - 1
"""The largest size, and integer argument, for which regions are made."""

Name = Callable[[Kernel], str]


def function_text(
    function: Function, program: nodes.Program, prototype: str, status: str, name_of: Name
) -> str:
    """Return the C function of a program.

    Parameters
    ----------
    function : Function
    program : Program
    prototype : str
        The head of the function, in which arguments are named as by `argument`.
    status : str
        The prefix of the names of status constants.
    name_of : callable
        ``name_of(kernel)`` is the prefix of the names of the kernel's phases.

    Raises
    ------
    Refused
        If a step needs Python; the error names its file and line.
    """
    printer = _Printer(function, program, status, name_of)
    printer.block(program.body, 1)
    return "\n".join([prototype, "{", *printer.checks(), *printer.memory(), *printer.lines, *printer.end()])


def argument(name: str) -> str:
    """Return the name of an argument within the function's body."""
    return f"dc_p_{name}"


class _Printer:
    def __init__(self, function: Function, program: nodes.Program, status: str, name_of: Name) -> None:
        self.function, self.region, self.given = function, program.region, program.given
        self._status, self._name_of = status, name_of
        self._declared = {array.name: array for array in self.region.arrays}
        self._needs = storage.needs(program.body)
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    # ---- before anything is written ------------------------------------------------------------------
    def checks(self) -> list[str]:
        """Return the lines that assign arguments to variables and check them."""
        function, status = self.function, self._status
        lines = ["  int dc_overflow = 0;", "  int32_t dc_status = 0;"]
        lines += [f"  const int64_t {variable(name)} = {argument(name)};" for name in function.sizes]
        bad = [f"{variable(n)} < 0 || {variable(n)} > INT64_C({MAX_SIZE})" for n in function.sizes]
        for p in function.parameters:
            if p.kind == "size":
                n = variable(p.symbol)
                lines.append(f"  const int64_t {n} = {argument(p.name)};")
                bad.append(f"{n} < -INT64_C({MAX_SIZE}) || {n} > INT64_C({MAX_SIZE})")
        arrays = self._arrays()
        shapes = {extent for _, _, shape, _ in arrays for extent in shape if type(extent) is not int}
        bad += [f"{size_text(extent)} < 0" for extent in sorted(shapes, key=dims.show)]
        lines += [f"  if ({condition}) return {status}BAD_SIZE;" for condition in dict.fromkeys(bad)]
        # no extent as 1: strides have to fit, too
        for k, (_, dtype, shape, _) in enumerate(arrays):
            room, empty = str(dtype.itemsize), "0"
            for extent in shape:
                text = size_text(extent)
                room = f"dc_mul({room}, dc_max(1, {text}), &dc_overflow)"
                empty += f" || {text} == 0"
            lines.append(f"  const int64_t dc_b{k} = ({empty}) ? 0 : {room};")
        lines.append(f"  if (dc_overflow) return {status}TOO_LARGE;")
        for k, (name, dtype, _, _) in enumerate(arrays):
            lines.append(f"  if (!{name} && dc_b{k}) return {status}NULL_POINTER;")
            part = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
            if part > 1:
                lines.append(f"  if ((uintptr_t){name} % {part}) return {status}MISALIGNED;")
        for k, (name, _, _, written) in enumerate(arrays):
            for j, (other, _, _, too) in enumerate(arrays[:k]):
                if written or too:
                    apart = (
                        f"(uintptr_t){name} + (uint64_t)dc_b{k} <= (uintptr_t){other} || "
                        f"(uintptr_t){other} + (uint64_t)dc_b{j} <= (uintptr_t){name}"
                    )
                    lines.append(f"  if (dc_b{k} && dc_b{j} && !({apart})) return {status}OVERLAP;")
        for guard in self.region.guards:
            held = "1" if guard in (True,) else "0" if guard in (False,) else size_text(guard)
            lines.append(f"  if (!({held}) || dc_overflow) return {status}GUARD;")
        return [*lines, *self._addresses()]

    def _arrays(self) -> list[tuple[str, DType, tuple[Dim, ...], bool]]:
        """Return the arrays that a caller passes: name in C, dtype, shape, and whether it is written."""
        arrays = [
            (argument(p.name), p.dtype, p.shape, p.written)
            for p in self.function.parameters
            if p.kind == "array"
        ]
        for name, result in self.function.given_results:
            array = self._declared[result.name]
            arrays.append((argument(name), array.dtype, array.shape, True))
        return arrays

    def _addresses(self) -> list[str]:
        """Return the lines that define the addresses of arrays from outside, and variables for scalars."""
        parameters = {p.name: p for p in self.function.parameters}
        results = {result.name: name for name, result in self.function.given_results}
        inputs = iter(self.function.inputs)
        lines = []
        for k, name in enumerate(self.given):
            array = self._declared[name]
            if array.role == "out":
                text = f"(uintptr_t){argument(results[name])}" if name in results else None
                if text is None:
                    raise Refused(f"the result {name} is not returned")
            else:
                source = next(inputs)
                if isinstance(source, str) and parameters[source].kind == "array":
                    text = f"(uintptr_t){argument(source)}"
                else:
                    value = self._scalar(argument(source), array.dtype) if isinstance(source, str) else (
                        literal(Lit(np.asarray(source[0], array.dtype).tobytes(), array.dtype), DIALECT)
                    )  # fmt: skip
                    lines.append(f"  {DIALECT.type(array.dtype)} dc_v{k} = {value};")
                    text = f"(uintptr_t)&dc_v{k}"
            lines.append(f"  const int64_t dc_a{k} = (int64_t){text};")
        if self.function.checked:
            lines.append("  dc_failed = 0;")
        return lines

    @staticmethod
    def _scalar(name: str, dtype: DType) -> str:
        if dtype.kind == "c":
            return f"{{{name}.re, {name}.im}}"
        if dtype == np.float16:
            return f"((union {{ uint16_t bits; _Float16 value; }}){{{name}}}).value"
        return f"{name} != 0" if dtype.kind == "b" else name

    # ---- memory --------------------------------------------------------------------------------------
    def memory(self) -> list[str]:
        """Return the lines that allocate one block for all temporaries and scratch memory."""
        layout = storage.layout(self._needs)
        if not layout.sizes:
            return []
        lines = ["  int64_t dc_end = 63;"]
        for piece, size in enumerate(layout.sizes):
            lines.append(f"  const int64_t dc_o{piece} = dc_end;")
            lines.append(
                f"  dc_end = dc_add(dc_end, dc_room({size_text(size)}, &dc_overflow), &dc_overflow);"
            )
        lines.append(f"  if (dc_overflow) return {self._status}TOO_LARGE;")
        lines.append("  char *const dc_block = malloc((size_t)dc_end);")
        lines.append(f"  if (!dc_block) return {self._status}NO_MEMORY;")
        lines.append("  const int64_t dc_start = (((int64_t)(uintptr_t)dc_block + 63) & ~(int64_t)63) - 63;")
        lines += [
            f"  const int64_t dc_t{self._label(name)} = dc_start + dc_o{piece};"
            for name, piece in layout.piece.items()
        ]
        return lines

    def end(self) -> list[str]:
        """Return the lines that end the function, with the labels to which failures jump."""
        lines = []
        if self.function.checked:
            lines.append(f"  if (dc_failed) dc_status = {self._status}FAILED_CHECK;")
        text = "\n".join(self.lines)
        if "goto dc_too_large" in text:
            lines += ["  goto dc_done;", f"dc_too_large: dc_status = {self._status}TOO_LARGE; goto dc_done;"]
        if "goto dc_no_memory" in text:
            lines += ["  goto dc_done;", f"dc_no_memory: dc_status = {self._status}NO_MEMORY; goto dc_done;"]
        if "goto" in text:
            lines.append("dc_done:;")
        if storage.layout(self._needs).sizes:
            lines.append("  free(dc_block);")
        return [*lines, "  return dc_status;", "}", ""]

    def _label(self, name: str) -> str:
        return str(list(self._declared).index(name)) if name in self._declared else name

    def _root(self, name: str) -> str:
        while name not in self.given and (base := self._declared[name].base) is not None:
            name = base
        return name

    def address(self, name: str) -> str:
        """Return a C expression for the address of an array's first element."""
        root = self._root(name)
        return f"dc_a{self.given.index(root)}" if root in self.given else f"dc_t{self._label(root)}"

    # ---- nodes ---------------------------------------------------------------------------------------
    def block(self, body: tuple[nodes.Node, ...], depth: int) -> None:
        """Print the nodes of a body."""
        for node in body:
            self.node(node, depth)

    def node(self, node: nodes.Node, depth: int) -> None:
        """Print one node."""
        match node:
            case nodes.Alloc(array, position) if depth > 1:
                size = total((*array.shape, array.dtype.itemsize))
                self._needs.append(storage.Need(array.name, size, position, position))
            case nodes.Launch(binding=binding):
                self.launch(depth, node, binding)
                if binding.then is not None:
                    self.launch(depth, node, binding.then)
            case nodes.LibraryCall(stmt):
                addresses = {name: self.address(name) for name in node.names}
                for text in matmul_text.call_text(stmt, self.region, addresses):
                    self.line(depth, text)
            case nodes.HostCall(stmt, reason=reason):
                raise Refused(reason, _place(stmt))
            case nodes.Copy(stmt):
                raise Refused("a copy between memories", _place(stmt))
            case nodes.Loop(var, bounds, body):
                with dims.ranging(var, bounds):
                    self.loop(depth, var, bounds, body)
            case nodes.While(cond, head, body):
                self.line(depth, "for (;;) {")
                self.block(head, depth + 1)
                self.line(depth + 1, f"if (!*(const uint8_t *){self.address(cond)}) break;")
                self.block(body, depth + 1)
                self.line(depth, "}")
            case nodes.Branch(cond, then, orelse):
                self.line(depth, f"if (*(const uint8_t *){self.address(cond)}) {{")
                self.block(then, depth + 1)
                self.line(depth, "} else {")
                self.block(orelse, depth + 1)
                self.line(depth, "}")

    def loop(self, depth: int, var: str, bounds: tuple[Dim, Dim, Dim], body: tuple[nodes.Node, ...]) -> None:
        """Print a loop, whose bounds are evaluated once before it."""
        start, stop, step = map(size_text, bounds)
        n = variable(var)
        self.line(depth, "{")
        self.line(depth, f"  const int64_t {n}_stop = {stop}, {n}_step = {step};")
        again = f"{n}_step > 0 ? {n} < {n}_stop : {n} > {n}_stop"
        self.line(depth, f"  for (int64_t {n} = {start}; {again}; {n} += {n}_step) {{")
        self.block(body, depth + 2)
        self.line(depth, "  }")
        self.line(depth, "}")

    def launch(self, depth: int, node: nodes.Launch, binding: Binding) -> None:
        """Print the calls of a kernel's phases, in order."""
        if all(type(extent) is int and extent <= 0 for extent in binding.extents):
            return
        prefix = self._name_of(node.kernel)
        own: list[str] = []
        pointers = []
        self.line(depth, "{")
        for slot, pointer in enumerate(binding.pointers):
            if isinstance(pointer, Pointer):
                pointers.append(self._pointer(pointer))
            else:
                pointers.append(self._scratch(depth + 1, pointer, slot, node.position, own))
        values = [*pointers, *map(size_text, binding.ints)]
        self.line(depth, f"  const int64_t dc_k[] = {{{', '.join(values) or '0'}}};")
        extents = [size_text(extent) for extent in binding.extents]
        self.line(depth, f"  const int64_t dc_x[] = {{{', '.join(extents)}}};")
        self.line(depth, "  if (dc_overflow) {")
        for name in own:
            self.line(depth, f"    free({name});")
        self.line(depth, "    goto dc_too_large;")
        self.line(depth, "  }")
        for k in range(len(extents)):
            self.line(depth, f"  {prefix}phase{k}(dc_k, 0, dc_x[{k}]);")
        for name in own:
            self.line(depth, f"  free({name});")
        self.line(depth, "}")

    def _pointer(self, pointer: Pointer) -> str:
        array = self._declared[pointer.array]
        ahead = dims.simplify(pointer.offset * array.dtype.itemsize)
        address = self.address(pointer.array)
        return address if dims.is_number(ahead, 0) else f"{address} + {size_text(ahead)}"

    def _scratch(self, depth: int, scratch: Scratch, slot: int, position: int, own: list[str]) -> str:
        size = total((scratch.size, scratch.dtype.itemsize))
        if dims.free_symbols(size) <= {symbol.name for symbol in self.region.symbols}:
            label = f"s{len(self._needs)}"
            self._needs.append(storage.Need(label, size, position, position))
            return f"dc_t{label}"
        # its size changes from one turn of a loop to the next
        name = f"dc_h{slot}"
        self.line(depth, f"void *const {name} = malloc((size_t)dc_max(64, {size_text(size)}));")
        frees = "".join(f"free({other}); " for other in own)
        self.line(depth, f"if (!{name}) {{ {frees}goto dc_no_memory; }}")
        own.append(name)
        return f"(int64_t)(uintptr_t){name}"


def _place(stmt: Any) -> str:
    """Return the file and line of a statement, or of the first statement in it that has them."""
    loc = getattr(stmt, "loc", None)
    if loc:
        return str(loc)
    for part in ("body", "then", "orelse"):
        for inner in getattr(stmt, part, ()) if isinstance(getattr(stmt, part, ()), tuple) else ():
            place = _place(inner)
            if place:
                return place
    return ""
