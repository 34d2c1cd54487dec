"""When plans are made beside the program."""

from __future__ import annotations

from dcarray.background import PATIENCE, Background


def test_jobs_wait_until_they_are_worth_their_while() -> None:
    done: list[int] = []
    beside = Background()
    beside.later(lambda: done.append(1))
    beside.worked(PATIENCE / 2)
    beside.submit(lambda: done.append(0))
    assert beside._held
    beside.worked(PATIENCE)
    beside.later(lambda: done.append(2))
    beside.wait()
    assert done == [0, 1, 2] and not beside._held


def test_who_waits_has_everything_done() -> None:
    done: list[int] = []
    beside = Background()
    beside.later(lambda: done.append(1))
    beside.wait()
    assert done == [1]
