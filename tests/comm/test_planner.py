"""Programs for many ranks against the interpreter on whole arrays."""

from __future__ import annotations

from comm_planning import check, check_placed, laid_out
from hypothesis import given, settings


@settings(max_examples=100, derandomize=True, deadline=None)
@given(laid_out())
def test_random_regions(drawn) -> None:
    check(*drawn)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(laid_out())
def test_placed_regions_are_regions(drawn) -> None:
    check_placed(*drawn)
