"""Deadlock detection from the states that ranks report."""

from typing import Any

import pytest

from dcarray.comm.transport.deadlock import AnyOf, CollectiveCall, MessageEnd, RankState, find_deadlock


def state(
    *needs: Any, ended: bool = False, sent: Any = None, received: Any = None, met: int = 0
) -> RankState:
    return RankState(0, ended, "a.py:1", needs, sent or {}, received or {}, {(): met})


def channel(sender: int, receiver: int) -> tuple[Any, int, int, int]:
    return ((), sender, receiver, 0)


def receive(sender: int, receiver: int, number: int = 1) -> MessageEnd:
    return MessageEnd(channel(sender, receiver), number, False, "8 bytes")


def meeting(number: int) -> CollectiveCall:
    return CollectiveCall((), range(2), number, "barrier()")


def test_each_receives_first() -> None:
    found = find_deadlock([state(receive(1, 0)), state(receive(0, 1))])
    assert found == (
        "every rank waits for another one:\n"
        "  rank 0 waits for the receive from rank 1 of 8 bytes with tag 0 (a.py:1)\n"
        "  rank 1 waits for the receive from rank 0 of 8 bytes with tag 0 (a.py:1)"
    )


@pytest.mark.parametrize(("sent", "stands"), [(0, True), (1, True), (2, False)])
def test_a_message_on_its_way_is_none(sent: int, stands: bool) -> None:
    waits = state(receive(1, 0, number=2))
    other = state(receive(0, 1), sent={channel(1, 0): sent})
    assert bool(find_deadlock([waits, other])) is stands


def test_a_send_waits_for_its_receive() -> None:
    sends = state(MessageEnd(channel(0, 1), 1, True, "8 bytes"))
    assert "the send to rank 1" in find_deadlock([sends, state(ended=True)])
    assert not find_deadlock([sends, state(receive(0, 1, 2), received={channel(0, 1): 1})])


def test_operations_that_all_have_come_to_go_on() -> None:
    assert not find_deadlock([state(meeting(3), met=3), state(meeting(3), met=3)])
    assert "rank 1 has ended" in find_deadlock([state(meeting(3), met=3), state(ended=True, met=2)])


def test_the_end_of_all() -> None:
    assert not find_deadlock([state(ended=True, met=2), state(ended=True, met=2)])
    found = find_deadlock([state(meeting(3), ended=True, met=3), state(ended=True, met=2)])
    assert found.startswith("the ranks have ended at different steps:\n  rank 0 has ended and would wait")


def test_one_that_has_more_than_one_message_to_wait_for_is_named_the_missing_one() -> None:
    waits = state(receive(1, 0), receive(2, 0))
    others = [state(ended=True, sent={channel(1, 0): 1}), state(ended=True)]
    assert "rank 0 waits for the receive from rank 2" in find_deadlock([waits, *others])


def test_one_of_several_messages_will_do() -> None:
    waits = state(AnyOf([receive(1, 0), receive(2, 0)]))
    ended = state(ended=True)
    assert not find_deadlock([waits, state(ended=True, sent={channel(1, 0): 1}), ended])
    assert "from rank 1 of 8 bytes with tag 0 or the receive from rank 2" in find_deadlock(
        [waits, ended, ended]
    )
