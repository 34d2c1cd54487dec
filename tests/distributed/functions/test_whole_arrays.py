"""NumPy's functions of whole distributed arrays: NumPy's results, and nothing is gathered."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm.layout.grid import ProcessGrid

RNG = np.random.default_rng(3)
TABLE = RNG.random((24, 31)) - 0.5
LINE = np.round(RNG.random(203) * 40)
PLACES = RNG.integers(-203, 203, 57)
ROWS = RNG.integers(-24, 24, 19)

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sort rows": lambda table, line: np.sort(table, axis=0),
    "sort a line": lambda table, line: np.sort(line),
    "argsort columns": lambda table, line: np.argsort(table, axis=1, kind="stable"),
    "argsort a line": lambda table, line: np.argsort(line, kind="stable"),
    "fft": lambda table, line: np.fft.fft(table, axis=0),
    "padded fft": lambda table, line: np.fft.fft(table, 40, axis=0, norm="ortho"),
    "fft2": lambda table, line: np.fft.fft2(table),
    "ifftn": lambda table, line: np.fft.ifftn(table),
    "rfft": lambda table, line: np.fft.rfft(table),
    "rfft2": lambda table, line: np.fft.rfft2(table),
    "irfftn": lambda table, line: np.fft.irfftn(np.fft.rfftn(table)),
    "running sums": lambda table, line: np.cumsum(line),
    "running products of columns": lambda table, line: np.cumprod(table, axis=1),
    "take": lambda table, line: np.take(line, PLACES),
    "take along an axis": lambda table, line: np.take(table, [3, -1, 3], axis=1),
    "places": lambda table, line: line[PLACES],
    "rows": lambda table, line: table[ROWS],
    "places of two axes": lambda table, line: line[PLACES.reshape(19, 3)],
    "nonzero": lambda table, line: np.nonzero(line)[0],
    "nonzero of two axes": lambda table, line: np.nonzero(table > 0)[1],
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_numpys_and_nothing_is_gathered(name: str, ranks: int) -> None:
    call = CALLS[name]
    wanted = call(TABLE, LINE)

    def program() -> None:
        with dc.options(distribute_above=0, strict=True):  # strict: what is gathered raises
            table, line = dc.distribute(TABLE, grid=ProcessGrid((1, ranks))), dc.distribute(LINE)
            found = call(table, line)
            assert type(found) is dc.ndarray
            whole = found.gather()
        assert (whole.dtype, whole.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(whole, wanted, rtol=1e-12, atol=1e-13)

    dc.comm.run(ranks, program)


@on_ranks(2)
def test_results_are_used_further() -> None:
    with dc.options(distribute_above=0, jit="eager", eager_below=0):
        found = np.take(dc.distribute(TABLE), np.array([3, -1, 3]), axis=1) + 1
        assert np.array_equal(found, np.take(TABLE, [3, -1, 3], axis=1) + 1)


@pytest.mark.parametrize("bad", [203, -204])
@on_ranks(3)
def test_indices_out_of_bounds(bad: int) -> None:
    with dc.options(distribute_above=0):
        line = dc.distribute(LINE)
        with pytest.raises(IndexError, match=rf"index {bad} is out of bounds for axis 0 with size 203"):
            line[np.array([1, bad])]
