"""Nothing of a test's made-up device is pending when it has gone."""

import warnings
from collections.abc import Iterator

import pytest

import dcarray as dc


@pytest.fixture(autouse=True)
def nothing_stays_pending(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run what is pending while the devices are still in the table."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dc.evaluate()
