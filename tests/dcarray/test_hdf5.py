"""Datasets in HDF5 files: what one process writes and reads, by ranks of which each has its own block."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import launch, needs_mpi

import dcarray as dc
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Cyclic

h5py = pytest.importorskip("h5py")

TABLE = np.random.default_rng(0).random((13, 9))


@pytest.mark.parametrize("ranks", [1, 2, 3, 12])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "c16", "?"])
def test_written_as_by_one_process(ranks: int, dtype: str, tmp_path: Any) -> None:
    table = (TABLE * 9).astype(dtype)

    def program() -> None:
        x = dc.distribute(table)
        dc.hdf5.save(tmp_path / "a.h5", "fields/u", x, "w")
        dc.hdf5.save(tmp_path / "a.h5", "fields/v", x[::2, 1:], chunks=(2, 3), compression="gzip")
        dc.hdf5.save(tmp_path / "a.h5", "turned", dc.distribute(table, ProcessGrid((1, ranks))).T)
        dc.hdf5.save(tmp_path / "a.h5", "fields/u", x[0])  # in the place of the first
        dc.hdf5.save(
            tmp_path / "a.h5", "dealt", dc.distribute(table, (ranks,), [Cyclic(0, 2), dc.comm.Whole()])
        )
        dc.hdf5.save(tmp_path / "a.h5", "number", 3)

    dc.comm.run(ranks, program)
    with h5py.File(tmp_path / "a.h5") as found:
        assert np.array_equal(found["fields/u"][:], table[0])
        assert np.array_equal(found["fields/v"][:], table[::2, 1:])
        assert np.array_equal(found["turned"][:], table.T)
        assert np.array_equal(found["dealt"][:], table)
        assert found["dealt"].dtype == table.dtype
        assert found["number"][()] == 3


@settings(max_examples=16, deadline=None, derandomize=True)
@given(
    ranks=st.integers(1, 12),
    ends=st.tuples(*[st.integers(0, 13)] * 4),
    steps=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    axes=st.integers(0, 2),
)
def test_parts_are_read(ranks: int, ends: Any, steps: Any, axes: int, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("h5")
    with h5py.File(folder / "a.h5", "w") as made:
        made["x"] = TABLE
    window = (slice(ends[0], ends[1], steps[0]), slice(ends[2], ends[3], steps[1]))[:axes]

    def program() -> None:
        with dc.options(distribute_above=0):
            x = dc.hdf5.load(folder / "a.h5", "x", window)
            assert x.size == 0 or ranks == 1 or x._store.remote is not None
        assert np.array_equal(x, TABLE[window])
        assert x.shape == TABLE[window].shape

    dc.comm.run(ranks, program)


def test_small_datasets_are_whole_and_mistakes_are_those_of_all(tmp_path: Any) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made["x"] = TABLE

    def program() -> None:
        with dc.options(eager_below=16384):
            x = dc.hdf5.load(tmp_path / "a.h5", "x", slice(3, 5))
        assert x._small is not None and np.array_equal(x, TABLE[3:5])
        with pytest.raises(KeyError):
            dc.hdf5.load(tmp_path / "a.h5", "y")
        with pytest.raises(FileNotFoundError):
            dc.hdf5.load(tmp_path / "b.h5", "x")
        with pytest.raises(IndexError, match="positive"):
            dc.hdf5.load(tmp_path / "a.h5", "x", slice(None, None, -1))
        with pytest.raises(IndexError, match="at most"):
            dc.hdf5.load(tmp_path / "a.h5", "x", [slice(1)] * 3)
        with pytest.raises(ValueError, match="mode"):
            dc.hdf5.save(tmp_path / "a.h5", "x", x, "x")
        with pytest.raises((FileNotFoundError, OSError)):
            dc.hdf5.save(tmp_path / "c" / "a.h5", "x", x)

    dc.comm.run(3, program)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_under_mpi(ranks: int, tmp_path: Any) -> None:
    program = """
import sys
import numpy as np, dcarray as dc
a = np.random.default_rng(0).random((40, 7))
x = dc.distribute(a)
dc.hdf5.save(sys.argv[1], "x", x * 2, "w", chunks=(3, 7))
y = dc.hdf5.load(sys.argv[1], "x", slice(1, None, 2))
assert y._store.remote is not None and x._store.mem is None
assert np.array_equal(y, a[1::2] * 2)
print("ended")
"""
    done = launch(ranks, "-c", program, str(tmp_path / "a.h5"), DCARRAY_DISTRIBUTE_ABOVE="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks
