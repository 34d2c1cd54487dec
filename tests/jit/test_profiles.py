"""Profiles: the next run of a source begins with the sites that ran, and plans refused ones later."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dcarray as dc
from dcarray.jit.loops.sites import modules, profiles, sampler
from dcarray.jit.loops.sites.site import Site
from dcarray.tiering.admission import HOT, HOT_AGAIN

SOURCE = """
import numpy as np
def f(x):
    for k in range(9):
        x = x * 2.0
    return x
def g(x):
    return x + 1.0
def h(x):
    return x - 1.0
"""


def sites_of(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Site], Callable[[], None]]:
    """The sites of the source in a new run, and what is done at its end."""
    found: list[Any] = []
    ends: list[Callable[[], None]] = []
    real = profiles.heat_known
    monkeypatch.setattr(profiles.atexit, "register", ends.append)
    monkeypatch.setattr(modules, "heat_known", lambda text, sites: (found.extend(sites), real(text, sites)))
    modules.compile_module(SOURCE, "<a profile>", {"__name__": "__main__"}, True)
    return found, ends[0]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


def test_the_next_run_knows_what_became_of_sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        sites, end = sites_of(monkeypatch)
        ran, refused, *rest = sites
        assert rest and not any(site.enabled or site.known or site.doubtful for site in sites)
        ran.runs = 3
        ran.kept = True
        refused.refuse("it is not faster")
        end()

        sites, end = sites_of(monkeypatch)
        wait_for(lambda: sites[0].enabled)
        assert sites[0].known and sites[1].doubtful
        assert not any(site.enabled or site.known or site.doubtful for site in sites[2:])
        sites[0].runs = 1
        end()  # the second has not been tried: it stays as it is

        sites, _ = sites_of(monkeypatch)
        wait_for(lambda: sites[0].enabled)
        assert sites[1].doubtful


def test_the_next_run_asks_for_plans_that_had_not_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        sites, end = sites_of(monkeypatch)
        sites[0].asked, sites[1].kept = True, True
        end()
        sites, _ = sites_of(monkeypatch)
        wait_for(lambda: sites[0].enabled and sites[1].enabled)
        assert [site.kept for site in sites[:2]] == [False, True] and sites[0].known and sites[1].known


def test_doubtful_sites_are_hot_later() -> None:
    own = sampler.Sampler()
    modules.compile_module("for k in range(3):\n    x = k * 2.0 + k", "<doubtful>", {}, True)
    found = [site for site in sampler.SAMPLER.sites() if site.source.file == "<doubtful>"]
    for site in found:
        site.doubtful = True
        own._count(site, 1.0, 2 * HOT)
        assert not site.enabled
        own._count(site, 1.0, HOT_AGAIN)
        assert site.enabled
    assert found
