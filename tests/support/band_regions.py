"""Random chains of stencil statements, and bands taken row by row."""

import random
from dataclasses import replace

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.skew import skews
from dcarray.ir.nodes import Apply, Array, Compute, Index, Load, Nest, Region, Symbol, TimeTiles, Window
from dcarray.ir.ops import const
from dcarray.ir.windows import compose, overlap, remap, same


class Chains:
    """Statements over ``a``, ``b``, ``c`` of about the same rows, with 1 to 3 axes; ``v`` has one element for
    each row, ``w`` one for each column.  Most write inner rows from rows nearby; some write a single row, or
    a single column."""

    def __init__(self, rng: random.Random, dtype="i8", symbolic=False) -> None:
        self.rng, self.dtype = rng, np.dtype(dtype)
        rows, self.rank = rng.choice([3, 6, 9, 14]), rng.randint(1, 3)
        self.symbols, self.values = (), {}
        n = rows
        if symbolic:
            self.symbols, self.values = (Symbol("N", 3, rows),), {"N": rows}
            n = dims.symbol("N", 3)
        self.sizes = (n, *(rng.choice([3, 4, 5]) for _ in range(self.rank - 1)))
        shapes = {name: self.sizes for name in "ab"}
        shapes["c"] = (n + rng.choice([0, 0, 1, 2]), *self.sizes[1:])
        shapes["v"] = (n,)
        shapes["w"] = self.sizes[1:] or (3,)
        self.shapes = shapes
        self.arrays = tuple(Array(name, self.dtype, shape, "inout") for name, shape in shapes.items())

    def region(self) -> Region:
        body = [self.statement() for _ in range(self.rng.randint(2, 4))]
        body *= self.rng.choice([1, 1, 2, 3])
        return Region(self.symbols, self.arrays, tuple(body))

    def statement(self) -> Compute | Nest:
        kind = self.rng.choice(["inner"] * 6 + ["row", "column", "last", "nest", "vector"])
        name = "v" if kind == "vector" else self.rng.choice("abc")
        inner = self.sizes[1:] if kind != "vector" else ()
        low = self.rng.choice([0, 1, 1, 2])
        count = self.sizes[0] - low - self.rng.choice([0, 1, 1])
        if kind == "row":
            head, rows = Index(self.rng.choice([0, 1, 2])), ()
        elif kind == "last":
            head, rows = Index(self.sizes[0] - 1), ()
        else:
            head, rows = Index(low, 1, 0), (count,)
        at = len(rows)
        shape, index = rows, (head,)
        for axis, size in enumerate(inner):
            start = self.rng.choice([0, 1])
            if kind == "column" and axis == 0:
                index += (Index(start),)
                continue
            shape += (size - 2,)
            index += (Index(start, 1, at),)
            at += 1
        target = Window(name, shape, index)
        made = Compute(target, self.expr(target, 2))
        if kind != "nest":
            return made
        other = replace(target, array=self.rng.choice([x for x in "ab" if x != name]))
        if any(load.array == other.array for load in self.loads(made)):
            return made
        load = Load(target, self.dtype)
        return Nest((made, Compute(other, Apply("add", (load, load), self.dtype))))

    def loads(self, compute: Compute) -> list[Window]:
        found, todo = [], [compute.body]
        while todo:
            node = todo.pop()
            if isinstance(node, Load):
                found.append(node.window)
            todo += getattr(node, "args", ())
        return found

    def expr(self, target: Window, depth: int):
        rng = self.rng
        if depth == 0:
            load = self.load(target)
            return load if load is not None and rng.random() < 0.9 else const(rng.randint(-2, 2), self.dtype)
        args = self.expr(target, depth - 1), self.expr(target, depth - 1)
        return Apply(rng.choice(["add", "subtract", "multiply", "maximum"]), args, self.dtype)

    def load(self, target: Window):
        """What is read, some rows and columns away from the target; None if that cannot be."""
        rng = self.rng
        name = rng.choice("abcabcabcvw")
        if name == "w":
            if len(target.shape) < 2 or self.rank < 2 or len(target.index) < 2:
                return None
            index = tuple(Index(0, 1, ix.axis) if ix.axis is not None else ix for ix in target.index[1:])
            return Load(Window("w", target.shape, index), self.dtype)
        heads = target.index[:1] if name == "v" or target.array == "v" else target.index
        if len(heads) != len(self.shapes[name]):
            return None
        for _ in range(5):
            index = []
            for axis, ix in enumerate(heads):
                step = rng.choice([-2, -1, -1, 0, 0, 1, 1, 2]) if axis == 0 else rng.choice([-1, 0, 0, 1])
                index.append(replace(ix, offset=dims.simplify(ix.offset + step)))
            if rng.random() < 0.03:
                index[0] = Index(0)  # the first row for all
            window = Window(name, target.shape, tuple(index))
            own = name == target.array and not same(window, target) and overlap(window, target) is not False
            if not own and self.inside(window):
                return Load(window, self.dtype)
        return None

    def inside(self, window: Window) -> bool:
        for ix, size in zip(window.index, self.shapes[window.array], strict=True):
            last = ix.offset if ix.axis is None else ix.offset + window.shape[ix.axis] - 1
            if dims.prove_nonneg(ix.offset) is not True or dims.prove_lt(last, size) is not True:
                return False
        return True


def row_by_row(region: Region, rng: random.Random) -> Region:
    """The region with every row of ``TimeTiles`` as a statement of its own, in the order that is promised: of
    the tiles, and of what is between them, in any."""
    body = []
    for stmt in region.body:
        if not isinstance(stmt, TimeTiles):
            body.append(stmt)
            continue
        found = skews(stmt.body, region)
        ahead, behind = (max(getattr(s, name) for s in found) for name in ("ahead", "behind"))
        count = -(-(max(s.first + s.count for s in found) + ahead + behind) // stmt.tile)
        starts = [k * stmt.tile - ahead for k in range(count)]
        for between in (False, True):
            some = starts[between:]
            rng.shuffle(some)
            for start in some:
                rows = ahead + behind if between else stmt.tile
                for low in range(start, start + rows, stmt.height):
                    body += _band(stmt, found, start, low, between)
    return replace(region, body=tuple(body))


def _band(stmt: TimeTiles, found, start: int, low: int, between: bool):
    for part, skew in zip(stmt.body, found, strict=True):
        for at in range(skew.count):
            row = skew.first + at
            if low <= row + skew.behind < low + stmt.height and (row < start + skew.ahead) == between:
                for compute in part.body if isinstance(part, Nest) else (part,):
                    shape = compute.target.shape[1:]
                    amap = (Index(at), *(Index(0, 1, axis) for axis in range(len(shape))))
                    yield replace(
                        compute,
                        target=compose(compute.target, amap, shape),
                        body=remap(compute.body, amap, shape),
                    )
