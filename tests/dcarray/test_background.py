"""When plans are made beside the program."""

import ctypes
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.execution import executor
from dcarray.ir.ops import CALLS
from dcarray.plans import background
from dcarray.plans.background import PATIENCE, Background
from dcarray.recording import session
from dcarray.tiering.blas_sharing import LEAST_UNCACHED

LONG = 0.5  # seconds


def test_jobs_wait_until_they_are_worth_their_while() -> None:
    done: list[int] = []
    beside = Background()
    beside.submit_later(lambda: done.append(1))
    beside.add_unplanned_work(PATIENCE / 2)
    beside.submit(lambda: done.append(0))
    assert beside._held
    beside.add_unplanned_work(PATIENCE)
    beside.submit_later(lambda: done.append(2))
    beside.wait()
    assert done == [0, 1, 2] and not beside._held


@pytest.mark.skipif(sys.platform != "linux", reason="the C library's usleep")
def test_a_thread_that_reads_files_goes_on_while_others_hold_the_interpreter() -> None:
    """Who waits for a disk has the interpreter again when the call has ended that began meanwhile."""
    done: list[int] = []
    hold = ctypes.PyDLL(None).usleep  # keeps the interpreter's lock
    beside = Background()
    beside.submit(lambda: [time.sleep(1e-4) or done.append(k) for k in range(100)])
    for _ in range(50):
        hold(5000)
        beside.add_unplanned_work(0.2)
    assert len(done) == 100  # one for each time that it is given the interpreter would be 50
    beside.wait()


def test_who_waits_has_everything_done() -> None:
    done: list[int] = []
    beside = Background()
    beside.submit_later(lambda: done.append(1))
    beside.wait()
    assert done == [1]


def test_a_job_is_pending_from_when_it_is_asked_for_until_it_is_done() -> None:
    begun, end = threading.Event(), threading.Event()
    beside = Background()
    assert not beside.pending
    beside.submit_later(lambda: (begun.set(), end.wait(), None)[-1])
    assert beside.pending
    beside.add_unplanned_work(PATIENCE)
    begun.wait()
    assert beside.pending and not beside._held
    end.set()
    beside.wait()
    while beside.pending:  # until the thread has looked up from what told us
        time.sleep(0.001)


@pytest.mark.parametrize(("columns", "counts"), [(1, True), (3, True), (30, False)])
def test_a_pass_that_plans_would_share_is_worth_their_while(
    columns: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products with vectors or few columns read a matrix once; others are the library's with a plan, too."""
    rows, library = 20, CALLS["blas.matmul"]

    def reference(outs: Any, ins: Any, attrs: Any) -> None:
        time.sleep(LONG)  # so that it is what takes time, whatever else the machine does
        library.reference(outs, ins, attrs)

    monkeypatch.setitem(CALLS, "blas.matmul", replace(library, reference=reference))
    with dc.options(jit="background", cache_dir=None, eager_below=1, threads=1):
        a = dc.asarray(np.ones((rows, LEAST_UNCACHED // rows + columns)))
        x = dc.asarray(np.ones(a.shape[1] if columns == 1 else (a.shape[1], columns)))
        worked = session.EXECUTOR.background.seconds
        y = (a @ x).T @ a
        dc.evaluate(y)
        assert (session.EXECUTOR.background.seconds - worked > LONG) == counts
        assert np.asarray(y).ravel()[0] == rows * a.shape[1]


def test_unused_memory_is_given_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    came = threading.Event()

    def trim(pad: int) -> int:
        given.append(pad)
        if len(given) > 1:
            came.set()
        return 0

    monkeypatch.setattr(background, "_trim", lambda: trim)
    thread = background.Background()
    for _ in range(50):
        thread.submit(int)
    thread.wait()
    assert len(given) < 50
    assert came.wait(60)  # once there has been nothing to do for some time
    thread.submit(int)
    thread.wait()
    thread._stop()


def test_what_only_a_library_works_on_starts_no_planner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However large it is; what is done to as many elements besides does so before it has run."""
    told: list[float] = []
    monkeypatch.setattr(executor, "NANOSECOND", 1e-6)
    monkeypatch.setattr(Background, "add_unplanned_work", lambda self, seconds: told.append(seconds))
    a, x = dc.asarray(np.ones((1031, 1049))), dc.asarray(np.ones(1049))
    y = dc.asarray(np.ones(1031))
    with dc.options(eager_below=0, jit="background", cache_dir=str(tmp_path)):  # no plan is there yet
        y += a @ x
        dc.evaluate(y)
        assert PATIENCE not in told
        b = np.arctan2(a * 3.0, a - 0.5) * a
        dc.evaluate(b)
        assert PATIENCE in told
    np.testing.assert_array_equal(np.asarray(y), np.full(1031, 1050.0))
