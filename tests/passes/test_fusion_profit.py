"""The one cost function of fusions."""

import pytest

from dcarray.ir.passes.exprs import summary
from dcarray.ir.passes.fusion_profit import (
    CACHE,
    CORES,
    OUT_OF_LAST_CACHE,
    TRIP,
    Change,
    loss,
    repeated_work,
    work_along,
)
from dcarray.ir.text import parse


def price(expr):
    (stmt,) = parse(f"region() {{ in x: f64[9];  out y: f64[9];  y[i] = {expr} for i<9 }}").body
    return summary(stmt.body)


def test_what_is_saved_has_to_be_worth_what_is_repeated():
    assert loss(Change(0)) == "they have no data in common"
    assert loss(Change(1)) is None
    assert loss(Change(2, TRIP)) is None
    assert loss(Change(2, TRIP + 0.5)) == "40.5 operations and loads per element would be repeated"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (Change(1, rows=CORES - 1, row=1000), "too few"),
        (Change(1, rows=CORES, row=63), "too short"),
        (Change(1, rows=CORES, row=64), None),
        (Change(2, rows=CORES, row=32), None),
        (Change(1, rows=CORES, row=CACHE), None),
        (Change(1, rows=CORES, row=CACHE + 1), "do not stay"),
        (Change(1, rows=CORES, row=CACHE // 4, folds=True), "fits into the caches"),
        (Change(1, rows=OUT_OF_LAST_CACHE // 1024, row=1024, folds=True), None),
        (Change(1, rows=CORES * 8, row=CACHE // 4 + 1, folds=True), "do not stay"),
    ],
)
def test_rows(change, word):
    found = loss(change)
    assert found is None if word is None else word in found


def test_calls_are_never_repeated_and_work_along_axes_depends_on_the_axes():
    assert repeated_work(price("exp(x[i])"), 1) == float("inf")
    assert repeated_work(price("exp(x[i])"), 0) == 0
    assert repeated_work(price("add(x[i], 1.0)"), 4) == 2
    plain = price("add(x[i], 1.0)")
    one = [work_along(plain, axes, 2) for axes in ((), (0, 1), (1,), (0,))]
    assert one[0] == 0 and one == sorted(one)
