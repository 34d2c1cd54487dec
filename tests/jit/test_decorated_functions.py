"""Decorated functions in compiled loops: what is called counts, not what is written above its definition."""

from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager

X = np.random.default_rng(3).normal(size=300)


def program(decorators: str, **names: Any) -> Any:
    return written(
        f"""
        import functools
        def unchanged(*args, **kwargs):
            return lambda f: f
        {decorators}
        def half(v, by=0.5):
            r = v * by
            if r > 0.2:
                r = 1.0 - r
            return r
        def f(x, out):
            for i in range(len(x)):
                out[i] = half(x[i]) + half(-x[i], by=0.25)
            return out
        """,
        **names,
    )


def expected(by: float = 0.5) -> Any:
    a, b = X * by, -X * 0.25
    return np.where(a > 0.2, 1.0 - a, a) + np.where(b > 0.2, 1.0 - b, b)


DECORATORS = {
    "nothing": "",
    "unchanged": "@unchanged()",
    "accelerated": "@accelerate",
    "over several lines": "@unchanged(\n            1,\n            two=2,\n        )",
    "two": "@accelerate\n        @unchanged('a')",
    "twice": "@accelerate\n        @accelerate",
}


@pytest.mark.parametrize("name", DECORATORS)
def test_they_are_parts_of_the_loops_that_call_them(name: str) -> None:
    f = dc.accelerate(program(DECORATORS[name], accelerate=dc.accelerate))
    for _ in range(2):
        assert (f(X, np.zeros_like(X)) == expected()).all()
    assert dc.report().loops == 2 and not dc.report().fallbacks


def test_what_a_decorator_makes_of_a_function_is_called() -> None:
    f = dc.accelerate(program("@functools.partial(lambda c, g: lambda v, by=0.5: g(v, by) + c, 3.0)"))
    assert np.allclose(f(X, np.zeros_like(X)), expected() + 6.0, 1e-14)


def test_an_accelerated_function_may_get_another_name_or_another_function() -> None:
    inner = program("@accelerate", accelerate=dc.accelerate)
    f = dc.accelerate(inner)
    assert (f(X, np.zeros_like(X)) == expected()).all()
    inner.__globals__["half"] = dc.accelerate(program("").__globals__["half"])
    inner.__globals__["half"].__wrapped__.__defaults__ = (2.0,)
    assert (f(X, np.zeros_like(X)) == expected(2.0)).all()
    inner.__globals__["half"] = lambda v, by=0.5: v
    assert (f(X, np.zeros_like(X)) == 0).all()


def test_an_error_has_the_line_of_the_decorated_function() -> None:
    f = dc.accelerate(
        written("""
        def unchanged(f):
            return f
        @unchanged
        @unchanged
        def inverse(v):
            w = 1.0
            return w / v
        def f(x, n):
            for i in range(n):
                x[i] = inverse(float(i - 5))
        """)
    )
    with pytest.raises(ZeroDivisionError) as raised:
        f(np.zeros(9), 9)
    assert raised.traceback[-1].lineno == 7


@pytest.mark.parametrize(
    "change", ["half.__defaults__ = (2.0,)", "half.__code__ = third.__code__", "Q = 3.0"]
)
def test_a_change_is_seen_by_all_that_call_a_function(change: str) -> None:
    text = """
        Q = 1.0
        def quarter(v): return v * Q
        def half(v, by=0.5): return quarter(v) * by
        def third(v, by): return v / 3
        def scaled(v): return half(v) + 1.0
        def f(x, y):
            for i in range(len(x)):
                y[i] = half(x[i])
            return y
        def g(x, y):
            for i in range(len(x)):
                y[i] = scaled(x[i])
            return y
    """
    plain, names = written(text).__globals__, written(text).__globals__
    loops = dc.accelerate(names["f"]), dc.accelerate(names["g"])
    for line in ("pass", change, "half.__defaults__, Q = (0.5,), 1.0", "half = quarter"):
        exec(line, plain), exec(line, names)
        for name, loop in zip("fg", loops, strict=True):
            for _ in range(3):
                assert (loop(X, np.zeros_like(X)) == plain[name](X, np.zeros_like(X))).all()
