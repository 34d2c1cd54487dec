"""The state machine of calls, and its constants, which the C module has, too."""

from __future__ import annotations

import pytest

from dcarray.core.native import BUILT
from dcarray.tiering import state
from dcarray.tiering.state import Backoff, Limits, Tier, TierState


@pytest.mark.skipif(not BUILT, reason="there is no C module")
def test_the_c_module_has_the_same_states_and_constants() -> None:
    from dcarray._native import extension

    assert [getattr(extension, tier.name) for tier in Tier] == list(Tier)
    assert (extension.STRIKES, extension.BLOCKED_HITS) == (state.STRIKES, state.BLOCKED_HITS)
    assert state.CALL_SITE.strikes == state.STRIKES


def test_a_subject_goes_through_its_states() -> None:
    found = TierState(Limits(2, 3))
    assert [found.observe() for _ in range(4)] == [False, True, False, False]
    assert found.tier is Tier.CANDIDATE
    found.activate()
    assert [found.strike() for _ in range(3)] == [False, False, True] and found.tier is Tier.DEOPTIMISED
    found.activate(1)
    assert found.tier is Tier.ACTIVE and found.strikes == 2 and found.strike(2)
    found.retry()
    assert found.tier is Tier.CANDIDATE and not found.strikes
    found.reset()
    assert found.tier is Tier.OBSERVED and not found.observations


def test_intervals_double_up_to_the_longest() -> None:
    backoff = Backoff(3, 10)
    assert [backoff.next() for _ in range(4)] == [3, 6, 10, 10]
    backoff.reset()
    assert backoff.next() == 3
