"""Simulated ranks: deterministic, strict, and never left waiting."""

import contextvars
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.errors import (
    CommError,
    DeadlockError,
    Killed,
    LostRankError,
    MismatchError,
    RankError,
)
from dcarray.comm.transport.protocol import Communicator, Counts
from dcarray.comm.transport.simulated_ranks import rank_of_thread as me

Program = Callable[[Communicator], Any]


def run(size: int, program: Program) -> list[Any]:
    return simulated_ranks.run(size, lambda: program(me()))


# ---- what works --------------------------------------------------------------------------------------
def test_collective_operations() -> None:
    def program(comm: Communicator) -> None:
        here = np.array([comm.rank, 10 * comm.rank])
        total = np.empty_like(here)
        comm.allreduce(here, total, "sum")
        assert total.tolist() == [6, 60]
        comm.allreduce(here, here, "max")
        assert here.tolist() == [3, 30]
        best = np.empty(()) if comm.rank == 2 else None
        comm.reduce(np.array(float(comm.rank)), best, "min", 2)
        assert best is None or best == 0
        column = np.full((3, 2), comm.rank)[:, 0]
        comm.bcast(column, 1)
        assert column.tolist() == [1, 1, 1]
        sends = [[np.array([comm.rank * 10 + to])] for to in range(4)]
        receives = [[np.empty(1, int)] for _ in range(4)]
        comm.alltoallw(sends, receives)
        assert [int(r[0][0]) for r in receives] == [comm.rank + 10 * rank for rank in range(4)]
        comm.barrier()
        assert comm.counts == Counts(3, 24, 3, 24, 4, 16 + 16 + 8 + 24)

    run(4, program)


def test_groups_do_not_hear_each_other() -> None:
    def program(comm: Communicator) -> int:
        row = comm.sub([r for r in range(6) if r // 3 == comm.rank // 3])
        column = comm.sub([r for r in range(6) if r % 3 == comm.rank % 3])
        assert (row.size, column.size) == (3, 2)
        total = np.array(comm.rank)
        row.allreduce(total, total, "sum")
        assert total == (3 if comm.rank < 3 else 12)
        column.allreduce(total, total, "sum")
        again = comm.sub(range(6))
        got = np.empty(1, int)
        request = again.irecv([got], (comm.rank - 1) % 6, 0)
        other = comm.irecv([np.empty(1, int)], (comm.rank - 1) % 6, 0)
        for group in (comm, again):
            group.isend([np.array([comm.rank + 100 * (group is again)])], (comm.rank + 1) % 6, 0).wait()
        other.wait()
        request.wait()
        assert got[0] == 100 + (comm.rank - 1) % 6
        assert comm.counts.collectives == 2
        return int(total)

    assert run(6, program) == [15] * 6


def test_messages_of_one_tag_keep_their_order_and_tags_are_apart() -> None:
    def program(comm: Communicator) -> None:
        if comm.rank == 0:
            requests = [comm.isend([np.array([k])], 1, tag) for k, tag in ((0, 7), (1, 8), (2, 7))]
            comm.waitall(requests)
        else:
            got = np.zeros(3, int)
            for place, tag in ((1, 8), (0, 7), (2, 7)):
                comm.irecv([got[place : place + 1]], 0, tag).wait()
            assert got.tolist() == [0, 1, 2]

    run(2, program)


def test_data_arrives_at_the_wait() -> None:
    def program(comm: Communicator) -> None:
        got = np.zeros(1)
        receive = comm.irecv([got], comm.rank, 0)
        comm.isend([np.ones(1)], comm.rank, 0).wait()
        assert got[0] == 0
        receive.wait()
        receive.wait()
        assert got[0] == 1

    run(1, program)


def test_ranks_run_in_the_same_order_each_time() -> None:
    def trace() -> list[int]:
        seen: list[int] = []

        def program(comm: Communicator) -> None:
            for _ in range(3):
                seen.append(comm.rank)
                comm.barrier()
                seen.append(comm.rank)

        run(5, program)
        return seen

    first = trace()
    assert all(trace() == first for _ in range(5))


def test_alone() -> None:
    comm = simulated_ranks.single_rank()
    comm.barrier()
    comm.bcast(np.zeros(1), 0)
    with pytest.raises(DeadlockError):
        comm.irecv([np.zeros(1)], 0, 0).wait()
    with pytest.raises(CommError, match="not a simulated rank"):
        me()


# ---- what does not -----------------------------------------------------------------------------------
def test_an_exception_on_one_rank_ends_all() -> None:
    seen: dict[int, str] = {}

    def program(comm: Communicator) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("on purpose")
        try:
            comm.barrier()
        except RankError as error:
            seen[comm.rank] = str(error)
            raise

    with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
        run(3, program)
    assert caught.value.__notes__ == ["(on rank 1 of 3)"]
    assert sorted(seen) == [0]  # rank 2 had not begun
    assert "rank 1 failed" in seen[0]
    assert "in program" in seen[0]
    assert threading.active_count() < 20


def test_ranks_that_wait_for_each_other() -> None:
    def program(comm: Communicator) -> None:
        comm.isend([np.zeros(2)], 1 - comm.rank, 3).wait()

    with pytest.raises(DeadlockError) as caught:
        run(2, program)
    text = str(caught.value)
    assert "rank 0 waits for the send to rank 1 of 16 bytes of float64 with tag 3" in text
    assert "rank 1 waits for the send to rank 0" in text
    assert "test_simulated_ranks.py:" in text


def test_a_rank_that_waits_for_one_that_has_ended() -> None:
    def program(comm: Communicator) -> None:
        if comm.rank:
            comm.irecv([np.zeros(1)], 0, 4).wait()
        else:
            comm.isend([np.zeros(1)], 1, 5)

    with pytest.raises(
        DeadlockError, match=r"(?s)rank 0 has ended.*rank 1 waits for the receive from rank 0"
    ):
        run(2, program)


def test_a_branch_that_only_some_ranks_take() -> None:
    def program(comm: Communicator) -> None:
        if comm.rank < 2:
            comm.barrier()

    with pytest.raises(DeadlockError, match=r"rank 0 waits for rank 2 to call barrier\(\)"):
        run(3, program)


MISMATCHES: list[tuple[Program, str]] = [
    (
        lambda c: c.isend([np.zeros(3)], 1, 0).wait() if c.rank == 0 else c.irecv([np.zeros(2)], 0, 0).wait(),
        "rank 0 sends 24 bytes of float64 .*test_simulated_ranks.* where rank 1 receives 16 bytes of float64",
    ),
    (
        lambda c: (
            c.isend([np.zeros(3)], 1, 0).wait() if c.rank == 0 else c.irecv([np.zeros(3, int)], 0, 0).wait()
        ),
        "sends 24 bytes of float64 .* receives 24 bytes of int64",
    ),
    (
        lambda c: c.bcast(np.zeros(2 + c.rank), 0),
        r"rank 1 calls bcast\(0, 24, float64\) .* where rank 0 calls bcast\(0, 16, float64\)",
    ),
    (
        lambda c: c.barrier() if c.rank else c.bcast(np.zeros(1), 0),
        r"rank 1 calls barrier\(\) .* where rank 0 calls bcast",
    ),
    (
        lambda c: c.alltoallw([[np.zeros(c.rank)]] * 2, [[np.zeros(1)]] * 2),
        "rank 0 sends 0 bytes where rank 1 receives 8 bytes",
    ),
    (lambda c: c.isend([np.zeros(1)], c.rank, 0), "has no other end"),
    (lambda c: (c.irecv([np.zeros(1)], c.rank, 0), c.isend([np.zeros(1)], c.rank, 0)), "was not waited for"),
]


@pytest.mark.parametrize(("program", "text"), MISMATCHES)
def test_two_ends_that_differ(program: Program, text: str) -> None:
    with pytest.raises(MismatchError, match=text):
        run(2, program)


def test_what_is_sent_must_not_change() -> None:
    def program(comm: Communicator) -> None:
        a, b = np.zeros(2), np.ones(2)
        requests = [comm.isend([a], comm.rank, 0), comm.irecv([b], comm.rank, 0)]
        a[0] = 1
        comm.waitall(requests)

    with pytest.raises(CommError, match="was changed before it was waited for"):
        run(1, program)


WRONG: list[tuple[Program, type[Exception], str]] = [
    (lambda c: c.isend([np.zeros(1)], 0, -1), CommError, "a tag lies between"),
    (lambda c: c.sub([1 - c.rank]), CommError, "rank 0 asks for a communicator"),
    (lambda c: c.abort(3), CommError, "rank 0 ended all ranks with code 3"),
]


@pytest.mark.parametrize(("program", "kind", "text"), WRONG)
def test_calls_that_mean_nothing(program: Program, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        run(2, program)


def test_no_ranks() -> None:
    with pytest.raises(CommError, match="0 ranks cannot run"):
        simulated_ranks.run(0, lambda: None)


def test_an_exit_without_a_status_ends_one_rank() -> None:
    def program(status: int | None) -> int:
        if me().rank == 1:
            sys.exit(status)
        return me().rank

    assert simulated_ranks.run(3, program, None) == [0, None, 2]
    assert simulated_ranks.run(3, program, 0) == [0, None, 2]
    with pytest.raises(SystemExit) as caught:
        simulated_ranks.run(3, program, 3)
    assert caught.value.code == 3


def test_an_interrupt_ends_all() -> None:
    line = """
import os, signal, threading, time
from dcarray import comm

signal.signal(signal.SIGINT, signal.default_int_handler)  # who began the tests may ignore it

def program():
    if comm.world().rank == 1:
        os.kill(os.getpid(), signal.SIGINT)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        comm.world().barrier()
        time.sleep(0.01)

try:
    comm.run(3, program)
finally:  # what ends the process must not take memory from a rank that still computes
    print([thread.name for thread in threading.enumerate() if thread.name.startswith("rank")])
"""
    done = python("-c", line, status=None)
    assert done.returncode == -signal.SIGINT
    assert done.stdout.split() == ["[]"]
    assert "KeyboardInterrupt" in done.stderr


def test_only_the_thread_that_is_a_rank_works_on_its_blocks() -> None:
    def program() -> list[str]:
        x = dc.distribute(np.arange(600.0))
        y = x[1:] - x[:-1]  # pending
        said = []

        def work() -> None:
            for call in (
                y.sum, lambda: (x + 1).sum(), lambda: np.sort(x), lambda: x[5], lambda: me().barrier(),
            ):  # fmt: skip
                try:
                    call()
                except CommError as error:
                    said.append(str(error))

        context = contextvars.copy_context()
        for target in (work, lambda: context.run(work)):
            thread = threading.Thread(target=target, name="another")
            thread.start()
            thread.join()
        assert y.sum() == 599
        return said

    for said in simulated_ranks.run(3, program):
        assert len(said) == 10
        assert all("not a simulated rank" in text or "thread 'another' is not " in text for text in said)


def test_a_lost_rank() -> None:
    def program(comm: Communicator) -> None:
        if comm.rank == 1:
            raise Killed
        if comm.rank == 0:
            comm.waitall([comm.irecv([np.zeros(1)], 1, 0)])

    with pytest.raises(LostRankError, match=r"rank 1 is lost: the receive from rank 1 of 8 bytes"):
        run(3, program)

    def meeting(comm: Communicator) -> None:
        if comm.rank == 1:
            raise Killed
        comm.barrier()

    with pytest.raises(DeadlockError, match="rank 1 is lost"):
        run(3, meeting)


def test_bits_are_shared() -> None:
    def program(comm: Communicator) -> tuple[int, int]:
        every = comm.share(("a",), 1 << comm.rank | 1 << 123)
        return every, comm.share(("b",), 0)

    assert run(4, program) == [(1 << 123 | 0b1111, 0)] * 4

    def parting(comm: Communicator) -> None:
        comm.share(("a", comm.rank), 0)

    with pytest.raises(MismatchError, match=r"rank 1 calls a\(1\)"):
        run(2, parting)


def test_ranks_that_have_parted_are_all_told_so() -> None:
    seen: list[str] = []

    def program(comm: Communicator) -> None:
        comm.barrier()
        for call in (lambda: comm.step(("a", comm.rank // 2)), comm.barrier, comm.barrier):
            try:
                call()
            except MismatchError as error:
                seen.append(str(error))

    run(4, program)
    assert len(set(seen)) == 1
    assert "calls a(0)" in seen[0]
    assert "calls a(1)" in seen[0]
    assert 2 * 4 < len(seen) < 3 * 4  # those who had gone on were told at the next call
