"""Random sequences of statements that have rows, and rows taken one by one."""

import random
from dataclasses import replace

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.effects import folds_rows
from dcarray.ir.nodes import Apply, Array, Compute, Index, Load, Nest, Region, Rows, Symbol, Window
from dcarray.ir.ops import const
from dcarray.ir.windows import compose, remap

F8 = np.dtype("d")


class Maker:
    """Statements over matrices ``a``, ``b``, ``c``, vectors ``s``, ``t`` with an element for each row,
    ``w`` with one for each column, and a cube ``q``; most of them need their own row only."""

    def __init__(self, rng: random.Random, symbolic: bool = False, dtype: np.dtype = F8) -> None:
        self.rng, self.dtype = rng, dtype
        sizes = {"N": rng.choice([1, 2, 3, 5]), "M": rng.choice([1, 2, 4, 5]), "K": rng.choice([1, 3])}
        self.values = sizes if symbolic else {}
        low = {name: rng.choice([1, size]) for name, size in sizes.items()}
        self.symbols = tuple(Symbol(name, low[name], sizes[name]) for name in self.values)
        n, m, k = (dims.symbol(name, low[name]) if symbolic else size for name, size in sizes.items())
        self.shapes = {
            "a": (n, m), "b": (n, m), "c": (n, m), "s": (n,), "t": (n, 1), "w": (m,), "q": (n, k, m),
        }  # fmt: skip
        arrays = [Array(name, dtype, shape, "inout") for name, shape in self.shapes.items()]
        self.n, self.m, self.k, self.arrays = n, m, k, tuple(arrays)

    def region(self) -> Region:
        body = tuple(self.statement() for _ in range(self.rng.randint(2, 5)))
        return Region(self.symbols, self.arrays, body)

    def statement(self) -> Compute | Nest:
        kind = self.rng.choice(["matrix", "matrix", "fold", "fold", "vector", "cube", "columns", "nest"])
        if kind == "vector":
            return self.compute(self.rng.choice("st"), (self.n,), None)
        if kind == "cube":
            return self.compute("q", (self.n, self.k, self.m), None)
        if kind == "columns":
            return self.compute(self.rng.choice("aq"), (self.n, self.k, self.m), "fold")
        if kind == "nest":
            e = self.compute("c", (self.n, self.m), None)
            load = Load(e.target, self.dtype)
            s = self.compute("s", (self.n, self.m), "fold")
            if "c" not in {w.window.array for w in _loads(s)} | {"s"} and "s" not in {
                w.window.array for w in _loads(e)
            }:
                return Nest((e, replace(s, body=Apply("add", (load, load), self.dtype))))
            return e
        shape = (self.n, self.m)
        if kind == "fold":
            return self.compute(self.rng.choice("sstw"), shape, "fold")
        return self.compute(self.rng.choice("abc"), shape, None)

    def compute(self, name: str, shape: tuple, fold: str | None) -> Compute:
        target = self.window(name, shape)
        combine = self.rng.choice(["add", "maximum"]) if fold else None
        init = const(self.rng.choice([0, 2]), self.dtype) if fold and self.rng.random() < 0.7 else None
        return Compute(target, self.expr(shape, name, 2), combine, init)

    def window(self, name: str, shape: tuple, other: bool = False) -> Window:
        """A window over a domain of rows, rows and columns, or rows, layers and columns."""
        own = {1: {"n": 0}, 2: {"n": 0, "m": 1}, 3: {"n": 0, "k": 1, "m": 2}}[len(shape)]
        index = []
        for axis in {"a": "nm", "b": "nm", "c": "nm", "s": "n", "t": "n1", "w": "m", "q": "nkm"}[name]:
            if axis not in own:
                index.append(Index(0))
            elif other and axis == "n" and self.rng.random() < 0.15:
                index.append(Index(0))  # of another row
            else:
                index.append(Index(0, 1, own[axis]))
        return Window(name, shape, tuple(index))

    def expr(self, shape: tuple, target: str, depth: int):
        if depth == 0 or self.rng.random() < 0.2:
            names = [name for name in "abcstwq" if name != target and self.fits(name, shape)]
            if not names or self.rng.random() < 0.1:
                return const(self.rng.randint(-2, 2), self.dtype)
            return Load(self.window(self.rng.choice(names), shape, True), self.dtype)
        args = self.expr(shape, target, depth - 1), self.expr(shape, target, depth - 1)
        return Apply(self.rng.choice(["add", "subtract", "multiply", "maximum"]), args, self.dtype)

    def fits(self, name: str, shape: tuple) -> bool:
        return not (name == "w" and len(shape) == 1)


def _loads(compute: Compute) -> list[Load]:
    from dcarray.ir.windows import loads

    return list(loads(compute.body))


def one_by_one(region: Region, rng: random.Random) -> Region:
    """The region with every row of ``Rows`` as statements of its own, the rows in any order."""
    body = []
    for stmt in region.body:
        if not isinstance(stmt, Rows):
            body.append(stmt)
            continue
        parts = [c for part in stmt.body for c in (part.body if isinstance(part, Nest) else (part,))]
        rows = list(np.ndindex(*parts[0].target.shape[: stmt.axes]))
        rng.shuffle(rows)
        late = len(rows) > 1  # a single row folds when its turn comes
        begun = [late and folds_rows(part, stmt.axes) and part.init is not None for part in parts]
        for part, begin in zip(parts, begun, strict=True):
            if begin:
                body.append(replace(_row(part, rows[0]), body=part.init, combine="maximum"))
        parts = [
            replace(part, init=None) if begin else part for part, begin in zip(parts, begun, strict=True)
        ]
        body += [_row(part, row) for row in rows for part in parts]
    return replace(region, body=tuple(body))


def _row(compute: Compute, row: tuple[int, ...]) -> Compute:
    count = len(row)
    shape = compute.target.shape[count:]
    amap = (*(Index(at) for at in row), *(Index(0, 1, axis) for axis in range(len(shape))))
    init = None if compute.init is None else remap(compute.init, amap, shape)
    return replace(
        compute, target=compose(compute.target, amap, shape), body=remap(compute.body, amap, shape), init=init
    )
