"""Distributed random arrays have the bits of NumPy's single stream, and no rank has them whole."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi
from simulated import on_ranks

import dcarray as dc
from dcarray.distributed import random_arrays

STEADY: dict[str, Callable[[Any], Any]] = {
    "random": lambda g: g.random((13, 7)),
    "single": lambda g: g.random(101, np.float32),
    "uniform": lambda g: g.uniform(-1, 3, (6, 5, 4)),
    "triangular": lambda g: g.triangular(0, 1, 3, size=50),
    "inverted": lambda g: g.standard_exponential(77, method="inv"),
    "bytes": lambda g: g.integers(0, 256, 101, dtype=np.uint8),
    "integers": lambda g: g.integers(1 << 40, size=(9, 9)),
}
UNSTEADY: dict[str, Callable[[Any], Any]] = {
    "normal": lambda g: g.normal(1, 2, (13, 7)),
    "standard_normal": lambda g: g.standard_normal((5, 40)),
    "any integers": lambda g: g.integers(-3, 1000, (11, 11)),
    "with the end": lambda g: g.integers(0, 9, 101, endpoint=True),
    "poisson": lambda g: g.poisson(3.5, size=99),
    "gamma": lambda g: g.gamma(2.0, size=(3, 50)),
    "exponential": lambda g: g.exponential(size=99),
    "binomial": lambda g: g.binomial(50, 0.4, size=99),
}
LEGACY: dict[str, Callable[[Any], Any]] = {
    "rand": lambda g: g.rand(13, 7),
    "randn": lambda g: g.randn(13, 7),
    "odd randn": lambda g: (g.randn(3), g.randn(101))[1],
    "randint": lambda g: g.randint(0, 1000, (11, 11)),
    "random_sample": lambda g: g.random_sample(101),
    "lognormal": lambda g: g.lognormal(size=(2, 100)),
    "choice": lambda g: g.choice(10, 101),
    "permutation": lambda g: g.permutation(101),
}


def _whole(x: Any) -> bool:
    return not isinstance(x, dc.ndarray) or x._store.remote is None


def _check(make: Callable[[Any], Any], plain: Any, ours: Any, blocks: bool) -> None:
    with dc.options(distribute_above=40):
        x = make(ours)
        assert _whole(x) != blocks
        found = x.gather()
    want = make(plain)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    assert found.tobytes() == want.tobytes()
    assert ours.random(3).tolist() == plain.random(3).tolist()  # the streams go on alike


@pytest.mark.parametrize("ranks", [2, 3, 12])
@pytest.mark.parametrize("name", [*STEADY, *UNSTEADY])
def test_generators(name: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_arrays, "CHUNK", 16)
    make = STEADY.get(name) or UNSTEADY[name]
    for bits in (np.random.PCG64, np.random.Philox, np.random.MT19937):
        dc.comm.run(
            ranks,
            lambda bits=bits: _check(
                make,
                np.random.Generator(bits(5)),
                dc.random.Generator(bits(5)),
                bits is not np.random.MT19937 or name != "bytes",
            ),
        )


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_generators(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_arrays, "CHUNK", 16)
    blocks = name not in ("choice", "permutation")

    def program() -> None:
        _check(LEGACY[name], np.random.RandomState(3), dc.random.RandomState(3), blocks)

    dc.comm.run(3, program)


def test_ranks_draw_only_their_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []
    plain = random_arrays.block

    def block(*args: Any, **kwargs: Any) -> Any:
        found = plain(*args, **kwargs)
        shapes.append(found.shape)
        return found

    monkeypatch.setattr(random_arrays, "block", block)

    def program() -> None:
        with dc.options(distribute_above=0):
            assert dc.random.default_rng(1).random(120).sum() > 0

    dc.comm.run(4, program)
    assert [math.prod(shape) for shape in shapes] == [30] * 4


@on_ranks(2)
def test_invalid_arguments_raise_numpys_errors() -> None:
    with dc.options(distribute_above=0):
        g = dc.random.default_rng(1)
        with pytest.raises(ValueError, match="low >= high"):
            g.integers(5, 3, 100)
        with pytest.raises(ValueError, match="negative dimensions"):
            g.normal(size=(-1, 3))
        with pytest.raises(ValueError, match="scale < 0"):
            g.normal(0, -1, 100)
        assert g.random() == np.random.default_rng(1).random()


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_the_global_stream_under_mpi(ranks: int) -> None:
    program = """
import numpy as np, dcarray as dc
np.random.seed(4)
want = [np.random.rand(9, 5), np.random.standard_normal(31), np.random.randint(0, 7, 33), np.random.random()]
np.random.seed(4)
got = [dc.random.rand(9, 5), dc.random.standard_normal(31), dc.random.randint(0, 7, 33), dc.random.random()]
assert all(x._store.remote is not None for x in got[:3])
assert all(np.array_equal(a, b) for a, b in zip(want, got))
print("ended")
"""
    done = launch(ranks, "-c", program, DCARRAY_DISTRIBUTE_ABOVE="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks
