"""The parser of the text form of regions, which the module ``text`` describes."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from .dims import simplify, symbol
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
    Symbol,
    TimeTiles,
    While,
    Window,
)
from .ops import OPS, const, loop_dtype
from .relations import compare
from .tokens import ParseError, Scanner
from .windows import identity

DTYPES: dict[str, np.dtype[Any]] = {"bool": np.dtype(np.bool_)}
for _kind, _sizes in (("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)), ("f", (2, 4, 8)), ("c", (8, 16))):
    for _size in _sizes:
        DTYPES[f"{_kind}{8 * _size}"] = np.dtype(f"{_kind}{_size}")

#: Words that cannot be the name of an array, a symbol or a loop variable.
RESERVED = frozenset(
    ["region", "in", "out", "inout", "temp", "for", "while", "if", "else", "nest", "rows", "tiles"]
    + ["call", "with", "init", "parallel", "function"]
)


def parse(text: str) -> Region:
    """Return the region that a text describes; raise `ParseError` if it describes none."""
    return _Parser(text).region()


class _Parser(Scanner):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.arrays: dict[str, Array] = {}
        self.shape: tuple[Dim, ...] = ()
        self.lets: dict[str, Expr] = {}

    # ---- region and declarations --------------------------------------------------------------------
    def region(self) -> Region:
        self.lines()
        self.need("region")
        self.need("(")
        symbols = self.list(")", self.symbol)
        guards: list[Any] = []
        if self.take("where"):
            guards.append(self.relation())
            while self.take(","):
                guards.append(self.relation())
        self.need("{")
        self.lines()
        self.declarations()
        arrays, functions = self.arrays, []
        while self.take("function"):
            name = self.name()
            self.need("{")
            self.arrays = {}
            self.lines()
            self.declarations()
            body = self.body()
            functions.append((name, Region(symbols, tuple(self.arrays.values()), body)))
            self.lines()
        self.arrays = arrays
        body = self.body()
        self.lines()
        if self.kind != "end":
            raise self.fail("the end")
        return Region(symbols, tuple(self.arrays.values()), body, tuple(guards), tuple(functions))

    def declarations(self) -> None:
        while self.word in ("in", "out", "inout", "temp"):
            array = self.declaration()
            self.arrays[array.name] = array
            self.lines()

    def symbol(self) -> Symbol:
        name = self.name()
        for word in (":", "int", ">="):
            self.need(word)
        minimum = self.dim()
        self.symbols[name] = symbol(name, minimum)
        return Symbol(name, minimum)

    def relation(self) -> Any:
        left = self.dim()
        if self.word not in ("==", "!=", "<=", "<", ">=", ">"):
            raise self.fail("a comparison")
        return compare(self.next(), left, self.dim())

    def declaration(self) -> Array:
        role: Any = self.next()
        name = self.name()
        self.need(":")
        dtype = self.dtype()
        self.need("[")
        shape = self.list("]", self.dim)
        strides = base = layout = None
        place = "host"
        if self.take("strides"):
            self.need("[")
            strides = self.list("]", self.dim)
        if self.take("base"):
            base = self.name()
        if self.take("at"):
            place = self.literal()
        if self.take("layout"):
            layout = self.literal()
        return Array(name, dtype, shape, role, strides, place, layout, base)

    def dtype(self) -> np.dtype[Any]:
        if self.word not in DTYPES:
            raise self.fail("a dtype")
        return DTYPES[self.next()]

    # ---- statements ---------------------------------------------------------------------------------
    def body(self) -> tuple[Stmt, ...]:
        """Read statements up to and including the closing brace."""
        stmts: list[Stmt] = []
        self.lines()
        while not self.take("}"):
            stmts.append(self.stmt())
            self.lines()
        return tuple(stmts)

    def stmt(self) -> Stmt:
        if self.take("nest"):
            self.need("{")
            body: Any = self.body()
            return Nest(body)
        if self.take("rows"):
            axes = self.next()
            self.need("{")
            body = self.body()
            return Rows(body, int(axes))
        if self.take("tiles"):
            tile = self.next()
            for word in ("in", "bands", "of"):
                self.need(word)
            height = self.next()
            self.need("{")
            body = self.body()
            return TimeTiles(body, int(height), int(tile))
        if self.take("parallel"):
            self.need("for")
            return self.loop(True)
        if self.take("for"):
            return self.loop(False)
        if self.take("while"):
            cond = self.condition()
            return While(cond, self.body())
        if self.take("if"):
            cond = self.condition()
            then = self.body()
            if not self.take("else"):
                return Branch(cond, then)
            self.need("{")
            return Branch(cond, then, self.body())
        if self.take("call"):
            return self.call()
        return self.compute()

    def loop(self, parallel: bool) -> Loop:
        var = self.name()
        for word in ("in", "range", "("):
            self.need(word)
        bounds: Any = self.list(")", self.dim)
        if len(bounds) != 3:
            raise self.fail("range(start, stop, step)")
        outer = self.symbols.get(var)
        self.symbols[var] = symbol(var, None)
        self.need("{")
        body = self.body()
        del self.symbols[var]
        if outer is not None:
            self.symbols[var] = outer
        return Loop(var, bounds, body, parallel)

    def condition(self) -> Expr:
        self.axes, self.shape = {}, ()
        cond, *_ = self.value_and_init("{")
        return cond

    def compute(self) -> Compute:
        start = self.at
        self.domain(self.find("for"))
        rest = self.at
        self.at = start
        target = self.window(self.name())
        scan = self.axes[self.name()] if self.take("scan") else None
        combine = None if self.word == "=" else self.name()
        self.need("=")
        body, init = self.value_and_init(None)
        self.at = rest
        return Compute(target, body, combine, init, scan=scan)

    def value_and_init(self, close: str | None) -> tuple[Expr, Expr | None]:
        """Read ``expr [init expr] [with ...]`` and the closing word: the definitions after ``with`` come
        first."""
        start = self.at
        self.lets = {}
        end = None
        if (at := self.find("with", "{", "for")) is not None and self.tokens[at].text == "with":
            self.at = at + 1
            while True:
                name = self.name()
                self.need("=")
                self.lets[name] = self.expr()
                if not self.take(","):
                    break
            end = self.at
            self.at = start
        value = self.expr()
        init = self.expr() if self.take("init") else None
        if end is not None:
            self.need("with")
            self.at = end
        if close is not None:
            self.need(close)
        return value, init

    def find(self, *words: str) -> int | None:
        """Return the position of the first of ``words`` in the rest of this line, outside of brackets."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            kind, text, _ = self.tokens[at]
            if kind == "string":
                continue
            if depth == 0 and text in words:
                return at
            if kind in ("line", "end") or text == ";":
                return None
            depth += (text in ("(", "[")) - (text in (")", "]"))
        return None

    def domain(self, at: int | None) -> None:
        """Read ``for i<N, j<M`` here; without it the domain is one point."""
        self.axes = {}
        shape: list[Dim] = []
        if at is None:
            while self.kind not in ("line", "end") and self.word not in (";", "}"):
                self.at += 1
        else:
            self.at = at + 1
            while True:
                self.axes[self.name()] = len(shape)
                self.need("<")
                shape.append(self.dim())
                if not self.take(","):
                    break
        self.shape = tuple(shape)

    def call(self) -> Call:
        op = self.name()
        self.need("(")
        reads = self.list(")", self.operand)
        writes = [self.operand()] if self.take("->") else []
        while writes and self.take(","):
            writes.append(self.operand())
        attrs = self.list("}", self.attribute) if self.take("{") else ()
        return Call(op, reads, tuple(writes), attrs)

    def attribute(self) -> tuple[str, Any]:
        key = self.name()
        self.need(":")
        return key, self.literal()

    def operand(self) -> Window:
        name = self.name()
        if self.word != "[":
            return identity(self.array(name))
        start = self.at
        depth, at = 0, start
        while True:  # the domain stands inside the brackets, at the end
            text = self.tokens[at].text
            if text == "for" and depth == 1:
                break
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if depth == 0 or self.tokens[at].kind == "end":
                break
            at += 1
        self.axes, self.shape = {}, ()
        if self.tokens[at].text == "for":
            self.domain(at)
            end = self.at
            self.at = start
            window = self.window(name, "for")
            self.at = end
            self.need("]")
            return window
        return self.window(name)

    # ---- windows and dimensions ---------------------------------------------------------------------
    def array(self, name: str) -> Array:
        if name not in self.arrays:
            raise ParseError(f"line {self.tokens[self.at].line}: no array {name!r} is declared")
        return self.arrays[name]

    def window(self, name: str, close: str = "]") -> Window:
        self.array(name)
        self.need("[")
        index: list[Index] = []
        while not self.take(close):
            if index:
                self.need(",")
            lin = self.sum()
            index.append(Index(simplify(lin.const), simplify(lin.stride), lin.axis))
        return Window(name, self.shape, tuple(index))

    # ---- expressions --------------------------------------------------------------------------------
    def expr(self) -> Expr:
        if self.kind == "number" or self.word in ("-", "inf", "nan", "true", "false"):
            text = self.number()
            if text in ("true", "false"):
                return const(text == "true", np.bool_)
            return (
                const(int(text), np.int64) if text.lstrip("-").isdigit() else const(float(text), np.float64)
            )
        name = self.name()
        if name.startswith("$"):
            if name not in self.lets:
                raise ParseError(f"line {self.tokens[self.at].line}: {name} is not defined before its use")
            return self.lets[name]
        if self.word == "[":
            return Load(self.window(name), self.array(name).dtype)
        dtype = self.dtype() if self.take(":") else None
        self.need("(")
        return self.applied(name, dtype)

    def applied(self, name: str, dtype: np.dtype[Any] | None) -> Expr:
        if name in DTYPES:
            return _number(DTYPES[name], self.list(")", self.number))
        if name == "bits" and dtype is not None:
            (digits,) = self.list(")", self.next)
            return Const(bytes.fromhex(digits[2:])[::-1], dtype)
        if name == "size":
            (dim,) = self.list(")", self.dim)
            return Size(dim, dtype or np.dtype(np.int64))
        if name == "iota":
            (axis,) = self.list(")", self.name)
            return Iota(self.axes[axis], dtype or np.dtype(np.int64))
        if name == "gather":
            array = self.array(self.name())
            self.take(",")
            index = self.list(")", self.expr)
            return Gather(Window(array.name, self.shape, ()), index, array.dtype)
        if name not in OPS:
            raise ParseError(f"line {self.tokens[self.at].line}: no operation {name!r}")
        args = self.list(")", self.expr)
        dtype = dtype or loop_dtype(name, tuple(a.dtype for a in args))
        if dtype is None:
            given = ", ".join(str(a.dtype) for a in args)
            raise ParseError(f"line {self.tokens[self.at].line}: {name} has no loop for ({given})")
        return Apply(name, args, dtype)

    def number(self) -> str:
        sign = "-" if self.take("-") else ""
        if self.kind != "number" and self.word not in ("inf", "nan", "true", "false"):
            raise self.fail("a number")
        return sign + self.next()

    def literal(self) -> Any:
        if self.take("("):
            return self.list(")", self.literal)
        if self.kind == "string":
            return ast.literal_eval(self.next())
        if self.word in ("True", "False", "None"):
            return {"True": True, "False": False, "None": None}[self.next()]
        if self.take("dim"):
            self.need("(")
            (dim,) = self.list(")", self.dim)
            return dim
        text = self.number()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def _number(dtype: np.dtype[Any], parts: tuple[str, ...]) -> Const:
    if dtype.kind == "c":
        return const(complex(float(parts[0]), float(parts[1])), dtype)
    if dtype.kind == "b":
        return const(parts[0] == "true", dtype)
    return const(int(parts[0]) if dtype.kind in "iu" else dtype.type(parts[0]), dtype)
