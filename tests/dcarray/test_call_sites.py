"""Places where NumPy works at once, since to record has never paid there."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.execution import estimates
from dcarray.execution.steps import live_steps
from dcarray.ir import log_entries
from dcarray.recording.session import session
from dcarray.tiering import call_sites, cost_model, policy

N = 20_000
built = pytest.mark.skipif(not BUILT, reason="the table is in the C module")


@pytest.fixture(autouse=True)
def _options() -> Any:
    with dc.options(eager_below=16384, jit="off"):
        yield


def vectors(count: int = 2, n: int = N) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    return [rng.random(n) for _ in range(count)]


def runs(f: Callable[[], Any], times: int) -> list[int]:
    """How many recordings each of some calls runs."""
    found = []
    for _ in range(times):
        before = counters.flushes
        dc.evaluate(f())
        found.append(counters.flushes - before)
    return found


def negative_to_zero(x: Any) -> Any:
    x[x < 0.5] = 0.0
    return x


def halved(x: Any) -> Any:
    x *= 0.5
    return x


def shifted(x: Any) -> Any:
    x[1:] = x[:-1] + 1.0
    return x


CALLS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y, lambda x, y: 2.0 * x, lambda x, y: -x, lambda x, y: x < y,
    lambda x, y: np.maximum(x, y), lambda x, y: np.add(x, y, out=y), lambda x, y: x * 2.0 + y,
    lambda x, y: np.sum(x * x), lambda x, y: x.max(), lambda x, y: (x - y).mean(),
    lambda x, y: x.astype(np.float32), lambda x, y: x.copy(), lambda x, y: x[1:] - x[:-1],
    lambda x, y: np.clip(x, 0.2, 0.8), lambda x, y: np.roll(x, 3), lambda x, y: x @ y,
    lambda x, y: negative_to_zero(y), lambda x, y: halved(y), lambda x, y: shifted(y),
)  # fmt: skip


@built
@pytest.mark.parametrize("call", CALLS)
def test_cheap_statements_run_at_once_when_they_come_again(call: Callable[[Any, Any], Any]) -> None:
    a, b = vectors()
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    assert runs(lambda: call(x, y), 5)[-2:] == [0, 0]
    for _ in range(5):
        expected = call(a, b)
    result = call(x, y)
    np.testing.assert_array_equal(np.asarray(result), call(a, b))
    assert type(result) is type(expected) or type(result) is dc.ndarray
    np.testing.assert_array_equal(np.asarray(x), a)


LARGE: tuple[Callable[[Any], Any], ...] = (
    lambda x: np.dot(x, x), lambda x: x @ x, lambda x: np.vdot(x, x), lambda x: np.linalg.norm(x),
    lambda x: np.argmax(x), lambda x: np.argmin(x.reshape(-1, 128), axis=1),
    lambda x: np.einsum("ij,ij->i", x.reshape(-1, 128), x.reshape(-1, 128)),
    lambda x: np.einsum("ii", x.reshape(512, -1)[:, :512]), lambda x: np.trace(x.reshape(512, -1)),
    lambda x: np.cov(x.reshape(4, -1)), lambda x: np.corrcoef(x.reshape(4, -1)), lambda x: (x < 2.0).any(),
    lambda x: np.clip(x, 0.2, 0.8), lambda x: x.clip(0.2, 0.8),
)  # fmt: skip


@built
@pytest.mark.parametrize("call", LARGE)
def test_what_kernels_never_have_sooner_is_numpys_at_once_on_large_arrays_too(
    call: Callable[[Any], Any],
) -> None:
    n = 6 * policy.PASS * 16384
    (a,) = vectors(1, n)
    x, asked = dc.asarray(a), list[int]()

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(
            ("functions/registry.py", "recording/recorder.py")
        ):
            asked[-1] += 1

    for _ in range(4):
        asked.append(0)
        sys.setprofile(watch)
        try:
            result = call(x)
        finally:
            sys.setprofile(None)
        np.testing.assert_array_equal(np.asarray(result), call(a))
    assert asked[0] > 0 and asked[-1] == 0
    y = dc.asarray(a) * 2.0  # pending, which is not for NumPy at once
    np.testing.assert_allclose(np.asarray(call(y)), call(a * 2.0))


@built
def test_a_result_that_something_recorded_wants_is_recorded_again() -> None:
    a, b = vectors(2, 2 * N)
    x, y = dc.asarray(a), dc.asarray(b)

    def first() -> Any:
        return x - 1.0

    assert runs(first, 4)[-1] == 0
    for _ in range(4):  # many costly operations, which are recorded
        t = first()
        for _ in range(4):
            t = np.sin(t) * np.arctan2(t, y)
        dc.evaluate(t)
    before = counters.statements
    t = np.sin(first())
    dc.evaluate(t)
    assert counters.statements - before == 2


def life(w: Any, turns: int) -> Any:
    for _ in range(turns):
        n = sum(np.roll(np.roll(w, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        w = ((n == 3) | ((n == 2) & (w == 1))).astype(np.uint8)
    return w


@built
def test_all_places_of_cheap_statements_are_learned_in_the_end() -> None:
    a = (np.random.default_rng(0).random((150, 150)) < 0.3).astype(np.uint8)
    for _ in range(12):
        np.testing.assert_array_equal(np.asarray(life(dc.asarray(a), 5)), life(a, 5))
    before = counters.statements
    np.asarray(life(dc.asarray(a), 5))
    assert counters.statements == before


@built
def test_what_numpy_does_anyway_stays_known_though_something_recorded_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = dc.asarray(vectors(1)[0])

    def rolled() -> Any:
        return np.roll(x, 3)

    for _ in range(8):
        t = rolled()
        for _ in range(4):
            t = np.sin(t) * np.arctan2(t, x)
        dc.evaluate(t)
    learned: list[Any] = []
    monkeypatch.setattr(call_sites, "promote", lambda *args, **kwargs: learned.append(args))
    rolled()
    assert not learned


@built
def test_only_arrays_that_are_not_larger() -> None:
    def twice(x: Any) -> Any:
        return x * 2.0

    (a,), (b,) = vectors(1), vectors(1, 40 * N)
    x, y = dc.asarray(a), dc.asarray(b)
    assert runs(lambda: twice(x), 4)[-1] == 0
    assert runs(lambda: twice(y), 4) == [1] * 4


@pytest.mark.parametrize("f", [np.sin, np.sqrt, lambda x: np.where(x > 0.5, x, 1.0)])
def test_costly_statements_are_recorded(f: Callable[[Any], Any]) -> None:
    x = dc.asarray(vectors(1, 400_000)[0])
    assert runs(lambda: f(x), 4) == [1] * 4


def test_nothing_is_learned_where_everything_is_to_be_recorded() -> None:
    x = dc.asarray(vectors(1)[0])
    with dc.options(eager_below=0):
        assert runs(lambda: x + 1.0, 4) == [1] * 4


@built
def test_what_is_pending_is_recorded() -> None:
    x, y = map(dc.asarray, vectors())

    def step(operand: Any) -> Any:
        return operand + 1.0

    assert runs(lambda: step(x), 4)[-1] == 0
    before = counters.flushes
    t = step(np.sin(np.sin(y)))
    assert counters.flushes == before
    np.testing.assert_array_equal(np.asarray(t), np.sin(np.sin(np.asarray(y))) + 1.0)


@built
def test_explain_shows_what_would_run_at_once() -> None:
    x = dc.asarray(vectors(1)[0])

    def step() -> Any:
        return x + 1.0

    assert runs(step, 4)[-1] == 0
    assert "1 statement recorded" in str(dc.explain(step))
    dc.evaluate()
    assert runs(step, 2) == [0, 0]


@built
def test_floating_point_errors_are_told_as_ever() -> None:
    x = dc.asarray(vectors(1)[0])

    def divide(by: float) -> Any:
        return x / by

    assert runs(lambda: divide(2.0), 4)[-1] == 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        divide(0.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        divide(0.0)


@built
def test_readonly_arrays_stay_so() -> None:
    x, y = map(dc.asarray, vectors())

    def add(target: Any) -> Any:
        target += 1.0
        return target

    assert runs(lambda: add(x), 4)[-1] == 0
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        add(y)


@built
def test_results_are_no_views() -> None:
    x = dc.asarray(vectors(1)[0].reshape(100, -1).T)

    def flat() -> Any:
        return np.ravel(x)

    for _ in range(4):
        z = flat()
        z[0] = 7.0
    assert x[0, 0] != 7.0
    assert not np.shares_memory(np.asarray(z), np.asarray(x))


def cheaper(*args: Any) -> int:
    return cost_model.eager_elements(cost_model.estimate(*args))


def test_the_estimate_counts_what_a_recording_moves() -> None:
    old = ("old", "d", (N,), None, 0)
    statement = ("map", "add", "dd->d", (N,), 1, None, (0, None, None), (0, None, None))
    assert cheaper((old, ("new", "d", (N,), 1), statement), (1,), 1, 2) == N
    many = [("new", "d", (50 * N,), k) for k in range(1, 9)]
    steps = [("map", "add", "dd->d", (50 * N,), k, None, (k - 1, None, None), 0) for k in range(1, 9)]
    assert cheaper((("old", "d", (50 * N,), None, 0), *many, *steps), (8,), 8, 2) == 0
    call = ("call", "blas.matmul", (1,), ((0, None, None), (0, None, None)), ())
    assert cheaper((old, ("new", "d", (), 1), call), (1,), 1, 2) == N


def test_the_estimate_counts_temporary_arrays_and_threads_only_for_long_work() -> None:
    def chain(n: int, *names: str) -> list[tuple[Any, ...]]:
        news = [("new", "d", (n,), k) for k in range(1, len(names) + 1)]
        steps = [("map", f, "d->d", (n,), k, None, (k - 1, None, None)) for k, f in enumerate(names, 1)]
        return [("old", "d", (n,), None, 0), *news, *steps]

    n = 5 * N
    for threads in (1, 2):
        assert cheaper(chain(n, "negative"), (1,), 1, threads) == n
        assert cheaper(chain(n, "square", "negative", "square"), (3,), 3, threads) == 0
        assert cheaper(chain(n, "square", "negative", "square"), (1, 2, 3), 3, threads) == n
    assert cheaper(chain(50 * n, "negative"), (1,), 1, 1) == 50 * n
    assert cheaper(chain(50 * n, "negative"), (1,), 1, 2) == 0
    assert cheaper(chain(n, "sin"), (1,), 1, 2) == 0  # not one


def test_what_pushes_python_out_of_the_near_cache_is_slower_to_record() -> None:
    def steps(n: int, count: int) -> list[tuple[Any, ...]]:
        news = [("new", "d", (n,), k) for k in range(1, count + 1)]
        maps = [
            ("map", "multiply", "dd->d", (n,), k, None, (k - 1, None, None), 0) for k in range(1, count + 1)
        ]
        return [("old", "d", (n,), None, 0), *news, *maps]

    assert cheaper(steps(100_000, 2), (2,), 2, 2) == 100_000
    assert cheaper(steps(100_000, 4), (4,), 4, 2) == 0
    assert cheaper(steps(30_000, 5), (5,), 5, 2) == 0


def test_what_nobody_needs_and_what_is_gathered_to_be_folded_costs_numpy_little() -> None:
    n = 100_000
    log = [
        ("old", "d", (n,), None, 0), ("new", "?", (n,), 1), ("new", "d", (n,), 2), ("new", "d", (n,), 3),
        ("new", "d", (1,), 4),
        ("map", "greater", "dd->?", (n,), 1, None, (0, None, None), 0),
        ("map", "where", "?dd->d", (n,), 2, None, (1, None, None), (0, None, None), 0),
        ("map", "where", "?dd->d", (n,), 3, None, (1, None, None), (0, None, None), 0),
        ("fold", "add", "d->d", (n,), (0,), True, 4, (3, None, None)),
    ]  # fmt: skip
    steps = live_steps(log_entries.declarations(log), log_entries.statements(log), (4,))
    assert [step.position for step in steps] == [0, 2, 3] and steps[1].joined
    every, few = cost_model.estimate(log, (4,), 3, 2), cost_model.estimate(log, (4,), 3, 2, (), steps)
    assert few.numpy < every.numpy / 3 and few.elements == every.elements
    assert not cost_model.eager_elements(every) and cost_model.eager_elements(few) == n


@built
@pytest.mark.parametrize("op", [operator.add, operator.iadd])
def test_other_names_of_the_memory_see_it(op: Callable[[Any, Any], Any]) -> None:
    a, b = vectors()
    x, y = dc.asarray(a.copy()), dc.asarray(b)
    part = x[10:]
    for _ in range(4):
        dc.evaluate(op(part, 1.0))
    pending = x * y
    dc.evaluate(op(part, 1.0))
    kept = a.copy()
    if op is operator.iadd:
        kept[10:] = kept[10:] + 1.0 + 1.0 + 1.0 + 1.0
    np.testing.assert_array_equal(np.asarray(pending), kept * b)


def test_the_calls_of_a_loop_are_counted() -> None:
    with dc.options(eager_below=0):
        x = dc.asarray(np.ones(64))
        dc.evaluate(x)
        for _ in range(5):
            x[1:] = 2 * x[:-1] + 1
        x += 1
        assert estimates._calls(session().rec) == 16
        dc.evaluate(x)
