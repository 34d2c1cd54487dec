"""Reshapes of what is pending, with copies and without, and arrays that are first written as a whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc

SHAPES = [(24,), (2, 12), (12, 2), (2, 3, 4), (4, 3, 2), (4, 6), (6, 4), (1, 24), (3, 1, 8), (2, 1, 2, 6)]


@pytest.fixture(params=["eager", "off"], autouse=True)
def recorded(request):
    with dc.options(eager_below=0, jit=request.param):
        yield


def both(function, *arrays):
    """Results of NumPy and of ours, which must agree to the bit."""
    want = function(*[a.copy() for a in arrays])
    mine = function(*[dc.asarray(a.copy()) for a in arrays])
    assert len(want) == len(mine)
    for a, b in zip(want, mine, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


STEP = st.tuples(st.integers(0, 11), st.integers(0, 9), st.integers(0, 99), st.integers(0, 99))


def _run(steps, x):
    """A program of steps on a list of arrays of 24 elements, to which they add and in which they write."""
    made = [x]
    for kind, shape, first, second in steps:
        a, b = made[first % len(made)], made[second % len(made)]
        if kind == 0:
            made.append(np.reshape(a, SHAPES[shape]))
        elif kind == 1:
            made.append(a.transpose())
        elif kind == 2:
            made.append(np.reshape(a, SHAPES[shape]) * np.reshape(b, SHAPES[shape]))
        elif kind == 3:
            made.append(np.negative(a))
        elif kind == 4:
            new = (
                np.empty_like(a)
                if second % 2
                else dc.empty(a.shape)
                if type(a) is dc.ndarray
                else np.empty(a.shape)
            )
            new[...] = a + 1.0
            made.append(new)
        elif kind == 5:
            a[...] = np.reshape(b, a.shape) + 2.0
        elif kind == 6:
            a.reshape(-1)[second % 20 :] *= 2.0  # a copy or a view, as NumPy has it
        elif kind == 7:
            made.append(
                np.repeat(a.reshape(-1)[: 24 // (1 + second % 4)], 1 + second % 4)[:24]
                if 24 % (1 + second % 4) == 0
                else a + a
            )
        elif kind == 8:
            made.append(np.tile(a.reshape(24)[:6], 4))
        elif kind == 9:
            made.append(np.reshape(np.swapaxes(a, 0, -1), SHAPES[shape]) - 1.0)
        elif kind == 10:
            made.append(np.add.accumulate(a.reshape(24)))
        else:
            made.append(np.broadcast_to(np.reshape(b, (2, 12)).sum(axis=0), (2, 12)) + 0.5)
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=9))
def test_programs_that_reshape(steps):
    both(lambda x: _run(steps, x), np.arange(24.0).reshape(4, 6))


def test_a_view_where_numpy_gives_one():
    x = dc.asarray(np.arange(24.0))
    x += 1.0  # pending
    y = x.reshape(4, 6)
    y[1] = 0.0
    z = y.T.reshape(24)  # a copy
    z += 5.0
    assert x.tolist()[5:13] == [6.0, *[0.0] * 6, 13.0]
    assert np.shares_memory(np.asarray(x), np.asarray(y)) and not np.shares_memory(
        np.asarray(z), np.asarray(y)
    )


def test_strides_say_whether_a_reshape_copies():
    from dcarray.core.strides import reshaped_strides

    rng = np.random.default_rng(3)
    whole = np.zeros((4, 6, 2, 3))
    for _ in range(400):
        a = whole[tuple(slice(int(rng.integers(0, 2)), None, int(rng.integers(1, 3))) for _ in range(4))]
        a = a.transpose(rng.permutation(4))
        if not a.size:
            continue
        shapes = [
            (a.size,), a.shape[::-1], (*a.shape[:2], -1), (-1, *a.shape[2:]), (1, *a.shape),
            (a.shape[0], -1),
        ]  # fmt: skip
        for shape in shapes:
            wanted = np.reshape(a, shape)
            steps = tuple(s // 8 for s in a.strides)
            found = reshaped_strides(a.shape, steps, wanted.shape)
            assert (found is not None) == np.shares_memory(a, wanted)
            if found is not None:  # the stride of an axis of one element says nothing
                held = zip(found, wanted.strides, wanted.shape, strict=True)
                assert all(step * 8 == stride for step, stride, n in held if n > 1)


def test_an_array_that_is_never_written_has_memory_when_it_is_asked_for():
    x = dc.empty((3, 4))
    assert np.asarray(x).shape == (3, 4) and x.flags.c_contiguous
    assert np.asarray(x).tobytes() == np.asarray(x).tobytes()
    y = dc.empty((3, 4))
    y[1:2] = 7.0  # a part
    assert y[1].tolist() == [7.0] * 4
    z = dc.empty((2, 6))
    w = z.reshape(12)
    w[...] = np.arange(12.0)
    assert z.tolist() == np.arange(12.0).reshape(2, 6).tolist()
    u = dc.empty(5)
    u += u - u  # reads what is there
    assert u.shape == (5,)


def test_what_cannot_be_computed_leaves_the_array_readable():
    x = dc.asarray(np.array([1.0, 0.0, 2.0]))
    out = dc.empty(3)
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        np.divide(1.0, x, out=out)
        dc.evaluate()
    assert out.shape == (3,) and float(out[2]) == 0.5


def test_reshaped_temporaries_take_no_memory():
    """A transposition, its copy in another shape, and what is made of that are one kernel."""
    dc.evaluate()  # what an earlier test left pending
    x = dc.asarray(np.arange(24.0).reshape(4, 6))
    y = np.reshape(np.transpose(x), (24,)) * 2.0 + 1.0
    report = str(dc.explain(y))
    assert "1 kernel run" in report
    assert y.tolist() == (np.arange(24.0).reshape(4, 6).T.reshape(24) * 2.0 + 1.0).tolist()
