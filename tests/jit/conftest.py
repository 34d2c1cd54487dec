"""Fixtures of the tests of compiled loops and runs of statements."""

from collections.abc import Iterator

import pytest

import dcarray as dc
from dcarray.jit.loops.sites import site
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.tiering import admission


@pytest.fixture(autouse=True)
def only_who_asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no site be hot or given up since a busy machine takes long, but in tests marked ``hot``."""
    if request.node.get_closest_marker("hot") is None:
        monkeypatch.setattr(SAMPLER, "_count", lambda site, now, seconds: None)
        monkeypatch.setattr(admission, "_ALLOWED", 10.0)  # seconds of questions in vain
        monkeypatch.setattr(site, "GIVEN_PLANNING", 1e9)


@pytest.fixture(autouse=True)
def eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make plans at once in tests marked ``eager``, with the options of the mark; the report begins anew."""
    mark = request.node.get_closest_marker("eager")
    if mark is None:
        yield
        return
    with dc.options(jit="eager", cache_dir=None, **mark.kwargs):
        dc.report(reset=True)
        yield
