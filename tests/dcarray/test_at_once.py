"""Calls that NumPy runs at once: on small arrays, and of one pass on arrays that are a few times larger."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.recording.session import session
from dcarray.tiering import policy

pytestmark = [
    pytest.mark.one_process("several ranks record all alike"),
    pytest.mark.skipif(not BUILT, reason="the C module does it"),
]
BELOW = 16384
SHAPE = 150, 200


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(eager_below=BELOW, jit="background", cache_dir=None, strict=False):
        dc.evaluate()
        yield


PASSES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.sum(), lambda x: np.sum(x, axis=0), lambda x: x.max(axis=1), lambda x: np.mean(x, axis=0),
    lambda x: x.std(), lambda x: np.ptp(x), lambda x: x.argmax(axis=1), lambda x: np.roll(x, 3),
    lambda x: np.roll(x, (1, 2), (0, 1)), lambda x: x > 0.5, lambda x: x >= 0.5, lambda x: x == x,
    lambda x: np.count_nonzero(x > 0.5), lambda x: (x > 2).any(), 
    lambda x: x[2:-2].sum(), lambda x: x.T.max(),
)  # fmt: skip


@pytest.mark.parametrize("call", PASSES)
def test_calls_of_one_pass(call: Callable[[Any], Any]) -> None:
    a = np.random.default_rng(3).random(SHAPE)
    x = dc.asarray(a.copy())
    before = counters.flushes
    found = call(x)
    assert counters.flushes == before and not session().rec.log
    want = call(a)
    assert type(found) is (dc.ndarray if isinstance(want, np.ndarray) else type(want))
    np.testing.assert_array_equal(np.asarray(found), want)


@pytest.mark.parametrize("call", PASSES[:4] + PASSES[9:11])
def test_they_are_recorded_on_large_arrays_and_of_what_is_pending(call: Callable[[Any], Any]) -> None:
    """The limit is a result's size for all other calls."""
    a = np.random.default_rng(3).random((policy.PASS * BELOW // 200 + 1, 200))
    for want, made in ((a, dc.asarray), (a[:150], lambda v: dc.asarray(v) + 0.0)):
        x = made(want)
        before = counters.statements
        found = call(x)
        dc.evaluate(found)
        assert counters.statements > before
        np.testing.assert_allclose(np.asarray(found), call(want), rtol=1e-13)


def test_the_limit_is_the_size_of_the_result() -> None:
    x, y = dc.asarray(np.ones(BELOW)), dc.asarray(np.ones(BELOW - 1))
    assert not (x + x)._idle() and (y + y)._idle()
    assert not (y[:200, None] + y[None, :200])._idle()
    with dc.options(eager_below=0):
        z = dc.asarray(np.ones(5))
        assert not (z + z)._idle() and not (z > 1)._idle()


def test_reads_that_are_pending_do_not_matter_and_writes_do() -> None:
    a = np.arange(30_000.0).reshape(SHAPE)
    x = dc.asarray(a.copy())
    y = x * 2 + 1
    before = counters.flushes
    assert x.sum() == a.sum() and counters.flushes == before
    x += 1
    assert x.max() == a.max() + 1
    np.testing.assert_array_equal(np.asarray(y), a * 2 + 1)


@pytest.mark.parametrize("given", [np.ones((3, 30_000)), np.ones((3, 30_000)).tolist()])
def test_what_is_written_waits_for_who_reads_it(given: Any) -> None:
    out = dc.asarray(np.zeros(30_000))
    later = out + 1
    r = np.sum(dc.asarray(given) if isinstance(given, np.ndarray) else given, axis=0, out=out)
    assert r is out and np.all(np.asarray(later) == 1.0) and np.all(np.asarray(out) == 3.0)


@pytest.mark.parametrize("name", ["any", "all", "max", "min", "sum"])
def test_truths_that_one_element_decides(name: str) -> None:
    a = np.zeros(policy.PASS * BELOW + 5, bool)
    for where in (None, 0, 1200, -1):
        if where is not None:
            a[where] ^= True
        for value in (a, ~a):
            before = counters.flushes
            found, want = getattr(dc.asarray(value), name)(), getattr(value, name)()
            assert found == want and type(found) is type(want)
            assert (counters.flushes > before) == (name == "sum")
