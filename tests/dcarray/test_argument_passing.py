"""What is given to us and handed out, and what goes straight to NumPy where it does all of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.core.native import BUILT

N = 40_000
DAYS = np.datetime64("2024-02-27") + (np.arange(N) * 7 % 400).astype("m8[D]")
WORDS = np.array(["b", "aa", "c"])[np.arange(N) % 3]


# ---- arrays of others --------------------------------------------------------------------------------
def test_two_handles_on_one_memory_know_of_each_other() -> None:
    a = np.zeros(N)
    x, y, part = dc.asarray(a), dc.asarray(a), dc.asarray(a[5:])
    x += 1
    x[7] = 5
    assert y[7] == 5 and part[2] == 5 and a[7] == 5
    y *= 2
    assert x[7] == 10 and float(part[0]) == 2


def test_what_is_handed_out_is_written_through() -> None:
    x = dc.asarray(np.arange(N, dtype=float))
    out = np.asarray(x)
    x += 1
    assert out[0] == 1
    out[1] = 50
    assert x[1] == 50 and float((x + 1)[1]) == 51
    again = np.asarray(x)
    assert np.shares_memory(out, again)
    pending = x * 2 + 1
    assert np.asarray(pending)[1] == 101


def test_read_only_and_strided_arrays() -> None:
    a = np.arange(2.0 * N)
    a.flags.writeable = False
    x = dc.asarray(a)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    assert not np.asarray(x).flags.writeable
    for b in (np.arange(2 * N)[::2], np.arange(2 * N).reshape(2, N).T, np.arange(N).astype(">i4")):
        np.testing.assert_array_equal(np.asarray(dc.asarray(b) + 1), b + 1)


def test_names_of_memory_that_has_gone_are_forgotten() -> None:
    code = f"""
import gc, numpy as np, dcarray as dc
from dcarray.core import store
kept = [dc.asarray(np.zeros({N})) for _ in range(3)]
for _ in range(3 * store._LEAST_SWEPT):
    dc.asarray(np.zeros({N}, np.int8))
gc.collect()
assert len(store.FAMILIES.families) <= 2 * store._LEAST_SWEPT, len(store.FAMILIES.families)
assert store.FAMILIES.forget() == store._LEAST_SWEPT
assert all(store.FAMILIES.find(store.owner(x._evaluated())) is not None for x in kept)
"""
    python("-c", code)  # what other tests keep changes when that is done


def test_dates_and_texts_are_given_and_taken_back() -> None:
    for a in (DAYS, WORDS, DAYS[:5].copy(), np.array(["x", "yy"])):
        x = dc.asarray(a)
        assert type(x) is dc.ndarray and x.dtype == a.dtype
        np.testing.assert_array_equal(np.asarray(x), a)
        x[1] = a[0]
        assert a[1] == a[0]


# ---- places where NumPy does it in any case ----------------------------------------------------------
STEP = np.timedelta64(36, "h")
ASKED: dict[str, Callable[[Any], Any]] = {
    "months": lambda x: x.astype("datetime64[M]"),
    "add a number": lambda x: x + 3,
    "add a time": lambda x: x + STEP,
    "time before": lambda x: STEP + x,
    "difference": lambda x: x - x[0],
    "ratio": lambda x: (x - x[0]) / STEP,
    "whole ratio": lambda x: (x - x[0]) // STEP,
    "later": lambda x: x > np.datetime64("2024-05-05"),
    "latest": lambda x: np.maximum(x, np.datetime64("2024-05-05")),
    "chosen": lambda x: x[x < x[5]],
    "at": lambda x: x[np.array([3, 1, 2])],
    "unique": lambda x: np.unique(x, return_counts=True),
    "isin": lambda x: np.isin(x, x[2:6]),
    "sorted": lambda x: np.sort(x),
    "view": lambda x: x[::-2],
    "small": lambda x: (x[:6] + 1).astype("datetime64[W]"),
}


@pytest.mark.parametrize("name", ASKED)
def test_dates_at_places_that_are_known(name: str) -> None:
    function = ASKED[name]
    expected = function(DAYS)
    x = dc.asarray(DAYS.copy())
    for _ in range(4):
        found = function(x)
        pairs = zip(found, expected, strict=True) if type(expected) is tuple else [(found, expected)]
        for ours, theirs in pairs:
            assert type(ours) is dc.ndarray and ours.dtype == theirs.dtype
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_strict_is_told_of_dates_at_known_places() -> None:
    x = dc.asarray(DAYS.copy())

    def ask() -> Any:
        return x + 1

    for _ in range(3):
        ask()
    with dc.options(strict=True), pytest.raises(dc.StrictError):
        ask()


def test_dates_are_reported_once_at_least() -> None:
    x = dc.asarray(DAYS.copy())
    dc.report(reset=True)
    for _ in range(3):
        np.unique(x)
    assert "unique" in str(dc.report(reset=True))


def test_a_copy_stays_a_copy() -> None:
    x = dc.asarray(DAYS.copy())
    for _ in range(4):
        y = x.astype("datetime64[s]")
        y[0] = np.datetime64("2000-01-01")
        z = x[np.arange(5)]
        z[1] = np.datetime64("2000-01-01")
    np.testing.assert_array_equal(np.asarray(x), DAYS)


def test_reductions_between_indices() -> None:
    a, first = np.arange(float(N)), np.arange(0, N, 50)
    x = dc.asarray(a)
    for _ in range(4):
        for ufunc, ours in ((np.add, dc.add), (np.maximum, dc.maximum)):
            expected = ufunc.reduceat(a, first)
            np.testing.assert_array_equal(np.asarray(ufunc.reduceat(x, first)), expected)
            np.testing.assert_array_equal(np.asarray(ufunc.reduceat(x, dc.asarray(first))), expected)
            np.testing.assert_array_equal(np.asarray(ours.reduceat(x, list(first))), expected)
    y = x + 1  # what is pending comes first
    np.testing.assert_array_equal(np.asarray(np.add.reduceat(y, first)), np.add.reduceat(a + 1, first))


def test_methods_of_ufuncs_on_small_arrays() -> None:
    a = np.arange(1.0, 6.0)
    x = dc.asarray(a)
    assert dc.multiply.reduce(x) == 120.0 and dc.add.reduce([1, 2, 3]) == 6
    assert type(dc.add.accumulate(a)) is type(dc.add.outer(x, x)) is dc.ndarray
    np.testing.assert_array_equal(np.asarray(dc.add.outer(x, a)), np.add.outer(a, a))
    for number in (2, 2.5, np.float64(2), True):
        np.testing.assert_array_equal(np.asarray(np.add.outer(x, number)), np.add.outer(a, number))
        np.testing.assert_array_equal(np.asarray(dc.add.outer(number, x)), np.add.outer(number, a))
    large = dc.multiply.outer(np.arange(300), dc.arange(300))
    np.testing.assert_array_equal(np.asarray(large), np.multiply.outer(np.arange(300), np.arange(300)))
    out = dc.zeros(5)
    assert dc.add.accumulate(x, out=out) is out and out[-1] == 15


# ---- indices -----------------------------------------------------------------------------------------
def test_elements_of_a_small_array_by_a_large_one() -> None:
    a, index = np.arange(50.0), np.arange(N) % 50
    x, i = dc.asarray(a), dc.asarray(index.copy())
    np.testing.assert_array_equal(np.asarray(x[i]), a[index])
    i += 1
    i %= 50  # pending
    np.testing.assert_array_equal(np.asarray(x[i]), a[(index + 1) % 50])
    x[i] = 7.0
    assert float(x.sum()) == 350
    with pytest.raises(IndexError):
        x[i + 1]


def test_what_a_mask_chooses_is_gathered_at_once() -> None:
    a = np.random.default_rng(0).random(N)
    x, mask = dc.asarray(a), dc.asarray(a < 0.3)
    for _ in range(4):
        assert np.isclose(x[mask].sum(), a[a < 0.3].sum(), rtol=1e-12)
        chosen = x[mask]
        chosen += 1
    np.testing.assert_array_equal(np.asarray(x), a)


def test_indexers_in_accelerated_code() -> None:
    x = dc.arange(4)
    assert type(dc.r_[9, x]) is dc.ndarray
    np.testing.assert_array_equal(np.asarray(dc.r_[9, x, [1, 2]]), np.r_[9, np.arange(4), [1, 2]])
    np.testing.assert_array_equal(np.asarray(dc.c_[x, x]), np.c_[np.arange(4), np.arange(4)])
    np.testing.assert_array_equal(np.asarray(dc.mgrid[0:200, 0:300]), np.mgrid[0:200, 0:300])
    for part, whole in zip(dc.ogrid[0:3, 0:4], np.ogrid[0:3, 0:4], strict=True):
        np.testing.assert_array_equal(np.asarray(part), whole)
    y = dc.arange(N) + 1
    np.testing.assert_array_equal(np.asarray(dc.r_[0, y]), np.r_[0, np.arange(N) + 1])


# ---- generators --------------------------------------------------------------------------------------
DRAWN: dict[str, Callable[[Any], Any]] = {
    "one": lambda r: r.random(),
    "some": lambda r: r.random(5),
    "many": lambda r: r.random((200, 200)),
    "integers": lambda r: r.integers(3, 10, size=(2, 3), dtype=np.int16),
    "by arrays": lambda r: r.normal(np.arange(3.0), 1.0),
    "by a scalar": lambda r: r.uniform(np.float64(1), 3, 4),
    "permutation": lambda r: r.permutation(6),
    "of an array": lambda r: r.permutation(np.arange(4.0)),
    "float32": lambda r: r.standard_normal(3, dtype=np.float32),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("below", [16384, 0])
def test_what_a_generator_draws(name: str, below: int) -> None:
    theirs, ours = np.random.default_rng(4), dc.random.default_rng(4)
    with dc.options(eager_below=below):
        for _ in range(2):
            expected, found = DRAWN[name](theirs), DRAWN[name](ours)
            if isinstance(expected, np.ndarray):
                assert type(found) is dc.ndarray and found.dtype == expected.dtype
                np.testing.assert_array_equal(np.asarray(found), expected)
            else:
                assert found == expected and type(found) is type(expected)
    with pytest.raises(ValueError, match="low >= high"):
        ours.integers(3, 2)
    assert ours.random() == theirs.random()


def test_a_generator_fills_what_it_is_given() -> None:
    x = dc.zeros(4)
    assert dc.random.default_rng(1).random(out=x) is x
    np.testing.assert_array_equal(np.asarray(x), np.random.default_rng(1).random(4))


# ---- accelerated calls -------------------------------------------------------------------------------
@dc.accelerate
def _days(times: Any) -> Any:
    found, count = np.unique(times, return_counts=True)
    return found + 1, count, times


def test_accelerated_code_gives_plain_arrays_back() -> None:
    times = DAYS.copy()
    for _ in range(3):
        found, count, same = _days(times)
        assert same is times and type(found) is type(count) is np.ndarray
        expected, counts = np.unique(DAYS, return_counts=True)
        np.testing.assert_array_equal(found, expected + 1)
        np.testing.assert_array_equal(count, counts)
        found[0] = found[1]  # it is the caller's alone


_LATER = np.sin


@dc.accelerate
def _named(x: Any) -> Any:
    return _LATER(x) + _helper(x)


def _helper(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        total += x[k]
    return total


def test_names_that_change_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(4.0)
    here = globals()
    for _ in range(2):
        np.testing.assert_array_equal(_named(x), np.sin(x) + 3)
    monkeypatch.setitem(here, "_LATER", np.cos)
    np.testing.assert_array_equal(_named(x), np.cos(x) + 3)
    monkeypatch.setitem(here, "_helper", lambda x: 1)
    np.testing.assert_array_equal(_named(x), np.cos(x) + 1)
    assert here["_LATER"] is np.cos and here["np"] is np


@pytest.mark.skipif(not BUILT, reason="needs the C module")
def test_asarray_of_ours_is_itself() -> None:
    x = dc.arange(3)
    assert dc.asarray(x) is x and dc.asanyarray(x) is x
    y = dc.asarray(x, dtype=float)
    assert y.dtype == np.float64


@pytest.mark.parametrize("below", [0, 16384])
def test_one_array_is_one_object_inside_and_outside(below: int) -> None:
    @dc.accelerate
    def f(a: Any, b: Any) -> Any:
        c, d = a * 2 + 1, a[::-1]
        return a is b, c, [c, d], {"c": (c, d, a)}, d

    with dc.options(eager_below=below):
        for n in (5, 50000):
            a = np.arange(float(n))
            for _ in range(3):
                same, c, pair, more, d = f(a, a)
                assert same and not f(a, a[:])[0]
                assert c is pair[0] is more["c"][0] and d is pair[1] is more["c"][1]
                assert more["c"][2] is a
