"""Reads and writes of distributed arrays by index arrays and masks: NumPy's results, and nothing is
gathered."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rank_keys
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import on_ranks

import dcarray as dc


@pytest.mark.parametrize("check", [rank_keys.read_and_write, rank_keys.by_functions])
@settings(max_examples=32, deadline=None, derandomize=True)
@given(ranks=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_as_numpy(check: Callable[[random.Random], None], ranks: int, seed: int) -> None:
    dc.comm.run(ranks, lambda: check(random.Random(seed)))


TABLE = np.arange(6 * 8.0).reshape(6, 8)
ROWS, COLUMNS = np.array([0, 5, 0, 2]), np.array([1, 1, 1, 7])
BITS = TABLE % 3 == 0


def _set(key: Any, value: Any) -> Callable[[Any], None]:
    def write(x: Any) -> None:
        x[key] = value

    return write


WRITES: dict[str, Callable[[Any], None]] = {
    "rows": _set(ROWS, 1),
    "rows of a row": _set(ROWS, np.arange(8.0)),
    "columns": _set((slice(None), COLUMNS), 3),
    "the last of several": _set((ROWS, COLUMNS), np.arange(4.0)),
    "values by a mask": _set(BITS, np.arange(float(BITS.sum()))),
    "rows by a mask": _set(BITS[:, 0], np.ones((1, 8))),
    "put": lambda x: np.put(x, [3, -1, 3], [1, 2, 3]),
    "place": lambda x: np.place(x, BITS, [1, 2]),
    "putmask": lambda x: np.putmask(x, BITS, [1, 2]),
    "copyto": lambda x: np.copyto(x, np.arange(8), casting="unsafe", where=BITS),
    "add.at": lambda x: np.add.at(x, (ROWS, COLUMNS), 0.1),
}


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_gathered(name: str) -> None:
    wanted = TABLE.copy()
    WRITES[name](wanted)

    def program() -> None:
        with dc.options(distribute_above=0, strict=True):  # strict: what is gathered raises
            x = dc.distribute(TABLE, halo=1)
            total = x[1:] + x[:-1]  # the halo is filled
            dc.evaluate(total)
            WRITES[name](x)
            assert x._store.remote is not None and x._store.mem is None
            found = (x[1:] + x[:-1]).gather()
            assert np.array_equal(x.gather(), wanted)
        assert np.array_equal(found, wanted[1:] + wanted[:-1])  # with the neighbours' new elements

    dc.comm.run(4, program)


@pytest.mark.parametrize("key", [BITS, ROWS, (ROWS, COLUMNS)], ids=["mask", "rows", "places"])
def test_replicated_arrays_gather_no_index(key: Any) -> None:
    wanted = TABLE.copy()
    wanted[key] = 1.5

    def program() -> None:
        with dc.options(distribute_above=0, strict=True):
            entries = tuple(map(dc.distribute, key)) if isinstance(key, tuple) else dc.distribute(key)
            plain = TABLE.copy()
            x = dc.asarray(plain)
            x[entries] = 1.5
            assert np.array_equal(x.gather(), wanted)
            assert np.array_equal(plain, wanted)  # which knows of it

    dc.comm.run(4, program)


def test_few_elements_send_few_bytes() -> None:
    def program() -> int:
        x = dc.distribute(np.zeros(100_000))
        before = dc.comm.world().counts.bytes_sent
        x[np.arange(0, 100_000, 10_000)] = 1
        sent = dc.comm.world().counts.bytes_sent - before
        assert x.sum() == 10
        return sent

    assert max(dc.comm.run(3, program)) < 400


@pytest.mark.parametrize("value", [300, [1, 2, 3], "x", None])
@on_ranks(2)
def test_errors_are_numpys(value: Any) -> None:
    plain = np.zeros(9, np.int8)
    with pytest.raises((ValueError, OverflowError, TypeError)) as theirs:
        plain[[1, 2]] = value
    x = dc.distribute(np.zeros(9, np.int8))
    with pytest.raises(type(theirs.value)) as ours:
        x[np.array([1, 2])] = value
    assert str(ours.value) == str(theirs.value)
    assert not x.gather().any()


@on_ranks(2)
def test_shared_memory_and_read_only_arrays() -> None:
    a = np.zeros(9)
    with dc.options(distribute_above=0):
        x = dc.asarray(a)
        x += 1
        dc.evaluate(x)
        x[np.array([2, 4])] = 5
        dc.evaluate()
        assert a.tolist() == [1, 1, 5, 1, 5, 1, 1, 1, 1]
        y = dc.distribute(a)
        y.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            y[np.array([1])] = 3


@on_ranks(2)
def test_results_are_used_further() -> None:
    with dc.options(distribute_above=0, jit="eager", eager_below=0):
        found = np.take(dc.distribute(TABLE), np.array([3, -1, 3]), axis=1) + 1
        assert np.array_equal(found, np.take(TABLE, [3, -1, 3], axis=1) + 1)
