"""Random statements, and the memory that kernels and the region interpreter run on, compared."""

import numpy as np
from hypothesis import strategies as st

from dcarray.ir import dims, ops
from dcarray.ir import nodes as ir

F8, F4, I4, B1 = (np.dtype(c) for c in "dfi?")


def elements(array, symbols):
    """Shape and element strides of an array as ints."""
    shape = tuple(dims.evaluate(n, symbols) for n in array.shape)
    if array.strides is not None:
        return shape, tuple(dims.evaluate(n, symbols) for n in array.strides)
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return shape, tuple(reversed(steps))


def memories(region, symbols, copies, seed=0):
    """Equal memory several times: as arrays for the interpreter, and as pairs of flat memory and the position
    of the first element."""
    rng = np.random.default_rng(seed)
    views, flats = {}, [{} for _ in range(copies)]
    for array in region.arrays:
        shape, steps = elements(array, symbols)
        spans = [(n - 1) * s for n, s in zip(shape, steps, strict=True)]
        low, high = sum(min(0, s) for s in spans), sum(max(0, s) for s in spans)
        size = high - low + 1 if all(shape) else 0
        values = rng.integers(-4, 5, size).astype(np.float64) * (0.37 if array.dtype.kind in "fc" else 1)
        with np.errstate(all="ignore"):
            flat = values.astype(array.dtype)
        for copy in flats:
            copy[array.name] = (flat.copy(), -low)
        views[array.name] = seen(array, flat.copy(), -low, symbols)
    return views, flats


def seen(array, flat, first, symbols):
    """An array in flat memory."""
    shape, steps = elements(array, symbols)
    return np.lib.stride_tricks.as_strided(
        flat[first:] if flat.size else flat, shape, tuple(s * flat.itemsize for s in steps)
    )


def check_agreement(region, flats, memory, symbols):
    """Check that flat memory has the interpreter's results."""
    for array in region.arrays:
        want, got = memory[array.name], seen(array, *flats[array.name], symbols)
        if array.dtype.kind in "fc":
            rtol = 4e-3 if array.dtype.char == "e" else 1e-5 if array.dtype.char in "fF" else 1e-13
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=array.name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=array.name)


# ---- random statements ------------------------------------------------------------------------------
COMBINES = {
    "d": ["add", "maximum", "multiply", "fmin"],
    "f": ["add", "minimum"],
    "e": ["add", "maximum"],
    "D": ["add", "multiply"],
    "i": ["add", "multiply", "maximum", "bitwise_xor"],
    "B": ["add", "minimum", "bitwise_and"],
    "?": ["logical_or", "logical_and", "logical_xor", "add"],
}


class Draft:
    """A region in the making."""

    def __init__(self, draw, symbolic):
        self.draw = draw
        self.symbols, self.values, self.arrays = [], {}, {}
        rank = draw(st.integers(0, 3))
        shape = []
        for axis in range(rank):
            size = draw(st.sampled_from([0, 1, 2, 3, 3, 4, 5]))
            if symbolic and draw(st.booleans()):
                minimum = draw(st.integers(0, size))
                self.symbols.append(ir.Symbol(f"N{axis}", minimum, size))
                self.values[f"N{axis}"] = size
                shape.append(dims.symbol(f"N{axis}", minimum))
            else:
                shape.append(size)
        self.shape = tuple(shape)

    def array(self, dtype, shape, role):
        name = f"a{len(self.arrays)}"
        steps = None
        if role == "inout" and all(type(n) is int for n in shape) and self.draw(st.integers(0, 3)) == 0:
            order = self.draw(st.permutations(range(len(shape))))
            steps, step = [0] * len(shape), self.draw(st.sampled_from([1, 1, 2]))
            for axis in order:
                steps[axis] = step * self.draw(st.sampled_from([1, 1, -1]))
                step *= max(shape[axis], 1)
            steps = tuple(steps)
        self.arrays[name] = ir.Array(name, np.dtype(dtype), shape, role, steps)
        return name

    def window(self, dtype, axes, shared=False):
        """A window of a new array that uses these axes of the domain."""
        axes = self.draw(st.permutations(axes))
        index, shape = [], []
        for axis in axes:
            start = self.draw(st.sampled_from([0, 0, 1, 3, 20]))
            stride = self.draw(st.sampled_from([1, 1, 1, 2, -1]))
            n = self.shape[axis]
            if stride < 0:
                index.append(ir.Index(dims.simplify(n - 1 + start), -1, axis))
                shape.append(dims.simplify(n + start))
            else:
                index.append(ir.Index(start, stride, axis))
                shape.append(dims.simplify(n * stride + start + self.draw(st.integers(0, 1))))
        if self.draw(st.integers(0, 4)) == 0:
            index.append(ir.Index(1))
            shape.append(3)
        name = self.array(dtype, tuple(shape), "inout")
        return ir.Window(name, self.shape, tuple(index))

    def load(self, dtype):
        known = [a for a in self.arrays.values() if a.dtype == dtype]
        if known and self.draw(st.booleans()):
            array = self.draw(st.sampled_from(known))
            for window in self.windows:
                if window.array == array.name:
                    return ir.Load(self.shifted(window, array), dtype)
        axes = [axis for axis in range(len(self.shape)) if self.draw(st.integers(0, 3))]
        window = self.window(dtype, axes)
        self.windows.append(window)
        return ir.Load(window, dtype)

    def shifted(self, window, array):
        """Another window of the array with the same strides, if there is room."""
        index = []
        for ix, extent in zip(window.index, array.shape, strict=True):
            offset = ix.offset
            if ix.axis is not None and ix.stride == 1 and self.draw(st.booleans()):
                room = dims.simplify(extent - self.shape[ix.axis])
                if type(room) is int and room >= 0:
                    offset = self.draw(st.integers(0, room))
            index.append(ir.Index(offset, ix.stride, ix.axis))
        return ir.Window(window.array, self.shape, tuple(index))

    def expr(self, dtype, depth):
        kind = self.draw(st.integers(0, 9))
        rank = len(self.shape)
        if depth == 0 or kind < 2:
            if kind == 0:
                return ops.const(self.draw(st.integers(0, 3)), dtype)
            return self.load(dtype)
        if kind == 2 and rank:
            return cast(ir.Iota(self.draw(st.integers(0, rank - 1)), np.dtype(np.int64)), dtype)
        if kind == 3 and rank:
            return cast(ir.Size(self.shape[0], np.dtype(np.int64)), dtype)
        if kind == 4:
            other = self.draw(st.sampled_from([F8, F4, I4]))
            if np.can_cast(other, dtype, "same_kind"):
                return cast(self.expr(other, depth - 1), dtype)
        if kind == 5:
            cond = ir.Apply("less", (self.expr(F8, depth - 1), self.expr(F8, depth - 1)), B1)
            return ir.Apply("where", (cond, self.expr(dtype, depth - 1), self.expr(dtype, depth - 1)), dtype)
        if kind == 6 and rank:
            size = self.draw(st.integers(1, 3))
            name = self.array(dtype, (4, size), "in")
            spot = cast(ir.Apply("less", (self.load(F8), self.load(F8)), B1), np.dtype(np.int64))
            at = (
                ir.Apply("add", (spot, ops.const(1, np.int64)), np.dtype(np.int64)),
                ops.const(size - 1, np.int64),
            )
            return ir.Gather(ir.Window(name, self.shape, ()), at, dtype)
        if dtype.kind == "b":
            return ir.Apply("logical_or", (self.expr(dtype, depth - 1), self.expr(dtype, depth - 1)), dtype)
        name = self.draw(st.sampled_from(["add", "multiply", "subtract", "twice"]))
        a = self.expr(dtype, depth - 1)
        if name == "twice":
            return ir.Apply("add", (a, ir.Apply("multiply", (a, a), dtype)), dtype)
        return ir.Apply(name, (a, self.expr(dtype, depth - 1)), dtype)


def cast(expr, dtype):
    return expr if expr.dtype == dtype else ir.Apply("cast", (expr,), np.dtype(dtype))


@st.composite
def regions(draw):
    """A region of one statement."""
    draft = Draft(draw, draw(st.booleans()))
    draft.windows = []
    rank = len(draft.shape)
    folded = [axis for axis in range(rank) if draw(st.booleans())] if draw(st.integers(0, 2)) else []
    kept = [axis for axis in range(rank) if axis not in folded]
    computes = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        dtype = np.dtype(draw(st.sampled_from("ddfeDiB?")))
        body = draft.expr(dtype, draw(st.integers(0, 3)))
        if folded and draw(st.integers(0, 2)):
            combine = draw(st.sampled_from(COMBINES[dtype.char]))
            init = ops.const(1, dtype) if draw(st.booleans()) else None
            computes.append(ir.Compute(draft.window(dtype, kept), body, combine, init))
            continue
        own = [w for w in draft.windows if draft.arrays[w.array].dtype == dtype and len(axes_of(w)) == rank]
        if own and draw(st.integers(0, 2)) == 0:
            target = draw(st.sampled_from(own))
        else:
            target = draft.window(dtype, list(range(rank)))
            draft.windows.append(target)
        if draw(st.integers(0, 5)) == 0:
            computes.append(ir.Compute(target, body, draw(st.sampled_from(COMBINES[dtype.char])), None))
        else:
            computes.append(ir.Compute(target, body))
    stmt = computes[0] if len(computes) == 1 else ir.Nest(tuple(computes))
    return ir.Region(tuple(draft.symbols), tuple(draft.arrays.values()), (stmt,)), draft.values


def axes_of(window):
    return {ix.axis for ix in window.index if ix.axis is not None}
