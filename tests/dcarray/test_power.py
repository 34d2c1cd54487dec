"""Powers of arrays: one exponent, one for each element, and exponents that are broadcast along some axes."""

import numpy as np
import pytest

import dcarray as dc

EXPONENTS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, -1.5, 0.7]
SHAPES = [
    *(((200, 300), shape) for shape in [(), (1,), (1, 1), (200, 1), (300,), (1, 300), (200, 300)]),
    *(((20_000, 3), shape) for shape in [(20_000, 1), (3,), (20_000, 3)]),
    *(((3, 20_000), shape) for shape in [(3, 1), (20_000,), (1, 1)]),
    *(((20, 30, 50), shape) for shape in [(30, 1), (20, 1, 50), (20, 1, 1), (20, 30, 50)]),
    *[((200, 1), (1, 300)), ((), (30_000,)), ((1,), (30_000,)), ((1, 1), (1, 1))],
]  # fmt: skip


def operands(x_shape, y_shape, dtype, y_dtype, seed=0):
    """Bases and exponents as they lie in memory: in C and Fortran order, backwards and apart."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.3, 9.0, x_shape).astype(dtype), rng.choice(EXPONENTS, y_shape)
    y = np.asarray(y).astype(y_dtype)
    for a in (
        x,
        np.asfortranarray(x),
        x[::-1] if x.ndim else x,
        np.repeat(x, 2, -1)[..., ::2] if x.ndim else x,
    ):
        yield a, y
    if y.ndim > 1:
        yield x, np.asfortranarray(y)
    yield x, np.broadcast_to(y.ravel()[:1].reshape(()), y_shape)


def each(calls, x, y):
    """What calls give of arrays and of ours, compared by their bits."""
    for call in calls:
        with np.errstate(all="ignore"):
            want = np.asarray(call(x, y))
        for ours in (dc.asarray(y) if np.ndim(y) else y, y):
            got = np.asarray(call(dc.asarray(x), ours))
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            assert got.dtype == want.dtype and same.all(), (x.shape, x.strides, y.shape, y.strides)


def into(x, y):
    out = np.empty_like(x, shape=np.broadcast_shapes(x.shape, np.shape(y)), order="F")
    np.power(x, y, out=out)
    return out


def in_place(x, y):
    z = x + 0
    z **= y
    return z


@pytest.mark.parametrize(
    ("dtype", "x_shape", "y_shape"),
    [("f8", *both) for both in SHAPES] + [(d, *both) for d in ("f4", "c16") for both in SHAPES[::3]],
)
def test_powers_are_numpys(dtype, x_shape, y_shape):
    calls = [
        np.power,
        lambda x, y: np.power(x * 1, y + 0) + 1,
        lambda x, y: np.power(x, y).sum(axis=0).real * 0 + 1,
    ]
    calls.append(into)
    if np.broadcast_shapes(x_shape, y_shape) == x_shape:
        calls.append(in_place)
    for y_dtype in (dtype, "i1"):
        for x, y in operands(x_shape, y_shape, dtype, y_dtype):
            each(calls, x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [2.0, 0.5, -1.0])
def test_an_array_of_one_number_is_not_that_number(dtype, exponent):
    x = np.random.default_rng(1).uniform(0.5, 9.0, (300, 100)).astype(dtype)
    column = np.full((300, 1), exponent, dtype)
    for y in (np.full_like(x, exponent), np.zeros_like(x) + column):
        each(
            [np.power, lambda x, y: x ** (y * 1), lambda x, y: x ** np.full(x.shape, exponent, x.dtype)], x, y
        )
    each(
        [lambda x, y: x ** (np.zeros_like(x) + y), lambda x, y: x ** y[5, 0], lambda x, y: x ** y[5:6]],
        x,
        column,
    )


def test_what_it_is_called_in_warnings():
    x = dc.asarray(np.zeros(50_000))
    with pytest.warns(RuntimeWarning, match="encountered in power$"):
        np.asarray(x ** dc.asarray(np.full(50_000, -1.5)))


@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0])
def test_powers_in_loops(exponent):
    """One exponent in each turn, also where the turns are an axis; and one for each element."""

    def one(x, y, out, each):
        for t in range(x.shape[0]):
            out[t] = np.power(x[t], y[t])
            each[t] = np.power(x[t], y)

    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.5, 9.0, (300, 300)), np.full(300, exponent)
    want, got = [(np.empty_like(x), np.empty_like(x)) for _ in range(2)]
    one(x, y, *want)
    for _ in range(4):
        dc.accelerate(one)(x, y, *got)
        for a, b in zip(got, want, strict=True):
            assert a.tobytes() == b.tobytes()
