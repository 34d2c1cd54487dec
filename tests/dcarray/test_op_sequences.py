"""Short recordings that come again and again, from their operators straight to their kernels."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.execution import awaiting, op_sequences
from dcarray.execution.executor import EXECUTOR
from dcarray.tiering import cost_model

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module has op sequences")

N = 60_000


@pytest.fixture(autouse=True, scope="module")
def _recorded() -> Iterator[None]:
    """Everything is recorded, however cheap it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_model, "eager_elements", lambda *args: 0)
        yield


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(eager_below=16384, jit="eager", debug=False, strict=False):
        yield


def arrays(dtype: Any = float, n: int = N) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(5)
    return (rng.random(n) * 9 + 1).astype(dtype), (rng.random(n) * 9 + 1).astype(dtype)


def wrapped(*given: np.ndarray[Any, Any]) -> list[Any]:
    return [dc.asarray(a.copy()) for a in given]


def deferred(x: Any) -> bool:
    """Is this array still to be computed by an op sequence?"""
    return type(x._store.dirty).__name__ == "Deferred"


PRODUCT = "(x * 2.0 + y) * (x - y)"


def fresh(text: str = PRODUCT) -> Callable[..., Any]:
    """A function of ``x`` and ``y`` at places of its own: what was learned of others does not matter."""
    scope: dict[str, Any] = {}
    exec(compile(f"def f(x, y):\n    return {text}", __file__, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


product = fresh()


def learned(f: Callable[..., Any], dtype: Any = float) -> tuple[Any, Any]:
    """Two arrays of ours, on which this function is an op sequence."""
    x, y = wrapped(*arrays(dtype))
    for _ in range(4):
        dc.evaluate(f(x, y))
    if not deferred(f(x, y)):
        pytest.skip("other places have taken those of this function in the table")
    return x, y


SEQUENCES: dict[str, Callable[[Any, Any], Any]] = {
    "sum and product": lambda x, y: (x + y) * (x - y),
    "one array twice": lambda x, y: x * x + x,
    "numbers": lambda x, y: 2 * x + y * 3,
    "remainders": lambda x, y: (x // 3 + y) % 7 - x,
    "quotient": lambda x, y: x * 3 / y - 1,
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_results_are_numpys(name: str, dtype: str) -> None:
    f = SEQUENCES[name]
    if dtype == "i8" and name == "quotient":
        pytest.skip("the integers are converted")
    a, b = arrays(dtype)
    x, y = learned(f, dtype)
    expected = f(a, b)
    flushes = counters.flushes
    result = dc.evaluate(f(x, y))
    assert counters.flushes == flushes + 1
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape


def test_other_arrays_numbers_and_shapes() -> None:
    def f(x: Any, y: Any, k: Any) -> Any:
        return x * k + y

    a, b = arrays()
    x, y = wrapped(a, b)
    for _ in range(4):
        dc.evaluate(f(x, y, 2.0))
    other = dc.asarray(b - 3.0)
    cases: list[tuple[Any, Any, Any]] = [
        (x, y, 7.5), (x, y, -1), (x, y, -1.0), (x, y, np.float64(3.0)), (x, y, True), (other, x, 1e300),
        (x, x, 2.0), (x, y, 1 << 70), (x, y, 2 + 1j), (x[::-1], y, 2.0), (x[:50_000], y[:50_000], 2.0),
        (x, y, x), (x, b, 2.0),
        (x.reshape(2, -1), y.reshape(2, -1), 2.0), (x.astype("f4"), y, 2.0), (x, y, float("nan")),
    ]  # fmt: skip
    for u, v, k in cases:
        plain = [np.asarray(t).copy() if isinstance(t, (dc.ndarray, np.ndarray)) else t for t in (u, v, k)]
        np.testing.assert_array_equal(np.asarray(f(u, v, k)), f(*plain))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_operands_that_are_written_meanwhile(order: int) -> None:
    a, b = arrays()
    f = fresh()
    x, y = learned(f)
    result = f(x, y)
    expected = product(a, b)
    if order == 0:
        x += 1.0
    elif order == 1:
        y[3:70] = 0.0
    else:
        np.asarray(x)[:] = 0.0  # plain memory, handed out
    np.testing.assert_array_equal(np.asarray(result), expected)
    if order < 2:
        assert (np.asarray(x)[0] == a[0] + 1.0) == (order == 0) and (np.asarray(y)[3] == 0.0) == (order == 1)


def test_plain_memory_is_the_users_after_evaluate() -> None:
    a, b = arrays()
    expected = product(a, b)
    f = fresh()
    learned(f)
    mine = a.copy()
    x, y = dc.asarray(mine), dc.asarray(b)
    result = f(x, y)
    assert deferred(result)
    dc.evaluate()
    mine[:] = 0.0
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_intermediate_results_that_somebody_keeps() -> None:
    def f(x: Any, y: Any) -> Any:
        kept.append(x * 2.0)
        return (kept[-1] + y) * (x - y)

    kept: list[Any] = []
    a, b = arrays()
    x, y = wrapped(a, b)
    for _ in range(5):
        dc.evaluate(f(x, y))
        kept.clear()
    result = f(x, y)
    np.testing.assert_array_equal(np.asarray(result), (a * 2.0 + b) * (a - b))
    np.testing.assert_array_equal(np.asarray(kept[0]), a * 2.0)

    def g(x: Any, y: Any, keep: bool) -> Any:
        z = x + y
        if keep:
            kept.append(z)
        return z * 2.0

    for _ in range(5):
        dc.evaluate(g(x, y, False))
    result = g(x, y, True)
    np.testing.assert_array_equal(np.asarray(kept[-1]), a + b)
    np.testing.assert_array_equal(np.asarray(result), (a + b) * 2.0)
    half = [g(x, y, True), kept[-1]]
    np.testing.assert_array_equal(np.asarray(half[0]), (a + b) * 2.0)
    np.testing.assert_array_equal(np.asarray(half[1]), a + b)


def test_what_is_done_with_a_result_that_is_pending() -> None:
    a, b = arrays()
    expected = product(a, b)
    uses: list[Callable[[Any], Any]] = [
        lambda r: r[5:100], lambda r: r[::-1] + 1.0, lambda r: r.reshape(2, -1).T, lambda r: r.sum(),
        lambda r: r[7], lambda r: np.sqrt(abs(r)) * 2.0, lambda r: r.copy(),
        lambda r: np.where(r > 0, r, 0.0),
        lambda r: r[r > 3.0],
        lambda r: pickle.loads(pickle.dumps(r)), lambda r: np.concatenate((r, r)), lambda r: r @ r,
        lambda r: memoryview(r)[3], lambda r: float(r[0]), lambda r: r.dtype.itemsize * r.size,
        lambda r: r * r,
        lambda r: r.astype("f4"), lambda r: r.tolist()[:3], lambda r: r.view("i8")[:9], lambda r: str(r),
    ]  # fmt: skip
    for use in uses:
        f = fresh()
        x, y = learned(f)
        got, want = use(f(x, y)), use(expected)
        if isinstance(want, np.ndarray):
            np.testing.assert_array_equal(np.asarray(got), want)
        else:
            assert np.allclose(got, want, rtol=1e-12) if isinstance(want, float) else got == want


def test_results_are_written_to() -> None:
    a, b = arrays()
    f = fresh()
    x, y = learned(f)
    r = f(x, y)
    r[10:20] = 5.0
    r += x
    expected = product(a, b)
    expected[10:20] = 5.0
    np.testing.assert_array_equal(np.asarray(r), expected + a)
    np.testing.assert_array_equal(np.asarray(x), a)


def test_floating_point_exceptions_are_told_as_ever() -> None:
    a, b = arrays()
    quotient = fresh("x / y * 2.0")
    x, _ = learned(quotient)
    zero = b.copy()
    zero[5] = 0.0
    z = dc.asarray(zero)
    result = quotient(x, z)
    assert deferred(result)
    with pytest.warns(RuntimeWarning, match="divide by zero") as said:
        dc.evaluate(result)
    assert said[0].filename == __file__
    assert np.asarray(result)[5] == np.inf
    with np.errstate(divide="raise"):
        pending = quotient(x, z)
        with pytest.raises(FloatingPointError):
            dc.evaluate(pending)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        np.testing.assert_array_equal(np.asarray(quotient(x, z)), a / zero * 2.0)


def test_memory_is_dropped_with_what_was_to_be_computed() -> None:
    f = fresh()
    x, y = learned(f)
    gone = weakref.ref(x._store)
    result = f(x, y)
    assert deferred(result)
    del x
    assert gone() is not None
    del result
    assert gone() is None
    f = fresh()
    x, y = learned(f)
    result = f(x, y)
    gone = weakref.ref(x._store)
    dc.evaluate(result)
    del x
    assert gone() is None
    assert y._idle()


def test_half_a_chain_and_two_at_once() -> None:
    a, b = arrays()
    f = fresh()
    x, y = learned(f)
    z = dc.asarray(b + 1.0)
    one, two = f(x, y), f(y, z)
    np.testing.assert_array_equal(np.asarray(two), product(b, b + 1.0))
    np.testing.assert_array_equal(np.asarray(one), product(a, b))

    def stops(x: Any, y: Any, early: bool) -> Any:
        r = x + y
        if early:
            return r
        return r * 2.0

    for _ in range(5):
        dc.evaluate(stops(x, y, False))
    np.testing.assert_array_equal(np.asarray(stops(x, y, True)), a + b)
    np.testing.assert_array_equal(np.asarray(stops(x, y, False)), (a + b) * 2.0)


def test_chains_end_where_they_are_of_no_use() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 3.0 - y

    x, y = learned(f)
    a, b = arrays()
    for _ in range(5):
        np.testing.assert_array_equal(np.asarray(np.exp(f(x, y) / 99.0)), np.exp(f(a, b) / 99.0))
    assert not deferred(f(x, y))


@pytest.mark.parametrize("text", [PRODUCT, "np.sqrt(x * x + y * y) - 1.0", "(x - y) / y"])
def test_numpys_loops_do_what_waits_for_its_plan(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    background, jobs = EXECUTOR.background, list[Callable[[], None]]()
    monkeypatch.setattr(background, "submit_later", lambda job, *_: jobs.append(job))
    monkeypatch.setattr(EXECUTOR, "_entries", {})  # other tests may have plans, or have asked for them
    monkeypatch.setattr(EXECUTOR, "_templates", {})
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(x, y):\n    return {text}", scope)
    (x, y), (a, b) = wrapped(*arrays()), arrays()

    def turn() -> bool:
        """Is a result of this function right, and was it deferred?"""
        result = scope["f"](x, y)
        there = deferred(result)
        np.testing.assert_array_equal(np.asarray(result), scope["f"](a, b))
        return there

    monkeypatch.setattr(awaiting, "GLANCE", 1000.0)
    monkeypatch.setattr(awaiting, "WAIT", 1000.0)
    with dc.options(jit="background", cache_dir=None), np.errstate(all="ignore"):
        for _ in range(4):  # two, if nothing is left over from other tests
            assert not turn()
            if jobs:
                break
        assert len(jobs) == 1  # the plan is asked for
        if not turn():
            pytest.skip("other places have taken those of this function in the table")
        y[7] = b[7] = 0.0
        assert turn()
        op_sequences.expire()  # it is said that something has come
        assert not turn() and turn()
        op_sequences.expire()
        with background._busy:
            jobs.pop()()
        kernels = counters.kernels
        assert not turn()
        assert counters.kernels == kernels + 1
    x, y = wrapped(*arrays())
    with dc.options(jit="background", cache_dir=None), pytest.warns(RuntimeWarning, match="divide by zero"):
        y[:] = 0.0
        for _ in range(3):
            np.asarray(scope["f"](x, y) / y)


def test_another_thread_wants_the_result() -> None:
    a, b = arrays()
    f = fresh()
    x, y = learned(f)
    results = [f(x, y)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda r=r: found.append(np.asarray(r).copy())) for r in results * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for got in found:
        np.testing.assert_array_equal(got, product(a, b))


def test_explanations_show_what_would_be_recorded() -> None:
    f = fresh()
    x, y = learned(f)
    assert "kernel" in str(dc.explain(f, x, y))


ARRAYS = ["x", "y", "t", "u"]
LINES = st.lists(
    st.tuples(
        st.sampled_from(["t", "u"]),
        st.sampled_from([f"{a} {op} {b}" for a in ARRAYS for op in "+-*/" for b in [*ARRAYS, "2.0"]]),
        st.sampled_from(["", " + x", " * 0.5", " - t", " * (x - y)"]),
    ),
    min_size=1,
    max_size=4,
)
ENDS = st.lists(
    st.sampled_from(["t", "u", "x += 1.0", "y[1:] = x[1:]", "t.sum()", "t[3:] * u[3:]"]), max_size=3
)


@settings(deadline=None, max_examples=10)
@given(LINES, ENDS)
def test_programs_that_come_again(lines: list[tuple[str, str, str]], ends: list[str]) -> None:
    """The same program several times, on the same places of the code, with arrays that go on changing."""
    text = ["def program(x, y, evaluate):", "    t = x", "    u = y", "    seen = []"]
    text += [f"    {target} = {first}{then}" for target, first, then in lines]
    for end in ends:
        text += [f"    {end}"] if "=" in end else [f"    seen.append(evaluate({end}))"]
    text += ["    return [t, u, *seen]"]
    scope: dict[str, Any] = {}
    exec("\n".join(text), scope)
    a, b = arrays(n=20_000)
    x, y = wrapped(a, b)
    with np.errstate(all="ignore"):
        for _ in range(6):
            got = scope["program"](x, y, dc.evaluate)
            want = scope["program"](a, b, lambda value: value)
            for one, other in zip(got, want, strict=True):
                if isinstance(other, np.ndarray):
                    np.testing.assert_array_equal(np.asarray(one), other)
                else:
                    np.testing.assert_allclose(float(one), float(other), rtol=1e-9)
            np.testing.assert_array_equal(np.asarray(x), a)
            np.testing.assert_array_equal(np.asarray(y), b)
    gc.collect(1)  # what is old are the other tests' things
