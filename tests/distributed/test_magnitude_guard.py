"""Distributed arrays overwritten in place where the input range check rules out floating-point exceptions."""

import warnings
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.core import fp_attribution
from dcarray.distributed import input_range_check
from dcarray.ir.analysis import value_ranges
from dcarray.ir.text import parse

UPDATE = """
  inout a: f64[64, 48];  in u: f64[64];  in v: f64[48];  in y: f64[64];  out x: f64[48]
  a[i,j] = add(a[i,j], multiply(u[i], v[j])) for i<64, j<48
  call blas.matmul(y, a) -> x
"""
MINDED = fp_attribution.DIVIDE | fp_attribution.OVER | fp_attribution.INVALID


def region(text: str) -> Any:
    return parse(f"region() {{{text}}}")


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_range_check, "FEWEST", 0)


def test_regions_worth_an_input_range_check() -> None:
    found = input_range_check.limit(region(UPDATE), ["a"], 2, MINDED)
    assert found == (2.0**256, 0.0) == value_ranges.safe_limits(region(UPDATE))
    assert input_range_check.limit(region(UPDATE), ["a"], 2, MINDED | fp_attribution.UNDER) is None
    other = region("inout a: f64[64];  in b: f64[64]\n  a[i] = add(b[i], multiply(b[i], b[i])) for i<64\n")
    assert input_range_check.limit(other, ["a"], 2, MINDED) is None  # it makes nothing of what it replaces
    more = region(UPDATE.replace("u: f64[64]", "u: f64[99, 64]").replace("u[i]", "u[3,i]"))
    assert input_range_check.limit(more, ["a"], 2, MINDED) is None  # there is more to look at


def test_too_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_range_check, "FEWEST", 64 * 48 * 4 + 1)
    assert input_range_check.limit(region(UPDATE), ["a"], 2, MINDED) is None
    assert input_range_check.limit(region(UPDATE), ["a"], 1, MINDED) is not None


def test_a_product_of_many_large_numbers_is_bounded() -> None:
    text = "in a: f64[9, {0}];  in b: f64[{0}];  out x: f64[9]\n  call blas.matmul(a, b) -> x\n"
    assert value_ranges.safe_limits(region(text.format(5))) == (2.0**256, 0.0)
    assert value_ranges.safe_limits(region(text.format(5).replace("f64", "f32"))) == (2.0**32, 0.0)
    assert value_ranges.safe_limits(region(text.format(5).replace("f64", "c128"))) is None


def program(top: float, log: list[Any]) -> Any:
    """Updates of a matrix and products with it, of plain arrays and of arrays over ranks."""
    rng = np.random.default_rng(0)
    a, u, v, y = rng.random((90, 70)), rng.random(90), rng.random(70), rng.random(90)
    a[50, 3] = top
    if dc.comm.world().size > 1:
        a, u, v, y = (dc.distribute(x) for x in (a, u, v, y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            a += np.outer(u, v) * 2
            a *= 1.5
            x = y @ a
            dc.evaluate(a, x)
    log.append(sorted({str(warning.message) for warning in caught}))
    return [z.gather() if isinstance(z, dc.ndarray) else z for z in (a, x)]


@pytest.mark.parametrize("jit", ["off", "eager"])
@pytest.mark.parametrize("top", [0.5, 1e200, 1.7e308, np.inf, np.nan])
def test_as_numpy(top: float, jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    within = input_range_check.within
    monkeypatch.setattr(input_range_check, "within", lambda *args: asked.append(within(*args)) or asked[-1])
    said: list[Any] = []
    want = program(top, said)

    def ranks() -> Any:
        with dc.options(distribute_above=0, eager_below=0, jit=jit):
            return program(top, said)

    for found in dc.comm.run(3, ranks):
        for a, b in zip(want, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-13)
    assert {text for one in said[1:] for text in one} == set(said[0])  # a warning is one of all threads
    assert asked and set(asked) == {top == 0.5}


@on_ranks(2)
def test_exposed_blocks_are_written() -> None:
    plain = np.ones((40, 40))
    with dc.options(distribute_above=0, eager_below=0, jit="off"):
        x = dc.asarray(plain)
        x += np.outer(x[0], x[1]) * 2
        x *= 2
        local = dc.distribute(plain)
        seen = local.local
        local += np.outer(local[0], local[1]) * 2
        local *= 2
        dc.evaluate(x, local)
    assert (plain == 6).all()
    assert (np.asarray(seen) == 6).all()


@on_ranks(2)
def test_statements_without_effect() -> None:
    with dc.options(distribute_above=0, eager_below=0, jit="off"):
        x = dc.distribute(np.arange(1.0, 9.0))
        np.copyto(x, x, where=x > 1)
        y = 1 / x
        np.testing.assert_array_equal(np.asarray(y), 1 / np.arange(1.0, 9.0))
