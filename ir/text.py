"""The text form of a region: canonical and complete, so that ``parse(dump(region)) == region``.

::

    region(N: int>=3) {
      in A: f64[N, N];  temp t: f64[N-2, N-2];  out s: f64[N]
      t[i,j] = multiply(0.25, add(A[i,j+1], A[i+2,j+1])) for i<N-2, j<N-2
      s[i] add= A[i,j] init 0.0 for i<N, j<N
    }

The names of a domain's axes are local to a statement.  A plain number is an int64 or float64 constant,
others say their dtype: ``f32(0.5)``.  So do operations whose result does not follow from their
arguments: ``cast:f32(x)``.  What is used more than once in a statement is written once, after ``with``.
Only ``loc`` and the hints of symbols, which are no part of equality, are not written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dims import show
from .integers import Expression
from .nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Const,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Nest,
    Region,
    Rows,
    Size,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from .ops import const, const_value, has_loop
from .parse import DTYPES, parse
from .statements import loop_variables
from .tokens import ParseError
from .windows import children, identity, walk

__all__ = ["ParseError", "axis_names", "dtype_name", "dump", "parse", "show_expr", "show_stmt", "show_window"]

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_WIDTH = 100  # of the lines of declarations
_DEPTH = 30  # what nests deeper is written after ``with``


def dump(region: Region) -> str:
    """Return a region as text."""
    return _Printer(region).region()


def show_stmt(stmt: Stmt, region: Region) -> str:
    """Return one statement of ``region`` as text."""
    printer = _Printer(region)
    printer.stmt(stmt, "")
    return "\n".join(printer.lines)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the short name of a dtype: ``f64`` for float64, ``u8`` for uint8."""
    return _NAMES.get(dtype) or dtype.name


def axis_names(region: Region, count: int) -> list[str]:
    """Return names of a domain's axes that are not used in the region."""
    taken = {s.name for s in region.symbols} | {a.name for a in region.arrays} | loop_variables(region.body)
    names: list[str] = []
    candidates = [*"ijklmn", *(f"i{k}" for k in range(6, 6 + count + len(taken)))]
    for name in candidates:
        if len(names) < count and name not in taken:
            names.append(name)
    return names


def show_expr(expr: Expr, axes: list[str]) -> str:
    """Return an expression as text, with the given names of the domain's axes."""
    (body,), lets = _show(axes, expr)
    return body + _lets(lets)


def show_window(window: Window, axes: list[str]) -> str:
    """Return a window as text, with the given names of the domain's axes."""
    return f"{window.array}[{','.join(_index(ix, axes) for ix in window.index)}]"


class _Printer:
    def __init__(self, source: Region) -> None:
        self.source = source
        self.whole = {array.name: identity(array) for array in source.arrays}
        self.lines: list[str] = []

    def region(self) -> str:
        symbols = ", ".join(f"{s.name}: int>={s.minimum}" for s in self.source.symbols)
        guards = ", ".join(show(g) for g in self.source.guards)
        self.lines.append(f"region({symbols}){' where ' + guards if guards else ''} {{")
        line = ""
        for array in self.source.arrays:
            text = _declaration(array)
            if line and len(line) + len(text) > _WIDTH:
                self.lines.append(line)
                line = ""
            line = f"{line};  {text}" if line else "  " + text
        if line:
            self.lines.append(line)
        for name, function in self.source.functions:
            _, *lines, _, _ = dump(function).split("\n")
            self.lines += [f"  function {name} {{", *["  " + line for line in lines], "  }"]
        self.body(self.source.body, "  ")
        return "\n".join([*self.lines, "}\n"])

    def body(self, body: tuple[Stmt, ...], indent: str) -> None:
        for stmt in body:
            self.stmt(stmt, indent)

    def stmt(self, stmt: Stmt, indent: str) -> None:
        match stmt:
            case Compute():
                self.lines.append(indent + self.compute(stmt))
                return
            case Call():
                self.lines.append(indent + self.call(stmt))
                return
            case Nest(body):
                head = "nest"
            case Rows(body, axes):
                head = f"rows {axes}"
            case TimeTiles(body, height, tile):
                head = f"tiles {tile} in bands of {height}"
            case Loop(var, bounds, body, parallel):
                head = f"for {var} in range({', '.join(show(d) for d in bounds)})"
                head = "parallel " + head if parallel else head
            case While(cond, body):
                head = "while " + show_expr(cond, [])
            case Branch(cond, body, orelse):
                head = "if " + show_expr(cond, [])
        self.lines.append(f"{indent}{head} {{")
        self.body(body, indent + "  ")
        if isinstance(stmt, Branch) and orelse:
            self.lines.append(indent + "} else {")
            self.body(orelse, indent + "  ")
        self.lines.append(indent + "}")

    def compute(self, stmt: Compute) -> str:
        shape = stmt.target.shape
        axes = axis_names(self.source, len(shape))
        texts, lets = _show(axes, *stmt.exprs)
        init = "" if stmt.init is None else " init " + texts[1]
        assign = "=" if stmt.combine is None else stmt.combine + "="
        assign = assign if stmt.scan is None else f"scan {axes[stmt.scan]} {assign}"
        return (
            f"{show_window(stmt.target, axes)} {assign} {texts[0]}{init}{_lets(lets)}{_domain(axes, shape)}"
        )

    def call(self, stmt: Call) -> str:
        reads = ", ".join(self.operand(w) for w in stmt.reads)
        writes = ", ".join(self.operand(w) for w in stmt.writes)
        attrs = ", ".join(f"{key}: {_literal(value)}" for key, value in stmt.attrs)
        into = f" -> {writes}" if writes else ""
        return f"call {stmt.op}({reads}){into}" + (f" {{{attrs}}}" if attrs else "")

    def operand(self, window: Window) -> str:
        if window == self.whole.get(window.array):
            return window.array
        axes = axis_names(self.source, len(window.shape))
        inner = ",".join(_index(ix, axes) for ix in window.index)
        return f"{window.array}[{inner}{_domain(axes, window.shape)}]"


def _declaration(array: Array) -> str:
    text = f"{array.role} {array.name}: {dtype_name(array.dtype)}[{', '.join(show(n) for n in array.shape)}]"
    if array.strides is not None:
        text += f" strides[{', '.join(show(n) for n in array.strides)}]"
    if array.base is not None:
        text += f" base {array.base}"
    if array.place != "host":
        text += f" at {_literal(array.place)}"
    if array.layout is not None:
        text += f" layout {_literal(array.layout)}"
    return text


def _domain(axes: list[str], shape: tuple[Dim, ...]) -> str:
    if not shape:
        return ""
    return " for " + ", ".join(f"{axis}<{show(n)}" for axis, n in zip(axes, shape, strict=True))


def _index(ix: Index, axes: list[str]) -> str:
    if ix.axis is None:
        return show(ix.offset)
    axis, stride = axes[ix.axis], show(ix.stride)
    if stride in ("1", "-1"):
        text = stride[:-1] + axis
    else:
        text = f"{stride}*{axis}" if stride.lstrip("-").isalnum() else f"({stride})*{axis}"
    offset = show(ix.offset)
    if offset == "0":
        return text
    return text + (offset if offset.startswith("-") else "+" + offset)


def _lets(lets: list[str]) -> str:
    return " with " + ", ".join(f"${k} = {text}" for k, text in enumerate(lets)) if lets else ""


def _show(axes: list[str], *roots: Expr) -> tuple[list[str], list[str]]:
    """Return the texts of the expressions, and the definitions of the shared parts ``$0``, ``$1``... in
    them."""
    nodes = walk(*roots)
    uses = dict.fromkeys(nodes, 0)
    for node in nodes:
        for child in children(node):
            uses[child] += 1
    for root in roots:
        uses[root] += 1
    texts: dict[Expr, str] = {}
    depth: dict[Expr, int] = {}
    lets: list[str] = []
    for node in nodes:
        below = children(node)
        texts[node] = _node(node, [texts[child] for child in below], axes)
        depth[node] = 1 + max((depth[child] for child in below), default=0)
        if isinstance(node, Apply | Gather) and (uses[node] > 1 or depth[node] > _DEPTH):
            lets.append(texts[node])
            texts[node] = f"${len(lets) - 1}"
            depth[node] = 0
    return [texts[root] for root in roots], lets


def _node(node: Expr, args: list[str], axes: list[str]) -> str:
    match node:
        case Load(window, _):
            return show_window(window, axes)
        case Const():
            return _const(node)
        case Size(dim, dtype):
            return f"size{_suffix(dtype)}({show(dim)})"
        case Iota(axis, dtype):
            return f"iota{_suffix(dtype)}({axes[axis]})"
        case Gather(window, _, _):
            return f"gather({', '.join([window.array, *args])})"
        case Apply(op, below, dtype):
            inner: Any = below
            follows = has_loop(op, tuple(a.dtype for a in inner), dtype)
            return f"{op}{'' if follows else ':' + dtype_name(dtype)}({', '.join(args)})"
    raise TypeError(f"not an expression: {node!r}")


def _suffix(dtype: np.dtype[Any]) -> str:
    return "" if dtype == np.int64 else ":" + dtype_name(dtype)


def _const(node: Const) -> str:
    value, name = const_value(node), dtype_name(node.dtype)
    kind = node.dtype.kind
    if kind == "b":
        return "true" if value else "false"
    parts = [value.real, value.imag] if kind == "c" else [value]
    texts = [str(int(p)) if kind in "iu" else _float(p) for p in parts]
    exact = const(complex(*map(float, texts)) if kind == "c" else value.dtype.type(texts[0]), node.dtype)
    if exact is not node:  # a NaN with a payload
        return f"bits:{name}(0x{node.bits[::-1].hex()})"
    return texts[0] if name in ("i64", "f64") else f"{name}({', '.join(texts)})"


def _float(value: Any) -> str:
    """Return the shortest text that reads back as ``value`` and is no integer."""
    text = str(value)
    return text if any(c in text for c in ".ena") else text + ".0"


def _literal(value: Any) -> str:
    """Return the text of an attribute's value: Python literals, and dimensions."""
    if isinstance(value, tuple):
        return f"({', '.join(_literal(v) for v in value)}{',' if len(value) == 1 else ''})"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Expression):
        return f"dim({show(value)})"
    raise TypeError(f"an attribute cannot be {value!r}")
