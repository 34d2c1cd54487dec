"""Programs whose ranks fail or diverge: ``mpiexec -n 3 python -m mpi_failures NAME``."""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

import dcarray as dc
from dcarray import comm
from dcarray.distributed.array_distribution import distribute

ranks = comm.world()
me, size = ranks.rank, ranks.size


# ---- control flow that differs -----------------------------------------------------------------------
def diverging() -> None:
    """An `if` that is true on one rank."""
    x = np.arange(3.0)
    comm.Bcast(x)
    if me == 1:
        comm.Allreduce(x, "max")
    else:
        comm.Allreduce(x)


def shapes() -> None:
    """Different shapes."""
    comm.Allreduce(np.zeros(3 + (me == 2)))


def steps() -> None:
    """Different steps without a wait; the program has ended when they are compared."""
    for k in range(200):
        ranks.step(("run", k if me == 0 or k < 190 else -k))


def sharing() -> None:
    """Different steps that combine bits."""
    for k in range(20):
        ranks.share(("run", k if me == 0 or k < 10 else -k), 1)


def one_step_more() -> None:
    """A last step without a wait, on one rank only."""
    for k in range(10 + (me == 1)):
        ranks.step(("run", k))


def once_more() -> None:
    """A loop with one more iteration on one rank."""
    for _ in range(5 + (me == 1)):
        comm.Allreduce(1.0)


def leaving() -> None:
    """A rank that ends before the others are done."""
    if me == 1:
        return
    comm.Allreduce(1.0)


def leaving_a_receiver() -> None:
    """A rank that ends without having sent."""
    if me == 1:
        comm.Wait(comm.Irecv(np.zeros(2), 0))


def receiving() -> None:
    """Every rank receives first."""
    x = np.zeros(1 << 16)
    comm.Wait(comm.Irecv(x, (me + 1) % size))
    comm.Wait(comm.Isend(x, (me - 1) % size))


def rows() -> None:
    """Different operations in one row of a grid; the other ranks are elsewhere."""
    cart = comm.Cart_create((1, size))
    row = comm.Cart_sub(cart, (False, True))
    part = row.comm.sub([0, 1]) if me < 2 else None
    if part is not None:
        comm.Bcast(np.zeros(1), 0, part) if me else comm.Allreduce(np.zeros(1), comm=part)
    comm.Allreduce(1.0)


def recording() -> None:
    """Different statements on arrays in blocks."""
    x = distribute(np.arange(600.0))
    if me == 1:
        x += 1
    else:
        x -= 1
    dc.evaluate(x)
    comm.Allreduce(1.0)


def functions() -> None:
    """Different functions of arrays in blocks that record nothing."""
    x = distribute(np.arange(600.0))
    dc.evaluate()
    np.unique(x) if me == 1 else np.sort(x)
    comm.Allreduce(1.0)


def places() -> None:
    """Different elements of one."""
    x = distribute(np.arange(600.0))
    dc.evaluate()
    x[[1, 2 + me]]
    comm.Allreduce(1.0)


def going_on() -> None:
    """Ranks that have diverged and go on: nothing works, and no message is received into memory of others."""
    x, y = distribute(np.arange(4096.0).reshape(64, 64)), distribute(np.arange(4096.0))
    dc.evaluate()
    with suppress(comm.CommError):
        (y + 1).sum().item() if me == 1 else np.sort(y)
    calls = (
        lambda: np.fft.fft(x, axis=0), lambda: np.sort(y), lambda: np.unique(y), lambda: np.sort(x, 0),
        lambda: np.asarray(y), lambda: y.tolist(), lambda: x[3, 4].item(), lambda: np.median(y),
        lambda: np.linalg.det(x), lambda: np.take(y, [5, 4000]), lambda: (x @ x).sum().item(),
    )  # fmt: skip
    told = 0
    for k in range(100):
        for call in calls:
            try:
                call()
            except comm.CommError:
                told += 1
            time.sleep(0.0003 * ((k + me) % 3 == 0))
            assert not any(np.zeros(n).any() for n in (512, 1024, 2048, 4096))
    assert told >= 99 * len(calls), told


def gathering() -> None:
    """A block that one rank alone gathers."""
    x = distribute(np.arange(600.0))
    if me == 1:
        np.asarray(x)
    comm.Allreduce(1.0)


def threads() -> None:
    """Two threads that use arrays in blocks in an order that differs between ranks."""
    _in_threads(("one", "two") if me == 1 else ("two", "one"))


def thread_beside() -> None:
    """A thread that uses them before the main thread does, on one rank only."""
    if me == 1:
        _in_threads(["one"])
    _stretch()
    if me != 1:
        _in_threads(["one"])


def threads_alike() -> None:
    """Two threads of the same name."""
    begin, through = threading.Event(), threading.Barrier(2)

    def turn() -> None:
        try:
            _stretch(begin)
        finally:
            through.wait()  # one that has ended is not alike any more

    both = [threading.Thread(target=turn, name="one") for _ in range(2)]
    for thread in both:
        thread.start()
    begin.set()
    for thread in both:
        thread.join()


def threads_in_turn() -> None:
    """One thread after the other, and a thread pool whose only thread works for the main one."""
    x = distribute(np.arange(600.0))
    _in_threads(("one", "two"))
    with ThreadPoolExecutor(1) as pool:
        y = pool.submit(lambda: x[1:] - x[:-1]).result()
        total = y.sum() + pool.submit(_stretch).result()
    _in_threads(["three"])
    print("through" if total == 599 + 600.0 * 599 / 2 + 2 * 600 else total)


def _in_threads(names: Iterable[str]) -> None:
    for name in names:
        thread = threading.Thread(target=_stretch, name=name)
        thread.start()
        thread.join(0.5)  # where others come in another order it may wait
    for other in threading.enumerate():
        if other.name in names:
            other.join()


def _stretch(begin: threading.Event | None = None) -> Any:
    """Statements on an array in blocks."""
    if begin is not None:
        begin.wait()
    x = distribute(np.arange(600.0))
    x[1:-1] += x[2:] - x[:-2]
    x += 2
    return x.sum() - 2 * 598


def groups() -> None:
    """A group that not all of its ranks make."""
    if me < 2:
        ranks.sub([0, 1, 2])
    else:
        comm.Bcast(np.zeros(1))


# ---- failures ----------------------------------------------------------------------------------------
def raising() -> None:
    """An exception on one rank, while one waits for a message and one in a collective operation."""
    if me == 1:
        raise ZeroDivisionError("on purpose")
    if me == 0:
        comm.Wait(comm.Irecv(np.zeros(2), 1))
    ranks.barrier()


def caught() -> None:
    """The others catch it, clean up and end."""
    if me == 1:
        time.sleep(0.1)
        raise ZeroDivisionError("on purpose")
    try:
        comm.Allreduce(1.0)
    except comm.RankError as error:
        time.sleep(0.3)
        print(f"rank {me} cleaned up; {'ZeroDivisionError: on purpose' in str(error)}")
    try:
        comm.Bcast(np.zeros(1))
    except comm.RankError:
        print(f"rank {me} is told again")


def raising_in_a_group() -> None:
    """The others wait in a group without the one that fails."""
    if me == 2:
        time.sleep(0.1)
        raise KeyError("on purpose")
    part = ranks.sub([0, 1])
    for _ in range(20):
        comm.Allreduce(1.0, comm=part)
    if me == 0:
        ranks.barrier()
    comm.Allreduce(1.0, comm=part)


def busy() -> None:
    """The others compute, and hear of it when they wait."""
    if me == 1:
        raise ZeroDivisionError("on purpose")
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        pass
    ranks.barrier()


def exiting() -> None:
    """`sys.exit` on one rank."""
    if me == 1:
        sys.exit(3)
    ranks.barrier()


def exiting_early() -> None:
    """`sys.exit()` on ranks that have nothing left to do."""
    comm.Allreduce(1.0)
    if me:
        sys.exit()
    time.sleep(1.5)
    print("rank 0 is through")


def exit_caught() -> None:
    """A caught `SystemExit` has no effect."""
    try:
        sys.exit(3)
    except SystemExit:
        comm.Allreduce(1.0)
    print("through")


def interrupted() -> None:
    """An interrupt of one rank that waits."""
    if me == 1:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    if me != 0:
        comm.Wait(comm.Irecv(np.zeros(1), 0))
    ranks.barrier()


def gone() -> None:
    """A process that dies silently, while the others wait."""
    if me == 1:
        os._exit(5)
    ranks.barrier()


# ---- bad input ---------------------------------------------------------------------------------------
class Unpicklable:
    def __reduce__(self) -> Any:
        raise pickle.PicklingError("on purpose")


def objects() -> None:
    """References into a process, on every rank and on one."""
    for x in (np.array([Unpicklable()]), np.array([None])):
        try:
            comm.Bcast(x)
        except TypeError as error:
            print(f"rank {me}: {error}")
    comm.Allreduce(np.array([None]) if me == 2 else np.zeros(1))


def distributed() -> None:
    """An array that is not the same everywhere."""
    dc.distribute(np.zeros((6, 6 + me)))


def waiting_for_long() -> None:
    """Ranks that wait for one that computes, longer than the deadlock detection takes."""
    if me == 1:
        time.sleep(2.5)
    if me == 2:
        comm.Wait(comm.Isend(np.ones(1 << 20), 0))
    elif me == 0:
        x = np.zeros(1 << 20)
        comm.Wait(comm.Irecv(x, 2))
        assert x.all()
    print(f"sum {comm.Allreduce(1.0)}")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("ended")
