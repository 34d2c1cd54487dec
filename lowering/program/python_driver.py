"""The driver of a program: a Python function, written as text, that lays out memory and runs the steps.

Values known when the plan is made are numbers in the text; those that depend on symbols or loop variables are
expressions of these.  So a run costs little more than the launches themselves.

::

    def run(_arrays, _addresses, _symbols=(), threads=0, _minded=0):
        _threads = threads or 2
        _a0, _a1, = _addresses
        N, = _symbols
        _hold, _base = _allocate(((N*8 + 1151 & -64) + 63,), _u8)
        _start = _base + 63 & -64
        _t0 = _start
        _flags = 0
        _flags |= _k0(_p0(N, 3, _a0 + 8, _t0, N), _threads)
        ...
        return _flags
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dcarray.ir import dims
from dcarray.lowering.kernel.nodes import Binding, Pointer, Scratch
from dcarray.lowering.nest.access import total
from dcarray.lowering.runtime.numpy_loops import Address

from . import nodes, storage


class Driver(NamedTuple):
    """The text of a driver, the objects that it calls by name, and whether it consists of a single launch."""

    text: str
    things: dict[str, Any]
    single: bool


def printed(program: nodes.Program, threads: int, fresh: bool = False) -> Driver:
    """Return the driver of a program.

    Parameters
    ----------
    program : Program
    threads : int
        The default number of threads of a run.
    fresh : bool
        Whether arrays of the role ``out`` are new memory, which temporaries may use beforehand.
    """
    printer = _Printer(program, fresh)
    printer.block(program.body, 1)
    return Driver(printer.finish(threads), printer.things, printer.single)


class _Printer:
    """The printer that writes a driver node by node; ``depth`` is always the depth of indentation."""

    def __init__(self, program: nodes.Program, fresh: bool) -> None:
        self.region, self.given = program.region, program.given
        self.variables = [symbol.name for symbol in self.region.symbols]  # with those of the loops around
        self._declared = {array.name: array for array in self.region.arrays}
        self._needs = storage.needs(program.body)
        self._hosts = storage.hosts(self.region, self._needs) if fresh else {}
        self._lines: list[str] = []
        self._launches: dict[int, tuple[str, str, tuple[Any, ...]]] = {}  # by line: what, its arguments
        self.things: dict[str, Any] = {}  # what the text calls by name: launches, steps, dtypes, addresses

    def line(self, depth: int, text: str) -> None:
        """Write a line."""
        self._lines.append("    " * depth + text)

    # ---- nodes --------------------------------------------------------------------------------------
    def block(self, body: tuple[nodes.Node, ...], depth: int) -> None:
        """Write the nodes of a body."""
        for node in body:
            self.node(node, depth)

    def node(self, node: nodes.Node, depth: int) -> None:
        """Write one node."""
        match node:
            case nodes.Alloc(array, position) if depth > 1:  # the others are known from the start
                size = total((*array.shape, array.dtype.itemsize))
                self._needs.append(storage.Need(array.name, size, position, position))
            case nodes.Launch(binding=binding):
                self.launch(depth, node, binding)
                if binding.then is not None:
                    self.launch(depth, node, binding.then)
            case nodes.Copy() | nodes.LibraryCall() | nodes.HostCall():
                self.call(depth, node.call, node.names)
            case nodes.Stop():
                self.line(depth, "if _flags & _minded: return _flags")
            case nodes.Loop():
                self.loop(depth, node)
            case nodes.While(cond, head, body):
                self.line(depth, "while True:")
                self.block(head, depth + 1)
                self.line(depth + 1, f"if not _byte({self.address(cond)}): break")
                self.line(depth + 1, "pass")
                self.block(body, depth + 1)
            case nodes.Branch(cond, then, orelse):
                for text, part in ((f"if _byte({self.address(cond)}):", then), ("else:", orelse)):
                    self.line(depth, text)
                    self.line(depth + 1, "pass")
                    self.block(part, depth + 1)

    def launch(self, depth: int, node: nodes.Launch, binding: Binding) -> None:
        """Write the launch of a kernel."""
        number = len(self.things)
        numbers = [n for pair in zip(binding.extents, binding.work, strict=True) for n in pair]
        if all(type(extent) is int and extent <= 0 for extent in binding.extents):
            return
        pointers = []
        for slot, pointer in enumerate(binding.pointers):
            if isinstance(pointer, Pointer):
                pointers.append(self._pointer(pointer))
            else:
                pointers.append(self._scratch(depth, pointer, f"{number}_{slot}", node.position))
        self.things[f"_k{number}"] = node.loaded
        arguments = [*map(dims.show, numbers), *pointers, *map(self._integer, binding.ints)]
        ahead = (pointer.offset for pointer in binding.pointers if isinstance(pointer, Pointer))
        call = f"_p{number}({', '.join(arguments)})"
        self._launches[len(self._lines)] = f"_k{number}", call, (*numbers, *binding.ints, *ahead)
        self.line(depth, f"_flags |= _k{number}({call}, _threads)")

    def _integer(self, value: Any) -> str:
        """Return the text of an integer argument; an address that differs between processes gets a name."""
        if not isinstance(value, Address):
            return dims.show(value)
        name = f"_l{len(self.things)}"
        self.things[name] = value
        return name

    def _pointer(self, pointer: Pointer) -> str:
        array = self._declared[pointer.array]
        ahead = dims.simplify(pointer.offset * array.dtype.itemsize)
        address = self.address(pointer.array)
        return address if type(ahead) is int and ahead == 0 else f"{address} + {dims.show(ahead)}"

    def _scratch(self, depth: int, scratch: Scratch, label: str, position: int) -> str:
        size = total((scratch.size, scratch.dtype.itemsize))
        if dims.free_symbols(size) <= {symbol.name for symbol in self.region.symbols}:
            self._needs.append(storage.Need(label, size, position, position))
            return f"_t{label}"
        # Its size changes from one turn of a loop to the next.
        self.line(depth, f"_h{label}, _t{label} = _allocate(({dims.show(size)},), _u8)")
        return f"_t{label}"

    def call(self, depth: int, step: Callable[..., int], names: Sequence[str]) -> None:
        """Write the call of a step with ndarrays and the values of symbols and loop variables."""
        number = len(self.things)
        self.things[f"_s{number}"] = step
        arrays = "".join(f"{self._array(name, number)}, " for name in names)
        values = ", ".join(f"{name!r}: {name}" for name in self.variables)
        self.line(depth, f"_flags |= _s{number}(({arrays}), {{{values}}}, _threads)")

    def loop(self, depth: int, node: nodes.Loop) -> None:
        """Write a loop; if it contains only launches whose arguments are linear, native code runs it."""
        var, bounds = node.var, node.bounds
        start, stop, step = map(dims.show, bounds)
        first = len(self._lines)
        self.line(depth, f"for {var} in range({start}, {stop}, {step}):")
        self.variables.append(var)
        with dims.ranging(var, bounds):
            self.line(depth + 1, "pass")
            self.block(node.body, depth + 1)
        self.variables.remove(var)
        body = [n for n in range(first + 1, len(self._lines)) if self._lines[n].strip() != "pass"]
        if body and all(number in self._launches and self._linear(number, var) for number in body):
            launches = [self._launches.pop(number) for number in body]
            del self._lines[first:]
            calls = ", ".join(f"({name}, lambda {var}: {call})" for name, call, _ in launches)
            self.line(depth, f"_flags |= _repeat(range({start}, {stop}, {step}), _threads, {calls})")

    def _linear(self, number: int, var: str) -> bool:
        """Whether the arguments of launch ``number`` are linear in a loop's variable."""
        try:
            for value in self._launches[number][2]:
                dims.linear(value, (var,))
        except ValueError:
            return False
        return True

    # ---- where things are -----------------------------------------------------------------------------
    def _root(self, name: str) -> str:
        while name not in self.given and (base := self._declared[name].base) is not None:
            name = base
        return name

    def address(self, name: str) -> str:
        """Return the text of the address of an array's first element."""
        root = self._root(name)
        root = self._hosts.get(root, root)
        return f"_a{self.given.index(root)}" if root in self.given else f"_t{self._label(root)}"

    def _label(self, name: str) -> str:
        return str(list(self._declared).index(name)) if name in self._declared else name

    def _array(self, name: str, number: int) -> str:
        """Return the text of an array as an ndarray."""
        array, root = self._declared[name], self._root(name)
        if name in self.given:
            return f"_arrays[{self.given.index(name)}]"
        dtype = f"_d{number}_{self._label(name)}"
        self.things[dtype] = array.dtype
        shape = "".join(f"{dims.show(extent)}, " for extent in array.shape)
        root = self._hosts.get(root, root)
        if root in self.given:
            return f"_view(_arrays[{self.given.index(root)}], 0, ({shape}), {dtype})"
        return f"_view(_hold, _t{self._label(root)} - _base, ({shape}), {dtype})"

    @property
    def single(self) -> bool:
        """Whether the driver consists of a single launch."""
        return len(self._launches) == len(self._lines) == 1

    def _memory(self) -> list[str]:
        """Return the lines that allocate one block for all temporaries and scratch memory."""
        layout = storage.layout([need for need in self._needs if need.name not in self._hosts])
        if not layout.sizes:
            return []
        lines: list[str] = []
        offsets: dict[int, str] = {}
        end: int | str = 0
        # Each piece is whole cache lines; a large one has a gap after it, so that they do not start alike.
        for piece, size in sorted(enumerate(layout.sizes), key=lambda item: type(item[1]) is not int):
            if type(size) is int and type(end) is int:
                offsets[piece] = f" + {end}" if end else ""
                end += (size + 63 & -64) + (1088 if size >= 4096 else 0)
            else:
                lines.append(f"_o{piece} = {end}")
                offsets[piece] = f" + _o{piece}"
                end = f"_o{piece} + ({dims.show(size)} + 1151 & -64)"
        lines += [f"_hold, _base = _allocate(({end} + 63,), _u8)", "_start = _base + 63 & -64"]
        lines += [f"_t{self._label(name)} = _start{offsets[piece]}" for name, piece in layout.piece.items()]
        return lines

    def finish(self, threads: int) -> str:
        """Return the text of the driver."""
        head = [f"_threads = threads or {threads}"]
        if self.given:
            head.append("".join(f"_a{k}, " for k in range(len(self.given))) + "= _addresses")
        if self.region.symbols:
            head.append("".join(f"{symbol.name}, " for symbol in self.region.symbols) + "= _symbols")
        head += [*self._memory(), "_flags = 0"]
        first = "def run(_arrays, _addresses, _symbols=(), threads=0, _minded=0):"
        lines = [first, *("    " + line for line in head)]
        return "\n".join([*lines, *self._lines, "    return _flags", ""])
