"""Uniform numbers that several threads draw a part of each: NumPy's stream, and its state afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.api.functions import random_parts
from dcarray.core import parts

pytestmark = pytest.mark.one_process("ranks draw their own blocks")
MANY = 1 << 17  # from which on the C module asks

CALLS: dict[str, Callable[[Any], Any]] = {
    "random": lambda g: g.random(MANY), "shape": lambda g: g.random((3, MANY // 2)),
    "names": lambda g: g.random(size=(MANY,), dtype=np.float64), "d": lambda g: g.random(MANY, "d"),
    "uniform": lambda g: g.uniform(-1, 1, MANY),
    "between": lambda g: g.uniform(low=2.5, size=(2, MANY), high=7),
    "high": lambda g: g.uniform(high=1e300, size=MANY), "nothing": lambda g: g.uniform(3, 3, MANY),
}  # fmt: skip
NUMPYS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda g: g.random(MANY, np.float32), "normal": lambda g: g.standard_normal(MANY),
    "integers": lambda g: g.integers(0, 1 << 20, MANY), "bounds": lambda g: g.uniform([0, 1], 2, (MANY, 2)),
    "numbers": lambda g: g.uniform(np.float64(1), 2, MANY), "one": lambda g: g.random(),
    "few": lambda g: g.random(3),
    "none": lambda g: g.random((MANY, 0)),
}  # fmt: skip
BAD: dict[str, Callable[[Any], Any]] = {
    "falling": lambda g: g.uniform(2, 1, MANY), "endless": lambda g: g.uniform(0, np.inf, MANY),
    "huge": lambda g: g.uniform(0, 10**400, MANY), "wide": lambda g: g.uniform(-1.7e308, 1.7e308, MANY),
    "negative": lambda g: g.random((-1, MANY)), "twice": lambda g: g.random(MANY, size=MANY),
    "dtype": lambda g: g.random(MANY, "i4"), "name": lambda g: g.random(MANY, of=3),
    "text": lambda g: g.random("many"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However little there is to do, three threads do it."""
    monkeypatch.setattr(parts, "LEAST", 1e-12)
    with dc.options(threads=3):
        yield


def generators(bits: Any = np.random.PCG64) -> tuple[Any, Any]:
    return np.random.Generator(bits(9)), dc.random.Generator(bits(9))


def alike(call: Callable[[Any], Any], theirs: Any, ours: Any) -> None:
    want, got = call(theirs), call(ours)
    if isinstance(want, np.ndarray):
        assert type(got) is dc.ndarray and got.dtype == want.dtype and got.shape == want.shape
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    assert str(ours.bit_generator.state) == str(theirs.bit_generator.state)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.PCG64DXSM])
@pytest.mark.parametrize("name", list(CALLS))
def test_the_stream_is_numpys(name: str, bits: Any, numbers: list[int]) -> None:
    theirs, ours = generators(bits)
    for _ in range(2):
        alike(CALLS[name], theirs, ours)
        alike(lambda g: g.integers(0, 5, 3, dtype=np.int32), theirs, ours)  # leaves half of a number
        assert theirs.bit_generator.state["has_uint32"] or _
        alike(CALLS[name], theirs, ours)
        alike(lambda g: g.integers(0, 5, 2, dtype=np.int32), theirs, ours)
    assert len(numbers) == 4 and min(numbers) == 12


@pytest.mark.parametrize("name", list(NUMPYS))
def test_what_numpy_draws(name: str, numbers: list[int]) -> None:
    for bits in (np.random.PCG64, np.random.Philox):
        alike(NUMPYS[name], *generators(bits))
    alike(CALLS["random"], *generators(np.random.MT19937))
    legacy = [g.RandomState(3).uniform(-1, 1, MANY) for g in (np.random, dc.random)]
    assert np.asarray(legacy[1]).tobytes() == legacy[0].tobytes()
    assert not numbers


@pytest.mark.parametrize("name", list(BAD))
def test_errors(name: str) -> None:
    theirs, ours = generators()
    told = []
    for g in (theirs, ours):
        with pytest.raises(Exception) as caught:
            BAD[name](g)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]
    alike(CALLS["random"], theirs, ours)


def test_numbers_are_drawn_for_one_thread_after_the_other() -> None:
    theirs, ours = generators()
    want = theirs.random(6 * MANY)
    found: list[Any] = []

    def draw() -> None:
        with dc.options(threads=3):
            found.append(np.asarray(ours.random(MANY)))

    threads = [threading.Thread(target=draw) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    rows = {row.tobytes() for row in want.reshape(6, MANY)}
    assert {row.tobytes() for row in found} == rows


def test_what_fails_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = generators()
    with monkeypatch.context() as patch:
        patch.setattr(random_parts.parts, "run", lambda jobs: False)
        alike(CALLS["uniform"], theirs, ours)
    alike(CALLS["uniform"], theirs, ours)
