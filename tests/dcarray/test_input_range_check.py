"""Updates in place of which nothing is kept, since what they are given is too small to raise anything."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.execution import executor
from dcarray.lowering.program import input_range_check
from dcarray.recording import session

TOPS = [0.5, -3e100, 1e200, 1.7e308, 5e-324, np.inf, -np.inf, np.nan]
SCALARS = [0.5, 2.0, -1.5, 0.0, 1e-300, 1e300, np.inf]


@pytest.fixture(autouse=True, scope="module")
def eagerly() -> Any:
    before, ours = input_range_check.MIN_COPIED_BESIDE, session.EXECUTOR
    dc.evaluate()
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        yield
    input_range_check.MIN_COPIED_BESIDE, session.EXECUTOR = before, ours


def outcome(run: Any, top: float, scalar: float, wrap: bool, **state: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    x, v = rng.random((40, 30)), rng.random(30) + 0.5
    x[11, 7] = top
    said = None
    given = (dc.asarray(x), dc.asarray(v)) if wrap else (x, v)
    with np.errstate(**state), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run(*given, scalar)
            dc.evaluate()
        except FloatingPointError as error:
            said = str(error)
    return [np.asarray(a).tobytes() for a in given], said, sorted({str(w.message) for w in caught})


def both(run: Any, *args: Any, **state: Any) -> list[tuple[Any, ...]]:
    """Outcomes with a look, each time a new plan, and with copies."""
    found = []
    for least in (0, 1 << 40):
        input_range_check.MIN_COPIED_BESIDE = least
        session.EXECUTOR = executor.Executor()
        found.append(outcome(run, *args, True, **state))
    return found


def scaled(x: Any, v: Any, c: Any) -> None:
    x *= v
    x += c
    x *= x


def normed(x: Any, v: Any, c: Any) -> None:
    mean, deviation = np.mean(x, axis=0), np.std(x, axis=0)
    deviation[deviation <= 0.1] = 1.0
    x -= mean
    x /= np.sqrt(c) * deviation


def divided(x: Any, v: Any, c: Any) -> None:
    x += v
    x /= np.maximum(v, c)
    x -= v


def by_rows(x: Any, v: Any, c: Any) -> None:
    x += np.outer(np.arange(len(x)), v)  # with the product one loop over rows
    v += c * (v @ x.T) @ x


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("top", TOPS)
@pytest.mark.parametrize("run", [scaled, normed, divided, by_rows])
def test_results_and_warnings_are_numpys(run: Any, top: float, scalar: float) -> None:
    want = outcome(run, top, scalar, False)
    for got in both(run, top, scalar):
        assert got[2] == want[2]
        for mine, theirs in zip(got[0], want[0], strict=True):
            np.testing.assert_allclose(np.frombuffer(mine), np.frombuffer(theirs), rtol=1e-12)


STEPS = [
    "x += v", "x -= c", "x *= v", "x *= x", "x /= c", "x /= v", "v /= c", "x += np.sqrt(np.abs(x))",
    "x -= np.sqrt(v)", "x /= np.maximum(np.abs(x), 0.25)", "x[1:] -= x[:-1] * c",
    "v += np.where(v < 0.75, 0.75, v)", "v *= x.sum(axis=0)", "x /= np.where(v <= 0.5, 1.0, v)",
]  # fmt: skip


@settings(max_examples=16, deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), min_size=2, max_size=5),
    st.sampled_from(TOPS),
    st.sampled_from(SCALARS),
    st.sampled_from(["warn", "raise", "ignore"]),
    st.sampled_from(["over", "invalid", "divide", "under"]),
)
def test_updates_at_random(steps: list[str], top: float, scalar: float, mode: str, kind: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec("def run(x, v, c):\n" + "".join(f"    {step}\n" for step in steps), scope)
    state = dict.fromkeys(("over", "invalid", "divide", "under"), "ignore") | {kind: mode}
    one, other = both(scope["run"], top, scalar, **state)
    assert one == other
    if mode != "raise":
        want = outcome(scope["run"], top, scalar, False, **state)
        assert one[2] == want[2]
        with np.errstate(all="ignore"):
            for mine, theirs in zip(one[0], want[0], strict=True):
                np.testing.assert_allclose(np.frombuffer(mine), np.frombuffer(theirs), rtol=1e-9)


COMPLEX = [
    "z += w", "z *= w", "z *= c", "z -= z * z", "z += np.conj(w) * c", "z *= np.abs(w)",
    "z[1:] += z[:-1]", "w -= z.real[0]", "z += np.where(w.imag > 0.5, w, c)", "z /= w",
]  # fmt: skip


@settings(max_examples=16, deadline=None)
@given(
    st.lists(st.sampled_from(COMPLEX), min_size=1, max_size=4),
    st.sampled_from(TOPS),
    st.sampled_from(SCALARS),
    st.sampled_from(["warn", "raise", "ignore"]),
    st.sampled_from(["over", "invalid", "divide"]),
)
def test_complex_updates_at_random(steps: list[str], top: float, scalar: float, mode: str, kind: str) -> None:
    scope: dict[str, Any] = {"np": np}
    lines = "".join(f"    {step}\n" for step in steps)
    exec(f"def run(x, v, c):\n    z, w = x.view(complex), v.view(complex)\n{lines}", scope)
    state = dict.fromkeys(("over", "invalid", "divide", "under"), "ignore") | {kind: mode}
    one, other = both(scope["run"], top, scalar, **state)
    assert one == other
    if mode != "raise":
        want = outcome(scope["run"], top, scalar, False, **state)
        assert one[2] == want[2]
        with np.errstate(all="ignore"):
            for mine, theirs in zip(one[0], want[0], strict=True):
                np.testing.assert_allclose(np.frombuffer(mine), np.frombuffer(theirs), rtol=1e-9)


def test_nothing_is_kept_of_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    within = input_range_check.within
    monkeypatch.setattr(input_range_check, "within", lambda *args: found.append(within(*args)) or found[-1])
    input_range_check.MIN_COPIED_BESIDE = 0
    for run in (scaled, normed):
        session.EXECUTOR = executor.Executor()
        for top, scalar in ((0.5, 2.0), (np.nan, 2.0), (0.5, np.inf)):
            outcome(run, top, scalar, True)
        assert found == [True, False, False]
        outcome(run, 0.5, 2.0, True, under="warn")  # which what is small raises, too
        assert len(found) == 3
        found.clear()
