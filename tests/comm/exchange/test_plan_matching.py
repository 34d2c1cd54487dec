"""Plans of ranks that do not match are reported."""

import pytest

from dcarray.comm.exchange.plan_matching import CollectiveStep, Receive, Send, Step, Wait, verify
from dcarray.comm.transport.errors import PlanError


def problems(*programs: list[Step]) -> str:
    with pytest.raises(PlanError) as caught:
        verify(programs)
    return str(caught.value)


def test_plans_that_fit() -> None:
    verify([])
    verify([[Send(1, 0, 8), Wait()], [Receive(0, 0, 8), Wait()]])
    verify([[Send(0, 0, 8), Receive(0, 0, 8), Wait()]])
    # Blocking, one after the other around a ring.
    verify(
        [
            [Send(1, 0, 8, blocking=True), Receive(2, 0, 8, blocking=True)],
            [Receive(0, 0, 8, blocking=True), Send(2, 0, 8, blocking=True)],
            [Receive(1, 0, 8, blocking=True), Send(0, 0, 8, blocking=True)],
        ]
    )
    both = CollectiveStep("bcast", (0, 1), 8)
    verify([[both, both], [both, both]])


def test_one_end_only() -> None:
    assert "rank 0 to rank 1, tag 3: 8 bytes are sent and not received" in problems([Send(1, 3, 8)], [])
    assert "rank 1 to rank 0, tag 3: 8 bytes (x) are received and not sent" in problems(
        [Receive(1, 3, 8, "x")], []
    )
    assert "rank 0 to rank 5" in problems([Send(5, 0, 8)])


def test_other_tags() -> None:
    text = problems([Send(1, 3, 8)], [Receive(0, 4, 8)])
    assert "tag 3: 8 bytes are sent and not received (but with tag 4)" in text
    assert "tag 4: 8 bytes are received and not sent (but with tag 3)" in text


def test_other_sizes_and_orders() -> None:
    assert "tag 0: 8 bytes are sent and 16 bytes received" in problems([Send(1, 0, 8)], [Receive(0, 0, 16)])
    text = problems(
        [Send(1, 0, 8, "top"), Send(1, 0, 8, "bottom")], [Receive(0, 0, 8, "bottom"), Receive(0, 0, 8, "top")]
    )
    assert "8 bytes (top) are sent and 8 bytes (bottom) received" in text


def test_ranks_that_wait_for_each_other() -> None:
    send, receive = Send(1, 0, 8, blocking=True), Receive(1, 0, 8, blocking=True)
    text = problems([send, receive], [Send(0, 0, 8, blocking=True), Receive(0, 0, 8, blocking=True)])
    assert "these ranks cannot go on" in text
    assert "rank 0 at step 0: Send" in text
    assert "rank 1 at step 0: Send" in text


def test_other_collective_operations() -> None:
    text = problems([CollectiveStep("bcast", (0, 1), 8)], [CollectiveStep("reduce", (0, 1), 8)])
    assert "rank 0 at step 0: CollectiveStep(name='bcast'" in text
    assert "rank 1 at step 0: CollectiveStep(name='reduce'" in text
    assert "cannot go on" in problems([CollectiveStep("bcast", (0, 1), 8)], [])
