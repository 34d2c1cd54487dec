"""Sites with plans made in the background, or found in the cache folder."""

import re
import textwrap
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh import python
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import functions, site_plans
from dcarray.jit.loops.sites.functions import put_sites, remove_sites
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.sites.site_server import SiteServer
from dcarray.jit.loops.sites.site_source import SiteSource
from dcarray.plans import client, disk_store, provider
from dcarray.plans.background import Background
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

LONG = """
def f(x, n):
    for i in range(1, n):
        x[i] = 0.5 * x[i - 1] + x[i]
    return x
"""


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    background = Background()
    monkeypatch.setattr(site_plans, "BACKGROUND", background)
    monkeypatch.setattr(SAMPLER, "_look", lambda *_: None)  # sites are heated by hand
    with dc.options(jit="background", cache_dir=None, debug=False):
        dc.report(reset=True)
        yield
    background._stop()  # what has begun must not meet another one


@pytest.fixture
def at_once(beside: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are there as soon as they are asked for."""
    monkeypatch.setattr(site_plans.BACKGROUND, "submit", lambda job, *_: job())
    monkeypatch.setattr(site_plans.BACKGROUND, "waiting", nullcontext)


def heated(f: Any) -> Site:
    """The outermost site of a function, hot."""
    site = put_sites(f)[0]
    site.heat()
    return site


def called(f: Any, n: int = 30_000) -> None:
    want = [0.0]
    for k in range(1, n):
        want.append(0.5 * want[-1] + k)
    np.testing.assert_array_equal(f(np.arange(float(n)), n), want)


def waited() -> None:
    site_plans.BACKGROUND.wait()


def reasons() -> list[Any]:
    return [row for row in dc.report().fallbacks if row.kind == "loop"]


def test_cold_sites_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "_guarded", None)
    f = written(LONG)
    put_sites(f)
    for _ in range(3):
        called(f, 300)
    assert dc.report().loops == 0


def test_hot_sites_have_a_plan_made_after_a_run() -> None:
    f = written(LONG)
    site = heated(f)
    called(f)
    assert dc.report().loops == 0
    waited()
    assert site.enabled and site.resuming
    called(f)
    assert dc.report().loops == 1
    assert client.CLIENT._process is not None or not client.CLIENT._usable


def test_sites_that_wait_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []
    monkeypatch.setattr(site_plans.BACKGROUND, "submit", lambda job, *_: jobs.append(job))
    monkeypatch.setattr(site_plans.BACKGROUND, "waiting", nullcontext)
    monkeypatch.setattr(admission.Measured, "is_known", lambda self: True)
    monkeypatch.setattr(admission.Measured, "may_pay", lambda self: True)
    f = written(LONG)
    site = heated(f)
    called(f, 3000)
    called(f, 3000)
    assert len(jobs) == 1 and not site.enabled and dc.report().waiting == 1
    jobs[0]()
    called(f, 3000)
    assert site.enabled and dc.report().loops == 1


def test_short_statements_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "obtain", None)
    monkeypatch.setattr(admission, "_LEAST_PYTHON", 3600.0)
    f = written(LONG)
    site = heated(f)
    for _ in range(10):
        called(f, 20)
    waited()
    assert site.refused and not site.enabled and dc.report().loops == 0
    (one,) = reasons()
    assert "less time than calling" in one.function


def test_plans_that_are_not_faster_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_FASTER", 0.0)
    f = written(LONG)
    site = heated(f)
    monkeypatch.setattr(admission, "_CLEAR", 0.0)
    for _ in range(2 * admission._TRIALS + 6):
        called(f)
        waited()
    assert dc.report().loops in (admission._TRIALS_OF_LONG, admission._TRIALS) and site.refused
    (one,) = dc.report().fallbacks
    assert one.kind == "slower" and one.count == 1 and one.where.endswith(":3")
    assert one.function == site.refused
    compiled, python = times_in(one.function)
    assert 0 < compiled < python  # were it not for the constant
    title, line = str(dc.report()).splitlines()[-2:]
    assert "compiled code was measured and not faster" in title and one.function in line


def test_the_rest_of_a_loop_that_was_not_faster_is_given_up(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    monkeypatch.setattr(admission, "_FASTER", 0.0)
    f = written("def f(x, n):\n    for t in range(n):\n        x[0] = x[0] + t\n    return x")
    (loop,) = [site for site in put_sites(f) if site.source.is_loop]
    loop.resuming = True
    assert f(np.zeros(3), 2000)[0] == 1999 * 1000
    (one,) = dc.report().fallbacks
    assert one.kind == "slower" and one.function == loop.refused and all(times_in(one.function))


def test_one_time_of_the_rest_of_a_loop_does_not_decide_about_the_whole_loop(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest took as long as in Python, which is near enough for a busy machine to have been the cause."""
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    monkeypatch.setattr(admission.Pace, "is_faster", lambda self, took, *_: next(faster))
    f = written("def f(x, n):\n    for t in range(n):\n        x[0] = x[0] + t\n    return x")
    (loop,) = [site for site in put_sites(f) if site.source.is_loop]
    loop.resuming, faster = True, iter([False, True])
    assert f(np.zeros(3), 2000)[0] == 1999 * 1000
    (one,) = dc.report().fallbacks
    assert one.kind == "slower" and not loop.refused and not loop.resumable
    dc.report(reset=True)
    loop.heat()
    for _ in range(6):
        assert f(np.zeros(3), 2000)[0] == 1999 * 1000
    assert dc.report().loops and not loop.refused


def times_in(reason: str) -> tuple[float, float]:
    """The times of compiled code and of Python in a reason."""
    found = re.fullmatch(
        r"compiled code is not faster than NumPy: ([\d,.]+) us compiled, ([\d,.]+) us as it is written",
        reason,
    )
    assert found is not None, reason
    compiled, python = (float(text.replace(",", "")) for text in found.groups())
    return compiled, python


def test_reasons_come_from_the_planner_process() -> None:
    f = written("""
        def f(x, n):
            for i in range(1, n):
                x[i] = 0.5 * x[i - 1] + x[i]

                x[0] = x.strides[0] * 0.0
            return x
    """)
    site = heated(f)
    for _ in range(4):
        called(f)
        waited()
    assert site.refused
    (one,) = reasons()
    assert one.count == 1 and one.where.startswith("<written") and one.where[-1] == "6"
    assert dc.report().loops == 0


def test_inner_sites_of_a_refused_one_are_not_heated_by_it() -> None:
    """In the background the sampler finds them, if they are hot."""
    f = written("""
        def f(x, n):
            for t in range(2):
                x[0] = open
                for i in range(1, n):
                    x[i] = 0.5 * x[i - 1] + x[i]
            return x
    """)
    outer, *inner = put_sites(f)
    outer.refuse("for this test")
    assert inner and not any(site.enabled for site in inner)


def test_failed_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> Any:
        raise RuntimeError("for this test")

    monkeypatch.setattr(provider, "obtain", fails)
    f = written(LONG)
    heated(f)
    for _ in range(4):
        called(f)
        waited()
    (one,) = reasons()
    assert one.function == "RuntimeError: for this test"
    assert dc.report().loops == 0


@pytest.mark.parametrize("error", [MemoryError, SystemError("AST constructor recursion depth mismatch")])
def test_planning_is_retried_where_others_were_in_the_way(
    error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, times = provider.obtain, []

    def fails(*args: Any) -> Any:
        times.append(args)
        if len(times) == 1:
            raise error
        return plain(*args)

    monkeypatch.setattr(provider, "obtain", fails)
    f = written(LONG)
    site = heated(f)
    for _ in range(5):
        called(f)
        waited()
    assert len([request for request, *_ in times if not request.loop.resumed]) == 2
    assert site.enabled and dc.report().loops >= 1


def test_the_rest_of_a_loop_is_compiled(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(x, n):
            k = 1
            for t in range(2, n):
                x[:] = x * 0.5 + t
                k = k + t
            while k > 100:
                k = k - 7
                x[0] = x[0] + k
            return x, t, k
    """)
    want = f(np.arange(300.0), 100)
    loops = [site for site in put_sites(f) if site.source.is_loop]
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)  # plans are made between two iterations
    monkeypatch.setattr(admission, "_SOON", 0.0)
    asked: list[Any] = []
    resume = SiteServer.resume

    def third(server: SiteServer, outcome: Any, start: Any, *given: Any) -> None:
        asked.append((server.site, start))
        if len(asked) % 4 == 3 or len(asked) > 6:
            resume(server, outcome, start, *given)

    monkeypatch.setattr(SiteServer, "resume", third)
    for site in loops:
        site.resuming = True
    got = f(np.arange(300.0), 100)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1:] == want[1:] and [type(v) for v in got] == [type(v) for v in want]
    assert dc.report().loops == 2, reasons()
    starts = [start for site, start in asked if site is loops[0]]
    assert starts[:3] == [2, 3, 4] and all(start is None for site, start in asked if site is loops[1])
    assert not any(site.done() for site in loops)


CHILD = """
    import sys, numpy as np
    sys.path.insert(0, sys.argv[2])
    import dcarray as dc, loops_of_a_file
    from dcarray.jit.loops.sites.functions import put_sites
    from dcarray.plans import server_handle
    from dcarray.execution.executor import EXECUTOR
    from dcarray.jit.loops.sites.sampler import SAMPLER
    SAMPLER._look = lambda *_: None  # the site is heated by hand, and no other one
    server_handle.STARVED_AFTER = 1e9  # else a second planner would find kernels of the first
    f = loops_of_a_file.f
    site = put_sites(f)[0]
    site.resumable = False  # one plan alone
    site.heat()
    with dc.options(jit="background", cache_dir=sys.argv[1], debug=False):
        for k in range(12):
            f(np.arange(30000.0), 30000)
            EXECUTOR.background.wait()
            if dc.report().loops:
                break
    r = dc.report()
    print(k, r.loops, r.compiles, r.disk_hits > 0, not {"sympy", "_hashlib"}.isdisjoint(sys.modules))
"""


def test_the_next_process_finds_the_plan(tmp_path: Path) -> None:
    (tmp_path / "loops_of_a_file.py").write_text(LONG)
    said = []
    for _ in range(2):
        done = python("-c", textwrap.dedent(CHILD), tmp_path / "cache", tmp_path)
        said.append(done.stdout.split())
    first, second = said
    assert first[1:] == ["1", first[2], "False", "False"] and int(first[2]) > 0
    assert second[1:] == ["1", "0", "True", "False"] and int(second[0]) <= int(first[0])


def test_callbacks_get_each_request() -> None:
    seen: list[Any] = []
    f = written(LONG)
    site_plans.watchers.append(seen.append)
    try:
        called(dc.accelerate(f), 300)
    finally:
        site_plans.watchers.clear()
    assert len(seen) == 1 and seen[0].loop.line == 3


def test_a_loop_that_cannot_be_resumed_may_have_a_plan(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it would end is not known with a step."""
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    f = written("""
        def f(x, n):
            for t in range(2, n, 3):
                x[:] = x * 0.5 + t
            return x, t
    """)
    want = f(np.arange(300.0), 100)
    site = heated(f)
    site.enabled = False
    f(np.arange(300.0), 100)
    assert not (site.resumable or site.resuming or site.refused)
    for _ in range(admission._SURE + 2):
        site.heat()
        got = f(np.arange(300.0), 100)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1] == want[1] and dc.report().loops and not site.resuming


def test_a_value_of_which_no_plan_is_made_does_not_refuse_a_site(at_once: None) -> None:
    f = written(LONG)
    site = heated(f)
    assert f([1.0, "a"][:1], 1) == [1.0]
    f(np.zeros(30, object), 30)
    for _ in range(admission._SURE + 2):
        called(f, 3000)
    assert not site.refused and dc.report().loops and len(reasons()) == 1


def test_values_of_which_no_plan_is_made_refuse_a_site_in_the_end() -> None:
    f = written(LONG)
    site = put_sites(f)[0]
    site.enabled, site.resumable = True, False  # the sampler may see it running
    for _ in range(admission.STRANGE):
        assert not site.refused
        f(np.zeros(30, object), 30)
    assert site.refused and not site.enabled and len(reasons()) == 1


def test_no_plan_is_asked_for_the_rest_of_a_loop_that_ends_soon(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = written("def f(x, n):\n    for t in range(n):\n        x[0] = x[0] + t\n    return x")
    (loop,) = [site for site in put_sites(f) if site.source.is_loop]
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    for soon in (1e9, 0.0):
        monkeypatch.setattr(admission, "_SOON", soon)
        loop.resuming = True
        assert f(np.zeros(3), 50)[0] == 49 * 25
        assert bool(loop.server.requests()) == (not soon)


def test_what_was_seen_of_late_is_planned_first() -> None:
    early, late = (Site(SiteSource("", "", 1, 1, (), (), ()), {}, None, False) for _ in range(2))
    early.count(10.0, 0.2)
    late.count(11.0, 0.1)
    assert early.seconds > late.seconds and early.recency(11.0) < late.recency(11.0)
    assert admission.priority(1.0, 100) > admission.priority(1.0, 4000)


def test_a_slow_loop_is_asked_again_when_its_statements_have_no_plan(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as they may have one the loop is left alone: which array ``x`` is afterwards, only the loop
    need not know."""
    f = written("""
        def f(x, n):
            out = np.zeros(n)
            for t in range(n):
                new = x * 0.5 + t
                if new[0] > 40.0:
                    x = new
                out[t] = x[1]
            return out
    """, np=np)  # fmt: skip
    want = f(np.ones(50), 200)
    loop, run = put_sites(f)[:2]
    assert loop.source.is_loop and run.outer is loop
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 0.0)
    monkeypatch.setattr(admission, "_SOON", 1e-9)
    loop.resuming = True
    np.testing.assert_array_equal(f(np.ones(50), 200), want)
    assert not loop.resuming and loop.leaves_to_inner and not loop.server.requests()
    run.heat()
    loop.enabled = True
    np.testing.assert_array_equal(f(np.ones(50), 200), want)
    assert run.doubtful and not loop.leaves_to_inner
    assert loop.server.requests()


def test_the_rest_of_a_loop_is_known_where_the_whole_is_not(
    at_once: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that ran once, in an earlier run of the program, has a plan for its rest alone."""
    f = written("def f(x, n):\n    for t in range(n):\n        x[0] = x[0] + t\n    return x")
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    asked: list[Any] = []
    real = site_plans.SitePlans.request

    def run(known: bool) -> int:
        functions._known.clear()
        (loop,) = [site for site in put_sites(f) if site.source.is_loop]
        loop.known = known
        before = dc.report().loops

        def request(plans: Any, entry: Any) -> None:
            asked.append(entry.request)
            if entry.request.loop.resumed:
                real(plans, entry)  # that of the whole has not come before the loop ends

        monkeypatch.setattr(site_plans.SitePlans, "request", request)
        loop.enabled, loop.resuming = known, True
        assert f(np.zeros(3), 2000)[0] == 1999 * 1000
        remove_sites(f)
        return dc.report().loops - before

    with dc.options(cache_dir=str(tmp_path)):
        assert run(False) == 1 and [request.loop.resumed for request in asked] == [True]
        assert disk_store.load_bytes(asked[0]) is not None
        asked.clear()
        assert run(True) == 1, reasons()
        assert not any(request.loop.resumed for request in asked)


def test_trials_with_values_of_two_keys(at_once: None) -> None:
    """A plan's short run is made for its own values, not for those of another key that come meanwhile; one
    that declines does not ask itself."""
    f = written("def f(x, s):\n    y = x * s + x\n    return y * 2 - s")
    site = heated(f)
    x, y = np.arange(40.0), np.arange(0.0, 20.0, 0.5)
    for k in range(400):
        n = (40, 7, 33, 12)[k // 5 % 4]
        s = (0.75, y[:n], np.float64(2.5), 3)[k % 4 if k > 100 else k // 13 % 2]
        np.testing.assert_array_equal(f(x[:n], s), (x[:n] * s + x[:n]) * 2 - s)
        site.enabled = not site.refused
    assert len(site.server.versions[0].plans.entries) > 1


def test_a_loop_whose_rest_compiled_code_has_done_tells_nothing_of_python(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is none of Python's; the plan of the whole loop is asked for."""
    f = written("def f(x, n):\n    for t in range(n):\n        x[0] = x[0] + t\n    return x")
    (loop,) = [site for site in put_sites(f) if site.source.is_loop]
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    monkeypatch.setattr(admission, "_COMES_BACK", 1)
    loop.enabled = loop.resuming = True
    assert f(np.zeros(3), 2000)[0] == 1999 * 1000 and dc.report().loops == 1, reasons()
    (version,) = loop.server.versions
    (whole,) = [entry for entry in version.plans.entries.values() if not entry.request.loop.resumed]
    assert not whole.gain.runs and whole.state is not PlanState.UNASKED
