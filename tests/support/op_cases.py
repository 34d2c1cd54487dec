"""Every operation with each of its loops, as a region of one statement, and operands that try it."""

import itertools

import numpy as np

from dcarray.ir.nodes import Apply, Array, Compute, Load, Region
from dcarray.ir.ops import OPS, loop_dtype
from dcarray.ir.windows import identity

CHARS = "?bBhHiIlLqQefdFD"
INTEGERS = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -1.5, 2.5, 3.0, -7.25, 1e-3, 12.0, 1e4, 255.5, -255.5, np.nan]
FLOATS += [np.inf, -np.inf, 65504.0, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 1.8e19, 3e38, 1e300, 1e-40]


def loops(name):
    """The loops of an operation: pairs of the operands' dtypes and the result's."""
    every = [np.dtype(char) for char in dict.fromkeys(CHARS)]
    if name == "cast":
        return [((a,), b) for a, b in itertools.product(every, every)]
    if name == "where":
        return [((np.dtype(bool), a, a), a) for a in every]
    if name == "checked":
        return [((np.dtype(bool), a), a) for a in every]
    second = every if name == "ldexp" else [None]
    found = []
    for a, b in itertools.product(every, second):
        kinds = (a,) * OPS[name].nin if b is None else (a, b)
        result = loop_dtype(name, kinds)
        if result is not None and result.char in CHARS:
            found.append((kinds, result))
    return found


def values(dtype):
    """Values of a dtype that try an operation: special ones, the least and the greatest, random ones."""
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            return np.array([False, True])
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            few = [n for n in (*INTEGERS, *(-n for n in INTEGERS)) if info.min <= n <= info.max]
            least, most = int(info.min), int(info.max)
            few += [least, least + 1, least // 2, most // 3, most // 2 + 1, most - 1, most]
            return np.array(few, dtype)
        real = np.array(FLOATS, np.dtype(dtype.char.lower()))
        if dtype.kind == "f":
            more, info = rng.normal(0, 3, 40).astype(dtype), np.finfo(dtype)
            tiny = info.smallest_subnormal
            ends = np.array([info.max, info.tiny, tiny, 3 * tiny], dtype)
            return np.concatenate([real, more, ends, -ends])
        parts = np.array([*FLOATS[:18], 0.1, 1e30, 1e-30], real.dtype)
        pairs = np.array([*itertools.product(parts, parts)])
        return np.ascontiguousarray(pairs).view(dtype).ravel()


def operands(kinds):
    """Operands of these dtypes: every pair of their values."""
    if len(kinds) == 1:
        return (values(kinds[0]),)
    if len(kinds) == 3:
        a = values(kinds[1])
        return np.resize([True, False, True], a.size), a, a[::-1].copy()
    a, b = values(kinds[0]), values(kinds[1])
    if kinds[0].kind == "c":
        a, b = a[::5], b[::5]
    return np.repeat(a, b.size), np.tile(b, a.size)


def region(name, kinds, result, size):
    """``o[i] = name(a0[i], ...)``."""
    arrays = [Array(f"a{k}", kind, (size,), "in") for k, kind in enumerate(kinds)]
    args = tuple(Load(identity(array), array.dtype) for array in arrays)
    out = Array("o", result, (size,), "out")
    return Region((), (*arrays, out), (Compute(identity(out), Apply(name, args, result)),))


def reference(name, given, result):
    """What NumPy gives."""
    with np.errstate(all="ignore"):
        made = OPS[name].reference(*given)
        return np.asarray(made).astype(result)
