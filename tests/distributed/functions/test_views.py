"""Views of distributed arrays in other shapes and dtypes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rank_views
from launching import launch, needs_mpi
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run, world
from dcarray.distributed import spmd_executor


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_random_programs_of_views_gather_nothing(ranks: int) -> None:
    with dc.options(jit="off"):
        run(ranks, rank_views.gathering_nothing, range(100 * ranks, 100 * ranks + 60))


def test_random_programs_of_views_compiled() -> None:
    run(3, rank_views.gathering_nothing, range(12))


@needs_mpi
def test_random_programs_of_views_under_mpi() -> None:
    done = launch(2, "-m", "rank_views", "0", "0", "60", timeout=300, DCARRAY_JIT="off")
    assert done.returncode == 0, done.stdout + done.stderr


def _together(x: Any, y: Any) -> Any:
    """Both names of the elements are written and read, in turns, by one recording."""
    flat = x.reshape(-1)
    flat += 1
    x *= 2
    flat[3] = 9
    z = x + 1
    y -= z.sum()
    flat -= 3
    return x, flat, y, z


def _kept(x: Any, y: Any) -> Any:
    """What only a part of a recording makes, and the next one reads."""
    flat = x[1:].reshape(-1)
    flat += 1
    w = y * 2
    return (x + (w + 1)) * 3, flat[2], flat.max()


def _complex(x: Any, y: Any) -> Any:
    z = x + 1j * y
    z.real[1:] *= 2
    z.imag = y + 1
    z.real[0] += z.imag[0]
    return z, z.real, z[1:].T.imag, z.real[2, 1], z.imag.sum(), z.conj().imag, x.imag


def _unlike(x: Any, y: Any) -> Any:
    bits = x.view(np.int64)
    exponents = (bits >> 52) & 0x7FF
    bits[2] = 0
    return exponents, x, (-y).view("u8") >> 63, y.view(np.uint8)[:, ::8]


def _resize(x: Any, y: Any) -> Any:
    z = x * 1
    z.resize((20,))
    w = y[:4] * 1
    w.resize((9, 9))
    v = x + 1
    column, row = v[:, 1], v[2]
    v.resize((7, 9))  # as many elements: the same memory
    v[0] = 3
    row += 1
    return np.resize(x, (7, 3)), np.resize(y[1:3], 40), z, w, v, column, row


@pytest.mark.parametrize("program", [_together, _kept, _complex, _unlike, _resize])
@pytest.mark.parametrize("jit", ["off", "eager"])
def test_programs(program: Callable[[Any, Any], Any], jit: str) -> None:
    def check() -> None:
        a, b = np.random.default_rng(0).random((2, 9, 7))
        want = program(a.copy(), b.copy())
        for shared in (True, False):
            first = a.copy()
            with dc.options(distribute_above=0, eager_below=0, jit=jit):
                x = dc.asarray(first) if shared else dc.distribute(a)
                got = program(x, dc.distribute(b))
                dc.evaluate()
                if shared:
                    np.testing.assert_array_equal(first, np.asarray(x))
                for one, other in zip(want, got, strict=True):
                    found = np.asarray(other)
                    assert found.dtype == np.asarray(one).dtype
                    np.testing.assert_allclose(found, one, rtol=1e-13)
        assert world().size == 1 or "(gathered)" not in str(dc.report())

    dc.report(reset=True)
    for ranks in (1, 2, 3, 5):
        run(ranks, check)


@on_ranks(3)
def test_views_share_memory_after_gathering() -> None:
    with dc.options(distribute_above=0, eager_below=0):
        x = dc.distribute(np.arange(24.0).reshape(6, 4))
        part = x[1:5].reshape(2, 8)
        part += 1
        plain = np.asarray(x)
        x += 1
        assert plain[1, 0] == 6 and part[0, 0] == 6 and part[1, 7] == 21
        part *= 2
        assert plain[1, 0] == 12 and np.asarray(x)[0, 0] == 1


@on_ranks(3)
def test_empty_views_gather_nothing() -> None:
    with dc.options(distribute_above=0, eager_below=0, strict=True):
        x = dc.distribute(np.arange(24.0).reshape(6, 4))
        none = x[2:2]
        none += 1
        assert (none * 2).shape == (0, 4) and none.sum() == 0 and none.reshape(4, 0).shape == (4, 0)
        assert x.layout.grid.size == 3


def test_a_failed_recording_can_be_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    before, told = spmd_executor._run_distributed, set[int]()

    def once(*args: Any) -> Any:
        if world().rank not in told:
            told.add(world().rank)
            raise MemoryError
        return before(*args)

    def check() -> None:
        with dc.options(distribute_above=0, eager_below=0):
            x = dc.distribute(np.arange(6.0))
            y = x.reshape(2, 3)
            y += 1
            x *= 2
            z = y * 3
            with pytest.raises(MemoryError):
                dc.evaluate(z)
            assert np.array_equal(x, 2 * np.arange(1, 7))
            assert np.array_equal(z, 6 * np.arange(1, 7).reshape(2, 3))

    monkeypatch.setattr(spmd_executor, "_run_distributed", once)
    run(2, check)


@pytest.mark.parametrize("ranks", [2, 3])
def test_split_recordings_that_write_to_plain_memory_run_at_once(ranks: int) -> None:
    def program() -> None:
        with dc.options(distribute_above=0, eager_below=0):
            x = dc.asarray(np.arange(1.0, 5.0))
            repeated, plain = np.repeat(x, 2), np.zeros(8)
            plain += repeated
            assert plain.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]

    run(ranks, program)
