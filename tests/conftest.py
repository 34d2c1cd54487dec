"""Fixtures of all tests."""

from __future__ import annotations

import pytest

from dcarray.tiering import call_sites


@pytest.fixture(autouse=True)
def no_eager_period() -> None:
    """End the eager period that a loop of an earlier test may have begun."""
    call_sites.end(loop=True)
