"""Generators of random programs' lines that compute new values; see `conformance.lines_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .writer import Writer

# Exact: every bit of the result is the operation's.
BINARY = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "remainder", "less",
    "less_equal", "greater", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "copysign", "right_shift", "left_shift", "fmod", "fmax", "fmin",
    "nextafter", "heaviside", "gcd",
)  # fmt: skip
COMPARISONS = BINARY[8:13]  # with ``where`` and an integer out of range these crash NumPy 2.4
UNARY = (
    "negative", "positive", "floor", "ceil", "trunc", "rint", "square", "sign", "isfinite", "isnan", "isinf",
    "signbit", "invert", "logical_not", "conjugate", "reciprocal", "fabs", "spacing",
)  # fmt: skip
# Known within rounding: another library or order may give other last bits.
ROUGH_BINARY = ("power", "hypot", "arctan2", "logaddexp", "float_power")
ROUGH_UNARY = (
    "exp", "sin", "cos", "tanh", "log1p", "expm1", "sqrt", "cbrt", "arctan", "absolute", "log", "exp2",
)  # fmt: skip
# What small errors stay small in.
SMOOTH_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
SMOOTH_UNARY = ("negative", "positive", "conjugate", "tanh", "arctan")
OPERATORS = ("+", "-", "*", "/", "//", "%", "<", ">=", "==", "!=", "&", "|", "^", ">>")
EXACT_FOLDS = ("max", "min", "any", "all", "argmax", "argmin", "count_nonzero", "ptp", "nanmax", "amin")
ROUGH_FOLDS = (
    "sum", "prod", "mean", "var", "std", "nansum", "nanmean", "cumsum", "cumprod", "average", "median",
)  # fmt: skip
FOLDING = (
    "add", "multiply", "maximum", "minimum", "logical_or", "logical_and", "bitwise_xor", "fmax", "subtract",
)  # fmt: skip
EINSUM = {
    1: ("i->i", "i->", "i,i->i", "i,i", "i,j->ij"),
    2: ("ij->ji", "ij->i", "ij->", "ij,ij->ij", "ij,jk", "ij,j->i"),
}


def binary(w: Writer) -> bool:
    """Write a ufunc or an operator of two operands."""
    rough = w.chance(0.25)
    name = w.one(
        SMOOTH_BINARY + ROUGH_BINARY[:1] if rough and w.chance(0.8) else BINARY[: 20 if w.long else None]
    )
    smooth = name in SMOOTH_BINARY
    a = w.array(rough=smooth)
    b = w.mate(a, rough=smooth)
    if w.chance(0.5):
        a, b = b, a
    v = w.fresh()
    if w.chance(0.4) and not w.is_rough(_first(w, a, b)) and not w.is_rough(_first(w, b, a)):
        return w.write(f"{v} = {a} {w.one(OPERATORS)} {b}", v)
    if w.chance(0.02 if w.long else 0.1):
        return w.write(
            f"{v} = np.{name}({a}, {b}, dtype={w.dtype()!r}, casting={w.one(('unsafe', 'same_kind'))!r})", v
        )
    return w.write(f"{v} = np.{name}({a}, {b})", v, rough=name in ROUGH_BINARY)


def _first(w: Writer, *texts: str) -> str:
    """Return the first operand that is an array."""
    return next(t for t in texts if t in w.scope and t in w.names)


def rough_binary(w: Writer) -> bool:
    """Write a ufunc from a mathematical library, with results that depend on rounding."""
    a = w.array()
    v = w.fresh()
    return w.write(f"{v} = np.{w.one(ROUGH_BINARY)}({a}, {w.mate(a)})", v, rough=True)


def unary(w: Writer) -> bool:
    """Write a ufunc of one operand."""
    v = w.fresh()
    if w.chance(0.2):
        return w.write(f"{v} = np.{w.one(SMOOTH_UNARY)}({w.array(rough=True)})", v, rough=True)
    if w.chance(0.25):
        return w.write(f"{v} = np.{w.one(ROUGH_UNARY)}({w.array()})", v, rough=True)
    if w.chance(0.15):
        return w.write(f"{v} = {w.one(('-', '+', '~'))}{w.array()}", v)
    return w.write(f"{v} = np.{w.one(UNARY)}({w.array()})", v)


def several(w: Writer) -> bool:
    """Write a ufunc with two results."""
    v, u, a = w.fresh(), w.fresh(), w.array()
    call = w.one(
        (f"np.modf({a})", f"np.frexp({a})", f"np.divmod({a}, {w.mate(a)})", f"divmod({a}, {w.mate(a)})")
    )
    return w.write(f"{v}, {u} = {call}", f"{v} {u}")


def output(w: Writer) -> bool:
    """Write a ufunc with the argument ``out``."""
    rough = w.chance(0.2)
    name = w.one(SMOOTH_BINARY if rough else BINARY[:12])
    a = w.array(rough=rough)
    out = w.array(lambda x: x.shape == w.scope[a].shape, rough=True)
    where = ""
    if w.chance(0.15) and name not in COMPARISONS:
        where = f", where={w.array(lambda x: x.dtype == bool)}"
    casting = f", casting={w.one(('unsafe', 'no', 'same_kind'))!r}" if w.chance(0.15) else ""
    text = f"np.{name}({a}, {w.mate(a, rough)}, out={out}{where}{casting})"
    if w.chance(0.3):
        v = w.fresh()
        return w.write(f"{v} = {text}", v, into=out)
    return w.write(text, into=out)


def update(w: Writer) -> bool:
    """Write an augmented assignment to an array or an indexed array."""
    rough = w.chance(0.2)
    a = w.array(lambda x: x.flags.writeable, rough=True)
    b = w.mate(a, rough)
    kind = w.one(
        ("+=", "-=", "*=")
        if rough or w.is_rough(a)
        else ("+=", "-=", "*=", "//=", "|=", "&=", "^=", "/=", "%=")
    )
    key = w.chance(0.35)
    if not key:
        return w.write(f"{a} {kind} {b}", into=a)
    where = w.fancy(a) if w.chance(0.05 if w.long else 0.3) and not w.is_rough(a) else w.key(w.scope[a].shape)
    b = w.scalar() if w.chance(0.6) else f"{a}[{w.key(w.scope[a].shape)}]"
    return w.write(f"{a}[{where}] {kind} {b}", into=a)


def fold(w: Writer) -> bool:
    """Write a reduction over any axes."""
    exact = w.chance(0.45)
    name = w.one(EXACT_FOLDS if exact else ROUGH_FOLDS)
    a = w.array(rough=not exact and name in ("sum", "mean"))
    v, x = w.fresh(), w.scope[a]
    more = ""
    if name in ("argmax", "argmin", "cumsum", "cumprod"):
        axis = "None" if w.chance(0.4) else str(w.axis(x))
    else:
        axis = w.axes(x)
        more = ", keepdims=True" if w.chance(0.3) else ""
    if name in ("sum", "prod", "mean", "cumsum") and w.chance(0.2):
        more += f", dtype={w.dtype()!r}"
    if name in ("sum", "prod", "max", "min") and w.chance(0.2):
        more += f", initial={w.scalar()}"
        if w.chance(0.5):
            more += f", where={a} > 0"
    if name in ("var", "std") and w.chance(0.4):
        more += ", ddof=1"
    method = hasattr(x, name) and w.chance(0.4)
    text = f"{a}.{name}(axis={axis}{more})" if method else f"np.{name}({a}, axis={axis}{more})"
    return w.write(f"{v} = {text}", v, rough=not exact)


def plain_fold(w: Writer) -> bool:
    """Write a reduction that dcarray records."""
    name = w.one(("sum", "max", "min", "mean", "any", "all"))
    a = w.array(lambda x: x.ndim > 1, rough=name in ("sum", "mean"))
    v = w.fresh()
    keep = ", keepdims=True" if w.chance(0.4) else ""
    return w.write(f"{v} = np.{name}({a}, axis={w.axis(w.scope[a])}{keep})", v, rough=name in ("sum", "mean"))


def method(w: Writer) -> bool:
    """Write a method of a ufunc, such as ``np.add.reduce``."""
    name = w.one(FOLDING)
    a, v = w.array(), w.fresh()
    x = w.scope[a]
    axis, n = w.axis(x), x.shape[0] if x.ndim else 0
    into = w.chance(0.2) and x.flags.writeable
    ways = (
        f"np.{name}.reduce({a}, axis={w.axes(x)}, keepdims={w.chance(0.3)})",
        f"np.{name}.accumulate({a}, axis={axis})",
        f"np.{name}.reduceat({a}, {[w.r.randrange(n) for _ in range(3)] if n else [0]})",
        f"np.{name}.outer({a}, {w.mate(a)})", f"np.{name}.reduce({a}, axis={axis}, initial={w.scalar()})",
    )  # fmt: skip
    if into:
        index = w.one((w.indices(n, (3,)), f"(slice(None), {w.indices(x.shape[-1] if x.ndim else 0, (2,))})"))
        return w.write(f"np.{name}.at({a}, {index}, {w.scalar()})", into=a)
    return w.write(f"{v} = {w.one(ways)}", v, rough=name in ("add", "multiply", "subtract"))


def join(w: Writer) -> bool:
    """Write a concatenation, split, padding or selection of arrays."""
    a = w.array(rough=True)
    x = w.scope[a]
    b = w.array(lambda y: y.ndim == x.ndim, rough=True)
    v, axis, s = w.fresh(), w.axis(x), w.scalar()
    mode = w.one(("edge", "constant", "reflect", "wrap", "symmetric", "maximum", "empty"))
    smooth = (
        f"np.concatenate(({a}, {b}), axis={w.one((axis, None))})",
        f"np.concatenate([{a}, {b}, {a}], dtype='c16')", f"np.stack([{a}, {a}], axis={axis})",
        f"np.vstack(({a}, {b}))", f"np.hstack([{a}, {b}])",
        f"np.roll({a}, {w.r.randint(-4, 4)}, axis={w.one((axis, None))})",
        f"np.tile({a}, {w.one((2, (2, 1), 0))})",
        f"np.repeat({a}, {w.one((2, 0, 3))}, axis={w.one((axis, None))})", f"np.append({a}, {b})",
        f"np.pad({a}, {w.one((1, (0, 2)))}, mode={mode!r})" if mode != "empty" else f"np.pad({a}, 1)",
        f"np.array_split({a}, 2)[1]", f"np.diff({a}, axis={axis})", f"np.tril({a})",
        f"np.where({s}, {a}, {b})", f"np.broadcast_arrays({a}, {b})[0].copy()", f"np.meshgrid({a}, {b})[1]",
        f"np.delete({a}, 0, axis={axis})", f"np.insert({a}, 1, {s}, axis={axis})", f"np.array([{a}, {a}])",
        f"np.array({a}, copy=True)", f"np.column_stack([{a}, {a}])", f"np.unstack({a})[0]",
        f"np.block([{a}, {b}])", f"np.full_like({a}, {s})", f"np.zeros_like({a}) + {a}",
    )  # fmt: skip
    return w.write(f"{v} = {w.one(smooth)}", v)


def choose(w: Writer) -> bool:
    """Write a selection by conditions or by order."""
    a, v = w.array(), w.fresh()
    b, x = w.mate(a), w.scope[a]
    axis = w.axis(x)
    ways = (
        f"np.where({a} > {w.scalar()}, {a}, {b})", f"np.where({a}, {b}, {w.scalar()})",
        f"np.clip({a}, {w.scalar()}, {b})", f"{a}.clip({w.scalar()}, None)", f"np.sort({a}, axis={axis})",
        f"np.argsort({a}, axis={axis}, kind='stable')", f"np.unique({a})",
        f"np.select([{a} > 0, {a} < 3], [{a}, {b}], {w.scalar()})", f"np.isin({a}, [0, 1, 2.5])",
        f"np.searchsorted(np.sort(np.ravel({a})), {w.scalar()})", f"np.choose({a} > 0, [{a}, {b}])",
        f"np.round({a})", f"np.digitize({a}, [-2, 0, 2])", f"np.nan_to_num({a})", f"np.isclose({a}, {b})",
        f"np.flatnonzero({a})", f"np.argwhere({a})", f"np.bincount(np.ravel({a}))",
        f"np.histogram({a}, bins=3, range=(-4, 4))[0]", f"np.angle({a})",
        f"np.partition({a}, 0, axis={axis})[..., :1]", f"np.trim_zeros(np.ravel({a}))",
        f"np.lexsort(({a},))",
    )  # fmt: skip
    return w.write(f"{v} = {w.one(ways)}", v, rough=False)


def product(w: Writer) -> bool:
    """Write a matrix product or another sum of products."""
    a = w.array(rough=w.chance(0.3))
    v, x = w.fresh(), w.scope[a]
    b = w.array(lambda y: y.ndim and x.ndim and x.shape[-1] == y.shape[-2 if y.ndim > 1 else -1])
    specs = EINSUM.get(x.ndim, ("...->...",))
    spec = w.one(specs)
    second = f", {w.array(lambda y: y.shape == x.shape)}" if "," in spec else ""
    ways = (
        f"{a} @ {b}", f"np.dot({a}, {b})", f"np.matmul({a}, {b})", f"np.einsum({spec!r}, {a}{second})",
        f"np.inner({a}, {a})", f"np.outer({a}, {b})", f"np.tensordot({a}, {b}, axes=1)", f"np.trace({a})",
        f"np.vdot({a}, {a})", f"np.kron({a}, {b})", f"np.gradient({a}, axis={w.axis(x)})",
        f"np.convolve({a}, {b})", f"np.trapezoid({a})", f"np.linalg.norm({a})",
        f"np.interp({a}, [-2, 0, 3], [1, 2, 0])", f"np.cross({a}, {a})", f"np.cov({a})",
        f"np.fft.fft({a}).real",
    )  # fmt: skip
    return w.write(f"{v} = {w.one(ways)}", v, rough=True)


def states(w: Writer) -> bool:
    """Write an operation under an ``np.errstate`` that does not ignore all errors."""
    a, v = w.array(), w.fresh()
    what = w.one(("all", "divide", "invalid", "over"))
    name = w.one(("divide", "multiply", "add", "floor_divide", "remainder", "subtract"))
    b = w.mate(a)
    make = w.one(
        (f"np.{name}({a}, {b})", f"np.sqrt({a})", f"{a}.astype('f4') / {w.scalar()}", f"np.reciprocal({a})")
    )
    rough = "sqrt" in make
    how = w.one(("warn", "raise"))
    return w.write(f"with np.errstate({what}={how!r}): {v} = evaluate({make})", v, rough=rough)
