"""Calls of accelerated functions that go the way of NumPy, as the function is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray import comm
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.execution.executor import EXECUTOR
from dcarray.jit import decorator, variants
from dcarray.tiering import call_sites, state
from dcarray.tiering.cost_model import tally

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module says what kind of call it is")
N = 20_000
LONG = 10**9
seen: list[Any] = []
kept: Any = None


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    seen.clear()
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False, strict=False):
        yield


class Clock:
    """Seconds that pass only where a function of the tests says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(decorator, "perf_counter", made)
    return made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls of a kind after its first go the way of NumPy."""

    def record_call(way: variants.Variant, *args: Any, **kwargs: Any) -> None:
        way.plain, way.remaining_calls = True, LONG

    monkeypatch.setattr(variants.Variant, "record_call", record_call)


def kinds(function: Callable[..., Any]) -> variants.Variants:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: variants.Variants = cells["variants"].cell_contents
    return found


def ours() -> bool:
    """Does accelerated code make arrays of ours here?"""
    return type(np.zeros(3)) is not np.ndarray


# ---- which way ---------------------------------------------------------------------------------------
def through(took: Callable[[bool], float], calls: int, way: variants.Variant) -> list[bool]:
    """Calls that take so long each way; which of them went NumPy's."""
    went = []
    for _ in range(calls):
        if way.remaining_calls > 0:
            way.remaining_calls -= 1
            went.append(way.plain)
            continue
        plain = way.is_trial()
        way.record_call(took(plain), variants.work(), plain=plain)
        went.append(plain)
    return went


def test_the_shorter_way_is_gone_after_both_were_tried() -> None:
    went = through(lambda plain: 1.0 if plain else 2.0, 300, variants.Variant())
    assert not any(went[: state.VARIANT.observations + 1]) and went[state.VARIANT.observations + 1]
    assert sum(went[:40]) >= 40 - 2 * (2 * state.STRIKES - 1) and sum(went) > 280
    went = through(lambda plain: 2.0 if plain else 1.0, 300, variants.Variant())
    assert 0 < sum(went) <= 2 * (2 * state.STRIKES - 1) and not any(went[40:60])


def test_what_is_as_long_stays_ours() -> None:
    assert sum(through(lambda plain: 1.0, 100, variants.Variant())) <= 2 * (2 * state.STRIKES - 1)


def test_a_way_that_has_become_the_longer_one_is_left() -> None:
    way = variants.Variant()
    assert through(lambda plain: 1.0 if plain else 2.0, 100, way)[-1]
    went = through(lambda plain: 3.0 if plain else 2.0, 2 * variants.SPAN, way)
    assert went[0] and not went[-1]


def test_what_records_is_ours_and_hardly_looked_at() -> None:
    way, looks = variants.Variant(), 0
    for _ in range(10_000):
        if way.remaining_calls > 0:
            way.remaining_calls -= 1
        else:
            assert not way.is_trial()
            way.record_call(1.0, ((-1, 0, 0, 0), 0.0))
            looks += 1
    assert not way.plain and 10 < looks < 200


def test_what_takes_far_longer_is_tried_less_often() -> None:
    went = through(lambda plain: 9.0 if plain else 1.0, 60, variants.Variant())
    assert sum(went) == 2


def test_regions_that_save_much_are_ours() -> None:
    way = variants.Variant()
    done, theirs = variants.work()
    for saved in (2e9, 0.5e9):
        for _ in range(100):
            way.remaining_calls = 0
            way.record_call(1.0, (done, theirs - saved))
            if way.is_trial():
                break
        assert way.is_trial() == (saved < 1e9)


def test_a_call_of_another_thread_between_two_is_no_comparison() -> None:
    way = variants.Variant()
    through(lambda plain: 1.0, state.VARIANT.observations, way)
    way.record_call(1.0, variants.work())
    assert way.is_trial()
    way.record_call(1.0, variants.work(), plain=True)
    assert not way.is_trial()
    way.record_call(1.0, variants.work(), plain=True)  # which began when it was to be tried
    assert not way.plain and way.remaining_calls == 0


# ---- what kind of call -------------------------------------------------------------------------------
def mark(*args: Any, **kwargs: Any) -> int | None:
    return variants.call_signature(args, kwargs)


def test_kinds_are_told_apart() -> None:
    a = np.ones((100, 200))
    calls: tuple[Any, ...] = (
        (), (a,), (a, 1), (a, 1.0), (a, True), (a, None), (a, "c"), (a, "d"), (a.astype("f4"),), (a[0],),
        (a[:50],), (a.T,), (a, a), ((a, a),), ((a,), a), (a, 9), (a, -1), (a, 1j), (np.float32(1),),
        (a, 1 << 70), (a[:, :50],), (a.astype("m8[s]"),),
    )  # fmt: skip
    marks = [mark(*call) for call in calls]
    assert None not in marks and len(set(marks)) == len(marks)
    assert mark(x=a) != mark(y=a) != mark(a) and mark(x=a) is not None
    assert mark(a, 17) == mark(a, 18) and mark(a) == mark(a.copy()) and mark(a[1:]) == mark(a)


def test_kinds_that_are_always_ours() -> None:
    a = np.ones(N)
    others: tuple[Any, ...] = (
        dc.asarray(a), dc.asarray(a[:3]), [a], {"a": a}, object(), a.astype(object), (a, (dc.asarray(a),)),
        np.ma.array(a), np.random.default_rng(1), iter([a]),
    )  # fmt: skip
    for value in others:
        assert mark(value) is None and mark(a, key=value) is None
    deep: Any = a
    for _ in range(10):
        deep = (deep,)
    assert mark(deep) is None
    assert mark(a) is not None
    for options in ({"eager_below": 0}, {"strict": True}):
        with dc.options(**options):
            assert mark(a) is None
    with call_sites.suspended():
        assert mark(a) is None
    assert comm.run(2, mark, a) == [None, None]


def test_what_is_pending_on_memory_is_seen() -> None:
    a = np.ones(N)
    views = a[5:], a.reshape(2, -1), np.frombuffer(a), np.asarray(memoryview(a))
    assert all(mark(v) is not None for v in (a, *views))
    x = dc.asarray(a)
    with call_sites.suspended():
        x += 1
    assert mark(a) is None and mark(views[0]) is None and mark(views[1]) is None
    dc.evaluate(x)
    assert mark(a) is not None and a[3] == 2
    with call_sites.suspended():
        y = x * 2
    assert mark(a) is None  # which reads it
    dc.evaluate(y)
    out = np.asarray(y)
    assert mark(out) is not None
    with call_sites.suspended():
        y[1:] = 0
    assert mark(out) is not None and out[1] == 0  # whoever has it sees what is written at once


# ---- calls -------------------------------------------------------------------------------------------
def test_calls_go_the_shorter_way(clock: Clock) -> None:
    def function(x: Any) -> Any:
        clock.now += 2.0 if ours() else 1.0
        seen.append(ours())
        return x[:3] * 2

    f = dc.accelerate(function)
    x = np.arange(100.0)
    before = counters.plain
    for _ in range(100):
        assert f(x).tolist() == [0.0, 2.0, 4.0]
    assert seen[0] and seen.count(False) > 70 and not any(seen[40:60])
    assert counters.plain - before == seen.count(False)

    def slow(x: Any) -> Any:
        clock.now += 1.0 if ours() else 2.0
        seen.append(ours())
        return x

    seen.clear()
    f = dc.accelerate(slow)
    for _ in range(100):
        f(x)
    assert seen.count(False) < 20


def test_what_records_stays_ours(clock: Clock) -> None:
    def function(x: Any) -> Any:
        clock.now += 0.002 if ours() else 0.001  # less than regions are thought to save
        seen.append(ours())
        return np.exp(np.sin(x) * np.cos(x)) ** 2.5

    f = dc.accelerate(function)
    x = np.random.default_rng(1).random(300_000)
    unplanned = tally.unplanned
    for _ in range(3):
        f(x)
    EXECUTOR.background.wait()
    for _ in range(30):
        f(x)
    assert all(seen) and tally.unplanned - unplanned <= 4


def test_regions_of_which_all_bits_are_numpys_go_either_way(clock: Clock) -> None:
    def stepped(x: Any) -> Any:
        clock.now += 1.0 if ours() else 0.5
        seen.append(ours())
        y = x * 2.0 + 1.0
        return np.sqrt(y * y + x)

    def summed(x: Any) -> Any:
        clock.now += 1.0 if ours() else 0.5
        seen.append(ours())
        y = x * 2.0 + 1.0
        return np.sqrt(y * y + x).sum(0)

    x = np.random.default_rng(1).random((500, 600))
    for function in (stepped, summed):
        with dc.options(jit="eager"):
            f = dc.accelerate(function)
            wanted = f(x)
            seen.clear()
            flushes = counters.flushes
            for _ in range(60):
                np.testing.assert_array_equal(f(x), wanted)  # to the bit, whichever way
            assert counters.flushes - flushes >= seen.count(True)
            assert (seen.count(False) > 30) == (function is stepped)


def test_what_asks_for_ours_stays_ours(clock: Clock) -> None:
    def function(x: Any) -> Any:
        clock.now += 2.0 if ours() else 1.0
        seen.append(ours())
        return dc.evaluate(x)

    def helped(x: Any) -> Any:
        clock.now += 2.0 if ours() else 1.0
        return function(x)

    def attribute(x: Any) -> Any:
        clock.now += 2.0 if ours() else 1.0
        seen.append(ours())
        return x.layout

    def imported(x: Any) -> Any:
        import dcarray

        clock.now += 2.0 if ours() else 1.0
        seen.append(ours())
        return dcarray.evaluate(x)

    for one in (function, helped, attribute, imported):
        f = dc.accelerate(one)
        for _ in range(40):
            f(np.ones(10))
        assert all(seen) and len(seen) == 40
        seen.clear()


@pytest.mark.usefixtures("at_once")
def test_what_is_pending_is_done_before() -> None:
    @dc.accelerate
    def total(x: Any) -> Any:
        seen.append(ours())
        return x.sum()

    a = np.ones(N)
    for _ in range(3):
        assert total(a) == N
    assert seen == [True, False, False]
    x = dc.asarray(a)
    with call_sites.suspended():
        x += 1
    assert total(a) == 2 * N and seen[-1]
    with call_sites.suspended():
        y = x * 3
    a[0] = 2
    assert total(a) == 2 * N and float(y[0]) == 6


@pytest.mark.usefixtures("at_once")
def test_options_hold_for_each_call() -> None:
    @dc.accelerate
    def made(n: int) -> Any:
        seen.append(ours())
        return np.ones(n)

    for _ in range(2):
        made(4)
    with dc.options(eager_below=0):
        made(4)
    with call_sites.suspended():
        made(4)
    made(4)
    assert seen == [True, False, True, True, False]


@pytest.mark.usefixtures("at_once")
def test_what_comes_back_is_plain() -> None:
    global kept

    @dc.accelerate
    def given(x: Any, how: int) -> Any:
        if how == 0:
            return x, (x[2:], 1.5), None
        if how == 1:
            return [x, kept], {"k": (kept,)}
        return kept

    kept = dc.asarray(np.ones(N))
    a = np.ones(N)
    for _ in range(2):
        same, (part, number), none = given(a, 0)
        assert same is a and np.shares_memory(part, a) and number == 1.5 and none is None
        (one, two), table = given(a, 1)
        assert one is a
        for found in (two, table["k"][0], given(a, 2)):
            assert type(found) is np.ndarray and np.shares_memory(found, np.asarray(kept))


@pytest.mark.usefixtures("at_once")
def test_exceptions_are_the_functions_own() -> None:
    @dc.accelerate
    def failing(x: Any, at: int) -> Any:
        x[at] = 1
        return x

    a = np.zeros(4)
    assert failing(a, 3) is a and failing(a, 2) is a
    with pytest.raises(IndexError, match="out of bounds"):
        failing(a, -9)
    with pytest.raises(IndexError, match="out of bounds"):
        failing(a, -9)
    assert a.tolist() == [0, 0, 1, 1]
    assert not decorator._inside.get() and isinstance(np.zeros(2), np.ndarray)


@pytest.mark.usefixtures("at_once")
def test_inside_of_others_it_is_theirs_to_say() -> None:
    @dc.accelerate
    def inner(x: Any) -> Any:
        seen.append(ours())
        return np.ones(3) + x

    @dc.accelerate
    def outer(x: Any, y: Any) -> Any:
        return inner(x) * 2, inner(2.0)

    for _ in range(3):
        inner(np.ones(3))
        inner(2.0)
    assert seen == [True, True, False, False, False, False]
    seen.clear()
    for _ in range(2):
        both = outer(dc.asarray(np.ones(3)), 1)
        assert [type(found) for found in both] == [dc.ndarray, dc.ndarray]
    assert seen == [True] * 4
    seen.clear()
    for _ in range(2):
        both = outer(np.ones(3), 1)
        assert [type(found) for found in both] == [np.ndarray, np.ndarray]
    assert seen == [True, True, False, False]


@pytest.mark.usefixtures("at_once")
def test_it_may_call_itself() -> None:
    @dc.accelerate
    def down(x: Any, n: int) -> Any:
        seen.append(ours())
        return x if n == 0 else down(x, n - 1) + 1

    for _ in range(8):
        assert down(np.zeros(3), 5).tolist() == [5, 5, 5]
    assert not any(seen[-6:])


@pytest.mark.usefixtures("at_once")
def test_methods_and_keywords() -> None:
    class Thing:
        @dc.accelerate
        def times(self, x: Any, by: Any = 2) -> Any:
            seen.append(ours())
            return x * by

        @staticmethod
        @dc.accelerate
        def plus(x: Any, *, by: Any = 2) -> Any:
            seen.append(ours())
            return x + by

    thing, a = Thing(), np.ones(3)
    for _ in range(2):
        assert thing.times(a).tolist() == [2, 2, 2]  # of an object nobody knows what it holds
    assert seen == [True, True]
    seen.clear()
    for _ in range(2):
        assert thing.plus(a, by=a).tolist() == [2, 2, 2] and thing.plus(a).tolist() == [3, 3, 3]
    assert seen == [True, True, False, False]


@pytest.mark.usefixtures("at_once")
def test_threads() -> None:
    gate, half, a = threading.Event(), threading.Event(), np.ones(3)

    @dc.accelerate
    def waits(x: Any) -> Any:
        seen.append(ours())
        if x[0] == 2:
            half.set()
            gate.wait(30)
        return np.zeros(3) + x

    for _ in range(2):
        waits(np.ones(3))
    found: list[Any] = []

    def elsewhere(x: Any) -> threading.Thread:
        """A call in another thread, under the options of this one."""
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: found.append(waits(x)),))
        thread.start()
        return thread

    thread = elsewhere(np.full(3, 2.0))  # this one goes NumPy's way
    assert half.wait(30)
    assert type(waits(dc.asarray(np.ones(3)))) is dc.ndarray  # and this one meanwhile ours
    gate.set()
    thread.join()
    assert type(found[0]) is np.ndarray and found[0].tolist() == [2, 2, 2]
    gate.clear()
    half.clear()
    # now the other way round: the module's names are ours while it runs
    thread = elsewhere(dc.asarray(np.full(3, 2.0)))
    assert half.wait(30)
    there = waits(a)  # where the test's own np is ours, too
    gate.set()
    thread.join()
    assert type(there) is np.ndarray and seen == [True, False, False, True, True, True]


def test_many_kinds_are_forgotten() -> None:
    f = dc.accelerate(lambda x: x)
    for k in range(1000):
        f(np.ones(k % 9) if k % 2 else "c" * k)
    assert len(kinds(f)._known) <= variants.MOST


# ---- any program -------------------------------------------------------------------------------------
STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y, lambda x, y: x[1:] - y[:-1], lambda x, y: x.T, lambda x, y: np.add(x, y, out=y),
    lambda x, y: x.sum(0), lambda x, y: np.where(x > 0, x, y), lambda x, y: x[x > 0.2], lambda x, y: x[::-1],
    lambda x, y: np.concatenate([x, y]), lambda x, y: np.sort(x), lambda x, y: x.reshape(-1)[3:9],
    lambda x, y: np.multiply(x, 2, out=x), lambda x, y: np.broadcast_to(x[:1], (3, *x.shape[1:])),
    lambda x, y: x.astype(np.float32), lambda x, y: (x, y[1:]), lambda x, y: np.cumsum(x, out=y.reshape(-1)),
    lambda x, y: x.__setitem__((slice(None), 0), 5), lambda x, y: x.view(np.int64),
    lambda x, y: np.float64(3), lambda x, y: x[[0, 1]],
    lambda x, y: np.linalg.norm(x), lambda x, y: np.asarray(x), lambda x, y: x / 0,
    lambda x, y: x[99], lambda x, y: np.empty_like(x)[:0], lambda x, y: np.diff(x, prepend=0),
)  # fmt: skip


def _program(x: Any, y: Any, steps: tuple[int, ...]) -> Any:
    found = []
    with np.errstate(all="ignore"):
        for k in steps:
            found.append(STEPS[k](x, y))
            x[0, 0] += 1
    return tuple(found)


def _outcome(function: Callable[..., Any], arrays: list[Any], steps: tuple[int, ...]) -> Any:
    try:
        found = function(*arrays, steps)
    except Exception as error:
        return type(error), str(error), arrays
    shares = [[np.shares_memory(np.asarray(one), a) for a in arrays] for one in _flat(found)]
    return [(type(one), getattr(one, "dtype", None)) for one in _flat(found)], shares, _flat(found), arrays


def _flat(value: Any) -> list[Any]:
    return [one for part in value for one in _flat(part)] if isinstance(value, tuple) else [value]


@given(
    st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4), st.sampled_from([(3, 4), (150, 200)])
)
@settings(max_examples=60, deadline=None)
def test_each_way_gives_what_the_function_gives(steps: list[int], shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    given_ = [rng.standard_normal(shape), rng.standard_normal(shape)]
    f = dc.accelerate(_program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            variants.Variant,
            "record_call",
            lambda way, *_, **__: (setattr(way, "plain", True), setattr(way, "remaining_calls", LONG)),
        )
        wanted = _outcome(_program, [a.copy() for a in given_], tuple(steps))
        before = counters.plain
        for _ in range(3):
            got = _outcome(f, [a.copy() for a in given_], tuple(steps))
            np.testing.assert_equal(got, wanted)
    failed = isinstance(wanted[0], type)
    assert counters.plain - before == (0 if failed else 2)
