"""Sizes that change from call to call: which become symbols of a plan, and that results are Python's."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.jit.loops.entry.sizes import LARGEST
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.sites.sizes import SizesSeen, kind_of, places_of
from dcarray.tiering import admission

pytestmark = pytest.mark.eager(eager_below=0)


SHIFT = """
    def f(x, y, n):
        for i in range(n):
            y[i] = x[i] + 1.0
        return x, y
"""


def agree(f: FunctionType, g: Callable[..., Any], *args: Any) -> None:
    assert outcome(f, args) == outcome(g, args)


def plans(f: FunctionType) -> list[Any]:
    """The requests of the plans of a function's first site, the oldest first."""
    found: list[Any] = put_sites(f)[0].server.requests()
    return found


def test_arrays_of_other_lengths_have_one_plan() -> None:
    """Besides that of the first lengths."""
    f = written(SHIFT)
    g = dc.accelerate(f)
    sizes = range(1, admission._MAX_KEYS * 12)
    for n in sizes:
        agree(f, g, np.arange(n + 0.0), np.ones(n), 1)
    assert dc.report().loops == len(sizes) and len(plans(f)) == 2
    for n in (0, 1, 2, 7, 500):
        agree(f, g, np.arange(n + 0.0), np.ones(n), 1)
    assert [text for text, least in plans(f)[1].loop.symbols] == ["x.shape[0]"]
    assert plans(f)[1].loop.symbols[0][1] == 0


def test_sizes_that_do_not_go_together_after_all() -> None:
    """A second length that is three more than the first, and then is not."""
    f = written(SHIFT)
    g = dc.accelerate(f)
    for n, m in ((10, 13), (20, 23), (30, 33), (30, 31), (30, 30), (7, 9), (2, 300), (0, 1)):
        agree(f, g, np.arange(n + 0.0), np.ones(m), 1)
    assert [len(plan.loop.symbols) for plan in plans(f)] == [0, 1, 2]


def test_a_bound_that_is_no_size_is_a_guard() -> None:
    f = written(SHIFT)
    g = dc.accelerate(f)
    for n, count in ((10, 10), (20, 20), (30, 7), (25, 25), (12, 13), (12, 40), (5, -1), (0, 0)):
        agree(f, g, np.arange(n + 0.0), np.ones(n), count)


def test_exact_plans_where_sizes_have_to_be_known() -> None:
    f = written("""
        import numpy as np
        def f(x):
            y = np.zeros((3,) * len(x))
            for i in range(9):
                x[i % len(x)] = x[0] + y.ndim
            return x
    """)
    g = dc.accelerate(f)
    for n in (1, 2, 1, 3, 2, 2, 1, 3):
        agree(f, g, np.arange(n + 1.0)[1:].copy())


def test_lists_and_tuples() -> None:
    f = written("""
        def f(x, y, k):
            total = 0
            for i in range(k[0]):
                x[i] = x[i] + y[i] * k[1]
                total = total + x[i]
            return total
    """)
    g = dc.accelerate(f)
    for n in (3, 5, 9, 4, 1, 30):
        agree(f, g, [0.5] * n, [1.5] * (n + 1), (n, n % 3))
        agree(f, g, [*map(float, range(n))], [0.25] * n, (n - 1, 2))
    assert dc.report().loops >= 11 and any(plan.loop.symbols for plan in plans(f))
    assert [len(kind_of([k], [k])[1]) for k in ((1,) * 64, (1,) * 65)] == [64, 0]  # a long one is data


def test_small_and_large_products() -> None:
    """One plan for sizes that are worth a library's call, and one for the others."""
    f = written("""
        import numpy as np
        def f(a, b):
            c = np.zeros((a.shape[0], b.shape[1]))
            for i in range(a.shape[0]):
                for j in range(b.shape[1]):
                    for k in range(a.shape[1]):
                        c[i, j] += a[i, k] * b[k, j]
            return c
    """)
    g = dc.accelerate(f)
    for n in (4, 60, 50, 8, 3, 70, 5):
        a, b = (
            np.arange(n * n + n + 0.0).reshape(n, n + 1) % 7,
            np.arange(n * n + n + 0.0).reshape(n + 1, n) % 5,
        )
        agree(f, g, a, b)
    assert any(plan.all_sizes for site in put_sites(f) for plan in site.server.requests())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=8), st.booleans())
def test_patterns_hold_for_what_was_seen(runs: list[tuple[int, int, int]], counts: bool) -> None:
    seen = SizesSeen([0] if counts else [])
    for sizes in runs:
        pattern = seen.pattern(sizes)
        seen.note(sizes, pattern)
        assert pattern.fits(sizes) and all(pattern.fits(before) for before in runs[: runs.index(sizes)])
        firsts = [sizes[k] for k in pattern.firsts]
        texts = [f"s{k}" for k in range(len(firsts))]
        for k, n in enumerate(sizes):
            described = pattern.described(k, texts)
            assert (n == described) if type(described) is int else n == described.value(
                dict(zip(texts, firsts, strict=True))
            )  # fmt: skip
        places = places_of(("int", ("list", None, 2)))
        for symbol, value in enumerate(firsts):
            assert -LARGEST <= pattern.least(symbol, places, {0}) <= value
    seen.exact = True
    assert len(seen.pattern(runs[0]).firsts) == counts


def test_new_arrays_become_large_and_small_again() -> None:
    """Small ones are made by short runs, in one call in C; large ones are not."""
    f = written("""
        import numpy as np
        def f(x, k):
            y = np.zeros(len(x) + 1)
            for i in range(len(x)):
                y[i + 1] = y[i] * 0.5 + x[i] * k[0]
            return y, k[1]
    """)
    g = dc.accelerate(f)
    sizes = [10, 20, 30, 31, 31, 40_000, 40_000, 40_000, 30, 25, 40_000, 7, 8, 8, 0, 1, 20_000, 20_001, 3, 10]
    for n in sizes * 2:
        x = np.arange(n + 0.0) % 7
        for k in ((2, n), (2, 5)):
            want, got = f(x, k), g(x, k)
            assert want[0].tobytes() == got[0].tobytes() and want[1:] == got[1:]
    strided = np.arange(60.0)[::2]
    assert f(strided, (2, 30))[0].tobytes() == g(strided, (2, 30))[0].tobytes()
    assert outcome(f, (np.arange(4), (1, 2))) == outcome(g, (np.arange(4), (1, 2)))
