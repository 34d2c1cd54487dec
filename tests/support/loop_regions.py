"""Random loops of statements: nested, triangular, counting down, empty, with conditions, arrays that share
memory, and windows that move with the loops' variables."""

import random
from dataclasses import dataclass, replace

import numpy as np

from dcarray.ir import dims, interp, verify
from dcarray.ir.analysis.data_dependent import at_index
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Compute,
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
    While,
    Window,
)
from dcarray.ir.ops import const

BOOL, I8 = np.dtype(bool), np.dtype(np.int64)


@dataclass
class Loops:
    """Statements in loops over the arrays ``a``, ``b`` (matrices), ``x``, ``y`` (vectors), ``v`` (``a`` as a
    vector), ``s``, ``r`` (one element), ``n`` (a counter), ``t`` and ``w`` (temporaries)."""

    rng: random.Random
    dtype: np.dtype = I8
    symbolic: bool = False
    native: bool = False  # with functions that NumPy computes
    sums: bool = False  # of floats, too
    places: bool = False  # some loops are statements at a place that data tell
    apart: bool = False  # turns of the outermost loops mostly use their own rows and temporaries

    def __post_init__(self):
        size = self.rng.randint(3, 7)
        self.values = {"N": size} if self.symbolic else {}
        self.symbols = tuple(Symbol(name, 3, size) for name in self.values)
        n = self.size = dims.symbol("N", 3) if self.symbolic else size
        one = {"a": (n, n), "b": (n, n), "x": (n,), "y": (n,), "s": (), "r": ()}
        arrays = [Array(name, self.dtype, shape, "inout") for name, shape in one.items()]
        arrays.append(Array("v", self.dtype, (n * n,), "inout", None, base="a"))
        arrays.append(Array("n", I8, (), "inout"))
        arrays += [Array("t", self.dtype, (n,)), Array("w", self.dtype, ())]
        self.arrays = {array.name: array for array in arrays}
        self.around: list = []  # variables, with the bounds of their loops

    def region(self):
        """Some loops, all of them valid."""
        if self.apart:
            body = [self.loop(0)]
        else:
            body = [self.fill("t"), self.fill("w"), *(self.control(0) for _ in range(2))]
        region = Region(self.symbols, tuple(self.arrays.values()), tuple(body))
        with dims.Guards(self.values):
            verify.verify(region)
        return region

    def fill(self, name):
        shape = self.arrays[name].shape
        target = Window(name, shape, tuple(Index(0, 1, k) for k in range(len(shape))))
        return Compute(target, const(1, self.dtype))

    # ---- statements -----------------------------------------------------------------------------------
    def control(self, depth) -> Stmt:
        if self.places and self.rng.random() < 0.4:
            return self.at_index(depth)
        kind = self.rng.random()
        if kind < 0.7:
            return self.loop(depth)
        if kind < 0.85:
            return Branch(self.condition(), self.body(depth), self.body(depth) if kind < 0.8 else ())
        one, load = const(1, I8), Load(Window("n", (), ()), I8)
        step = Compute(Window("n", (), ()), Apply("add", (load, one), I8))
        more = Apply("less", (load, const(self.rng.randint(0, 12), I8)), BOOL)
        if kind < 0.93:
            more = Apply("logical_and", (more, self.condition()), BOOL)
        return While(more, (*self.body(depth), step))

    def at_index(self, depth) -> Loop:
        """Statements at a place that data tell, which may be outside."""
        var, size = f"k{depth}", self.size
        place = Apply(
            "cast", (self.rng.choice([self.load(()), const(self.rng.randint(-1, 3), self.dtype)]),), I8
        )
        if self.rng.random() < 0.5:
            place = Apply("bitwise_and", (place, const(3, I8)), I8)
        self.around.append((dims.symbol(var, None), (0, size, 1)))
        body = self.body(depth)
        self.around.pop()
        made = at_index(var, size, place, body)
        return made if self.valid(made) else self.at_index(depth)

    def loop(self, depth) -> Loop:
        var = f"k{depth}"
        low, high = self.rng.choice([0, 0, 1, 2]), self.size - self.rng.choice([0, 0, 1])
        if self.around and self.rng.random() < 0.6:
            outer = self.variable()
            low, high = (low, outer) if self.rng.random() < 0.5 else (outer, high)
        if self.rng.random() < 0.1:
            high = low
        bounds = (low, high, self.rng.choice([1, 1, 2]))
        if self.rng.random() < 0.35:
            bounds = (dims.simplify(high - 1), dims.simplify(low - 1), self.rng.choice([-1, -1, -2]))
        self.around.append((dims.symbol(var, None), bounds))
        made = Loop(var, bounds, self.body(depth))
        self.around.pop()
        return made

    def valid(self, *made) -> bool:
        """Are statements valid inside of the loops around?"""
        for var, bounds in reversed(self.around):
            made = (Loop(str(var), bounds, made),)
        arrays = tuple(replace(array, role="inout") for array in self.arrays.values())
        try:
            with dims.Guards(self.values):
                verify.verify(Region(self.symbols, arrays, made))
        except verify.VerifyError:
            return False
        return True

    def variable(self):
        return self.rng.choice(self.around)[0]

    def body(self, depth):
        made: list[Stmt] = []
        if self.apart and depth == 0 and self.around:
            made += [self.fill("t"), self.fill("w")]
        for _ in range(self.rng.randint(1, 3)):
            tries = (self.statement() for _ in range(20))
            made += [next(filter(self.valid, tries), self.fill("x"))]
        if depth < 2 and self.rng.random() < 0.5:
            made.insert(
                self.rng.randint(2 if self.apart and not depth else 0, len(made)), self.control(depth + 1)
            )
        return tuple(made)

    def statement(self) -> Stmt:
        kind = self.rng.random()
        if kind < 0.08:
            domain = (self.size,)
            return Nest((self.compute("x", domain, None), self.compute("y", domain, None)))
        if kind < 0.14:
            domain = (self.size, self.size)
            fold = self.compute("y", domain, "fold")
            return Rows((self.compute("b", domain, None), fold), 1)
        if kind < 0.3:
            return self.compute(self.rng.choice("srw"), (), None)
        if kind < 0.5:
            domain = tuple(self.extent() for _ in range(self.rng.choice([1, 1, 2])))
            return self.compute(self.rng.choice("srwabx"), domain, "fold")
        if kind < 0.65:
            domain = self.extent(), self.extent()
            return self.compute(self.rng.choice("axb"), domain, "fold" if kind < 0.58 else None)
        return self.compute(self.rng.choice("abxyvt"), (self.extent(),), None)

    def compute(self, name, domain, fold) -> Compute:
        axes = list(range(len(domain)))
        if self.apart and self.around:
            name = {"s": "w", "r": "w", "v": "t"}.get(name, name)
        rank = len(self.arrays[name].shape) - (self.apart and bool(self.around) and name in "abxy")
        self.rng.shuffle(axes)
        if fold is None and rank < len(axes):
            domain, axes = domain[:rank], list(range(rank))
        kept = axes[: self.rng.randint(0, min(rank, len(axes) - 1)) if fold else len(axes)]
        target = self.window(name, domain, kept)
        body = self.expr(domain, 2)
        if fold is None:
            return Compute(target, body)
        exact = self.dtype.kind == "f" and not self.sums
        combine = self.rng.choice(["maximum", "minimum"] if exact else ["add", "add", "maximum"])
        init = const(0, self.dtype) if self.rng.random() < 0.6 else None
        return Compute(target, body, combine, init)

    def extent(self):
        """An extent that may depend on the loops."""
        if self.around and self.rng.random() < 0.6:
            var = self.variable()
            return self.rng.choice([var, dims.simplify(self.size - var), dims.simplify(var + 1)])
        return self.rng.choice([self.size, self.size, dims.simplify(self.size - 1), 1, 2])

    # ---- expressions ----------------------------------------------------------------------------------
    def window(self, name, domain, axes):
        """A window with some axes of the domain along the array's axes; it need not be valid."""
        shape = self.arrays[name].shape
        if self.apart and self.around and name in "abxy" and self.rng.random() < 0.97:
            inner = self._index(shape[1:], domain, axes)
            return Window(name, domain, (Index(self.around[0][0]), *inner))
        return Window(name, domain, tuple(self._index(shape, domain, axes)))

    def _index(self, shape, domain, axes):
        axes = list(axes[: len(shape)])
        axes += [None] * (len(shape) - len(axes))
        self.rng.shuffle(axes)
        index = []
        for size, axis in zip(shape, axes, strict=True):
            moved = self.rng.choice([0, 0, 0, 1, -1])
            if axis is None:
                base = self.variable() if self.around and self.rng.random() < 0.7 else 0
                index.append(Index(dims.simplify(base + moved)))
                continue
            room = dims.simplify(size - domain[axis])
            if self.rng.random() < 0.25:
                start = self.rng.choice([size - 1, domain[axis] - 1])
                index.append(Index(dims.simplify(start), -1, axis))
            else:
                index.append(Index(self.rng.choice([0, 0, room, moved]), 1, axis))
        return index

    def load(self, domain):
        if self.rng.random() < 0.05 and domain:
            index = Apply("bitwise_and", (Iota(0, I8), const(1, I8)), I8)
            return Gather(Window("x", domain, ()), (index,), self.dtype)
        axes = list(range(len(domain)))
        self.rng.shuffle(axes)
        return Load(
            self.window(self.rng.choice("aabxytw" if self.apart else "aabxyvsrtw"), domain, axes), self.dtype
        )

    def expr(self, domain, depth):
        kind = self.rng.random()
        if kind < 0.1:
            return const(self.rng.randint(-2, 2), self.dtype)
        if kind < 0.15 and self.around:
            return Size(self.variable(), self.dtype)
        if kind < 0.2 and domain:
            return Iota(self.rng.randrange(len(domain)), self.dtype)
        if depth == 0 or kind < 0.4:
            return self.load(domain)
        if self.native and kind < 0.6:
            return Apply("tanh", (self.expr(domain, depth - 1),), self.dtype)
        name = self.rng.choice(["add", "subtract", "multiply", "minimum"])
        return Apply(name, (self.expr(domain, depth - 1), self.expr(domain, depth - 1)), self.dtype)

    def condition(self):
        while True:
            cond = Apply("less", (self.expr((), 1), self.expr((), 1)), BOOL)
            if self.valid(Branch(cond, ())):
                return cond


# ---- their results ------------------------------------------------------------------------------------
def memory(region, values, seed=0):
    """Flat memory for each array that has some of its own, and the arrays."""
    rng = np.random.default_rng(seed)
    made = {}
    for array in region.arrays:
        shape = [dims.evaluate(n, values) for n in array.shape]
        if array.base is not None:
            made[array.name] = made[array.base].reshape(shape)
        else:
            made[array.name] = rng.integers(-3, 4, shape).astype(array.dtype)
            if array.dtype == np.int64 and not shape:
                made[array.name][...] = 0
    return made


def wanted(region, values, seed=0):
    found = memory(region, values, seed)
    with np.errstate(all="ignore"):
        interp.run(region, {n: a for n, a in found.items() if role(region, n) != "temp"}, values)
    return {name: a for name, a in found.items() if role(region, name) != "temp"}


def existing(region):
    return tuple(replace(array, role="inout") for array in region.arrays)


def role(region, name):
    return next(array.role for array in region.arrays if array.name == name)


def agree(found, want, rtol=0):
    for name, array in want.items():
        np.testing.assert_allclose(found[name], array, rtol=rtol, err_msg=name)
