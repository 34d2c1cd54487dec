"""Random programs with loops as functions, and what calls of them give, compared."""

import inspect
import traceback
import warnings
from typing import Any

import loop_programs
import numpy as np
from written import written

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


def arguments(given: Any) -> list[Any]:
    """Copies of the arguments of a call, in the order of `NAMES`."""
    every = [given[name] for name in NAMES]
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in every]
