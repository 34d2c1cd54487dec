"""Loop sites with plans made in the background, or found in the cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import backoff, loop_sites
from dcarray.plans import client, provider
from dcarray.plans.background import Background
from dcarray.recording import session
from dcarray.tiering import state

LONG = """
def f(x, n):
    for i in range(1, n):
        x[i] = 0.5 * x[i - 1] + x[i]
    return x
"""


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Any:
    background = Background(lambda: None)
    monkeypatch.setattr(session.EXECUTOR, "background", background)
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False):
        dc.report(reset=True)
        yield
    background._stop()  # what has begun must not meet another one


def called(f: Any, n: int = 30_000) -> None:
    x, y = np.arange(float(n)), np.arange(float(n))
    np.testing.assert_array_equal(dc.accelerate(f)(x, n), f(y, n))


def until_served(f: Any) -> int:
    """Calls until a loop is served."""
    for k in range(20):
        called(f)
        session.EXECUTOR.background.wait()
        if dc.report().loops:
            return k
    raise AssertionError("it was never served")


def test_repeated_loops_are_planned() -> None:
    f = written(LONG)
    assert 1 <= until_served(f) <= 4
    assert client.CLIENT._process is not None or not client.CLIENT._usable


def test_nothing_is_planned_before_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(loop_sites.provider, "obtain", lambda *args: asked.append(args))
    background = session.EXECUTOR.background
    monkeypatch.setattr(background, "submit", lambda job, *_: job())
    monkeypatch.setattr(loop_sites, "LONG", 0.0)
    f = written(LONG)
    called(f, 3000)
    assert not asked and len(background._held) == 1
    background.add_unplanned_work(0.1)
    assert len(asked) == 1


def test_short_loops_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_sites.provider, "obtain", None)
    monkeypatch.setattr(loop_sites, "SHORT", 3600.0)
    f = written(LONG)
    for _ in range(5):
        called(f, 20)
        session.EXECUTOR.background.wait()
    assert dc.report().loops == 0 and not session.EXECUTOR.background._held


def test_reasons_come_from_the_planner_process() -> None:
    f = written("""
        def f(x, n):
            for i in range(1, n):
                x[i] = x[i - 1] + round(x[i] * 100) % 7

                x[int(x[i] * 0)] = 1.0
            return x
    """)
    for _ in range(4):
        called(f)
        session.EXECUTOR.background.wait()
    (one,) = [row for row in dc.report().fallbacks if row.kind == "loop"]
    assert one.count == 1 and one.where.startswith("<written") and one.where[-1] in "46"
    assert dc.report().loops == 0


def test_failed_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> Any:
        raise RuntimeError("for this test")

    monkeypatch.setattr(provider, "obtain", fails)
    f = written(LONG)
    for _ in range(4):
        called(f)
        session.EXECUTOR.background.wait()
    (one,) = [row for row in dc.report().fallbacks if row.kind == "loop"]
    assert one.function == "RuntimeError: for this test"
    assert dc.report().loops == 0


def test_planning_is_retried_after_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, times = provider.obtain, []

    def fails(*args: Any) -> Any:
        times.append(time.perf_counter())
        if len(times) == 1:
            raise MemoryError
        return plain(*args)

    monkeypatch.setattr(provider, "obtain", fails)
    until_served(written(LONG))
    assert len(times) == 2


def test_inner_loops_of_a_long_running_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(x, n):
            for t in range(n):
                for i in range(1, 30000):
                    x[i] = 0.5 * x[i - 1] + x[i]
                wait()
            return x
        def wait():
            return 0
    """)
    g = dc.accelerate(f)
    waited = f.__globals__["wait"].__code__
    monkeypatch.setattr(loop_sites, "INNER_DELAY", 0.0)
    monkeypatch.setattr(
        loop_sites, "start_new_thread", lambda function, args: function(*args)
    )  # it is late already
    monkeypatch.setattr(loop_sites, "LONG", 0.0)
    with dc.options(jit="background"):
        x, y = np.arange(30000.0), np.arange(30000.0)
        background = session.EXECUTOR.background
        monkeypatch.setattr(
            background, "submit_later", lambda job, *_: job.func.__self__.loop.line == 4 and planned(job)
        )
        g(x, 6)
    assert f.__globals__["wait"].__code__ is waited
    np.testing.assert_array_equal(x, f(y, 6))
    assert dc.report().loops == 5


def planned(job: Any) -> None:
    """The plan is there at once."""
    entry, options = job.args
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.EXECUTOR.background, "waiting", lambda: pytest.MonkeyPatch.context())
        job.func(entry, options)


CHILD = """
    import sys, numpy as np
    sys.path.insert(0, sys.argv[2])
    import dcarray as dc, loops_of_a_file
    from dcarray.plans import server_handle
    from dcarray.execution.executor import EXECUTOR
    server_handle.STARVED_AFTER = 1e9  # else a second planner would find kernels of the first
    f = dc.accelerate(loops_of_a_file.f)
    with dc.options(jit="background", cache_dir=sys.argv[1], debug=False):
        for k in range(12):
            f(np.arange(30000.0), 30000)
            EXECUTOR.background.wait()
            if dc.report().loops:
                break
    r = dc.report()
    heavy = not {"llvmlite.binding", "_hashlib"}.isdisjoint(sys.modules)
    print(k, r.loops, r.compiles, r.disk_hits > 0, heavy)
"""


def test_the_next_process_finds_the_plan(tmp_path: Path) -> None:
    (tmp_path / "loops_of_a_file.py").write_text(LONG)
    said = []
    for _ in range(2):
        words = [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path / "cache"), str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ})
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    first, second = said
    assert first[1:] == ["1", first[2], "False", "False"] and int(first[2]) > 0
    assert second[1:] == ["1", "0", "True", "False"] and int(second[0]) <= int(first[0])


def test_short_loops_back_off(monkeypatch):
    for timer in [*backoff._timer]:  # of what has run before
        timer.join()
    wakes = []
    monkeypatch.setattr(
        backoff, "Timer", lambda delay, wake: wakes.append(wake) or threading.Timer(3600, wake)
    )
    monkeypatch.setattr(state, "VARIANT", state.VARIANT._replace(observations=sys.maxsize))
    asked = []
    enter = loop_sites.LoopSite.enter
    monkeypatch.setattr(
        loop_sites.LoopSite, "enter", lambda self, *values: asked.append(self) or enter(self, *values)
    )
    f = dc.accelerate(written("def f(x, n):\n    for i in range(n):\n        x[i] += 1\n    return x\n"))
    x = np.zeros(8)
    for _ in range(2 * state.LOOP_SITE.observations):
        f(x, 3)
    assert len(asked) == state.LOOP_SITE.observations + 1
    (wake,) = wakes
    backoff._timer[0].cancel()
    wake()
    f(x, 3)
    assert len(asked) == state.LOOP_SITE.observations + 2
    assert x[:4].tolist() == [2 * state.LOOP_SITE.observations + 1] * 3 + [0]
