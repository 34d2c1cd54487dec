"""Short runs: what one call in C does for a site is what Python does, and nothing that changes is missed."""

import warnings
from typing import Any

import numpy as np
import pytest
from callers import together
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.core.native import BUILT
from dcarray.jit.loops.sites import short_runs, sized_plan
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.sites.site_server import SiteServer

pytestmark = [
    pytest.mark.eager(threads=2),
    pytest.mark.skipif(not BUILT, reason="the C module is not built"),
    pytest.mark.one_process("arrays of several ranks are no plain ones"),
]

STEP = """
    def f(u, v, dt):
        a = u * v - dt
        b = a * a + u
        return np.where(b > 0, b, a) * K
"""


def short(file: str) -> list[Site]:
    """The sites of a file that go the short way."""
    return [s for s in SAMPLER.sites() if s.source.file == file and s.enter != s.ask]


def accelerated(text: str, **names: Any) -> tuple[Any, Any]:
    """A function, and the same accelerated."""
    f = written(text, np=np, **names)
    return f, dc.accelerate(f)


def same(f: Any, g: Any, *args: Any) -> bool:
    """Whether both give the same for arguments; returns whether compiled code gave it."""
    before = settle().runs
    want, got = f(*args), g(*args)
    np.testing.assert_array_equal(got, want)
    assert type(got) is type(want) and got.dtype == want.dtype
    return settle().runs > before


def test_values_and_kinds_that_change() -> None:
    f, g = accelerated(STEP, K=2.0)
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(2, 60))
    assert all([same(f, g, u, v, 0.5) for _ in range(3)])
    assert short(f.__code__.co_filename)
    assert same(f, g, v.copy(), u, 0.25)
    for others in [
        (u[::2], v[::2], 0.5),  # strides
        (u[:7], v[:7], 0.5),
        (u.astype("f4"), v.astype("f4"), 0.5),
        (u, v, 3),
        (u, v, np.float64(0.5)),
        (u, u, 0.5),  # one array twice
        (u, v[0], 0.5),
    ]:
        for _ in range(3):
            same(f, g, *others)
        assert same(f, g, u, v, 0.125)


def test_globals_and_members_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    f, g = accelerated(STEP, K=2.0)
    u, v = np.random.default_rng(4).normal(size=(2, 60))
    for _ in range(3):
        same(f, g, u, v, 0.5)
    for value in (3.0, 5, np.float32(2), np.arange(60.0)):
        f.__globals__["K"] = value
        for _ in range(3):
            same(f, g, u, v, 0.5)
    monkeypatch.setattr(np, "where", lambda c, a, b: a + b)
    same(f, g, u, v, 0.5)
    (whole,) = [s for s in SAMPLER.sites() if s.source.file == f.__code__.co_filename and s.source.returns]
    assert whole.refused  # its other statements are a site of their own


def test_exceptions_warn_as_numpy_does() -> None:
    f, g = accelerated("def f(u):\n    w = 1.0 / u\n    return w * 2.0 + u")
    u, zero = np.arange(1.0, 50.0), np.arange(49.0)
    for _ in range(4):
        same(f, g, u)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = g(zero)
        assert [str(w.message) for w in caught] == ["divide by zero encountered in divide"]
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(got, f(zero))
            same(f, g, zero)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            g(zero)


def test_results_of_all_kinds() -> None:
    f, g = accelerated(
        """
        def f(u, n, x):
            s = (u * x).sum()
            w = u / (s + n)
            t = w
            k = len(u)
            return w, t, s, k, u, np.sqrt(w * w).max()
        """
    )
    u = np.random.default_rng(5).normal(size=40)
    for n in (3, 3, 3, 4, 2**40, 2**70, 3):
        for _ in range(2):
            want, got = f(u, n, 0.5), g(u, n, 0.5)
            assert got[0] is got[1] and got[4] is u and got[3] == 40
            assert list(map(type, got)) == list(map(type, want))
            np.testing.assert_allclose(
                np.r_[got[0], got[2], got[5]], np.r_[want[0], want[2], want[5]], rtol=1e-13
            )


def test_memory_is_new_and_written_in_place() -> None:
    f, g = accelerated("def f(u, v):\n    v[:] = u * 2.0 + v\n    return u - 1.0")
    u, v, w = np.arange(30.0), np.ones(30), np.ones(30)
    made = []
    for _ in range(6):
        f(u, v)
        made.append(g(u, w))
        np.testing.assert_array_equal(v, w)
    assert len({a.__array_interface__["data"][0] for a in made}) == 6 and all(a.base is None for a in made)
    w.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        g(u, w)


def test_ints_that_change_are_symbols() -> None:
    f, g = accelerated(
        "def f(u, n):\n    for i in range(n):\n        a = u[i] * 2.0 + u\n        keep(a * i)", keep=None
    )
    kept: list[Any] = []
    f.__globals__["keep"] = kept.append
    u = np.random.default_rng(6).normal(size=50)
    f(u, 20)
    want = kept[:]
    for _ in range(3):
        kept.clear()
        g(u, 20)
        np.testing.assert_array_equal(np.array(kept), np.array(want))


def test_attributes_of_objects() -> None:
    text = """
    class f:
        def __init__(self, u):
            self.u = u
            self.t = 0.0
        def step(self, dt):
            a = self.u * dt + 1.0
            self.u = a * a - self.u * 0.5
            self.t = self.t + dt
    """
    kind = written(text, np=np)
    other = dc.accelerate(written(text, np=np))
    a, b = kind(np.ones(40)), other(np.ones(40))
    for k in range(8):
        a.step(0.01 * (k % 3))
        b.step(0.01 * (k % 3))
        np.testing.assert_array_equal(a.u, b.u)
        assert a.t == b.t


def test_several_threads() -> None:
    f, g = accelerated(STEP, K=2.0)
    arrays = np.random.default_rng(7).normal(size=(4, 2, 80))
    for _ in range(3):
        same(f, g, *arrays[0], 0.5)
    wrong: list[int] = []

    def work(k: int) -> None:
        with dc.options(jit="eager", threads=2):
            want = f(*arrays[k], 0.5 + k)
            for _ in range(300):
                if not np.array_equal(g(*arrays[k], 0.5 + k), want):
                    wrong.append(k)

    together(4, work)
    assert not wrong


def test_kinds_of_values_that_come_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    f, g = accelerated(STEP, K=2.0)
    rng = np.random.default_rng(8)
    kinds = [rng.normal(size=(2, 60)), rng.normal(size=(2, 5, 9)), rng.normal(size=(2, 40)).astype("f4")]
    for u, v in kinds * 6:
        same(f, g, u, v, 0.5)
    asked: list[int] = []
    enter = SiteServer.enter

    def counted(self: SiteServer, *given: Any) -> None:
        asked.append(1)
        enter(self, *given)

    monkeypatch.setattr(SiteServer, "enter", counted)
    monkeypatch.setattr(short_runs, "_LASTS", 1000.0)  # else once in 50 ms for each kind
    for u, v in kinds * 40:
        same(f, g, u, v, 0.5)
    assert len(asked) < 20


@pytest.mark.parametrize("in_c", [True, False])
def test_a_run_within_a_run(monkeypatch: pytest.MonkeyPatch, in_c: bool) -> None:
    """As a signal handler or a destructor may begin one: here, while the first one computes ``0.5 * dt``."""
    again: list[Any] = []
    fetcher = sized_plan.fetcher

    def within(text: str, place: dict[str, int]) -> Any:
        found = fetcher(text, place)

        def fetch(values: Any) -> Any:
            while again:
                again.pop()()
            return found(values)

        return fetch if callable(found) else found

    monkeypatch.setattr(sized_plan, "fetcher", within)
    if not in_c:
        monkeypatch.setattr(short_runs, "BUILT", False)
    f, g = accelerated("def f(u, dt):\n    a = u * (0.5 * dt) - 1.0\n    return a * a + u")
    for n in (60, 50, 40, 30, 60):
        for _ in range(2):
            same(f, g, np.arange(float(n)), 0.25)
    again.append(lambda: same(f, g, np.arange(33.0), 0.5))
    same(f, g, np.arange(70.0), 0.25)
    assert not again


def test_after_a_trial_that_fails_the_program_asks_its_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may call the short run since an earlier time: it would never ask again."""
    after: list[Any] = []

    class Failing:
        otherwise = staticmethod(after.append)

        def __call__(self, *values: Any) -> tuple[()]:
            return ()

    class Asked:
        def ask(self) -> None:
            pass

    site, source, run = Asked(), type("Source", (), {"others": ()}), Failing()
    made: Any = short_runs.ShortRuns(site, source, None)  # type: ignore[arg-type]
    monkeypatch.setattr(made, "_runs_of", lambda *args: (run, run))
    for name in ("_settle", "_arm"):
        monkeypatch.setattr(made, name, lambda *args: None)
    made.begin_trial(type("Outcome", (), {"take": None}), None, (), None, [])
    assert after[-1] == site.ask and not made.in_trial
