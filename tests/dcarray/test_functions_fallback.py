"""What NumPy does for us: results, views, in-place functions, the report, strictness."""

import collections

import numpy as np
import pytest

import dcarray as dc
from dcarray.api.functions import fallback

A = np.array([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]])


def test_an_out_argument_comes_back_itself():
    for mode in ({}, {"eager_below": 0, "jit": "off"}):
        with dc.options(**mode):
            x, out = dc.asarray(A.copy()), dc.asarray(np.zeros((2, 3)))
            assert np.cumsum(x, axis=1, out=out) is out
            assert np.asarray(out)[1, 2] == 24


def test_the_report_names_function_and_line():
    dc.report(reset=True)
    with dc.options(eager_below=0, jit="off"):
        x = dc.asarray(A.copy())
        np.geomspace(x, x)
        np.sort(x)
        np.sort(x)
    text = str(dc.report())
    rows = {row.function: row for row in dc.report().fallbacks}
    sort = rows["numpy.sort"]
    assert sort.kind == "numpy" and sort.bytes == 2 * 48
    assert "test_functions_fallback.py:" in sort.where and "test_functions_fallback.py:" in text
    assert "<table>" in dc.report()._repr_html_()


def test_other_dtypes_are_reported():
    dc.report(reset=True)
    x = dc.asarray(np.array([1, None, "a"], dtype=object))
    assert np.roll(x, 1).tolist() == ["a", 1, None]
    (row,) = dc.report().fallbacks
    assert row.function == "numpy.roll of object" and row.kind == "fallback" and row.count == 1


def test_strict():
    with dc.options(eager_below=0, jit="off", strict=True):
        x = dc.asarray(A.copy())
        with pytest.raises(dc.StrictError, match=r"numpy\.roll of object.*test_functions_fallback\.py"):
            np.roll(dc.asarray(A.astype(object)), 1)
        with pytest.raises(dc.StrictError, match="average"):
            np.average(x, returned=True)
        np.sort(x)
        with pytest.raises(ValueError):
            np.broadcast_to(x, (7, 7))  # a bad call is NumPy's error, strict or not


@pytest.mark.parametrize("mode", [{}, {"eager_below": 0, "jit": "off"}])
def test_views_of_a_plain_argument_are_never_read_late(mode):
    with dc.options(**mode):
        x, plain = dc.asarray(A.copy()), A.copy()
        for view in (np.atleast_2d(x, plain)[1], np.broadcast_arrays(x, plain)[1]):
            late = view + x
            plain[...] = 0
            assert np.array_equal(np.asarray(late), 2 * A)
            plain[...] = A


class _Rows(list):
    """A list of a kind of its own."""


@pytest.mark.parametrize("kind", [_Rows, collections.deque, collections.UserList])
@pytest.mark.parametrize("size", [4, 40_000])
def test_sequences_of_any_kind_are_looked_into(kind, size):
    values = np.arange(float(size))
    x = dc.asarray(values)
    for function in (np.concatenate, np.stack, np.lexsort):
        result = function(kind([x, values]))
        np.testing.assert_array_equal(np.asarray(result), function(kind([values, values])))


def test_the_sequence_itself_is_passed_on_where_nothing_in_it_is_ours():
    seen = []
    fallback.call_numpy(lambda a, b: seen.append(b), (dc.asarray(np.ones(40_000)), rows := _Rows([1, 2])), {})
    assert seen[0] is rows


def test_sequences_of_a_users_own_kind_stay_what_they_are():
    class Writer(list):
        def write(self, text):
            self.append(text)

    lines = Writer()
    np.savetxt(lines, dc.ones((2, 2)))
    assert len(lines) == 2


def test_a_function_of_the_users_is_called_as_ever_meanwhile(same):
    x = np.random.default_rng(1).random((40, 5000))
    same(np.apply_along_axis, lambda row: row * 2 - np.cumsum(row), 1, x)
    same(np.histogram, x, 10, weights=x)
