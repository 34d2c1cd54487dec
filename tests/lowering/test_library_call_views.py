"""Views for library calls: the same for values of symbols that come again, and right for others."""

import numpy as np
import pytest

from dcarray.lowering.runtime.library_calls import View

ARRAY = np.arange(60).reshape(10, 6)


def test_values_come_and_go() -> None:
    view = View(("n-1", 2), (("min(k, 3)", 1, 0), (1, "s", 1)))
    for n, k, s in [(4, 2, 1), (4, 2, 1), (5, 2, 1), (4, 9, 1), (4, 2, 3), (4, 2, 1), (1, 0, 2)]:
        got = view(ARRAY, {"n": n, "k": k, "s": s, "other": n + k})
        first = min(k, 3)
        np.testing.assert_array_equal(got, ARRAY[first : first + n - 1, 1 : 1 + 2 * s : s])
        assert np.may_share_memory(got, ARRAY) == (got.size > 0)


@pytest.mark.parametrize("values", [{}, {"n": 3}])
def test_constant_views_need_no_values(values: dict[str, int]) -> None:
    view = View((6,), ((2, 0, None), (0, 1, 0)))
    np.testing.assert_array_equal(view(ARRAY, values), ARRAY[2])


def test_diagonals_of_symbolic_length() -> None:
    view = View(("n",), ((0, 1, 0), (0, 1, 0)))
    for n in (3, 6, 3, 1):
        np.testing.assert_array_equal(view(ARRAY, {"n": n}), np.diagonal(ARRAY)[:n])
