"""Sites that are slower than Python are left to it with ``jit="eager"``, too, after some runs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray import comm
from dcarray.jit.loops.sites import site as sites
from dcarray.jit.loops.sites.functions import put_sites, with_sites
from dcarray.jit.loops.sites.site import Site
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

pytestmark = pytest.mark.eager

PICKED = """
def f(items, k):
    total = 0.0
    for j in range(3):
        total += items[k + j]
    return total
"""
DOUBLED = """
def f(x):
    for i in range(1, len(x)):
        x[i] = 2.0 * x[i - 1]
    return x
"""
COUNTED = """
def f(r):
    c = 2 * r + 1
    d = c * c - r
    return d
"""


def eager_site(f: Any) -> Site:
    """The outermost site of a function, which asks for plans."""
    found = put_sites(f)[0]
    found.enabled = True
    return found


def test_it_is_given_up_after_some_runs() -> None:
    f = written(PICKED)
    site = eager_site(f)
    items = [0.5 * k for k in range(100_000)]
    for k in range(admission.GIVEN_RUNS):
        assert f(items, k) == 1.5 * (k + 1) and site.runs == k + 1
    for k in range(20_000):
        assert f(items, k) == 1.5 * (k + 1)
        if not site.enabled:
            break
    assert not site.enabled  # refused, or put off until it has been seen running for as long as lists take


def test_short_runs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission.Measured, "compiled", lambda *_: True)  # not faster
    monkeypatch.setattr(admission.Measured, "both", (2.0, 1.0))
    f = written(COUNTED)
    site = eager_site(f)
    for r in range(1_000_000):
        assert f(r) == (2 * r + 1) ** 2 - r
        if site.refused:
            break
    assert site.refused and site.runs >= admission.GIVEN_RUNS


def test_plans_take_no_more_than_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "GIVEN_PLANNING", 1e-9)
    f = written(DOUBLED)
    site = eager_site(f)
    for dtype in ("f8", "f4", "c16"):
        np.testing.assert_array_equal(f(np.ones(6, dtype)), 2.0 ** np.arange(6))
    assert site.runs == 1


def test_it_is_not_asked_in_vain_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_EAGERLY", 0.0)
    f = written(DOUBLED)
    site = eager_site(f)
    f(np.ones(6))
    assert site.runs == 1 and site.enabled
    for _ in range(3):
        assert f([1, 2, None][:2]) == [1, 2.0]
    assert [*f(dict(enumerate([1.0, 0.0]))).values()] == [1.0, 2.0]
    assert not site.enabled and site.refused
    site, gain = eager_site(written(DOUBLED)), SimpleNamespace(judged=False)
    site.server.versions, waiting = [site.server._plain], SimpleNamespace(state=PlanState.ASKED, gain=gain)
    site.server._plain.plans.entries[1] = waiting
    site.server._note_vain(None, waiting, 1.0)
    assert not site.enabled and not site.refused and site.waits
    waiting.state, site.runs = PlanState.READY, 3
    assert site.waits  # it is not known yet whether it is faster
    gain.judged = True
    assert not site.waits


@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_rank_decides_alone_only_where_no_array_lies_in_blocks(
    monkeypatch: pytest.MonkeyPatch, in_blocks: bool
) -> None:
    monkeypatch.setattr(sites, "GIVEN_SECONDS", 0.0)
    monkeypatch.setattr(admission.Measured, "compiled", lambda *_: True)
    monkeypatch.setattr(admission.Measured, "both", (2.0, 1.0))
    plain = written(DOUBLED)
    f = dc.accelerate(plain)

    def rank() -> None:
        for _ in range(2 * admission.GIVEN_RUNS):
            x = [1.0] * 4 if not in_blocks else np.ones(4)
            assert [*f(x)] == [1.0, 2.0, 4.0, 8.0]

    with dc.options(jit="background"):
        comm.run(2, rank)
    site = with_sites(plain)[1][0]
    assert bool(site.refused) != in_blocks, site.refused
    assert site.runs >= admission.GIVEN_RUNS, site.refused
