"""Random programs with loops in functions, plain and accelerated."""

from __future__ import annotations

import inspect
import traceback
import warnings
from typing import Any

import loop_programs
import numpy as np
import pytest
from written import written

import dcarray as dc

NAMES = ("x", "y", "z", "A", "B", "v", "s", "t", "f", "c")
HELPERS = [inspect.getsource(g) for g in (loop_programs.clipped, loop_programs.mixed, loop_programs.moved)]


def function(source: str) -> Any:
    """A function around a loop, in a module with the functions that it calls."""
    head = ["import numpy as np", "from typing import Any", *HELPERS, f"def f({', '.join(NAMES)}):"]
    body = ["i = j = None", *source.split("\n"), f"return {', '.join(NAMES)}, i, j"]
    return written("\n".join([*head, *("    " + line for line in body)]))


def outcome(f: Any, args: Any) -> Any:
    """What a call gives, its arguments afterwards, and what it warned of in which line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            places = [p for p in traceback.extract_tb(error.__traceback__) if "written" in p.filename]
            result = type(error), places[-1].lineno
    return result, args, sorted({(str(w.message), w.lineno) for w in caught})


def alike(a: Any, b: Any, close: bool) -> None:
    assert type(a) is type(b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            alike(x, y, close)
    elif isinstance(a, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype and a.shape == b.shape
        if close and a.dtype.kind == "f":
            eps = float(np.finfo(a.dtype).eps)
            np.testing.assert_allclose(a, b, rtol=1e4 * eps, atol=1e3 * eps)
        else:
            np.testing.assert_array_equal(a, b)
    else:
        assert a == b or a != a or (close and abs(a - b) < 1e-9)


@pytest.mark.parametrize("mode", ["warn", "ignore", "raise"])
def test_random_loops(mode: Any) -> None:
    served = 0
    for seed in range("wir".index(mode[0]), 36, 3):
        source, sums = loop_programs.program(seed)
        f, given = function(source), loop_programs.names(seed)

        def args(given: Any = given) -> list[Any]:
            every = [given[name] for name in NAMES]
            return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in every]

        dc.report(reset=True)
        with np.errstate(all=mode), dc.options(jit="eager", cache_dir=None):
            want, got = outcome(f, args()), outcome(dc.accelerate(f), args())
            alike(want[:2], got[:2], sums)
            if want[2] != got[2]:
                with dc.options(jit="off"):
                    assert outcome(dc.accelerate(f), args())[2] == got[2], source
        served += dc.report().loops
    assert served >= 4
