"""The printer of integer expressions as wires in SystemVerilog, and of the accumulators of folds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Array, Const, Expr, Gather, Iota, Load, Size, Window
from dcarray.ir.ops import const_value
from dcarray.ir.windows import walk
from dcarray.lowering.errors import Unsupported

from ..network.nodes import Buffer, Work

_BINARY = {
    "add": "+", "subtract": "-", "multiply": "*", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_OF_TRUTH = {"logical_and": "&&", "logical_or": "||"}


def width(dtype: np.dtype[Any]) -> int:
    """Return the number of bits of a value of a dtype."""
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize


def sign(dtype: np.dtype[Any]) -> str:
    """Return the word ``signed`` with a space for a signed dtype; else an empty string."""
    return "signed " if dtype.kind == "i" else ""


def place(window: Window, array: Array, index: Sequence[str] | None = None) -> str:
    """Return the index of a window's element in its buffer at the counters ``x0``, ``x1``, ..."""
    terms, offset = [], 0
    for axis in range(len(array.shape)):
        step = prod(array.shape[axis + 1 :])
        if index is not None:
            terms.append(f"64'({index[axis]}) * {step}" if step != 1 else f"64'({index[axis]})")
            continue
        ix = window.index[axis]
        offset += int(ix.offset) * step
        pace = int(ix.stride) * step
        if ix.axis is not None and pace:
            terms.append(f"32'(x{ix.axis})" + (f" * {pace}" if pace != 1 else ""))
    return " + ".join([*terms, *([str(offset)] if offset or not terms else [])])


def in_order(window: Window, array: Array) -> bool:
    """Whether a window is a whole array, axis by axis."""
    same = tuple(window.shape) == tuple(array.shape) and len(window.index) == len(window.shape)
    each = enumerate(window.index)
    return same and all((ix.offset, ix.stride, ix.axis) == (0, 1, axis) for axis, ix in each)


class Values:
    """The Verilog wires that carry the values of a statement.

    Attributes
    ----------
    last : str
        The wire of the expression that `computed` printed last.
    """

    def __init__(self, work: Work, arrays: Mapping[str, Array], port: Callable[..., str]) -> None:
        self.work, self.arrays, self.port = work, arrays, port
        self.kept, self.results = work.kept, work.results
        self.last = ""
        self.number = {line.source: n for n, line in enumerate(work.inputs)}
        self.lines = {line.source: line for line in work.inputs}
        self.taps = {tap.load: (tap.source, tap.at) for tap in work.taps}

    def points(self, folds: bool) -> Iterator[str]:
        """Yield the coordinates ``x0``, ... in the domain, or of a result while a fold sends its results."""
        shape = self.work.stmt.target.shape
        if folds and self.kept:
            for axis in self.kept:
                yield f"reg [{max(int(shape[axis]).bit_length(), 1) - 1}:0] r{axis};"
            zeros = " ".join(f"r{axis} <= 0;" for axis in self.kept)
            yield f"always @(posedge clk) if (rst) begin {zeros} end else if (moves && sending) begin"
            text = ""  # the last axis goes on first
            for axis in self.kept:
                one = f"if (r{axis} == {shape[axis] - 1}) begin r{axis} <= 0; {text}end else "
                text = f"{one}r{axis} <= r{axis} + 1; "
            yield f"  {text}"
            yield "end"
        for axis, begin in enumerate(self.work.box.first):
            here = f"32'(h{axis})" + (f" - {begin}" if begin else "")
            if folds:
                result = f"32'(r{axis})" if axis in self.kept else "0"
                here = f"sending ? {result} : {here}"
            yield f"wire signed [31:0] x{axis} = {here};"

    def computed(self, root: Expr, prefix: str) -> Iterator[str]:
        """Yield the wires of an expression's operations; afterwards `last` is the wire of its value."""
        wires: dict[Expr, str] = {}
        for node in walk(root):
            one: Any = node
            dtype: np.dtype[Any] = one.dtype
            if dtype.kind not in "iub":
                raise Unsupported(f"a circuit in Verilog computes with integers, not with {dtype.name}")
            name = f"{prefix}{len(wires)}"
            match node:
                case Load(window, _) if node in self.taps:
                    source, at = self.taps[node]
                    line = self.lines[source]
                    behind = line.lead - at
                    n = self.number[source]
                    text = f"line{n}[{line.length - 1 - behind}]" if behind else f"{source}_value"
                case Load(window, _) | Gather(window, _, _):
                    index = [wires[part] for part in node.index] if isinstance(node, Gather) else None
                    buffer = dict(self.work.held)[window.array]
                    text = yield from self.read(
                        f"{prefix}{len(wires)}", buffer, place(window, self.arrays[window.array], index)
                    )
                case Const():
                    bits = int.from_bytes(const_value(node).tobytes(), "little")
                    text = f"{width(dtype)}'h{bits:x}"
                case Size(dim, _):
                    text = f"{width(dtype)}'h{int(dim) & ((1 << width(dtype)) - 1):x}"
                case Iota(axis, _):
                    text = f"x{axis}"
                case Apply(op, args, _):
                    text = apply(op, [wires[arg] for arg in args], [arg.dtype for arg in args], dtype)
                case _:
                    raise AssertionError(node)
            wires[node] = name
            yield f"wire {sign(dtype)}[{width(dtype) - 1}:0] {name} = {text};"
        self.last = wires[root]

    def read(self, name: str, buffer: Buffer, at: str) -> Generator[str, None, str]:
        """Yield the address of a read of memory; return the expression of the value read."""
        port = self.port(name, buffer)
        yield f"assign {port}_addr = 32'({at});"
        return f"{port}_data"

    def accumulated(self, value: str) -> Iterator[str]:
        """Yield the accumulators of a fold, in which ``so_far`` is the present result at the point."""
        stmt = self.work.stmt
        dtype = self.arrays[stmt.target.array].dtype
        kind = f"{sign(dtype)}[{width(dtype) - 1}:0]"
        if self.work.start is not None:
            at = place(stmt.target, self.arrays[stmt.target.array])
            begin = yield from self.read("start", self.work.start, at)
        else:
            assert stmt.init is not None
            yield from self.computed(stmt.init, "s")
            begin = self.last
        spot = "0"
        for axis in self.kept:
            spot = f"({spot} * {stmt.target.shape[axis]} + x{axis})"
        bits = max((self.results - 1).bit_length(), 1)
        yield f"reg {kind} acc [0:{self.results - 1}];"
        yield f"reg [{self.results - 1}:0] seen;"
        yield f"wire [{bits - 1}:0] spot = {bits}'({spot});"
        yield f"wire {kind} begun = {begin};"
        yield f"wire {kind} so_far = seen[spot] ? acc[spot] : begun;"
        assert stmt.combine is not None
        joined = apply(stmt.combine, ["so_far", value], [dtype, dtype], dtype)
        yield f"wire {kind} joined = {joined};"
        yield "always @(posedge clk)"
        yield "  if (rst) seen <= 0;"
        yield "  else if (moves && here) begin acc[spot] <= joined; seen[spot] <= 1; end"


def apply(op: str, args: Sequence[str], dtypes: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> str:
    """Return the expression of an operation on wires.

    Raises
    ------
    Unsupported
        If there is no circuit for the operation.
    """
    truth = [f"({arg} != 0)" for arg in args]
    one, two = args[0], args[1] if len(args) > 1 else ""
    if op in _OF_TRUTH:
        return f"{truth[0]} {_OF_TRUTH[op]} {truth[1]}"
    if op == "logical_xor":
        return f"{truth[0]} != {truth[1]}"
    if op == "logical_not":
        return f"{one} == 0"
    if op == "cast":
        return truth[0] if dtype.kind == "b" else one
    if op == "where":
        return f"{truth[0]} ? {args[1]} : {args[2]}"
    if len({(d.kind, d.itemsize) for d in dtypes}) > 1:
        raise Unsupported(f"{op} of {' and '.join(d.name for d in dtypes)} is not known in Verilog")
    if dtypes[0].kind == "b" and op in ("add", "multiply", "maximum", "minimum"):
        return f"{one} {'|' if op in ('add', 'maximum') else '&'} {two}"
    if op in _BINARY:
        return f"{one} {_BINARY[op]} {two}"
    match op:
        case "maximum" | "fmax":
            return f"{one} > {two} ? {one} : {two}"
        case "minimum" | "fmin":
            return f"{one} < {two} ? {one} : {two}"
        case "negative":
            return f"-{one}"
        case "positive" | "conjugate" | "real" | "floor" | "ceil" | "trunc" | "rint":
            return one
        case "invert":
            return f"~{one}"
        case "square":
            return f"{one} * {one}"
        case "absolute":
            return f"{one} < 0 ? -{one} : {one}" if dtypes[0].kind == "i" else one
        case "sign":
            up = f"{one} > 0 ? {width(dtype)}'sd1 : {width(dtype)}'sd0"
            return f"{one} < 0 ? -{width(dtype)}'sd1 : {up}" if dtypes[0].kind == "i" else f"{one} != 0"
        case "left_shift" | "right_shift" | "floor_divide" | "remainder" | "fmod" if dtypes[0].kind in "iu":
            return _by(op, one, two, width(dtype), dtype.kind == "i")
    raise Unsupported(f"{op} of {dtypes[0].name} is not known in Verilog")


def _by(op: str, a: str, b: str, bits: int, signed: bool) -> str:
    """Return the expression of a shift, division or remainder with NumPy's results for all operands."""
    s = "s" if signed else ""
    zero, one = f"{bits}'{s}d0", f"{bits}'{s}d1"
    if op == "left_shift":
        return f"$unsigned({b}) < {bits} ? {a} << {b} : {zero}"
    if op == "right_shift":
        return f"$unsigned({b}) < {bits} ? {a} >>> {b} : {f'({a} < 0 ? -{one} : {zero})' if signed else zero}"
    if op == "fmod":
        return f"{b} == 0{f' || {b} == -1' if signed else ''} ? {zero} : {a} % {b}"
    if not signed:
        return f"{b} == 0 ? {zero} : {a} {'/' if op == 'floor_divide' else '%'} {b}"
    # Verilog rounds to 0; what is not exact and negative is one less
    lower = f"({a} % {b} != 0 && ({a} < 0) != ({b} < 0))"
    if op == "floor_divide":
        return f"{b} == 0 ? {zero} : {b} == -1 ? -{a} : {lower} ? {a} / {b} - {one} : {a} / {b}"
    return f"{b} == 0 || {b} == -1 ? {zero} : {lower} ? {a} % {b} + {b} : {a} % {b}"
