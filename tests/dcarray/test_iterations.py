"""Loops whose windows move: a recording ends where they come round, and one plan serves all turns."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.execution.executor import EXECUTOR
from dcarray.recording import log_format
from dcarray.recording.session import session


def shortest(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def smooth(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = b[1:-1, 1:-1]


def eliminate(a):
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_a_loop_of_moving_windows_is_one_plan(jit):
    path = np.random.default_rng(0).integers(1, 1000, (200, 200))
    expected = path.copy()
    shortest(expected)
    with dc.options(jit=jit, eager_below=0):  # NumPy would have so small ones sooner
        for _ in range(2):
            x = dc.asarray(path.copy())
            before, compiles = counters.flushes, counters.compiles
            shortest(x)
            np.testing.assert_array_equal(x, expected)
            turns = counters.flushes - before
        assert 195 <= turns <= 205  # of the second call: one for each turn
    if jit == "eager":
        assert counters.compiles - compiles <= 2


def test_a_loop_that_stays_is_cut_rarely():
    a = np.random.default_rng(0).random((200, 200))
    b = a.copy()
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    smooth(a, b, 200)
    with dc.options(jit="eager"):
        before = counters.flushes
        smooth(x, y, 200)
        np.testing.assert_array_equal(x, a)
        assert counters.flushes - before < 20


def test_the_place_of_an_earlier_loop_does_not_count():
    a = np.random.default_rng(0).random((200, 200))
    x, y = dc.asarray(a.copy()), dc.asarray(a.copy())
    with dc.options(jit="off", eager_below=0):
        smooth(x, y, 70)
        dc.evaluate(y)
        before = counters.flushes
        shortest(x)
        dc.evaluate(x)
        assert counters.flushes - before > 100


@pytest.mark.parametrize("n", [130, 150])
def test_elimination(n):
    a = np.random.default_rng(n).random((n, n)) + n * np.eye(n)
    x = dc.asarray(a.copy())
    eliminate(a)
    with dc.options(jit="eager"):
        eliminate(x)
    np.testing.assert_array_equal(x, a)


def test_split_leaves_the_form():
    """What C makes of a log is what `rewrite` makes of it."""
    with dc.options(eager_below=0, jit="off"):
        x = dc.asarray(np.arange(60.0).reshape(5, 12))
        y = x[1:4, 2::3] * 2 + x[2:5, 1::3].T.T
        y[:, 1] = np.maximum.reduce(x[:3], axis=1)
        z = np.where(y > 3, y, -1)[::-1]
        w = x[:, :5] @ x[:, 5:10]
        log = tuple(session().rec.log)
        values = []
        skeleton = log_format.rewrite(log, values.append)
        assert len(log) > 10
        assert log_format.split(log) == (skeleton, tuple(values))
        assert np.asarray(z).shape == (3, 4) and np.asarray(w).shape == (5, 5)
    with pytest.raises(TypeError):
        log_format.split(5)


def rolled(u, steps):
    for _ in range(steps):
        near = [np.roll(np.roll(u, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        u = sum(near) / 8 - u
    return u


def shrunk(u, steps):
    for _ in range(steps):
        u = np.sqrt(u * u + 1) / 2
    return u


@pytest.mark.parametrize("program", [rolled, shrunk])
def test_loops_that_write_nothing_in_place_are_cut_at_one_place(program, monkeypatch):
    """Whatever the loops inside of them do: what is recorded between two cuts is the same each time."""
    u = np.random.default_rng(0).random((130, 130))
    logs = []
    run = type(EXECUTOR).run

    def seen(rec, *rest):
        logs.append(tuple(rec.log))
        return run(EXECUTOR, rec, *rest)

    monkeypatch.setattr(EXECUTOR, "run", seen)
    with dc.options(jit="off", eager_below=0):
        got = np.asarray(program(dc.asarray(u), 100))
    assert len(logs) > 3
    assert len(set(logs[1:-1])) == 1
    np.testing.assert_array_equal(got, program(u, 100))
