"""Random regions with the memory they run on, for differential tests.

``cases()`` is a Hypothesis strategy, ``make_case`` the same from a seed.  Every region passes
``ir.verify``.  All operations are exact (bit-identical wherever they run), unless ``rounding`` asks for
transcendental ones and floating-point sums too.  Conversions of floats to integers, whose out-of-range
results NumPy leaves open, do not occur.
"""

import random
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dcarray.ir import dims
from dcarray.ir.analysis.effects import nest_conflict
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    Symbol,
    Window,
)
from dcarray.ir.ops import C_LIBRARY, OPS, const, has_loop
from dcarray.ir.text import dump
from dcarray.ir.windows import identity, overlap

ALL_DTYPES = "?bhilBHILefdFD"
COMMON_DTYPES = "ddddllf?"
_ROUNDING = ["exp", "log", "sin", "tanh", "arctan2", "power", "sqrt"]
_INEXACT = {
    *_ROUNDING, "float_power", "hypot", "logaddexp", "logaddexp2", "exp2", "expm1", "log2", "log10",
    "log1p", "cbrt", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh",
    "arctanh",
}  # fmt: skip
# NumPy's own loops for these differ in the last bit between strides (some use fused multiply-adds).
_CONTRACTED = {"multiply", "square", "divide", "reciprocal"}
_EXACT = sorted(
    set(OPS)
    - _INEXACT
    - set(C_LIBRARY)
    - {"cast", "where", "real", "imag", "complex", "ldexp", "spacing", "nextafter"}
)


@dataclass
class Case:
    """A region, its symbols' values, and the memory it runs on."""

    region: Region
    seed: int
    values: dict[str, int]

    def memory(self) -> dict[str, np.ndarray]:
        """New memory, with the same values every time, for the ``in`` and ``inout`` arrays."""
        return _memory(self.region, self.seed, self.values)

    @property
    def zero_signs(self) -> bool:
        """Whether the sign of a zero is determined: a fold may take either of two equal ones."""
        return not re.search(r"(maximum|minimum|fmax|fmin)= ", dump(self.region))

    def __repr__(self) -> str:  # what Hypothesis shows of a failing example
        return f"Case(seed={self.seed}, values={self.values})\n{dump(self.region)}"


def assert_agree(got: Any, want: Any, *, zero_signs: bool = True, rtol: float = 0.0) -> None:
    """Check that every array of ``got`` has dtype, shape and values of that in ``want``.

    Which of several NaNs a result is, is not compared; with ``rtol`` finite values may differ so far.
    """
    for name, array in got.items():
        other = want[name]
        assert array.dtype == other.dtype and array.shape == other.shape, name
        if array.dtype.kind not in "fc":
            assert np.array_equal(array, other), name
            continue
        for x, y in ((array.real, other.real), (array.imag, other.imag)):
            nan = np.isnan(x)
            assert np.array_equal(nan, np.isnan(y)), name
            x, y = x[~nan], y[~nan]
            if rtol:
                np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, err_msg=name)
            else:
                assert np.array_equal(x, y), name
                assert not zero_signs or np.array_equal(np.signbit(x), np.signbit(y)), name


@st.composite
def cases(draw: Any, statements: int = 6, **options: Any) -> Case:
    """Random cases; see ``make_case`` for the options."""
    return make_case(draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, statements)), **options)


def make_case(
    seed: int, statements: int = 5, *, dtypes: str | None = None, rounding: bool = False,
    gathers: bool = True, calls: bool = True, nests: bool = True, control: bool = True, aliases: bool = True,
    empty: bool = True, symbolic: bool = False, numpy_bits: bool = True,
) -> Case:  # fmt: skip
    """The case of a seed.

    Parameters
    ----------
    dtypes
        Characters to choose dtypes from; by default all that compile, in half of the cases only common
        ones.
    rounding
        Also transcendental functions, complex products, and floating-point sums and matrix products.
    gathers, calls, nests, control, aliases, empty
        Whether gathers, library calls, nests, loops and branches, arrays that share memory, and arrays
        without elements occur.
    numpy_bits
        Also operations that compiled code has NumPy's bits for only where NumPy's loops do them.
    symbolic
        Write the sizes as symbols (``Case.values`` has their values).
    """
    rng = random.Random(seed)
    if dtypes is None:
        dtypes = rng.choice([COMMON_DTYPES, ALL_DTYPES])
    chosen = {"gathers": gathers, "calls": calls, "nests": nests, "control": control, "rounding": rounding}
    chosen["numpy_bits"] = numpy_bits
    maker = _Maker(rng, dtypes, chosen)
    maker.declare(aliases, empty)
    for _ in range(statements):
        maker.add()
    region = maker.region()
    return _generalised(region, seed) if symbolic else Case(region, seed, {})


class _Maker:
    def __init__(self, rng: random.Random, dtypes: str, options: dict[str, bool]) -> None:
        self.rng = rng
        self.dtypes = [np.dtype(c) for c in dtypes]
        self.options = options
        self.arrays: dict[str, Array] = {}
        self.ready: list[str] = []  # what may be read
        self.body: list[Stmt] = []
        self.loop: tuple[str, int] | None = None  # a variable and how many values it takes

    def region(self) -> Region:
        used = {s for stmt in self.body for s in _names(stmt)}
        keep = [a for a in self.arrays.values() if a.role != "temp" or self.family(a.name) & used]
        return Region((), tuple(keep), tuple(self.body))

    def family(self, name: str) -> set[str]:
        root = self.arrays[name].base or name
        return {a.name for a in self.arrays.values() if (a.base or a.name) == root}

    # ---- arrays -------------------------------------------------------------------------------------
    def declare(self, aliases: bool, empty: bool) -> None:
        rng = self.rng
        self.sizes = (
            [rng.randint(2, 6) for _ in range(3)] + [1] + ([0] if empty and rng.random() < 0.1 else [])
        )
        for k in range(rng.randint(1, 3)):
            self.array(f"A{k}", "in")
        for k in range(rng.randint(1, 2)):
            self.array(f"B{k}", "inout")
        self.ready = list(self.arrays)
        if aliases and rng.random() < 0.4:
            base = rng.choice([a for a in self.arrays.values() if a.role == "inout"])
            total = int(np.prod(base.shape))
            step = rng.choice([1, 1, 2])
            flat = Array("V0", base.dtype, (len(range(0, total, step)),), "inout", (step,), base=base.name)
            self.arrays["V0"] = flat
            self.ready.append("V0")

    def array(self, name: str, role: Any, shape: tuple[int, ...] | None = None, dtype: Any = None) -> Array:
        rng = self.rng
        if shape is None:
            rank = rng.choice([0, 1, 1, 2, 2, 2, 3])
            shape = tuple(rng.choice(self.sizes) for _ in range(rank))
        made = Array(name, dtype or rng.choice(self.dtypes), shape, role)
        self.arrays[name] = made
        return made

    def fresh(self, shape: tuple[int, ...], dtype: Any) -> Array:
        role = self.rng.choice(["temp", "temp", "out"])
        return self.array(f"{role[0]}{len(self.arrays)}", role, shape, dtype)

    # ---- statements ---------------------------------------------------------------------------------
    def add(self) -> None:
        roll = self.rng.random()
        if roll < 0.08 and self.options["calls"]:
            self.matmul()
        elif roll < 0.2 and self.options["nests"]:
            self.nest()
        elif roll < 0.3 and self.options["control"] and self.loop is None:
            self.control()
        else:
            self.compute()

    def compute(self) -> None:
        rng = self.rng
        roll = rng.random()
        writable = [a for n, a in self.arrays.items() if a.role != "in" and n in self.ready]
        if self.loop is None and (roll < 0.4 or not writable):
            array = self.fresh(tuple(rng.choice(self.sizes) for _ in range(rng.randint(0, 3))), None)
            target = identity(array)
        else:
            array = rng.choice(writable)
            target = self.subwindow(array)
        combine = None
        if rng.random() < 0.25:
            ops = [n for n, op in OPS.items() if op.combine and self.folds(n, array.dtype)]
            combine = rng.choice(ops) if ops else None
        if combine is not None:
            extra = tuple(rng.choice(self.sizes) for _ in range(rng.randint(0, 2)))
            target = self.widened(target, extra)
        init = None
        if combine is not None and (array.name not in self.ready or rng.random() < 0.7):
            init = self.constant(array.dtype)
        body = self.expr(array.dtype, target.shape, target, rng.randint(0, 4))
        stmt = Compute(target, body, combine, init, loc=len(self.body))
        if combine is None and self.loop is None and rng.random() < 0.15 and 0 not in target.shape:
            # the general way to write an overlapping update: through a temporary
            temp = self.array(f"t{len(self.arrays)}", "temp", target.shape, array.dtype)
            free = self.expr(array.dtype, target.shape, None, rng.randint(0, 3))
            self.body.append(Compute(identity(temp), free, loc=len(self.body)))
            self.ready.append(temp.name)
            stmt = Compute(target, Load(identity(temp), temp.dtype), loc=len(self.body))
        self.body.append(stmt)
        if array.name not in self.ready:
            self.ready.append(array.name)

    def folds(self, op: str, dtype: np.dtype[Any]) -> bool:
        inexact = op in ("add", "multiply") and dtype.kind in "fc"
        return has_loop(op, (dtype, dtype), dtype) and (self.options["rounding"] or not inexact)

    def nest(self) -> None:
        rng = self.rng
        domain = tuple(rng.choice(self.sizes) for _ in range(rng.randint(1, 2)))
        parts: list[Compute] = []
        made: list[str] = []
        for _ in range(rng.randint(2, 3)):
            array = self.fresh(domain, None)
            target = identity(array)
            body = self.expr(
                array.dtype, domain, target, rng.randint(1, 3), [n for n in made if rng.random() < 0.7]
            )
            parts.append(Compute(target, body, loc=len(self.body)))
            made.append(array.name)
        if rng.random() < 0.5:
            array = self.fresh((), None)
            ops = [n for n, op in OPS.items() if op.combine and self.folds(n, array.dtype)]
            if ops:
                body = self.expr(array.dtype, domain, None, 2)
                target = Window(array.name, domain, ())
                parts.append(Compute(target, body, rng.choice(ops), self.constant(array.dtype)))
                made.append(array.name)
        nest = tuple(parts)
        self.body += (
            [Nest(nest)]
            if nest_conflict(nest, Region((), tuple(self.arrays.values()), nest)) is None
            else nest
        )
        self.ready += made

    def matmul(self) -> None:
        rng = self.rng
        kinds = "dfFD" if self.options["rounding"] else "lib"
        for dtype in rng.sample([np.dtype(c) for c in kinds], len(kinds)):
            found = [self.arrays[n] for n in self.ready if self.arrays[n].dtype == dtype]
            if not found:
                continue
            m, k, n = (rng.choice([s for s in self.sizes if s]) for _ in range(3))
            a, b = (self.load(rng.choice(found), shape) for shape in ((m, k), (k, n)))
            if a is None or b is None:
                continue
            out = self.fresh((m, n), dtype)
            self.body.append(Call("blas.matmul", (a.window, b.window), (identity(out),), loc=len(self.body)))
            self.ready.append(out.name)
            return

    def control(self) -> None:
        rng = self.rng
        outer, self.body = self.body, []
        if not any(a.role == "inout" and 0 not in a.shape for a in self.arrays.values()):
            self.body = outer
            return
        if rng.random() < 0.6:
            count = rng.randint(0, 3)
            self.loop = (f"k{len(outer)}", count)
            self.compute()
            self.compute()
            start = rng.choice([0, 1])
            made: Stmt = Loop(self.loop[0], (start, start + count, 1), tuple(self.body), loc=len(outer))
        else:
            self.loop = ("", 0)  # nothing new may be declared in a branch either
            cond = self.expr(np.dtype(bool), (), None, 2)
            self.compute()
            then, self.body = tuple(self.body), []
            if rng.random() < 0.5:
                self.compute()
            made = Branch(cond, then, tuple(self.body), loc=len(outer))
        self.loop = None
        self.body = [*outer, made]

    # ---- windows ------------------------------------------------------------------------------------
    def subwindow(self, array: Array) -> Window:
        """A random injective window: a view made by slicing, flipping, transposing."""
        rng = self.rng
        index: list[Index] = []
        shape: list[int] = []
        for size in array.shape:
            if size > 0 and rng.random() < 0.2:
                index.append(Index(rng.randrange(size)))
                continue
            step = rng.choice([1, 1, 1, -1, 2, -2])
            places = range(size)[rng.randint(0, 1) :][::step]
            places = places[: rng.choice([len(places), len(places), 2])]
            if len(places) == 0 and rng.random() < 0.9:
                places = range(size)
            index.append(Index(places.start if len(places) else 0, places.step, len(shape)))
            shape.append(len(places))
        order = list(range(len(shape)))
        if rng.random() < 0.3:
            rng.shuffle(order)
        index = [ix if ix.axis is None else replace(ix, axis=order[ix.axis]) for ix in index]
        domain = [0] * len(shape)
        for k, axis in enumerate(order):
            domain[axis] = shape[k]
        return Window(array.name, tuple(domain), tuple(index))

    def widened(self, target: Window, extra: tuple[int, ...]) -> Window:
        """The window with more domain axes, which it does not use, at random places."""
        rank = len(target.shape) + len(extra)
        places = sorted(self.rng.sample(range(rank), len(target.shape)))
        shape = list(extra)
        for place, n in zip(places, target.shape, strict=True):
            shape.insert(place, n)
        index = [ix if ix.axis is None else replace(ix, axis=places[ix.axis]) for ix in target.index]
        return Window(target.array, tuple(shape), tuple(index))

    def load(self, array: Array, domain: tuple[int, ...]) -> Load | None:
        """A load somewhere in the array, None if it has no elements where the domain has points."""
        rng = self.rng
        if 0 in array.shape and 0 not in domain:
            return None
        index: list[Index] = []
        free = [k for k in range(len(domain))]
        if rng.random() < 0.3:
            rng.shuffle(free)
        free = free[max(0, len(free) - len(array.shape)) :]  # align as broadcasting does, mostly
        for position, size in enumerate(array.shape):
            left = len(array.shape) - position
            axis = free.pop(0) if free and (len(free) >= left or rng.random() < 0.5) else None
            if axis is None and domain and rng.random() < 0.05:
                axis = rng.randrange(len(domain))  # sometimes a diagonal
            n = domain[axis] if axis is not None else 1
            if axis is None or n > size or n == 0 or size == 0:
                index.append(Index(self.place(size)))
                continue
            widest = (size - 1) // (n - 1) if n > 1 else 2
            stride = rng.choice([s for s in (1, 1, 1, -1, -1, 2, -2, 3) if abs(s) <= widest])
            reach = abs(stride) * (n - 1)
            low = rng.randint(0, size - 1 - reach)
            index.append(Index(low if stride > 0 else low + reach, stride, axis))
        return Load(Window(array.name, domain, tuple(index)), array.dtype)

    def place(self, size: int) -> Any:
        if self.loop is not None and self.loop[1] and size > self.loop[1] and self.rng.random() < 0.5:
            return dims.symbol(self.loop[0], None)  # at most 1 + (count - 1)
        return self.rng.randrange(size) if size else 0

    # ---- expressions --------------------------------------------------------------------------------
    def constant(self, dtype: np.dtype[Any]) -> Expr:
        value = self.rng.choice([0, 1, 2, 3])
        if dtype.kind in "if" and self.rng.random() < 0.3:
            value = -value
        return const(value / 2 if dtype.kind == "f" else value, dtype)

    def leaf(
        self, dtype: np.dtype[Any], domain: tuple[int, ...], target: Window | None, more: list[str]
    ) -> Expr:
        rng = self.rng
        if target is not None and target.array in self.ready and rng.random() < 0.25 and _whole(target):
            return Load(target, self.arrays[target.array].dtype)
        names = more or self.ready
        same = [n for n in names if self.arrays[n].dtype == dtype]
        for _ in range(3):
            name = rng.choice(same if same and rng.random() < 0.8 else names)
            array = self.arrays[name]
            load = identity(array) if name in more else None
            found = Load(load, array.dtype) if load is not None else self.load(array, domain)
            if found is None or (target is not None and not self.apart(found.window, target)):
                continue
            return found
        return self.constant(dtype)

    def apart(self, window: Window, target: Window) -> bool:
        if window.array == target.array:
            return (window == target and _whole(target)) or overlap(window, target) is False
        return window.array not in self.family(target.array)

    def expr(
        self,
        dtype: np.dtype[Any],
        domain: tuple[int, ...],
        target: Window | None,
        depth: int,
        more: list[str] | None = None,
    ) -> Expr:
        rng = self.rng
        if depth == 0:
            return self.cast(self.leaf(dtype, domain, target, more or []), dtype)

        def sub(kind: np.dtype[Any], less: int = 1) -> Expr:
            return self.expr(kind, domain, target, max(0, depth - less), more)

        roll = rng.random()
        if roll < 0.08:
            return Apply("where", (sub(np.dtype(bool)), sub(dtype), sub(dtype)), dtype)
        if roll < 0.14 and domain and dtype.kind in "iufc":
            return Iota(rng.randrange(len(domain)), dtype)
        if roll < 0.16 and dtype.kind in "iuf":
            return Size(rng.randint(0, 5), dtype)
        if roll < 0.2 and self.options["gathers"] and (found := self.gather(domain, target)) is not None:
            return self.cast(found, dtype)
        if roll < 0.26:
            return self.cast(sub(rng.choice(self.dtypes)), dtype)
        if roll < 0.3 and dtype.char in "df":
            return Apply(
                rng.choice(["real", "imag"]), (sub(np.dtype({"d": "D", "f": "F"}[dtype.char])),), dtype
            )
        if dtype.kind == "b" and roll < 0.7:
            kind = rng.choice(self.dtypes)
            return Apply(rng.choice(["less", "equal", "greater_equal"]), (sub(kind), sub(kind)), dtype)
        ops = _EXACT + (_ROUNDING * 3 if self.options["rounding"] and dtype.kind == "f" else [])
        ops = ["add", "subtract", "multiply", "maximum", "negative"] * 6 + ops
        for _ in range(30):
            name = rng.choice(ops)
            if not self.options["numpy_bits"] and (
                name == "array_power" or (name, dtype.kind) == ("absolute", "c")
            ):
                continue
            if dtype.kind == "c" and name in _CONTRACTED and not self.options["rounding"]:
                continue
            if has_loop(name, (dtype,) * OPS[name].nin, dtype):
                if OPS[name].nin == 2 and rng.random() < 0.2:  # a shared sub-expression
                    one = sub(dtype)
                    return Apply(name, (one, one), dtype)
                return Apply(name, tuple(sub(dtype) for _ in range(OPS[name].nin)), dtype)
        return self.constant(dtype)

    def gather(self, domain: tuple[int, ...], target: Window | None) -> Gather | None:
        rng = self.rng
        ours = set() if target is None else self.family(target.array)
        names = [n for n in self.ready if n not in ours and 0 not in self.arrays[n].shape]
        if not names:
            return None
        array = self.arrays[rng.choice(names)]
        index: list[Expr] = []
        whole = np.dtype(np.int64)
        for size in array.shape:
            free = self.expr(whole, domain, target, 1)
            index.append(Apply("remainder", (free, const(size, whole)), whole))
        return Gather(Window(array.name, domain, ()), tuple(index), array.dtype)

    def cast(self, expr: Any, dtype: np.dtype[Any]) -> Expr:
        if expr.dtype == dtype:
            return expr
        if dtype.kind in "iu" and expr.dtype.kind in "fc":  # not defined outside of the range
            return Apply("cast", (Apply("isnan", (expr,), np.dtype(bool)),), dtype)
        return Apply("cast", (expr,), dtype)


def _whole(window: Window) -> bool:
    """Whether no domain axis is folded."""
    used = {ix.axis for ix in window.index}
    return all(k in used for k in range(len(window.shape)))


def _names(stmt: Stmt) -> set[str]:
    from dcarray.ir.analysis.effects import touched_arrays

    return set(touched_arrays(stmt))


# ---- memory -----------------------------------------------------------------------------------------
_SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0]


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], odd: bool) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if odd else (max(info.min, -9), 10)
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    parts = [np.round(rng.standard_normal(shape) * 4, 2) for _ in range(2)]
    if odd:
        parts = [np.where(rng.random(shape) < 0.2, rng.choice(_SPECIAL, shape), p) for p in parts]
    made = np.empty(shape, dtype)
    made[...] = parts[0]
    if dtype.kind == "c":
        made.imag[...] = parts[1]
    return made


def _memory(region: Region, seed: int, values: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    odd = bool(rng.random() < 0.3)
    given: dict[str, np.ndarray] = {}
    roots = {a.base for a in region.arrays}
    for array in region.arrays:
        shape = tuple(dims.evaluate(n, values) for n in array.shape)
        if array.role not in ("in", "inout"):
            continue
        if array.base is not None:
            step = array.strides[0] if array.strides else 1
            given[array.name] = given[array.base].reshape(-1)[::step]
            continue
        made = _values(rng, shape, array.dtype, odd)
        if array.name not in roots:
            made = _restrided(rng, made)
        given[array.name] = made
    return given


def _restrided(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The same values in memory of another order: transposed, strided, reversed."""
    kind = rng.integers(0, 4)
    if kind == 0 or array.ndim == 0:
        return array
    if kind == 1:
        return np.asfortranarray(array)
    wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    if kind == 2:
        view = view[::-1]
    view[...] = array
    return view


def _generalised(region: Region, seed: int) -> Case:
    """The case with its sizes of 2 and more written as symbols."""
    sizes = sorted({n for a in region.arrays for n in a.shape if n > 1})
    names = {n: dims.symbol(f"N{n}", 2) for n in sizes}

    def shape(old: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(names.get(n, n) if type(n) is int else n for n in old)

    def window(w: Window) -> Window:
        return Window(w.array, shape(w.shape), w.index)

    def expr(e: Any) -> Any:
        from dcarray.ir.windows import map_loads

        return map_loads(
            e, lambda x: Load(window(x.window), x.dtype) if isinstance(x, Load) else replace_gather(x)
        )

    def replace_gather(g: Gather) -> Gather:
        return Gather(window(g.window), g.index, g.dtype)

    def stmt(s: Stmt) -> Stmt:
        match s:
            case Compute():
                init = None if s.init is None else expr(s.init)
                return replace(s, target=window(s.target), body=expr(s.body), init=init)
            case Call():
                return replace(s, reads=tuple(map(window, s.reads)), writes=tuple(map(window, s.writes)))
            case Branch():
                return replace(
                    s, cond=expr(s.cond), then=tuple(map(stmt, s.then)), orelse=tuple(map(stmt, s.orelse))
                )
            case _:
                return replace(s, body=tuple(map(stmt, s.body)))

    arrays = tuple(replace(a, shape=shape(a.shape)) for a in region.arrays)
    symbols = tuple(Symbol(f"N{n}", 2, n) for n in sizes)
    made = Region(symbols, arrays, tuple(map(stmt, region.body)))
    return Case(made, seed, {f"N{n}": n for n in sizes})
