"""Memory, threads, forks, interrupts and failed allocations leave the process usable and arrays right."""

import gc
import os
import signal
import subprocess
import textwrap
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from fresh import python
from resident import resident

import dcarray as dc
from dcarray.execution import executor
from dcarray.recording.session import session

RECORD = {"eager_below": 0, "jit": "eager"}


def rss() -> float:
    return resident() / 1e6


@pytest.mark.parametrize("call", [
    lambda x: x.copy(),
    lambda x: x + x,
    lambda x: x.sum(),
    lambda x: x.T @ x,
    lambda x: np.where(x, x, x),
])  # fmt: skip
def test_what_numpy_does_at_once_leaves_no_cycles(call):
    class Number(float):
        pass

    plain, number = np.empty((5, 2), object), Number(3)
    plain.fill(number)
    x, known = dc.asarray(plain), weakref.ref(number)
    del plain, number
    gc.collect()
    gc.disable()
    try:
        call(x)
        del x
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("read", [False, True])
def test_many_small_updates_keep_memory_bounded(read):
    with dc.options(eager_below=0, jit="off"):
        x = dc.asarray(np.zeros(16))
        for _ in range(300):
            x += 1
        gc.collect()
        before = rss()
        for k in range(20_000):
            x += 1
            y = x * 2
            if read and k % 100 == 0:
                float(y[0])
        assert float(x[0]) == 20_300
    assert rss() - before < 40
    assert len(session().rec.log) < 1000


def test_large_dead_inputs_are_let_go():
    with dc.options(**RECORD):
        total = dc.asarray(np.zeros(1_000_000))
        before = rss()
        for k in range(200):
            total += dc.asarray(np.full(1_000_000, float(k)))
        high = rss()
        assert float(total[0]) == sum(range(200))
    assert high - before < 1200  # 200 inputs of 8 MB each were recorded


def test_what_nobody_can_see_is_not_run():
    with dc.options(**RECORD):
        dc.evaluate()
        dc.report(reset=True)
        x = dc.asarray(np.zeros(16))
        for _ in range(10):
            x * 2 + 1
        dc.evaluate()
        assert dc.report().kernels == 0


def test_threads_record_apart_and_share_arrays():
    shared = dc.asarray(np.arange(100.0))
    with dc.options(**RECORD):
        pending = shared * 2
    wrong = []

    def work(k):
        with dc.options(**RECORD):
            for _ in range(50):
                y = (pending + k) * 2
                if not np.array_equal(np.asarray(y), (np.arange(100.0) * 2 + k) * 2):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    with dc.options(**RECORD):
        for _ in range(50):
            np.asarray(pending - 1)
    for t in threads:
        t.join()
    assert not wrong


def test_an_array_passes_between_threads_mid_way():
    with dc.options(**RECORD):
        x = dc.asarray(np.zeros(64))
        y = x + 1

        def change():
            with dc.options(**RECORD):
                x[...] = 7  # must not be seen by y, which was recorded before

        t = threading.Thread(target=change)
        t.start()
        t.join()
        assert np.all(np.asarray(y) == 1) and np.all(np.asarray(x) == 7)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return python("-c", textwrap.dedent(code), status=None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork():
    done = run("""
        import os, numpy as np, dcarray as dc
        n = 300_000
        with dc.options(jit="eager"):
            x = dc.asarray(np.ones(n))
            assert float((x * 2).sum()) == 2 * n
            y = x + 1
            pid = os.fork()
            ok = float((y * 3).sum()) == 6 * n and float((x + y + y).sum()) == 5 * n
            if pid == 0:
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and ok
        with dc.options(jit="background", eager_below=0):
            z = dc.asarray(np.ones(10))
            for k in range(20):
                z = z + 1
                np.asarray(z)
            pid = os.fork()
            for k in range(20):
                z = z + 1
                np.asarray(z)
            assert z[0] == 41
            if pid == 0:
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print("fine")
    """)
    assert done.stdout.strip() == "fine", done.stderr


@pytest.fixture
def interruptible():
    """Python's own answer to an interrupt, which who starts the tests may have switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt_in_the_middle_of_a_region(interruptible):
    with dc.options(**RECORD):
        x = dc.asarray(np.zeros(1000))
        for _ in range(50):
            x += 1
        plain = executor.Executor.run

        def interrupted(self, rec, options):
            signal.raise_signal(signal.SIGINT)
            return plain(self, rec, options)

        executor.Executor.run = interrupted
        try:
            with pytest.raises(KeyboardInterrupt):
                dc.evaluate(x)
        finally:
            executor.Executor.run = plain
        assert np.all(np.asarray(x) == 50)
        assert np.all(np.asarray(x * 2) == 100)


def test_a_failed_allocation_changes_nothing():
    with dc.options(**RECORD):
        x = dc.asarray(np.arange(1000.0))
        y = x * 2
        x += 1
        huge: Any = None
        with pytest.raises(MemoryError):
            huge = dc.asarray(np.broadcast_to(np.ones(1), (1 << 30, 1 << 20))) + 1
            dc.evaluate(huge)
        for left in (True, False):
            np.testing.assert_array_equal(np.asarray(y), np.arange(1000.0) * 2)
            np.testing.assert_array_equal(np.asarray(x), np.arange(1000.0) + 1)
            if left:
                del huge
                gc.collect()  # the error's frames held it
                dc.evaluate()


def test_background_compilation_takes_over():
    with dc.options(eager_below=0, jit="background"):
        x = dc.asarray(np.arange(50.0))
        for _ in range(2):
            dc.evaluate(x * 3 + 1)
        from dcarray.execution.executor import EXECUTOR

        EXECUTOR.background.wait()
        dc.report(reset=True)
        np.testing.assert_array_equal(np.asarray(x * 3 + 1), np.arange(50.0) * 3 + 1)
        assert dc.report().kernels == 1 and dc.report().interpreted == 0


def test_leaving_while_compiling_is_clean():
    done = run("""
        import numpy as np, dcarray as dc
        with dc.options(eager_below=0, jit="background"):
            x = dc.asarray(np.arange(50.0))
            for k in range(30):
                np.asarray(np.sin(x * k) + x.reshape(5, 10).sum(axis=k % 2).sum() + k)
        print("fine")
    """)
    assert done.returncode == 0 and done.stdout.strip() == "fine", done.stderr


def test_eager_compilation_waits_for_what_was_asked_before():
    with dc.options(eager_below=0, jit="background"):
        x = dc.asarray(np.arange(51.0))
        for _ in range(2):
            dc.evaluate(x * 3 - x / 7)
    with dc.options(eager_below=0, jit="eager"):
        dc.report(reset=True)
        dc.evaluate(x * 3 - x / 7)
        assert dc.report().kernels == 1
