"""Random programs on views, aliases, in-place updates, reductions and exports, against eager NumPy.

A program is data: a list of instructions over a pool of arrays, done once with ndarrays and once with
wrapped ones.  After every program all arrays must agree, and each instruction must have failed alike.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dcarray as dc

DTYPES = ["?", "i1", "u1", "i4", "i8", "u2", "f4", "f8", "f2", "c8", "c16"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "remainder", "power",
          "less", "equal", "logical_and", "bitwise_xor", "copysign", "hypot", "right_shift"]  # fmt: skip
UNARY = [
    "negative",
    "absolute",
    "sqrt",
    "exp",
    "sin",
    "floor",
    "square",
    "sign",
    "isfinite",
    "tanh",
    "conjugate",
]
FOLDS = ["sum", "prod", "max", "min", "mean", "any", "all", "var", "cumsum", "argmax", "count_nonzero"]

numbers = st.integers(0, 2**20)
slices = st.builds(
    slice,
    st.none() | st.integers(-4, 4),
    st.none() | st.integers(-4, 6),
    st.sampled_from([None, 1, 2, -1, -2]),
)
keys = st.lists(slices | st.integers(-3, 3) | st.just(None) | st.just(Ellipsis), max_size=3).map(tuple)
scalars = st.sampled_from([0, 1, 2, -3, 2.5, True, 1j, 300, np.float32(1.5), np.int8(-2), np.float64(0.1)])
instructions = st.one_of(
    st.tuples(st.just("binary"), st.sampled_from(BINARY), numbers, numbers),
    st.tuples(st.just("scalar"), st.sampled_from(BINARY), numbers, scalars),
    st.tuples(st.just("unary"), st.sampled_from(UNARY), numbers, st.none()),
    st.tuples(st.just("view"), keys, numbers, st.none()),
    st.tuples(st.just("view"), keys, numbers, st.none()),
    st.tuples(st.just("assign"), keys, numbers, numbers),
    st.tuples(st.just("put"), keys, numbers, scalars),
    st.tuples(st.just("update"), st.sampled_from(["add", "multiply", "subtract"]), numbers, numbers),
    st.tuples(st.just("out"), st.sampled_from(BINARY[:6]), numbers, numbers),
    st.tuples(st.just("fold"), st.sampled_from(FOLDS), numbers, st.none() | st.integers(-3, 2)),
    st.tuples(
        st.just("shape"),
        st.sampled_from(["T", "flat", "flip", "wide", "mirror", "copy", "roll"]),
        numbers,
        st.none(),
    ),
    st.tuples(st.just("cast"), st.sampled_from(DTYPES), numbers, st.none()),
    st.tuples(st.just("mask"), numbers, numbers, scalars),
    st.tuples(st.just("matmul"), st.none(), numbers, numbers),
    st.tuples(st.just("where"), st.none(), numbers, numbers),
    st.tuples(st.just("owner"), st.sampled_from(["operand", "target", "export"]), numbers, st.none()),
)
programs = st.tuples(
    st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), min_size=0, max_size=3), numbers),
             min_size=1, max_size=3),
    st.lists(instructions, min_size=1, max_size=12),
)  # fmt: skip


def value(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 9, shape) if np.dtype(dtype).kind == "u" else rng.integers(-8, 9, shape)
    a = a * 0.5 if np.dtype(dtype).kind in "fc" else a
    if np.dtype(dtype).kind == "f" and seed % 3 == 0:
        a = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -0.0]), a)
    return np.asarray(a).astype(dtype)


def step(kind, what, a, b, other):
    if kind in ("binary", "scalar"):
        return getattr(np, what)(a, b if kind == "binary" else other)
    if kind == "unary":
        return getattr(np, what)(a)
    if kind == "view":
        return a[what]
    if kind == "assign":
        a[what] = b
    elif kind == "put":
        a[what] = other
    elif kind == "update":
        if what == "add":
            a += b
        elif what == "multiply":
            a *= b
        else:
            a -= b
    elif kind == "out":
        getattr(np, what)(a, b, out=a)
    elif kind == "fold":
        return getattr(np, what)(a, axis=other)
    elif kind == "shape":
        if what == "mirror":
            a[...] = a[::-1]
            return None
        reshaped = {"T": lambda: a.T, "flat": lambda: a.reshape(-1), "flip": lambda: np.flip(a)}
        copied = {"copy": a.copy, "roll": lambda: np.roll(a, 1)}
        return (reshaped | copied | {"wide": lambda: np.broadcast_to(a, (2, *a.shape))})[what]()
    elif kind == "cast":
        return a.astype(what)
    elif kind == "mask":
        a[np.random.default_rng(what).random(a.shape) < 0.5] = other
    elif kind == "matmul":
        return a @ b
    elif kind == "where":
        return np.where(a > 0, a, b)
    elif what == "operand":
        t = np.full(a.shape, 3.0)
        result = a * t
        t[...] = -1
        return result
    elif what == "target":
        t = np.zeros(a.shape, complex)
        t += a
        a[...] = 1
        return t
    else:
        t = np.asarray(a)
        a[...] = 1
        return t.astype(float).sum()
    return None


def run(program, wrap):
    arrays, steps = program
    pool = [wrap(value(*a)) for a in arrays]
    events = []
    for kind, what, i, j in steps:
        a = pool[i % len(pool)]
        b = pool[j % len(pool)] if isinstance(j, int) else None
        try:
            result = step(kind, what, a, b, j)
        except Exception as error:  # what it is, is compared
            events.append(
                next(
                    t
                    for t in (IndexError, ValueError, TypeError, ArithmeticError, Exception)
                    if isinstance(error, t)
                )
            )
        else:
            events.append(None)
            if type(result) is np.ndarray and kind != "owner":  # a function of scalars alone
                result = wrap(result)
            if result is not None and np.ndim(result) < 6 and np.size(result) < 2000:
                pool.append(result)
    return pool, events


def agree(program, **mode):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want, failed = run(program, lambda a: a)
        with dc.options(**mode):
            got, failed_too = run(program, dc.asarray)
            dc.evaluate()  # plain arrays that were wrapped on the way may have writes pending
            assert failed_too == failed
            for k, (a, x) in enumerate(zip(want, got, strict=True)):
                b = np.asarray(x)
                assert isinstance(x, dc.ndarray) or type(x) is type(a), (k, type(x))
                assert b.dtype == np.asarray(a).dtype and b.shape == np.shape(a), k
                tolerance = 400 * float(np.finfo(b.dtype).eps) if b.dtype.kind in "fc" else 0
                np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=str(k))


COMMON = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=300, **COMMON)
@given(programs)
def test_small_arrays_in_numpy(program):
    agree(program, eager_below=1 << 14)  # whatever the environment says


@settings(max_examples=800, **COMMON)
@given(programs)
def test_recorded_and_interpreted(program):
    agree(program, eager_below=0, jit="off")


@settings(max_examples=800, **COMMON)
@given(programs)
def test_small_beside_large(program):
    agree(program, eager_below=10, jit="off")  # some arrays and windows count as small, others do not


@settings(max_examples=120, **COMMON)
@given(programs)
def test_recorded_and_compiled(program):
    agree(program, eager_below=0, jit="eager", debug=True)


@settings(max_examples=60, **COMMON)
@given(
    st.lists(instructions, min_size=1, max_size=6),
    st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=3, max_size=5),
)
def test_one_program_at_many_sizes(steps, shapes):
    for k, shape in enumerate(shapes):
        agree(([("f8", shape, k), ("f8", shape[1:], k + 1)], steps), eager_below=0, jit="eager")


def test_the_judge_sees_a_difference():
    program = ([("f8", [3], 1)], [("put", (0,), 0, 2.5)])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(run(program, lambda a: a)[0][0], run(program, lambda a: a + 1)[0][0])
