"""Times in which NumPy does everything at once: while a loop waits for its plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.execution import awaiting
from dcarray.plans.background import Background
from dcarray.recording import session
from dcarray.tiering import call_sites, eager_period

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module knows of them")
SHAPE = 150, 200


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    dc.evaluate()  # what another test has left
    own = session.session()
    own.rec.urgent = own.rec.one_off = own._unaligned = False  # the last one may have ended in a period
    background = Background()
    monkeypatch.setattr(session.EXECUTOR, "background", background)
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False, strict=False):
        dc.report(reset=True)
        yield
        eager_period.end()
    background._stop()  # what has begun must not meet another one


def arrays(seed: int = 3) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.random(SHAPE), rng.random(SHAPE), rng.integers(0, 150, 40), rng.random(SHAPE) < 0.5]


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def increased(x: Any, key: Any, value: Any) -> Any:
    x[key] += value
    return x


CALLS: tuple[Callable[[Any, Any, Any, Any], Any], ...] = (
    lambda x, y, k, m: x + y, lambda x, y, k, m: 2.0 * x - y / 3, lambda x, y, k, m: -x,
    lambda x, y, k, m: x < y, lambda x, y, k, m: np.maximum(x, y), lambda x, y, k, m: np.add(x, y, out=y),
    lambda x, y, k, m: np.sum(x, axis=0), lambda x, y, k, m: x.max(), lambda x, y, k, m: x.T @ y,
    lambda x, y, k, m: x.astype(np.float32), lambda x, y, k, m: x.copy(), lambda x, y, k, m: x[1:] - x[:-1],
    lambda x, y, k, m: x[:, ::2] * 1j, lambda x, y, k, m: np.where(m, x, y), lambda x, y, k, m: x[m],
    lambda x, y, k, m: x[m] ** 2 + y[m], lambda x, y, k, m: x[k], lambda x, y, k, m: x[k, 3:9],
    lambda x, y, k, m: assigned(x, m, 3), lambda x, y, k, m: assigned(x, m, y[m] * 2),
    lambda x, y, k, m: assigned(x, k, y[:40]), lambda x, y, k, m: assigned(x, (slice(1, None), 4), y[1:, 2]),
    lambda x, y, k, m: assigned(x, (3, 4), y[1, 2]), lambda x, y, k, m: increased(x, slice(1, None), x[:-1]),
    lambda x, y, k, m: increased(x, (slice(None), -1), y[:, 0] * np.float32(2)),
    lambda x, y, k, m: np.reshape(x, (-1,)) * 2, lambda x, y, k, m: np.concatenate([x, y[1:]]),
    lambda x, y, k, m: x[None, :, :, None] + y[:, :1, None], lambda x, y, k, m: x[np.int64(3)],
    lambda x, y, k, m: np.linalg.norm(x), lambda x, y, k, m: x * np.complex64(1 + 2j),
    lambda x, y, k, m: np.exp(x) + np.zeros(SHAPE), lambda x, y, k, m: x[m & (x < y)],
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_it_is_numpys_and_nothing_is_recorded(call: Callable[..., Any]) -> None:
    plain = arrays()
    wrapped = [dc.asarray(a.copy()) for a in plain]
    before = counters.flushes
    assert eager_period.begin(60.0)
    result = call(*wrapped)
    eager_period.end()
    assert counters.flushes == before and not session.session().rec.log
    expected = call(*plain)
    assert type(result) is (dc.ndarray if isinstance(expected, np.ndarray) else type(expected))
    assert result.dtype == expected.dtype
    for ours, theirs in zip((result, *wrapped), (expected, *plain), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(range(len(CALLS))), st.booleans()), min_size=1, max_size=6))
def test_it_mixes_with_recordings(steps: list[tuple[int, bool]]) -> None:
    """Some calls in such a time and some outside, on arrays that others have written and still look at."""
    plain = arrays()
    wrapped = [dc.asarray(a.copy()) for a in plain]
    seen, wanted = [], []
    for k, outright in steps:
        if outright:
            eager_period.begin(60.0)
        seen.append(CALLS[k](*wrapped))
        eager_period.end()
        wanted.append(CALLS[k](*plain))
        seen.append(wrapped[0][2:, 1:] + 0.5)
        wanted.append(plain[0][2:, 1:] + 0.5)
        wrapped[0], plain[0] = wrapped[0] * 0.5, plain[0] * 0.5
    for ours, theirs in zip(seen, wanted, strict=True):  # sums that are recorded have other last bits
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-13)


def test_what_is_pending_is_recorded() -> None:
    a, b, *_ = arrays()
    x = dc.asarray(a) + dc.asarray(b)
    assert eager_period.begin(60.0)
    y = x * 2
    assert y._store.mem is None
    np.testing.assert_array_equal(np.asarray(y), (a + b) * 2)


def test_a_time_ends_and_is_one_threads() -> None:
    assert eager_period.begin(60.0) and eager_period.is_active() and not eager_period.begin(60.0)
    found: list[Any] = []
    other = threading.Thread(
        target=lambda: found.extend((eager_period.is_active(), eager_period.begin(1.0), eager_period.end()))
    )
    other.start()
    other.join()
    assert found == [False, False, None] and eager_period.is_active()
    eager_period.end()
    assert not eager_period.is_active() and eager_period.begin(1e-9)
    assert not eager_period.is_active()
    with dc.options(strict=True):
        assert not eager_period.begin(1.0)
    with dc.options(eager_below=0):
        assert not eager_period.begin(1.0)


@pytest.mark.one_process("several ranks have none")
def test_large_element_wise_calls_are_recorded_even_then() -> None:
    """Blocked statements take less time; products and comparisons are NumPy's."""
    a = np.random.default_rng(5).random((400, 500))
    with dc.options(eager_below=16384, jit="background", strict=False):
        assert eager_period.begin(600.0)
        try:
            for call in (lambda x: x * 2, np.sqrt, lambda x: x - x[:1], lambda x: np.where(x > 2, x, 1)):
                assert not call(dc.asarray(a.copy()))._idle() and call(dc.asarray(a[:200].copy()))._idle()
            x = dc.asarray(a.copy())
            assert (x @ x.T)._idle()
            low = np.float64(0.1)
            assert np.logical_and(low <= x, x < 0.5)._idle() and (x == x[:1])._idle() and x[x > 0.5]._idle()
            x *= 2
            np.testing.assert_array_equal(x + 1, a * 2 + 1)
        finally:
            eager_period.end()


def wrapped_program(x: Any, y: Any) -> Any:
    """A program of two recordings, which is not accelerated."""
    mean = float((np.sqrt(x * x + y) / (x + 1.0)).sum())
    z = np.where(x > y, x - mean, y + mean)
    z[1:-1] += 0.5 * (z[2:] - z[:-2])
    return np.asarray(np.abs(z) * 2.0 - z)


def test_a_program_that_comes_again_before_its_plans_is_left_to_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is recorded until all has been asked for, and again now and then; then all that has come is used."""
    jobs: list[Callable[[], None]] = []
    monkeypatch.setattr(session.EXECUTOR.background, "submit_later", lambda job, *_: jobs.append(job))
    monkeypatch.setattr(session.EXECUTOR, "_entries", {})
    monkeypatch.setattr(session.EXECUTOR, "_templates", {})
    fresh = awaiting.Awaiting(session.EXECUTOR.background)  # plans of other tests do not count
    monkeypatch.setattr(session.EXECUTOR, "_awaiting", fresh)
    monkeypatch.setattr(awaiting, "GLANCE", 60.0)
    a, b = np.random.default_rng(7).random((2, 300, 400))
    want = wrapped_program(a, b)

    def statements() -> int:
        before = counters.statements
        np.testing.assert_allclose(wrapped_program(dc.asarray(a), dc.asarray(b)), want, rtol=1e-12)
        return counters.statements - before

    with dc.options(jit="background", cache_dir=None):
        once = statements()
        taken = [statements() for _ in range(6)]
        assert once > 8 and len(jobs) == 2
        assert 0 < taken[0] < once  # where one begins whose plan is being made, that is known at once
        assert sum(taken[1:]) == 0 and eager_period.is_active()
        for job in jobs:
            session.EXECUTOR.background.submit(job)
        assert dc.wait(120)
        kernels = counters.kernels
        assert sum(statements() for _ in range(2)) > 0
        assert counters.kernels > kernels and not eager_period.is_active()
    assert len(jobs) == 2


def test_a_plan_ends_the_periods_of_those_who_wait_only() -> None:
    eager_period._waiting.clear()
    assert eager_period.begin(60.0)
    eager_period.expire()
    assert eager_period.is_active()
    eager_period.end()
    assert eager_period.begin_wait(60.0)
    over = threading.Thread(target=eager_period.expire)
    over.start()
    over.join()
    assert not eager_period.is_active()


def test_who_waits_for_a_plan_goes_on_when_one_has_come() -> None:
    eager_period._waiting.clear()
    assert eager_period.begin_wait(60.0) and eager_period.is_active() and not eager_period.begin_wait(60.0)
    eager_period.expire()
    assert not eager_period.is_active() and not eager_period._waiting


def test_other_options_end_the_wait_for_a_plan() -> None:
    """What is to be compiled, or recorded, is not left to NumPy since something else waits for its plan."""
    x = dc.asarray(np.arange(500_000.0))
    assert eager_period.begin_wait(60.0)
    with dc.options(jit="eager"):
        kernels = counters.kernels
        np.testing.assert_array_equal(np.asarray(np.sqrt(x) * 3.0), np.sqrt(np.arange(500_000.0)) * 3.0)
        assert counters.kernels > kernels
    assert eager_period.begin_wait(60.0) and dc.wait(60) and not eager_period.is_active()


def test_what_is_only_explained_waits_for_nothing() -> None:
    with call_sites.suspended():
        assert not eager_period.begin_wait(60.0)
    assert not eager_period.is_active()
