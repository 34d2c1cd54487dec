"""Times in which NumPy does everything at once: while a loop waits for its plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.execution import awaiting, executor
from dcarray.jit.loops.sites import loop_sites
from dcarray.lowering.runtime import buffer_pool
from dcarray.plans.background import Background
from dcarray.recording import session
from dcarray.tiering import call_sites, eager_period

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module knows of them")
SHAPE = 150, 200


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    dc.evaluate()  # what another test has left
    background = Background(lambda: None)
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


LOOP = """
def f(x, n):
    for k in range(n):
        y = x * 2.0 + k
        x[1:] = y[:-1]
    return x
"""


def test_a_loop_that_waits_for_its_plan_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_sites, "PATIENCE", 60.0)
    f, (a, *_) = written(LOOP), arrays()
    before = counters.flushes
    ours = dc.accelerate(f)(a.copy(), 6)
    assert counters.flushes == before and not eager_period.is_active()
    np.testing.assert_array_equal(ours, f(a.copy(), 6))


def test_one_that_takes_long_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_sites, "PATIENCE", 1e-9)
    f, (a, *_) = written(LOOP), arrays()
    before = counters.flushes
    np.testing.assert_array_equal(dc.accelerate(f)(a.copy(), 6), f(a.copy(), 6))
    assert counters.flushes > before


BEFORE = """
def f(x, n):
    y = np.sqrt(x * 3.0 + 1.0)
    m = y.sum(axis=0) + (y * x).sum(axis=0)
    found = []
    for k in range(n):
        found.append(retained())
        x[1:] = x[:-1] + m
    return x, found
"""


def test_numpy_gets_the_memory_of_what_was_before_a_new_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_sites, "PATIENCE", 60.0)
    f, (a, *_) = written(BEFORE, np=np, retained=lambda: buffer_pool.stats()["retained"]), arrays()
    buffer_pool.trim()
    ours, kept = dc.accelerate(f)(a.copy(), 2)
    assert kept == [0, 0]
    np.testing.assert_array_equal(ours, f(a.copy(), 2)[0])
    assert dc.accelerate(f)(a.copy(), 2)[1][0] > 0  # what comes again is worth keeping


def test_the_time_ends_with_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_sites, "PATIENCE", 60.0)
    f = written("def f(x, n):\n    for k in range(n):\n        x[k // 0] = 1.0\n    return x\n")
    with pytest.raises(ZeroDivisionError):
        dc.accelerate(f)(arrays()[0], 3)
    assert not eager_period.is_active()


def test_errors_of_what_was_recorded_before_are_told() -> None:
    f, (a, *_) = written(LOOP), arrays()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        dc.accelerate(f)(dc.asarray(a) / dc.asarray(np.zeros(SHAPE)), 3)


SUMS = """
def f(x, found, n):
    for k in range(n):
        found[k] = (x ** 0.3 + k).sum()
    return found
"""


def test_numpy_goes_on_until_the_plans_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes again while its plan is made is recorded now and then only, to see whether it is there."""
    monkeypatch.setattr(loop_sites, "PATIENCE", 1e-9)
    monkeypatch.setattr(awaiting, "GLANCE", 60.0)
    monkeypatch.setattr(Background, "submit_later", lambda self, *job: None)  # no plan is ever there
    f, (a, *_) = written(SUMS), [np.random.default_rng(5).random((300, 400))]
    seen: list[bool] = []
    before, resume = counters.flushes, eager_period.resume
    monkeypatch.setattr(eager_period, "resume", lambda s: (resume(s), seen.append(eager_period.is_active())))
    ours = dc.accelerate(f)(a, np.zeros(20), 20)
    assert seen == [True] and counters.flushes <= before + 4 and not eager_period.is_active()
    np.testing.assert_allclose(ours, f(a, np.zeros(20), 20), rtol=1e-13)
    resume(60.0)  # outside of loops that is nothing
    assert not eager_period.is_active()


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


CHAIN = """
def f(x, y, n):
    for k in range(n):
        y[1:-1] = 0.25 * (x[:-2] + x[1:-1] + x[2:])
        x[1:-1] = 0.25 * (y[:-2] + y[1:-1] + y[2:])
    return x
"""
NESTED = """
def f(x, y, n):
    for k in range(n):
        for m in range(2):
            y[1:-1] = 0.25 * (x[:-2] + x[1:-1] + x[2:])
            x[1:-1] = 0.25 * (y[:-2] + y[1:-1] + y[2:])
    return x
"""


@pytest.mark.parametrize("source", [CHAIN, NESTED])
def test_what_is_always_pending_is_left_to_numpy_too(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement needs the one before, so that something would be pending whenever a recording ends."""
    monkeypatch.setattr(loop_sites, "PATIENCE", 1e-9)
    monkeypatch.setattr(loop_sites, "INNER_DELAY", 1e-3)
    monkeypatch.setattr(awaiting, "GLANCE", 60.0)
    monkeypatch.setattr(Background, "submit_later", lambda self, *job: None)  # no plan is ever there
    f, (a, b, *_) = written(source), arrays()
    before = counters.statements
    ours = dc.accelerate(f)(a.copy(), b.copy(), 400)
    assert 0 < counters.statements - before < 1000  # of 3,200 and more
    np.testing.assert_array_equal(ours, f(a.copy(), b.copy(), 400))


def test_the_next_long_recording_begins_where_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is over NumPy is anywhere in a turn; what is recorded until a turn ends is by itself."""
    monkeypatch.setattr(loop_sites, "PATIENCE", 1e-9)
    monkeypatch.setattr(awaiting, "GLANCE", 2e-3)
    monkeypatch.setattr(Background, "submit_later", lambda self, *job: None)
    logs: list[tuple[bool, int, Any]] = []
    run = executor.Executor.run

    def noted(self: Any, rec: Any, options: Any) -> Any:
        logs.append((rec.one_off, len(rec.sites), rec.sites[0][:2]))
        return run(self, rec, options)

    monkeypatch.setattr(executor.Executor, "run", noted)
    f, (a, b, *_) = written(CHAIN), arrays()
    np.testing.assert_array_equal(dc.accelerate(f)(a.copy(), b.copy(), 3000), f(a.copy(), b.copy(), 3000))
    long = [log for log in logs[1:] if not log[0] and log[1] > 100]
    assert len(long) > 3 and len({log[1:] for log in long}) <= 2
    # not more than a turn, but for what the loop leaves
    assert all(length <= 8 for once, length, _ in logs[:-1] if once)


def test_a_plan_that_has_come_ends_it() -> None:
    eager_period._loops.clear()
    assert eager_period.begin(60.0, loop=True) and not eager_period.is_waiting()
    eager_period.end(loop=True)
    assert eager_period.begin(60.0, loop=True, new=True)
    eager_period.expire()
    assert eager_period.is_active()  # it was not resumed: nobody waits for a plan
    eager_period.end()
    assert eager_period.is_waiting() and eager_period.resume(60.0) and not eager_period.resume(60.0)
    over = threading.Thread(target=eager_period.expire)
    over.start()
    over.join()
    assert not eager_period.is_active() and eager_period.is_waiting()
    eager_period.end(loop=True)
    assert not eager_period.is_waiting() and not eager_period.resume(60.0)


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


def test_who_waits_for_a_plan_goes_on_when_one_has_come() -> None:
    eager_period._loops.clear()
    eager_period._waiting.clear()
    assert eager_period.wait(60.0) and eager_period.is_active() and not eager_period.wait(60.0)
    eager_period.end(loop=True)  # no loop has begun it
    assert eager_period.is_active() and not eager_period.is_waiting()
    eager_period.expire()
    assert not eager_period.is_active() and not eager_period._waiting


def test_other_options_end_the_wait_for_a_plan() -> None:
    """What is to be compiled, or recorded, is not left to NumPy since something else waits for its plan."""
    x = dc.asarray(np.arange(500_000.0))
    assert eager_period.wait(60.0)
    with dc.options(jit="eager"):
        kernels = counters.kernels
        np.testing.assert_array_equal(np.asarray(np.sqrt(x) * 3.0), np.sqrt(np.arange(500_000.0)) * 3.0)
        assert counters.kernels > kernels
    assert eager_period.wait(60.0) and dc.wait(60) and not eager_period.is_active()


def test_what_is_only_explained_waits_for_nothing() -> None:
    with call_sites.suspended():
        assert not eager_period.wait(60.0)
    assert not eager_period.is_active()


def test_what_a_loop_leaves_behind_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(session.EXECUTOR, "plan_for", lambda *args: asked.append(args))
    with dc.options(jit="background", eager_below=16, debug=False, cache_dir=None):
        for ends in (False, True):
            x = dc.asarray(np.arange(100_000.0))
            y = np.sqrt(x * 2.0 + 1.0) / (x + 1.0)
            if ends:
                session.session().realign()
            np.testing.assert_array_equal(np.asarray(y), np.sqrt(np.asarray(x) * 2 + 1) / (np.asarray(x) + 1))
            assert len(asked) == 1
