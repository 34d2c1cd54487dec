"""What a mask chooses, gathered by compiled code: the same elements as NumPy's."""

from dataclasses import replace

import numpy as np
import pytest

import dcarray as dc
from dcarray.execution import compress
from dcarray.execution.compress import BLOCK
from dcarray.execution.routines import Compiled
from dcarray.lowering.cpu.llvm.object_code import engine

SIZES = (1, 7, 8, 9, 63, 64, 65, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK + 77)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "i4", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("threads", [1, 3])
def test_as_numpy(dtype: str, threads: int) -> None:
    rng = np.random.default_rng(5)
    with dc.options(jit="eager", eager_below=0, threads=threads):
        for n in SIZES:
            a = rng.integers(0, 100, n).astype(dtype)
            for share in (0, 0.001, 0.1, 0.5, 0.97, 1):
                mask = rng.random(n) < share
                got = compress.compress(a, mask)
                assert got.dtype == a.dtype and got.shape == (mask.sum(),)
                assert np.array_equal(got, a[mask])


@pytest.mark.parametrize("permutes", [True, False])
def test_of_processors_without_masks(permutes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By AVX2's permutations, and without them."""
    here = engine.machine()
    if permutes and not here.permutes_words:
        pytest.skip("this processor has no AVX2")
    without = replace(here, masks=False, permutes_words=permutes)
    monkeypatch.setattr(engine, "machine", lambda: without)
    routines = {size: Compiled("compress", "compress", size) for size in compress._ROUTINES}
    monkeypatch.setattr(compress, "_ROUTINES", routines)
    rng = np.random.default_rng(8)
    with dc.options(jit="eager", eager_below=0, threads=3, cache_dir=None):
        for dtype in ("?", "u2", "f4", "f8", "c16"):
            for n in (15, 1000, 2 * BLOCK + 77):
                a = rng.integers(0, 100, n).astype(dtype)
                for share in (0.02, 0.5, 0.97):
                    mask = rng.random(n) < share
                    assert np.array_equal(compress.compress(a, mask), a[mask])


def test_any_byte_that_is_not_zero_is_true() -> None:
    rng = np.random.default_rng(6)
    for n in SIZES:
        mask = rng.integers(0, 4, n).astype(np.uint8)
        with dc.options(jit="eager", eager_below=0):
            got = compress.compress(np.arange(n), mask.view(bool))
        assert np.array_equal(got, np.flatnonzero(mask))


@pytest.mark.parametrize("dtype", ["?", "u1", "f4", "f8", "c8", "c16"])
def test_rows_as_numpy(dtype: str) -> None:
    rng = np.random.default_rng(7)
    with dc.options(jit="eager", eager_below=0, threads=3):
        for n in (1, 9, 1000, 2 * BLOCK + 5):
            for rest in ((1,), (2,), (3,), (2, 2), (0,)):
                a = rng.integers(0, 100, (n, *rest)).astype(dtype)
                for share in (0, 0.1, 0.97, 1):
                    mask = rng.random(n) < share
                    got = compress.compress(a, mask)
                    assert got.dtype == a.dtype and got.flags.c_contiguous
                    np.testing.assert_array_equal(got, a[mask])


def test_rows_that_are_not_aligned() -> None:
    a = np.arange(4001, dtype="f4")[1:].reshape(-1, 2)
    mask = np.arange(2000) % 3 == 0
    with dc.options(jit="eager", eager_below=0):
        np.testing.assert_array_equal(compress.compress(a, mask), a[mask])
        np.testing.assert_array_equal(compress.compress(a[::2], mask[::2]), a[::2][mask[::2]])
