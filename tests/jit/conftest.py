"""Fixtures of the tests of compiled loops and runs of statements."""

from __future__ import annotations

import pytest

from dcarray.jit.loops.sites.sampler import SAMPLER


@pytest.fixture(autouse=True)
def only_who_asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no site be hot since a test takes long on a busy machine, but in tests marked ``hot``."""
    if request.node.get_closest_marker("hot") is None:
        monkeypatch.setattr(SAMPLER, "_count", lambda site, now, seconds: None)
