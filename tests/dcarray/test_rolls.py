"""`np.roll`, alone and read by what is computed from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.ir.passes.portable import index_set_splitting

DTYPES = ["f8", "f4", "u1", "i8", "c16", "?"]


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    monkeypatch.setattr(index_set_splitting, "MIN_POINTS", 4)
    with dc.options(eager_below=0, jit="eager", cache_dir="", debug=True):
        yield


def same(got, want):
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


def made(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 3, shape).astype(dtype)


def kernels(f, *args):
    return str(dc.explain(f, *args))


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 2)), min_size=1, max_size=4),
    st.sampled_from(DTYPES),
)
@settings(max_examples=24, deadline=None)
def test_any_shift(shape, moves, dtype):
    x = made(tuple(shape), dtype)
    shifts = tuple(s for s, _ in moves)
    axes = tuple(k % len(shape) for _, k in moves)
    with dc.options(eager_below=0, jit="eager", cache_dir=""):
        same(np.roll(dc.asarray(x), shifts, axes), np.roll(x, shifts, axes))
        same(np.roll(dc.asarray(x), shifts[0]), np.roll(x, shifts[0]))
        y = dc.asarray(x)
        same(np.roll(y.T, shifts[0], 0), np.roll(x.T, shifts[0], 0))
        same(np.roll(y[::-1], shifts[0], 0) == y, np.roll(x[::-1], shifts[0], 0) == x)
        assert np.asarray(np.roll(y.T, 1, 0)).strides == np.roll(x.T, 1, 0).strides


# ---- what people write --------------------------------------------------------------------------------
def laplacian(u):
    return -4 * u + np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)


def gray_scott(u, v):
    for _ in range(3):
        reaction = u * v * v
        u, v = u + (0.16 * laplacian(u) - reaction), v + (0.08 * laplacian(v) + reaction)
    return u, v


def life(world, _):
    world = (world > 1).astype(np.uint8)
    for _ in range(2):
        near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        n = sum(np.roll(np.roll(world, i, 0), j, 1) for i, j in near)
        world = ((n == 3) | ((n == 2) & (world == 1))).astype(np.uint8)
    return world


def in_place(u, v):
    for _ in range(2):
        u += 0.25 * laplacian(u)
        v[:] = np.roll(v, 1, 0) - np.roll(u, 2, 1) + np.roll(v, -1, (0, 1))
    return u, v


def overwritten(u, v):
    ahead, behind = np.roll(u, -1, 0), np.roll(u, 1, 0)
    u[2:4] = 7
    w = ahead - behind + u
    v *= 2
    return w, u, v + np.roll(v, 3, 1)


def kept(u, v):
    shifted = np.roll(u, 1, 1)
    return shifted, u - shifted + np.roll(v, (1, 2), (0, 1))


def sums(u, v):
    return (np.roll(u, 1, 0) * v).sum(), (np.roll(u, 1, 1) - u).max(0), np.roll(u, 1).cumsum(1)


def mixed(u, v):
    w = u.astype(np.float32)
    return np.roll(w, 1, 0) + np.roll(v, -1, 1), np.where(np.roll(u, 1, 0) > v, u, np.roll(w, 2, 1))


def slices(u, v):
    r = np.roll(u, 1, 0)
    return r[1:-1, 1:] - u[1:-1, :-1], r[::2] + v[::2], np.roll(u[1:], 2, 1) * v[1:]


def streams(u, v):
    f = np.stack([u, v, u + v])
    for i, (a, b) in enumerate([(1, 0), (0, 1), (-1, -1)]):
        f[i] = np.roll(f[i], a, axis=0)
        f[i] = np.roll(f[i], b, axis=1)
    rho = f[0] + f[1] + f[2]
    f -= 0.5 * (f - rho / 3)
    return f


PROGRAMS = [
    gray_scott, life, in_place, overwritten, kept, sums, mixed, slices, streams,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    rng = np.random.default_rng(1)
    for shape in [(6, 7), (1, 5), (4, 1), (2, 2)]:
        arrays = rng.integers(0, 4, (2, *shape)).astype(float)
        want = program(*arrays.copy())
        got = program(*map(dc.asarray, arrays.copy()))
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            same(a, np.asarray(b))


@given(st.data())
@settings(max_examples=16, deadline=None)
def test_any_program_of_shifts(data):
    """Shifts, sums and writes in place in any order, one after the other."""
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    dtype = data.draw(st.sampled_from(["f8", "i4", "u1"]))
    plain = [made(shape, dtype, k) for k in range(2)]
    with dc.options(eager_below=0, jit="eager", cache_dir=""):
        ours = [dc.asarray(x.copy()) for x in plain]
        for _ in range(data.draw(st.integers(1, 8))):
            what = data.draw(st.sampled_from(["roll", "roll", "roll", "add", "into", "row"]))
            a, b = (data.draw(st.integers(0, len(plain) - 1)) for _ in range(2))
            move = data.draw(st.tuples(st.integers(-7, 7), st.integers(0, 1)))
            if what == "row":
                for some in (plain, ours):
                    some[a][:1] = some[b][-1:]
            elif what == "into":
                for some in (plain, ours):
                    some[a] += np.roll(some[b], *move)
            else:
                for some in (plain, ours):
                    some.append(np.roll(some[a], *move) if what == "roll" else some[a] + some[b])
        for got, want in zip(ours, plain, strict=True):
            same(got, want)


def test_no_shifted_array_is_made():
    u = dc.asarray(np.ones((40, 50)))
    text = kernels(laplacian, u)
    assert "in 9 pieces" in text
    after = text.partition("pass index_set_splitting")[2].partition("pass dead")[2]
    assert after and "temp" not in after.partition("left as")[0]


def test_exceptions_are_said_as_ever():
    x = np.ones((20, 30))
    x[0, 4] = 0
    with np.errstate(divide="raise"):
        y = dc.asarray(x) / np.roll(dc.asarray(x), 1, 0)
    with pytest.raises(FloatingPointError, match="divide by zero"):
        np.asarray(y)
    with np.errstate(divide="warn"), pytest.warns(RuntimeWarning, match="divide by zero"):
        np.asarray(dc.asarray(x) / np.roll(dc.asarray(x), 1, 1))


def test_a_shift_alone_does_not_wait_for_a_plan():
    x = np.arange(40.0).reshape(5, 8)
    with dc.options(eager_below=64):
        y = np.roll(dc.asarray(x), 3, 1)
        same(y, np.roll(x, 3, 1))
