"""Loops with temporaries, of which NumPy does everything at once: they give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.plans.background import Background
from dcarray.recording import session
from dcarray.tiering import eager_period

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module does it")
SHAPE = 150, 200


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    background = Background()
    monkeypatch.setattr(session.EXECUTOR, "background", background)
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False, strict=False):
        yield
        eager_period.end()
    background._stop()  # what has begun must not meet another one


def arrays(dtype: Any = float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return (rng.random(SHAPE) * 9).astype(dtype), (rng.random(SHAPE) * 9 + 1).astype(dtype)


LOOPS = (
    "r = 0.2 * (x + y + x[::-1]) - (y - x) / (x * 2)",
    "t = x + y; r = (t + t) * (t - 1) + keep(x * y) * 2",
    "r = keep(x + y) * 2 - keep(x + y)",
    "r = keep(x - y) + x; r = r + kept[-1]",
    "r = seen(x + y) * 2 - y",
    "r = (Box(x + y) + y).value + (Box(x) + x).value",
    "o = np.array([None, None]); o[0] = x[0] * 2; o[1] = dc.asarray(x + y); r = ((o + x) + y)[1] + o[1]",
    "v = (x + y)[1:]; r = (v * 2 + v)[:5] + v[:5]",
    "r = np.sqrt(x + y) * (x + y) - np.exp(-x) * y",
    "r = (x + y) * 2; r = r + (r - y); t = r + 1; r = t * 2 + t",  # names hold it
    "r = (x + y).T + (x * y).T",
    "r = (x.astype('f') + y.astype('f')) * x + (x.astype('f') * 2.5 - 1)",
    "r = (x + 1j) * x + y - (x + 1j)",
    "r = x + 'a' * 0 + y",
)
PROGRAM = """
import numpy as np
import dcarray as dc

class Box:
    def __init__(self, value): self.value = value
    def __add__(self, other): return Box(self.value + other + self.value)

kept = []

def keep(x):
    kept.append(x)
    return kept[-1]

def seen(x):
    kept.append(np.asarray(x))
    return x

def f(x, y, n):
    for i in range(n):
        {}
        x[1:] = (x + y)[:-1] * 0.5 + y[1:]
    return r, x
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_with_temporaries(loop: str) -> None:
    f = written(PROGRAM.format(loop))
    kept = f.__globals__["kept"]

    def run(wrap: Callable[[Any], Any]) -> Any:
        kept.clear()
        try:
            return [np.array(a) for a in (*f(*map(wrap, arrays()), 4), *kept)]
        except Exception as error:
            return type(error), str(error)

    want = run(np.asarray)
    assert eager_period.begin(60.0)
    got = run(dc.asarray)
    if isinstance(want, tuple):
        assert got == want
        return
    for ours, theirs in zip(got, want, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


RANDOM = """
import numpy as np

def f(x, y, n):
    t = x
    for k in range(1, n):
{}
    return t, x, y
"""
names = st.sampled_from(["x", "y", "t", "x[::-1]", "y[:1]", "2.5", "3", "k"])
terms = st.recursive(
    names,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"np.abs({t})"),
        inner.map(lambda t: f"(-{t})"),
    ),
    max_leaves=9,
)


@settings(deadline=None, max_examples=24)
@given(st.lists(st.tuples(st.sampled_from(["t", "x[:]", "y[1:]"]), terms), min_size=1, max_size=4))
def test_random_loops(steps: list[tuple[str, str]]) -> None:
    lines = "\n".join(
        f"        {target} = ({term} + x){'[1:]' if '1' in target else ''}" for target, term in steps
    )
    f = written(RANDOM.format(lines))
    with np.errstate(all="ignore"):
        try:
            want = f(*arrays(), 4)
        except ZeroDivisionError:  # of the integer k
            with pytest.raises(ZeroDivisionError):
                f(*map(dc.asarray, arrays()), 4)
            return
        assert eager_period.begin(60.0)
        got = f(*map(dc.asarray, arrays()), 4)
        eager_period.end()
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)
