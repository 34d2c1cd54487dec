"""Names that are bound to one array or another under a condition of the data, and sequences as elements."""

from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager(debug=True)


def results(f: Any, args: tuple[Any, ...]) -> Any:
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    found = f(*given)
    found = found if isinstance(found, tuple) else (found,)
    # also which of them are one object, or share memory, as writes to them would show
    every = [*found, *given]
    arrays = [a for a in every if isinstance(a, np.ndarray)]
    shared = [np.may_share_memory(a, b) for a in arrays for b in arrays]
    return [np.asarray(a).tobytes() for a in every], shared


def agree(text: str, *args: Any, served: bool | None = True) -> None:
    f = written("import numpy as np\n" + text)
    g = dc.accelerate(f)
    for _ in range(2):
        before = dc.report().loops
        assert results(g, args) == results(f, args)
        assert served in (None, dc.report().loops > before), dc.report()


XS = np.array([0.3, 0.9, 0.1, 0.7, 0.2, 0.8, 0.4])
ACCEPT = """
def f(xs, start, out):
    x = {start}
    for i in range(len(xs)):
        new = x * 0.5 + xs[i]
        {change}
        if xs[i] < 0.5:
            x = new
            {inside}
        {after}
        out[i] = x
    return {result}
"""


def _text(
    start: str = "np.ones(3)", change: str = "pass", inside: str = "pass", after: str = "pass",
    result: str = "out",
) -> str:  # fmt: skip
    return ACCEPT.format(start=start, change=change, inside=inside, after=after, result=result)


def test_acceptance_of_an_array() -> None:
    agree(_text(), XS, np.ones(3), np.zeros((7, 3)))
    agree(_text("start"), XS, np.ones(3), np.zeros((7, 3)))
    agree(_text("start.copy()"), XS, np.ones(3), np.zeros((7, 3)))


@pytest.mark.parametrize("fault", [
    {"change": "new[0] = 7.0"}, {"inside": "new[1] = 7.0"}, {"after": "new[1] = 7.0"},
    {"after": "x[0] = 3.0"},
    {"after": "x += 1.0"}, {"change": "x[2] = 4.0"}, {"start": "start", "change": "start[0] = i"},
    {"start": "start", "after": "start += 1.0"}, {"start": "xs[:3]", "after": "xs[0] = 0.7"},
    {"result": "x"}, {"result": "x, new"}, {"start": "start", "result": "x"}, {"result": "new"},
    {"start": "start", "result": "x, start"}, {"inside": "y = x", "result": "y"},
])  # fmt: skip
def test_second_names(fault: dict[str, str]) -> None:
    """Where an array that has two names changes, or both are seen afterwards, results are Python's."""
    agree(_text(**fault), XS, np.ones(3), np.zeros((7, 3)), served=None)


def test_choices_without_loops() -> None:
    for choice in ("a if c > 0.5 else b", "a + 1 if c > 0.5 else b", "a[1:] if c > 0.5 else b[:-1]"):
        text = f"""
def f(a, b, c, out):
    for i in range(4):
        x = {choice}
        out[i] = x.sum() + i * x[0]
    return out
"""
        for c in (0.25, 0.75):
            agree(text, np.arange(3.0), np.arange(3.0)[::-1].copy(), np.float64(c), np.zeros(4))


def test_columns_keep_their_order() -> None:
    text = """
def f(xs, a, out):
    x = a
    for i in range(len(xs)):
        if xs[i] < 0.5:
            x = a.T * xs[i]
        out[i] = x.ravel()
    return out
"""
    agree(text, XS, np.arange(9.0).reshape(3, 3), np.zeros((7, 9)), served=None)


def test_sequences_as_elements() -> None:
    text = """
def f(xs, out, ints):
    for i in range(len(xs)):
        out[i] = xs[i], 2.5, i
        out[i, :2] = [xs[i] * 2, 1]
        ints[i] = (i, 3)
    return out
"""
    agree(text, XS, np.zeros((7, 3)), np.zeros((7, 2), int))
