"""Fixtures of all tests."""

from __future__ import annotations

import pytest

from dcarray.tiering import eager_period


@pytest.fixture(autouse=True)
def no_eager_period() -> None:
    """End the eager period that a loop of an earlier test may have begun."""
    eager_period.end(loop=True)
