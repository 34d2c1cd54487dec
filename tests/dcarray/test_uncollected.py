"""Work of our own collects no garbage of the program's: finalizers run where the program runs."""

import gc
import os
import signal
import threading
import time
from _thread import start_new_thread
from collections.abc import Iterator
from queue import SimpleQueue

import numpy as np
import pytest

import dcarray as dc
from dcarray.core import behind, open_door
from dcarray.core.native import BUILT
from dcarray.core.uncollected import thread_without_collections, uncollected, waiting
from dcarray.plans.background import Background

HELD = 2**31 - 1  # the first threshold while a thread holds collections back
pytestmark = [
    pytest.mark.skipif(not BUILT, reason="the C module is not built"),
    pytest.mark.one_process("garbage is the process's own"),
]


def thresholds() -> tuple[int, int, int]:
    """Those of the program, once no other thread holds collections back."""
    until = time.monotonic() + 60
    while (found := waiting(gc.get_threshold))[0] == HELD and time.monotonic() < until:
        time.sleep(1e-4)
    return found


@pytest.fixture
def starts() -> Iterator[list[int]]:
    """The threads that start collections."""
    found: list[int] = []

    def note(phase: str, info: object) -> None:
        if phase == "start":
            found.append(threading.get_ident())

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_the_background_thread_collects_nothing(starts: list[int]) -> None:
    before, own, during = thresholds(), Background(), []
    own.submit(
        lambda: during.extend([threading.get_ident(), gc.get_threshold()[0], [[k] for k in range(20_000)]])
    )
    assert own.wait(60)
    own._stop()
    assert during[1] == HELD and during[0] not in starts
    assert thresholds() == before
    assert len([[k] for k in range(20_000)]) and threading.get_ident() in starts


def test_a_thread_that_ends_collects_nothing(starts: list[int]) -> None:
    seen: SimpleQueue[tuple[int, list[list[int]]]] = SimpleQueue()
    work = thread_without_collections(lambda: seen.put((threading.get_ident(), [[k] for k in range(20_000)])))
    start_new_thread(work, ())
    thread, _ = seen.get()
    time.sleep(0.01)
    assert thread not in starts


def test_what_the_program_sets_stays() -> None:
    before = thresholds()
    try:
        with uncollected():
            with uncollected():
                gc.disable()
                assert gc.get_threshold() == (HELD, *before[1:])
            gc.set_threshold(123, 4, 5)
            assert thresholds() == (123, 4, 5)
        assert not gc.isenabled() and thresholds() == (123, 4, 5)
        with uncollected():
            assert thresholds() == (123, 4, 5) and gc.get_threshold() == (HELD, 4, 5)
            with pytest.raises(ZeroDivisionError):
                waiting(divmod, 1, 0)
            assert gc.get_threshold()[0] == HELD
        gc.set_threshold(HELD)  # as one who has read it before
        with uncollected():
            pass
        assert thresholds() == (123, 4, 5)
    finally:
        gc.enable()
        gc.set_threshold(*before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_collects_its_garbage() -> None:
    before, held, ends = thresholds(), threading.Event(), threading.Event()

    def hold() -> None:
        with uncollected():
            held.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert gc.get_threshold()[0] == HELD
    if (child := os.fork()) == 0:
        os._exit(thresholds() != before)  # the sampler, started anew, may hold them back
    ends.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0 and thresholds() == before


def test_what_is_behind_a_door_is_imported_without_collections(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with open(f"{tmp_path}/behind_a_door.py", "w") as file:
        file.write("import gc\ncollects = gc.get_threshold()[0]\n")
    monkeypatch.setitem(behind, "test", "behind_a_door")
    assert open_door("test").collects == HELD != thresholds()[0]


@pytest.mark.parametrize("signals", [False, True])
def test_finalizers_and_handlers_that_record_find_and_leave_whole_recordings(signals: bool) -> None:
    seen = []

    class Cycle:
        def __init__(self, x: np.ndarray) -> None:
            self.x, self.me = x, self

        def __del__(self, *_: object) -> None:
            seen.append(float((self.x + 1)[0]))

    before = gc.get_threshold()
    old = signal.getsignal(signal.SIGALRM)
    with dc.options(eager_below=0, jit="off"):
        x = z = dc.asarray(np.ones(100))
        try:
            if signals:
                signal.signal(signal.SIGALRM, Cycle(x).__del__)
                signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
            else:
                gc.set_threshold(50, 2, 2)
            for k in range(3000):
                if not signals:
                    Cycle(z)
                z = z * 1.0 + (x - 1) * k
                assert k % 100 or float(z.sum()) == 100
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
            gc.set_threshold(*before)
        gc.collect()
    assert len(seen) > 5 and set(seen) == {2.0}
