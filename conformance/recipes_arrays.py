"""The arrays of `conformance.functions`, and its lines for methods, attributes, operators and ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["LEFT_OUT", "METHODS", "UNSET", "arrays", "ufuncs"]

_SHAPE = (6, 8)


def arrays() -> dict[str, Any]:
    """Return new NumPy arrays for the names that lines use.

    ====== =====================================================================
    x y q  float64 (6, 8), those of y positive, q with NaNs
    i j    int64 (6, 8), those of j small and positive
    b c    bool (6, 8)
    z f g  complex128, float32 and float16 (6, 8)
    t      float64 (3, 4, 5)
    v w    float64 (8,), w sorted
    k n    int64 (5,) and (8,), indices; those of n up to 3
    o      bool (8,)
    m s    float64 (5, 5), regular, and symmetric and positive
    r      float64 (5,)
    u      uint8 (4, 8)
    e h    float64 and int64 without axes
    d      datetime64[D] (8,), none on a weekend
    ====== =====================================================================
    """
    rng = np.random.default_rng(7)
    m = rng.normal(size=(5, 5)) + 3 * np.eye(5)
    w = np.linspace(0.5, 4.0, 8)
    q = np.linspace(-2.0, 2.0, 48).reshape(_SHAPE)
    q[1, 2] = q[4, 5] = np.nan
    made = {
        "x": rng.permuted(np.linspace(-2.5, 3.0, 48)).reshape(_SHAPE),
        "y": rng.permuted(np.linspace(0.25, 3.25, 48)).reshape(_SHAPE),
        "q": q,
        "i": rng.integers(-9, 10, _SHAPE),
        "j": rng.integers(1, 6, _SHAPE),
        "b": rng.random(_SHAPE) > 0.5,
        "c": rng.random(_SHAPE) > 0.5,
        "z": rng.normal(size=_SHAPE) + 1j * rng.normal(size=_SHAPE),
        "f": rng.normal(size=_SHAPE).astype(np.float32),
        "g": rng.normal(size=_SHAPE).astype(np.float16),
        "t": rng.normal(size=(3, 4, 5)),
        "v": rng.permuted(w) - 2,
        "w": w,
        "k": np.array([3, 0, 5, 0, 2]),
        "n": np.array([3, 1, 0, 2, 2, 1, 0, 3]),
        "o": np.array([True, False, True, True, False, False, True, False]),
        "m": m,
        "s": m @ m.T + np.eye(5),
        "r": rng.normal(size=5),
        "u": rng.integers(0, 256, (4, 8), dtype=np.uint8),
        "e": np.array(2.5),
        "h": np.array(3),
        "d": np.busday_offset("2024-03-01", np.arange(8), roll="forward"),
    }
    return {name: a.copy() for name, a in made.items()}  # that own their memory


METHODS: dict[str, str] = {
    "Methods of arrays": """
        x.all(axis=0)
        x.any(axis=0)
        x.argmax(axis=0)
        x.argmin()
        v.argpartition(3)
        x.argsort()
        x.astype(np.float32)
        x.astype(np.int64, order="F")
        i.byteswap()
        n.choose([v, w, v + w, v - w])
        x.clip(-1, 1)
        x.compress(o, axis=1)
        z.conj()
        z.conjugate()
        x.copy()
        x.copy(order="F")
        y.cumprod(axis=0)
        x.cumsum(axis=0)
        x.diagonal()
        m.dot(s)
        x.dump(file); len(file.getvalue()) > 0
        len(x.dumps()) > 0
        x.fill(3.5)
        x.flatten()
        x.flatten("F")
        z.getfield(np.float64, 8)
        x.item(3)
        x.max(axis=0)
        x.mean(axis=0)
        x.min(axis=0)
        b.nonzero()
        v.partition(3)
        y.prod(axis=0)
        x.put(k, 1.5)
        x.ravel()
        x.ravel("F")
        x.repeat(2, axis=0)
        x.reshape(8, 6)
        x.reshape((8, 6), order="F")
        v.resize(4, refcheck=False)
        x.round(1)
        w.searchsorted(v)
        z.setfield(1.5, np.float64)
        x.setflags(write=False); x.flags.writeable
        x.sort()
        x[:, :1].squeeze()
        x.std(axis=0)
        x.sum(axis=0)
        t.swapaxes(0, 2)
        x.take(k, axis=0)
        x.to_device("cpu")
        x.tobytes()
        x.tofile(path)
        x.tolist()
        m.trace()
        t.transpose(2, 0, 1)
        x.var(axis=0)
        x.view()
        x.view(np.int64)
    """,
    "Attributes of arrays": """
        x.T
        x.mT
        x[1:].base.shape
        x.ctypes.strides[0]
        x.data.nbytes
        x.device
        x.dtype
        str(x.flags)
        [float(a) for a in x.flat]
        z.imag
        z.real
        x.itemsize
        x.nbytes
        x.ndim
        x.shape
        x.size
        x.strides
    """,
    "Operators and protocols": """
        x.__abs__()
        x.__add__(y)
        i.__and__(j)
        x.__array__().sum()
        x.__array_interface__["shape"]
        x.__array_namespace__().__name__.partition(".")[0] in ("numpy", "dcarray")
        x.__array_priority__ >= 0
        x.__array_struct__ is not None
        x.__array_function__(real.sum, (type(x),), (x,), {"axis": 0})
        x.__array_ufunc__(real.add, "__call__", x, y)
        x.__array_wrap__(real.zeros(3)).shape
        e.__bool__()
        e.__complex__()
        x.__contains__(1.5)
        x.__copy__()
        x.__deepcopy__({})
        x.__dlpack__() is not None
        x.__dlpack_device__()
        x.__divmod__(y)
        e.__float__()
        x.__floordiv__(y)
        x.__getitem__((slice(1, 5), 2))
        x.__getitem__((slice(None), k))
        x.__getitem__(b)
        x.__iadd__(y)
        i.__iand__(j)
        x.__ifloordiv__(y)
        i.__ilshift__(j)
        m.__imatmul__(s)
        x.__imod__(y)
        x.__imul__(y)
        h.__index__()
        h.__int__()
        i.__invert__()
        i.__ior__(j)
        y.__ipow__(2)
        i.__irshift__(j)
        x.__isub__(y)
        [p.shape for p in x.__iter__()]
        x.__itruediv__(y)
        i.__ixor__(j)
        x.__len__()
        i.__lshift__(j)
        m.__matmul__(s)
        x.__mod__(y)
        x.__mul__(y)
        x.__neg__()
        i.__or__(j)
        x.__pos__()
        y.__pow__(x)
        x.__radd__(2.0)
        i.__rand__(2)
        x.__rdivmod__(2.0)
        x.__rfloordiv__(2.0)
        j.__rlshift__(2)
        m.__rmatmul__(s)
        x.__rmod__(2.0)
        x.__rmul__(2.0)
        i.__ror__(2)
        x.__rpow__(2.0)
        j.__rrshift__(2)
        i.__rshift__(j)
        x.__rsub__(2.0)
        x.__rtruediv__(2.0)
        i.__rxor__(2)
        x.__setitem__((slice(1, 5), 2), 1.5)
        x.__setitem__((slice(None), k), 1.5)
        x.__setitem__(b, 1.5)
        x.__sub__(y)
        x.__truediv__(y)
        i.__xor__(j)
        x.__lt__(y)
        x.__le__(y)
        x.__eq__(y)
        x.__ne__(y)
        x.__gt__(y)
        x.__ge__(y)
    """,
}  # fmt: skip

LEFT_OUT: dict[str, str] = {
    "they tell about NumPy or set it up": """
        errstate get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions
        setbufsize seterr seterrcall show_config show_runtime test
    """,
    "classes of dtypes, and of what is no array": "busdaycalendar dtype finfo iinfo ufunc",
    "subclasses of ndarray, which stay what they are": "matrix memmap recarray",
    "the class of arrays, and of what x.flat gives": "flatiter ndarray",
    "how NumPy talks to subclasses, types and pickles": """
        ndarray.__array_finalize__ ndarray.__class_getitem__ ndarray.__setstate__
    """,
    "arrays have it to refuse it": "ndarray.__delitem__",
    "these tell about a ufunc": """
        ufunc.identity ufunc.nargs ufunc.nin ufunc.nout ufunc.ntypes ufunc.resolve_dtypes ufunc.signature
        ufunc.types
    """,
    "no functions": "False_ ScalarType True_ __array_namespace_info__ __version__ sctypeDict typecodes",
}
UNSET = ("empty", "empty_like")  # whose values mean nothing

# ---- ufuncs ------------------------------------------------------------------------------------------
# By kind: two operands, an array along one axis, and values for five of its elements.
_OPERANDS = {
    "d": ("x", "y", "v", "r"),
    "l": ("i", "j", "n", "k"),
    "?": ("b", "c", "o", "o[:5]"),
    "D": ("z", "z[::-1]", "z[0]", "z[0, :5]"),
}
_OTHERS = {
    "ldexp": ["np.ldexp(x, j)"],
    "isnat": ["np.isnat(d)"],
    "matmul": ["np.matmul(m, s)", "np.matmul(t, m)", "np.matmul(i, j.T)"],
    "vecdot": ["np.vecdot(x, y)"],
    "matvec": ["np.matvec(x, v)"],
    "vecmat": ["np.vecmat(v, x.T)"],
    "add": [
        "np.add(x, y, out=q)",
        "np.add(x, y, out=q, where=b)",
        "np.add(x, y, dtype=np.float32, casting='same_kind')",
        "np.add(x, f)",
        "np.add(g, g)",
        "np.add(d, 1)",
    ],
}
_METHODS = {
    "reduce": "np.{0}.reduce({1}, axis=0)",
    "accumulate": "np.{0}.accumulate({1}, axis=0)",
    "reduceat": "np.{0}.reduceat({1}, [0, 3, 1])",
    "outer": "np.{0}.outer({3}, {3})",
    "at": "np.{0}.at({3}, k, {4})",
}


def ufuncs(accepted: Callable[[str], bool]) -> dict[str, str]:
    """Return lines for all ufuncs and their methods, by group.

    Parameters
    ----------
    accepted : callable
        Returns whether NumPy runs a line without an error.
    """
    calls: list[str] = []
    methods: dict[str, list[str]] = {name: [] for name in _METHODS}
    for name in dir(np):
        ufunc = getattr(np, name)
        if not isinstance(ufunc, np.ufunc) or name.startswith("_"):
            continue
        takes = {kinds.partition("->")[0] for kinds in ufunc.types}
        usual = [] if ufunc.signature else [k for k in _OPERANDS if k * ufunc.nin in takes]
        operands = ("{1}", "{1}, {2}")
        for kind in usual:
            calls.append(f"np.{name}({operands[ufunc.nin - 1]})".format("", *_OPERANDS[kind]))
        calls += _OTHERS.get(name, [])
        if ufunc.__name__ == name or getattr(np, ufunc.__name__, None) is not ufunc:
            for method, text in _METHODS.items():
                unary = ufunc.nin == 1 and method == "at"
                template = "np.{0}.at({3}, k)" if unary else text
                lines = (template.format(name, *_OPERANDS[kind]) for kind in usual)
                methods[method] += [line for line in lines if accepted(line)][:1]
    found = {"Ufuncs": calls, **{f"Ufuncs: {method}": lines for method, lines in methods.items()}}
    return {group: "\n".join(lines) for group, lines in found.items()}
