"""Sweeps over small parts of large arrays: what is pending on these runs, and NumPy does the rest at once."""

from collections.abc import Iterator

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.recording.session import session

ROWS, COLUMNS = 200, 150


@pytest.fixture(autouse=True)
def ordinary() -> Iterator[None]:
    with dc.options(eager_below=1 << 14, jit="off"):
        session().swept.clear()
        yield


def given() -> np.ndarray:
    return np.random.default_rng(3).random((ROWS, COLUMNS))


def same(got, want: np.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(got), want)


def substitution(d, along: int):
    """A sweep with new arrays in each step, forth along one axis, and back."""
    d = d * 0.5 + 0.1
    p, x = np.zeros_like(d), np.zeros_like(d)
    if along:
        d, p, x = d.T, p.T, x.T
    p[0] = d[0] / 2.0
    for i in range(1, d.shape[0]):
        p[i] = (d[i] - 0.3 * p[i - 1]) / 1.2
    x[-1] = p[-1]
    for i in range(d.shape[0] - 2, -1, -1):
        x[i] = p[i] - 0.2 * x[i + 1]
    return x


@pytest.mark.parametrize("along", [0, 1])
def test_a_sweep_is_hardly_recorded(along: int) -> None:
    a = given()
    want = substitution(a, along)
    for few in (40, 20):  # what sweeps is known the second time
        before = counters.statements
        got = dc.evaluate(substitution(dc.asarray(a.copy()), along))
        assert counters.statements - before < few
        same(got, want)


def test_parts_between_large_statements_stay_recorded() -> None:
    a = given()

    def steps(u):
        for _ in range(4):
            u = u * 0.5 + 1.0
            u[0] = 0.0
            u[-1] = u[-2]
        return u

    got = steps(dc.asarray(a.copy()))
    assert len(session().rec.statements()) == 16
    assert not session().swept
    same(got, steps(a.copy()))


@pytest.mark.parametrize("call", [lambda x: np.roll(x, 3, axis=(0, 1)), lambda x: np.concatenate((x[:3], x))])
def test_the_parts_of_one_call_are_no_sweep(call) -> None:
    a = given()
    got = call(dc.asarray(a.copy()) + 1.0)
    assert session().rec.statements()
    assert not session().swept
    same(got, call(a + 1.0))


def test_an_error_of_a_sweep_is_raised_at_the_call() -> None:
    x = dc.asarray(given()) - 1.0
    said = []
    with np.errstate(invalid="raise"):
        for k in range(3):
            try:
                x[k] = np.sqrt(x[k])
            except FloatingPointError as error:
                said.append((k, str(error)))
    assert said[-1] == (2, "invalid value encountered in sqrt")
