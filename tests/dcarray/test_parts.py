"""Parts of calls: helpers that come late are not called for a while, and the results are the same."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

import dcarray as dc
from dcarray.core import parts

pytestmark = pytest.mark.one_process("several ranks share the processors")


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(parts, "monotonic", found)
    return found


def judged(account: parts._Account, clock: Clock, alone: float, waited: float, helped: bool = True) -> None:
    """Have an account note a call that took so long: its own work, and waiting for helpers."""
    start = clock.now
    clock.now += alone + waited
    account.judge(start, start + alone, helped)


def test_good_help_is_called_for_ever(clock: Clock) -> None:
    account = parts._Account()
    for _ in range(1000):
        judged(account, clock, 1e-3, 1e-4)
    assert account.until == 0


def test_losses_add_up_and_gains_pay_them(clock: Clock) -> None:
    account = parts._Account()
    for _ in range(50):
        judged(account, clock, 2e-4, 1.2e-4)
        judged(account, clock, 1e-3, 0.0)
    assert account.until == 0
    for _ in range(50):
        judged(account, clock, 2e-4, 1.2e-4)
    assert account.until > 0


def test_the_time_without_help_grows_until_help_does_well(clock: Clock) -> None:
    account, rests = parts._Account(), []
    for _ in range(12):
        judged(account, clock, 1e-3, 4e-3)
        rests.append(account.until - clock.now)
        clock.now = account.until
    assert all(b == pytest.approx(min(2 * a, parts._MOST_ALONE)) for a, b in pairwise(rests))
    assert rests[0] >= parts._REPAID * 2.5e-3 and rests[-1] == pytest.approx(parts._MOST_ALONE)
    for _ in range(100):
        judged(account, clock, parts._CALM / 50, 0.0)
    judged(account, clock, 1e-3, 4e-3)
    assert account.until - clock.now == pytest.approx(rests[0])


def test_a_short_wait_after_a_long_call_is_no_loss(clock: Clock) -> None:
    account = parts._Account()
    judged(account, clock, 0.1, 4e-3)
    assert account.until == 0


def threads_of(jobs: int) -> list[int]:
    """Run jobs and return in which thread each was."""
    seen: list[int] = []

    def job() -> None:
        time.sleep(0.01)
        seen.append(threading.get_ident())

    with dc.options(threads=3):
        assert parts.run([job] * jobs)
    assert len(seen) == jobs
    return seen


def test_no_helper_is_called_after_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_ACCOUNT", parts._Account())
    assert len(set(threads_of(12))) > 1
    parts._ACCOUNT.until = time.monotonic() + 1e6
    assert set(threads_of(6)) == {threading.get_ident()}
    parts._ACCOUNT.until = time.monotonic() + 0.03  # and in the middle of a call there are some again
    assert len(set(threads_of(30))) > 1
