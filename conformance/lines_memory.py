"""Generators of random programs' lines about memory: views, writes, owners, exports, threads, lifetimes.

Each function writes a line with a writer `w`, and returns whether the writer has accepted it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .lines_values import BINARY

if TYPE_CHECKING:
    from .writer import Writer


def view(w: Writer) -> bool:
    """Write a view by basic indexing."""
    a, v = w.array(rough=True), w.fresh()
    return w.write(f"{v} = {a}[{w.key(w.scope[a].shape)}]", v)


def turned(w: Writer) -> bool:
    """Write a view with permuted, reversed, inserted or broadcast axes."""
    a, v = w.array(rough=True), w.fresh()
    x = w.scope[a]
    axis = w.axis(x)
    ways = [
        f"{a}.T", f"np.flip({a}, {w.axes(x)})", f"{a}[::-1]", f"np.swapaxes({a}, 0, {axis})",
        f"np.moveaxis({a}, 0, {axis})", f"np.squeeze({a})", f"np.expand_dims({a}, {axis})",
        f"np.broadcast_to({a}, {(w.r.randint(0, 3), *x.shape)})", f"np.diagonal({a})", f"{a}.real",
        f"{a}.imag", f"np.rot90({a})", f"np.atleast_2d({a})", f"{a}.view()", f"{a}.flatten('F')",
        f"np.rollaxis({a}, {axis})", f"np.lib.stride_tricks.sliding_window_view({a}, 2, axis={axis})",
        f"{a}.mT", f"np.permute_dims({a})",
    ]  # fmt: skip
    return w.write(f"{v} = {w.one(ways)}", v)


def reshaped(w: Writer) -> bool:
    """Write a view with another shape or dtype."""
    a, v = w.array(rough=True), w.fresh()
    x = w.scope[a]
    shapes = ["-1", "(-1, 1)", "(1, -1)", str(x.shape[::-1]), str((*x.shape, 1)), "(2, -1)", "(-1, 3)"]
    ways = [f"{a}.reshape({w.one(shapes)})", f"{a}.ravel()", f"np.reshape({a}, {w.one(shapes)}, order='F')"]
    if x.dtype.char in _OTHER and w.has_layout(a):
        ways.append(f"{a}.view({_OTHER[x.dtype.char]!r})")
    # a result of ours may lie in another order in memory: is it copied or viewed then?
    return w.write(f"{v} = {w.one(ways)}{'' if w.has_layout(a) else '.copy()'}", v)


_OTHER = {"b": "u1", "B": "i1", "h": "u2", "i": "u4", "l": "u8", "D": "f8", "?": "u1"}


def fancy(w: Writer) -> bool:
    """Write an advanced indexing."""
    a, v = w.array(rough=True), w.fresh()
    n = w.scope[a].size
    if w.chance(0.25):
        axis = w.axis(w.scope[a])
        size = w.scope[a].shape[axis] if w.scope[a].ndim and abs(axis) < w.scope[a].ndim else n
        ways = (
            f"np.take({a}, {w.indices(size, (2,))}, axis={axis})",
            f"{a}.take({w.indices(n, (2, 2))}, mode='wrap')",
            f"np.compress([True, False, True][:{size}], {a}, axis={axis})", f"np.nonzero({a})[0]",
            f"{a}.flat[1:5]", f"np.extract({a} > 0, {a})",
            f"np.take_along_axis({a}, np.argsort({a}, axis={axis}, kind='stable'), {axis})",
        )  # fmt: skip
        return w.write(f"{v} = {w.one(ways)}", v)
    return w.write(f"{v} = {a}[{w.fancy(a)}]", v)


def assign(w: Writer) -> bool:
    """Write an assignment to an indexed array."""
    a = w.array(lambda x: x.flags.writeable, rough=True)
    shape = w.scope[a].shape
    if w.scope[a].dtype == object:  # one that holds itself overflows the stack in NumPy
        key, value = w.key(shape), w.scalar()
    elif w.chance(0.02 if w.long else 0.35):
        key = w.fancy(a) if not w.is_rough(a) or w.chance(0.5) else w.key(shape)
        value = w.scalar() if w.chance(0.6) else w.array()
    else:
        key = w.key(shape)
        value = w.one((w.scalar(), w.mate(a), f"{a}[{w.key(shape)}]", w.mate(a)))
    if (
        a in w.plain and value in w.names
    ):  # where one element is meant, NumPy asks wrapped arrays for a number
        key += "," * (key[-1] != ",") + " ..." if "..." not in key else ""
    return w.write(f"{a}[{key}] = {value}", into=a)


def put(w: Writer) -> bool:
    """Write a call or an attribute assignment that changes an array."""
    a = w.array(lambda x: x.flags.writeable, rough=True)
    s, n = w.scalar(), w.scope[a].size
    ways = (
        f"{a}.fill({s})", f"np.copyto({a}, {w.scalar()}, casting='unsafe')",
        f"np.put({a}, {w.indices(n, (2,))}, {s})", f"np.place({a}, np.isfinite({a}), [{s}])",
        f"np.putmask({a}, {a} == {a}, {s})", f"{a}.flat = {s}", f"{a}.flat[::2] = {s}", f"{a}.real = {s}",
        f"{a}.T[...] = {w.scalar()}", f"np.fill_diagonal({a}, {s})", f"{a}[...] = {a}[::-1]",
        f"{a}[1:] = {a}[:-1]", f"{a}[:-1] += {a}[1:]", f"{a}.sort(axis=-1)", f"{a}[:] = {a}.T",
        f"np.conjugate({a}, out={a})",
        f"np.add.at({a}, {w.indices(len(w.scope[a]) if w.scope[a].ndim else 0, (3,))}, {s})",
    )  # fmt: skip
    return w.write(w.one(ways[:6] if w.is_rough(a) else ways), into=a)


def cast(w: Writer) -> bool:
    """Write a conversion to another dtype, or a copy."""
    a, v = w.array(), w.fresh()
    dtype = w.dtype()
    if w.scope[a].dtype.kind in "fc" and dtype[0] in "iu" and w.chance(0.9):
        # what does not fit has no meaning
        return w.write(f"{v} = np.nan_to_num({a}).real.clip(0, 99).astype({dtype!r})", v)
    ways = (
        f"{a}.astype({dtype!r})", f"{a}.astype({dtype!r})", f"{a}.astype({dtype!r}, casting='same_kind')",
        f"{a}.astype({dtype!r}, order='C')", f"{a}.astype({dtype!r}, order='F')", f"{a}.copy()",
        f"np.copy({a})", f"np.array({a}, dtype={dtype!r})", f"np.ascontiguousarray({a}).copy()",
        f"pickle.loads(pickle.dumps({a}))", f"copy.deepcopy({a})", f"np.astype({a}, np.dtype({dtype!r}))",
    )  # fmt: skip
    return w.write(f"{v} = {w.one(ways)}", v)


def plain_cast(w: Writer) -> bool:
    """Write a conversion or copy that dcarray records."""
    a, v = w.array(), w.fresh()
    kind = w.one(("f8", "f4", "c16"))
    return w.write(f"{v} = {w.one((f'{a}.astype({kind!r})', f'{a}.copy()'))}", v)


def owned(w: Writer) -> bool:
    """Write an operation with a NumPy array that is changed right after the call."""
    a = w.array()
    p, v, x = w.fresh("p"), w.fresh(), w.scope[a]
    layout = w.one(("C", "F", "step", "flip"))
    made = f"{p} = plain({w.dtype()!r}, {w.suffix(x.shape)}, {w.r.randrange(99)}, {layout!r})"
    change = w.one((f"{p}[...] = {w.scalar()}", f"{p} += 1", f"{p}[:1] = 0", f"{p}.fill(3)"))
    name = w.one(BINARY[:10])
    ways = (
        f"{v} = np.{name}({a}, {p})", f"{v} = {p} * {a}", f"{v} = np.where({a} > 0, {p}, {a})",
        f"{v} = {a} - {p}[...]", f"{v} = np.concatenate(({a}, {p}))", f"{v} = {a} + 1; {v}[...] = {p}",
        f"{v} = np.clip({a}, {p}, 3)", f"{v} = np.stack([{p}, {a}])", f"{v} = {a} + {p}.T.T",
        f"{v} = np.minimum({p}, {a})[..., None]",
    )  # fmt: skip
    return w.write(f"{made}; {w.one(ways)}; {change}", f"{v} {p}")


def target(w: Writer) -> bool:
    """Write an operation that stores results in a NumPy array."""
    a = w.array(lambda x: x.dtype != object)  # NumPy converts objects of others before it looks at shapes
    p, x = w.fresh("p"), w.scope[a]
    made = f"{p} = plain({w.dtype()!r}, {x.shape}, {w.r.randrange(99)})"
    ways = (
        f"{p} += {a}", f"{p}[...] = {a}", f"np.add({a}, {w.scalar()}, out={p})",
        f"np.copyto({p}, {a}, casting='unsafe')", f"np.multiply({p}, {a}, out={p}, casting='unsafe')",
        f"{p}[::2] = {a}[::2]", f"np.subtract({p}, {a}, out={p}[...])",
    )  # fmt: skip
    change = w.one(("", f"; {a}[...] = 1", f"; {p}[...] = 0", f"; {p}.copy()"))
    return w.write(f"{made}; {w.one(ways)}{change}", p, into=a)


def exported(w: Writer) -> bool:
    """Write the export of a dcarray array as a NumPy view."""
    a, e = w.array(rough=True), w.fresh("e")
    ways = (f"export({a})", f"export({a})", f"export({a}[{w.key(w.scope[a].shape)}])", f"export({a}.T)")
    return w.write(f"{e} = {w.one(ways)}", e)


def through(w: Writer) -> bool:
    """Write a change through an exported view while operations on the same memory are pending."""
    found = [n for n in w.names if n.startswith("e") and w.scope[n].flags.writeable and not w.is_rough(n)]
    if not found:
        return exported(w)
    e, v = w.one(found), w.fresh()
    a = w.array(lambda x: np.shares_memory(x, w.scope[e]) or w.chance(0.05))
    key = w.key(w.scope[e].shape)
    write = w.one((f"{e}[{key}] = {w.scalar()}", f"{e} *= 2", f"{e}[{key}] += 1", f"{e}.fill(2)"))
    work = w.one((f"{a} + {w.scalar()}", f"{a} * {a}", f"np.stack([{a}, {a}])", f"{a}[...] + {w.mate(a)}"))
    before = f"{a} += 1; " if w.chance(0.3) else ""
    return w.write(f"{before}{v} = {work}; {write}", v, into=e)


def threads(w: Writer) -> bool:
    """Write an operation in another thread."""
    a = w.array(lambda x: x.flags.writeable)
    v = w.fresh()
    work = w.one((f"{a} + {w.mate(a)}", f"{a}[...]", f"np.multiply({a}, 2, out={a})", f"{a}.max(initial=0)"))
    # a thread has a floating-point state of its own
    return w.write(f"{v} = in_thread(lambda: evaluate({work}))", v, into=a)


def loop(w: Writer) -> bool:
    """Write a loop over statements with changing sizes."""
    a = w.array(lambda x: x.ndim >= 1 and x.flags.writeable)
    x = w.scope[a]
    b = w.array(lambda y: y.shape == x.shape)
    n, v = min(x.shape[0], 5), w.fresh()
    bodies = (
        f"{a}[:k] = {b}[:k] + k", f"{a}[k:] -= {b}[k:]", f"{a}[k] = {b}[k]", f"{a}[k:] = {a}[:len({a}) - k]",
        f"{a}[::k + 1] = k", f"{a}[:k] = {b}[:k][::-1]",
        f"{a}[k:k + 2] = np.maximum({a}[k:k + 2], {b}[k:k + 2])", f"{a}[...] = np.where({b} > k, {a}, k)",
        f"{a}[k] += {a}[:k].max(initial=0)", f"{a}[:k] *= k0", f"{a}[-k:] = {b}[:k]",
    )  # fmt: skip
    if w.chance(0.3) and not w.long:
        made = w.write(f"{v} = np.stack([({b}[:k] * k0).max(initial=k) for k in range({n})])", v)
        w.plain.add(v)  # of scalars
        return made
    bound = w.one((n, f"len({a})", n + 1))
    return w.write(f"for k in range({bound}): {w.one(bodies)}", into=a)


def windows(w: Writer) -> bool:
    """Write a loop over windows of arrays that overlap in some iterations only."""
    a = w.array(lambda x: x.ndim >= 1 and len(x) >= 3 and x.flags.writeable)
    x = w.scope[a]
    b = w.array(lambda y: y.shape == x.shape and y.flags.writeable)
    m = w.r.randint(1, min(4, len(x) - 1))
    pairs = [(w.r.randint(0, len(x) - m), w.r.randint(0, len(x) - m)) for _ in range(w.r.randint(2, 5))]
    p, q = w.one(((f"[j:j + {m}]", f"[k:k + {m}]"), (f"[j:j + {m}]", f"[k:k + {m}][::-1]"), ("[j]", "[k]")))
    bodies = (
        f"{a}{p} = {a}{q} * 2", f"t = {a}{p} * 2; {a}{q} = t; {a}{p} = t - {a}{q}",
        f"{a}{p} += {a}{q}; {b}{q} = {a}{p}", f"{b}{p} = {a}{q}; {a}{p} = {b}{q}",
        f"t = {a}{q} - {a}{p}; {a}{q} = 0; {a}{p} -= t", f"{a}{p} = 1; t = {a}{q} + {b}{p}; {a}{q} = t",
        f"{a}[j:] = {b}[: len({a}) - j]; {b}{q} = {a}{p}",
        f"t = {a} + {b}; t{p} = {a}{q}; {a}{q} = t{p} - t{q}", f"{a}{p}, {a}{q} = {a}{q}, {a}{p}",
    )  # fmt: skip
    return w.write(f"for j, k in {pairs}: {w.one(bodies)}; evaluate({a})", into=a)


def values(w: Writer) -> bool:
    """Write an expression that needs values at once, or properties of an array."""
    a, s = w.array(), w.fresh("s")
    x = w.scope[a]
    ways = (
        f"{a}.tolist()", f"({a}.shape, {a}.dtype, {a}.ndim, {a}.size, {a}.nbytes)", f"repr({a})",
        f"bool(np.any({a} > 0))", f"[b for b in {a}]", f"{a}.item(0)", f"int({a}[:1].max(initial=0))",
        f"np.array_equal({a}, {w.mate(a)})", f"len({a})", f"np.shares_memory({a}, {w.array(rough=True)})",
        f"{a}.flags.writeable", f"{a}.ravel().copy()", f"str({a})", f"3 in {a}", f"float({a})",
        f"np.ndim({a})", f"np.result_type({a}, {w.scalar()})",
        f"{a}[{', '.join('0' for _ in x.shape) or '()'}]", f"np.may_share_memory({a}, {a})",
        f"[{a}.T.shape, {a}.strides == ()]", f"sum({a}.ravel().tolist())", f"{a}.__array__().shape",
    )  # fmt: skip
    return w.write(f"{s} = {w.one(ways)}", s)


def forget(w: Writer) -> bool:
    """Write the deletion of a variable, or the evaluation of pending operations."""
    if len(w.names) < 3 or (w.chance(0.5) and not w.long):
        return w.write(f"evaluate({w.array(rough=True)})")
    a = w.one(w.names[1:])
    w.names.remove(a)
    return w.write(f"del {a}")


def rebound(w: Writer) -> bool:
    """Write an assignment to a variable of a value computed from it."""
    a = w.array(lambda x: x.ndim)
    ways = (
        f"{a} + {w.mate(a)}",
        f"{a}[1:]",
        f"np.maximum({a}, 0) - {a}",
        f"{a} * {a}",
        f"{a}[::-1]",
        f"-{a}",
    )
    return w.write(f"{a} = {w.one(ways)}", a)
