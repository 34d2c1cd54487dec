"""Lines of ordinary programs on distributed arrays, which gather nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run


def _unlike(np: Any, x: Any, i: Any) -> Any:
    return np.einsum("ij,kj->ik", x, i), np.einsum("i,ixy->xy", i[0, :2], x[:8].reshape(2, 4, 7))


LINES: dict[str, Callable[..., Any]] = {
    "rows": lambda np, x, i: (np.r_[x[:, 0], 1, 2], np.r_[0, i[0], 5:9], np.r_["0,2", i[0], i[1]]),
    "columns": lambda np, x, i: (np.c_[x, x], np.c_[i[0], x[2]], np.c_[np.ones(12), x]),
    "shifts": lambda np, x, i: (np.roll(x, i[0, 1], axis=1), np.roll(x, np.int8(-3))),
    "unlike operands": _unlike,
    "powers": lambda np, x, i: (np.vander(x[:, 0], 4), np.maximum.accumulate(x, 0, out=x + 1)),
    "weights": lambda np, x, i: (x @ np.zeros(7) + 1, np.ones((3, 12)) @ x, x.T @ np.full((12, 2), 0.5)),
}


def _arrays() -> tuple[Any, ...]:
    draw = np.random.default_rng(0)
    return draw.random((12, 7)), draw.integers(0, 9, (12, 7))


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    def program() -> None:
        want = LINES[name](np, *_arrays())
        with dc.options(distribute_above=0, eager_below=0, strict=True):
            got = LINES[name](dc, *map(dc.distribute, _arrays()))
            dc.evaluate()
        for one, other in zip(want, got, strict=True):
            a, b = np.asarray(one), np.asarray(other)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(b, a, rtol=1e-12)
        assert "(gathered)" not in str(dc.report())

    dc.report(reset=True)
    for ranks in (2, 3, 5):
        run(ranks, program)


@on_ranks(3)
def test_cumulative_sums_of_replicated_arrays() -> None:
    a = np.random.default_rng(0).integers(0, 9, (6, 20))
    with dc.options(distribute_above=0, eager_below=0, grid=(1, 3), strict=True):
        x = dc.asarray(a.copy())
        found = np.cumsum(x, axis=1) / 2, np.cumsum(x[0]), x.cumsum(axis=0)
        wanted = a.cumsum(1) / 2, a[0].cumsum(), a.cumsum(0)
        assert all(np.array_equal(b, c) for b, c in zip(found, wanted, strict=True))


def test_files_that_one_rank_writes(tmp_path: Path) -> None:
    a = np.arange(12.0).reshape(4, 3)

    def program() -> None:
        x = dc.distribute(a)
        np.savez(tmp_path / "x.npz", x, y=x[1:] * 2, n=3)
        with np.load(tmp_path / "x.npz") as found:
            assert np.array_equal(found["arr_0"], a) and np.array_equal(found["y"], a[1:] * 2)
            assert found["n"] == 3
        np.savetxt(tmp_path / "x.txt", x, fmt="%.3f", header="columns")
        assert np.array_equal(np.loadtxt(tmp_path / "x.txt"), a)
        x.tofile(tmp_path / "x.bin")
        assert np.array_equal(np.fromfile(tmp_path / "x.bin"), a.ravel())
        pending = dc.asarray(a[0].copy()) + 1  # not in blocks
        pending.tofile(str(tmp_path / "y.bin"), sep=",")
        np.savetxt(tmp_path / "y.txt", dc.asarray(a[0].copy()) * 2)
        assert (tmp_path / "y.bin").read_text() == "1.0,2.0,3.0"
        assert np.loadtxt(tmp_path / "y.txt").tolist() == [0.0, 2.0, 4.0]
        with pytest.raises(FileNotFoundError):
            x.tofile(tmp_path / "nowhere" / "x.bin")
        with pytest.raises(FileNotFoundError):
            np.savetxt(tmp_path / "nowhere" / "x.txt", x)
        assert x.layout.grid.size == 3

    dc.report(reset=True)
    run(3, program)
    assert "(gathered)" not in str(dc.report())


def test_small_cumulative_sums_have_numpys_bits() -> None:
    draw = np.random.default_rng(1)
    a = (draw.random((23, 3)) * 7 - 5.3j).astype("F")
    x = draw.random(301).astype("f")

    def program() -> list[Any]:
        b, y = dc.distribute(a, axes=[dc.comm.Block(0), dc.comm.Whole()]), dc.distribute(x)
        both = [np.cumprod(b, 0), np.cumsum(b, axis=0), np.cumsum(y), y[:-1:2] @ y[1::2].gather(), y @ y]
        assert all(c._store.family.remote is not None for c in both[:3])
        return both[:3] + [np.asarray(c) for c in both[3:]]

    want = [np.cumprod(a, 0), np.cumsum(a, axis=0), np.cumsum(x)]
    with dc.options(eager_below=0, jit="off"):
        for got in run(3, lambda: [np.asarray(one) for one in program()]):
            for one, other in zip(got, want, strict=False):
                assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
            assert got[4] == x @ x


@pytest.mark.parametrize("ufunc", [np.maximum, np.logical_or, np.fmin])
def test_accumulate_of_replicated_arrays(ufunc: np.ufunc) -> None:
    """Each takes its part; what travels is what the parts come to."""
    draw = np.random.default_rng(1).integers(-9, 9, 3000).astype(float)

    def program() -> int:
        with dc.options(distribute_above=0, eager_below=0):
            x = dc.distribute(draw)
            np.lib.stride_tricks.sliding_window_view(x, 3)  # gathers it
            before = dc.comm.world().counts.bytes_sent
            found = ufunc.accumulate(x)
            dc.evaluate(found)
            sent = dc.comm.world().counts.bytes_sent - before
            np.testing.assert_array_equal(np.asarray(found), ufunc.accumulate(draw))
        return sent

    assert max(run(3, program)) <= 2 * 8
